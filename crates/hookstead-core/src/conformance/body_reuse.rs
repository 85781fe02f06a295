//! The same body of the same source under another identity: flagged or refused where the rule says so.

use super::case::list;
use super::draft::Draft;
use super::world::{World, receipt};
use crate::event::{AcceptReceipt, BodyReuse, Outcome};
use crate::id::SourceNumber;
use crate::query::{DeliveryFilter, EventSelector};

list!("body_reuse":
    a_body_under_another_id_is_flagged_with_the_event_that_had_it_first,
    the_mark_survives_erasure_and_a_reopen,
    the_first_body_is_known_after_a_reopen,
    a_refused_body_stores_nothing_and_names_the_event_that_has_it,
    the_identity_of_a_refused_body_stays_free,
    the_same_identity_is_a_duplicate_or_a_conflict_whatever_the_rule,
    another_source_and_another_body_are_no_reuse,
    what_nobody_looked_out_for_is_not_remembered,
    what_ignores_reuse_is_not_flagged,
    bodies_are_found_within_one_batch,
    an_erased_body_is_forgotten,
    the_oldest_body_that_is_kept_is_named,
    a_revision_is_neither_flagged_nor_remembered,
    an_empty_body_is_a_body,
    two_scopes_are_two_identities,
);

fn flagged(source: SourceNumber, id: &str, body: &str) -> Draft {
    Draft::new(source, id, body).reusing(BodyReuse::Flag)
}

fn refusing(source: SourceNumber, id: &str, body: &str) -> Draft {
    Draft::new(source, id, body).reusing(BodyReuse::Refuse)
}

/// Stored, marked with what it should be, and shown so.
fn assert_stored(world: &World, receipt: &AcceptReceipt, same_body_as: Option<&AcceptReceipt>) {
    let expected = same_body_as.map(|first| first.event);
    assert_eq!((receipt.outcome, receipt.same_body_as), (Outcome::Stored, expected));
    assert_eq!(world.event(receipt.event).same_body_as, expected);
    let listed = world.events().into_iter().find(|event| event.id == receipt.event);
    assert_eq!(listed.and_then(|event| event.same_body_as), expected);
}

fn a_body_under_another_id_is_flagged_with_the_event_that_had_it_first(world: &mut World) {
    let source = world.source("shop");
    let first = world.accept(&flagged(source, "evt_1", "{}"));
    assert_stored(world, &first, None);
    for id in ["evt_2", "evt_3"] {
        let again = world.accept(&flagged(source, id, "{}"));
        assert_stored(world, &again, Some(&first));
    }
    assert_eq!(world.event(first.event).same_body_as, None);
}

fn the_mark_survives_erasure_and_a_reopen(world: &mut World) {
    let (source, to) = (world.source("shop"), world.destination("app"));
    let first = world.accept(&flagged(source, "evt_1", "{}"));
    let again = world.accept(&flagged(source, "evt_2", "{}").owed_to([to]));
    world.finish(to);
    assert_eq!(world.erase_finished(source).erased, 1);
    assert_eq!(world.event(again.event).same_body_as, Some(first.event));
    world.reopen();
    assert_eq!(world.event(again.event).same_body_as, Some(first.event));
}

fn the_first_body_is_known_after_a_reopen(world: &mut World) {
    let source = world.source("shop");
    let first = world.accept(&flagged(source, "evt_1", "{}"));
    world.reopen();
    let again = world.accept(&flagged(source, "evt_2", "{}"));
    assert_stored(world, &again, Some(&first));
}

fn a_refused_body_stores_nothing_and_names_the_event_that_has_it(world: &mut World) {
    let (source, to) = (world.source("shop"), world.destination("app"));
    let first = world.accept(&refusing(source, "evt_1", "{}"));
    assert_stored(world, &first, None);
    let before = world.picture();
    let refused = world.accept(&refusing(source, "evt_2", "{}").owed_to([to]));
    assert_eq!(refused, AcceptReceipt { outcome: Outcome::BodyReused, ..first });
    assert_eq!(world.picture().differences(&before), [""; 0]);
    assert_eq!(world.deliveries(&DeliveryFilter::default()), []);
}

fn the_identity_of_a_refused_body_stays_free(world: &mut World) {
    let source = world.source("shop");
    world.accept(&refusing(source, "evt_1", "{}"));
    let refused = refusing(source, "evt_2", "{}");
    assert_eq!(world.accept(&refused).outcome, Outcome::BodyReused);
    assert_eq!(world.find(&EventSelector::Identity(refused.identity)), None);
    let other = world.accept(&refusing(source, "evt_2", "other bytes"));
    assert_stored(world, &other, None);
    assert_eq!(
        world.accept(&refusing(source, "evt_2", "{}")).outcome,
        Outcome::Conflict { variant: Some(1) }
    );
}

