//! More connections than there is room for.

use std::net::{SocketAddr, TcpStream, UdpSocket};

use super::besieged::{Besieged, last_answer};
use crate::harness::{Connection, Project, Request, descriptors_allowed, wait_until};

/// How many connections do nothing.
const IDLE: usize = 10_000;

/// Memory for each of them, in KiB: its task, its socket's state and a buffer for its first head.
const IDLE_KIB_MAX: u64 = 24;

#[test]
fn ten_thousand_idle_connections_leave_the_server_serving_and_come_back() {
    let count = IDLE.min(descriptors_allowed());
    let project = Project::new().limit("connections", "12000").limit("header_time", "\"10m\"");
    let besieged = Besieged::start(project);
    let first = memory_of_idle(&besieged, count, 1);
    assert!(first < IDLE_KIB_MAX * count as u64, "{first} KiB for {count} connections");
    // The allocator keeps what was freed, some of it for each thread; that it comes back shows when it is used again.
    // Kept connections would make three times as much of it.
    let waves = [2, 3].map(|wave| memory_of_idle(&besieged, count, wave));
    assert!(waves[1] < 2 * first, "{first} KiB, then {waves:?} KiB");
}

/// The memory that the process has more in the midst of so many connections; afterwards all of them are closed.
fn memory_of_idle(besieged: &Besieged, count: usize, wave: usize) -> u64 {
    let address: SocketAddr = besieged.server.intake().parse().expect("an address");
    let idle: Vec<TcpStream> =
        (0..count).map(|_| TcpStream::connect(address).expect("a connection")).collect();
    wait_until(
        || besieged.server.descriptors() >= besieged.descriptors + count,
        || format!("{} files are open", besieged.server.descriptors()),
    );
    for number in 0..50 {
        besieged.assert_serves(&format!("meanwhile-{wave}-{number}"));
    }
    let grown = besieged.server.memory_kib().saturating_sub(besieged.memory_kib);
    println!("{count} idle connections: {grown} KiB more");
    drop(idle);
    besieged.assert_closed();
    grown
}

#[test]
fn connections_over_all_places_are_503_with_retry_after_and_places_come_back() {
    let besieged = Besieged::start(Project::new().limit("connections", "20"));
    let request = Request::signed("a", b"x").with_target("/in/nobody").bytes();
    let mut held: Vec<Connection> = Vec::new();
    // One after the other: the place of the connection before is free a moment after its end was seen, and by then
    // the thread that it was on has answered one of these.
    for _ in 0..20 {
        let mut connection = besieged.server.connect();
        assert_eq!(connection.exchange(&request).expect("an answer").status, 404);
        held.push(connection);
    }
    for _ in 0..5 {
        let reply = last_answer(besieged.server.connect());
        assert_eq!((reply.status, reply.header("retry-after")), (503, Some("5")), "{reply}");
    }
    assert_eq!(held[0].exchange(&request).expect("an answer").status, 404, "who is in, stays in");
    drop(held);
    besieged.assert_recovered(2);
}

#[test]
fn an_address_has_only_so_many_connections_and_others_are_served() {
    let Some(own) = own_address() else {
        println!("skipped: this machine has no address but loopback, which is exempt");
        return;
    };
    let mut project = Project::new().limit("connections_per_address", "10");
    project.listen_at("0.0.0.0:0");
    let besieged = Besieged::start_at(project, "127.0.0.1");
    let port = besieged.server.intake().rsplit(':').next().expect("a port").to_owned();
    let connect = || Connection::open(&format!("{own}:{port}")).expect("a connection");
    let request = Request::signed("a", b"x").with_target("/in/nobody").bytes();
    let mut held: Vec<Connection> = (0..10).map(|_| connect()).collect();
    for connection in &mut held {
        assert_eq!(connection.exchange(&request).expect("an answer").status, 404);
    }
    for _ in 0..5 {
        let reply = last_answer(connect());
        assert_eq!((reply.status, reply.header("retry-after")), (503, Some("5")), "{reply}");
    }
    besieged.assert_serves("from-another-address");
    drop(held);
    besieged.assert_freed();
    assert_eq!(connect().exchange(&request).expect("an answer").status, 404, "the places are free again");
}

#[test]
fn a_trusted_proxy_has_as_many_connections_as_it_needs() {
    let Some(own) = own_address() else {
        println!("skipped: this machine has no address but loopback, which is exempt");
        return;
    };
    let trusted = format!("[\"{own}\"]");
    let mut project =
        Project::new().limit("connections_per_address", "10").server("trusted_proxies", &trusted);
    project.listen_at("0.0.0.0:0");
    let besieged = Besieged::start_at(project, "127.0.0.1");
    let port = besieged.server.intake().rsplit(':').next().expect("a port").to_owned();
    let request = Request::signed("a", b"x").with_target("/in/nobody").bytes();
    let mut held: Vec<Connection> =
        (0..30).map(|_| Connection::open(&format!("{own}:{port}")).expect("a connection")).collect();
    for connection in &mut held {
        assert_eq!(connection.exchange(&request).expect("an answer").status, 404);
    }
}

/// An address of this machine that is not loopback: that from which it would call another one. Nothing is sent.
fn own_address() -> Option<String> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.200:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback() && !address.is_unspecified()).then(|| address.to_string())
}
