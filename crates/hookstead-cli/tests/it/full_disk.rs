//! A full disk: a tmpfs of a few megabytes below the store of the real binary. While it is full every event is
//! refused; when there is room again events are taken without a restart; what was acknowledged is there, also after
//! SIGKILL.

use std::time::{Duration, Instant};

use crate::harness::{
    Connection, Events, Evidence, Losses, Project, Reply, Request, SOURCE, Server, StoreKind, Tmpfs,
};

/// Room for the log of SQLite, which is written to its full size of 16 MiB, for as much in the database, and some more.
const MEBIBYTES: usize = 64;

/// How many events come before the disk is full.
const EVENTS: usize = 40;

/// By then one must have been refused: the log has room for some hundreds of these events, for which it asks for no
/// space that it does not have.
const TAKEN_WHEN_FULL_MAX: usize = 2_000;

/// Of each event from the full disk on. All have one length: after an event that found no room the server tries a small
/// write and is ready again if that fits, so that a shorter event could be taken.
const FULL_BODY_BYTES: usize = 32 * 1024;

/// How many more come after the first that was refused.
const REFUSED: usize = 80;

/// The server tries four times a second whether it can commit again.
const RECOVERY_MAX: Duration = Duration::from_secs(10);

#[test]
fn a_full_tmpfs_is_told_and_passes_on_sqlite() {
    check(StoreKind::Sqlite, "full-disk", "0 B");
}

#[test]
fn a_full_tmpfs_is_told_and_passes_on_files() {
    check(StoreKind::Files, "full-disk", "0 B");
}

#[test]
fn with_a_reserve_a_full_tmpfs_is_told_and_passes() {
    for store in StoreKind::ALL {
        check(store, "full-disk-reserve", "2 MiB");
    }
}

fn check(store: StoreKind, name: &'static str, min_free: &str) {
    let disk = Tmpfs::mount(MEBIBYTES);
    let mut evidence = Evidence::begin(name, store);
    let project =
        Project::new().on(store).store_in(disk.path()).store_key("min_free", &format!("\"{min_free}\""));
    let server = project.serve_under(disk.enter());
    let mut sender = Sender { address: server.intake().to_owned(), connection: server.connect() };
    let mut acknowledged = Events::new();
    for number in 0..EVENTS {
        assert_eq!(sender.send(number, &mut acknowledged).status, 202, "event {number}, with room");
    }

    disk.fill();
    let first = first_refused(&server, &mut sender, &mut acknowledged);
    let taken = acknowledged.len() - EVENTS;
    let refused = first..first + REFUSED;
    let is_refused = |number: usize| sender.is_refused(number, &mut acknowledged);
    assert!(refused.clone().all(is_refused), "a full disk took an event after the first that it refused");
    assert!(is_full(&server), "a full disk is not ready");
    let (id, body) = acknowledged.first_key_value().expect("events were acknowledged");
    assert_eq!(server.admin().body(SOURCE, id).as_ref(), Ok(body), "reads go on");

    disk.relieve();
    let recovery = recovery(refused.end, &mut sender, &mut acknowledged);
    for number in refused.clone() {
        let reply = sender.send(number, &mut acknowledged);
        assert_eq!(reply.status, 202, "event {number}, when there is room again");
    }
    server.kill9();

    let losses = look_again(&project, &disk, &acknowledged);
    evidence.count("acknowledged", acknowledged.len());
    evidence.count("taken_when_full", taken);
    evidence.count("refused", refused.len());
    evidence.count("checked", losses.checked);
    evidence.count("lost", losses.faults.len());
    evidence.time("recovery_ms", recovery);
    evidence.finish(disk.path());
    losses.judge();
}

/// Sends to a server whose disk was filled until it is seen to be full: the number of the first event that is refused.
fn first_refused(server: &Server, sender: &mut Sender, acknowledged: &mut Events) -> usize {
    (EVENTS..EVENTS + TAKEN_WHEN_FULL_MAX)
        .find(|number| sender.is_refused(*number, acknowledged) && is_full(server))
        .unwrap_or_else(|| panic!("a full disk took {TAKEN_WHEN_FULL_MAX} events"))
}

/// Not ready even after an event was refused: the room does not suffice for a write of the server's own any more.
fn is_full(server: &Server) -> bool {
    server.admin().get("/readyz").status == 503
}

/// Sends an event again and again until it is taken: how long that was.
fn recovery(number: usize, sender: &mut Sender, acknowledged: &mut Events) -> Duration {
    let relieved = Instant::now();
    while sender.is_refused(number, acknowledged) {
        assert!(relieved.elapsed() < RECOVERY_MAX, "still refused {RECOVERY_MAX:?} after there was room");
    }
    relieved.elapsed()
}

/// What is there after a restart: nothing but what was acknowledged.
fn look_again(project: &Project, disk: &Tmpfs, acknowledged: &Events) -> Losses {
    let server = project.serve_under(disk.enter());
    let mut losses = Losses::default();
    losses.look(&server, acknowledged);
    assert_eq!(server.admin().events().len(), acknowledged.len(), "nothing but what was acknowledged");
    server.kill9();
    losses
}

/// One connection, opened again when the server has closed it.
struct Sender {
    address: String,
    connection: Connection,
}

impl Sender {
    /// While there is room the body has a length of its own for each event, from 4 to 64 KiB.
    fn send(&mut self, number: usize, acknowledged: &mut Events) -> Reply {
        let id = format!("event-{number}");
        let length = if number < EVENTS { 4_096 + number * 7_919 % 60_000 } else { FULL_BODY_BYTES };
        let body: Vec<u8> = format!("{number} ").bytes().cycle().take(length).collect();
        let reply = self.connection.exchange(&Request::signed(&id, &body).bytes()).expect("an answer");
        if reply.closes() {
            self.connection = Connection::open(&self.address).expect("the intake accepts connections");
        }
        if reply.status == 202 {
            acknowledged.insert(id, body);
        }
        reply
    }

    /// Whether the event is refused as it must be; anything but that and 202 fails the test.
    fn is_refused(&mut self, number: usize, acknowledged: &mut Events) -> bool {
        let reply = self.send(number, acknowledged);
        let refused = reply.status == 503 && reply.header("retry-after").is_some();
        assert!(refused || reply.status == 202, "event {number} on a full disk: {reply}");
        refused
    }
}
