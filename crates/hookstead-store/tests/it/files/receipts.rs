//! Receipts of runs as files (contract R52 to R54), and the defects of the reference that must not come back.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hookstead_core::{Digest, RecordRun, RunOutcome, Store, StoreError, Write, Written};
use rustix::time::{ClockId, clock_gettime};

use super::backend::Dir;
use crate::backend::OPENED_AT;
use crate::case::cases;
use crate::scene::{accept, find, problems, register};

cases!("files::receipts":
    a_receipt_is_where_and_what_the_contract_says,
    d1_what_html_would_escape_is_known_again,
    d2_deep_nesting_costs_no_more_than_its_bytes,
    d3_a_receipt_that_lacks_a_field_is_damage,
    a_receipt_that_says_something_else_is_damage,
    a_payload_of_any_bytes_comes_back,
);

fn store() -> (Dir, Arc<dyn Store>) {
    let dir = Dir::new();
    let store = dir.open().store;
    register(&store);
    accept(&store, "delivery-1", b"one");
    (dir, store)
}

fn path(dir: &Dir, run: &str) -> PathBuf {
    let digest = Digest::of(format!("delivery-1\0{run}").as_bytes());
    dir.root().join(format!("sources/shop/processed/{digest}.json"))
}

fn run(store: &Arc<dyn Store>, run: &str, payload: &Bytes) -> Result<RunOutcome, StoreError> {
    let write = RecordRun {
        event: find(store, "delivery-1").id,
        run: run.parse().expect("a legal name"),
        business_id: Some("business-42".to_owned()),
        payload: Some(payload.clone()),
    };
    match store.apply(&[Write::RecordRun(Box::new(write))], OPENED_AT)?.remove(0) {
        Written::RunRecorded(outcome) => Ok(outcome),
        other => panic!("a run was answered {other:?}"),
    }
}

/// Records a run, and the same again before and after a start.
fn assert_known_again(payload: &Bytes) {
    let (dir, store) = store();
    let Ok(RunOutcome::New(first)) = run(&store, "r1", payload) else { panic!("the run is new") };
    assert_eq!(first.payload.as_ref(), Some(payload));
    assert_eq!(run(&store, "r1", payload).expect("it is known"), RunOutcome::Known(first.clone()));
    drop(store);
    let store = dir.open().store;
    assert_eq!(run(&store, "r1", payload).expect("it is known"), RunOutcome::Known(first.clone()));
    assert_eq!(store.runs(&first.event).expect("they can be read"), [first]);
    assert_eq!(problems(&store), [""; 0]);
}

fn a_receipt_is_where_and_what_the_contract_says() {
    let (dir, store) = store();
    run(&store, "r1", &Bytes::from_static(b"{\"n\":  1.50,\"n\":2}")).expect("it is recorded");
    let text = std::fs::read_to_string(path(&dir, "r1")).expect("it lies in `processed`");
    let expected = format!(
        "{{\n  \"schemaVersion\": 1,\n  \"deliveryId\": \"delivery-1\",\n  \"runId\": \"r1\",\n  \
         \"businessEventId\": \"business-42\",\n  \"bodySHA256\": \"{}\",\n  \
         \"processedAt\": \"2026-02-02T02:40:00Z\",\n  \"payload\": {{\"n\":  1.50,\"n\":2}},\n",
        Digest::of(b"one")
    );
    assert!(text.starts_with(&expected), "{text}");
}

fn d1_what_html_would_escape_is_known_again() {
    assert_known_again(&Bytes::from("\"<b>&amp;</b>\u{2028}\u{2029}\\u003c\"".to_owned()));
}

/// Milliseconds are enough; what grows faster than the bytes takes minutes.
const PROCESSOR_TIME_MAX: Duration = Duration::from_secs(5);

/// What this thread has had of a processor: on a busy machine no more than on an idle one.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("it counts from zero")
}

fn d2_deep_nesting_costs_no_more_than_its_bytes() {
    for depth in [9_000, 100_000] {
        let payload = Bytes::from("[".repeat(depth) + &"]".repeat(depth));
        let (dir, store) = store();
        let began = processor_time();
        assert!(matches!(run(&store, "r1", &payload), Ok(RunOutcome::New(_))));
        assert!(matches!(run(&store, "r1", &payload), Ok(RunOutcome::Known(_))));
        let bytes = std::fs::metadata(path(&dir, "r1")).expect("it is there").len();
        assert!(bytes < payload.len() as u64 + 1_000, "{bytes} bytes for {}", payload.len());
        let took = processor_time() - began;
        assert!(took < PROCESSOR_TIME_MAX, "{took:?}");
        drop(store);
        assert!(matches!(run(&dir.open().store, "r1", &payload), Ok(RunOutcome::Known(_))));
    }
}

/// Changes the receipt of a run; it must be refused, and left as it is.
fn assert_refused(what: &str, change: impl Fn(&str) -> String) {
    let (dir, store) = store();
    let payload = Bytes::from_static(b"{\"a\":1}");
    run(&store, "r1", &payload).expect("it is recorded");
    let good = std::fs::read_to_string(path(&dir, "r1")).expect("it is there");
    let bad = change(&good);
    assert_ne!(good, bad, "{what}");
    std::fs::write(path(&dir, "r1"), &bad).expect("it can be written");
    for reopen in [false, true] {
        let store = if reopen { dir.open().store } else { Arc::clone(&store) };
        let again = run(&store, "r1", &payload);
        assert!(matches!(again, Err(StoreError::Corrupt { .. })), "{what}: {again:?}");
        let read = store.runs(&find(&store, "delivery-1").id);
        assert!(matches!(read, Err(StoreError::Corrupt { .. })), "{what}: {read:?}");
        assert_eq!(problems(&store).len(), 1, "{what}");
        assert_eq!(std::fs::read_to_string(path(&dir, "r1")).expect("it is there"), bad, "{what}");
        store.close(OPENED_AT).expect("it closes");
    }
}

fn d3_a_receipt_that_lacks_a_field_is_damage() {
    assert_refused("{}", |_| "{}".to_owned());
    let fields =
        ["schemaVersion", "deliveryId", "runId", "businessEventId", "bodySHA256", "processedAt", "payload"];
    for field in fields {
        assert_refused(field, |good| good.replace(&format!("\"{field}\""), "\"other\""));
    }
}

fn a_receipt_that_says_something_else_is_damage() {
    for (from, to) in [
        ("\"schemaVersion\": 1", "\"schemaVersion\": 2"),
        ("delivery-1", "delivery-2"),
        ("\"runId\": \"r1\"", "\"runId\": \"r2\""),
        ("business-42", "business-43"),
        ("{\"a\":1}", "{\"a\":2}"),
        ("{\"a\":1}", "null"),
        ("\"bodySHA256\": \"", "\"bodySHA256\": \"0"),
    ] {
        assert_refused(to, |good| good.replacen(from, to, 1));
    }
    assert_refused("cut", |good| good[..good.len() - 2].to_owned());
    assert_refused("trailing", |good| format!("{good}{{}}"));
}

fn a_payload_of_any_bytes_comes_back() {
    for payload in [&b""[..], b"null", b" null", b"\xff\0", b"{\"a\":", b"1 2", b"\"\\ud800\"", b"1e999"] {
        assert_known_again(&Bytes::copy_from_slice(payload));
    }
}
