//! Accepting a new event: what is stored of it, and what is made with it.

use std::time::Duration;

use super::case::list;
use super::draft::Draft;
use super::world::{START, World, first_delivery};
use crate::delivery::{Delivery, DeliveryTally};
use crate::event::{Body, Digest, Duplicates, Outcome};
use crate::id::Seq;
use crate::query::DeliveryFilter;
use crate::request::{QUERY_BYTES_MAX, RawHeaders, RawQuery};

list!("accept":
    a_new_identity_is_stored_and_its_receipt_describes_the_event,
    an_event_comes_back_as_it_was_accepted,
    facts_that_are_not_known_stay_unknown,
    sequence_numbers_begin_at_one_and_grow_in_the_order_of_commits,
    the_commit_time_is_the_stores_now_and_not_the_time_of_receipt,
    an_empty_body_is_an_event,
    a_body_of_every_byte_comes_back_exactly,
    a_body_of_a_mebibyte_comes_back_exactly,
    headers_come_back_exactly_and_in_their_order,
    a_query_comes_back_exactly_beside_the_headers,
    deliveries_are_made_with_their_event_and_are_due_at_once,
    each_destination_gets_one_delivery,
    an_event_without_destinations_is_stored_and_unfinished,
);

fn a_new_identity_is_stored_and_its_receipt_describes_the_event(world: &mut World) {
    let draft = Draft::new(world.source("shop"), "evt_1", "{}");
    let acceptance = world.acceptance(&draft);
    let id = acceptance.id();
    let receipt = super::world::receipt(&world.write(crate::Write::Accept(Box::new(acceptance))));
    assert_eq!(receipt.outcome, Outcome::Stored);
    assert_eq!((receipt.event, receipt.seq), (id, Seq(1)));
    assert_eq!((receipt.digest, receipt.committed_at), (Digest::of(b"{}"), START));
}

fn an_event_comes_back_as_it_was_accepted(world: &mut World) {
    let source = world.source("shop");
    let mut draft = Draft::new(source, "evt_1", "{\"a\":1}").scoped("acct_9").typed("order.paid");
    draft.facts.account = Some("acct_9".into());
    draft.facts.received_from = Some("192.0.2.7:55123".into());
    draft.facts.verified_by = Some("hmac-sha256 with secret 2".into());
    let receipt = world.accept(&draft);
    let event = world.event(receipt.event);
    assert_eq!((event.id, event.seq), (receipt.event, receipt.seq));
    assert_eq!((event.source.as_str(), &event.identity), ("shop", &draft.identity));
    assert_eq!(event.event_type, draft.facts.event_type);
    assert_eq!(event.account, draft.facts.account);
    assert_eq!(event.received_from, draft.facts.received_from);
    assert_eq!(event.verified_by, draft.facts.verified_by);
    assert_eq!((event.digest, event.body_bytes), (Digest::of(b"{\"a\":1}"), 7));
    assert_eq!((event.received_at, event.committed_at), (START, START));
    assert_eq!((event.erased_at, event.revises, event.conflicts), (None, None, 0));
    assert_eq!(event.duplicates, Duplicates::default());
}

fn facts_that_are_not_known_stay_unknown(world: &mut World) {
    let receipt = world.accept(&Draft::new(world.source("shop"), "evt_1", "{}"));
    let event = world.event(receipt.event);
    assert_eq!((event.event_type, event.account), (None, None));
    assert_eq!((event.received_from, event.verified_by), (None, None));
    assert_eq!(event.headers, RawHeaders::default());
}

fn sequence_numbers_begin_at_one_and_grow_in_the_order_of_commits(world: &mut World) {
    let source = world.source("shop");
    let first = world.accept(&Draft::new(source, "b", "1")).seq;
    let second = world.accept(&Draft::new(source, "a", "2")).seq;
    assert_eq!(first, Seq(1));
    assert!(second > first);
}

fn the_commit_time_is_the_stores_now_and_not_the_time_of_receipt(world: &mut World) {
    let write = world.accepting(&Draft::new(world.source("shop"), "evt_1", "{}"));
    world.advance(Duration::from_millis(1_500));
    let receipt = super::world::receipt(&world.write(write));
    let event = world.event(receipt.event);
    assert_eq!(event.received_at, START);
    assert_eq!(event.committed_at, START.plus(Duration::from_millis(1_500)));
    assert_eq!(receipt.committed_at, event.committed_at);
}

