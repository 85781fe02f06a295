//! What is refused before or beside the signature: framing, routing, limits, time.
//!
//! Every refusal must leave nothing behind, and must not harm the requests around it.

use crate::harness::{Admin, Connection, Project, Reply, Request, SOURCE, Server, signature, unix_time};

/// The largest body of a `signed-inbox` source.
const BODY_MAX: usize = 65_536;

fn answer(server: &Server, request: &[u8]) -> Reply {
    server.connect().exchange(request).expect("an answer")
}

/// Asserts the answer's status, and that nothing was stored.
fn check_refused(request: &Request, status: u16) -> Reply {
    let (_project, server) = started();
    let reply = answer(&server, &request.bytes());
    assert_eq!(reply.status, status, "{reply}");
    assert_nothing_stored(&server);
    reply
}

fn started() -> (Project, Server) {
    let project = Project::new();
    let server = project.serve();
    (project, server)
}

fn assert_nothing_stored(server: &Server) {
    assert_eq!(server.admin().events(), Vec::<serde_json::Value>::new());
}

fn code(reply: &Reply) -> String {
    assert_eq!(reply.header("content-type"), Some("application/problem+json"), "{reply}");
    reply.json()["code"].as_str().unwrap_or_else(|| panic!("no code in {reply}")).to_owned()
}

#[test]
fn an_unknown_source_is_404() {
    let reply = check_refused(&Request::signed("a", b"x").with_target("/in/nobody"), 404);
    assert!(!code(&reply).is_empty());
}

#[test]
fn a_path_that_is_no_intake_is_404() {
    for target in ["/", "/in", "/in/", "/in/conf/more", "/v1/events", "/inn/conf"] {
        check_refused(&Request::signed("a", b"x").with_target(target), 404);
    }
}

#[test]
fn the_admin_api_is_not_on_the_intake() {
    let (_project, server) = started();
    let reply = answer(&server, &Request::new("GET", "/v1/events", "localhost").bytes());
    assert!([404, 405].contains(&reply.status), "{reply}");
}

#[test]
fn another_method_than_post_is_405_with_allow() {
    for method in ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "post"] {
        let reply = check_refused(&Request::signed("a", b"x").with_method(method), 405);
        assert_eq!(reply.header("allow"), Some("POST"), "{method}: {reply}");
    }
}

#[test]
fn head_is_405_without_a_body() {
    let (_project, server) = started();
    let mut connection = server.connect();
    connection.send(&Request::new("HEAD", "/in/conf", "localhost").bytes()).expect("sent");
    let reply = connection.receive_head().expect("an answer").expect("an answer");
    assert_eq!((reply.status, reply.header("allow")), (405, Some("POST")));
    let next = connection.exchange(&Request::signed("a", b"x").bytes()).expect("an answer");
    assert_eq!(next.status, 202, "no byte of a body stands between the two answers");
}

#[test]
fn no_host_is_400() {
    check_refused(&Request::signed("a", b"x").without("Host"), 400);
}

#[test]
fn two_hosts_are_400() {
    check_refused(&Request::signed("a", b"x").with("Host", "localhost"), 400);
    check_refused(&Request::signed("a", b"x").with("Host", "elsewhere"), 400);
}

#[test]
fn a_missing_event_id_is_400() {
    check_refused(&Request::signed("a", b"x").without("X-Delivery-ID"), 400);
    check_refused(&Request::signed("", b"x"), 400);
}

#[test]
fn shapes_used_for_smuggling_are_refused() {
    let signed = Request::signed("a", b"abc");
    let shapes = [
        signed.clone().with("Content-Length", "4"),
        signed.clone().replacing("Content-Length", "+3"),
        signed.clone().replacing("Content-Length", "-3"),
        signed.clone().replacing("Content-Length", "0x3"),
        signed.clone().replacing("Content-Length", "3, 4"),
        signed.clone().replacing("Content-Length", "99999999999999999999"),
        signed.clone().without("Content-Length").with("Transfer-Encoding", "xchunked"),
        signed.clone().without("Content-Length").with("Transfer-Encoding", "chunked, identity"),
        signed.clone().with("X-Folded", "one\r\n two"),
        signed.clone().with("X-Nul", "a\0b"),
        signed.clone().with("X-Space ", "b"),
    ];
    for shape in &shapes {
        let (_project, server) = started();
        let mut connection = server.connect();
        connection.send(&shape.bytes()).expect("sent");
        connection.finish_sending().expect("sent");
        let reply = connection.receive().expect("an answer or an end");
        let shown = String::from_utf8_lossy(&shape.bytes()).into_owned();
        assert!(reply.as_ref().is_none_or(|reply| reply.status == 400), "{shown}\n{reply:?}");
        assert_nothing_stored(&server);
    }
}

