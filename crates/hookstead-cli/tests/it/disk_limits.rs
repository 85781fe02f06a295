//! A disk that takes nothing any more for another reason than that it is full: a file may not grow, or there are
//! no file handles left; and one that cannot read an old body. On both stores of the real binary.

use std::process::Command;

use crate::harness::{
    Connection, Disk, Fault, Kind, Project, Request, SOURCE, Server, StoreKind, wait_until,
};

/// A limit of a file's size, or a quota. SQLite says nothing more than that a write failed, so that its store stops; a
/// folder of records takes it back and goes on when there is room.
#[test]
fn a_file_that_may_not_grow_kills_nobody_and_loses_nothing() {
    for store in StoreKind::ALL {
        let project = Project::new().on(store).server("failstop_linger", "\"10s\"");
        let mut server = project.serve();
        assert_eq!(send(&server, "kept"), 202);
        limit(&server, "fsize", "1:");
        let mut connection = server.connect();
        for id in ["refused", "refused again"] {
            let reply = connection.exchange(&Request::signed(id, &body(id)).bytes()).expect("an answer");
            assert_eq!(reply.status, 503, "{store:?} {id}: {reply}");
            if reply.closes() {
                connection = server.connect();
            }
        }
        if store == StoreKind::Files {
            limit(&server, "fsize", "unlimited:");
            wait_until(|| send(&server, "refused") < 300, || "still refused with room".to_owned());
            server.kill9();
        } else {
            assert_eq!(server.wait_for_end().code(), Some(70));
        }
        let server = project.serve();
        assert_eq!(send(&server, "kept"), 200, "{store:?}");
        let expected = if store == StoreKind::Files { 200 } else { 202 };
        assert_eq!(send(&server, "refused"), expected, "{store:?}");
        assert_eq!(server.admin().events().len(), 2, "{store:?}");
    }
}

/// The limit is there from the start, and too low for a new store.
#[test]
fn a_start_under_a_limit_of_file_size_says_why_it_is_refused() {
    let project = Project::new();
    let mut under = Command::new("prlimit");
    under.arg("--fsize=8192");
    match project.try_serve_under(under) {
        Err(ended) => {
            assert_eq!(ended.status.code(), Some(1), "{ended:?}");
            assert!(ended.said.contains("error["), "{ended:?}");
        }
        Ok(_) => panic!("a store of SQLite's fits into one page"),
    }
}

/// A request on a connection that is open already.
#[test]
fn without_file_handles_an_event_is_stored_or_refused_and_taken_again_when_there_are_some() {
    for store in StoreKind::ALL {
        let project = Project::new().on(store);
        let server = project.serve();
        let mut connection = server.connect();
        let mut exchange = |id: &str| {
            let reply = connection.exchange(&Request::signed(id, &body(id)).bytes()).expect("an answer");
            if reply.closes() {
                connection = server.connect();
            }
            reply.status
        };
        assert_eq!(exchange("kept"), 202);
        limit(&server, "nofile", "3:");
        let without = exchange("later");
        limit(&server, "nofile", "1024:");
        assert!([202, 503].contains(&without), "{store:?}: {without}");
        wait_until(|| send(&server, "later") < 300, || "still refused with handles".to_owned());
        server.kill9();
        let server = project.serve();
        assert_eq!([send(&server, "kept"), send(&server, "later")], [200, 200], "{store:?}");
        assert_eq!(server.admin().events().len(), 2, "{store:?}");
        server.kill9();
        let check = project.run(&["store", "check"]);
        assert_eq!(check.exit_code, Some(0), "{store:?}: nothing half is left: {check:?}");
    }
}

#[test]
fn a_body_that_cannot_be_read_is_an_error_of_its_own_and_harms_no_other() {
    for store in StoreKind::ALL {
        let disk = Disk::build();
        let project = Project::new().on(store);
        let server = project.serve();
        // Several, none of them read before: the one read that fails may be one that the server makes beside.
        let ids: Vec<String> = (0..12).map(|number| format!("old-{number}")).collect();
        ids.iter().for_each(|id| assert_eq!(send(&server, id), 202));
        server.kill9();
        let server = project.serve_under(disk.below(project.data()));
        let mut admin = server.admin();
        let failed = ids.iter().find_map(|id| {
            disk.fail(Kind::Read, Fault::Broken, 1, 1);
            admin.body(SOURCE, id).err().map(|answer| (id, answer))
        });
        let (id, answer) = failed.unwrap_or_else(|| panic!("{store:?}: no body was read from the disk"));
        assert!(answer.contains("50"), "{store:?}: {answer}");
        assert_eq!(send(&server, "new"), 202, "{store:?}: accepts go on");
        disk.heal();
        for each in &ids {
            assert_eq!(
                admin.body(SOURCE, each).as_deref(),
                Ok(&body(each)[..]),
                "{store:?}: {each}, after {id}"
            );
        }
    }
}

fn body(id: &str) -> Vec<u8> {
    format!("the body of {id} ").repeat(3_000).into_bytes()
}

/// The status of the answer, on a connection of its own: a refusal may close it.
fn send(server: &Server, id: &str) -> u16 {
    let mut connection: Connection = server.connect();
    let reply = connection.exchange(&Request::signed(id, &body(id)).bytes()).expect("an answer");
    assert!(reply.status != 503 || reply.header("retry-after").is_some(), "{id}: {reply}");
    reply.status
}

/// Sets a limit of the running process; the value ends with `:`, so that it can be raised again.
fn limit(server: &Server, name: &str, value: &str) {
    let (pid, set) = (server.pid().to_string(), format!("--{name}={value}"));
    let status = Command::new("prlimit").args(["--pid", &pid, &set]).status().expect("prlimit starts");
    assert!(status.success(), "prlimit {set}");
}
