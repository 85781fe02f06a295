//! The run: a rate that the disk can take, then the same on a disk that is so slow that it cannot take a tenth, then
//! on a fast one again. Each answer is 202 in bounded time or 503 with `Retry-After`; every 202 is true, also after
//! SIGKILL; memory stays bounded; soon after the disk is fast again nothing is refused for a while, and little after that.
//!
//! `HOOKSTEAD_OVERLOAD_SECONDS` says how long the disk is slow, `HOOKSTEAD_OVERLOAD_RATE` how many events come each
//! second. `cargo xtask overload` takes a release build, and more of both.

use std::fs;
use std::ops::Range;
use std::time::Duration;

use super::load::{self, Sent};
use super::phase::{HEADS, Phase};
use super::recovery::{CALM, Recovery};
use crate::harness::{
    Disk, Events, Evidence, Losses, Project, Request, Server, StoreKind, descriptors_allowed, size_from,
};

/// The tests of a debug build share the machine with one another; those of a release build have it to themselves.
const SHARED: bool = cfg!(debug_assertions);

/// How long a sync takes on the slow disk; on a fast one it is a few milliseconds. On a shared machine it is longer than
/// the four seconds that an event may wait for its commit, so that events are refused however few get through at all, and
/// shorter than the nine seconds in which the server answers.
const SYNC_TIME: Duration = Duration::from_secs(if SHARED { 5 } else { 2 });

/// How long the disk is fast before.
const BEFORE: Duration = Duration::from_secs(1);

/// How long it is fast afterwards: longer than the recovery may take.
const AFTER: Duration = Duration::from_secs(if SHARED { 6 } else { 4 });

/// A second in which nothing is refused begins by then, counted from when the disk is fast again.
const RECOVERY_MAX: Duration = Duration::from_secs(if SHARED { 5 } else { 2 });

/// The server answers within nine seconds of when it has a request; here its way there counts as well.
const ANSWER_MAX: Duration = Duration::from_secs(if SHARED { 20 } else { 10 });

/// Without more refusals than this in a hundred requests it was no overload. How many it is on a shared machine depends
/// on how many requests come through.
const REFUSED_PERCENT_MIN: usize = if SHARED { 0 } else { 25 };

/// Of what comes from that second on, so many in a hundred are refused at most. What else uses a shared machine's disk may
/// hold up a commit for some seconds.
const REFUSED_LATER_PERCENT_MAX: usize = if SHARED { 30 } else { 10 };
const _: () =
    assert!(RECOVERY_MAX.as_secs() + CALM.as_secs() <= AFTER.as_secs(), "it ends before the load does");

const RESIDENT_KIB_MAX: usize = 256 * 1024;

/// How many of the refused are sent again at the end.
const RETRIED_MAX: usize = 200;

#[test]
fn overload_on_a_slow_disk_is_refused_and_nothing_else_on_sqlite() {
    check_overload(StoreKind::Sqlite);
}

#[test]
fn overload_on_a_slow_disk_is_refused_and_nothing_else_on_files() {
    check_overload(StoreKind::Files);
}

fn check_overload(store: StoreKind) {
    let slow_for = Duration::from_secs(size_from("HOOKSTEAD_OVERLOAD_SECONDS", 7) as u64);
    let rate = size_from("HOOKSTEAD_OVERLOAD_RATE", if SHARED { 200 } else { 400 });
    descriptors_allowed();
    let mut evidence = Evidence::begin("overload", store);
    let project = Project::new().on(store);
    let disk = Disk::build();
    let server = project.serve_under(disk.below(project.data()));
    let slow = BEFORE..BEFORE + slow_for;
    let all = send_through(&server, rate, &disk, &slow);
    let resident_kib = resident_kib_max(&server);
    retry_refused(&server, &all);
    server.kill9();

    let end = slow.end + AFTER;
    let phases = [("fast", Duration::ZERO..slow.start), ("slow", slow.clone()), ("fast", slow.end..end)]
        .map(|(name, due)| Phase::of(name, &all, &due));
    let recovery = Recovery::of(&all, slow.end);
    let losses = look_at_accepted(&project, &all);
    println!("{}, {rate} requests a second, {SYNC_TIME:?} a sync while the disk is slow", store.name());
    println!("{HEADS}");
    phases.iter().for_each(|phase| println!("{phase}"));

    evidence.count("answers", all.len());
    note(&mut evidence, &phases);
    evidence.count("checked", losses.checked);
    evidence.count("lost", losses.faults.len());
    evidence.count("resident_kib_max", resident_kib);
    evidence.time("recovery_ms", recovery.after);
    evidence.finish(project.data());
    losses.judge();
    judge(&phases, &recovery, resident_kib, disk.slowed());
}

