//! What makes an event the same event: source, scope and id, byte by byte.

use super::case::list;
use super::draft::Draft;
use super::world::World;
use crate::event::Outcome;
use crate::id::SourceNumber;
use crate::identity::{IDENTITY_PART_BYTES_MAX, IdentityHash};
use crate::query::EventSelector;

list!("identity":
    the_same_id_under_two_sources_is_two_events,
    the_same_id_under_two_scopes_is_two_events,
    scope_and_id_are_not_run_together,
    ids_are_compared_byte_by_byte,
    ids_come_back_exactly_and_find_their_event,
    ids_of_the_greatest_length_differ_by_their_last_byte,
    scopes_are_compared_byte_by_byte,
    ids_are_no_patterns_and_no_text_of_a_query,
    two_identities_with_one_hash_are_two_events,
    identities_with_one_hash_are_told_apart_when_they_come_again,
    as_many_identities_as_there_are_probes_may_share_a_hash,
);

/// Ids that some store or file system would take for one another.
const AWKWARD: &[&[u8]] = &[
    b"a",
    b"A",
    b" a",
    b"a ",
    b"a\n",
    b"a\r\n",
    b"a\0",
    b"a\0b",
    b"a\0c",
    b"\0",
    b"\0\0",
    b"%",
    b"_",
    b"a%",
    b"%61",
    b"'",
    b"''",
    b"\"",
    b"`",
    b"';--",
    b"\\",
    b"\\x61",
    b"../a",
    b"./a",
    b"C:",
    b"C:\\a",
    b"a/b",
    b"\xff",
    b"\xfe",
    b"\xc3\xa9",
    b"e\xcc\x81",
    b"\xc3\x89",
    b"\xe2\x80\xaea",
    b"\xf0\x9f\x98\x80",
    b"\xef\xbb\xbfa",
    b"1",
    b"01",
    b"1.0",
    b"1e0",
    b"NULL",
    b"x'61'",
];

fn the_same_id_under_two_sources_is_two_events(world: &mut World) {
    let (shop, bank) = (world.source("shop"), world.source("bank"));
    let one = world.accept(&Draft::new(shop, "evt_1", "one"));
    let two = world.accept(&Draft::new(bank, "evt_1", "two"));
    assert_eq!((one.outcome, two.outcome), (Outcome::Stored, Outcome::Stored));
    assert_ne!(one.event, two.event);
    assert_eq!(world.event(two.event).source.as_str(), "bank");
    assert_eq!(world.accept(&Draft::new(shop, "evt_1", "one")).event, one.event);
    assert_eq!(world.accept(&Draft::new(bank, "evt_1", "two")).event, two.event);
}

fn the_same_id_under_two_scopes_is_two_events(world: &mut World) {
    let source = world.source("shop");
    let drafts = ["", "acct_1", "acct_2"].map(|scope| Draft::new(source, "evt_1", scope).scoped(scope));
    for draft in &drafts {
        assert_eq!(world.accept(draft).outcome, Outcome::Stored);
    }
    for draft in &drafts {
        assert_eq!(world.accept(draft).outcome, Outcome::Duplicate);
        let selector = EventSelector::Identity(draft.identity.clone());
        assert_eq!(world.find(&selector).map(|event| event.identity), Some(draft.identity.clone()));
    }
}

fn scope_and_id_are_not_run_together(world: &mut World) {
    let source = world.source("shop");
    for (scope, id) in [("", "abc"), ("a", "bc"), ("ab", "c"), ("ab\0", "c"), ("ab", "\0c")] {
        let receipt = world.accept(&Draft::new(source, id, "{}").scoped(scope));
        assert_eq!(receipt.outcome, Outcome::Stored, "{scope:?} {id:?}");
    }
}

fn ids_are_compared_byte_by_byte(world: &mut World) {
    let source = world.source("shop");
    for id in AWKWARD {
        let receipt = world.accept(&Draft::new(source, id, id));
        assert_eq!(receipt.outcome, Outcome::Stored, "{}", id.escape_ascii());
    }
    for id in AWKWARD {
        let receipt = world.accept(&Draft::new(source, id, id));
        assert_eq!(receipt.outcome, Outcome::Duplicate, "{}", id.escape_ascii());
    }
    assert_eq!(world.events().len(), AWKWARD.len());
}

