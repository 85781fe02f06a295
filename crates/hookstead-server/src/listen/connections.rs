//! How many connections there are, all together and by address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

use crate::network::Networks;

/// The connections of a listener.
#[derive(Debug)]
pub(crate) struct Connections {
    all_max: usize,
    /// `None`: addresses are not counted.
    per_address_max: Option<usize>,
    /// Whose addresses are not counted either: many come from there.
    exempt: Networks,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    all: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// One connection's place; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    connections: Arc<Connections>,
    /// As whose it is counted; `None` for an exempt address.
    counted_as: Option<IpAddr>,
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPlace {
    /// Too many connections in all.
    All,
    /// Too many of this address.
    Address,
}

impl Connections {
    pub(crate) fn new(all_max: usize, per_address_max: Option<usize>, exempt: Networks) -> Arc<Self> {
        Arc::new(Self { all_max, per_address_max, exempt, open: Mutex::default() })
    }

    /// Takes a place for a connection from `address`.
    pub(crate) fn take(self: &Arc<Self>, address: IpAddr) -> Result<Place, NoPlace> {
        let counted = |max| Some((counted_as(address)?, max));
        let counted_as = self.per_address_max.and_then(counted).filter(|_| !self.exempt.contain(address));
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.all >= self.all_max {
            return Err(NoPlace::All);
        }
        if let Some((address, max)) = counted_as {
            let count = open.by_address.entry(address).or_default();
            if *count >= max {
                return Err(NoPlace::Address);
            }
            *count += 1;
        }
        open.all += 1;
        Ok(Place { connections: self.clone(), counted_as: counted_as.map(|(address, _)| address) })
    }

    /// How many connections there are.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).all
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.connections.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.all -= 1;
        let Some(address) = self.counted_as else { return };
        let left = open.by_address.get_mut(&address).map(|count| {
            *count -= 1;
            *count
        });
        // The map must not grow with every address that ever came.
        if left == Some(0) {
            open.by_address.remove(&address);
        }
    }
}

/// As whose a connection counts: IPv6 by its /64, loopback not at all.
fn counted_as(address: IpAddr) -> Option<IpAddr> {
    let address = address.to_canonical();
    if address.is_loopback() {
        return None;
    }
    Some(match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => {
            let network = address.to_bits() & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from_bits(network))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(connections: &Arc<Connections>, address: &str) -> Result<Place, NoPlace> {
        connections.take(address.parse().unwrap())
    }

    #[test]
    fn addresses_are_bounded_and_places_come_back() {
        let connections = Connections::new(10, Some(2), Networks::default());
        let first = take(&connections, "192.0.2.1").unwrap();
        let _second = take(&connections, "::ffff:192.0.2.1").unwrap();
        assert_eq!(take(&connections, "192.0.2.1").unwrap_err(), NoPlace::Address);
        let _other = take(&connections, "192.0.2.2").unwrap();
        drop(first);
        assert!(take(&connections, "192.0.2.1").is_ok());
    }

    #[test]
    fn one_network_of_ipv6_is_one_address() {
        let connections = Connections::new(10, Some(1), Networks::default());
        let _first = take(&connections, "2001:db8:1:2::1").unwrap();
        assert_eq!(take(&connections, "2001:db8:1:2:ffff::9").unwrap_err(), NoPlace::Address);
        assert!(take(&connections, "2001:db8:1:3::1").is_ok());
    }

    #[test]
    fn a_trusted_proxy_counts_only_in_all() {
        let proxies = ["10.0.0.0/8".parse().unwrap()];
        let connections = Connections::new(3, Some(1), Networks::from(proxies.as_slice()));
        let _places = ["10.0.0.1", "::ffff:10.0.0.1"].map(|address| take(&connections, address).unwrap());
        let _other = take(&connections, "11.0.0.1").unwrap();
        assert_eq!(take(&connections, "10.0.0.1").unwrap_err(), NoPlace::All);
    }

    #[test]
    fn loopback_counts_only_in_all() {
        let connections = Connections::new(3, Some(1), Networks::default());
        let places: Vec<_> =
            ["127.0.0.1", "127.0.0.1", "::1"].map(|address| take(&connections, address)).into();
        assert!(places.iter().all(Result::is_ok));
        assert_eq!(take(&connections, "127.0.0.1").unwrap_err(), NoPlace::All);
        drop(places);
        assert_eq!(connections.count(), 0);
        assert!(connections.open.lock().unwrap().by_address.is_empty());
    }
}
