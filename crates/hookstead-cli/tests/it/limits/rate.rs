//! A source that may send only so much.

use super::besieged::Besieged;
use crate::harness::{Project, Reply, Request, wait_until};

/// So few that the test uses them up, also if it takes half a minute; and another one comes back within a second.
const RATE: &str = "\"100/m\"";

fn send(besieged: &Besieged, request: &Request) -> Reply {
    besieged.server.connect().exchange(&request.bytes()).expect("an answer")
}

#[test]
fn a_source_over_its_rate_is_429_with_retry_after_and_takes_again() {
    let project =
        Project::new().source_key("rate", RATE).source("other", "signed-inbox", crate::harness::SECRET);
    let besieged = Besieged::start(project);
    let request = Request::signed("a", b"x");
    // On one connection, so that all of them are there at once.
    let mut connection = besieged.connected(&request.bytes().repeat(150));
    let mut receive = || connection.receive().expect("an answer").expect("an answer before the end");
    let replies: Vec<Reply> = (0..150).map(|_| receive()).collect();
    let refused: Vec<&Reply> = replies.iter().filter(|reply| reply.status == 429).collect();
    let taken = replies.iter().filter(|reply| [200, 202].contains(&reply.status)).count();
    assert_eq!(taken + refused.len(), replies.len());
    // One was taken at the start.
    assert!(taken >= 99, "{taken} were taken");
    let reply = refused.first().expect("some are over the rate");
    assert_eq!(
        (reply.header("retry-after"), reply.json()["code"].as_str()),
        (Some("1"), Some("rate")),
        "{reply}"
    );
    assert!(!reply.closes(), "the connection goes on");
    let other = Request::signed("a", b"x").with_target("/in/other");
    assert_eq!(send(&besieged, &other).status, 202, "another source is not affected");
    wait_until(|| send(&besieged, &request).status == 200, || "nothing is taken any more".to_owned());
}

#[test]
fn a_body_over_the_rate_is_refused_before_it_is_sent() {
    let besieged = Besieged::start(Project::new().source_key("rate", "\"2/h\""));
    assert_eq!(send(&besieged, &Request::signed("a", b"x")).status, 202);
    let asking = Request::signed("b", b"x").with("Expect", "100-continue").head();
    let reply = besieged.server.connect().exchange(&asking).expect("an answer");
    assert_eq!(reply.status, 429, "{reply}");
    let wait: u32 =
        reply.header("retry-after").and_then(|value| value.parse().ok()).expect("a number of seconds");
    assert!((1700..=1800).contains(&wait), "{wait}");
}

#[test]
fn strangers_do_not_use_up_what_a_source_may_send() {
    let besieged = Besieged::start(Project::new().source_key("rate", "\"3/h\""));
    let forged = Request::signed("a", b"x").replacing("X-Signature", "v1=00");
    for _ in 0..50 {
        assert_eq!(send(&besieged, &forged).status, 401);
    }
    // One was taken at the start.
    assert_eq!(send(&besieged, &Request::signed("b", b"x")).status, 202);
    assert_eq!(send(&besieged, &Request::signed("c", b"x")).status, 202);
    assert_eq!(send(&besieged, &Request::signed("d", b"x")).status, 429);
}
