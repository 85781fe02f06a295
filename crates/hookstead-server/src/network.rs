//! Addresses and networks as a configuration names them. Knows nothing of HTTP.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A network such as `10.0.0.0/8`, or one address. An IPv4 address that is written as IPv6 (`::ffff:10.0.0.1`) is
/// the IPv4 address, here and wherever it is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// Its first address, in canonical form.
    first: IpAddr,
    /// How many leading bits all of its addresses share; at least 1.
    prefix_bits: u8,
}

/// Why a text is no network, as a fragment that follows the text in a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NetworkError(String);

impl Network {
    /// Whether an address belongs to it.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.first, address.to_canonical()) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                let differing = first.to_bits() ^ address.to_bits();
                differing.leading_zeros() >= u32::from(self.prefix_bits)
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                let differing = first.to_bits() ^ address.to_bits();
                differing.leading_zeros() >= u32::from(self.prefix_bits)
            }
            _ => false,
        }
    }

    fn of(address: IpAddr, prefix_bits: u8) -> Self {
        let mapped = match address {
            IpAddr::V6(v6) if prefix_bits >= 96 => v6.to_ipv4_mapped(),
            _ => None,
        };
        match mapped {
            Some(v4) => Self { first: IpAddr::V4(v4), prefix_bits: prefix_bits - 96 },
            None => Self { first: address, prefix_bits },
        }
    }

    /// The same network with its first address.
    fn aligned(self) -> Self {
        let first = match self.first {
            IpAddr::V4(address) => {
                let rest = u32::MAX.checked_shr(self.prefix_bits.into()).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & !rest))
            }
            IpAddr::V6(address) => {
                let rest = u128::MAX.checked_shr(self.prefix_bits.into()).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !rest))
            }
        };
        Self { first, ..self }
    }

    fn width(address: IpAddr) -> u8 {
        if address.is_ipv4() { 32 } else { 128 }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.prefix_bits == Self::width(self.first) {
            return self.first.fmt(f);
        }
        write!(f, "{}/{}", self.first, self.prefix_bits)
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let refused = |why: String| Err(NetworkError(why));
        let (address, prefix) =
            text.split_once('/').map_or((text, None), |(left, right)| (left, Some(right)));
        let bare = address.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(address);
        let Ok(address) = bare.parse::<IpAddr>() else {
            return refused(
                "is no address or network; write \"192.0.2.7\", \"10.0.0.0/8\" or \"fd00::/8\"".into(),
            );
        };
        let width = Self::width(address);
        let prefix_bits = match prefix.map(str::parse::<u8>) {
            None => width,
            Some(Ok(bits)) if bits <= width => bits,
            Some(_) => return refused(format!("has no prefix length between 1 and {width} behind the `/`")),
        };
        let network = Self::of(address, prefix_bits);
        if network.prefix_bits == 0 {
            return refused("is everybody; name the addresses of your proxies only".to_owned());
        }
        let aligned = network.aligned();
        if network != aligned {
            return refused(format!("has bits behind its prefix; did you mean \"{aligned}\"?"));
        }
        Ok(network)
    }
}

/// Several networks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Networks(Vec<Network>);

impl Networks {
    /// Whether an address belongs to any of them.
    pub(crate) fn contain(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }
}

impl From<&[Network]> for Networks {
    fn from(networks: &[Network]) -> Self {
        Self(networks.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_contain_their_addresses_in_every_form() {
        let check = |network: &str, inside: &[&str], outside: &[&str]| {
            let network: Network = network.parse().unwrap();
            let contains = |address: &&str| network.contains(address.parse().unwrap());
            assert!(inside.iter().all(contains), "{network} {inside:?}");
            assert!(!outside.iter().any(contains), "{network} {outside:?}");
        };
        check(
            "10.0.0.0/8",
            &["10.0.0.0", "10.255.255.255", "::ffff:10.1.2.3"],
            &["11.0.0.0", "9.9.9.9", "::10.0.0.1"],
        );
        check("192.0.2.7", &["192.0.2.7", "::ffff:192.0.2.7"], &["192.0.2.6", "192.0.2.8", "::1"]);
        check("fd00::/8", &["fd00::1", "fdff::"], &["fc00::", "fe00::", "10.0.0.1"]);
        check("::1", &["::1"], &["::2", "127.0.0.1"]);
        check("[::1]", &["::1"], &["::2"]);
        check("::ffff:10.0.0.0/104", &["10.1.2.3"], &["11.1.2.3"]);
        check("0.0.0.0/1", &["127.255.255.255"], &["128.0.0.0"]);
    }

    #[test]
    fn networks_are_shown_as_they_are_written() {
        for text in ["10.0.0.0/8", "192.0.2.7", "fd00::/8", "::1"] {
            assert_eq!(text.parse::<Network>().unwrap().to_string(), text);
        }
        assert_eq!("::ffff:10.0.0.0/104".parse::<Network>().unwrap().to_string(), "10.0.0.0/8");
    }

    #[test]
    fn what_is_no_network_is_refused_with_what_was_meant() {
        let refused = |text: &str, part: &str| {
            let error = text.parse::<Network>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        };
        refused("10.0.0.1/8", "did you mean \"10.0.0.0/8\"?");
        refused("fd00::1/8", "did you mean \"fd00::/8\"?");
        refused("10.0.0.0/33", "between 1 and 32");
        refused("fd00::/129", "between 1 and 128");
        refused("10.0.0.0/", "between 1 and 32");
        refused("0.0.0.0/0", "everybody");
        refused("::/0", "everybody");
        refused("::ffff:0.0.0.0/96", "everybody");
        for text in ["", "proxy.internal", "10.0.0.0-10.0.0.9", "10.0.0.*", "10.0.0.1:80"] {
            refused(text, "is no address or network");
        }
    }
}
