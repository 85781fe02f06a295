//! Rules R50 to R55 of the contract: processing runs and their receipts.

use hookstead::core::{EventSelector, RunOutcome, RunReceipt};
use hookstead::verify::{Registry, Secret};
use hookstead::{Inbox, InboxBuilder, Outcome, ReplayError, Source, SourceOptions};

use crate::stores::{on_every_store, recorded};

const REPORT: &str = r#"{"eventId":"business-42","data":{"n": 1.50, "html":"<&>"}}"#;

/// A source whose provider has a processor.
fn processed() -> Source {
    let provider = Registry::builtin().get("signed-inbox").unwrap().clone();
    let secret = Secret::new("0123456789abcdef").unwrap();
    Source::new("conf".parse().unwrap(), provider, &[secret], SourceOptions::default()).unwrap()
}

fn open(builder: InboxBuilder) -> Inbox {
    builder.source(processed()).source(recorded("reports")).open().unwrap()
}

fn record(inbox: &Inbox, source: &str, id: &str, body: &str) -> EventSelector {
    let receipt = inbox.blocking().record(source, id, body.to_owned()).unwrap();
    assert_eq!(receipt.outcome, Outcome::Stored);
    EventSelector::Id(receipt.event)
}

fn replay(inbox: &Inbox, event: &EventSelector, run: &str) -> Result<RunOutcome, ReplayError> {
    inbox.blocking().replay(event, &run.parse().unwrap())
}

fn new(outcome: RunOutcome) -> RunReceipt {
    match outcome {
        RunOutcome::New(receipt) => receipt,
        other => panic!("not new: {other:?}"),
    }
}

#[test]
fn r50_only_accepted_events_are_replayed() {
    on_every_store(|builder| {
        let inbox = open(builder);
        let missing = replay(&inbox, &EventSelector::Newest, "run-1");
        assert!(matches!(missing, Err(ReplayError::UnknownEvent)));
    });
}

#[test]
fn r51_a_body_that_the_processor_cannot_read_leaves_no_receipt() {
    on_every_store(|builder| {
        let inbox = open(builder);
        for (number, body) in
            ["not json", "[]", r#"{"eventId":"","data":1}"#, r#"{"eventId":"a"}"#].iter().enumerate()
        {
            let event = record(&inbox, "conf", &format!("delivery-{number}"), body);
            assert!(matches!(replay(&inbox, &event, "run-1"), Err(ReplayError::Unreadable(_))), "{body}");
            let id = inbox.store().event(&event).unwrap().unwrap().id;
            assert_eq!(inbox.store().runs(&id).unwrap(), []);
        }
    });
}

#[test]
fn r52_the_receipt_holds_the_bytes_of_data() {
    on_every_store(|builder| {
        let inbox = open(builder);
        let event = record(&inbox, "conf", "delivery-1", REPORT);
        let receipt = new(replay(&inbox, &event, "run-1").unwrap());
        assert_eq!(receipt.business_id.as_deref(), Some("business-42"));
        assert_eq!(receipt.payload.as_deref(), Some(&br#"{"n": 1.50, "html":"<&>"}"#[..]));
        assert_eq!(receipt.digest, inbox.store().event(&event).unwrap().unwrap().digest);
    });
}

#[test]
fn r53_the_same_run_returns_its_receipt_and_another_is_new() {
    on_every_store(|builder| {
        let inbox = open(builder);
        let event = record(&inbox, "conf", "delivery-1", REPORT);
        let first = new(replay(&inbox, &event, "run-1").unwrap());
        assert_eq!(replay(&inbox, &event, "run-1").unwrap(), RunOutcome::Known(first.clone()));
        let other = new(replay(&inbox, &event, "run-2").unwrap());
        assert_ne!(other.run, first.run);
        assert_eq!(replay(&inbox, &event, "run-1").unwrap(), RunOutcome::Known(first));
    });
}

#[test]
fn d1_a_payload_with_markup_and_line_separators_is_known_again() {
    on_every_store(|builder| {
        let inbox = open(builder);
        let body = "{\"eventId\":\"b\",\"data\":\"<b>&amp;</b>\u{2028}\u{2029}\\u003c\"}";
        let event = record(&inbox, "conf", "delivery-1", body);
        let first = new(replay(&inbox, &event, "run-1").unwrap());
        assert_eq!(replay(&inbox, &event, "run-1").unwrap(), RunOutcome::Known(first));
    });
}

#[test]
fn d2_a_deep_payload_makes_a_receipt_of_its_own_size() {
    on_every_store(|builder| {
        let inbox = open(builder);
        let body = format!("{{\"eventId\":\"b\",\"data\":{}{}}}", "[".repeat(9000), "]".repeat(9000));
        let event = record(&inbox, "conf", "delivery-1", &body);
        let receipt = new(replay(&inbox, &event, "run-1").unwrap());
        assert_eq!(receipt.payload.unwrap().len(), 18_000);
    });
}

#[test]
fn d3_and_r54_a_damaged_receipt_fails_closed_and_stays_as_it_is() {
    for damage in [
        "UPDATE runs SET payload = x'7b7d'",
        "UPDATE runs SET payload = NULL",
        "UPDATE runs SET business_id = 'other'",
        "UPDATE runs SET business_id = NULL",
        "UPDATE runs SET digest = zeroblob(32)",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("inbox.db");
        let inbox = open(Inbox::builder().store(format!("sqlite:{}", path.display())));
        let event = record(&inbox, "conf", "delivery-1", REPORT);
        new(replay(&inbox, &event, "run-1").unwrap());
        rusqlite::Connection::open(&path).unwrap().execute_batch(damage).unwrap();
        for _ in 0..2 {
            let refused = replay(&inbox, &event, "run-1");
            assert!(matches!(refused, Err(ReplayError::DamagedReceipt { .. })), "{damage}: {refused:?}");
        }
        new(replay(&inbox, &event, "run-2").unwrap());
    }
}

#[test]
fn r55_one_business_event_under_two_deliveries_gives_two_receipts() {
    on_every_store(|builder| {
        let inbox = open(builder);
        let events = ["delivery-1", "delivery-2"].map(|id| record(&inbox, "conf", id, REPORT));
        let receipts = events.map(|event| new(replay(&inbox, &event, "run-1").unwrap()));
        assert_eq!(receipts[0].business_id, receipts[1].business_id);
        assert_ne!(receipts[0].event, receipts[1].event);
    });
}

#[test]
fn a_source_without_a_processor_records_that_the_run_happened() {
    on_every_store(|builder| {
        let inbox = open(builder);
        let event = record(&inbox, "reports", "evt_1", "not json");
        let receipt = new(replay(&inbox, &event, "run-1").unwrap());
        assert_eq!((receipt.business_id, receipt.payload), (None, None));
    });
}

#[test]
fn eight_at_once_get_one_receipt() {
    on_every_store(|builder| {
        let inbox = open(builder);
        let event = record(&inbox, "conf", "delivery-1", REPORT);
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..8).map(|_| scope.spawn(|| replay(&inbox, &event, "run-1").unwrap())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(outcomes.iter().filter(|outcome| matches!(outcome, RunOutcome::New(_))).count(), 1);
    });
}
