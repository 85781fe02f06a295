//! Clients behind a proxy: who they are, how many requests they may have in flight, and for which host they ask.

use super::besieged::{Besieged, last_answer};
use crate::harness::{Connection, Project, Request};

/// A server whose only proxy is this machine.
fn behind_a_proxy() -> Project {
    Project::new().server("trusted_proxies", "[\"127.0.0.1\", \"10.0.0.0/8\"]")
}

/// From whom an event with this id came, by the server's word.
fn received_from(besieged: &Besieged, id: &str, headers: &[(&str, &str)]) -> String {
    let request =
        headers.iter().fold(Request::signed(id, b"x"), |request, (name, value)| request.with(name, value));
    let reply = besieged.server.connect().exchange(&request.bytes()).expect("an answer");
    assert_eq!(reply.status, 202, "{reply}");
    let event = besieged.server.admin().get(&format!("/v1/events/conf:{id}")).json();
    event["received_from"].as_str().unwrap_or_else(|| panic!("no address in {event}")).to_owned()
}

#[test]
fn the_client_that_a_trusted_proxy_names_stands_on_the_event() {
    let besieged = Besieged::start(behind_a_proxy());
    let check = |id: &str, lines: &[&str], expected: &str| {
        let headers: Vec<_> = lines.iter().map(|line| ("X-Forwarded-For", *line)).collect();
        assert_eq!(received_from(&besieged, id, &headers), expected, "{lines:?}");
    };
    check("one", &["203.0.113.9"], "203.0.113.9");
    check("several", &["198.51.100.1, 203.0.113.9, 10.1.2.3"], "203.0.113.9");
    check("lines", &["198.51.100.1", "203.0.113.9", "10.1.2.3"], "203.0.113.9");
    check("v6", &["2001:db8::7"], "2001:db8::7");
    check("none", &[], "127.0.0.1");
    check("unknown", &["unknown"], "127.0.0.1");
    assert_eq!(received_from(&besieged, "other", &[("Forwarded", "for=203.0.113.9")]), "127.0.0.1");
}

#[test]
fn the_standard_header_is_read_where_it_is_configured() {
    let besieged = Besieged::start(behind_a_proxy().server("proxy_header", "\"forwarded\""));
    let headers = [("Forwarded", "for=198.51.100.1, for=\"[2001:db8::7]:4711\";proto=https")];
    assert_eq!(received_from(&besieged, "a", &headers), "2001:db8::7");
    assert_eq!(received_from(&besieged, "b", &[("X-Forwarded-For", "203.0.113.9")]), "127.0.0.1");
}

#[test]
fn who_is_no_trusted_proxy_is_not_believed() {
    for project in [Project::new(), Project::new().server("trusted_proxies", "[\"10.0.0.0/8\"]")] {
        let besieged = Besieged::start(project);
        let headers = [("X-Forwarded-For", "203.0.113.9"), ("Forwarded", "for=203.0.113.9")];
        assert_eq!(received_from(&besieged, "a", &headers), "127.0.0.1");
    }
}

#[test]
fn a_client_behind_a_proxy_has_only_so_many_requests_in_flight() {
    let project = behind_a_proxy().limit("connections_per_address", "5").limit("body_time", "\"10m\"");
    let besieged = Besieged::start(project);
    let of = |client: &str, id: &str| Request::signed(id, b"0123456789").with("X-Forwarded-For", client);
    let asking = of("203.0.113.9", "held").with("Expect", "100-continue").head();
    let mut held: Vec<Connection> = (0..5).map(|_| besieged.connected(&asking)).collect();
    for connection in &mut held {
        assert_eq!(connection.receive().expect("an answer").expect("an answer").status, 100);
    }
    let send = |client: &str, id: &str| {
        besieged.server.connect().exchange(&of(client, id).bytes()).expect("an answer")
    };
    let refused = send("203.0.113.9", "refused");
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")), "{refused}");
    assert_eq!(send("203.0.113.10", "other").status, 202, "another client");
    besieged.assert_serves("from-the-proxy-itself");
    assert_eq!(held[0].exchange(b"0123456789").expect("an answer").status, 202);
    assert_eq!(send("203.0.113.9", "next").status, 202, "the place of the first one is free");
    drop(held);
    besieged.assert_recovered(6);
}

#[test]
fn a_request_for_another_host_is_421() {
    let project = Project::new().server("public_url", "\"https://hooks.example.com\"");
    let besieged = Besieged::start(project.server("intake_hosts", "[\"hooks\"]"));
    let to = |host: &str| Request::signed("a", b"x").replacing("Host", host);
    for host in ["evil.example", "hooks.example.com.evil.example", "10.0.0.1", "example.com", ""] {
        let reply = besieged.server.connect().exchange(&to(host).bytes()).expect("an answer");
        assert_eq!((reply.status, reply.json()["code"].as_str()), (421, Some("host-not-allowed")), "{host}");
    }
    let elsewhere = to("hooks.example.com").with_target("http://evil.example/in/conf");
    assert_eq!(besieged.server.connect().exchange(&elsewhere.bytes()).expect("an answer").status, 421);
    let old = b"POST /in/conf HTTP/1.0\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(last_answer(besieged.connected(old)).status, 421);
    for (number, host) in
        ["hooks.example.com", "HOOKS.example.com:443", "hooks", "localhost", "127.0.0.1:4665"]
            .into_iter()
            .enumerate()
    {
        let reply = besieged.server.connect().exchange(&to(host).bytes()).expect("an answer");
        assert_eq!(reply.status, if number == 0 { 202 } else { 200 }, "{host}: {reply}");
    }
    // Whoever asks whether the server is ready calls it by its address.
    let ready = Request::new("GET", "/readyz", "10.0.0.1:4665");
    assert_eq!(besieged.server.connect().exchange(&ready.bytes()).expect("an answer").status, 200);
    besieged.assert_recovered(3);
}
