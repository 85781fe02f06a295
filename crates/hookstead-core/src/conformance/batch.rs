//! Batches: writes of one commit, as if one after the other, and all or none of them.

use super::case::list;
use super::draft::Draft;
use super::world::{LEASE, SECOND, World, first_delivery, leases, plan, receipt, settling};
use crate::effect::Effect;
use crate::error::StoreError;
use crate::event::{Decision, Outcome};
use crate::id::{DeliveryId, DestinationNumber, Seq, SourceNumber};
use crate::lease::{Settled, Settlement, Verdict};
use crate::query::DeliveryFilter;
use crate::retention::RetentionRule;
use crate::retry::RetryPolicy;
use crate::store::{Claim, Redeliver, Register, Resolve, Resolved, Settle, Subject, Sweep, Write, Written};

list!("batch":
    a_batch_of_nothing_has_no_answers,
    events_of_one_batch_are_numbered_in_its_order,
    a_duplicate_within_a_batch_names_the_event_before_it,
    a_conflict_within_a_batch_names_the_event_before_it,
    a_claim_sees_an_event_accepted_before_it_in_its_batch,
    a_claim_does_not_see_an_event_accepted_after_it_in_its_batch,
    a_claim_takes_what_was_due_before_what_its_batch_made,
    claims_share_what_their_batch_made,
    what_its_batch_made_is_claimed_in_the_order_of_events_also_beside_a_redelivery,
    a_lease_of_an_event_of_its_own_batch_can_be_settled_in_it,
    two_claims_of_one_batch_never_take_the_same_delivery,
    a_lease_can_be_claimed_and_settled_in_one_batch,
    a_claim_sees_a_settle_before_it_in_its_batch,
    a_claim_after_a_pause_in_its_batch_gets_no_lease,
    a_settle_after_a_register_in_its_batch_follows_the_new_policy,
    a_sweep_sees_a_settle_before_it_in_its_batch,
    two_steps_of_one_redelivery_in_one_batch_follow_each_other,
    a_decision_sees_an_event_accepted_before_it_in_its_batch,
    refused_writes_of_a_batch_leave_the_others_in_force,
    an_unknown_source_fails_the_whole_batch,
    an_unknown_destination_of_an_event_fails_the_whole_batch,
    an_unknown_destination_of_a_claim_fails_the_whole_batch,
    an_unknown_destination_of_a_redelivery_fails_the_whole_batch,
    an_unknown_destination_of_a_revision_fails_the_whole_batch,
    an_unknown_source_of_a_sweep_fails_the_whole_batch,
    an_effect_for_another_kind_of_store_fails_the_whole_batch,
    an_effect_that_the_store_does_not_know_fails_the_whole_batch,
    a_store_works_on_after_a_batch_that_failed,
    a_large_batch_is_carried_out_whole,
);

fn accepting(world: &World, id: &str, body: &str, to: &[DestinationNumber]) -> Write {
    world.accepting(&Draft::new(world.source("shop"), id, body).owed_to(to.iter().copied()))
}

fn claiming(destination: DestinationNumber, max: u16) -> Write {
    Write::Claim(Claim { destination, max, lease_for: LEASE })
}

fn resolving(world: &World, subject: Subject) -> Write {
    Write::Resolve(Box::new(Resolve { subject, decision: world.decision() }))
}

fn sweeping(source: SourceNumber, world: &World) -> Write {
    let finished_before = Some(world.now().plus(SECOND));
    let rule = RetentionRule { source, finished_before, unfinished_before: None };
    Write::Sweep(Sweep { retention: vec![rule], max: 10 })
}

fn a_batch_of_nothing_has_no_answers(world: &mut World) {
    assert_eq!(world.apply(&[]), []);
}

fn events_of_one_batch_are_numbered_in_its_order(world: &mut World) {
    let writes = ["z", "a", "m"].map(|id| accepting(world, id, id, &[]));
    let receipts: Vec<_> = world.apply(&writes).iter().map(receipt).collect();
    assert!(receipts.is_sorted_by(|one, next| one.seq < next.seq), "{receipts:?}");
    let ids = world.events().iter().map(|event| event.identity.id.to_string()).collect::<Vec<_>>();
    assert_eq!(ids, ["z", "a", "m"]);
}

