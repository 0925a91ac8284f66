//! Free disk space and the reserve that uploads may not use.
//!
//! A store on a full disk must still be able to log deletions, to seal segments and to write its index, because that
//! reclaims space. New bodies are therefore rejected while the free space is below the reserve, and accepted again
//! once there is more.
//!
//! Guarantees: the free space is queried at most once per second, or once per [`limits::FREE_SPACE_POLL_BYTES`]
//! written, and immediately after a full disk. If the disk does not report its free space, nothing is rejected: the
//! write itself will fail. Before anything is rejected, space is reclaimed: first from the garbage of the store, then
//! by the embedding application. Non-goals: what is rejected, and how.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::clock::Clock;
use crate::disk::{Disk, DiskFile};
use crate::error::{Error, Result};
use crate::limits;

/// Free-space accounting of an open store, shared by all writers.
pub(crate) struct FreeSpace {
    disk: Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    reserve_bytes: u64,
    /// Bytes written since the last query.
    bytes_since_sample: AtomicU64,
    look: Mutex<Option<FreeSpaceSample>>,
    reclaimer: OnceLock<Reclaimer>,
    /// Reclaimer that is called after `giver`.
    last_giver: OnceLock<Reclaimer>,
}

/// Reclaimer: reclaims up to the given number of bytes and returns how many.
type Reclaimer = Box<dyn Fn(u64) -> u64 + Send + Sync>;

/// Result and time of the last query.
#[derive(Clone, Copy)]
struct FreeSpaceSample {
    free_bytes: u64,
    at_ms: u64,
}

/// Free space below the reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shortage {
    pub(crate) free_bytes: u64,
    pub(crate) reserve_bytes: u64,
}