fn the_same_identity_is_a_duplicate_or_a_conflict_whatever_the_rule(world: &mut World) {
    let source = world.source("shop");
    for rule in [BodyReuse::Ignore, BodyReuse::Flag, BodyReuse::Refuse] {
        let draft = |body| Draft::new(source, format!("{rule:?}"), body).reusing(rule);
        let first = world.accept(&draft(format!("{rule:?}")));
        assert_eq!(first.outcome, Outcome::Stored);
        let again = world.accept(&draft(format!("{rule:?}")));
        assert_eq!(again, AcceptReceipt { outcome: Outcome::Duplicate, ..first });
        let other = world.accept(&draft("other bytes".to_owned()));
        assert_eq!(other, AcceptReceipt { outcome: Outcome::Conflict { variant: Some(1) }, ..first });
    }
}

fn another_source_and_another_body_are_no_reuse(world: &mut World) {
    let (shop, bank) = (world.source("shop"), world.source("bank"));
    for draft in [
        refusing(shop, "evt_1", "{}"),
        refusing(bank, "evt_1", "{}"),
        refusing(shop, "evt_2", "{} "),
        refusing(shop, "evt_3", "{}\0"),
    ] {
        let receipt = world.accept(&draft);
        assert_stored(world, &receipt, None);
    }
}

fn what_nobody_looked_out_for_is_not_remembered(world: &mut World) {
    let source = world.source("shop");
    world.accept(&Draft::new(source, "evt_1", "{}"));
    let second = world.accept(&refusing(source, "evt_2", "{}"));
    assert_stored(world, &second, None);
    let third = world.accept(&flagged(source, "evt_3", "{}"));
    assert_stored(world, &third, Some(&second));
}

fn what_ignores_reuse_is_not_flagged(world: &mut World) {
    let source = world.source("shop");
    world.accept(&flagged(source, "evt_1", "{}"));
    let second = world.accept(&Draft::new(source, "evt_2", "{}"));
    assert_stored(world, &second, None);
}

fn bodies_are_found_within_one_batch(world: &mut World) {
    let source = world.source("shop");
    let drafts =
        [flagged(source, "evt_1", "{}"), flagged(source, "evt_2", "{}"), refusing(source, "evt_3", "{}")];
    let writes = drafts.map(|draft| world.accepting(&draft));
    let receipts: Vec<_> = world.apply(&writes).iter().map(receipt).collect();
    assert_stored(world, &receipts[0], None);
    assert_stored(world, &receipts[1], Some(&receipts[0]));
    assert_eq!((receipts[2].outcome, receipts[2].event), (Outcome::BodyReused, receipts[0].event));
    assert_eq!(world.events().len(), 2);
}

fn an_erased_body_is_forgotten(world: &mut World) {
    let (source, to) = (world.source("shop"), world.destination("app"));
    world.accept(&refusing(source, "evt_1", "{}").owed_to([to]));
    world.finish(to);
    assert_eq!(world.erase_finished(source).erased, 1);
    let second = world.accept(&refusing(source, "evt_2", "{}"));
    assert_stored(world, &second, None);
    assert_eq!(world.accept(&refusing(source, "evt_3", "{}")).event, second.event);
}

fn the_oldest_body_that_is_kept_is_named(world: &mut World) {
    let (source, to) = (world.source("shop"), world.destination("app"));
    world.accept(&flagged(source, "evt_1", "{}").owed_to([to]));
    world.finish(to);
    let second = world.accept(&flagged(source, "evt_2", "{}"));
    world.accept(&flagged(source, "evt_3", "{}"));
    assert_eq!(world.erase_finished(source).erased, 1);
    let fourth = world.accept(&flagged(source, "evt_4", "{}"));
    assert_stored(world, &fourth, Some(&second));
    world.reopen();
    let fifth = world.accept(&flagged(source, "evt_5", "{}"));
    assert_stored(world, &fifth, Some(&second));
}

fn a_revision_is_neither_flagged_nor_remembered(world: &mut World) {
    let source = world.source("shop");
    world.accept(&flagged(source, "evt_1", "one"));
    let first = world.accept(&flagged(source, "evt_2", "two"));
    world.accept(&flagged(source, "evt_2", "one"));
    let revision = world.revise(first.event, 1, &[]);
    assert_eq!(world.event(revision).same_body_as, None);
    world.accept(&flagged(source, "evt_2", "three"));
    world.revise(first.event, 2, &[]);
    let third = world.accept(&flagged(source, "evt_3", "three"));
    assert_stored(world, &third, None);
    world.reopen();
    let fourth = world.accept(&flagged(source, "evt_4", "three"));
    assert_stored(world, &fourth, Some(&third));
}

fn an_empty_body_is_a_body(world: &mut World) {
    let source = world.source("shop");
    let first = world.accept(&flagged(source, "evt_1", ""));
    let second = world.accept(&flagged(source, "evt_2", ""));
    assert_stored(world, &second, Some(&first));
}

fn two_scopes_are_two_identities(world: &mut World) {
    let source = world.source("shop");
    let first = world.accept(&flagged(source, "evt_1", "{}").scoped("acct_1"));
    let second = world.accept(&flagged(source, "evt_1", "{}").scoped("acct_2"));
    assert_stored(world, &second, Some(&first));
}
