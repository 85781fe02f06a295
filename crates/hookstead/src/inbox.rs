//! The inbox: sources, a store, and the committer between them.

use std::sync::Arc;

use hookstead_core::{Clock, Register, Registered, SourceNumber, Store, Timestamp, Write, Written};
use hookstead_store::OpenOptions;
use tokio::sync::{Semaphore, watch};

use crate::clock::SystemClock;
use crate::commit::{CommitLimits, Committer, Health, LaneName, News, Pending, commit_first};
use crate::destination::Destination;
use crate::error::{OpenError, Unavailable};
use crate::routes::{self, Route, Table};
use crate::signals::Signals;
use crate::source::Source;

/// A durable inbox. Cloning it is cheap, and every clone is the same inbox.
///
/// It takes events in by [`Inbox::receive`] (a signed request) or [`Inbox::record`] (a call of your own
/// program). Either returns success only after the event is durable.
#[derive(Clone)]
pub struct Inbox {
    inner: Arc<Inner>,
}

struct Inner {
    // Fields are dropped in this order: first the committer ends, then the store's lock goes.
    committer: Committer,
    opened: hookstead_store::Opened,
    clock: Arc<dyn Clock>,
    routes: Table,
    signals: Arc<Signals>,
    sweeping: Arc<Semaphore>,
}

/// What an inbox is opened with.
pub struct InboxBuilder {
    store: String,
    options: OpenOptions,
    clock: Arc<dyn Clock>,
    limits: CommitLimits,
    sources: Vec<(Source, Registration)>,
    destinations: Vec<Destination>,
}

/// When the store learns of a source.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Registration {
    AtStart,
    AtFirstUse,
}

impl InboxBuilder {
    /// The store: `sqlite:PATH` or `memory:`.
    #[must_use]
    pub fn store(mut self, url: impl Into<String>) -> Self {
        self.store = url.into();
        self
    }

    /// How the store is opened.
    #[must_use]
    pub fn open_options(mut self, options: OpenOptions) -> Self {
        self.options = options;
        self
    }

    /// The clock; by default the machine's.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// How much may wait for the store, and how much goes into a commit.
    #[must_use]
    pub fn limits(mut self, limits: CommitLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Adds a source. The store learns of it when the inbox is opened.
    #[must_use]
    pub fn source(mut self, source: Source) -> Self {
        self.sources.push((source, Registration::AtStart));
        self
    }

    /// Adds a source that the store learns of only when it has its first event.
    #[must_use]
    pub fn source_at_first_use(mut self, source: Source) -> Self {
        self.sources.push((source, Registration::AtFirstUse));
        self
    }

    /// Adds a destination: events that its filter wants are owed to it from now on. Working what is owed takes a
    /// [`Dispatcher`](crate::Dispatcher), or, for a pull destination, somebody who claims.
    #[must_use]
    pub fn destination(mut self, destination: Destination) -> Self {
        self.destinations.push(destination);
        self
    }

    /// Opens the store, registers the sources and destinations and starts the committer. Blocks for as long as the disk takes.
    ///
    /// When it returns, the store has proved that it can commit. Refused with a reason and nothing touched:
    /// a store that another process holds, that is not ours, or that a newer version wrote.
    pub fn open(self) -> Result<Inbox, OpenError> {
        routes::check(self.sources.iter().map(|(source, _)| source), &self.destinations)?;
        let opened = hookstead_store::open(&self.store, &self.options, self.clock.now())?;
        let mut sources = Vec::with_capacity(self.sources.len());
        for (source, registration) in self.sources {
            if registration == Registration::AtStart {
                register_first(opened.store.as_ref(), &source, self.clock.now())?;
            }
            sources.push(source);
        }
        let now = self.clock.now();
        let known = self.destinations.into_iter().map(|known| route_first(opened.store.as_ref(), known, now));
        let routes = Table::new(sources, known.collect::<Result<_, _>>()?);
        let signals = Arc::new(Signals::default());
        let committer =
            Committer::start(opened.store.clone(), self.clock.clone(), self.limits, signals.clone())
                .map_err(|source| OpenError::System { doing: "start the committer", source })?;
        Ok(Inbox {
            inner: Arc::new(Inner {
                committer,
                opened,
                clock: self.clock,
                routes,
                signals,
                sweeping: Arc::new(Semaphore::new(1)),
            }),
        })
    }
}

impl Inbox {
    /// Begins to describe an inbox. Without more it is a memory store without sources.
    pub fn builder() -> InboxBuilder {
        InboxBuilder {
            store: "memory:".to_owned(),
            options: OpenOptions::default(),
            clock: Arc::new(SystemClock::new()),
            limits: CommitLimits::default(),
            sources: Vec::new(),
            destinations: Vec::new(),
        }
    }

