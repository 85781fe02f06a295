//! Heads that are too long, in every direction.

use hookstead_server::limits::HEADER_FIELDS_MAX;

use super::besieged::{Besieged, CROWD, last_answer};
use crate::harness::{Project, Request};

/// A request with so many fields, most of them small.
fn with_fields(count: usize) -> Vec<u8> {
    let mut request = Request::signed("a", b"x");
    for number in fields(&request.bytes())..count {
        request = request.with(&format!("X-{number}"), "1");
    }
    let bytes = request.bytes();
    assert_eq!(fields(&bytes), count);
    bytes
}

/// How many fields the head of a request has.
fn fields(request: &[u8]) -> usize {
    let text = String::from_utf8_lossy(request);
    text.lines().skip(1).take_while(|line| !line.is_empty()).count()
}

#[test]
fn as_many_header_fields_as_the_limit_pass_and_one_more_is_431() {
    let project = Project::new();
    let server = project.serve();
    for (count, status) in [(HEADER_FIELDS_MAX, 202), (HEADER_FIELDS_MAX + 1, 431)] {
        let reply = server.connect().exchange(&with_fields(count)).expect("an answer");
        assert_eq!(reply.status, status, "{count} fields: {reply}");
    }
}

#[test]
fn a_flood_of_header_fields_is_431_and_its_connections_come_back() {
    let besieged = Besieged::start(Project::new().limit("header_time", "\"10m\""));
    let crowd = besieged.crowd(&with_fields(HEADER_FIELDS_MAX + 10));
    besieged.assert_serves("meanwhile");
    for connection in crowd {
        assert_eq!(last_answer(connection).status, 431);
    }
    besieged.assert_recovered(3);
}

#[test]
fn heads_without_end_are_431_and_their_connections_come_back() {
    let besieged = Besieged::start(Project::new().limit("header_time", "\"10m\""));
    let mut crowd = besieged.crowd(b"POST /in/conf HTTP/1.1\r\nHost: localhost\r\n");
    let field = format!("X-More: {}\r\n", "x".repeat(1000)).into_bytes();
    for connection in &mut crowd {
        // 64 KiB are four times the limit; a server that goes on reading would take all of it.
        let sent = (0..64).take_while(|_| connection.send(&field).is_ok()).count();
        assert!(sent >= 16, "cut off after {sent} KiB");
    }
    besieged.assert_serves("meanwhile");
    for connection in crowd {
        assert_eq!(last_answer(connection).status, 431);
    }
    besieged.assert_recovered(3);
}

#[test]
fn a_long_address_is_414_and_its_connections_come_back() {
    let besieged = Besieged::start(Project::new().limit("header_time", "\"10m\""));
    let with_query =
        |query: &str| Request::signed("a", b"x").with_target(&format!("/in/conf?{query}")).bytes();
    for round in 0..CROWD {
        // Within the head's limit, and over the address's.
        let mut connection = besieged.connected(&with_query(&"x".repeat(10_000)));
        let reply = connection.receive().expect("an answer").expect("an answer");
        assert_eq!((reply.status, reply.closes()), (414, false), "round {round}: {reply}");
        let next = connection.exchange(&Request::signed("a", b"x").with_target("/in/nobody").bytes());
        assert_eq!(next.expect("an answer").status, 404, "the connection goes on");
    }
    besieged.assert_serves("meanwhile");
    let parameters = "a=1&".repeat(100_000);
    for connection in besieged.crowd(&with_query(&parameters)) {
        let reply = last_answer(connection);
        assert!([414, 431].contains(&reply.status), "{reply}");
    }
    besieged.assert_recovered(3);
}
