//! Bodies that are too long, and bodies that never come.

use super::besieged::{Besieged, CROWD, last_answer};
use crate::harness::{Project, Request};

/// The largest body of a `signed-inbox` source.
const BODY_MAX: usize = 65_536;

#[test]
fn bodies_over_the_limit_are_413_and_their_connections_come_back() {
    let besieged = Besieged::start(Project::new());
    let large = vec![b'x'; BODY_MAX + 1];
    let announced = Request::signed("a", b"").replacing("Content-Length", "10000000000").head();
    for request in
        [Request::signed("a", &large).bytes(), Request::signed("a", &large).chunked().bytes(), announced]
    {
        let crowd = besieged.crowd(&request);
        for connection in crowd {
            connection.end_sending();
            assert_eq!(last_answer(connection).status, 413);
        }
    }
    besieged.assert_recovered(2);
}

/// Three waves, each of which would fill two thirds of the memory for bodies: what one of them kept, the next one
/// would lack.
#[test]
fn bodies_that_stop_are_408_and_their_memory_comes_back() {
    let budget = format!("\"{} KiB\"", CROWD * 64 * 3 / 2);
    let limits = Project::new().limit("body_time", "\"300ms\"").limit("body", "\"64 KiB\"");
    let besieged = Besieged::start(limits.limit("body_memory", &budget));
    let whole = Request::signed("half", &[b'x'; BODY_MAX]).bytes();
    for wave in 0..3 {
        let crowd = besieged.crowd(&whole[..whole.len() - 100]);
        besieged.assert_serves(&format!("meanwhile-{wave}"));
        for connection in crowd {
            assert_eq!(last_answer(connection).status, 408, "wave {wave}");
        }
    }
    besieged.assert_recovered(5);
}

/// Who had to wait for a body that may take ten minutes would be late.
#[test]
fn bodies_that_stop_keep_nobody_waiting() {
    let besieged = Besieged::start(Project::new().limit("body_time", "\"10m\""));
    let whole = Request::signed("half", &[b'x'; BODY_MAX]).bytes();
    let crowd = besieged.crowd(&whole[..whole.len() - 100]);
    besieged.assert_serves("meanwhile");
    drop(crowd);
    besieged.assert_recovered(3);
}

#[test]
fn clients_that_ask_first_and_send_nothing_are_408() {
    let besieged = Besieged::start(Project::new().limit("body_time", "\"300ms\""));
    let mut crowd = besieged.crowd(&Request::signed("a", b"x").with("Expect", "100-continue").head());
    for connection in &mut crowd {
        let interim = connection.receive().expect("an answer").expect("an answer");
        assert_eq!(interim.status, 100, "{interim}");
    }
    besieged.assert_serves("meanwhile");
    for connection in crowd {
        assert_eq!(last_answer(connection).status, 408);
    }
    besieged.assert_recovered(3);
}

#[test]
fn more_bodies_than_memory_are_503_with_retry_after() {
    let project = Project::new().limit("body", "\"64 KiB\"").limit("body_memory", "\"640 KiB\"");
    let besieged = Besieged::start(project);
    let whole = Request::signed("half", &[b'x'; BODY_MAX]).bytes();
    let crowd = besieged.crowd(&whole[..whole.len() - 100]);
    let mut refused = 0;
    for mut connection in crowd {
        // What was not refused waits for its last bytes, and gets an answer to them.
        drop(connection.send(&whole[whole.len() - 100..]));
        let reply = connection.receive().expect("an answer").expect("an answer");
        match reply.status {
            503 => {
                assert_eq!(reply.header("retry-after"), Some("1"));
                refused += 1;
            }
            status => assert!([202, 200].contains(&status), "{reply}"),
        }
    }
    assert!(refused >= CROWD / 2, "{refused} of {CROWD} were refused");
    besieged.assert_recovered(3);
}
