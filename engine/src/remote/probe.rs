//! Probe of a remote store: which of the required properties it has.
//!
//! Observation, not the name of the product, decides what replication may rely on: stores accept conditional requests
//! and ignore the condition, and the same product differs between releases. Guarantees: at most 16 objects of at most
//! 1 KiB, removed again, also after an error. Non-goals: decisions; bandwidth.

use std::io;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread;

use bytes::Bytes;

use super::{Created, Part, RemoteBytes, RemoteStore};
use crate::clock::Clock;

/// Properties of a remote store, as observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeReport {
    /// Whether creation is atomic: an existing object is neither replaced nor reported as new, and of 16 concurrent
    /// creations exactly one succeeds. Without it, two primaries are not detected.
    pub creates_atomically: bool,
    /// Whether a listing shows what was created, and no longer what was removed, before it. Without it, a restore may
    /// miss the newest manifest.
    pub lists_after_write: bool,
    /// Whether reads of ranges and suffixes return exactly these bytes, also beyond the end of the object. Without it,
    /// segments cannot be read in parts.
    pub reads_ranges: bool,
    /// Whether an object is readable directly after its creation, also if it was missing in a read before. Without it,
    /// replicas wait for chunks that exist.
    pub reads_after_create: bool,
    /// Clock of the store minus the clock of this machine, in milliseconds. Stores report times in seconds, so
    /// differences below about 1,000 have no meaning.
    pub clock_skew_ms: i64,
    /// Median duration of the creation of a small object, in milliseconds.
    pub create_ms: u64,
}

/// Concurrent creations of one name.
const WRITERS: u8 = 16;
/// Names that are created concurrently.
const RACES: usize = 4;
/// Attempts of a race in which the store rejected every creation.
const ATTEMPTS_MAX: usize = 3;
/// Objects for each of the properties that caches break at random.
const REPEATS: usize = 5;
/// Length of the object of which ranges are read.
const RANGED_BYTES: u64 = 1_024;

/// Observes a remote store with small objects below `probe/`, which are removed again.
///
/// Fails if the store cannot be reached, refuses access, or rejects conditional requests. `id` must be new, since
/// objects of an earlier probe with the same id look like creations that were not atomic.
pub fn probe(
    remote: &Arc<dyn RemoteStore>,
    clock: &dyn Clock,
    id: uuid::Uuid,
) -> io::Result<ProbeReport> {
    let folder = format!("probe/{}", id.as_simple());
    let probe = Probe { remote: &**remote, clock, folder, created: Mutex::default() };
    let report = probe.observe();
    let removed = probe.remove_all();
    let report = report?;
    removed?;
    Ok(report)
}

struct Probe<'a> {
    remote: &'a dyn RemoteStore,
    clock: &'a dyn Clock,
    folder: String,
    /// Names of possibly created objects.
    created: Mutex<Vec<String>>,
}