fn a_duplicate_within_a_batch_names_the_event_before_it(world: &mut World) {
    let writes = [1, 2, 3].map(|_| accepting(world, "evt_1", "{}", &[]));
    let receipts: Vec<_> = world.apply(&writes).iter().map(receipt).collect();
    let outcomes: Vec<_> = receipts.iter().map(|receipt| receipt.outcome).collect();
    assert_eq!(outcomes, [Outcome::Stored, Outcome::Duplicate, Outcome::Duplicate]);
    assert!(receipts.iter().all(|receipt| receipt.event == receipts[0].event));
    assert_eq!(world.event(receipts[0].event).duplicates.count, 2);
}

fn a_conflict_within_a_batch_names_the_event_before_it(world: &mut World) {
    let writes = ["one", "two", "one", "three"].map(|body| accepting(world, "evt_1", body, &[]));
    let receipts: Vec<_> = world.apply(&writes).iter().map(receipt).collect();
    let outcomes: Vec<_> = receipts.iter().map(|receipt| receipt.outcome).collect();
    let conflict = |variant| Outcome::Conflict { variant: Some(variant) };
    assert_eq!(outcomes, [Outcome::Stored, conflict(1), Outcome::Duplicate, conflict(2)]);
    assert!(receipts.iter().all(|receipt| receipt.event == receipts[0].event));
}

fn a_claim_sees_an_event_accepted_before_it_in_its_batch(world: &mut World) {
    let to = world.destination("app");
    let written = world.apply(&[accepting(world, "evt_1", "{}", &[to]), claiming(to, 10)]);
    let claimed = leases(&written[1]);
    assert_eq!(claimed.len(), 1);
    assert_eq!(claimed[0].delivery, first_delivery(receipt(&written[0]).event, to));
}

fn a_claim_does_not_see_an_event_accepted_after_it_in_its_batch(world: &mut World) {
    let to = world.destination("app");
    let written = world.apply(&[claiming(to, 10), accepting(world, "evt_1", "{}", &[to])]);
    assert_eq!(leases(&written[0]), []);
    assert_eq!(world.claim(to, 10).len(), 1);
}

fn claimed(written: &Written) -> Vec<DeliveryId> {
    leases(written).iter().map(|lease| lease.delivery).collect()
}

fn a_claim_takes_what_was_due_before_what_its_batch_made(world: &mut World) {
    let to = world.destination("app");
    let before = ["a", "b"].map(|id| world.owe(id, to));
    let written = world.apply(&[accepting(world, "c", "{}", &[to]), claiming(to, 1), claiming(to, 2)]);
    let made = first_delivery(receipt(&written[0]).event, to);
    assert_eq!((claimed(&written[1]), claimed(&written[2])), (vec![before[0]], vec![before[1], made]));
}

fn claims_share_what_their_batch_made(world: &mut World) {
    let (app, other) = (world.destination("app"), world.destination("other"));
    let mut writes: Vec<_> = ["a", "b", "c"].map(|id| accepting(world, id, "{}", &[app, other])).into();
    writes.extend([claiming(app, 2), claiming(other, 1), claiming(app, 2), claiming(app, 2)]);
    let written = world.apply(&writes);
    let events: Vec<_> = written[..3].iter().map(|written| receipt(written).event).collect();
    let [a, b, c] = [0, 1, 2].map(|place: usize| first_delivery(events[place], app));
    let expected = [vec![a, b], vec![first_delivery(events[0], other)], vec![c], vec![]];
    assert_eq!(written[3..].iter().map(claimed).collect::<Vec<_>>(), expected);
    let later = world.claim(other, 10).into_iter().map(|lease| lease.delivery).collect::<Vec<_>>();
    assert_eq!(later, [events[1], events[2]].map(|event| first_delivery(event, other)));
}

