//! Fixed-size table of the rate-limit state of client addresses, which a flood of addresses cannot grow.
//!
//! The table consists of sets of a few slots. An address belongs to one set, by a secret hash; in a full set the
//! address with the lowest usage is evicted, which is one that could have been forgotten anyway unless many are active
//! at once. Guarantees: a lookup locks one shard of the sets, allocates nothing and reads contiguous memory; an evicted
//! address gets more than its limit, never less. Non-goals: the limits.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::rng::Rng;
use governor::nanos::Nanos;
use governor::state::StateStore;
use listener::ip_network::AddressKey;

use crate::limits::RATE_LIMIT_IPS_MAX;

/// Table of addresses. Cheap to clone; clones share the table.
#[derive(Clone)]
pub(super) struct PerIpTable(Arc<Shards>);

struct Shards {
    shards: [Mutex<Shard>; SHARDS],
    mask: u64,
    factor: u64,
}

/// Slots of sets, one set after the other.
type Shard = Vec<TableSlot>;
/// Address and its usage, as the time in nanoseconds when its bucket is full again; zero marks an empty slot.
type TableSlot = (u64, u64);
const SHARDS: usize = 32;
const WAYS: usize = 8;
const SETS: usize = RATE_LIMIT_IPS_MAX / WAYS;

const _: () = assert!(SETS.is_power_of_two() && SETS * WAYS == RATE_LIMIT_IPS_MAX);

impl PerIpTable {
    pub(super) fn new(rng: &dyn Rng) -> Self {
        // Allocated as zeroed memory, which the system provides at its first use.
        let shards = std::array::from_fn(|_| Mutex::new(vec![(0, 0); RATE_LIMIT_IPS_MAX / SHARDS]));
        // Without knowing the factor, a client cannot choose addresses of one set.
        Self(Arc::new(Shards { shards, mask: rng.next_u64(), factor: rng.next_u64() | 1 }))
    }

    /// Returns when the bucket of the address is full again; `None` if the address is unknown.
    pub(super) fn full_at(&self, address: AddressKey) -> Option<Nanos> {
        self.with_set(address, |set| slot_of(set, address).map(|(_, at)| Nanos::new(*at)))
    }

    /// Refunds usage of an address, at most to zero.
    pub(super) fn refund(&self, address: AddressKey, used: Nanos) {
        self.with_set(address, |set| {
            if let Some((_, full_at_ns)) = slot_of(set, address) {
                *full_at_ns = full_at_ns.saturating_sub(used.as_u64());
            }
        });
    }

    /// Returns the number of known addresses.
    pub(super) fn count(&self) -> usize {
        let known = |shard| lock(shard).iter().filter(|(_, full_at_ns)| *full_at_ns > 0).count();
        self.0.shards.iter().map(known).sum()
    }

    /// Calls a function with the set of an address.
    fn with_set<T>(&self, address: AddressKey, work: impl FnOnce(&mut [TableSlot]) -> T) -> T {
        let Shards { shards, mask, factor } = &*self.0;
        let mixed = (address.to_u64() ^ mask).wrapping_mul(*factor);
        // The high bits of a product depend on all bits of its factor.
        let set = (mixed >> (u64::BITS - SETS.ilog2())) as usize;
        let at = set / SHARDS * WAYS;
        work(&mut lock(&shards[set % SHARDS])[at..at + WAYS])
    }
}

impl StateStore for PerIpTable {
    type Key = AddressKey;

    fn measure_and_replace<T, F, E>(&self, address: &AddressKey, decide: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        self.with_set(*address, |set| {
            let known = slot_of(set, *address);
            let (taken, full_at) = decide(known.as_deref().map(|(_, at)| Nanos::new(*at)))?;
            let slot = match known {
                Some(slot) => Some(slot),
                None => set.iter_mut().min_by_key(|(_, full_at_ns)| *full_at_ns),
            };
            if let Some(slot) = slot {
                *slot = (address.to_u64(), full_at.as_u64());
            }
            Ok(taken)
        })
    }
}

fn slot_of(set: &mut [TableSlot], address: AddressKey) -> Option<&mut TableSlot> {
    let address = address.to_u64();
    set.iter_mut().find(|(known, full_at_ns)| *known == address && *full_at_ns > 0)
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
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
