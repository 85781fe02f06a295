//! Which addresses a push may reach, decided on numbers alone.
//!
//! A push URL comes from configuration, sometimes from somebody who may add destinations but may not see the
//! network that hookstead stands in. So every address is checked here in the moment before it is connected
//! to, and only the one that was checked is connected to. This module knows no names, no URLs and no sockets.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use AddressRange::{Loopback, Metadata, Special};

/// How far pushes to a destination may reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// Addresses of the public internet only.
    #[default]
    Public,
    /// Those, and the machine itself: for development.
    Loopback,
    /// Every address but those of metadata services: `allow_private = true`.
    Private,
}

/// An address that a push may not reach, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{address}` is {range}")]
pub struct ForbiddenAddress {
    /// The address.
    pub address: IpAddr,
    /// The range that it lies in.
    pub range: AddressRange,
}

impl ForbiddenAddress {
    /// What a person can do about it, as one sentence without a full stop.
    pub fn fix(&self) -> &'static str {
        match self.range {
            Metadata(_) => {
                "push to another address; metadata services hand out credentials and are never pushed to"
            }
            Loopback(_) | Special(_) => {
                "set `allow_private = true` on the destination if it is meant to reach this network"
            }
        }
    }
}

/// A range of addresses that is not the public internet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressRange {
    /// A cloud's metadata or credentials service: never reached.
    Metadata(&'static str),
    /// The machine itself.
    Loopback(&'static str),
    /// Any other range with a special purpose: private, shared, link-local, multicast, reserved ...
    Special(&'static str),
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Metadata(name) | Self::Loopback(name) | Self::Special(name) => f.write_str(name),
        }
    }
}

/// Whether a push of that reach may connect to an address. An IPv6 address that stands for an IPv4 address is
/// judged by that one as well.
///
/// # Errors
///
/// [`ForbiddenAddress`] if it may not.
pub fn check_address(address: IpAddr, reach: Reach) -> Result<(), ForbiddenAddress> {
    let Some(range) = range_of(address.to_canonical()) else { return Ok(()) };
    let allowed = match range {
        Metadata(_) => false,
        Loopback(_) => reach != Reach::Public,
        Special(_) => reach == Reach::Private,
    };
    if allowed { Ok(()) } else { Err(ForbiddenAddress { address, range }) }
}

fn range_of(address: IpAddr) -> Option<AddressRange> {
    match address {
        IpAddr::V4(address) => range_of_v4(address),
        IpAddr::V6(address) => range_of_v6(address),
    }
}

/// One row: network, length of its prefix, what it is.
type Row<N> = (N, u32, AddressRange);

const METADATA: AddressRange = Metadata("the address of a cloud's metadata service");

const fn v4(a: u8, b: u8, c: u8, d: u8) -> u32 {
    Ipv4Addr::new(a, b, c, d).to_bits()
}

/// The first row that holds counts. Metadata services first; then IANA's special-purpose registry of IPv4,
/// with multicast and the reserved block.
const V4: &[Row<u32>] = &[
    (v4(169, 254, 169, 0), 24, METADATA), // AWS, Azure, Google, Oracle, DigitalOcean, OpenStack
    (v4(169, 254, 170, 0), 24, METADATA), // AWS container credentials
    (v4(169, 254, 42, 42), 32, METADATA), // Scaleway
    (v4(169, 254, 0, 23), 32, METADATA),  // Tencent
    (v4(168, 63, 129, 16), 32, METADATA), // Azure's wire server, a public number
    (v4(100, 100, 100, 200), 32, METADATA), // Alibaba
    (v4(192, 0, 0, 192), 32, METADATA),   // Oracle's older one
    (v4(127, 0, 0, 0), 8, Loopback("a loopback address")),
    (v4(0, 0, 0, 0), 8, Special("an address of this host or network (0.0.0.0/8)")),
    (v4(10, 0, 0, 0), 8, Special("a private address (10.0.0.0/8)")),
    (v4(100, 64, 0, 0), 10, Special("a shared address of a carrier's network (100.64.0.0/10)")),
    (v4(169, 254, 0, 0), 16, Special("a link-local address (169.254.0.0/16)")),
    (v4(172, 16, 0, 0), 12, Special("a private address (172.16.0.0/12)")),
    (v4(192, 0, 0, 0), 24, Special("an address for protocols (192.0.0.0/24)")),
    (v4(192, 0, 2, 0), 24, Special("an address for documentation (192.0.2.0/24)")),
    (v4(192, 88, 99, 0), 24, Special("an address of 6to4 relays (192.88.99.0/24)")),
    (v4(192, 168, 0, 0), 16, Special("a private address (192.168.0.0/16)")),
    (v4(198, 18, 0, 0), 15, Special("an address for benchmarks (198.18.0.0/15)")),
    (v4(198, 51, 100, 0), 24, Special("an address for documentation (198.51.100.0/24)")),
    (v4(203, 0, 113, 0), 24, Special("an address for documentation (203.0.113.0/24)")),
    (v4(224, 0, 0, 0), 4, Special("a multicast address (224.0.0.0/4)")),
    (v4(240, 0, 0, 0), 4, Special("a reserved address (240.0.0.0/4)")),
];

