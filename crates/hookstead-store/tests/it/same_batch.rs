//! One batch: the ids of its events are written together, after them, and whoever looks for one finds it all the same.

use std::sync::Arc;
use std::time::Duration;

use hookstead_core::{
    Acceptance, AcceptanceFacts, Claim, Decision, DeliveryId, EventId, EventSelector, Extend, Extension,
    LeaseToken, Outcome, RecordRun, Resolve, Resolved, RunOutcome, Settle, Settled, Settlement, Store,
    StoreError, Subject, Verdict, Write, Written,
};
use hookstead_store::sqlite_effect;

use crate::backend::{Folder, OPENED_AT};
use crate::case::cases;
use crate::scene::{APP, accept, accepting, events, identity, problems, register};

cases!("same_batch":
    a_settle_finds_the_event,
    a_lease_of_the_event_is_extended,
    a_run_of_the_event_is_recorded,
    a_decision_about_the_event_is_carried_out,
    a_conflict_of_the_event_becomes_an_event_that_comes_again,
    a_conflict_of_the_event_is_dismissed,
    an_effect_reads_the_id_of_the_event,
    every_event_of_a_batch_is_found_by_its_id,
    an_id_that_two_events_of_a_batch_share_fails_all_of_it,
    an_id_that_is_taken_fails_the_batch,
);

/// The token of a delivery's first lease.
const FIRST_LEASE: LeaseToken = LeaseToken(0).next();

const LEASE_FOR: Duration = Duration::from_secs(60);

struct Scene {
    _folder: Folder,
    store: Arc<dyn Store>,
}

impl Scene {
    fn new() -> Self {
        let folder = Folder::new();
        let store = folder.open().store;
        register(&store);
        Self { _folder: folder, store }
    }

    fn accepting(&self, id: &str, body: &[u8]) -> Write {
        accepting(&self.store, id, body)
    }

    /// The answers to a batch that begins with one more new event.
    fn apply<const N: usize>(&self, writes: [Write; N]) -> [Written; N] {
        let batch: Vec<Write> = [self.accepting("another", b"{}")].into_iter().chain(writes).collect();
        let mut written = self.store.apply(&batch, OPENED_AT).expect("the batch is committed");
        written.remove(0);
        assert_eq!(problems(&self.store), [] as [&str; 0]);
        written.try_into().expect("each has its answer")
    }
}

/// The id that an event has once it is stored.
fn id_of(write: &Write) -> EventId {
    let Write::Accept(acceptance) = write else { panic!("it is an accept") };
    acceptance.id()
}

/// What the event is owed to.
fn delivery_of(write: &Write) -> DeliveryId {
    DeliveryId { event: id_of(write), destination: APP, generation: 1 }
}

/// Leases the event of the batch and the one before it.
fn claiming() -> Write {
    Write::Claim(Claim { destination: APP, max: 2, lease_for: LEASE_FOR })
}

fn settling(delivery: DeliveryId, verdict: Verdict) -> Write {
    Write::Settle(Box::new(Settle { delivery, token: FIRST_LEASE, verdict, attempt: None }))
}

fn resolving(subject: Subject) -> Write {
    let decision = Decision { by: "ada".to_owned(), note: String::new(), at: OPENED_AT };
    Write::Resolve(Box::new(Resolve { subject, decision }))
}

fn outcome(written: &Written) -> Outcome {
    let Written::Accepted(receipt) = written else { panic!("an accept was answered {written:?}") };
    receipt.outcome
}

fn a_settle_finds_the_event() {
    let scene = Scene::new();
    let event = scene.accepting("evt", b"{}");
    let settle = settling(delivery_of(&event), Verdict::Done);
    let [.., settled] = scene.apply([event, claiming(), settle]);
    assert_eq!(settled, Written::Settled(Settlement::Settled(Settled::Done)));
}

fn a_lease_of_the_event_is_extended() {
    let scene = Scene::new();
    let event = scene.accepting("evt", b"{}");
    let extend = Extend { delivery: delivery_of(&event), token: FIRST_LEASE, lease_for: LEASE_FOR };
    let [.., extended] = scene.apply([event, claiming(), Write::Extend(extend)]);
    assert_eq!(extended, Written::Extended(Extension::Extended { expires_at: OPENED_AT.plus(LEASE_FOR) }));
}

fn a_run_of_the_event_is_recorded() {
    let scene = Scene::new();
    let event = scene.accepting("evt", b"{}");
    let run = RecordRun {
        event: id_of(&event),
        run: "report".parse().expect("a legal name"),
        business_id: None,
        payload: None,
    };
    let [_, recorded] = scene.apply([event, Write::RecordRun(Box::new(run))]);
    assert!(matches!(recorded, Written::RunRecorded(RunOutcome::New(_))), "{recorded:?}");
}

fn a_decision_about_the_event_is_carried_out() {
    let scene = Scene::new();
    let event = scene.accepting("evt", b"{}");
    let hold = resolving(Subject::HoldDelivery(delivery_of(&event)));
    let [_, held] = scene.apply([event, hold]);
    assert_eq!(held, Written::Resolved(Resolved::Changed));
}