impl Probe<'_> {
    fn observe(&self) -> io::Result<ProbeReport> {
        let is_single = self.creates_once()?;
        let (reads_after_create, mut durations_ms) = self.reads_after_create()?;
        let (lists_after_write, clock_skew_ms) = self.lists_after_write()?;
        let reads_ranges = self.reads_ranges()?;
        let mut has_one_winner = true;
        for race in 0..RACES {
            has_one_winner &= self.has_one_winner(&self.name("race", race))?;
        }
        durations_ms.sort_unstable();
        Ok(ProbeReport {
            creates_atomically: is_single && has_one_winner,
            lists_after_write,
            reads_ranges,
            reads_after_create,
            clock_skew_ms,
            create_ms: durations_ms.get(durations_ms.len() / 2).copied().unwrap_or(0),
        })
    }

    fn name(&self, what: &str, number: usize) -> String {
        format!("{}/{what}-{number}", self.folder)
    }

    fn create(&self, name: &str, bytes: &[u8]) -> io::Result<Created> {
        let mut created = self.created.lock().unwrap_or_else(PoisonError::into_inner);
        if !created.iter().any(|known| known == name) {
            created.push(name.to_owned());
        }
        drop(created);
        self.remote.create(name, &[Bytes::copy_from_slice(bytes)])
    }

    /// Returns whether a name is free once only, and keeps its first bytes.
    fn creates_once(&self) -> io::Result<bool> {
        let name = self.name("once", 0);
        let created = [self.create(&name, b"first")?, self.create(&name, b"second")?];
        let read = self.remote.read(&name, Part::Whole)?;
        let is_first = read.is_some_and(|read| read.bytes == b"first"[..]);
        Ok(created == [Created::New, Created::Exists] && is_first)
    }

    /// Returns whether objects are readable after creation, and how long the creations took.
    fn reads_after_create(&self) -> io::Result<(bool, Vec<u64>)> {
        let (mut is_read, mut durations_ms) = (true, Vec::new());
        for number in 0..REPEATS {
            let name = self.name("read", number);
            is_read &= self.remote.read(&name, Part::Whole)?.is_none();
            let began_ms = self.clock.monotonic_ms();
            self.create(&name, b"created")?;
            durations_ms.push(self.clock.monotonic_ms().saturating_sub(began_ms));
            let read = self.remote.read(&name, Part::Whole)?;
            is_read &= read.is_some_and(|read| read.bytes == b"created"[..]);
        }
        Ok((is_read, durations_ms))
    }

    /// Returns whether listings show each creation and removal, and the difference of the clocks.
    fn lists_after_write(&self) -> io::Result<(bool, i64)> {
        let (mut is_exact, mut skew_ms) = (true, 0);
        for number in 0..REPEATS {
            let name = self.name("list", number);
            let began_ms = self.clock.unix_ms();
            self.create(&name, b"listed")?;
            let own_ms = began_ms.midpoint(self.clock.unix_ms());
            match &self.remote.list(&name, None, 2)?[..] {
                [object] if object.name == name && object.bytes == 6 => {
                    skew_ms = object.modified_ms.cast_signed().saturating_sub_unsigned(own_ms);
                }
                _ => is_exact = false,
            }
            self.remote.remove(&name)?;
            is_exact &= self.remote.list(&name, None, 2)?.is_empty();
        }
        Ok((is_exact, skew_ms))
    }

    /// Returns whether ranges are exact. A refused range is one that the store does not support, not an error.
    fn reads_ranges(&self) -> io::Result<bool> {
        let name = self.name("range", 0);
        let whole: Vec<u8> = (0..RANGED_BYTES).map(|at| (at % 251) as u8).collect();
        self.create(&name, &whole)?;
        let parts = [
            (Part::Range(100..200), &whole[100..200]),
            (Part::Range(1_000..2_000), &whole[1_000..]),
            (Part::Range(5_000..6_000), &[]),
            (Part::Suffix(24), &whole[1_000..]),
            (Part::Suffix(5_000), &whole),
        ];
        Ok(parts.into_iter().all(|(part, bytes)| {
            let expected =
                RemoteBytes { bytes: Bytes::copy_from_slice(bytes), object_bytes: RANGED_BYTES };
            matches!(self.remote.read(&name, part), Ok(Some(read)) if read == expected)
        }))
    }

    /// Returns whether one of the concurrent creations of a name succeeds, and its bytes are those of the object.
    fn has_one_winner(&self, name: &str) -> io::Result<bool> {
        for _ in 0..ATTEMPTS_MAX {
            let winners = self.race(name)?;
            let read = self.remote.read(name, Part::Whole)?;
            match (&winners[..], read) {
                // The store rejected all of them as conflicts, and decided none.
                ([], None) => {}
                ([winner], Some(read)) => return Ok(read.bytes == [*winner][..]),
                _ => return Ok(false),
            }
        }
        Ok(false)
    }

    /// Creates an object concurrently; returns the writers that succeeded.
    fn race(&self, name: &str) -> io::Result<Vec<u8>> {
        let gate = RwLock::new(());
        thread::scope(|scope| {
            let closed = gate.write().unwrap_or_else(PoisonError::into_inner);
            let mut writers = Vec::new();
            for writer in 0..WRITERS {
                let gate = &gate;
                let create = move || {
                    drop(gate.read());
                    self.create(name, &[writer])
                };
                let thread = thread::Builder::new().name("trug-probe".into());
                writers.push((writer, thread.spawn_scoped(scope, create)?));
            }
            drop(closed);
            let mut winners = Vec::new();
            for (writer, thread) in writers {
                let panicked = |_| Err(io::Error::other("a writer of the probe panicked"));
                if thread.join().unwrap_or_else(panicked)? == Created::New {
                    winners.push(writer);
                }
            }
            Ok(winners)
        })
    }

    /// Removes all objects; returns the first error.
    fn remove_all(&self) -> io::Result<()> {
        let created = self.created.lock().unwrap_or_else(PoisonError::into_inner);
        created.iter().map(|name| self.remote.remove(name)).fold(Ok(()), io::Result::and)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::clock::SystemClock;
    use crate::remote::{ReadPiece, RemoteObject};

    /// Fault of a store.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Fault {
        None,
        /// Accepts conditions and ignores them.
        IgnoresConditions,
        /// Checks conditions before it writes, not atomically.
        ChecksFirst,
        /// Returns whole objects for ranges.
        IgnoresRanges,
        /// Shows objects in listings only after the next change.
        ListsLate,
        /// Remembers missing objects.
        CachesMissing,
        /// Refuses removals from the second one on.
        RefusesRemovals,
        /// Clock is an hour ahead.
        ClockIsAhead,
    }

    type Objects = BTreeMap<String, Bytes>;

    struct MemoryRemote {
        fault: Fault,
        objects: Mutex<Objects>,
        listed: Mutex<Objects>,
        missing: Mutex<Vec<String>>,
    }

    impl MemoryRemote {
        fn put(&self, name: &str, bytes: Bytes) {
            let mut objects = self.objects.lock().unwrap();
            *self.listed.lock().unwrap() = objects.clone();
            objects.insert(name.to_owned(), bytes);
        }
    }

    impl RemoteStore for MemoryRemote {
        fn create(&self, name: &str, pieces: &[Bytes]) -> io::Result<Created> {
            let exists = || self.objects.lock().unwrap().contains_key(name);
            let bytes = Bytes::from(pieces.concat());
            match self.fault {
                Fault::IgnoresConditions => {}
                Fault::ChecksFirst => {
                    if exists() {
                        return Ok(Created::Exists);
                    }
                    thread::sleep(std::time::Duration::from_millis(20));
                }
                _ => {
                    let mut objects = self.objects.lock().unwrap();
                    if objects.contains_key(name) {
                        return Ok(Created::Exists);
                    }
                    *self.listed.lock().unwrap() = objects.clone();
                    objects.insert(name.to_owned(), bytes);
                    return Ok(Created::New);
                }
            }
            self.put(name, bytes);
            Ok(Created::New)
        }

        fn upload(&self, _: &str, _: u64, _: &mut ReadPiece<'_>) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }

        fn read(&self, name: &str, part: Part) -> io::Result<Option<RemoteBytes>> {
            let mut missing = self.missing.lock().unwrap();
            let objects = self.objects.lock().unwrap();
            let is_cached =
                self.fault == Fault::CachesMissing && missing.iter().any(|one| one == name);
            let Some(bytes) = objects.get(name).filter(|_| !is_cached) else {
                missing.push(name.to_owned());
                return Ok(None);
            };
            let len = bytes.len();
            let range = match part {
                _ if self.fault == Fault::IgnoresRanges => 0..len,
                Part::Whole => 0..len,
                Part::Range(range) => {
                    (range.start as usize).min(len)..(range.end as usize).min(len)
                }
                Part::Suffix(bytes) => len.saturating_sub(bytes as usize)..len,
            };
            Ok(Some(RemoteBytes { bytes: bytes.slice(range), object_bytes: len as u64 }))
        }

        fn list(&self, prefix: &str, _: Option<&str>, _: usize) -> io::Result<Vec<RemoteObject>> {
            let shown = match self.fault {
                Fault::ListsLate => &self.listed,
                _ => &self.objects,
            };
            let shown = shown.lock().unwrap();
            let ahead_ms = if self.fault == Fault::ClockIsAhead { 3_600_000 } else { 0 };
            let modified_ms = SystemClock::new().unix_ms() + ahead_ms;
            let shown = shown.iter().filter(|(name, _)| name.starts_with(prefix));
            let shown = shown.map(|(name, bytes)| RemoteObject {
                name: name.clone(),
                bytes: bytes.len() as u64,
                modified_ms,
            });
            Ok(shown.collect())
        }

        fn remove(&self, name: &str) -> io::Result<()> {
            let mut objects = self.objects.lock().unwrap();
            if self.fault == Fault::RefusesRemovals && name.ends_with("list-1") {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
            *self.listed.lock().unwrap() = objects.clone();
            objects.remove(name);
            Ok(())
        }
    }

    fn probed(fault: Fault) -> (io::Result<ProbeReport>, Vec<String>) {
        let memory = Arc::new(MemoryRemote {
            fault,
            objects: Mutex::default(),
            listed: Mutex::default(),
            missing: Mutex::default(),
        });
        let remote: Arc<dyn RemoteStore> = memory.clone();
        let report = probe(&remote, &SystemClock::new(), uuid::Uuid::from_u128(7));
        let left = memory.objects.lock().unwrap().keys().cloned().collect();
        (report, left)
    }

    #[test]
    fn probe_finds_all_properties_of_a_correct_store() {
        let (report, left) = probed(Fault::None);
        let report = report.unwrap();
        assert!(report.creates_atomically && report.lists_after_write, "{report:?}");
        assert!(report.reads_ranges && report.reads_after_create, "{report:?}");
        assert!(report.clock_skew_ms.abs() < 1_000, "{report:?}");
        assert!(left.is_empty(), "{left:?}");
    }

    #[test]
    fn probe_finds_each_missing_property_and_only_it() {
        for (fault, missing) in [
            (Fault::IgnoresConditions, "creates_atomically"),
            (Fault::ChecksFirst, "creates_atomically"),
            (Fault::ListsLate, "lists_after_write"),
            (Fault::IgnoresRanges, "reads_ranges"),
            (Fault::CachesMissing, "reads_after_create"),
        ] {
            let (report, left) = probed(fault);
            let report = report.unwrap();
            let found: Vec<&str> = [
                ("creates_atomically", report.creates_atomically),
                ("lists_after_write", report.lists_after_write),
                ("reads_ranges", report.reads_ranges),
                ("reads_after_create", report.reads_after_create),
            ]
            .into_iter()
            .filter_map(|(name, has)| (!has).then_some(name))
            .collect();
            assert_eq!(found, [missing]);
            assert!(left.is_empty(), "{missing}: {left:?}");
        }
    }

    #[test]
    fn probe_measures_the_clock_of_the_store() {
        let skew_ms = probed(Fault::ClockIsAhead).0.unwrap().clock_skew_ms;
        assert!((3_599_000..3_601_000).contains(&skew_ms), "{skew_ms}");
    }

    #[test]
    fn probe_removes_its_objects_after_an_error() {
        let (report, left) = probed(Fault::RefusesRemovals);
        assert_eq!(report.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(left.len(), 1, "{left:?}");
    }
}
