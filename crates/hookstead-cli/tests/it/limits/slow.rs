//! Clients that take their time.

use std::io::ErrorKind::{BrokenPipe, ConnectionReset};

use super::besieged::Besieged;
use crate::harness::{Connection, Project, Request};

/// Clients that read nothing: fewer, since each of them has as many answers waiting as the kernel holds.
const DEAF: usize = 20;

#[test]
fn heads_that_stop_are_cut_and_their_connections_come_back() {
    let besieged = Besieged::start(Project::new().limit("header_time", "\"2s\""));
    for begun in [b"".as_slice(), b"POST /in/conf HTTP/1.1\r\nHost: localhost\r\nX-Del"] {
        let crowd = besieged.crowd(begun);
        for mut connection in crowd {
            let reply = connection.receive().expect("408 or the end");
            assert!(reply.as_ref().is_none_or(|reply| reply.status == 408), "{reply:?}");
            assert_eq!(connection.rest().expect("the end"), b"");
        }
    }
    besieged.assert_recovered(2);
}

#[test]
fn idle_connections_are_closed_after_their_time() {
    let besieged = Besieged::start(Project::new().limit("idle_time", "\"300ms\""));
    let mut crowd = besieged.crowd(&Request::signed("a", b"x").with_target("/in/nobody").bytes());
    for connection in &mut crowd {
        assert_eq!(connection.receive().expect("an answer").expect("an answer").status, 404);
    }
    for mut connection in crowd {
        assert_eq!(connection.rest().expect("the end"), b"");
    }
    besieged.assert_recovered(2);
}

#[test]
fn clients_that_do_not_read_their_answers_are_cut() {
    let besieged = Besieged::start(Project::new().limit("write_time", "\"300ms\""));
    let requests = Request::signed("a", b"x").with_method("PUT").bytes().repeat(200);
    let address = besieged.server.intake();
    std::thread::scope(|scope| {
        let deaf = || {
            let mut connection = Connection::open(address).expect("a connection");
            // Far more answers than the sockets hold: at some point the server has to give up.
            let error = loop {
                match connection.send(&requests) {
                    Ok(()) => {}
                    Err(error) => break error,
                }
            };
            assert!(matches!(error.kind(), ConnectionReset | BrokenPipe), "{error}");
        };
        let threads: Vec<_> = (0..DEAF).map(|_| scope.spawn(deaf)).collect();
        besieged.assert_serves("meanwhile");
        for thread in threads {
            thread.join().expect("a client was cut");
        }
    });
    besieged.assert_recovered(3);
}

/// What a time limit must never do: cut those who are only slow.
#[test]
fn a_slow_body_within_its_time_is_stored() {
    let besieged =
        Besieged::start(Project::new().limit("header_time", "\"2s\"").limit("body_time", "\"20s\""));
    let whole = Request::signed("slow", b"0123456789").bytes();
    let (most, last) = whole.split_at(whole.len() - 1);
    let mut slow = besieged.connected(most);
    // Longer than a head may take, as the end of another connection shows.
    let mut silent = besieged.server.connect();
    assert_eq!(silent.rest().expect("the end"), b"");
    assert_eq!(slow.exchange(last).expect("an answer").status, 202);
    drop(slow);
    besieged.assert_recovered(3);
}
