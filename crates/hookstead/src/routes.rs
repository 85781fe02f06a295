//! What is configured at the moment: the sources and destinations with the store's numbers of them, behind one
//! swap, so that an event is routed by the old configuration or by the new one and never by a mixture.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hookstead_core::{DestinationName, DestinationNumber, Register, Registered, SourceName, Write, Written};
use hookstead_verify::{Secret, VerifierError};
use tokio::sync::{Mutex, watch};

use crate::commit::LaneName;
use crate::destination::{DESTINATIONS_MAX, Destination};
use crate::error::{OpenError, Unavailable};
use crate::inbox::{Inbox, registration};
use crate::source::Source;

/// A destination and the store's number of it.
#[derive(Debug)]
pub struct Route {
    destination: Destination,
    number: DestinationNumber,
}

impl Route {
    /// The destination, as it is configured.
    pub fn destination(&self) -> &Destination {
        &self.destination
    }

    /// Its name.
    pub fn name(&self) -> &DestinationName {
        self.destination.name()
    }

    /// The store's number of it; it belongs to the name for ever.
    pub fn number(&self) -> DestinationNumber {
        self.number
    }
}

/// Why a configuration was not taken over. The one before stays in force, whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReconfigureError {
    /// Two sources have one name.
    #[error("there are two sources named `{0}`")]
    SourceTwice(String),
    /// Two destinations have one name; one of them may be a consumer of this program.
    #[error("there are two destinations named `{0}`")]
    DestinationTwice(String),
    /// More than [`DESTINATIONS_MAX`].
    #[error("there are {0} destinations, more than {DESTINATIONS_MAX}")]
    TooManyDestinations(usize),
    /// The store could not take note of it.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

impl From<ReconfigureError> for OpenError {
    fn from(error: ReconfigureError) -> Self {
        match error {
            ReconfigureError::SourceTwice(name) => Self::SourceTwice(name),
            ReconfigureError::DestinationTwice(name) => Self::DestinationTwice(name),
            ReconfigureError::TooManyDestinations(count) => Self::TooManyDestinations(count),
            ReconfigureError::Unavailable(error) => {
                Self::Register { name: "the configuration".into(), error }
            }
        }
    }
}

/// One configuration.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    sources: HashMap<String, Arc<Source>>,
    routes: Vec<Arc<Route>>,
}

impl Routes {
    pub(crate) fn source(&self, name: &str) -> Option<&Arc<Source>> {
        self.sources.get(name)
    }

    pub(crate) fn sources(&self) -> impl Iterator<Item = &Arc<Source>> {
        self.sources.values()
    }

    pub(crate) fn routes(&self) -> &[Arc<Route>] {
        &self.routes
    }

    pub(crate) fn route(&self, name: &str) -> Option<&Arc<Route>> {
        self.routes.iter().find(|route| route.name().as_str() == name)
    }

    /// Whom an event is owed to.
    pub(crate) fn wanted(
        &self,
        source: &SourceName,
        event_type: Option<&str>,
        body: &[u8],
    ) -> Vec<DestinationNumber> {
        let wants =
            |route: &&Arc<Route>| route.destination.options().filter.matches(source, event_type, body);
        self.routes.iter().filter(wants).map(|route| route.number).collect()
    }
}

/// The configuration in force, and word of every change of it.
pub(crate) struct Table {
    now: watch::Sender<Arc<Routes>>,
    changing: Mutex<()>,
}

impl Table {
    pub(crate) fn new(sources: Vec<Source>, routes: Vec<Route>) -> Self {
        let sources = sources.into_iter().map(|source| (source.name().to_string(), Arc::new(source)));
        let routes = routes.into_iter().map(Arc::new).collect();
        let routes = Routes { sources: sources.collect(), routes };
        Self { now: watch::Sender::new(Arc::new(routes)), changing: Mutex::default() }
    }

    /// The configuration in force at this moment.
    pub(crate) fn now(&self) -> Arc<Routes> {
        self.now.borrow().clone()
    }

    pub(crate) fn changes(&self) -> watch::Receiver<Arc<Routes>> {
        self.now.subscribe()
    }

    fn set(&self, routes: Routes) {
        self.now.send_replace(Arc::new(routes));
    }
}

/// Checks that a configuration can be taken over whole.
pub(crate) fn check<'a>(
    sources: impl IntoIterator<Item = &'a Source>,
    destinations: impl IntoIterator<Item = &'a Destination>,
) -> Result<(), ReconfigureError> {
    let mut names = HashSet::new();
    for source in sources {
        if !names.insert(source.name().as_str()) {
            return Err(ReconfigureError::SourceTwice(source.name().to_string()));
        }
    }
    let mut names = HashSet::new();
    for destination in destinations {
        if !names.insert(destination.name().as_str()) {
            return Err(ReconfigureError::DestinationTwice(destination.name().to_string()));
        }
    }
    if names.len() > DESTINATIONS_MAX {
        return Err(ReconfigureError::TooManyDestinations(names.len()));
    }
    Ok(())
}

/// What makes a destination known to the store.
pub(crate) fn register(destination: &Destination) -> Write {
    Write::Register(Register::Destination {
        name: destination.name().clone(),
        fingerprint: destination.fingerprint(),
        retry: destination.options().retry.clone(),
    })
}

/// A destination with the number that the store gave it.
pub(crate) fn registered(
    destination: Destination,
    answer: Result<Written, Unavailable>,
) -> Result<Route, Unavailable> {
    match answer? {
        Written::Registered(Registered::Destination(row)) => Ok(Route { destination, number: row.number }),
        other => Err(Unavailable::Failed(format!("the store answered {other:?} to a destination").into())),
    }
}

