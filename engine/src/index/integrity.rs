//! Integrity state: scrub results and known damage of segments, which do not follow from the log.
//!
//! The state is in memory and is written to two redb tables in separate transactions. If a write fails, it remains
//! in memory and is written with the next; a store does not depend on it, and a rebuilt index begins without it.
//!
//! Guarantees: at most [`limits::DAMAGE_LISTED_MAX`] locations are listed, the others counted; a location retains
//! the time of its first detection.
//! Non-goals: finding damage.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, ControlFlow};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redb::{Durability, ReadTransaction, ReadableTable, TableDefinition, TableError};

use super::Index;
use super::tables::{damaged, unusable};
use super::view::View;
use crate::error::Result;
use crate::format::{Damage, Entry, Malformed, ScrubResult, SegmentId, entry_key};
use crate::limits;
use crate::name::ObjectName;

const SCRUBS: TableDefinition<u64, &[u8]> = TableDefinition::new("scrubs");
const DAMAGE: TableDefinition<(u64, u64), &[u8]> = TableDefinition::new("damage");

/// List of corrupt locations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DamageList {
    /// Corrupt locations, by segment and offset; at most [`limits::DAMAGE_LISTED_MAX`].
    pub places: Vec<Damage>,
    /// Number of further locations that are not listed.
    pub unlisted: u64,
}

impl DamageList {
    /// Returns the number of all locations, listed or not.
    pub fn count(&self) -> u64 {
        self.unlisted.saturating_add(self.places.len() as u64)
    }

    /// Adds a location, or only counts it.
    pub(crate) fn add(&mut self, damage: Damage) {
        if self.places.len() < limits::DAMAGE_LISTED_MAX {
            self.places.push(damage);
        } else {
            self.unlisted += 1;
        }
    }
}

/// Integrity state of an open index.
#[derive(Default)]
pub(super) struct IntegrityState(Mutex<State>);

type SegmentOffset = (SegmentId, u64);

#[derive(Default)]
struct State {
    scrubs: BTreeMap<SegmentId, ScrubResult>,
    damage: BTreeMap<SegmentOffset, Damage>,
    /// Number of locations that were reported only as a count.
    unlisted: u64,
    unsaved: Unsaved,
}

/// Changes that are not in redb yet.
#[derive(Clone, Default)]
struct Unsaved {
    scrubs: BTreeSet<SegmentId>,
    damage: BTreeSet<SegmentOffset>,
}

impl IntegrityState {
    /// Loads the state from redb, as far as it was written. Missing tables were never written.
    pub(super) fn load(transaction: &ReadTransaction) -> Result<Self> {
        let mut state = State::default();
        match transaction.open_table(SCRUBS) {
            Ok(table) => {
                for item in table.iter().map_err(unusable)? {
                    let (id, value) = item.map_err(unusable)?;
                    let id = segment(id.value())?;
                    let result = ScrubResult::decode(id, value.value()).map_err(damaged)?;
                    state.scrubs.insert(id, result);
                }
            }
            Err(TableError::TableDoesNotExist(_)) => {}
            Err(other) => return Err(unusable(other)),
        }
        match transaction.open_table(DAMAGE) {
            Ok(table) => {
                for item in table.iter().map_err(unusable)?.take(limits::DAMAGE_LISTED_MAX) {
                    let (place, value) = item.map_err(unusable)?;
                    let (id, offset) = place.value();
                    let id = segment(id)?;
                    let damage = Damage::decode(id, offset, value.value()).map_err(damaged)?;
                    state.damage.insert((id, offset), damage);
                }
            }
            Err(TableError::TableDoesNotExist(_)) => {}
            Err(other) => return Err(unusable(other)),
        }
        Ok(Self(Mutex::new(state)))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn insert(&mut self, damage: Damage) {
        let place = (damage.segment, damage.offset);
        let is_full = self.damage.len() >= limits::DAMAGE_LISTED_MAX;
        let damage = match self.damage.get(&place) {
            Some(known) => Damage {
                found_ms: known.found_ms,
                lsn: damage.lsn.or(known.lsn),
                name: damage.name.or_else(|| known.name.clone()),
                ..damage
            },
            None if is_full => return,
            None => damage,
        };
        if self.damage.get(&place) != Some(&damage) {
            self.damage.insert(place, damage);
            self.unsaved.damage.insert(place);
        }
    }

    fn remove(&mut self, place: SegmentOffset) {
        if self.damage.remove(&place).is_some() {
            self.unsaved.damage.insert(place);
        }
    }
}

impl Index {
    /// Records damage that was found outside a scrub.
    pub(crate) fn record_damage(&self, damage: Damage) {
        self.integrity.lock().insert(damage);
    }

    /// Records the number of corrupt locations found but not listed.
    pub(crate) fn record_unlisted_damage(&self, count: u64) {
        let mut state = self.integrity.lock();
        state.unlisted = state.unlisted.saturating_add(count);
    }

    /// Records a scrub result. The damage found replaces the known damage of the segment.
    pub(crate) fn record_scrub(&self, id: SegmentId, result: ScrubResult, found: &[Damage]) {
        let mut state = self.integrity.lock();
        let still: BTreeSet<u64> = found.iter().map(|damage| damage.offset).collect();
        let known = state.damage.range((id, 0)..=(id, u64::MAX));
        let healed: Vec<_> =
            known.map(|(place, _)| *place).filter(|(_, at)| !still.contains(at)).collect();
        for place in healed {
            state.remove(place);
        }
        for damage in found {
            state.insert(damage.clone());
        }
        state.scrubs.insert(id, result);
        state.unsaved.scrubs.insert(id);
    }