fn an_empty_body_is_an_event(world: &mut World) {
    let receipt = world.accept(&Draft::new(world.source("shop"), "evt_1", ""));
    assert_eq!(receipt.outcome, Outcome::Stored);
    assert_eq!(world.body(receipt.event), Some(Body::Kept(bytes::Bytes::new())));
    assert_eq!(world.event(receipt.event).body_bytes, 0);
}

fn a_body_of_every_byte_comes_back_exactly(world: &mut World) {
    let body: Vec<u8> = (0..=u8::MAX).rev().chain([0, 0xc3, 0x28, b'\r', b'\n', 0]).collect();
    let receipt = world.accept(&Draft::new(world.source("shop"), "evt_1", &body));
    assert_eq!(world.body(receipt.event), Some(Body::Kept(body.into())));
}

fn a_body_of_a_mebibyte_comes_back_exactly(world: &mut World) {
    let body: Vec<u8> =
        (0..1_u32 << 18).flat_map(|word| word.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    let receipt = world.accept(&Draft::new(world.source("shop"), "evt_1", &body));
    assert_eq!(world.event(receipt.event).body_bytes, 1 << 20);
    assert_eq!(world.body(receipt.event), Some(Body::Kept(body.into())));
}

fn headers_come_back_exactly_and_in_their_order(world: &mut World) {
    let mut draft = Draft::new(world.source("shop"), "evt_1", "{}");
    let fields: [(&str, &[u8]); 4] =
        [("Content-Type", b"application/json"), ("x-raw", b"\xff\x00%'\""), ("x-two", b"1"), ("X-Two", b"")];
    draft.facts.headers = RawHeaders::from_fields(fields);
    let receipt = world.accept(&draft);
    assert_eq!(world.event(receipt.event).headers.fields().collect::<Vec<_>>(), fields);
}

fn a_query_comes_back_exactly_beside_the_headers(world: &mut World) {
    let source = world.source("shop");
    let longest = [b'q'; QUERY_BYTES_MAX];
    for (id, query) in [("evt_1", &b"data.id=ORD01ABC&type=a%20b&&x=\xff'\"?:"[..]), ("evt_2", &longest)] {
        let mut draft = Draft::new(source, id, id);
        let fields: [(&str, &[u8]); 2] = [("Content-Type", b"application/json"), ("?x", b"y")];
        let query = RawQuery::new(query).expect("the case uses a legal query");
        draft.facts.headers = RawHeaders::from_request(Some(query), fields);
        let receipt = world.accept(&draft);
        let event = world.event(receipt.event);
        assert_eq!(event.headers.query(), Some(query));
        assert_eq!(event.headers.fields().collect::<Vec<_>>(), fields);
    }
    let without = world.accept(&Draft::new(source, "evt_3", "3").with_header("x", b"1"));
    assert_eq!(world.event(without.event).headers.query(), None);
}

fn deliveries_are_made_with_their_event_and_are_due_at_once(world: &mut World) {
    let to = world.destination("app");
    let receipt = world.accept(&Draft::new(world.source("shop"), "evt_1", "{}").owed_to([to]));
    let made = Delivery::new(first_delivery(receipt.event, to), START, START);
    assert_eq!(world.deliveries(&DeliveryFilter::default()), [made]);
    assert_eq!(world.claim(to, 1).len(), 1);
}

fn each_destination_gets_one_delivery(world: &mut World) {
    let destinations = ["app", "billing", "search"].map(|name| world.destination(name));
    let draft = Draft::new(world.source("shop"), "evt_1", "{}").owed_to(destinations);
    let receipt = world.accept(&draft);
    let ids: Vec<_> =
        world.deliveries(&DeliveryFilter::default()).iter().map(|delivery| delivery.id).collect();
    assert_eq!(ids, destinations.map(|to| first_delivery(receipt.event, to)));
    let tally = DeliveryTally { waiting: 3, ..DeliveryTally::default() };
    assert_eq!(world.event(receipt.event).deliveries, tally);
}

fn an_event_without_destinations_is_stored_and_unfinished(world: &mut World) {
    let receipt = world.accept(&Draft::new(world.source("shop"), "evt_1", "{}"));
    let event = world.event(receipt.event);
    assert_eq!(event.deliveries, DeliveryTally::default());
    assert!(!event.is_finished());
    assert_eq!(world.deliveries(&DeliveryFilter::default()), []);
}
