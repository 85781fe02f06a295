//! Rules S1 to S10 of the contract: recording an event through the library.

use std::thread;
use std::time::Duration;

use bytes::Bytes;
use hookstead::core::{
    Body, BodySelector, Digest, EventFilter, EventSelector, Order, Page, RawHeaders, RawQuery,
};
use hookstead::store::OpenOptions;
use hookstead::{Health, Inbox, Outcome, RecordError, RecordOptions, Unavailable};

use crate::stores::{on_disk, on_every_store, patient, recorded};

fn rows(inbox: &Inbox) -> usize {
    inbox
        .store()
        .list_events(&EventFilter::default(), &Page::first(1000, Order::OldestFirst))
        .unwrap()
        .items
        .len()
}

fn kept(inbox: &Inbox) -> Bytes {
    let event = inbox.store().event(&EventSelector::Newest).unwrap().unwrap();
    match inbox.store().body(BodySelector::Event(event.id)).unwrap().unwrap() {
        Body::Kept(body) => body,
        Body::Erased => panic!("the body is gone"),
    }
}

#[test]
fn s1_a_recorded_event_survives_closing_and_reopening() {
    let folder = tempfile::tempdir().unwrap();
    for url in on_disk(folder.path()) {
        let open = || Inbox::builder().store(url.clone()).source(recorded("reports")).open().unwrap();
        let first = open();
        let receipt = first.blocking().record("reports", "evt_1", &b"\x00\xffbody"[..]).unwrap();
        first.close().unwrap();
        drop(first);

        let again = open();
        let event = again.store().event(&EventSelector::Id(receipt.event)).unwrap().unwrap();
        assert_eq!((event.source.as_str(), event.identity.id.as_bytes()), ("reports", &b"evt_1"[..]));
        assert_eq!(kept(&again), &b"\x00\xffbody"[..]);
        let retry = again.blocking().record("reports", "evt_1", &b"\x00\xffbody"[..]).unwrap();
        assert_eq!((retry.outcome, retry.event), (Outcome::Duplicate, receipt.event));
    }
}

#[test]
fn s2_a_retry_is_a_duplicate_and_one_row() {
    on_every_store(|builder| {
        let inbox = builder.source(recorded("reports")).open().unwrap();
        let record = || inbox.blocking().record("reports", "evt_1", "body").unwrap().outcome;
        assert_eq!([record(), record(), record()], [Outcome::Stored, Outcome::Duplicate, Outcome::Duplicate]);
        assert_eq!(rows(&inbox), 1);
    });
}

