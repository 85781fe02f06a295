//! Consuming: a handler within the program that holds the inbox takes the events that it wants. It is a destination
//! like any other, with a sink that calls the handler, and needs no server.

use std::fmt::Display;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hookstead_core::{DestinationName, Event, NameError, QueryError, RetryPolicy, SourceName, TypePattern};
use serde::de::DeserializeOwned;

use crate::destination::{Destination, DestinationOptions, LEASE_MARGIN};
use crate::dispatch::{Engine, Job, work_one};
use crate::ending::Ending;
use crate::filter::{Filter, FilterError};
use crate::inbox::Inbox;
use crate::routes::ReconfigureError;
use crate::sink::{Delivering, Outgoing, Sink, Tried};

/// How long a consumer that is stopped by a future lets its handlers work on.
const STOP_DEADLINE: Duration = Duration::from_secs(30);

/// One event, given to a handler.
#[derive(Clone, Debug)]
pub struct Delivered {
    outgoing: Outgoing,
}

impl Delivered {
    /// The event, without its body and [without counts](Event::uncounted).
    pub fn event(&self) -> &Event {
        &self.outgoing.event
    }

    /// The body, as it came.
    pub fn body(&self) -> &Bytes {
        &self.outgoing.body
    }

    /// The body as JSON.
    ///
    /// # Errors
    ///
    /// If it is none, or not that of a `T`.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.outgoing.body)
    }

    /// The provider's id of the event, as bytes.
    pub fn provider_id(&self) -> &[u8] {
        self.outgoing.event.identity.id.as_bytes()
    }

    /// The name of the event's source.
    pub fn source(&self) -> &SourceName {
        &self.outgoing.source
    }

    /// What to deduplicate by: the same on every attempt. An event may be given more than once, since a crash may
    /// come between the handler's end and its record.
    pub fn idempotency_key(&self) -> &str {
        &self.outgoing.lease.idempotency_key
    }

    /// Which attempt this is, from 1.
    pub fn attempt(&self) -> u32 {
        self.outgoing.attempt
    }
}

/// Why a consumer could not be started. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ConsumeError {
    /// The consumer's or a source's name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A pattern of event types.
    #[error("type pattern `{pattern}`: {error}")]
    Type {
        /// As it was given.
        pattern: String,
        /// What is wrong.
        error: QueryError,
    },
    /// More than a filter takes.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// The consumer could not be made known: its name is taken by a configured destination, or the store failed.
    #[error(transparent)]
    Register(#[from] ReconfigureError),
    /// The handler ends with [`settle_with`](crate::settle_with), and the inbox is on another store.
    #[error(
        "a `{found}:` store cannot commit statements together with `done`: open the inbox on `{needed}:PATH`, or return \
         `Done`"
    )]
    NoEffects {
        /// The kind of store that it would take.
        needed: &'static str,
        /// The kind of store that it is.
        found: &'static str,
    },
}

/// A consumer that is being described; see [`Inbox::consume`].
#[must_use = "a consumer consumes once it runs"]
pub struct Consume {
    inbox: Inbox,
    name: String,
    types: Vec<String>,
    sources: Vec<String>,
    equals: Vec<(String, serde_json::Value)>,
    options: DestinationOptions,
}

impl Inbox {
    /// Begins to describe a consumer: a destination of this name whose events a handler of this program takes.
    ///
    /// The name is its memory. Events that came while no consumer of it ran wait for it, from the first time on that
    /// it ran. Run one consumer of a name at a time.
    ///
    /// ```
    /// use hookstead::{Done, Inbox, Source};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let inbox = Inbox::builder().source(Source::recorded("shop".parse()?)).open()?;
    /// let (sender, mut mails) = tokio::sync::mpsc::channel(8);
    /// let mailer = inbox.consume("mailer").sources(["shop"]).concurrency(4);
    /// let mailer = mailer.run(move |event| {
    ///     let sender = sender.clone();
    ///     async move {
    ///         let order: serde_json::Value = event.json()?;
    ///         sender.send(order["id"].clone()).await?;
    ///         Ok::<_, Box<dyn std::error::Error + Send + Sync>>(Done)
    ///     }
    /// });
    /// let mailer = mailer.await?;
    /// inbox.record("shop", "order-1", r#"{"id":1}"#).await?;
    /// assert_eq!(mails.recv().await, Some(1.into()));
    /// mailer.stop(std::time::Duration::from_secs(5)).await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn consume(&self, name: impl Into<String>) -> Consume {
        Consume {
            inbox: self.clone(),
            name: name.into(),
            types: Vec::new(),
            sources: Vec::new(),
            equals: Vec::new(),
            options: DestinationOptions::default(),
        }
    }
}

impl Consume {
    /// Only events whose type one of these patterns matches, in which `*` stands for any run of characters.
    pub fn types<T: Into<String>>(mut self, patterns: impl IntoIterator<Item = T>) -> Self {
        self.types.extend(patterns.into_iter().map(Into::into));
        self
    }