fn range_of_v4(address: Ipv4Addr) -> Option<AddressRange> {
    let bits = address.to_bits();
    V4.iter().find(|(network, length, _)| (bits ^ network) >> (32 - length) == 0).map(|row| row.2)
}

const fn v6(address: [u16; 8]) -> u128 {
    let [a, b, c, d, e, f, g, h] = address;
    Ipv6Addr::new(a, b, c, d, e, f, g, h).to_bits()
}

const RESERVED_V6: AddressRange = Special("a reserved IPv6 address (outside 2000::/3)");

/// As [`V4`]: metadata services, loopback, then what is special within 2000::/3, the one block that public
/// addresses are given from, and the special blocks outside of it that have a name.
const V6: &[Row<u128>] = &[
    (v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0]), 32, METADATA), // AWS
    (v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254]), 128, METADATA), // Google
    (v6([0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42]), 128, METADATA), // Scaleway
    (v6([0, 0, 0, 0, 0, 0, 0, 1]), 128, Loopback("the loopback address")),
    (v6([0, 0, 0, 0, 0, 0, 0, 0]), 128, Special("the unspecified address")),
    (v6([0, 0, 0, 0, 0, 0, 0, 0]), 96, Special("an IPv4-compatible address (::/96)")),
    (v6([0, 0, 0, 0, 0xffff, 0, 0, 0]), 96, Special("an IPv4-translated address (::ffff:0:0:0/96)")),
    (v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0]), 48, Special("an address of a local NAT64 (64:ff9b:1::/48)")),
    (v6([0x100, 0, 0, 0, 0, 0, 0, 0]), 64, Special("an address that discards (100::/64)")),
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0]), 32, Special("a Teredo address (2001::/32)")),
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0]), 23, Special("an address for protocols (2001::/23)")),
    (v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0]), 32, Special("an address for documentation (2001:db8::/32)")),
    (v6([0x2002, 0, 0, 0, 0, 0, 0, 0]), 16, Special("a 6to4 address (2002::/16)")),
    (v6([0x3fff, 0, 0, 0, 0, 0, 0, 0]), 20, Special("an address for documentation (3fff::/20)")),
    (v6([0xfc00, 0, 0, 0, 0, 0, 0, 0]), 7, Special("a unique local address (fc00::/7)")),
    (v6([0xfe80, 0, 0, 0, 0, 0, 0, 0]), 10, Special("a link-local address (fe80::/10)")),
    (v6([0xfec0, 0, 0, 0, 0, 0, 0, 0]), 10, Special("a site-local address (fec0::/10)")),
    (v6([0xff00, 0, 0, 0, 0, 0, 0, 0]), 8, Special("a multicast address (ff00::/8)")),
];

const NAT64: u128 = v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0]);

fn in_v6(bits: u128, network: u128, length: u32) -> bool {
    (bits ^ network) >> (128 - length) == 0
}

/// Metadata behind any disguise counts first. A NAT64 address is where its IPv4 address is.
fn range_of_v6(address: Ipv6Addr) -> Option<AddressRange> {
    let bits = address.to_bits();
    let inner: Vec<AddressRange> = embedded(bits).into_iter().filter_map(range_of_v4).collect();
    if let Some(metadata) = inner.iter().find(|range| matches!(range, Metadata(_))) {
        return Some(*metadata);
    }
    if in_v6(bits, NAT64, 96) {
        return inner.first().copied();
    }
    let listed = V6.iter().find(|(network, length, _)| in_v6(bits, *network, *length)).map(|row| row.2);
    let outside = (bits >> 125 != 1).then_some(RESERVED_V6);
    listed.or(outside).or_else(|| inner.first().copied())
}

