//! The same event again: answered as success, counted, not stored again.

use super::case::list;
use super::draft::Draft;
use super::world::{SECOND, START, World};
use crate::event::{Duplicates, Outcome};
use crate::query::DeliveryFilter;

list!("duplicate":
    the_same_bytes_again_are_a_duplicate_that_names_the_first_event,
    a_duplicate_stores_no_event_and_no_delivery,
    duplicates_are_counted_with_the_time_of_the_last,
    a_duplicate_changes_no_fact_of_the_first,
    a_duplicate_of_a_finished_event_wakes_no_delivery,
    volatile_values_may_differ_where_the_rule_version_is_the_same,
    bodies_of_one_rule_version_are_compared_by_the_digest_alone,
    bytes_decide_where_the_rule_versions_differ,
    bytes_decide_where_one_side_has_no_comparison_digest,
    the_same_bytes_are_a_duplicate_after_erasure,
    volatile_values_may_differ_after_erasure,
);

fn the_same_bytes_again_are_a_duplicate_that_names_the_first_event(world: &mut World) {
    let draft = Draft::new(world.source("shop"), "evt_1", "{}");
    let first = world.accept(&draft);
    world.advance(SECOND);
    let again = world.accept(&draft);
    assert_eq!(again.outcome, Outcome::Duplicate);
    assert_eq!((again.event, again.seq), (first.event, first.seq));
    assert_eq!((again.digest, again.committed_at), (first.digest, START));
}

fn a_duplicate_stores_no_event_and_no_delivery(world: &mut World) {
    let to = world.destination("app");
    let draft = Draft::new(world.source("shop"), "evt_1", "{}").owed_to([to]);
    world.accept(&draft);
    world.accept(&draft);
    assert_eq!(world.events().len(), 1);
    assert_eq!(world.deliveries(&DeliveryFilter::default()).len(), 1);
}

fn duplicates_are_counted_with_the_time_of_the_last(world: &mut World) {
    let draft = Draft::new(world.source("shop"), "evt_1", "{}");
    let first = world.accept(&draft);
    for _ in 0..3 {
        world.advance(SECOND);
        world.accept(&draft);
    }
    let counted = Duplicates { count: 3, last_at: Some(world.now()) };
    assert_eq!(world.event(first.event).duplicates, counted);
    assert_eq!(world.events()[0].duplicates, counted);
}

fn a_duplicate_changes_no_fact_of_the_first(world: &mut World) {
    let draft = Draft::new(world.source("shop"), "evt_1", "{}").typed("a").with_header("x", b"1");
    let first = world.accept(&draft);
    let before = world.event(first.event);
    world.advance(SECOND);
    world.accept(&draft.typed("b").with_header("x", b"2"));
    let mut after = world.event(first.event);
    after.duplicates = before.duplicates;
    assert_eq!(after, before);
}

fn a_duplicate_of_a_finished_event_wakes_no_delivery(world: &mut World) {
    let to = world.destination("app");
    let draft = Draft::new(world.source("shop"), "evt_1", "{}").owed_to([to]);
    let first = world.accept(&draft);
    world.finish(to);
    assert_eq!(world.accept(&draft).outcome, Outcome::Duplicate);
    assert_eq!(world.claim(to, 1), []);
    assert!(world.event(first.event).is_finished());
}

fn volatile_values_may_differ_where_the_rule_version_is_the_same(world: &mut World) {
    let source = world.source("shop");
    world.accept(&Draft::new(source, "evt_1", "{\"n\":1,\"try\":1}").compared(1, "n=1"));
    let again = world.accept(&Draft::new(source, "evt_1", "{\"n\":1,\"try\":2}").compared(1, "n=1"));
    assert_eq!(again.outcome, Outcome::Duplicate);
}

fn bodies_of_one_rule_version_are_compared_by_the_digest_alone(world: &mut World) {
    let source = world.source("shop");
    world.accept(&Draft::new(source, "evt_1", "{}").compared(1, "n=1"));
    let other = world.accept(&Draft::new(source, "evt_1", "{}").compared(1, "n=2"));
    assert!(matches!(other.outcome, Outcome::Conflict { .. }), "{other:?}");
}

fn bytes_decide_where_the_rule_versions_differ(world: &mut World) {
    let source = world.source("shop");
    world.accept(&Draft::new(source, "evt_1", "1").compared(1, "n=1"));
    let same = world.accept(&Draft::new(source, "evt_1", "1").compared(2, "n=2"));
    assert_eq!(same.outcome, Outcome::Duplicate);
    let other = world.accept(&Draft::new(source, "evt_1", "2").compared(2, "n=1"));
    assert!(matches!(other.outcome, Outcome::Conflict { .. }), "{other:?}");
}

fn bytes_decide_where_one_side_has_no_comparison_digest(world: &mut World) {
    let source = world.source("shop");
    world.accept(&Draft::new(source, "evt_1", "1").compared(1, "n=1"));
    assert_eq!(world.accept(&Draft::new(source, "evt_1", "1")).outcome, Outcome::Duplicate);
    world.accept(&Draft::new(source, "evt_2", "1"));
    let other = world.accept(&Draft::new(source, "evt_2", "2").compared(1, "n=1"));
    assert!(matches!(other.outcome, Outcome::Conflict { .. }), "{other:?}");
}

fn the_same_bytes_are_a_duplicate_after_erasure(world: &mut World) {
    let (source, to) = (world.source("shop"), world.destination("app"));
    let draft = Draft::new(source, "evt_1", "{}").owed_to([to]);
    let first = world.accept(&draft);
    world.finish(to);
    assert_eq!(world.erase_finished(source).erased, 1);
    let again = world.accept(&draft);
    assert_eq!((again.outcome, again.event), (Outcome::Duplicate, first.event));
    assert_eq!(world.deliveries(&DeliveryFilter::default()).len(), 1);
}

fn volatile_values_may_differ_after_erasure(world: &mut World) {
    let (source, to) = (world.source("shop"), world.destination("app"));
    world.accept(&Draft::new(source, "evt_1", "{\"try\":1}").compared(1, "n=1").owed_to([to]));
    world.finish(to);
    assert_eq!(world.erase_finished(source).erased, 1);
    let again = world.accept(&Draft::new(source, "evt_1", "{\"try\":22}").compared(1, "n=1"));
    assert_eq!(again.outcome, Outcome::Duplicate);
    let other = world.accept(&Draft::new(source, "evt_1", "{\"try\":1}").compared(1, "n=2"));
    assert!(matches!(other.outcome, Outcome::Conflict { .. }), "{other:?}");
}