    /// The source of this name, as it is configured at the moment.
    pub fn source(&self, name: &str) -> Option<Arc<Source>> {
        self.inner.routes.now().source(name).cloned()
    }

    /// All sources, in no order.
    pub fn sources(&self) -> Vec<Arc<Source>> {
        self.inner.routes.now().sources().cloned().collect()
    }

    pub(crate) fn routes(&self) -> &Table {
        &self.inner.routes
    }

    /// The store, for reading. Its calls block. Writing goes through the inbox alone.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.inner.opened.store
    }

    /// The lock on the store and the record of who holds it.
    pub fn opened(&self) -> &hookstead_store::Opened {
        &self.inner.opened
    }

    /// The clock that the inbox goes by.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.inner.clock
    }

    /// Whether anything can be accepted at the moment, and word of every change.
    pub fn health(&self) -> watch::Receiver<Health> {
        self.inner.committer.health()
    }

    /// Word of commits that stored events or made work. Subscribe before you look; then what is committed later is
    /// never missed. Work that only waits for its time is no news: see
    /// [`Store::next_due`](hookstead_core::Store::next_due).
    pub fn news(&self) -> watch::Receiver<News> {
        self.inner.committer.news()
    }

    /// Takes nothing new, commits and answers what is queued, writes down what was only counted in memory, and
    /// lets go of the store's lock for writing. Blocks until that is done.
    pub fn close(&self) -> Result<(), Unavailable> {
        self.inner.committer.close();
        let now = self.inner.clock.now();
        self.store().close(now).map_err(|error| Unavailable::from(&error))
    }

    pub(crate) fn signals(&self) -> &Signals {
        &self.inner.signals
    }

    /// Whoever holds its permit takes expired leases away.
    pub(crate) fn sweeping(&self) -> &Arc<Semaphore> {
        &self.inner.sweeping
    }

    pub(crate) fn submit(&self, lane: LaneName, write: Write) -> Result<Pending, Unavailable> {
        self.inner.committer.submit(lane, write)
    }

    pub(crate) fn submit_all(&self, lane: LaneName, writes: Vec<Write>) -> Result<Vec<Pending>, Unavailable> {
        self.inner.committer.submit_all(lane, writes)
    }

    /// The number of a source; the store learns of the source if it has not yet.
    pub(crate) async fn number_of(&self, source: &Source) -> Result<SourceNumber, Unavailable> {
        match source.number() {
            Some(number) => Ok(number),
            None => {
                let answer = self.submit(LaneName::Rest, registration(source))?.await;
                number(answer).map(|number| source.set_number(number))
            }
        }
    }

    /// [`Inbox::number_of`], waiting on this thread.
    pub(crate) fn number_of_blocking(&self, source: &Source) -> Result<SourceNumber, Unavailable> {
        match source.number() {
            Some(number) => Ok(number),
            None => {
                let answer = self.submit(LaneName::Rest, registration(source))?.wait();
                number(answer).map(|number| source.set_number(number))
            }
        }
    }
}

fn register_first(store: &dyn Store, source: &Source, now: Timestamp) -> Result<(), OpenError> {
    let written = commit_first(store, &[registration(source)], now);
    let answer = match written {
        Ok(written) => written.into_iter().next().ok_or_else(no_registration),
        Err(error) => Err(Unavailable::from(&error)),
    };
    let number =
        number(answer).map_err(|error| OpenError::Register { name: source.name().to_string(), error })?;
    source.set_number(number);
    Ok(())
}

fn route_first(store: &dyn Store, destination: Destination, now: Timestamp) -> Result<Route, OpenError> {
    let name = destination.name().to_string();
    let answer = match commit_first(store, &[routes::register(&destination)], now) {
        Ok(written) => written.into_iter().next().ok_or_else(no_registration),
        Err(error) => Err(Unavailable::from(&error)),
    };
    routes::registered(destination, answer).map_err(|error| OpenError::Register { name, error })
}

pub(crate) fn registration(source: &Source) -> Write {
    Write::Register(Register::Source {
        name: source.name().clone(),
        identity_fingerprint: source.identity_fingerprint(),
    })
}

fn no_registration() -> Unavailable {
    Unavailable::Failed("the store did not answer a registration".into())
}

pub(crate) fn number(answer: Result<Written, Unavailable>) -> Result<SourceNumber, Unavailable> {
    let Written::Registered(Registered::Source { row, previous_fingerprint }) = answer? else {
        return Err(no_registration());
    };
    if previous_fingerprint.is_some() {
        tracing::warn!(
            source = %row.name,
            source.generation = row.generation,
            "the rule that makes this source's identities changed: an event that came before the change may \
             be taken for a new one when it is sent again"
        );
    }
    Ok(row.number)
}
