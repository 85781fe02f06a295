//! Register: the stable numbers behind names, and what is remembered of each name's rule.

use super::case::list;
use super::draft::Draft;
use super::scene::dead;
use super::world::{World, policy};
use crate::id::{DestinationNumber, SourceNumber};
use crate::lease::{Settled, Settlement, Verdict};
use crate::retry::RetryPolicy;
use crate::store::{DestinationRow, Register, Registered, Registry, SourceRow, Subject};

list!("register":
    numbers_are_given_out_from_one_for_each_kind,
    the_same_name_has_the_same_number,
    the_same_source_again_changes_nothing,
    another_fingerprint_of_a_source_is_a_new_generation_and_names_the_previous,
    the_same_destination_again_changes_nothing,
    another_fingerprint_or_policy_of_a_destination_is_a_new_generation,
    a_new_policy_is_in_force_for_deliveries_that_exist,
    a_paused_destination_stays_paused,
    another_fingerprint_of_a_source_keeps_its_events,
    policies_come_back_exactly,
    the_registry_lists_rows_by_number,
    an_empty_store_has_an_empty_registry,
);

fn registry(world: &World) -> Registry {
    world.store().registry().expect("the registry can be read")
}

fn register_source(world: &World, name: &str, fingerprint: &str) -> (SourceRow, Option<String>) {
    let name = name.parse().expect("a source name");
    match world.register(Register::Source { name, identity_fingerprint: fingerprint.into() }) {
        Registered::Source { row, previous_fingerprint } => (row, previous_fingerprint),
        other @ Registered::Destination(_) => panic!("a source was registered as {other:?}"),
    }
}

fn register_destination(world: &World, name: &str, fingerprint: &str, retry: RetryPolicy) -> DestinationRow {
    let name = name.parse().expect("a destination name");
    match world.register(Register::Destination { name, fingerprint: fingerprint.into(), retry }) {
        Registered::Destination(row) => row,
        other @ Registered::Source { .. } => panic!("a destination was registered as {other:?}"),
    }
}

fn numbers_are_given_out_from_one_for_each_kind(world: &mut World) {
    assert_eq!(["b", "a"].map(|name| world.source(name)), [1, 2].map(SourceNumber));
    assert_eq!(["b", "a"].map(|name| world.destination(name)), [1, 2].map(DestinationNumber));
}

fn the_same_name_has_the_same_number(world: &mut World) {
    let first = ["a", "b", "c"].map(|name| (world.source(name), world.destination(name)));
    let again = ["a", "b", "c"].map(|name| (world.source(name), world.destination(name)));
    assert_eq!(first, again);
}

fn the_same_source_again_changes_nothing(world: &mut World) {
    let first = register_source(world, "shop", "v1");
    let row = SourceRow {
        number: SourceNumber(1),
        name: "shop".parse().expect("a source name"),
        generation: 1,
        identity_fingerprint: "v1".into(),
    };
    assert_eq!(first, (row, None));
    assert_eq!(register_source(world, "shop", "v1"), first);
}

fn another_fingerprint_of_a_source_is_a_new_generation_and_names_the_previous(world: &mut World) {
    let (first, _) = register_source(world, "shop", "v1");
    let second = SourceRow { generation: 2, identity_fingerprint: "v2".into(), ..first.clone() };
    assert_eq!(register_source(world, "shop", "v2"), (second.clone(), Some("v1".into())));
    assert_eq!(register_source(world, "shop", "v2"), (second, None));
    let third = SourceRow { generation: 3, ..first };
    assert_eq!(register_source(world, "shop", "v1"), (third, Some("v2".into())));
}

fn the_same_destination_again_changes_nothing(world: &mut World) {
    let row = DestinationRow {
        number: DestinationNumber(1),
        name: "app".parse().expect("a destination name"),
        generation: 1,
        fingerprint: "v1".into(),
        retry: policy(),
        paused: false,
    };
    assert_eq!(register_destination(world, "app", "v1", policy()), row);
    assert_eq!(register_destination(world, "app", "v1", policy()), row);
}

fn another_fingerprint_or_policy_of_a_destination_is_a_new_generation(world: &mut World) {
    let first = register_destination(world, "app", "v1", policy());
    let second = register_destination(world, "app", "v2", policy());
    assert_eq!(second, DestinationRow { generation: 2, fingerprint: "v2".into(), ..first });
    let retry = RetryPolicy { jitter_percent: 1, ..policy() };
    let third = register_destination(world, "app", "v2", retry.clone());
    assert_eq!(third, DestinationRow { generation: 3, retry, ..second });
    assert_eq!(registry(world).destinations, [third]);
}

fn a_new_policy_is_in_force_for_deliveries_that_exist(world: &mut World) {
    let to = world.destination("app");
    for id in ["a", "b"] {
        world.owe(id, to);
    }
    let leases = world.claim(to, 2);
    world.destination_with("app", RetryPolicy { attempts_max: 1, ..policy() });
    let retry = Verdict::Retry { at: world.now() };
    let used_up = Settlement::Settled(Settled::Dead(crate::DeadReason::AttemptsUsedUp));
    assert_eq!(world.settle(&leases[0], retry.clone()), used_up);
    world.destination_with("app", RetryPolicy { attempts_max: 2, ..policy() });
    assert_eq!(world.settle(&leases[1], retry), Settlement::Settled(Settled::Retry { due: world.now() }));
}

fn a_paused_destination_stays_paused(world: &mut World) {
    let to = world.destination("app");
    world.owe("evt_1", to);
    world.resolve(Subject::PauseDestination(to));
    assert!(register_destination(world, "app", "another", policy()).paused);
    assert_eq!(world.claim(to, 10), []);
}

fn another_fingerprint_of_a_source_keeps_its_events(world: &mut World) {
    let (row, _) = register_source(world, "shop", "v1");
    let draft = Draft::new(row.number, "evt_1", "{}");
    let first = world.accept(&draft);
    register_source(world, "shop", "v2");
    let again = world.accept(&draft);
    assert_eq!((again.outcome, again.event), (crate::Outcome::Duplicate, first.event));
}

fn policies_come_back_exactly(world: &mut World) {
    let policies = [
        RetryPolicy::default(),
        RetryPolicy { schedule_s: vec![], attempts_max: 0, age_max_s: 0, jitter_percent: 0 },
        RetryPolicy {
            schedule_s: vec![u32::MAX; 64],
            attempts_max: u32::MAX,
            age_max_s: u32::MAX,
            jitter_percent: u8::MAX,
        },
    ];
    for (name, retry) in ["a", "b", "c"].into_iter().zip(&policies) {
        world.destination_with(name, retry.clone());
    }
    let kept: Vec<_> = registry(world).destinations.into_iter().map(|row| row.retry).collect();
    assert_eq!(kept, policies);
    world.owe("evt_1", DestinationNumber(3));
    world.settle(&world.claim_one(DestinationNumber(3)), dead());
}

fn the_registry_lists_rows_by_number(world: &mut World) {
    for name in ["z", "a", "m"] {
        world.source(name);
        world.destination(name);
    }
    let Registry { sources, destinations } = registry(world);
    assert_eq!(sources.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["z", "a", "m"]);
    assert_eq!(destinations.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["z", "a", "m"]);
    assert_eq!(sources.iter().map(|row| row.number.0).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(destinations.iter().map(|row| row.number.0).collect::<Vec<_>>(), [1, 2, 3]);
}

fn an_empty_store_has_an_empty_registry(world: &mut World) {
    assert_eq!(registry(world), Registry::default());
}
