//! What the tests of this store write and read, in few words.

use std::sync::Arc;

use hookstead_core::{
    AcceptReceipt, Acceptance, AcceptanceFacts, DestinationNumber, Event, EventFilter, EventSelector,
    Identity, Order, Outcome, Page, ProviderEventId, Register, RetryPolicy, Scope, SourceNumber, Store,
    StoreError, Write, Written,
};

use crate::backend::OPENED_AT;

/// The one source and the one destination of these tests.
pub(crate) const SHOP: SourceNumber = SourceNumber(1);
pub(crate) const APP: DestinationNumber = DestinationNumber(1);

/// Makes source and destination known.
pub(crate) fn register(store: &Arc<dyn Store>) {
    let source = Register::Source {
        name: "shop".parse().expect("a legal name"),
        identity_fingerprint: "id-v1".to_owned(),
    };
    let destination = Register::Destination {
        name: "app".parse().expect("a legal name"),
        fingerprint: "to-v1".to_owned(),
        retry: RetryPolicy::default(),
    };
    store.apply(&[Write::Register(source), Write::Register(destination)], OPENED_AT).expect("both are legal");
}

pub(crate) fn identity(id: &str) -> Identity {
    let id = ProviderEventId::new(id.as_bytes()).expect("a legal id");
    Identity { source: SHOP, scope: Scope::default(), id }
}

/// An event that is owed to [`APP`]. Its id is made of its identity, so that no two share one.
pub(crate) fn accepting(store: &Arc<dyn Store>, id: &str, body: &[u8]) -> Write {
    let key = &store.facts().identity_key;
    let identity = identity(id);
    let mut entropy = [0; 10];
    entropy.copy_from_slice(&key.hash(&identity, 0).0[..10]);
    let facts =
        AcceptanceFacts { received_at: OPENED_AT, destinations: vec![APP], ..AcceptanceFacts::default() };
    Write::Accept(Box::new(Acceptance::new(key, identity, body.to_vec().into(), facts, entropy)))
}

pub(crate) fn try_accept(store: &Arc<dyn Store>, id: &str, body: &[u8]) -> Result<AcceptReceipt, StoreError> {
    let written = store.apply(&[accepting(store, id, body)], OPENED_AT)?;
    match written.as_slice() {
        [Written::Accepted(receipt)] => Ok(*receipt),
        other => panic!("an accept was answered {other:?}"),
    }
}

pub(crate) fn accept(store: &Arc<dyn Store>, id: &str, body: &[u8]) -> Outcome {
    try_accept(store, id, body).expect("the event is accepted").outcome
}

/// Every event, the oldest first.
pub(crate) fn events(store: &Arc<dyn Store>) -> Vec<Event> {
    let page = Page::first(1_000, Order::OldestFirst);
    store.list_events(&EventFilter::default(), &page).expect("events can be listed").items
}

pub(crate) fn find(store: &Arc<dyn Store>, id: &str) -> Event {
    let selector = EventSelector::Identity(identity(id));
    store.event(&selector).expect("events can be read").expect("the event is there")
}

/// What a check names, in words.
pub(crate) fn problems(store: &Arc<dyn Store>) -> Vec<String> {
    let report = store.check(&mut |_| ()).expect("the check runs to its end");
    report.problems.into_iter().map(|problem| problem.what).collect()
}