impl FreeSpace {
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
                needed_bytes.max(capacity_bytes / limits::RESERVE_DISK_DIVISOR)
            }
        };
        Ok(Self {
            disk,
            clock,
            reserve_bytes,
            bytes_since_sample: AtomicU64::new(0),
            look: Mutex::new(None),
            reclaimer: OnceLock::new(),
            last_giver: OnceLock::new(),
        })
    }

    /// Registers the first reclaimer. Only the first registration is used.
    pub(crate) fn set_reclaimer(&self, giver: impl Fn(u64) -> u64 + Send + Sync + 'static) {
        let _ = self.reclaimer.set(Box::new(giver));
    }

    /// Registers the reclaimer that is called if [`FreeSpace::set_reclaimer`] reclaimed too little. Only the first
    /// registration is used.
    pub(crate) fn give_back_last_by(&self, giver: impl Fn(u64) -> u64 + Send + Sync + 'static) {
        let _ = self.last_giver.set(Box::new(giver));
    }

    /// Fails with [`Error::NoSpace`] if the free space is below the reserve.
    pub(crate) fn require_reserve(&self) -> Result<()> {
        self.shortage().map_or(Ok(()), |_| Err(Error::NoSpace))
    }

    /// Fails if fewer than `bytes` are free, including the reserve.
    pub(crate) fn require_bytes(&self, bytes: u64) -> Result<()> {
        let free = || self.disk.free_bytes().unwrap_or(u64::MAX);
        let mut free_bytes = free();
        if free_bytes < bytes && self.reclaim(bytes - free_bytes) {
            free_bytes = free();
        }
        if free_bytes < bytes { Err(Error::NoSpace) } else { Ok(()) }
    }

    /// Returns capacity, free bytes and reserve; `None` if the disk does not report them.
    pub(crate) fn disk_usage(&self) -> Option<(u64, u64, u64)> {
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
        if free_bytes < reserve_bytes && self.reclaim(reserve_bytes - free_bytes) {
            self.invalidate_sample();
            free_bytes = self.free_bytes();
        }
        (free_bytes < reserve_bytes).then_some(Shortage { free_bytes, reserve_bytes })
    }

    /// Counts written bytes.
    pub(crate) fn count_written(&self, bytes: u64) {
        self.bytes_since_sample.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Handles a full disk: drops the cached free space and tries to reclaim space. Returns whether some was
    /// reclaimed, so that a retry is worthwhile.
    pub(crate) fn on_disk_full(&self) -> bool {
        let was_given = self.reclaimer.get().is_some_and(|give| give(u64::MAX) > 0)
            || self.last_giver.get().is_some_and(|give| give(limits::FREE_SPACE_POLL_BYTES) > 0);
        self.invalidate_sample();
        was_given
    }

    /// Writes bytes to a file outside of the reserve, again if the disk is full and space was reclaimed.
    pub(crate) fn write(
        &self,
        file: &dyn DiskFile,
        path: &str,
        offset: u64,
        bytes: &[u8],
    ) -> Result<()> {
        self.require_reserve()?;
        let write = || file.write_at(offset, &[bytes]);
        write()
            .or_else(|error| if self.has_room_after(&error) { write() } else { Err(error) })
            .map_err(|source| Error::io(format!("writing {path}"), source))?;
        self.count_written(bytes.len() as u64);
        Ok(())
    }

    /// Returns whether a retry is worthwhile after this error.
    fn has_room_after(&self, error: &io::Error) -> bool {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => self.on_disk_full(),
            _ => false,
        }
    }

    fn reclaim(&self, bytes: u64) -> bool {
        let given = self.reclaimer.get().map_or(0, |give| give(bytes));
        let left = bytes.saturating_sub(given);
        let last = self.last_giver.get().filter(|_| left > 0);
        given + last.map_or(0, |give| give(left)) > 0
    }

    fn invalidate_sample(&self) {
        *self.look.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn free_bytes(&self) -> u64 {
        let mut look = self.look.lock().unwrap_or_else(PoisonError::into_inner);
        let now_ms = self.clock.monotonic_ms();
        if let Some(last) = *look
            && now_ms.saturating_sub(last.at_ms) < limits::FREE_SPACE_POLL_MS
            && self.bytes_since_sample.load(Ordering::Relaxed) < limits::FREE_SPACE_POLL_BYTES
        {
            return last.free_bytes;
        }
        self.bytes_since_sample.store(0, Ordering::Relaxed);
        let free_bytes = self.disk.free_bytes().unwrap_or(u64::MAX);
        *look = Some(FreeSpaceSample { free_bytes, at_ms: now_ms });
        free_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SimClock;
    use crate::disk::sim::SimDisk;

    const MIB: u64 = 1 << 20;

    fn space(disk: &SimDisk, clock: &Arc<SimClock>, reserve_bytes: Option<u64>) -> FreeSpace {
        let (disk, clock) = (Arc::new(disk.clone()), Arc::clone(clock));
        FreeSpace::new(disk, clock, reserve_bytes, 256 * MIB).unwrap()
    }

    #[test]
    fn default_reserve_is_segments_plus_index_or_one_percent() {
        let (disk, clock) = (SimDisk::new(), Arc::new(SimClock::at(0)));
        for (free_mib, reserve_mib) in [(10_000, 576), (57_600, 576), (100_000, 1_000)] {
            disk.set_free_bytes(free_mib * MIB);
            assert_eq!(space(&disk, &clock, None).reserve_bytes, reserve_mib * MIB);
        }
        assert_eq!(space(&disk, &clock, Some(7)).reserve_bytes, 7);
    }

    #[test]
    fn free_space_is_resampled_by_time_bytes_or_enospc() {
        let (disk, clock) = (SimDisk::new(), Arc::new(SimClock::at(0)));
        let space = space(&disk, &clock, Some(MIB));
        let asks_again: [&dyn Fn(); 3] = [
            &|| clock.advance(limits::FREE_SPACE_POLL_MS),
            &|| space.count_written(limits::FREE_SPACE_POLL_BYTES),
            &|| {
                space.on_disk_full();
            },
        ];
        for ask_again in asks_again {
            disk.set_free_bytes(MIB);
            ask_again();
            assert_eq!(space.shortage(), None);
            disk.set_free_bytes(MIB / 2);
            clock.advance(limits::FREE_SPACE_POLL_MS - 1);
            space.count_written(limits::FREE_SPACE_POLL_BYTES - 1);
            assert_eq!(space.shortage(), None, "it was not asked again");
            ask_again();
            let shortage = Shortage { free_bytes: MIB / 2, reserve_bytes: MIB };
            assert_eq!(space.shortage(), Some(shortage));
            assert!(matches!(space.require_reserve(), Err(Error::NoSpace)));
        }
    }

    #[test]
    fn space_is_reclaimed_before_writes_are_rejected() {
        let (disk, clock) = (SimDisk::new(), Arc::new(SimClock::at(0)));
        disk.set_free_bytes(MIB);
        let space = space(&disk, &clock, Some(3 * MIB));
        let (left, of) = (Arc::new(Mutex::new(5 * MIB)), disk.clone());
        let giver = Arc::clone(&left);
        space.set_reclaimer(move |wanted| {
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
        assert!(space.on_disk_full(), "the rest");
        assert!(!space.on_disk_full());
        assert!(space.require_bytes(7 * MIB).is_err());
    }

    #[test]
    fn zero_reserve_rejects_nothing_in_advance() {
        let (disk, clock) = (SimDisk::new(), Arc::new(SimClock::at(0)));
        disk.set_free_bytes(0);
        assert_eq!(space(&disk, &clock, Some(0)).shortage(), None);
    }
}