/// Sends through all three phases, and slows the disk in the second.
fn send_through(server: &Server, rate: usize, disk: &Disk, slow: &Range<Duration>) -> Vec<Sent> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(load::send(server.intake(), rate, |elapsed| {
        disk.slow_by(if slow.contains(&elapsed) { SYNC_TIME } else { Duration::ZERO });
        elapsed < slow.end + AFTER
    }))
}

/// The most memory that the server had at once.
fn resident_kib_max(server: &Server) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("it runs");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    peak.and_then(|peak| peak.trim().parse().ok()).expect("the kernel knows its memory")
}

/// Whoever was refused may come again: the event is new, or was stored after its answer. It is never a conflict.
fn retry_refused(server: &Server, all: &[Sent]) {
    let mut connection = server.connect();
    for sent in all.iter().filter(|sent| sent.status == 503).take(RETRIED_MAX) {
        let (id, body) = load::event(sent.number);
        let reply = connection.exchange(&Request::signed(&id, &body).bytes()).expect("an answer");
        assert!([200, 202].contains(&reply.status), "{id} was refused, and its retry got {reply}");
    }
}

fn look_at_accepted(project: &Project, all: &[Sent]) -> Losses {
    let accepted: Events =
        all.iter().filter(|sent| sent.status == 202).map(|sent| load::event(sent.number)).collect();
    let server = project.serve();
    let mut losses = Losses::default();
    losses.look(&server, &accepted);
    server.kill9();
    losses
}

fn note(evidence: &mut Evidence, phases: &[Phase; 3]) {
    let [before, slow, after] = phases;
    for (name, phase) in [("before", before), ("slow", slow), ("after", after)] {
        evidence.count(&format!("{name}_sent"), phase.sent);
        evidence.count(&format!("{name}_accepted"), phase.accepted());
        evidence.count(&format!("{name}_refused"), phase.refused());
        evidence.time(&format!("{name}_accepted_p99_ms"), phase.accepted_percentile(99));
        evidence.time(&format!("{name}_accepted_max_ms"), phase.accepted_percentile(100));
        evidence.time(&format!("{name}_refused_p99_ms"), phase.refused_percentile(99));
    }
}

fn judge(phases: &[Phase; 3], recovery: &Recovery, resident_kib: usize, slowed: i64) {
    for phase in phases {
        assert!(
            phase.others.is_empty(),
            "{}: neither 202 nor 503 with Retry-After: {:?}",
            phase.name,
            phase.others
        );
        let slowest = phase.accepted_percentile(100).max(phase.refused_percentile(100));
        assert!(slowest < ANSWER_MAX, "{}: an answer after {slowest:?}", phase.name);
    }
    let [before, slow, after] = phases;
    assert!(before.accepted() > 0 && slow.accepted() > 0 && after.accepted() > 0, "{phases:?}");
    // Without these two the run would not have been what it says.
    assert!(slowed > 0, "no sync was slowed");
    assert!(slow.refused() * 100 > slow.sent * REFUSED_PERCENT_MIN, "no overload: {slow}");
    let recovered = recovery.is_within(RECOVERY_MAX, REFUSED_LATER_PERCENT_MAX);
    assert!(recovered, "too much is refused for too long after the disk is fast again: {recovery:?}");
    assert!(resident_kib < RESIDENT_KIB_MAX, "{resident_kib} KiB resident");
}
