//! Limits the number of unauthenticated connections for each network.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The limit for all networks together, as a multiple of the limit for one.
const NETWORKS: usize = 4;

/// An IPv4 address, or the first 64 bits of an IPv6 address, which usually belong to one customer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Network(IpAddr);

impl Network {
    pub fn of(address: IpAddr) -> Network {
        Network(match address.to_canonical() {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
            }
            address => address,
        })
    }

    /// Parses `ip:port`; invalid addresses share one network.
    pub fn of_text(address: &str) -> Network {
        let parsed = address.parse().map(|address: SocketAddr| address.ip());
        Network::of(parsed.unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED)))
    }
}

/// Counts the connections that have not authenticated.
#[derive(Debug)]
pub(crate) struct UnauthenticatedLimit {
    of_one: usize,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    all: usize,
    networks: HashMap<Network, usize>,
}

impl UnauthenticatedLimit {
    /// A limit of `of_one` connections for each network.
    pub fn new(of_one: usize) -> Arc<UnauthenticatedLimit> {
        Arc::new(UnauthenticatedLimit { of_one, counts: Mutex::default() })
    }

    /// Takes a slot, if there is one.
    pub fn enter(self: &Arc<Self>, address: IpAddr) -> Option<UnauthenticatedSlot> {
        let network = Network::of(address);
        let mut counts = self.counts();
        let count = counts.networks.get(&network).copied().unwrap_or(0);
        if count >= self.of_one || counts.all >= self.of_one.saturating_mul(NETWORKS) {
            return None;
        }
        counts.all += 1;
        counts.networks.insert(network, count + 1);
        Some(UnauthenticatedSlot { unauthenticated: Arc::clone(self), network })
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The slot of an unauthenticated connection; released on drop.
#[derive(Debug)]
pub(crate) struct UnauthenticatedSlot {
    unauthenticated: Arc<UnauthenticatedLimit>,
    network: Network,
}

impl Drop for UnauthenticatedSlot {
    fn drop(&mut self) {
        let mut counts = self.unauthenticated.counts();
        counts.all = counts.all.saturating_sub(1);
        let left = counts.networks.get(&self.network).copied().unwrap_or(0).saturating_sub(1);
        match left {
            0 => counts.networks.remove(&self.network),
            left => counts.networks.insert(self.network, left),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_network_has_its_places_and_gives_them_back() {
        let unauthenticated = UnauthenticatedLimit::new(2);
        let enter = |address: &str| unauthenticated.enter(address.parse().unwrap());
        let held: Vec<_> = ["10.0.0.1", "::ffff:10.0.0.1"].map(enter).into();
        assert!(held.iter().all(Option::is_some));
        assert!(enter("10.0.0.1").is_none(), "a third of the same");
        let six: Vec<_> = ["2001:db8::1", "2001:db8:0:0:5::9"].map(enter).into();
        assert!(six.iter().all(Option::is_some) && enter("2001:db8::77").is_none());
        assert!(enter("2001:db8:0:1::1").is_some(), "another 64 bits");
        let more: Vec<_> = (1..9).filter_map(|number| enter(&format!("10.1.0.{number}"))).collect();
        assert_eq!(more.len(), 4, "eight of all networks together");
        drop(held);
        assert!(enter("10.0.0.1").is_some());
        drop((six, more));
        assert!(unauthenticated.counts().networks.is_empty() && unauthenticated.counts().all == 0);
    }
}
