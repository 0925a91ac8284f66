//! Connection limit per address, and per IPv6 /48.
//!
//! Non-goals: which addresses are exempt.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::ip_network::AddressKey;
use crate::limits;
use crate::options::ConnectionOptions;
use crate::peer::Peer;

/// Connection counts per address, and per IPv6 /48.
#[derive(Default)]
pub(crate) struct ConnectionsPerIp(Mutex<HashMap<Counted, usize>>);

/// Key of a count.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Counted {
    Address(AddressKey),
    Network(AddressKey),
}

/// Slot of a connection within the limits of its address, released when dropped.
pub(crate) struct ConnectionPermit(Option<(Arc<ConnectionsPerIp>, AddressKey)>);

impl ConnectionsPerIp {
    /// Takes a slot; `None` if the address, or its network, is at its limit.
    pub(crate) fn try_acquire(
        this: &Arc<Self>,
        peer: Peer,
        options: &ConnectionOptions,
    ) -> Option<ConnectionPermit> {
        let Some(ip) = peer.ip().filter(|ip| !(options.exempt)(*ip)) else {
            return Some(ConnectionPermit(None));
        };
        let key = AddressKey::from_ip(ip);
        let mut counts = this.counts();
        let network_max =
            options.per_address_max.saturating_mul(limits::ADDRESSES_PER_NETWORK.get() as usize);
        let is_full = counted(key).any(|it| {
            let max = match it {
                Counted::Address(_) => options.per_address_max,
                Counted::Network(_) => network_max,
            };
            counts.get(&it).is_some_and(|count| *count >= max)
        });
        if is_full {
            return None;
        }
        for it in counted(key) {
            *counts.entry(it).or_insert(0) += 1;
        }
        Some(ConnectionPermit(Some((this.clone(), key))))
    }

    /// Returns the number of addresses and networks with connections.
    #[cfg(test)]
    pub(crate) fn known_count(&self) -> usize {
        self.counts().len()
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<Counted, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn counted(key: AddressKey) -> impl Iterator<Item = Counted> {
    [Some(Counted::Address(key)), key.network().map(Counted::Network)].into_iter().flatten()
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let Some((addresses, key)) = &self.0 else { return };
        let mut counts = addresses.counts();
        for it in counted(*key) {
            if let Some(count) = counts.get_mut(&it) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(&it);
                }
            }
        }
    }
}