    /// Returns the time of the last scrub of a segment, and its number of known corrupt locations.
    pub(crate) fn segment_integrity(&self, id: SegmentId) -> (Option<u64>, u64) {
        let state = self.integrity.lock();
        let result = state.scrubs.get(&id);
        let listed = state.damage.range((id, 0)..=(id, u64::MAX)).count() as u64;
        let counted = result.map_or(0, |result| result.damage_count);
        (result.map(|result| result.verified_ms), listed.max(counted))
    }

    /// Returns all known damage.
    pub(crate) fn damage(&self) -> DamageList {
        let state = self.integrity.lock();
        let mut listed: BTreeMap<SegmentId, u64> = BTreeMap::new();
        for (id, _) in state.damage.keys() {
            *listed.entry(*id).or_default() += 1;
        }
        let unlisted = state.scrubs.iter().map(|(id, result)| {
            result.damage_count.saturating_sub(listed.get(id).copied().unwrap_or(0))
        });
        let unlisted = unlisted.fold(state.unlisted, u64::saturating_add);
        DamageList { places: state.damage.values().cloned().collect(), unlisted }
    }

    /// Forgets the state of removed segments, except for those whose removal is the damage.
    pub(crate) fn forget_segments(&self, is_gone: impl Fn(SegmentId, Option<&Damage>) -> bool) {
        let mut state = self.integrity.lock();
        let scrubs = state.scrubs.keys().filter(|id| is_gone(**id, None));
        let scrubs: Vec<_> = scrubs.copied().collect();
        let is_past = |damage: &Damage| {
            damage.reason != Malformed::Missing && is_gone(damage.segment, Some(damage))
        };
        let damage = state.damage.iter().filter(|(_, damage)| is_past(damage));
        let damage: Vec<_> = damage.map(|(place, _)| *place).collect();
        for id in scrubs {
            state.scrubs.remove(&id);
            state.unsaved.scrubs.insert(id);
        }
        for place in damage {
            state.remove(place);
        }
    }

    /// Writes the changes that are not in redb yet. Waits for a running checkpoint. After an error they are retained
    /// for the next call.
    pub(crate) fn save_integrity(&self) -> Result<()> {
        let mut reopening = self.draining.lock().unwrap_or_else(PoisonError::into_inner);
        self.reopen_periodically(&mut reopening)?;
        let mut state = self.integrity.lock();
        let unsaved = std::mem::take(&mut state.unsaved);
        if unsaved.scrubs.is_empty() && unsaved.damage.is_empty() {
            return Ok(());
        }
        let scrubs: Vec<_> =
            unsaved.scrubs.iter().map(|id| (*id, state.scrubs.get(id).copied())).collect();
        let damage: Vec<_> =
            unsaved.damage.iter().map(|place| (*place, state.damage.get(place).cloned())).collect();
        drop(state);
        Self::guard(|| self.write_integrity(&scrubs, &damage)).inspect_err(|_| {
            let mut state = self.integrity.lock();
            state.unsaved.scrubs.extend(unsaved.scrubs);
            state.unsaved.damage.extend(unsaved.damage);
        })
    }

    fn write_integrity(
        &self,
        scrubs: &[(SegmentId, Option<ScrubResult>)],
        damage: &[(SegmentOffset, Option<Damage>)],
    ) -> Result<()> {
        let mut transaction = self.tables.begin_write()?;
        transaction.set_durability(Durability::Immediate).map_err(unusable)?;
        transaction.set_quick_repair(true);
        {
            let mut table = transaction.open_table(SCRUBS).map_err(unusable)?;
            for (id, result) in scrubs {
                match result {
                    Some(result) => {
                        table.insert(id.get(), result.encode(*id).as_slice()).map_err(unusable)?
                    }
                    None => table.remove(id.get()).map_err(unusable)?,
                };
            }
            let mut table = transaction.open_table(DAMAGE).map_err(unusable)?;
            for ((id, offset), damage) in damage {
                let key = (id.get(), *offset);
                match damage {
                    Some(damage) => {
                        table.insert(key, damage.encode().as_slice()).map_err(unusable)?
                    }
                    None => table.remove(key).map_err(unusable)?,
                };
            }
        }
        transaction.commit().map_err(unusable)
    }
}

impl View {
    /// Finds the objects whose entries match. Reads the whole index: used to find the owners of damage.
    pub(crate) fn resolve_damage_owners(
        &self,
        wanted: impl Fn(&Entry) -> bool,
        mut found: impl FnMut(ObjectName, Arc<Entry>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        for item in self.entries(Bound::Unbounded, &END_OF_KEYS)? {
            let (key, entry) = item?;
            if wanted(&entry) {
                let name = entry_key::decode(&key).map_err(damaged)?;
                if found(name, entry)?.is_break() {
                    break;
                }
            }
        }
        Ok(())
    }
}

fn segment(number: u64) -> Result<SegmentId> {
    SegmentId::new(number).ok_or_else(|| damaged(Malformed::Misplaced))
}

/// Sorts after every index key, because bucket names are ASCII.
const END_OF_KEYS: [u8; 1] = [0xff];