#[test]
fn s3_and_s8_other_bytes_conflict_and_the_original_stays() {
    on_every_store(|builder| {
        let inbox = builder.source(recorded("reports")).open().unwrap().clone();
        let record = |body: &'static str| inbox.blocking().record("reports", "evt_1", body).unwrap().outcome;
        assert_eq!(record(r#"{"a":1}"#), Outcome::Stored);
        assert_eq!(record(r#"{ "a": 1 }"#), Outcome::Conflict { variant: Some(1) });
        assert_eq!(kept(&inbox), r#"{"a":1}"#);
        assert_eq!(record(r#"{"a":1}"#), Outcome::Duplicate);
    });
}

#[test]
fn b049_what_is_recorded_may_bring_its_head_and_type() {
    on_every_store(|builder| {
        let inbox = builder.source(recorded("reports")).open().unwrap();
        let query = RawQuery::new(b"data.id=ORD01ABC&token=secret").unwrap();
        let fields: [(&str, &[u8]); 2] = [("content-type", b"text/plain"), ("authorization", b"secret")];
        let headers = RawHeaders::from_request(Some(query), fields);
        let options = RecordOptions { headers, event_type: Some("report.ready".to_owned()) };
        let receipt = inbox.blocking().record_with("reports", "evt_1", "{}", options).unwrap();
        assert_eq!(receipt.outcome, Outcome::Stored);
        let event = inbox.store().event(&EventSelector::Newest).unwrap().unwrap();
        assert_eq!(event.event_type.as_deref(), Some("report.ready"));
        let kept = "?data.id=ORD01ABC\r\ncontent-type: text/plain\r\n";
        assert_eq!(event.headers.as_block(), kept.as_bytes());
    });
}

#[test]
fn s4_one_id_under_two_sources_is_two_events() {
    on_every_store(|builder| {
        let inbox = builder.source(recorded("reports")).source(recorded("billing")).open().unwrap();
        for source in ["reports", "billing"] {
            assert_eq!(inbox.blocking().record(source, "1", "body").unwrap().outcome, Outcome::Stored);
        }
        assert_eq!(rows(&inbox), 2);
    });
}

#[test]
fn s5_simultaneous_retries_store_one_event() {
    on_every_store(|builder| {
        let inbox = builder.source(recorded("reports")).open().unwrap();
        let record = || inbox.blocking().record("reports", "evt_1", "body").unwrap().outcome;
        let outcomes: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..12).map(|_| scope.spawn(record)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(outcomes.iter().filter(|outcome| **outcome == Outcome::Stored).count(), 1);
        assert_eq!(outcomes.iter().filter(|outcome| **outcome == Outcome::Duplicate).count(), 11);
        assert_eq!(rows(&inbox), 1);
    });
}

#[test]
fn s6_a_held_lock_is_an_error_after_a_while_and_never_a_false_success() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("inbox.db");
    let options = OpenOptions { busy_timeout: Duration::from_millis(50), ..OpenOptions::default() };
    let inbox = Inbox::builder()
        .store(format!("sqlite:{}", path.display()))
        .open_options(options)
        .source(recorded("reports"))
        .open()
        .unwrap();
    let record = || inbox.blocking().record("reports", "evt_1", "body");
    let stranger = rusqlite::Connection::open(&path).unwrap();
    stranger.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(matches!(record(), Err(RecordError::Unavailable(Unavailable::Recovering(_)))));
    assert_eq!(rows(&inbox), 0);
    stranger.execute_batch("ROLLBACK").unwrap();

    let mut health = inbox.health();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(health.wait_for(|health| *health == Health::Ready)).unwrap();
    assert_eq!(record().unwrap().outcome, Outcome::Stored);
}

#[test]
fn s7_invalid_input_is_refused_and_leaves_the_store_empty() {
    on_every_store(|builder| {
        let inbox = builder.source(recorded("reports")).open().unwrap();
        let record = |source: &str, id: &[u8]| inbox.blocking().record(source, id, "body");
        for source in ["", "Reports", "other", "reports ", "../reports"] {
            assert!(matches!(record(source, b"evt_1"), Err(RecordError::UnknownSource(_))), "{source}");
        }
        for id in [&b""[..], b" ", b"\t\r\n", &[b'x'; 9000]] {
            assert!(matches!(record("reports", id), Err(RecordError::Identity(_))), "{}", id.escape_ascii());
        }
        assert_eq!(rows(&inbox), 0);
    });
}

#[test]
fn s9_the_digest_of_the_payload_is_kept() {
    on_every_store(|builder| {
        let inbox = builder.source(recorded("reports")).open().unwrap();
        let receipt = inbox.blocking().record("reports", "evt_1", "body").unwrap();
        assert_eq!(receipt.digest, Digest::of(b"body"));
        assert_eq!(inbox.store().event(&EventSelector::Newest).unwrap().unwrap().digest, receipt.digest);
    });
}

#[test]
fn an_empty_payload_is_an_event() {
    on_every_store(|builder| {
        let inbox = builder.source(recorded("reports")).open().unwrap();
        assert_eq!(inbox.blocking().record("reports", "evt_1", "").unwrap().outcome, Outcome::Stored);
        assert_eq!(kept(&inbox), "");
    });
}

#[tokio::test]
async fn a_dropped_future_does_not_take_the_event_back() {
    let inbox = Inbox::builder().limits(patient()).source(recorded("reports")).open().unwrap();
    {
        let mut recording = Box::pin(inbox.record("reports", "evt_1", "body"));
        let polled = std::future::poll_fn(|context| std::task::Poll::Ready(recording.as_mut().poll(context)));
        drop(polled.await);
    }
    let retry = inbox.record("reports", "evt_1", "body").await.unwrap();
    assert_eq!(retry.outcome, Outcome::Duplicate);
}

#[test]
fn two_sources_of_one_name_are_refused() {
    let opened = Inbox::builder().source(recorded("reports")).source(recorded("reports")).open();
    assert!(matches!(opened, Err(hookstead::OpenError::SourceTwice(name)) if name == "reports"));
}