fn what_its_batch_made_is_claimed_in_the_order_of_events_also_beside_a_redelivery(world: &mut World) {
    let to = world.destination("app");
    let old = world.accept_owed("old", &[]).event;
    let step = Redeliver { plan: plan(1, to), only: None, events_max: 1 };
    let written = world.apply(&[
        accepting(world, "a", "{}", &[to]),
        Write::Redeliver(Box::new(step)),
        accepting(world, "b", "{}", &[to]),
        claiming(to, 2),
        claiming(to, 2),
    ]);
    let [a, b] = [0, 2].map(|place: usize| first_delivery(receipt(&written[place]).event, to));
    let seen = (claimed(&written[3]), claimed(&written[4]));
    assert_eq!(seen, (vec![first_delivery(old, to), a], vec![b]));
}

fn a_lease_of_an_event_of_its_own_batch_can_be_settled_in_it(world: &mut World) {
    let to = world.destination("app");
    let acceptance = world.acceptance(&Draft::new(world.source("shop"), "evt_1", "{}").owed_to([to]));
    let delivery = first_delivery(acceptance.id(), to);
    let token = crate::LeaseToken(0).next();
    let settle = Settle { delivery, token, verdict: Verdict::Retry { at: world.now() }, attempt: None };
    let written = world.apply(&[
        Write::Accept(Box::new(acceptance)),
        claiming(to, 1),
        Write::Settle(Box::new(settle)),
        claiming(to, 1),
    ]);
    assert_eq!(claimed(&written[1]), [delivery]);
    assert!(
        matches!(written[2], Written::Settled(Settlement::Settled(Settled::Retry { .. }))),
        "{written:?}"
    );
    // The policy allows three attempts, and this one is due at once.
    assert_eq!(claimed(&written[3]), [delivery]);
    assert_eq!(world.delivery(delivery).attempts, 2);
}

fn two_claims_of_one_batch_never_take_the_same_delivery(world: &mut World) {
    let to = world.destination("app");
    let ids = ["a", "b", "c"].map(|id| world.owe(id, to));
    let written = world.apply(&[claiming(to, 2), claiming(to, 2), claiming(to, 2)]);
    let claimed: Vec<Vec<_>> =
        written.iter().map(|written| leases(written).iter().map(|lease| lease.delivery).collect()).collect();
    assert_eq!(claimed, [ids[..2].to_vec(), ids[2..].to_vec(), vec![]]);
}

fn a_lease_can_be_claimed_and_settled_in_one_batch(world: &mut World) {
    let to = world.destination("app");
    let delivery = world.owe("evt_1", to);
    let token = world.delivery(delivery).token.next();
    let settle = Settle { delivery, token, verdict: Verdict::Done, attempt: None };
    let written = world.apply(&[claiming(to, 1), Write::Settle(Box::new(settle))]);
    assert_eq!(leases(&written[0])[0].token, token);
    assert_eq!(written[1], Written::Settled(Settlement::Settled(Settled::Done)));
}

fn a_claim_sees_a_settle_before_it_in_its_batch(world: &mut World) {
    let to = world.destination("app");
    world.owe("evt_1", to);
    let lease = world.claim_one(to);
    let written = world.apply(&[claiming(to, 1), settling(&lease, Verdict::Release, None), claiming(to, 1)]);
    assert_eq!((leases(&written[0]).len(), leases(&written[2]).len()), (0, 1));
    assert!(leases(&written[2])[0].token > lease.token);
}

fn a_claim_after_a_pause_in_its_batch_gets_no_lease(world: &mut World) {
    let to = world.destination("app");
    for id in ["a", "b"] {
        world.owe(id, to);
    }
    let pause = resolving(world, Subject::PauseDestination(to));
    let resume = resolving(world, Subject::ResumeDestination(to));
    let written = world.apply(&[claiming(to, 1), pause, claiming(to, 1), resume, claiming(to, 1)]);
    let counts = [0, 2, 4].map(|place: usize| leases(&written[place]).len());
    assert_eq!(counts, [1, 0, 1]);
}

