//! A destination: one named consumer of events, as it is configured. It does nothing by itself: what it wants
//! stands in its filter, how it is reached in its kind, and the work is done elsewhere.

use std::num::NonZeroU16;
use std::time::Duration;

use hookstead_core::lease::LEASE_MAX;
use hookstead_core::{DestinationName, Digest, RetryPolicy};

use crate::filter::Filter;
use crate::sink::exec::ExecOptions;
#[cfg(feature = "push")]
use crate::sink::push::PushOptions;

/// The most deliveries to one destination that may be worked at once.
pub const CONCURRENCY_MAX: u16 = 256;

/// The longest that one attempt may take.
pub const TIMEOUT_MAX: Duration = Duration::from_hours(1);

/// How much longer than its attempt a lease lasts: reading the event before it and recording the end after it.
pub const LEASE_MARGIN: Duration = Duration::from_secs(30);

/// The most destinations of one inbox.
pub const DESTINATIONS_MAX: usize = 256;

/// One named consumer of events.
#[derive(Clone, Debug)]
pub struct Destination {
    name: DestinationName,
    kind: DestinationKind,
    options: DestinationOptions,
}

/// How a destination is reached.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum DestinationKind {
    /// Events are sent to it by HTTP.
    #[cfg(feature = "push")]
    Push(PushOptions),
    /// A program is run for each event.
    Exec(ExecOptions),
    /// It comes for its events by itself.
    Pull(PullOptions),
    /// A handler within the program that holds the inbox.
    Consumed,
}

impl DestinationKind {
    /// The kind's word.
    pub const fn as_str(&self) -> &'static str {
        match self {
            #[cfg(feature = "push")]
            Self::Push(_) => "push",
            Self::Exec(_) => "exec",
            Self::Pull(_) => "pull",
            Self::Consumed => "consumed",
        }
    }
}

/// What a destination wants, and how much of it at once.
#[derive(Clone, Debug)]
pub struct DestinationOptions {
    /// Which events it wants.
    pub filter: Filter,
    /// When what failed is tried again.
    pub retry: RetryPolicy,
    /// How many of its deliveries may be worked at once; above [`CONCURRENCY_MAX`] it is that. A pull destination
    /// is not bounded by it.
    pub concurrency: NonZeroU16,
    /// How long a lease lasts; `None`: the kind's timeout and [`LEASE_MARGIN`], for pull destinations 60 s. A lease
    /// that is worked here never lasts shorter than its timeout and the margin; above
    /// [`LEASE_MAX`] it is that.
    pub lease_for: Option<Duration>,
    /// How many attempts may begin in a second; `None`: as many as there are.
    pub rate_per_s: Option<NonZeroU16>,
}

impl Default for DestinationOptions {
    /// Every event, the standard schedule, 16 at once, no rate.
    fn default() -> Self {
        Self {
            filter: Filter::default(),
            retry: RetryPolicy::default(),
            concurrency: NonZeroU16::MIN.saturating_add(15),
            lease_for: None,
            rate_per_s: None,
        }
    }
}

/// How a consumer comes for its events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PullOptions {}

/// How long the lease of a pull destination lasts if nothing else is said.
const PULL_LEASE: Duration = Duration::from_secs(60);

/// How long a handler may take if nothing else is said.
const HANDLER_TIMEOUT: Duration = Duration::from_mins(5);

impl Destination {
    /// A destination that events are sent to by HTTP.
    #[cfg(feature = "push")]
    pub fn push(name: DestinationName, push: PushOptions) -> Self {
        Self::new(name, DestinationKind::Push(push))
    }

    /// A destination for which a program is run.
    pub fn exec(name: DestinationName, exec: ExecOptions) -> Self {
        Self::new(name, DestinationKind::Exec(exec))
    }

    /// A destination that comes for its events.
    pub fn pull(name: DestinationName) -> Self {
        Self::new(name, DestinationKind::Pull(PullOptions::default()))
    }

    /// A destination whose events a handler of this program takes.
    pub fn consumed(name: DestinationName) -> Self {
        Self::new(name, DestinationKind::Consumed)
    }

    fn new(name: DestinationName, kind: DestinationKind) -> Self {
        Self { name, kind, options: DestinationOptions::default() }
    }

    /// The same destination with other options.
    #[must_use]
    pub fn with(mut self, options: DestinationOptions) -> Self {
        self.options = options;
        self
    }

    /// Its name.
    pub fn name(&self) -> &DestinationName {
        &self.name
    }