    /// Only events of these sources.
    pub fn sources<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.sources.extend(names.into_iter().map(Into::into));
        self
    }

    /// Only events in whose JSON body this value stands at this pointer; see [`Filter::equals`].
    pub fn equals(mut self, pointer: impl Into<String>, value: impl Into<serde_json::Value>) -> Self {
        self.equals.push((pointer.into(), value.into()));
        self
    }

    /// How many events are handled at once, 1 to [`CONCURRENCY_MAX`](crate::destination::CONCURRENCY_MAX); 16 if
    /// nothing is said, and 0 is 1.
    pub fn concurrency(mut self, count: u16) -> Self {
        self.options.concurrency = NonZeroU16::new(count).unwrap_or(NonZeroU16::MIN);
        self
    }

    /// When what failed is handled again; the standard schedule if nothing is said.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.options.retry = policy;
        self
    }

    /// How long a handler may take, five minutes or more; after it its future is dropped and the event is handled
    /// again.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.lease_for = Some(timeout.saturating_add(LEASE_MARGIN));
        self
    }

    /// Makes the consumer known and starts it. Events that it wants and that are accepted from now on are owed to it.
    ///
    /// The event is done when the handler returns [`Done`](crate::Done), or together with what it returns by
    /// [`settle_with`](crate::settle_with). If it returns an error or panics, the event is handled
    /// again when the schedule says so, and is dead when the schedule has ended. A panic stops nothing else.
    /// Must be called on a tokio runtime with time.
    ///
    /// # Errors
    ///
    /// [`ConsumeError`]; nothing was started.
    pub async fn run<H, F, D, E>(self, handler: H) -> Result<Consumer, ConsumeError>
    where
        H: Fn(Delivered) -> F + Send + Sync + 'static,
        F: Future<Output = Result<D, E>> + Send + 'static,
        D: Ending,
        E: Display,
    {
        let inbox = self.inbox.clone();
        check_store(D::STORE, inbox.store().facts().kind)?;
        let destination = self.destination()?;
        let route = inbox.add_consumed(destination).await?;
        let job = Job::new(route, Ok(Arc::new(Handler(handler))));
        Ok(Consumer { engine: Engine::start(inbox, |common| work_one(common, job)) })
    }

    /// [`Consume::run`] until `stop` is ready; then the handlers have 30 s to come to their ends.
    ///
    /// # Errors
    ///
    /// [`ConsumeError`]; nothing was started.
    pub async fn run_until<H, F, D, E>(
        self,
        stop: impl Future<Output = ()>,
        handler: H,
    ) -> Result<(), ConsumeError>
    where
        H: Fn(Delivered) -> F + Send + Sync + 'static,
        F: Future<Output = Result<D, E>> + Send + 'static,
        D: Ending,
        E: Display,
    {
        let mut consumer = self.run(handler).await?;
        tokio::select! {
            () = stop => {}
            () = consumer.ended() => {}
        }
        consumer.stop(STOP_DEADLINE).await;
        Ok(())
    }

    fn destination(self) -> Result<Destination, ConsumeError> {
        let name: DestinationName = self.name.parse()?;
        let sources = self.sources.iter().map(|name| name.parse::<SourceName>());
        let types = self.types.iter().map(|pattern| {
            let parsed = pattern.parse::<TypePattern>();
            parsed.map_err(|error| ConsumeError::Type { pattern: pattern.clone(), error })
        });
        let mut filter = Filter::default()
            .sources(sources.collect::<Result<Vec<_>, _>>()?)?
            .types(types.collect::<Result<Vec<_>, _>>()?)?;
        for (pointer, value) in &self.equals {
            filter = filter.equals(pointer, value)?;
        }
        Ok(Destination::consumed(name).with(DestinationOptions { filter, ..self.options }))
    }
}

fn check_store(needed: Option<&'static str>, found: &'static str) -> Result<(), ConsumeError> {
    match needed {
        Some(needed) if needed != found => Err(ConsumeError::NoEffects { needed, found }),
        _ => Ok(()),
    }
}

/// A consumer that runs. Dropped without [`Consumer::stop`], it ends at once, as in a crash: what was being handled is
/// handled again when its lease has expired.
#[must_use = "a consumer that is dropped ends at once"]
pub struct Consumer {
    engine: Engine,
}

impl Consumer {
    /// Takes nothing more, lets the handlers come to their ends until `deadline` has passed, drops the others and gives
    /// their events back, which does not count as an attempt. When it returns, all of that is recorded, if the inbox
    /// can still record. Stop it before the inbox is closed.
    pub async fn stop(self, deadline: Duration) {
        self.engine.stop(deadline).await;
    }

    /// Returns when it has ended by itself: the inbox is closed or poisoned.
    pub async fn ended(&mut self) {
        self.engine.ended().await;
    }
}

/// The sink that calls a handler.
struct Handler<H>(H);

impl<H, F, D, E> Sink for Handler<H>
where
    H: Fn(Delivered) -> F + Send + Sync,
    F: Future<Output = Result<D, E>> + Send,
    D: Ending,
    E: Display,
{
    fn deliver<'a>(&'a self, outgoing: &'a Outgoing) -> Delivering<'a> {
        Box::pin(async move {
            match (self.0)(Delivered { outgoing: outgoing.clone() }).await {
                Ok(ending) => ending.tried(),
                Err(error) => Tried::retry("handler-error", error.to_string()),
            }
        })
    }
}
