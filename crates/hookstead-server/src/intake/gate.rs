//! What is asked of a request before its body is read, beside its framing: for whom it comes, whether its `Host` is
//! one of ours, and whether its client and its source may have one more. Knows neither bodies nor signatures.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hookstead::Source;
use http::HeaderMap;
use http::header::HOST;
use http::request::Parts;

use super::proxies::Proxies;
use super::rate::Rate;
use crate::api::Hosts;
use crate::config::Config;
use crate::listen::{Connections, Place};
use crate::network::Networks;
use crate::problem::Problem;

/// The conditions of one intake. The default has none.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    proxies: Proxies,
    /// `None`: every `Host` is answered.
    hosts: Option<Hosts>,
    /// Requests in flight by client, for clients behind a trusted proxy; those without have connections of their own,
    /// which are counted where they are accepted.
    in_flight: Option<Arc<Connections>>,
    rates: HashMap<String, Rate>,
}

impl Gate {
    /// The gate of a configured server that listens at `intake`.
    pub(crate) fn of(config: &Config, intake: SocketAddr) -> Self {
        let server = &config.server;
        let networks = Networks::from(server.trusted_proxies.as_slice());
        let per_client = config.limits.connections_per_address;
        let counted = || Connections::new(usize::MAX, Some(per_client), Networks::default());
        let now = Instant::now();
        let rate = |source: &crate::config::SourceConfig| {
            Some((source.name.to_string(), Rate::new(source.rate?, now)))
        };
        let names = server.intake_names();
        Self {
            in_flight: (!server.trusted_proxies.is_empty()).then(counted),
            proxies: Proxies::new(networks, server.proxy_header),
            hosts: (!names.is_empty()).then(|| Hosts::new(intake, &names)),
            rates: config.sources.iter().filter_map(rate).collect(),
        }
    }

    /// From whom a request of `peer` comes.
    pub(crate) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        self.proxies.client(peer, headers)
    }

    /// Takes a place for a request in flight, where its client is known by a proxy's word.
    pub(crate) fn enter(
        &self,
        peer: Option<IpAddr>,
        client: Option<IpAddr>,
    ) -> Result<Option<Place>, Problem> {
        let (Some(in_flight), Some(peer), Some(client)) = (&self.in_flight, peer, client) else {
            return Ok(None);
        };
        if !self.proxies.trust(peer) || self.proxies.trust(client) {
            return Ok(None);
        }
        in_flight.take(client).map(Some).map_err(|_no_place| Problem::Busy)
    }

    /// Whether the request is for a name of ours: that of its target, where it has one, else that of its `Host`.
    pub(crate) fn serves(&self, head: &Parts) -> bool {
        let Some(hosts) = &self.hosts else { return true };
        host(head).is_some_and(|host| hosts.allows(host))
    }

    /// After which time the source takes a request again, if it takes none now. Counts nothing: requests whose body
    /// never comes must not keep others out.
    pub(crate) fn wait(&self, source: &Source) -> Option<Duration> {
        self.rate(source)?.wait(Instant::now())
    }

    /// Counts a request whose body is there, or says after which time one is taken again.
    pub(crate) fn count(&self, source: &Source) -> Result<(), Duration> {
        self.rate(source).map_or(Ok(()), |rate| rate.take(Instant::now()))
    }

    /// Counts a request no more: nothing proves that it came from the provider, and strangers must not use up what
    /// the provider has.
    pub(crate) fn uncount(&self, source: &Source) {
        if let Some(rate) = self.rate(source) {
            rate.give_back();
        }
    }

    fn rate(&self, source: &Source) -> Option<&Rate> {
        // Without any rate, not even a name is hashed.
        if self.rates.is_empty() { None } else { self.rates.get(source.name().as_str()) }
    }
}

/// The name that a request is for. The target's wins (RFC 9112, 3.2.2).
pub(crate) fn host(head: &Parts) -> Option<&str> {
    let of_target = head.uri.authority().map(http::uri::Authority::as_str);
    of_target.or_else(|| head.headers.get(HOST)?.to_str().ok())
}