    /// How it is reached.
    pub fn kind(&self) -> &DestinationKind {
        &self.kind
    }

    /// What it wants, and how much of it at once.
    pub fn options(&self) -> &DestinationOptions {
        &self.options
    }

    /// How many of its deliveries may be worked at once, 1 to [`CONCURRENCY_MAX`].
    pub fn concurrency(&self) -> u16 {
        self.options.concurrency.get().min(CONCURRENCY_MAX)
    }

    /// How long one attempt may take; of a pull destination, which nobody here works: as long as its lease.
    pub fn timeout(&self) -> Duration {
        match &self.kind {
            #[cfg(feature = "push")]
            DestinationKind::Push(push) => push.timeout.min(TIMEOUT_MAX),
            DestinationKind::Exec(exec) => exec.timeout.min(TIMEOUT_MAX),
            DestinationKind::Pull(_) => self.lease_for(),
            DestinationKind::Consumed => match self.options.lease_for {
                Some(lease_for) => lease_for.min(LEASE_MAX).saturating_sub(LEASE_MARGIN).max(HANDLER_TIMEOUT),
                None => HANDLER_TIMEOUT,
            },
        }
    }

    /// How long its leases last.
    pub fn lease_for(&self) -> Duration {
        let asked = self.options.lease_for;
        if let DestinationKind::Pull(_) = self.kind {
            return asked.unwrap_or(PULL_LEASE).min(LEASE_MAX);
        }
        let needed = self.timeout() + LEASE_MARGIN;
        asked.unwrap_or(needed).max(needed).min(LEASE_MAX)
    }

    /// A fingerprint of its configuration, secrets left out: a change of it makes a new generation.
    pub fn fingerprint(&self) -> String {
        let reached = match &self.kind {
            #[cfg(feature = "push")]
            DestinationKind::Push(PushOptions { url, secrets: _, timeout, ca_file, on_gone }) => {
                format!("{:?}", (url.as_str(), url.reach(), timeout, ca_file, on_gone))
            }
            DestinationKind::Exec(exec) => format!("{exec:?}"),
            DestinationKind::Pull(pull) => format!("{pull:?}"),
            DestinationKind::Consumed => String::new(),
        };
        let DestinationOptions { filter, retry, concurrency, lease_for, rate_per_s } = &self.options;
        let wanted =
            (filter.source_names(), filter.type_patterns(), filter.comparisons().collect::<Vec<_>>());
        let worked = (retry, concurrency, lease_for, rate_per_s);
        let kind = self.kind.as_str();
        Digest::of(format!("1\n{kind}\n{reached}\n{wanted:?}\n{worked:?}").as_bytes()).to_string()
    }
}

#[cfg(test)]
#[cfg(feature = "push")]
mod tests {
    use super::*;
    use crate::sink::push::{PushUrl, Reach, SigningSecret};

    fn to(url: &str) -> PushOptions {
        let secret = SigningSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        PushOptions::new(PushUrl::parse(url, Reach::Public).unwrap(), secret)
    }

    fn push() -> Destination {
        Destination::push("app".parse().unwrap(), to("https://app.example/hooks"))
    }

    #[test]
    fn a_lease_outlasts_its_attempt() {
        let short = DestinationOptions { lease_for: Some(Duration::from_secs(1)), ..Default::default() };
        for destination in [
            push().with(short.clone()),
            push(),
            Destination::consumed("mailer".parse().unwrap()).with(short.clone()),
        ] {
            assert!(destination.lease_for() >= destination.timeout() + LEASE_MARGIN, "{destination:?}");
        }
        let pull = Destination::pull("worker".parse().unwrap());
        assert_eq!(pull.lease_for(), Duration::from_secs(60));
        assert_eq!(pull.with(short).lease_for(), Duration::from_secs(1));
    }

    #[test]
    fn a_fingerprint_changes_with_the_configuration_and_not_with_secrets() {
        let again = push().fingerprint();
        assert_eq!(push().fingerprint(), again);
        let mut signed = to("https://app.example/hooks");
        signed.secrets = vec![SigningSecret::generate().unwrap()];
        assert_eq!(Destination::push("app".parse().unwrap(), signed).fingerprint(), again);
        let other = DestinationOptions { rate_per_s: NonZeroU16::new(5), ..Default::default() };
        assert_ne!(push().with(other).fingerprint(), again);
        let elsewhere = Destination::push("app".parse().unwrap(), to("https://b.example/"));
        assert_ne!(elsewhere.fingerprint(), again);
    }
}