fn a_settle_after_a_register_in_its_batch_follows_the_new_policy(world: &mut World) {
    let to = world.destination("app");
    world.owe("evt_1", to);
    let lease = world.claim_one(to);
    let retry = RetryPolicy { attempts_max: 1, ..super::world::policy() };
    let name = "app".parse().expect("a destination name");
    let register = Write::Register(Register::Destination { name, fingerprint: "to-v1".into(), retry });
    let written = world.apply(&[register, settling(&lease, Verdict::Retry { at: world.now() }, None)]);
    let used_up = Settled::Dead(crate::DeadReason::AttemptsUsedUp);
    assert_eq!(written[1], Written::Settled(Settlement::Settled(used_up)));
}

fn a_sweep_sees_a_settle_before_it_in_its_batch(world: &mut World) {
    let to = world.destination("app");
    world.owe("evt_1", to);
    let lease = world.claim_one(to);
    let sweep = sweeping(world.source("shop"), world);
    let written = world.apply(&[sweep.clone(), settling(&lease, Verdict::Done, None), sweep]);
    let erased = [0, 2].map(|place: usize| match &written[place] {
        Written::Swept(swept) => swept.erased,
        other => panic!("a sweep was answered {other:?}"),
    });
    assert_eq!(erased, [0, 1]);
}

fn two_steps_of_one_redelivery_in_one_batch_follow_each_other(world: &mut World) {
    let to = world.destination("app");
    for id in ["a", "b", "c"] {
        world.accept_owed(id, &[]);
    }
    let step = Write::Redeliver(Box::new(Redeliver { plan: plan(1, to), only: None, events_max: 1 }));
    let written = world.apply(&[step.clone(), step]);
    let cursors: Vec<_> = written
        .iter()
        .map(|written| match written {
            Written::Redelivered(redelivery) => (redelivery.cursor, redelivery.made),
            other => panic!("a redelivery was answered {other:?}"),
        })
        .collect();
    assert_eq!(cursors, [(Seq(1), 1), (Seq(2), 2)]);
}

fn a_decision_sees_an_event_accepted_before_it_in_its_batch(world: &mut World) {
    let to = world.destination("app");
    let acceptance = world.acceptance(&Draft::new(world.source("shop"), "evt_1", "{}").owed_to([to]));
    let hold = resolving(world, Subject::HoldDelivery(first_delivery(acceptance.id(), to)));
    let written = world.apply(&[Write::Accept(Box::new(acceptance)), hold, claiming(to, 1)]);
    assert_eq!(written[1..], [Written::Resolved(Resolved::Changed), Written::Claimed(vec![])]);
}

fn refused_writes_of_a_batch_leave_the_others_in_force(world: &mut World) {
    let to = world.destination("app");
    let delivery = world.owe("evt_1", to);
    let unknown = first_delivery(crate::EventId::from_bytes([0xee; 16]), to);
    let lost = Settle { delivery, token: crate::LeaseToken(9), verdict: Verdict::Done, attempt: None };
    let decision = Decision { by: "ada".into(), note: String::new(), at: world.now() };
    let hold = Resolve { subject: Subject::HoldDelivery(unknown), decision };
    let written = world.apply(&[
        Write::Settle(Box::new(lost)),
        Write::Resolve(Box::new(hold)),
        accepting(world, "evt_1", "other", &[]),
        accepting(world, "evt_2", "{}", &[]),
    ]);
    assert_eq!(written[0], Written::Settled(Settlement::LeaseLost));
    assert_eq!(written[1], Written::Resolved(Resolved::Unknown));
    assert_eq!(receipt(&written[2]).outcome, Outcome::Conflict { variant: Some(1) });
    assert_eq!(receipt(&written[3]).outcome, Outcome::Stored);
    assert_eq!(world.events().len(), 2);
}

