//! SIGKILL at random moments of a process that consumes with effects: an effect and its `done` are both there or both
//! absent. The process is this test binary, started again to run [`a_ledger_is_kept`] alone.

use std::collections::BTreeSet;
use std::io::{BufReader, Read, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hookstead::core::{DeliveryFilter, Order, Page, RetryPolicy, StateName};
use hookstead::store::OpenOptions;
use hookstead::{Inbox, settle_with};
use rusqlite::Connection;

use crate::stores::{patient, recorded};

/// Names the folder of the database, for the process that is killed.
const CHILD: &str = "HOOKSTEAD_EFFECTS_CHILD";

/// How many kills there are; a normal run makes [`ROUNDS`].
const COUNT: &str = "HOOKSTEAD_EFFECTS_KILLS";

const ROUNDS: u64 = 30;

/// How many of the child's marks are waited for before it is killed, at the most.
const MARKS_MAX: u64 = 60;

/// Where the child is: bytes that the test harness does not print.
const RECORDED: u8 = 1;
const HANDLED: u8 = 2;
const BEGUN: u8 = 3;
const ENDED: u8 = 4;
const MARKS: [u8; 4] = [RECORDED, HANDLED, BEGUN, ENDED];

/// How many events a child records that nobody kills.
const EVENTS: usize = 20;

/// The consumer fails this attempt of every fourth event, to be in all states when it is killed.
const FAILED_ATTEMPT: u32 = 1;

#[tokio::test]
async fn a_ledger_is_kept() {
    match std::env::var_os(CHILD) {
        Some(folder) => keep_ledger(Path::new(&folder), usize::MAX).await,
        None => {
            let folder = tempfile::tempdir().unwrap();
            keep_ledger(folder.path(), EVENTS).await;
            let (done, entries) = compared(folder.path());
            assert_eq!((done.len(), entries), (EVENTS, EVENTS), "every event once");
        }
    }
}

/// Records events and consumes them with an effect until `count` are done, and says on stdout with a byte each where it
/// is.
async fn keep_ledger(folder: &Path, count: usize) {
    let inbox = Inbox::builder().store(url(folder)).open_options(options()).limits(patient());
    let inbox = inbox.source(recorded("shop")).open().unwrap();
    let retry =
        RetryPolicy { schedule_s: vec![0], attempts_max: 1_000, age_max_s: 86_400, jitter_percent: 0 };
    let consumer =
        inbox.consume("ledger").retry(retry).timeout(Duration::from_secs(1)).run(|event| async move {
            let key = event.event().id.to_string();
            let fails = event.event().id.as_bytes()[15] % 4 == 0 && event.attempt() == FAILED_ATTEMPT;
            mark(HANDLED);
            Ok::<_, String>(settle_with(move |tx| {
                tx.execute("CREATE TABLE IF NOT EXISTS app_ledger (event TEXT)", ())?;
                mark(BEGUN);
                // No key: were an effect there twice, it would be seen.
                tx.execute("INSERT INTO app_ledger VALUES (?1)", [&key])?;
                mark(ENDED);
                if fails { Err("not yet".into()) } else { Ok(()) }
            }))
        });
    let consumer = consumer.await.unwrap();
    let run = std::process::id();
    for number in 0..count {
        inbox.record("shop", format!("{run}-{number}"), "{}").await.unwrap();
        mark(RECORDED);
    }
    while done(&inbox).len() < count {
        tokio::task::yield_now().await;
    }
    consumer.stop(Duration::from_secs(5)).await;
    tokio::task::spawn_blocking(move || inbox.close()).await.unwrap().unwrap();
}

/// Tells the parent, if there is one that listens.
fn mark(what: u8) {
    if std::env::var_os(CHILD).is_some() {
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(&[what]).unwrap();
        stdout.flush().unwrap();
    }
}

fn url(folder: &Path) -> String {
    format!("sqlite:{}", folder.join("inbox.db").display())
}

/// A small log, so that it is reset and checkpointed often; patience with a busy machine.
fn options() -> OpenOptions {
    OpenOptions {
        wal_bytes_max: 1024 * 1024,
        effect_time_max: Duration::from_secs(20),
        busy_timeout: Duration::from_secs(20),
        ..OpenOptions::default()
    }
}

#[test]
fn effect_and_done_are_both_there_or_both_absent_after_every_kill() {
    let rounds = std::env::var(COUNT).map_or(ROUNDS, |count| count.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let mut before = BTreeSet::new();
    let (mut entered, mut between) = (0, 0);
    for round in 0..rounds {
        let last = kill_after(start(folder.path()), 1 + pseudo_random(round) % MARKS_MAX);
        let (done, entries) = compared(folder.path());
        assert!(done.is_superset(&before), "round {round}: what was done is not done any more");
        between += u64::from([BEGUN, ENDED].contains(&last));
        (before, entered) = (done, entries);
    }
    assert!(between > 0, "no kill struck an effect");
    assert!(entered > 0 && before.len() == entered, "{entered} effects of {} events", before.len());
    eprintln!(
        "{rounds} kills, {between} of them seen within an effect; {entered} effects, each with its done"
    );
}

fn start(folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["effects::kills::a_ledger_is_kept", "--exact", "--nocapture"])
        .env(CHILD, folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Kills it after so many marks of its own; the last of them.
fn kill_after(mut child: Child, marks: u64) -> u8 {
    let marks = usize::try_from(marks).unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap()).bytes().map(Result::unwrap);
    let last = stdout.filter(|byte| MARKS.contains(byte)).take(marks).last();
    child.kill().unwrap();
    child.wait().unwrap();
    last.expect("the child does not end by itself")
}

/// Numbers without a pattern that a round could fall in step with.
fn pseudo_random(seed: u64) -> u64 {
    let mixed = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33
}

/// The events that are done and the number of effects, after the two were found to be the same.
fn compared(folder: &Path) -> (BTreeSet<String>, usize) {
    let inbox = Inbox::builder().store(url(folder)).open_options(options()).open().unwrap();
    let done = done(&inbox);
    inbox.close().unwrap();
    drop(inbox);
    let reader = Connection::open(folder.join("inbox.db")).unwrap();
    let made = "SELECT count(*) FROM sqlite_schema WHERE name = 'app_ledger'";
    let made: i64 = reader.query_row(made, [], |row| row.get(0)).unwrap();
    let entries: Vec<String> = if made == 0 {
        Vec::new()
    } else {
        let mut statement = reader.prepare("SELECT event FROM app_ledger").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let count = entries.len();
    let entered: BTreeSet<String> = entries.into_iter().collect();
    assert_eq!(entered.len(), count, "an effect is there twice");
    assert_eq!(entered, done, "effects and what is done");
    (done, count)
}

fn done(inbox: &Inbox) -> BTreeSet<String> {
    let filter = DeliveryFilter { state: Some(StateName::Done), ..DeliveryFilter::default() };
    let mut page = Page::first(1_000, Order::OldestFirst);
    let mut all = BTreeSet::new();
    loop {
        let list = inbox.store().list_deliveries(&filter, &page).unwrap();
        all.extend(list.items.iter().map(|delivery| delivery.id.event.to_string()));
        match list.next {
            Some(cursor) if list.more => page = page.after(cursor),
            _ => return all,
        }
    }
}
