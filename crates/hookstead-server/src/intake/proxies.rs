//! From whom a request comes when proxies stand in between.
//!
//! Each proxy adds the address that it was called from on the right. So the list is read from the right, and the
//! first address that is none of our own proxies is the client: whatever stands left of it, the client may have
//! written himself.

use std::net::{IpAddr, SocketAddr};

use http::HeaderMap;
use http::header::FORWARDED;

use crate::config::ProxyHeader;
use crate::limits::PROXY_HOPS_MAX;
use crate::network::Networks;

const X_FORWARDED_FOR: &str = "x-forwarded-for";

/// The proxies that are believed, and the header in which they say for whom they ask.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proxies {
    networks: Networks,
    header: ProxyHeader,
}

impl Proxies {
    pub(crate) fn new(networks: Networks, header: ProxyHeader) -> Self {
        Self { networks, header }
    }

    /// Whether an address is that of a proxy that is believed.
    pub(crate) fn trust(&self, address: IpAddr) -> bool {
        self.networks.contain(address)
    }

    /// From whom a request comes that `peer` sent: the nearest address that is no trusted proxy. Where the list ends
    /// before, or cannot be read, it is the last proxy that could.
    pub(crate) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut nearest = peer.to_canonical();
        if !self.trust(nearest) {
            return nearest;
        }
        let lines = match self.header {
            ProxyHeader::XForwardedFor => headers.get_all(X_FORWARDED_FOR),
            ProxyHeader::Forwarded => headers.get_all(FORWARDED),
        };
        let hops = lines.iter().rev().flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b','));
        for hop in hops.take(PROXY_HOPS_MAX) {
            let Some(address) = self.address(hop) else { break };
            nearest = address.to_canonical();
            if !self.trust(nearest) {
                break;
            }
        }
        nearest
    }

    fn address(&self, hop: &[u8]) -> Option<IpAddr> {
        let hop = std::str::from_utf8(hop).ok()?.trim();
        match self.header {
            ProxyHeader::XForwardedFor => address(hop),
            ProxyHeader::Forwarded => address(forwarded_for(hop)?),
        }
    }
}

/// The value of `for` in an element of `Forwarded` (RFC 7239), without quotation marks.
fn forwarded_for(element: &str) -> Option<&str> {
    let pairs = element.split(';').filter_map(|pair| pair.split_once('='));
    let mut named = pairs.filter(|(name, _)| name.trim().eq_ignore_ascii_case("for"));
    Some(named.next()?.1.trim().trim_matches('"'))
}

/// An address with or without a port and brackets; nothing for `unknown` and for names that hide one.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    bare.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

#[cfg(test)]
mod tests {
    use http::header::HeaderName;

    use super::*;

    fn client(header: ProxyHeader, peer: &str, lines: &[&str]) -> String {
        let networks = ["10.0.0.0/8", "fd00::/8"].map(|network| network.parse().unwrap());
        let proxies = Proxies::new(Networks::from(networks.as_slice()), header);
        let name = match header {
            ProxyHeader::XForwardedFor => HeaderName::from_static(X_FORWARDED_FOR),
            ProxyHeader::Forwarded => FORWARDED,
        };
        let headers = lines.iter().map(|line| (name.clone(), line.parse().unwrap())).collect();
        proxies.client(peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn the_nearest_address_that_is_no_proxy_of_ours_is_the_client() {
        let check = |peer: &str, lines: &[&str], expected: &str| {
            assert_eq!(client(ProxyHeader::XForwardedFor, peer, lines), expected, "{peer} {lines:?}");
        };
        check("203.0.113.9", &["198.51.100.1"], "203.0.113.9");
        check("10.0.0.1", &["198.51.100.1"], "198.51.100.1");
        check("::ffff:10.0.0.1", &["198.51.100.1"], "198.51.100.1");
        check("10.0.0.1", &["1.1.1.1, 198.51.100.1, 10.0.0.2"], "198.51.100.1");
        check("10.0.0.1", &["1.1.1.1", "198.51.100.1", "10.0.0.2 ,fd00::2"], "198.51.100.1");
        check("10.0.0.1", &["198.51.100.1:50000"], "198.51.100.1");
        check("fd00::1", &["[2001:db8::7]:50000"], "2001:db8::7");
        check("fd00::1", &["2001:db8::7"], "2001:db8::7");
    }

    #[test]
    fn what_cannot_be_read_ends_the_list() {
        let check = |lines: &[&str], expected: &str| {
            assert_eq!(client(ProxyHeader::XForwardedFor, "10.0.0.1", lines), expected, "{lines:?}");
        };
        check(&[], "10.0.0.1");
        check(&[""], "10.0.0.1");
        check(&["198.51.100.1, unknown"], "10.0.0.1");
        check(&["198.51.100.1, nonsense, 10.0.0.2"], "10.0.0.2");
        check(&["10.0.0.3, 10.0.0.2"], "10.0.0.3");
        let endless = format!("198.51.100.1{}", ", 10.0.0.2".repeat(PROXY_HOPS_MAX));
        check(&[&endless], "10.0.0.2");
    }

    #[test]
    fn the_standard_header_is_read_where_it_was_asked_for() {
        let check = |lines: &[&str], expected: &str| {
            assert_eq!(client(ProxyHeader::Forwarded, "10.0.0.1", lines), expected, "{lines:?}");
        };
        check(&["for=198.51.100.1"], "198.51.100.1");
        check(&["For=\"[2001:db8::7]:4711\";proto=https"], "2001:db8::7");
        check(&["for=1.1.1.1;by=10.0.0.9, proto=https;for=198.51.100.1, for=10.0.0.2"], "198.51.100.1");
        check(&["for=\"1.1.1.1, for=10.0.0.2, for=198.51.100.1"], "198.51.100.1");
        check(&["for=_hidden"], "10.0.0.1");
        check(&["proto=https"], "10.0.0.1");
    }
}
