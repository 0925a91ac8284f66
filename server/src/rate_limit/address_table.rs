//! Fixed-size table of the rate-limit state of client addresses, which a flood of addresses cannot grow.
//!
//! The table consists of sets of a few slots. An address belongs to one set, by a secret hash; in a full set the
//! address with the lowest usage is evicted, which is one that could have been forgotten anyway unless many are active
//! at once. Guarantees: a lookup locks one set, allocates nothing and reads contiguous memory; an evicted address gets
//! more than its limit, never less. Non-goals: the limits.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::Entropy;
use governor::nanos::Nanos;
use governor::state::StateStore;

use crate::address::AddressKey;
use crate::limits::ADDRESSES_KNOWN_MAX;

/// Table of addresses. Cheap to clone; clones share the table.
#[derive(Clone)]
pub(super) struct AddressTable(Arc<Sets>);

struct Sets {
    sets: Box<[Mutex<Set>]>,
    mask: u64,
    factor: u64,
}

type Set = [Place; PLACES];
const PLACES: usize = 8;
const SETS: usize = ADDRESSES_KNOWN_MAX / PLACES;

const _: () = assert!(SETS.is_power_of_two() && SETS * PLACES == ADDRESSES_KNOWN_MAX);

/// Usage of an address, as the time when its bucket is full again; zero marks an empty slot.
#[derive(Clone, Copy, Default)]
struct Place {
    address: u64,
    whole_at_ns: u64,
}

impl AddressTable {
    pub(super) fn new(entropy: &dyn Entropy) -> Self {
        let sets = (0..SETS).map(|_| Mutex::default()).collect();
        // Without knowing the factor, a client cannot choose addresses of one set.
        Self(Arc::new(Sets { sets, mask: entropy.number(), factor: entropy.number() | 1 }))
    }

    /// Returns when the bucket of the address is full again; `None` if the address is unknown.
    pub(super) fn whole_at(&self, address: AddressKey) -> Option<Nanos> {
        let set = self.set(address)?;
        let place = set.iter().find(|place| place.is_of(address))?;
        Some(Nanos::new(place.whole_at_ns))
    }

    /// Refunds usage of an address, at most to zero.
    pub(super) fn give_back(&self, address: AddressKey, used: Nanos) {
        let Some(mut set) = self.set(address) else { return };
        if let Some(place) = set.iter_mut().find(|place| place.is_of(address)) {
            place.whole_at_ns = place.whole_at_ns.saturating_sub(used.as_u64());
        }
    }

    /// Returns the number of known addresses.
    pub(super) fn count(&self) -> usize {
        let known = |set: &Mutex<Set>| lock(set).iter().filter(|it| it.whole_at_ns > 0).count();
        self.0.sets.iter().map(known).sum()
    }

    fn set(&self, address: AddressKey) -> Option<MutexGuard<'_, Set>> {
        let Sets { sets, mask, factor } = &*self.0;
        let mixed = (address.number() ^ mask).wrapping_mul(*factor);
        // The high bits of a product depend on all bits of its factor.
        let at = (mixed >> (u64::BITS - SETS.ilog2())) as usize;
        sets.get(at).map(lock)
    }
}

impl StateStore for AddressTable {
    type Key = AddressKey;

    fn measure_and_replace<T, F, E>(&self, address: &AddressKey, decide: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let Some(mut set) = self.set(*address) else { return decide(None).map(|(taken, _)| taken) };
        let known = set.iter_mut().find(|place| place.is_of(*address));
        let (taken, whole_at) = decide(known.as_deref().map(|it| Nanos::new(it.whole_at_ns)))?;
        let place = match known {
            Some(place) => Some(place),
            None => set.iter_mut().min_by_key(|place| place.whole_at_ns),
        };
        if let Some(place) = place {
            *place = Place { address: address.number(), whole_at_ns: whole_at.as_u64() };
        }
        Ok(taken)
    }
}

impl Place {
    fn is_of(&self, address: AddressKey) -> bool {
        self.address == address.number() && self.whole_at_ns > 0
    }
}

fn lock(set: &Mutex<Set>) -> MutexGuard<'_, Set> {
    set.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use engine::SeededEntropy;

    use super::*;

    fn address(number: u32) -> AddressKey {
        AddressKey::of(Ipv4Addr::from_bits(number).into())
    }

    fn put(table: &AddressTable, address: AddressKey, whole_at_ns: u64) {
        let put: Result<(), ()> =
            table.measure_and_replace(&address, |_| Ok(((), Nanos::new(whole_at_ns))));
        put.unwrap();
    }

    #[test]
    fn a_million_addresses_take_no_more_places_than_there_are_and_drive_out_nobody_who_asks_much() {
        let table = AddressTable::new(&SeededEntropy::new(1));
        let busy = address(1);
        put(&table, busy, 1_000);
        for number in 2..=1_000_002 {
            put(&table, address(number), 10);
        }
        assert!(table.count() <= ADDRESSES_KNOWN_MAX);
        assert!(table.count() > ADDRESSES_KNOWN_MAX * 9 / 10, "{}", table.count());
        assert_eq!(table.whole_at(busy), Some(Nanos::new(1_000)));
    }

    #[test]
    fn neighbours_in_a_network_are_spread_over_the_sets() {
        for seed in 0..8 {
            let table = AddressTable::new(&SeededEntropy::new(seed));
            let neighbours = ADDRESSES_KNOWN_MAX as u32 / 4;
            for number in 0..neighbours {
                put(&table, address(0x0a00_0000 + number), 10);
            }
            let lost = neighbours as usize - table.count();
            assert!(lost < neighbours as usize / 20, "seed {seed}: {lost} of {neighbours}");
        }
    }

    #[test]
    fn what_is_refused_is_not_remembered() {
        let table = AddressTable::new(&SeededEntropy::new(1));
        let refused: Result<(), u8> = table.measure_and_replace(&address(1), |_| Err(7));
        assert_eq!((refused, table.count()), (Err(7), 0));
    }
}