fn ids_come_back_exactly_and_find_their_event(world: &mut World) {
    let source = world.source("shop");
    for id in AWKWARD {
        let draft = Draft::new(source, id, "{}");
        let receipt = world.accept(&draft);
        assert_eq!(world.event(receipt.event).identity, draft.identity);
        let found = world.find(&EventSelector::Identity(draft.identity)).map(|event| event.id);
        assert_eq!(found, Some(receipt.event), "{}", id.escape_ascii());
    }
}

fn ids_of_the_greatest_length_differ_by_their_last_byte(world: &mut World) {
    let source = world.source("shop");
    let id = |last: u8| {
        let mut id = vec![b'x'; IDENTITY_PART_BYTES_MAX];
        id[IDENTITY_PART_BYTES_MAX - 1] = last;
        id
    };
    for last in [b'y', b'z'] {
        let draft = Draft::new(source, id(last), "{}").scoped(id(b's'));
        let receipt = world.accept(&draft);
        assert_eq!(receipt.outcome, Outcome::Stored);
        assert_eq!(world.event(receipt.event).identity, draft.identity);
        assert_eq!(world.accept(&draft).outcome, Outcome::Duplicate);
    }
}

fn scopes_are_compared_byte_by_byte(world: &mut World) {
    let source = world.source("shop");
    for expected in [Outcome::Stored, Outcome::Duplicate] {
        for scope in AWKWARD {
            let receipt = world.accept(&Draft::new(source, "evt_1", "{}").scoped(scope));
            assert_eq!(receipt.outcome, expected, "{}", scope.escape_ascii());
        }
    }
}

fn ids_are_no_patterns_and_no_text_of_a_query(world: &mut World) {
    let source = world.source("shop");
    world.accept(&Draft::new(source, "evt_1", "{}"));
    for id in ["%", "evt_%", "evt__", "*", "EVT_1", "evt_1' OR '1'='1", "evt_1\0", "evt_"] {
        let identity = Draft::new(source, id, "").identity;
        assert_eq!(world.find(&EventSelector::Identity(identity)), None, "{id}");
    }
}

/// Drafts of different ids, each with its id as body, whose identities share a hash.
fn colliding(source: SourceNumber, count: u8) -> Vec<Draft> {
    let ids = (0..count).map(|number| format!("evt_{number}"));
    ids.map(|id| Draft::new(source, &id, &id).hashed(IdentityHash([0x5a; 16]))).collect()
}

fn two_identities_with_one_hash_are_two_events(world: &mut World) {
    let drafts = colliding(world.source("shop"), 2);
    let (one, two) = (world.accept(&drafts[0]), world.accept(&drafts[1]));
    assert_eq!((one.outcome, two.outcome), (Outcome::Stored, Outcome::Stored));
    assert_eq!(world.event(one.event).identity, drafts[0].identity);
    assert_eq!(world.event(two.event).identity, drafts[1].identity);
}

fn identities_with_one_hash_are_told_apart_when_they_come_again(world: &mut World) {
    let drafts = colliding(world.source("shop"), 2);
    let events = [world.accept(&drafts[0]).event, world.accept(&drafts[1]).event];
    for (draft, event) in drafts.iter().zip(events) {
        let again = world.accept(draft);
        assert_eq!((again.outcome, again.event), (Outcome::Duplicate, event));
        let mut other = draft.clone();
        other.body = "other bytes".into();
        let conflict = world.accept(&other);
        assert_eq!((conflict.outcome, conflict.event), (Outcome::Conflict { variant: Some(1) }, event));
    }
}

fn as_many_identities_as_there_are_probes_may_share_a_hash(world: &mut World) {
    let drafts = colliding(world.source("shop"), crate::identity::IDENTITY_PROBES_MAX);
    for expected in [Outcome::Stored, Outcome::Duplicate] {
        for draft in &drafts {
            assert_eq!(world.accept(draft).outcome, expected);
        }
    }
}
