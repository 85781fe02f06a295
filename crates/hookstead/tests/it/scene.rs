//! An inbox whose time moves when it is told to, and targets that answer as they are told.

use std::collections::HashMap;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hookstead::core::{
    Attempt, Clock, Decision, Delivery, DeliveryFilter, DestinationNumber, ManualClock, Order, Page, Resolve,
    Resolved, StateName, Subject, Timestamp,
};
use hookstead::sink::exec::ExecOptions;
use hookstead::sink::{Delivering, MakeSink, Outgoing, Sink, SinkError, Tried};
use hookstead::{Destination, DestinationOptions, Dispatcher, Inbox, InboxBuilder};

use crate::stores::{patient, recorded};

/// How long anything may take in real time before a test gives up.
const PATIENCE: Duration = Duration::from_secs(20);

/// Keeps the runtime's paused time from moving by itself, which it does not while a blocking task runs.
pub(crate) struct HeldTime(#[expect(dead_code, reason = "held for its drop")] mpsc::Sender<()>);

impl HeldTime {
    pub(crate) fn new() -> Self {
        let (sender, receiver) = mpsc::channel::<()>();
        tokio::task::spawn_blocking(move || receiver.recv().is_ok());
        Self(sender)
    }
}

/// An inbox, its clock and its targets.
pub(crate) struct Scene {
    pub(crate) inbox: Inbox,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) targets: Targets,
    _held: HeldTime,
}

impl Scene {
    /// In memory, with the source `shop` and these destinations. Must be made on a runtime whose time is paused.
    pub(crate) fn new(destinations: impl IntoIterator<Item = Destination>) -> Self {
        Self::on(Inbox::builder(), start(), destinations)
    }

    pub(crate) fn on(
        builder: InboxBuilder,
        clock: Arc<ManualClock>,
        destinations: impl IntoIterator<Item = Destination>,
    ) -> Self {
        let builder = builder.limits(patient()).source(recorded("shop")).clock(clock.clone());
        let builder = destinations.into_iter().fold(builder, InboxBuilder::destination);
        let inbox = builder.open().unwrap();
        Self { inbox, clock, targets: Targets::default(), _held: HeldTime::new() }
    }

    pub(crate) fn dispatch(&self) -> Dispatcher {
        Dispatcher::start(self.inbox.clone(), Arc::new(self.targets.clone()))
    }

    pub(crate) async fn record(&self, id: &str) {
        self.inbox.record("shop", id, format!("body of {id}")).await.unwrap();
    }

    /// Moves the clock and the runtime's time.
    pub(crate) async fn advance(&self, by: Duration) {
        self.clock.advance(by);
        tokio::time::advance(by).await;
    }

    pub(crate) fn number(&self, name: &str) -> DestinationNumber {
        self.inbox.destination(name).unwrap().number()
    }

    pub(crate) fn deliveries(&self, name: &str) -> Vec<Delivery> {
        let filter = DeliveryFilter { destination: Some(self.number(name)), ..DeliveryFilter::default() };
        self.inbox.store().list_deliveries(&filter, &Page::first(1_000, Order::OldestFirst)).unwrap().items
    }

    pub(crate) fn count(&self, name: &str, state: StateName) -> usize {
        self.deliveries(name).iter().filter(|delivery| delivery.state_name() == state).count()
    }

    /// The only delivery to a destination.
    pub(crate) fn delivery(&self, name: &str) -> Delivery {
        let deliveries = self.deliveries(name);
        assert_eq!(deliveries.len(), 1);
        deliveries.into_iter().next().unwrap()
    }

    pub(crate) fn attempts(&self, name: &str) -> Vec<Attempt> {
        self.inbox.store().attempts(&self.delivery(name).id).unwrap()
    }

    /// Waits until so many deliveries to a destination are in a state.
    pub(crate) async fn until(&self, name: &str, state: StateName, count: usize) {
        until(|| self.count(name, state) == count, || format!("{:#?}", self.deliveries(name))).await;
    }

    pub(crate) async fn resolve(&self, subject: Subject) -> Resolved {
        let decision = Decision { by: "ada".into(), note: "test".into(), at: self.clock.now() };
        self.inbox.resolve(Resolve { subject, decision }).await.unwrap()
    }
}

pub(crate) fn start() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(Timestamp::from_secs(1_770_000_000)))
}

/// Waits until something holds: what other threads do takes real time, and none of the runtime's.
pub(crate) async fn until(holds: impl Fn() -> bool, otherwise: impl Fn() -> String) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < PATIENCE, "it did not come to hold: {}", otherwise());
        tokio::task::yield_now().await;
        std::thread::yield_now();
    }
}

/// A destination that a [`Target`] stands behind.
pub(crate) fn destination(name: &str, options: DestinationOptions) -> Destination {
    Destination::exec(name.parse().unwrap(), ExecOptions::new(vec!["scripted".into()])).with(options)
}

pub(crate) fn plain(name: &str) -> Destination {
    destination(name, DestinationOptions::default())
}

/// What was given to a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) attempt: u32,
    pub(crate) key: String,
    pub(crate) body: String,
}

/// What a target does.
pub(crate) enum Reply {
    Say(Tried),
    Hang,
    Panic,
}

type Answer = Box<dyn Fn(&Call) -> Reply + Send>;

/// A target that answers as it is told, and knows what it was given.
#[derive(Clone)]
pub(crate) struct Target {
    calls: Arc<Mutex<Vec<Call>>>,
    answer: Arc<Mutex<Answer>>,
}

impl Target {
    fn new() -> Self {
        let answer: Answer = Box::new(|_| Reply::Say(Tried::done("ok")));
        Self { calls: Arc::default(), answer: Arc::new(Mutex::new(answer)) }
    }

    pub(crate) fn answers(&self, answer: impl Fn(&Call) -> Reply + Send + 'static) {
        *self.answer.lock().unwrap() = Box::new(answer);
    }

    pub(crate) fn says(&self, tried: Tried) {
        self.answers(move |_| Reply::Say(tried.clone()));
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }

    /// Waits until it was given so many.
    pub(crate) async fn called(&self, count: usize) {
        until(|| self.calls().len() >= count, || format!("{:?}", self.calls())).await;
    }
}

impl Sink for Target {
    fn deliver<'a>(&'a self, outgoing: &'a Outgoing) -> Delivering<'a> {
        Box::pin(async move {
            let call = Call {
                id: String::from_utf8_lossy(outgoing.event.identity.id.as_bytes()).into_owned(),
                attempt: outgoing.attempt,
                key: outgoing.lease.idempotency_key.clone(),
                body: String::from_utf8_lossy(&outgoing.body).into_owned(),
            };
            let reply = (self.answer.lock().unwrap())(&call);
            self.calls.lock().unwrap().push(call);
            match reply {
                Reply::Say(tried) => tried,
                Reply::Hang => std::future::pending().await,
                Reply::Panic => panic!("the target's own fault"),
            }
        })
    }
}

/// The targets, by the names of their destinations.
#[derive(Clone, Default)]
pub(crate) struct Targets(Arc<Mutex<HashMap<String, Target>>>);

impl Targets {
    pub(crate) fn of(&self, name: &str) -> Target {
        self.0.lock().unwrap().entry(name.to_owned()).or_insert_with(Target::new).clone()
    }
}

impl MakeSink for Targets {
    fn make(&self, destination: &Destination) -> Result<Arc<dyn Sink>, SinkError> {
        match destination.name().as_str() {
            "broken" => Err(SinkError("it is broken".into())),
            name => Ok(Arc::new(self.of(name))),
        }
    }
}