/// The IPv4 addresses that something on the way may make of an IPv6 address.
fn embedded(bits: u128) -> Vec<Ipv4Addr> {
    let at = |shift: u32| low32(bits >> shift);
    let found = if in_v6(bits, NAT64, 96) || in_v6(bits, 0, 96) || in_v6(bits, V6_TRANSLATED, 96) {
        vec![at(0)]
    } else if in_v6(bits, NAT64 | 1 << 80, 48) {
        local_nat64(bits)
    } else if in_v6(bits, v6([0x2002, 0, 0, 0, 0, 0, 0, 0]), 16) {
        vec![at(80)]
    } else if in_v6(bits, v6([0x2001, 0, 0, 0, 0, 0, 0, 0]), 32) {
        vec![at(64), !at(0)] // Teredo: the server, and the client with its bits turned over
    } else if matches!(low32(bits >> 32), 0x5efe | 0x200_5efe) {
        vec![at(0)] // ISATAP
    } else {
        vec![]
    };
    found.into_iter().map(Ipv4Addr::from_bits).collect()
}

const V6_TRANSLATED: u128 = v6([0, 0, 0, 0, 0xffff, 0, 0, 0]);

/// Every place where RFC 6052 puts an IPv4 address behind a prefix of 48, 56, 64 or 96 bits. Bits 64 to 71
/// are left out of it.
fn local_nat64(bits: u128) -> Vec<u32> {
    let without_gap = (bits >> 64) << 56 | (bits & ((1 << 56) - 1)); // 120 bits
    let behind = |prefix: u32| low32(without_gap >> (120 - prefix - 32));
    vec![behind(48), behind(56), behind(64), low32(bits)]
}

fn low32(bits: u128) -> u32 {
    u32::try_from(bits & u128::from(u32::MAX)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> Option<AddressRange> {
        range_of(text.parse::<IpAddr>().expect("an address").to_canonical())
    }

    fn allowed(text: &str, reach: Reach) -> bool {
        check_address(text.parse().expect("an address"), reach).is_ok()
    }

    #[test]
    fn public_addresses_are_reached() {
        for text in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "128.0.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700:4700::1111",
            "2a00:1450::1",
            "2001:200::1",
            "2001:db7::1",
            "2003::1",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
        ] {
            assert!(allowed(text, Reach::Public), "{text}: {:?}", range(text));
        }
    }

    #[test]
    fn loopback_reach_reaches_the_machine_and_nothing_else() {
        for text in ["127.0.0.1", "127.255.255.255", "::1", "::ffff:127.0.0.1"] {
            assert!(!allowed(text, Reach::Public) && allowed(text, Reach::Loopback), "{text}");
        }
        for text in ["10.0.0.1", "0.0.0.0", "::", "192.168.0.1", "fd00::1", "169.254.1.1", "224.0.0.1"] {
            assert!(!allowed(text, Reach::Loopback) && allowed(text, Reach::Private), "{text}");
        }
    }

    #[test]
    fn metadata_is_never_reached_in_any_disguise() {
        for text in [
            "169.254.169.254",
            "168.63.129.16",
            "100.100.100.200",
            "fd00:ec2::254",
            "fd20:ce::254",
            "::ffff:169.254.169.254",
            "::169.254.169.254",
            "::ffff:0:169.254.169.254",
            "64:ff9b::169.254.169.254",
            "64:ff9b:1::169.254.169.254",
            "64:ff9b:1:a9fe:a9:fe00::",
            "64:ff9b:1:a9:fe:a9fe::",
            "64:ff9b:1:0:a9:fea9:fe00:0",
            "2002:a9fe:a9fe::1",
            "2001:0:a9fe:a9fe::1",
            "2001::5601:5601",
            "2606:4700::5efe:169.254.169.254",
        ] {
            assert!(matches!(range(text), Some(Metadata(_))), "{text}: {:?}", range(text));
            assert!(!allowed(text, Reach::Private), "{text}");
        }
    }

    #[test]
    fn an_address_that_stands_for_a_private_one_is_private() {
        for text in ["64:ff9b::10.0.0.1", "2002:a00:1::", "2606:4700::200:5efe:10.0.0.1", "64:ff9b:1::1"] {
            assert!(!allowed(text, Reach::Loopback) && allowed(text, Reach::Private), "{text}");
        }
        assert!(allowed("64:ff9b::127.0.0.1", Reach::Loopback));
    }

    #[test]
    fn a_refusal_names_the_address_the_range_and_the_fix() {
        let refused = check_address("10.1.2.3".parse().expect("an address"), Reach::Public).unwrap_err();
        assert_eq!(refused.to_string(), "`10.1.2.3` is a private address (10.0.0.0/8)");
        assert!(refused.fix().contains("allow_private = true"));
        let metadata =
            check_address("fd00:ec2::254".parse().expect("an address"), Reach::Private).unwrap_err();
        assert!(!metadata.fix().contains("allow_private"));
    }
}
