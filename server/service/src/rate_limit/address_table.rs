//! Fixed-size table of the rate-limit state of client addresses, which a flood of addresses cannot grow.
//!
//! The table consists of sets of a few slots. An address belongs to one set, by a secret hash; in a full set the
//! address with the lowest usage is evicted, which is one that could have been forgotten anyway unless many are active
//! at once. Guarantees: a lookup locks one set, allocates nothing and reads contiguous memory; an evicted address gets
//! more than its limit, never less. Non-goals: the limits.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::rng::Rng;
use governor::nanos::Nanos;
use governor::state::StateStore;
use listener::ip_network::AddressKey;

use crate::limits::RATE_LIMIT_IPS_MAX;

/// Table of addresses. Cheap to clone; clones share the table.
#[derive(Clone)]
pub(super) struct PerIpTable(Arc<Sets>);

struct Sets {
    sets: Box<[Mutex<Set>]>,
    mask: u64,
    factor: u64,
}

type Set = [TableSlot; WAYS];
const WAYS: usize = 8;
const SETS: usize = RATE_LIMIT_IPS_MAX / WAYS;

const _: () = assert!(SETS.is_power_of_two() && SETS * WAYS == RATE_LIMIT_IPS_MAX);

/// Usage of an address, as the time when its bucket is full again; zero marks an empty slot.
#[derive(Clone, Copy, Default)]
struct TableSlot {
    address: u64,
    full_at_ns: u64,
}

impl PerIpTable {
    pub(super) fn new(rng: &dyn Rng) -> Self {
        let sets = (0..SETS).map(|_| Mutex::default()).collect();
        // Without knowing the factor, a client cannot choose addresses of one set.
        Self(Arc::new(Sets { sets, mask: rng.next_u64(), factor: rng.next_u64() | 1 }))
    }

    /// Returns when the bucket of the address is full again; `None` if the address is unknown.
    pub(super) fn full_at(&self, address: AddressKey) -> Option<Nanos> {
        let set = self.set(address)?;
        let place = set.iter().find(|place| place.is_of(address))?;
        Some(Nanos::new(place.full_at_ns))
    }

    /// Refunds usage of an address, at most to zero.
    pub(super) fn refund(&self, address: AddressKey, used: Nanos) {
        let Some(mut set) = self.set(address) else { return };
        if let Some(place) = set.iter_mut().find(|place| place.is_of(address)) {
            place.full_at_ns = place.full_at_ns.saturating_sub(used.as_u64());
        }
    }

    /// Returns the number of known addresses.
    pub(super) fn count(&self) -> usize {
        let known = |set: &Mutex<Set>| lock(set).iter().filter(|it| it.full_at_ns > 0).count();
        self.0.sets.iter().map(known).sum()
    }

    fn set(&self, address: AddressKey) -> Option<MutexGuard<'_, Set>> {
        let Sets { sets, mask, factor } = &*self.0;
        let mixed = (address.to_u64() ^ mask).wrapping_mul(*factor);
        // The high bits of a product depend on all bits of its factor.
        let at = (mixed >> (u64::BITS - SETS.ilog2())) as usize;
        sets.get(at).map(lock)
    }
}

impl StateStore for PerIpTable {
    type Key = AddressKey;

    fn measure_and_replace<T, F, E>(&self, address: &AddressKey, decide: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let Some(mut set) = self.set(*address) else { return decide(None).map(|(taken, _)| taken) };
        let known = set.iter_mut().find(|place| place.is_of(*address));
        let (taken, whole_at) = decide(known.as_deref().map(|it| Nanos::new(it.full_at_ns)))?;
        let place = match known {
            Some(place) => Some(place),
            None => set.iter_mut().min_by_key(|place| place.full_at_ns),
        };
        if let Some(place) = place {
            *place = TableSlot { address: address.to_u64(), full_at_ns: whole_at.as_u64() };
        }
        Ok(taken)
    }
}

impl TableSlot {
    fn is_of(&self, address: AddressKey) -> bool {
        self.address == address.to_u64() && self.full_at_ns > 0
    }
}

fn lock(set: &Mutex<Set>) -> MutexGuard<'_, Set> {
    set.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use engine::rng::SeededRng;

    use super::*;

    fn address(number: u32) -> AddressKey {
        AddressKey::from_ip(Ipv4Addr::from_bits(number).into())
    }

    fn put(table: &PerIpTable, address: AddressKey, whole_at_ns: u64) {
        let put: Result<(), ()> =
            table.measure_and_replace(&address, |_| Ok(((), Nanos::new(whole_at_ns))));
        put.unwrap();
    }

    #[test]
    fn ip_flood_does_not_evict_heavy_clients() {
        let table = PerIpTable::new(&SeededRng::new(1));
        let busy = address(1);
        put(&table, busy, 1_000);
        for number in 2..=1_000_002 {
            put(&table, address(number), 10);
        }
        assert!(table.count() <= RATE_LIMIT_IPS_MAX);
        assert!(table.count() > RATE_LIMIT_IPS_MAX * 9 / 10, "{}", table.count());
        assert_eq!(table.full_at(busy), Some(Nanos::new(1_000)));
    }

    #[test]
    fn adjacent_ips_spread_over_the_sets() {
        for seed in 0..8 {
            let table = PerIpTable::new(&SeededRng::new(seed));
            let neighbours = RATE_LIMIT_IPS_MAX as u32 / 4;
            for number in 0..neighbours {
                put(&table, address(0x0a00_0000 + number), 10);
            }
            let lost = neighbours as usize - table.count();
            assert!(lost < neighbours as usize / 20, "seed {seed}: {lost} of {neighbours}");
        }
    }

    #[test]
    fn rejected_requests_are_not_charged() {
        let table = PerIpTable::new(&SeededRng::new(1));
        let refused: Result<(), u8> = table.measure_and_replace(&address(1), |_| Err(7));
        assert_eq!((refused, table.count()), (Err(7), 0));
    }
}
