//! Free disk space and the reserve that uploads may not use.
//!
//! A store on a full disk must still be able to log deletions, to seal segments and to write its index, because that
//! reclaims space. New bodies are therefore rejected while the free space is below the reserve, and accepted again
//! once there is more.
//!
//! Guarantees: the free space is queried at most once per second, or once per [`limits::SPACE_LOOK_BYTES`] written,
//! and immediately after a full disk. If the disk does not report its free space, nothing is rejected: the write
//! itself will fail. Before anything is rejected, space is reclaimed: first from the garbage of the store, then by
//! the embedding application.
//! Non-goals: what is rejected, and how.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::clock::Clock;
use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::limits;

/// Free-space accounting of an open store, shared by all writers.
pub(crate) struct Space {
    disk: Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    reserve_bytes: u64,
    /// Bytes written since the last query.
    unseen_bytes: AtomicU64,
    look: Mutex<Option<Look>>,
    giver: OnceLock<Giver>,
    /// Reclaimer that is called after `giver`.
    last_giver: OnceLock<Giver>,
}

/// Reclaimer: reclaims up to the given number of bytes and returns how many.
type Giver = Box<dyn Fn(u64) -> u64 + Send + Sync>;

/// Result and time of the last query.
#[derive(Clone, Copy)]
struct Look {
    free_bytes: u64,
    at_ms: u64,
}

/// Free space below the reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shortage {
    pub(crate) free_bytes: u64,
    pub(crate) reserve_bytes: u64,
}

