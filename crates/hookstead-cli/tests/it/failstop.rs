//! Fail-stop from end to end: after one failed sync the running server never says success again, shows why, and
//! ends by itself with exit code 70.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::harness::{Project, Request, Server, StoreKind};

#[test]
fn after_a_failed_sync_sqlite_says_no_success_again_and_ends_with_70() {
    check_fail_stop(StoreKind::Sqlite);
}

#[test]
fn after_a_failed_sync_files_say_no_success_again_and_end_with_70() {
    check_fail_stop(StoreKind::Files);
}

fn check_fail_stop(store: StoreKind) {
    let project = Project::new().on(store).server("failstop_linger", "\"2s\"");
    let mut server = project.serve();
    let mut intake = server.connect();
    let accepted = Request::signed("kept", b"body").bytes();
    assert_eq!(intake.exchange(&accepted).expect("an answer").status, 202);

    let mut strace = fail_every_sync_of(&server);
    for request in [Request::signed("failing", b"body").bytes(), accepted] {
        let reply = server.connect().exchange(&request).expect("an answer");
        assert_eq!(reply.status, 503, "{reply}");
        assert!(reply.header("retry-after").is_some(), "{reply}");
    }
    let ready = Request::new("GET", "/readyz", server.intake()).bytes();
    assert_eq!(server.connect().exchange(&ready).expect("an answer").status, 503);
    assert_eq!(server.admin().get("/readyz").status, 503);
    assert_eq!(server.admin().body("conf", "kept").expect("reads go on"), b"body");
    assert_eq!(server.wait_for_end().code(), Some(70));
    strace.wait().expect("strace ends with the process");

    let server = project.serve();
    assert_eq!(
        server.connect().exchange(&Request::signed("kept", b"body").bytes()).expect("an answer").status,
        200
    );
}

/// Attaches strace to the running server, so that from now on every sync fails as a broken disk's does.
fn fail_every_sync_of(server: &Server) -> Child {
    let mut strace = Command::new("strace")
        .args(["-f", "-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:error=EIO", "-p"])
        .arg(server.pid().to_string())
        .stderr(Stdio::piped())
        .spawn()
        .expect("strace starts; if it is missing, run `cargo xtask setup`");
    let mut said = BufReader::new(strace.stderr.take().expect("stderr is a pipe")).lines();
    let attached = said.find(|line| line.as_ref().is_ok_and(|line| line.contains("attached")));
    assert!(attached.is_some(), "strace cannot attach to the server");
    // It must go on reading, or strace would block on a full pipe.
    std::thread::spawn(move || said.for_each(drop));
    strace
}