/// The last accept looks for the event that was made of the conflict, and nothing but accepts came after that one.
fn a_conflict_of_the_event_becomes_an_event_that_comes_again() {
    let scene = Scene::new();
    let [event, other, again] = [&b"{}"[..], b"other", b"other"].map(|body| scene.accepting("evt", body));
    let revision = EventId::from_bytes([0xee; 16]);
    let subject =
        Subject::AcceptConflict { event: id_of(&event), variant: 1, revision, destinations: Vec::new() };
    let [stored, conflict, revised, duplicate] = scene.apply([event, other, resolving(subject), again]);
    assert_eq!([&stored, &conflict].map(outcome), [Outcome::Stored, Outcome::Conflict { variant: Some(1) }]);
    let Written::Resolved(Resolved::Revised { event, seq }) = revised else { panic!("it was {revised:?}") };
    let Written::Accepted(receipt) = duplicate else { panic!("it was {duplicate:?}") };
    assert_eq!((receipt.outcome, receipt.event, receipt.seq), (Outcome::Duplicate, event, seq));
    assert_eq!(event, revision);
}

fn a_conflict_of_the_event_is_dismissed() {
    let scene = Scene::new();
    let [event, other] = [&b"{}"[..], b"other"].map(|body| scene.accepting("evt", body));
    let dismiss = resolving(Subject::DismissConflict { event: id_of(&event), variant: 1 });
    let [.., dismissed] = scene.apply([event, other, dismiss]);
    assert_eq!(dismissed, Written::Resolved(Resolved::Changed));
}

fn an_effect_reads_the_id_of_the_event() {
    let scene = Scene::new();
    let event = scene.accepting("evt", b"{}");
    let (id, delivery) = (id_of(&event), delivery_of(&event));
    let effect = sqlite_effect(move |tx| {
        let seq: i64 =
            tx.query_row("SELECT seq FROM event_ids WHERE id = ?1", [id.as_bytes()], |row| row.get(0))?;
        if seq == 2 { Ok(()) } else { Err(format!("it is event {seq}").into()) }
    });
    let [.., settled] = scene.apply([event, claiming(), settling(delivery, Verdict::DoneWith(effect))]);
    assert_eq!(settled, Written::Settled(Settlement::Settled(Settled::Done)));
}

fn every_event_of_a_batch_is_found_by_its_id() {
    for count in [1, 3, 4, 16, 17, 53] {
        let scene = Scene::new();
        let batch: Vec<Write> = (0..count).map(|n| scene.accepting(&format!("evt_{n}"), b"{}")).collect();
        scene.store.apply(&batch, OPENED_AT).expect("all are legal");
        for write in &batch {
            let found = scene.store.event(&EventSelector::Id(id_of(write))).expect("events can be read");
            assert_eq!(found.map(|event| event.id), Some(id_of(write)), "of {count}");
        }
        assert_eq!(problems(&scene.store), [] as [&str; 0]);
    }
}

/// Events of two identities that get the same id: their hashes begin alike, and the rest was not random.
fn sharing_an_id(store: &Arc<dyn Store>) -> [Write; 2] {
    let key = &store.facts().identity_key;
    let bucket = |id: &str| key.hash(&identity(id), 0).bucket();
    let second = (0..).map(|n| format!("second_{n}")).find(|id| bucket(id) == bucket("first"));
    ["first".to_owned(), second.expect("one in 256 has it")].map(|id| {
        let facts = AcceptanceFacts { received_at: OPENED_AT, ..AcceptanceFacts::default() };
        let acceptance = Acceptance::new(key, identity(&id), "{}".into(), facts, [7; 10]);
        Write::Accept(Box::new(acceptance))
    })
}

/// That it is the failure of one write, of which others can be tried alone.
fn assert_names_the_id(failed: &StoreError) {
    assert!(failed.may_be_one_write(), "{failed}");
    assert!(format!("{failed:?}").contains("event_ids.id"), "{failed:?}");
}

fn an_id_that_two_events_of_a_batch_share_fails_all_of_it() {
    let Scene { store, _folder } = Scene::new();
    let [first, second] = sharing_an_id(&store);
    let between = (0..20).map(|n| accepting(&store, &format!("evt_{n}"), b"{}"));
    let batch: Vec<Write> = [first].into_iter().chain(between).chain([second]).collect();
    let failed = store.apply(&batch, OPENED_AT).expect_err("two events have one id");
    assert_names_the_id(&failed);
    assert_eq!(events(&store).len(), 0, "nothing of it was kept");
    // One by one, as a batch is run again.
    let alone: Vec<_> = batch.chunks(1).map(|write| store.apply(write, OPENED_AT)).collect();
    let (last, others) = alone.split_last().expect("there are some");
    assert_names_the_id(last.as_ref().expect_err("the id is taken"));
    let stored = |answer: &Result<Vec<Written>, StoreError>| {
        answer.as_ref().is_ok_and(|written| outcome(&written[0]) == Outcome::Stored)
    };
    assert!(others.iter().all(stored), "{others:?}");
    assert_eq!(events(&store).len(), 21);
    assert_eq!(problems(&store), [] as [&str; 0]);
}

fn an_id_that_is_taken_fails_the_batch() {
    let Scene { store, _folder } = Scene::new();
    let [first, second] = sharing_an_id(&store);
    store.apply(&[first], OPENED_AT).expect("it is the first");
    let batch = [second, accepting(&store, "evt", b"{}")];
    assert_names_the_id(&store.apply(&batch, OPENED_AT).expect_err("the id is taken"));
    assert_eq!(events(&store).len(), 1, "nothing of it was kept");
    assert_eq!(accept(&store, "evt", b"{}"), Outcome::Stored, "its identity is free");
}