impl Space {
    /// Creates the accounting with this reserve; the default is what a store with log segments of this size needs to
    /// continue deleting.
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
        reserve_bytes: Option<u64>,
        segment_bytes: u64,
    ) -> Result<Self> {
        let reserve_bytes = match reserve_bytes {
            Some(bytes) => bytes,
            None => {
                let capacity_bytes = disk
                    .capacity_bytes()
                    .map_err(|source| Error::io("reading the size of the file system", source))?;
                let needed_bytes = 2 * segment_bytes + limits::RESERVE_INDEX_BYTES;
                needed_bytes.max(capacity_bytes / limits::RESERVE_DISK_SHARE)
            }
        };
        Ok(Self {
            disk,
            clock,
            reserve_bytes,
            unseen_bytes: AtomicU64::new(0),
            look: Mutex::new(None),
            giver: OnceLock::new(),
            last_giver: OnceLock::new(),
        })
    }

    /// Registers the first reclaimer. Only the first registration is used.
    pub(crate) fn give_back_by(&self, giver: impl Fn(u64) -> u64 + Send + Sync + 'static) {
        let _ = self.giver.set(Box::new(giver));
    }

    /// Registers the reclaimer that is called if [`Space::give_back_by`] reclaimed too little. Only the first
    /// registration is used.
    pub(crate) fn give_back_last_by(&self, giver: impl Fn(u64) -> u64 + Send + Sync + 'static) {
        let _ = self.last_giver.set(Box::new(giver));
    }

    /// Fails with [`Error::NoSpace`] if the free space is below the reserve.
    pub(crate) fn require_room(&self) -> Result<()> {
        self.shortage().map_or(Ok(()), |_| Err(Error::NoSpace))
    }

    /// Fails if fewer than `bytes` are free, including the reserve.
    pub(crate) fn require_bytes(&self, bytes: u64) -> Result<()> {
        let free = || self.disk.free_bytes().unwrap_or(u64::MAX);
        let mut free_bytes = free();
        if free_bytes < bytes && self.give_back(bytes - free_bytes) {
            free_bytes = free();
        }
        if free_bytes < bytes { Err(Error::NoSpace) } else { Ok(()) }
    }

    /// Returns capacity, free bytes and reserve; `None` if the disk does not report them.
    pub(crate) fn figures(&self) -> Option<(u64, u64, u64)> {
        let (total_bytes, free_bytes) = (self.disk.capacity_bytes(), self.disk.free_bytes());
        Some((total_bytes.ok()?, free_bytes.ok()?, self.reserve_bytes))
    }

    /// Returns the shortage if the free space is below the reserve.
    pub(crate) fn shortage(&self) -> Option<Shortage> {
        if self.reserve_bytes == 0 {
            return None;
        }
        let reserve_bytes = self.reserve_bytes;
        let mut free_bytes = self.free_bytes();
        if free_bytes < reserve_bytes && self.give_back(reserve_bytes - free_bytes) {
            self.look_again();
            free_bytes = self.free_bytes();
        }
        (free_bytes < reserve_bytes).then_some(Shortage { free_bytes, reserve_bytes })
    }

    /// Counts written bytes.
    pub(crate) fn count_written(&self, bytes: u64) {
        self.unseen_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Handles a full disk: drops the cached free space and tries to reclaim space. Returns whether some was
    /// reclaimed, so that a retry is worthwhile.
    pub(crate) fn ran_out(&self) -> bool {
        let was_given = self.giver.get().is_some_and(|give| give(u64::MAX) > 0)
            || self.last_giver.get().is_some_and(|give| give(limits::SPACE_LOOK_BYTES) > 0);
        self.look_again();
        was_given
    }

    /// Returns whether a retry is worthwhile after this error.
    pub(crate) fn has_room_after(&self, error: &io::Error) -> bool {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => self.ran_out(),
            _ => false,
        }
    }

    fn give_back(&self, bytes: u64) -> bool {
        let given = self.giver.get().map_or(0, |give| give(bytes));
        let left = bytes.saturating_sub(given);
        let last = self.last_giver.get().filter(|_| left > 0);
        given + last.map_or(0, |give| give(left)) > 0
    }

    fn look_again(&self) {
        *self.look.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn free_bytes(&self) -> u64 {
        let mut look = self.look.lock().unwrap_or_else(PoisonError::into_inner);
        let now_ms = self.clock.monotonic_ms();
        if let Some(last) = *look
            && now_ms.saturating_sub(last.at_ms) < limits::SPACE_LOOK_MS
            && self.unseen_bytes.load(Ordering::Relaxed) < limits::SPACE_LOOK_BYTES
        {
            return last.free_bytes;
        }
        self.unseen_bytes.store(0, Ordering::Relaxed);
        let free_bytes = self.disk.free_bytes().unwrap_or(u64::MAX);
        *look = Some(Look { free_bytes, at_ms: now_ms });
        free_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SimClock;
    use crate::disk::sim::SimDisk;

    const MIB: u64 = 1 << 20;

    fn space(disk: &SimDisk, clock: &Arc<SimClock>, reserve_bytes: Option<u64>) -> Space {
        let (disk, clock) = (Arc::new(disk.clone()), Arc::clone(clock));
        Space::new(disk, clock, reserve_bytes, 256 * MIB).unwrap()
    }

    #[test]
    fn the_default_reserve_is_two_segments_and_the_index_or_a_hundredth_of_the_disk() {
        let (disk, clock) = (SimDisk::new(), Arc::new(SimClock::at(0)));
        for (free_mib, reserve_mib) in [(10_000, 576), (57_600, 576), (100_000, 1_000)] {
            disk.set_free_bytes(free_mib * MIB);
            assert_eq!(space(&disk, &clock, None).reserve_bytes, reserve_mib * MIB);
        }
        assert_eq!(space(&disk, &clock, Some(7)).reserve_bytes, 7);
    }

    #[test]
    fn the_disk_is_asked_again_after_a_second_or_some_writing_or_when_it_ran_out() {
        let (disk, clock) = (SimDisk::new(), Arc::new(SimClock::at(0)));
        let space = space(&disk, &clock, Some(MIB));
        let asks_again: [&dyn Fn(); 3] = [
            &|| clock.advance(limits::SPACE_LOOK_MS),
            &|| space.count_written(limits::SPACE_LOOK_BYTES),
            &|| {
                space.ran_out();
            },
        ];
        for ask_again in asks_again {
            disk.set_free_bytes(MIB);
            ask_again();
            assert_eq!(space.shortage(), None);
            disk.set_free_bytes(MIB / 2);
            clock.advance(limits::SPACE_LOOK_MS - 1);
            space.count_written(limits::SPACE_LOOK_BYTES - 1);
            assert_eq!(space.shortage(), None, "it was not asked again");
            ask_again();
            let shortage = Shortage { free_bytes: MIB / 2, reserve_bytes: MIB };
            assert_eq!(space.shortage(), Some(shortage));
            assert!(matches!(space.require_room(), Err(Error::NoSpace)));
        }
    }

    #[test]
    fn what_can_be_given_back_is_before_anything_is_refused() {
        let (disk, clock) = (SimDisk::new(), Arc::new(SimClock::at(0)));
        disk.set_free_bytes(MIB);
        let space = space(&disk, &clock, Some(3 * MIB));
        let (left, of) = (Arc::new(Mutex::new(5 * MIB)), disk.clone());
        let giver = Arc::clone(&left);
        space.give_back_by(move |wanted| {
            let mut left = giver.lock().unwrap();
            let given = wanted.min(*left);
            *left -= given;
            of.set_free_bytes(of.free_bytes().unwrap() + given);
            given
        });
        assert_eq!(space.shortage(), None);
        assert_eq!((disk.free_bytes().unwrap(), *left.lock().unwrap()), (3 * MIB, 3 * MIB));
        space.require_bytes(4 * MIB).unwrap();
        assert_eq!(*left.lock().unwrap(), 2 * MIB);
        assert!(space.ran_out(), "the rest");
        assert!(!space.ran_out());
        assert!(space.require_bytes(7 * MIB).is_err());
    }

    #[test]
    fn without_a_reserve_nothing_is_refused_beforehand() {
        let (disk, clock) = (SimDisk::new(), Arc::new(SimClock::at(0)));
        disk.set_free_bytes(0);
        assert_eq!(space(&disk, &clock, Some(0)).shortage(), None);
    }
}
