//! The line of a request without HTTP: authenticate, identify, accept.

use std::sync::Arc;

use bytes::Bytes;
use hookstead::core::{
    Clock, EventFilter, EventSelector, ManualClock, Order, Page, QUERY_BYTES_MAX, RawQueryError, Timestamp,
};
use hookstead::verify::{Reason, Registry, Secret, SignRequest, SignedRequest};
use hookstead::{Inbox, Incoming, Outcome, Received, Refusal, Source, SourceOptions};

use crate::stores::{on_every_store, recorded};

const KEY: &str = "0123456789abcdef";
const NOW: Timestamp = Timestamp::from_secs(1_770_000_000);

fn source(provider: &str) -> Source {
    let provider = Registry::builtin().get(provider).unwrap().clone();
    let secret = Secret::new(KEY).unwrap();
    Source::new("conf".parse().unwrap(), provider, &[secret], SourceOptions::default()).unwrap()
}

fn signed(provider: &str, id: &str, body: &str, at: Timestamp) -> SignedRequest {
    let request = SignRequest {
        method: "POST",
        url: "http://127.0.0.1/in/conf",
        body: body.as_bytes(),
        content_type: "application/json",
        event_id: id,
        event_type: Some("report.ready"),
        secret: Some(&Secret::new(KEY).unwrap()),
        now_unix_micros: at.as_micros(),
    };
    Registry::builtin().get(provider).unwrap().sign(&request).unwrap()
}

fn receive(inbox: &Inbox, request: &SignedRequest) -> Result<Received, Refusal> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let incoming = Incoming {
        method: &request.method,
        target: request.target(),
        headers: &request.headers,
        body: Bytes::copy_from_slice(&request.body),
        received_from: Some("192.0.2.7".to_owned()),
    };
    runtime.block_on(inbox.receive(&inbox.source("conf").unwrap(), incoming))
}

fn outcome(inbox: &Inbox, request: &SignedRequest) -> Outcome {
    match receive(inbox, request).unwrap() {
        Received::Accepted(receipt) => receipt.outcome,
        Received::Handshake(answer) => panic!("not an event: {answer:?}"),
    }
}

fn is_empty(inbox: &Inbox) -> bool {
    let page = Page::first(1, Order::OldestFirst);
    inbox.store().list_events(&EventFilter::default(), &page).unwrap().items.is_empty()
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(NOW))
}

#[test]
fn a_signed_request_is_stored_then_a_duplicate_then_a_conflict() {
    on_every_store(|builder| {
        let inbox = builder.source(source("signed-inbox")).clock(clock()).open().unwrap();
        let first = signed("signed-inbox", "delivery-1", "one", NOW);
        let other = signed("signed-inbox", "delivery-1", "two", NOW);
        assert_eq!(outcome(&inbox, &first), Outcome::Stored);
        assert_eq!(outcome(&inbox, &first), Outcome::Duplicate);
        assert_eq!(outcome(&inbox, &other), Outcome::Conflict { variant: Some(1) });
        assert_eq!(outcome(&inbox, &first), Outcome::Duplicate);
    });
}

#[test]
fn what_is_not_genuine_leaves_nothing() {
    on_every_store(|builder| {
        let inbox = builder.source(source("signed-inbox")).clock(clock()).open().unwrap();
        let mut altered = signed("signed-inbox", "delivery-1", "one", NOW);
        altered.body[0] ^= 1;
        let stale = signed("signed-inbox", "delivery-1", "one", Timestamp::from_secs(NOW.as_secs() - 301));
        for (request, reason) in [(altered, Reason::SignatureDiffers), (stale, Reason::TooOld)] {
            let refused = receive(&inbox, &request);
            assert!(matches!(&refused, Err(Refusal::Rejected(rejection)) if rejection.reason == reason));
        }
        assert!(is_empty(&inbox));
    });
}

