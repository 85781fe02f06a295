//! What HTTP/1.1 allows and few clients do: older versions, half-closed sockets, and clients that are suddenly gone.

use super::besieged::{Besieged, CROWD, last_answer};
use crate::harness::{Connection, Project, Request, SOURCE, wait_until};

/// A request in the older version, which knows neither `Host` nor connections that stay.
fn old(id: &str) -> Vec<u8> {
    let bytes = Request::signed(id, b"x").without("Host").bytes();
    let line = b"POST /in/conf HTTP/1.1";
    [b"POST /in/conf HTTP/1.0".as_slice(), &bytes[line.len()..]].concat()
}

#[test]
fn http_1_0_is_answered_and_its_connection_closed() {
    let besieged = Besieged::start(Project::new());
    assert_eq!(last_answer(besieged.connected(&old("a"))).status, 202);
    assert_eq!(last_answer(besieged.connected(&old("a"))).status, 200);
    // Chunks came with 1.1: in 1.0 nobody can say where such a body ends.
    let mut chunked = Request::signed("b", b"x").chunked().bytes();
    chunked[b"POST /in/conf HTTP/1.".len()] = b'0';
    assert_eq!(last_answer(besieged.connected(&chunked)).status, 400);
    besieged.assert_recovered(3);
}

#[test]
fn a_client_that_closed_its_side_gets_its_answer() {
    let besieged = Besieged::start(Project::new());
    let crowd = besieged.crowd(&Request::signed("a", b"x").bytes());
    for (number, connection) in crowd.into_iter().enumerate() {
        connection.end_sending();
        let status = last_answer(connection).status;
        assert!([200, 202].contains(&status), "{number}: {status}");
    }
    besieged.assert_recovered(3);
}

#[test]
fn clients_that_vanish_before_the_end_of_their_body_leave_nothing() {
    let besieged = Besieged::start(Project::new());
    let whole = Request::signed("a", &[b'x'; 60_000]).bytes();
    let asking = Request::signed("a", b"x").with("Expect", "100-continue").head();
    for cut in [&whole[..200], &whole[..40_000], &whole[..whole.len() - 1], &asking] {
        drop(besieged.crowd(cut));
    }
    besieged.assert_recovered(2);
    let reply = besieged.server.connect().exchange(&whole).expect("an answer");
    assert_eq!(reply.status, 202, "the identity is still free: {reply}");
}

#[test]
fn clients_that_vanish_after_their_request_have_their_event() {
    let besieged = Besieged::start(Project::new());
    let id = |number: usize| format!("gone-{number}");
    for number in 0..CROWD {
        drop(besieged.connected(&Request::signed(&id(number), b"x").bytes()));
    }
    let mut admin = besieged.server.admin();
    for number in 0..CROWD {
        wait_until(|| admin.body(SOURCE, &id(number)).is_ok(), || format!("{} is not stored", id(number)));
        let again = besieged.server.connect().exchange(&Request::signed(&id(number), b"x").bytes());
        assert_eq!(again.expect("an answer").status, 200, "its retry is a duplicate");
    }
    drop(admin);
    besieged.assert_recovered(CROWD + 2);
}

/// The answer is on its way, and its reader resets the connection.
#[test]
fn clients_that_vanish_after_the_commit_change_nothing() {
    let besieged = Besieged::start(Project::new());
    let mut crowd = besieged.crowd(&Request::signed("a", b"x").bytes());
    for connection in &mut crowd {
        // An unread answer makes the end a reset.
        wait_until(|| connection.has_an_answer(), || "no answer".to_owned());
    }
    crowd.into_iter().for_each(drop::<Connection>);
    besieged.assert_recovered(3);
    let again = besieged.server.connect().exchange(&Request::signed("a", b"x").bytes()).expect("an answer");
    assert_eq!(again.status, 200);
}

#[test]
fn a_long_pipeline_is_answered_to_its_end() {
    let besieged = Besieged::start(Project::new());
    let requests: Vec<u8> =
        (0..CROWD).flat_map(|number| Request::signed(&format!("p-{number}"), b"x").bytes()).collect();
    let mut connection = besieged.connected(&requests);
    for number in 0..CROWD {
        let reply = connection.receive().expect("an answer").expect("an answer");
        assert_eq!(reply.status, 202, "{number}: {reply}");
    }
    drop(connection);
    besieged.assert_recovered(CROWD + 2);
}