/// Applies good writes around a bad one, and the same in the other order: the batch must fail and leave nothing.
fn check_fails_whole(world: &World, bad: &Write) {
    let to = world.destination("good");
    world.owe("held_before", to);
    let before = world.picture();
    let good =
        [accepting(world, "good", "{}", &[to]), claiming(to, 10), accepting(world, "other", "{}", &[])];
    for place in 0..=good.len() {
        let mut writes = good.to_vec();
        writes.insert(place, bad.clone());
        let result = world.try_apply(&writes);
        assert!(matches!(result, Err(StoreError::Backend { .. })), "place {place}: {result:?}");
        assert_eq!(world.picture(), before, "place {place}");
    }
    assert_eq!(world.apply(&good).len(), 3, "the good writes are good by themselves");
}

const NOBODY: DestinationNumber = DestinationNumber(4_000);
const NOWHERE: SourceNumber = SourceNumber(4_000);

fn an_unknown_source_fails_the_whole_batch(world: &mut World) {
    check_fails_whole(world, &world.accepting(&Draft::new(NOWHERE, "evt_1", "{}")));
}

fn an_unknown_destination_of_an_event_fails_the_whole_batch(world: &mut World) {
    let known = world.destination("app");
    check_fails_whole(world, &accepting(world, "evt_1", "{}", &[known, NOBODY]));
}

fn an_unknown_destination_of_a_claim_fails_the_whole_batch(world: &mut World) {
    check_fails_whole(world, &claiming(NOBODY, 1));
}

fn an_unknown_destination_of_a_redelivery_fails_the_whole_batch(world: &mut World) {
    let step = Redeliver { plan: plan(1, NOBODY), only: None, events_max: 1 };
    check_fails_whole(world, &Write::Redeliver(Box::new(step)));
}

fn an_unknown_destination_of_a_revision_fails_the_whole_batch(world: &mut World) {
    let event = world.accept_owed("evt_1", &[]).event;
    world.accept(&Draft::new(world.source("shop"), "evt_1", "other"));
    check_fails_whole(world, &resolving(world, world.revising(event, 1, &[NOBODY])));
}

fn an_unknown_source_of_a_sweep_fails_the_whole_batch(world: &mut World) {
    check_fails_whole(world, &sweeping(NOWHERE, world));
}

fn check_refuses_effects_for(world: &World, kind: &'static str) {
    let to = world.destination("app");
    world.owe("evt_1", to);
    let effect = Effect::new(kind, "not what any store runs");
    check_fails_whole(world, &settling(&world.claim_one(to), Verdict::DoneWith(effect), None));
}

fn an_effect_for_another_kind_of_store_fails_the_whole_batch(world: &mut World) {
    check_refuses_effects_for(world, "another");
}

fn an_effect_that_the_store_does_not_know_fails_the_whole_batch(world: &mut World) {
    check_refuses_effects_for(world, world.store().facts().kind);
}

fn a_store_works_on_after_a_batch_that_failed(world: &mut World) {
    let to = world.destination("app");
    world.owe("evt_1", to);
    world.try_apply(&[accepting(world, "evt_2", "{}", &[]), claiming(NOBODY, 1)]).expect_err("nobody");
    assert_eq!(world.accept_owed("evt_2", &[to]).outcome, Outcome::Stored);
    assert_eq!(world.claim(to, 10).len(), 2);
}

fn a_large_batch_is_carried_out_whole(world: &mut World) {
    let to = world.destination("app");
    let mut writes = Vec::new();
    for number in 0..512 {
        writes.push(accepting(world, &format!("evt_{}", number % 300), "{}", &[to]));
        if number % 64 == 63 {
            writes.push(claiming(to, 10));
        }
    }
    let written = world.apply(&writes);
    let stored = |written: &&Written| match written {
        Written::Accepted(receipt) => receipt.outcome == Outcome::Stored,
        _ => false,
    };
    assert_eq!(written.iter().filter(stored).count(), 300);
    assert_eq!((world.events().len(), world.event(receipt(&written[0]).event).duplicates.count), (300, 1));
    let leased = DeliveryFilter { state: Some(crate::StateName::Leased), ..DeliveryFilter::default() };
    assert_eq!(world.deliveries(&leased).len(), 80);
}