#[test]
fn a_body_over_the_limit_is_413_before_it_is_sent() {
    for length in [BODY_MAX + 1, 10_000_000, 10_000_000_000] {
        let (_project, server) = started();
        let announced = Request::signed("a", b"").replacing("Content-Length", &length.to_string());
        let reply = answer(&server, &announced.head());
        assert_eq!(reply.status, 413, "{length} bytes: {reply}");
        assert_nothing_stored(&server);
    }
}

#[test]
fn a_client_that_asks_first_is_told_413_and_not_to_continue() {
    let (_project, server) = started();
    let request =
        Request::signed("a", b"").replacing("Content-Length", "65537").with("Expect", "100-continue");
    assert_eq!(answer(&server, &request.head()).status, 413);
}

#[test]
fn a_chunked_body_over_the_limit_is_413() {
    let (_project, server) = started();
    let mut connection = server.connect();
    // The server may answer and close before it has read everything.
    let sent = connection.send(&Request::signed("a", &vec![b'x'; BODY_MAX + 1]).chunked().bytes());
    let reply =
        connection.receive().expect("an answer").unwrap_or_else(|| panic!("no answer; sent: {sent:?}"));
    assert_eq!(reply.status, 413, "{reply}");
    assert_nothing_stored(&server);
}

#[test]
fn a_body_at_the_limit_is_stored() {
    let (_project, server) = started();
    let reply = answer(&server, &Request::signed("a", &vec![b'x'; BODY_MAX]).bytes());
    assert_eq!(reply.status, 202, "{reply}");
}

#[test]
fn a_head_over_the_limit_is_431() {
    check_refused(&Request::signed("a", b"x").with("X-Large", &"x".repeat(40_000)), 431);
}

#[test]
fn an_over_long_target_is_414_or_431() {
    let (_project, server) = started();
    let target = format!("/in/conf?{}", "x".repeat(40_000));
    let reply = answer(&server, &Request::signed("a", b"x").with_target(&target).bytes());
    assert!([414, 431].contains(&reply.status), "{reply}");
    assert_nothing_stored(&server);
}

#[test]
fn a_chunked_request_is_answered_and_its_connection_closed() {
    let (_project, server) = started();
    let mut connection = server.connect();
    let reply = connection.exchange(&Request::signed("a", b"hello").chunked().bytes()).expect("an answer");
    assert_eq!(reply.status, 202, "{reply}");
    assert!(reply.closes(), "{reply:?}");
    assert_eq!(connection.rest().expect("the end"), b"");
    assert_eq!(server.admin().body(SOURCE, "a").as_deref(), Ok(b"hello".as_slice()));
}

#[test]
fn a_refused_chunked_request_closes_its_connection_too() {
    let (_project, server) = started();
    let mut connection = server.connect();
    let request = Request::signed("a", b"hello").replacing("X-Signature", "v1=00").chunked();
    let reply = connection.exchange(&request.bytes()).expect("an answer");
    assert_eq!((reply.status, reply.closes()), (401, true), "{reply}");
    assert_eq!(connection.rest().expect("the end"), b"");
}

#[test]
fn a_length_beside_chunks_never_makes_a_second_request() {
    let (_project, server) = started();
    let mut connection = server.connect();
    let hidden = Request::signed("hidden", b"second").bytes();
    // By its length this is one request, by its chunks two; chunks decide, and nothing after them is read.
    let length = (b"5\r\nhello\r\n0\r\n\r\n".len() + hidden.len()).to_string();
    let request = Request::signed("a", b"hello").chunked().with("Content-Length", &length);
    connection.send(&[request.bytes(), hidden].concat()).expect("sent");
    let reply = connection.receive().expect("an answer or an end");
    if let Some(reply) = &reply {
        assert!([202, 400].contains(&reply.status), "{reply}");
        assert!(reply.closes(), "{reply:?}");
    }
    assert_eq!(connection.rest().expect("the end"), b"", "a second answer");
    let stored = server.admin().events();
    assert!(stored.iter().all(|event| event["provider_event_id"] != "hidden"), "{stored:?}");
}

#[test]
fn a_body_cut_short_is_not_stored() {
    let whole = Request::signed("a", b"hello world");
    let chunked = whole.clone().chunked();
    for cut in [whole.bytes(), chunked.bytes()] {
        let (_project, server) = started();
        let mut connection = server.connect();
        connection.send(&cut[..cut.len() - 7]).expect("sent");
        connection.finish_sending().expect("sent");
        let reply = connection.receive().expect("an answer or an end");
        assert!(reply.as_ref().is_none_or(|reply| reply.status == 400), "{reply:?}");
        assert_nothing_stored(&server);
        assert_eq!(answer(&server, &whole.bytes()).status, 202, "the identity is still free");
    }
}

#[test]
fn a_slow_head_is_408_or_closed_and_others_are_served() {
    let project = Project::new().limit("header_time", "\"300ms\"");
    let server = project.serve();
    let mut slow = server.connect();
    slow.send(b"POST /in/conf HTTP/1.1\r\nHost: localhost\r\nX-Del").expect("sent");
    assert_eq!(answer(&server, &Request::signed("meanwhile", b"x").bytes()).status, 202);
    assert_timed_out(&mut slow);
}

