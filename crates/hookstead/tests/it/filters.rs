//! Whom an event is owed to: decided by the filters, in the event's own commit.

use hookstead::core::{DeliveryFilter, Order, Page};
use hookstead::{DestinationOptions, Filter, Inbox, Outcome};
use serde_json::json;

use crate::scene::destination;
use crate::stores::{on_every_store, recorded};

fn wanting(name: &str, filter: Filter) -> hookstead::Destination {
    destination(name, DestinationOptions { filter, ..DestinationOptions::default() })
}

/// The names of those that an event is owed to.
fn owed(inbox: &Inbox, event: hookstead::core::EventId) -> Vec<String> {
    let filter = DeliveryFilter { event: Some(event), ..DeliveryFilter::default() };
    let page = Page::first(100, Order::OldestFirst);
    let owed = inbox.store().list_deliveries(&filter, &page).unwrap().items.into_iter();
    owed.map(|owed| inbox.destination_numbered(owed.id.destination).unwrap().name().to_string()).collect()
}

#[test]
fn an_event_is_owed_to_those_whose_filter_takes_it() {
    on_every_store(|builder| {
        let shop = Filter::default().sources(["shop".parse().unwrap()]).unwrap();
        let urgent = Filter::default().equals("/urgent", &json!(true)).unwrap();
        let typed = Filter::default().types(["order.*".parse().unwrap()]).unwrap();
        let builder = builder.source(recorded("shop")).source(recorded("bank"));
        let builder = builder.destination(wanting("everything", Filter::default()));
        let builder = builder.destination(wanting("shop", shop)).destination(wanting("urgent", urgent));
        let inbox = builder.destination(wanting("typed", typed)).open().unwrap();
        for (source, id, body, expected) in [
            ("shop", "1", r#"{"urgent":true}"#, &["everything", "shop", "urgent"][..]),
            ("shop", "2", r#"{"urgent":"true"}"#, &["everything", "shop"]),
            ("bank", "3", r#"{"urgent":true}"#, &["everything", "urgent"]),
            ("bank", "4", "no JSON", &["everything"]),
        ] {
            let receipt = inbox.blocking().record(source, id, body).unwrap();
            assert_eq!(owed(&inbox, receipt.event), expected, "{source} {id}");
        }
    });
}

#[test]
fn an_event_that_nobody_wants_is_stored_and_owed_to_nobody() {
    on_every_store(|builder| {
        let other = Filter::default().sources(["bank".parse().unwrap()]).unwrap();
        let inbox = builder.source(recorded("shop")).destination(wanting("bank", other)).open().unwrap();
        let receipt = inbox.blocking().record("shop", "1", "body").unwrap();
        assert_eq!(receipt.outcome, Outcome::Stored);
        assert_eq!(owed(&inbox, receipt.event), [""; 0]);
    });
}

#[test]
fn a_duplicate_and_a_conflict_are_owed_to_nobody_again() {
    on_every_store(|builder| {
        let inbox = builder.source(recorded("shop")).destination(wanting("app", Filter::default()));
        let inbox = inbox.open().unwrap();
        let first = inbox.blocking().record("shop", "1", "body").unwrap();
        inbox.blocking().record("shop", "1", "body").unwrap();
        inbox.blocking().record("shop", "1", "other").unwrap();
        assert_eq!(owed(&inbox, first.event), ["app"]);
        assert_eq!(inbox.store().stats().unwrap().deliveries.waiting, 1);
    });
}

#[test]
fn two_destinations_of_one_name_are_refused() {
    let builder = Inbox::builder().destination(wanting("app", Filter::default()));
    let opened = builder.destination(wanting("app", Filter::default())).open();
    assert!(matches!(opened, Err(hookstead::OpenError::DestinationTwice(name)) if name == "app"));
}
