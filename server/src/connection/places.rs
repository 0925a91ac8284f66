//! How many connections each address, and each /48 of IPv6, has and may have.
//!
//! Non-goals: which addresses are exempt.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{ConnectionOptions, Peer};
use crate::address::AddressKey;
use crate::limits;

/// How many connections each address has, and each /48 of IPv6.
#[derive(Default)]
pub(super) struct Addresses(Mutex<HashMap<Counted, usize>>);

/// What connections are counted of.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Counted {
    Address(AddressKey),
    Network(AddressKey),
}

/// A connection's share of the limits of its address, returned when it is dropped.
pub(super) struct AddressPlace(Option<(Arc<Addresses>, AddressKey)>);

impl Addresses {
    /// Counts one more connection; `None` when the address, or its network, has its share.
    pub(super) fn enter(
        this: &Arc<Self>,
        peer: Peer,
        options: &ConnectionOptions,
    ) -> Option<AddressPlace> {
        let Some(ip) = peer.ip().filter(|ip| !(options.exempt)(*ip)) else {
            return Some(AddressPlace(None));
        };
        let key = AddressKey::of(ip);
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
        Some(AddressPlace(Some((this.clone(), key))))
    }

    /// How many addresses and networks have connections.
    #[cfg(test)]
    pub(super) fn known_count(&self) -> usize {
        self.counts().len()
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<Counted, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn counted(key: AddressKey) -> impl Iterator<Item = Counted> {
    [Some(Counted::Address(key)), key.network().map(Counted::Network)].into_iter().flatten()
}

impl Drop for AddressPlace {
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