#[test]
fn a_connection_that_says_nothing_is_closed() {
    let project = Project::new().limit("header_time", "\"300ms\"");
    let server = project.serve();
    assert_timed_out(&mut server.connect());
}

/// The socket's own time limit, which is far above the server's, makes this fail if nothing comes.
fn assert_timed_out(connection: &mut Connection) {
    let reply = connection.receive().expect("408 or the end");
    assert!(reply.as_ref().is_none_or(|reply| reply.status == 408), "{reply:?}");
    assert_eq!(connection.rest().expect("the end"), b"");
}

#[test]
fn every_401_looks_the_same() {
    let project = Project::new().source("stripe", "stripe", "whsec_dGhpcyBpcyBhIHNlY3JldCBvZiB0aGUgdGVzdHM");
    let server = project.serve();
    assert_eq!(answer(&server, &Request::signed("known", b"x").bytes()).status, 202);

    let now = unix_time();
    let other_key = signature(b"another secret of the tests", now, "a", b"x");
    let stripe = Request::signed("a", b"{\"id\":\"evt_1\"}").with_target("/in/stripe");
    let refused = [
        Request::signed("a", b"x").without("X-Signature"),
        Request::signed("a", b"x").replacing("X-Signature", "v1=00"),
        Request::signed("a", b"x").replacing("X-Signature", &format!("v1={}", "0".repeat(64))),
        Request::signed_at(now, "a", b"x").replacing("X-Signature", &other_key),
        Request::signed("a", b"x").with_body(b"y"),
        Request::signed("known", b"x").with_body(b"y"),
        Request::signed_at(now - 4000, "a", b"x"),
        Request::signed_at(now + 4000, "a", b"x"),
        Request::signed_at(now - 4000, "a", b"x").replacing("X-Signature", "v1=00"),
        stripe.clone(),
        stripe.clone().with("Stripe-Signature", &format!("t={now},v1={}", "0".repeat(64))),
        stripe.clone().with("Stripe-Signature", &format!("t={},v1={}", now - 4000, "0".repeat(64))),
        stripe.with("Stripe-Signature", "nonsense"),
    ];
    let mut bodies = Vec::new();
    for request in &refused {
        let reply = answer(&server, &request.bytes());
        assert_eq!(reply.status, 401, "{reply} to {}", String::from_utf8_lossy(&request.head()));
        bodies.push(String::from_utf8(reply.body).expect("text"));
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "{bodies:#?}");
    assert_eq!(server.admin().events().len(), 1, "only the good one");
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let (_project, server) = started();
    let mut connection = server.connect();
    let requests = [
        Request::signed("a", b"one"),
        Request::signed("a", b"one"),
        Request::signed("a", b"two"),
        Request::signed("b", b"two"),
        Request::signed("c", b"x").replacing("X-Signature", "v1=00"),
        Request::signed("d", b"last"),
    ];
    let together: Vec<u8> = requests.iter().flat_map(Request::bytes).collect();
    connection.send(&together).expect("sent");
    for status in [202, 200, 409, 202, 401, 202] {
        let reply = connection.receive().expect("an answer").expect("an answer");
        assert_eq!(reply.status, status, "{reply}");
    }
}

#[test]
fn a_refusal_keeps_the_connection() {
    let (_project, server) = started();
    let mut connection = server.connect();
    let mut send = |request: Request| connection.exchange(&request.bytes()).expect("an answer");
    assert_eq!(send(Request::signed("a", b"x").replacing("X-Signature", "v1=00")).status, 401);
    assert_eq!(send(Request::signed("a", b"x").replacing("X-Timestamp", "01")).status, 400);
    assert_eq!(send(Request::signed("a", b"x").with_target("/in/nobody")).status, 404);
    assert_eq!(send(Request::signed("a", b"x").with_method("PUT")).status, 405);
    assert_eq!(send(Request::signed("a", b"")).status, 400);
    assert_eq!(send(Request::signed("a", b"x")).status, 202);
    assert_eq!(send(Request::signed("a", b"y")).status, 409);
    assert_eq!(send(Request::signed("a", b"x")).status, 200);
}

#[test]
fn what_was_sent_is_what_is_stored() {
    let (_project, server) = started();
    let body: Vec<u8> = (0..=255).chain(*b"\r\n\r\n0\r\n\r\n").collect();
    let gzip = Request::signed("a", &body).with("Content-Encoding", "gzip").with("Content-Type", "text/html");
    assert_eq!(answer(&server, &gzip.bytes()).status, 202);
    let mut admin: Admin = server.admin();
    assert_eq!(admin.body(SOURCE, "a").as_ref(), Ok(&body));
    let events = admin.events();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["source"], SOURCE);
    assert_eq!(events[0]["provider_event_id"], "a");
    assert_eq!(events[0]["bytes"], body.len());
}