impl Inbox {
    /// The destination of this name, as it is configured at the moment.
    pub fn destination(&self, name: &str) -> Option<Arc<Route>> {
        self.routes().now().route(name).cloned()
    }

    /// The destination with this number, unless it is no longer configured.
    pub fn destination_numbered(&self, number: DestinationNumber) -> Option<Arc<Route>> {
        self.routes().now().routes().iter().find(|route| route.number == number).cloned()
    }

    /// All destinations, in the order of the configuration; consumers of this program last.
    pub fn destinations(&self) -> Vec<Arc<Route>> {
        self.routes().now().routes().to_vec()
    }

    /// Replaces the sources and destinations by others, at once and whole: an event is taken in by the old
    /// configuration or by the new one. Consumers of this program stay. Deliveries that were made stay owed, also to
    /// a destination that is no longer named; one that is named for the first time gets what comes from now on.
    ///
    /// # Errors
    ///
    /// [`ReconfigureError`]: the configuration before stays in force.
    pub async fn reconfigure(
        &self,
        sources: Vec<Source>,
        destinations: Vec<Destination>,
    ) -> Result<(), ReconfigureError> {
        let _one_at_a_time = self.routes().changing.lock().await;
        check(&sources, [])?;
        let kept = self.kept(&destinations)?;
        for source in &sources {
            self.register_source(source).await?;
        }
        let routes = self.register_destinations(destinations, kept).await?;
        let sources = sources.into_iter().map(|source| (source.name().to_string(), Arc::new(source)));
        self.routes().set(Routes { sources: sources.collect(), routes });
        Ok(())
    }

    /// Gives a source that [awaits](Source::awaits_secret) it the secret that its provider handed over. Whoever
    /// calls has made the secret durable before. When it returns, no other secret is taken. `false` if the source
    /// has one already, or is gone.
    ///
    /// # Errors
    ///
    /// [`VerifierError`]: the secret cannot be one of the provider's. The source goes on waiting.
    pub async fn give_secret(&self, source: &SourceName, secret: &Secret) -> Result<bool, VerifierError> {
        let _one_at_a_time = self.routes().changing.lock().await;
        let before = self.routes().now();
        let Some(known) = before.source(source.as_str()).filter(|known| known.awaits_secret()) else {
            return Ok(false);
        };
        let given = Arc::new(known.with_secret(secret)?);
        let mut sources = before.sources.clone();
        sources.insert(source.to_string(), given);
        self.routes().set(Routes { sources, routes: before.routes.clone() });
        Ok(true)
    }

    /// As [`Inbox::reconfigure`], with the sources as they are.
    ///
    /// # Errors
    ///
    /// [`ReconfigureError`]: the destinations before stay in force.
    pub async fn reconfigure_destinations(
        &self,
        destinations: Vec<Destination>,
    ) -> Result<(), ReconfigureError> {
        let _one_at_a_time = self.routes().changing.lock().await;
        let kept = self.kept(&destinations)?;
        let routes = self.register_destinations(destinations, kept).await?;
        let sources = self.routes().now().sources.clone();
        self.routes().set(Routes { sources, routes });
        Ok(())
    }

    /// The consumers of this program, if they go together with these destinations.
    fn kept(&self, destinations: &[Destination]) -> Result<Vec<Arc<Route>>, ReconfigureError> {
        let now = self.routes().now();
        let kept: Vec<_> = now.routes().iter().filter(|route| is_consumed(route)).cloned().collect();
        check([], destinations.iter().chain(kept.iter().map(|route| route.destination())))?;
        Ok(kept)
    }

    async fn register_destinations(
        &self,
        destinations: Vec<Destination>,
        kept: Vec<Arc<Route>>,
    ) -> Result<Vec<Arc<Route>>, Unavailable> {
        let mut routes = Vec::with_capacity(destinations.len() + kept.len());
        for destination in destinations {
            routes.push(Arc::new(self.register_destination(destination).await?));
        }
        routes.extend(kept);
        Ok(routes)
    }

    /// Adds a destination that this program works by itself, or puts it in the place of the one of its name that
    /// this program added before.
    pub(crate) async fn add_consumed(
        &self,
        destination: Destination,
    ) -> Result<Arc<Route>, ReconfigureError> {
        let _one_at_a_time = self.routes().changing.lock().await;
        let before = self.routes().now();
        let is_same = |route: &Route| is_consumed(route) && route.name() == destination.name();
        let others: Vec<_> = before.routes().iter().filter(|route| !is_same(route)).cloned().collect();
        check([], others.iter().map(|route| route.destination()).chain([&destination]))?;
        let added = Arc::new(self.register_destination(destination).await?);
        let routes = others.into_iter().chain([added.clone()]).collect();
        self.routes().set(Routes { sources: before.sources.clone(), routes });
        Ok(added)
    }

    async fn register_source(&self, source: &Source) -> Result<(), Unavailable> {
        let answer = self.submit(LaneName::Rest, registration(source))?.await;
        crate::inbox::number(answer).map(|number| {
            source.set_number(number);
        })
    }

    async fn register_destination(&self, destination: Destination) -> Result<Route, Unavailable> {
        let answer = self.submit(LaneName::Rest, register(&destination))?.await;
        registered(destination, answer)
    }
}

fn is_consumed(route: &Route) -> bool {
    matches!(route.destination.kind(), crate::destination::DestinationKind::Consumed)
}
