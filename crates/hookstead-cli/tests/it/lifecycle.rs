//! Starting and stopping, and who may look.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::harness::{Admin, Connection, Project, Request, SOURCE, send_signal};

#[test]
fn the_ready_line_says_where_everything_is() {
    let project = Project::new();
    let server = project.serve();
    let ready = server.ready();
    let data = project.data().to_str().expect("a path of text");
    assert_eq!(ready["data"], data);
    assert_eq!(ready["store"], format!("sqlite:{data}/hookstead.db"));
    assert!(fs::exists(format!("/proc/{}", server.pid())).expect("/proc is there"));
}

#[test]
fn both_listeners_say_that_they_are_ready() {
    let project = Project::new();
    let server = project.serve();
    for address in [server.intake(), server.admin_address()] {
        let mut connection = Connection::open(address).expect("a listener");
        let reply = connection.exchange(&Request::new("GET", "/readyz", address).bytes()).expect("an answer");
        assert_eq!(reply.status, 200, "{address}: {reply}");
    }
}

#[test]
fn sigterm_ends_with_exit_code_0_and_keeps_everything() {
    let project = Project::new();
    let server = project.serve();
    assert_eq!(send(&mut server.connect(), "a", b"x"), 202);
    assert_eq!(server.stop().code(), Some(0));
    let server = project.serve();
    assert_eq!(send(&mut server.connect(), "a", b"x"), 200);
    assert_eq!(server.admin().body(SOURCE, "a").as_deref(), Ok(b"x".as_slice()));
}

#[test]
fn sigterm_answers_what_is_in_flight() {
    let project = Project::new();
    let mut server = project.serve();
    let mut connection = server.connect();
    let bytes = Request::signed("a", b"in flight").with("Expect", "100-continue").bytes();
    let (head, body) = bytes.split_at(bytes.len() - b"in flight".len());
    // The server asks for the body, so it has the request in hand when it is told to stop.
    assert_eq!(connection.exchange(head).expect("an answer").status, 100);
    send_signal("TERM", server.pid());
    let reply = connection.exchange(body).expect("an answer");
    assert!([202, 503].contains(&reply.status), "{reply}");
    assert_eq!(server.wait_for_end().code(), Some(0));
    drop(server);

    let expected = if reply.status == 202 { 200 } else { 202 };
    assert_eq!(send(&mut project.serve().connect(), "a", b"in flight"), expected);
}

#[test]
fn a_second_server_on_the_same_store_is_refused() {
    let project = Project::new();
    let server = project.serve();
    let second = project.run(&["serve", "--json"]);
    assert_eq!(second.exit_code, Some(1), "{second:?}");
    assert!(second.stderr.contains(&server.pid().to_string()), "names the process that has it: {second:?}");
    assert_eq!(send(&mut server.connect(), "a", b"x"), 202, "the first one goes on");
}

#[test]
fn after_a_kill_the_next_server_starts() {
    let project = Project::new();
    for round in 0..3 {
        let server = project.serve();
        let status = send(&mut server.connect(), "a", b"x");
        assert_eq!(status, if round == 0 { 202 } else { 200 });
        server.kill9();
    }
}

#[test]
fn the_admin_listener_wants_the_token() {
    let project = Project::new();
    let server = project.serve();
    assert_eq!(server.admin().get("/v1/events").status, 200);
    for token in ["", "wrong", "Bearer"] {
        let reply = Admin::new(server.admin_address(), token).get("/v1/events");
        assert_eq!(reply.status, 401, "{token:?}: {reply}");
    }
    let mut connection = Connection::open(server.admin_address()).expect("a listener");
    let bare = Request::new("GET", "/v1/events", server.admin_address());
    assert_eq!(connection.exchange(&bare.bytes()).expect("an answer").status, 401);
}

#[test]
fn only_the_owner_can_read_the_data() {
    let project = Project::new();
    let server = project.serve();
    assert_eq!(send(&mut server.connect(), "a", b"x"), 202);
    for file in ["admin.token", "hookstead.db", "hookstead.db-wal"] {
        let mode = fs::metadata(project.data().join(file)).expect(file).permissions().mode();
        assert_eq!(mode & 0o077, 0, "{file} has mode {mode:o}");
    }
}

#[test]
fn the_store_is_found_whole_by_its_own_check() {
    let project = Project::new();
    let server = project.serve();
    for number in 0..20 {
        assert_eq!(send(&mut server.connect(), &format!("e{number}"), &[number; 3000]), 202);
    }
    server.kill9();
    let check = project.run(&["store", "check"]);
    assert_eq!(check.exit_code, Some(0), "{check:?}");
}

fn send(connection: &mut Connection, id: &str, body: &[u8]) -> u16 {
    connection.exchange(&Request::signed(id, body).bytes()).expect("an answer").status
}