#[test]
fn a_genuine_request_without_an_id_is_no_event() {
    on_every_store(|builder| {
        let inbox = builder.source(source("stripe")).clock(clock()).open().unwrap();
        let request = signed("stripe", "evt_1", r#"{"type":"report.ready"}"#, NOW);
        assert!(matches!(receive(&inbox, &request), Err(Refusal::Unidentified(_))));
        assert!(is_empty(&inbox));
    });
}

#[test]
fn what_the_provider_said_is_kept_with_the_event() {
    on_every_store(|builder| {
        let clock = clock();
        let inbox = builder.source(source("stripe")).clock(clock.clone()).open().unwrap();
        let request = signed("stripe", "evt_1", r#"{"id":"evt_1","type":"report.ready"}"#, NOW);
        assert_eq!(outcome(&inbox, &request), Outcome::Stored);
        let event = inbox.store().event(&EventSelector::Newest).unwrap().unwrap();
        assert_eq!(event.event_type.as_deref(), Some("report.ready"));
        assert_eq!(event.received_from.as_deref(), Some("192.0.2.7"));
        assert_eq!(event.received_at, clock.now());
        assert!(event.headers.value("stripe-signature").is_some());
        assert!(event.verified_by.unwrap().ends_with("cdef"), "the secret's end names it");
    });
}

#[test]
fn a_header_that_is_the_secret_is_never_stored() {
    on_every_store(|builder| {
        let inbox = builder.source(source("gitlab")).clock(clock()).open().unwrap();
        let headers: [(&str, &str); 5] = [
            ("X-Gitlab-Token", KEY),
            ("Idempotency-Key", "id-1"),
            ("X-Gitlab-Event", "Push Hook"),
            ("Authorization", KEY),
            ("Cookie", KEY),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec())).to_vec();
        let mut request = signed("signed-inbox", "id-1", "{}", NOW);
        request.headers = headers;
        assert_eq!(outcome(&inbox, &request), Outcome::Stored);
        let event = inbox.store().event(&EventSelector::Newest).unwrap().unwrap();
        assert_eq!(event.headers.fields().count(), 2);
        assert!(!event.headers.as_block().windows(KEY.len()).any(|window| window == KEY.as_bytes()));
    });
}

/// A signed event whose target has this query, at a source of this provider.
fn with_query(provider: &str, id: &str, query: &str) -> SignedRequest {
    let mut request = signed(provider, id, &format!(r#"{{"id":"{id}"}}"#), NOW);
    request.url = format!("{}?{query}", request.url);
    request
}

fn kept_query(inbox: &Inbox) -> Option<String> {
    let event = inbox.store().event(&EventSelector::Newest).unwrap().unwrap();
    event.headers.query().map(|query| String::from_utf8_lossy(query.as_bytes()).into_owned())
}

#[test]
fn b049_the_query_is_kept_with_the_event() {
    on_every_store(|builder| {
        let inbox = builder.source(source("stripe")).clock(clock()).open().unwrap();
        for (id, query, kept) in [
            ("evt_1", "data.id=ORD01ABC&type=order", Some("data.id=ORD01ABC&type=order")),
            ("evt_2", "a=%20?b&&c=:;&", Some("a=%20?b&&c=:;&")),
            ("evt_3", "", None),
        ] {
            assert_eq!(outcome(&inbox, &with_query("stripe", id, query)), Outcome::Stored);
            assert_eq!(kept_query(&inbox).as_deref(), kept);
        }
        let without = signed("stripe", "evt_4", r#"{"id":"evt_4"}"#, NOW);
        assert_eq!(outcome(&inbox, &without), Outcome::Stored);
        assert_eq!(kept_query(&inbox), None);
    });
}

#[test]
fn a_secret_in_the_query_is_never_stored() {
    on_every_store(|builder| {
        let inbox = builder.source(source("stripe")).clock(clock()).open().unwrap();
        let query = format!("a=1&TOKEN={KEY}&%73ig={KEY}&api_key={KEY}&b=2");
        assert_eq!(outcome(&inbox, &with_query("stripe", "evt_1", &query)), Outcome::Stored);
        assert_eq!(kept_query(&inbox).as_deref(), Some("a=1&b=2"));
        assert_eq!(
            outcome(&inbox, &with_query("stripe", "evt_2", &format!("secret={KEY}"))),
            Outcome::Stored
        );
        assert_eq!(kept_query(&inbox), None);
        let query =
            format!("X-Amz-Signature={KEY}&code=7&clientSecret={KEY}&hub.verify_token={KEY}&tokens=3");
        assert_eq!(outcome(&inbox, &with_query("stripe", "evt_3", &query)), Outcome::Stored);
        assert_eq!(kept_query(&inbox).as_deref(), Some("code=7&tokens=3"));
    });
}

/// What proves a request goes, whatever its provider calls it.
#[test]
fn a_proof_in_the_query_is_never_stored() {
    on_every_store(|builder| {
        let inbox = builder.source(source("azure-eventgrid")).clock(clock()).open().unwrap();
        let mut request = with_query("stripe", "evt_1", &format!("code={KEY}&topic=a"));
        request.headers = vec![("aeg-event-type".to_owned(), b"Notification".to_vec())];
        request.body = br#"[{"id":"evt_1","eventType":"a.b","topic":"t"}]"#.to_vec();
        assert_eq!(outcome(&inbox, &request), Outcome::Stored);
        assert_eq!(kept_query(&inbox).as_deref(), Some("topic=a"));
    });
}

#[test]
fn a_query_that_cannot_be_kept_is_refused_before_anything_is_looked_at() {
    on_every_store(|builder| {
        let inbox = builder.source(source("stripe")).clock(clock()).open().unwrap();
        let longest = "q".repeat(QUERY_BYTES_MAX);
        assert_eq!(outcome(&inbox, &with_query("stripe", "evt_1", &longest)), Outcome::Stored);
        assert_eq!(kept_query(&inbox).as_deref(), Some(longest.as_str()));
        for (query, error) in [
            (format!("{longest}q"), RawQueryError::TooLong { bytes: QUERY_BYTES_MAX + 1 }),
            ("a b".to_owned(), RawQueryError::Unescaped { at: 1 }),
        ] {
            let refused = receive(&inbox, &with_query("stripe", "evt_2", &query)).unwrap_err();
            assert!(matches!(&refused, Refusal::Query(found) if *found == error), "{refused}");
        }
    });
}

#[test]
fn a_source_that_is_only_recorded_to_refuses_every_request() {
    on_every_store(|builder| {
        let inbox = builder.source(recorded("conf")).clock(clock()).open().unwrap();
        let request = signed("signed-inbox", "delivery-1", "one", NOW);
        assert!(matches!(receive(&inbox, &request), Err(Refusal::Rejected(_))));
        assert!(is_empty(&inbox));
    });
}

#[test]
fn a_source_at_first_use_is_unknown_to_the_store_until_it_has_an_event() {
    on_every_store(|builder| {
        let inbox = builder.source_at_first_use(source("signed-inbox")).clock(clock()).open().unwrap();
        let sources = || inbox.store().registry().unwrap().sources.len();
        let mut altered = signed("signed-inbox", "delivery-1", "one", NOW);
        altered.body[0] ^= 1;
        assert!(receive(&inbox, &altered).is_err());
        assert_eq!(sources(), 0);
        assert_eq!(outcome(&inbox, &signed("signed-inbox", "delivery-1", "one", NOW)), Outcome::Stored);
        assert_eq!(sources(), 1);
    });
}
