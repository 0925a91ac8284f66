//! Fault injection rules for the simulated disk.
//!
//! A [`FaultRule`] makes the n-th matching operation fail; [`FaultRate`] makes a random fraction of operations fail,
//! from a seed. The simulated disk consults them before each operation and carries out the fault. [`IgnoredSync`] is
//! for the mutation check: a sync that returns Ok and does nothing, as if the engine had forgotten to call it.
//!
//! Guarantees: the same rules, seed and operations give the same faults.
//! Non-goals: file contents.

use crate::rng::{Rng, SeededRng};

/// Kind of operation that a fault can affect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// `Disk::open`.
    Open,
    /// `Disk::create`.
    Create,
    /// `Disk::remove`.
    Remove,
    /// `Disk::rename`, matched by the old path.
    Rename,
    /// `Disk::link`, matched by the existing path.
    Link,
    /// `Disk::create_folder`.
    CreateFolder,
    /// `Disk::sync_folder`.
    SyncFolder,
    /// `DiskFile::read_at`.
    Read,
    /// `DiskFile::write_at`.
    Write,
    /// `DiskFile::set_len`.
    SetLen,
    /// `DiskFile::allocate`.
    Allocate,
    /// `DiskFile::punch`.
    Punch,
    /// `DiskFile::sync_data`.
    SyncData,
    /// `DiskFile::map`.
    Map,
    /// `Mapping::populate`.
    Populate,
}

/// Kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Any operation: EIO, without effect. After a failed sync the unsynced data is unchanged and may still become
    /// durable.
    Error,
    /// Any operation that needs space: `StorageFull`, without effect.
    NoSpace,
    /// Link or hole punch: `Unsupported`, without effect.
    Unsupported,
    /// Sync of a file or folder: EIO once. The unsynced data never becomes durable, although it can still be read
    /// and the next sync returns Ok, as in real kernels.
    SyncLost,
    /// Write: EIO after the first bytes were written.
    Torn,
    /// Write: Ok, but nothing is written.
    WriteLost,
    /// Write: Ok, but the bytes go to another sector of the same file.
    Misdirected,
    /// Read, write or map: Ok, with one bit flipped.
    BitFlip,
}

impl Fault {
    /// Returns whether the fault can affect the operation; otherwise it is not applied.
    pub fn fits(self, operation: Operation) -> bool {
        use Operation as O;
        match self {
            Self::Error => true,
            Self::NoSpace => matches!(
                operation,
                O::Create
                    | O::Rename
                    | O::Link
                    | O::CreateFolder
                    | O::Write
                    | O::SetLen
                    | O::Allocate
                    | O::Punch
            ),
            Self::Unsupported => matches!(operation, O::Link | O::Punch),
            Self::SyncLost => matches!(operation, O::SyncData | O::SyncFolder),
            Self::Torn | Self::WriteLost | Self::Misdirected => operation == O::Write,
            Self::BitFlip => matches!(operation, O::Read | O::Write | O::Map),
        }
    }
}

/// Set of paths that a fault applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathPattern {
    /// All paths.
    Any,
    /// Paths with this prefix, for example `log/`.
    Prefix(String),
    /// Paths with this suffix, for example `.seg`.
    Suffix(String),
}

impl PathPattern {
    /// Returns whether the path is in the set.
    pub fn matches(&self, path: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Prefix(prefix) => path.starts_with(prefix.as_str()),
            Self::Suffix(suffix) => path.ends_with(suffix.as_str()),
        }
    }
}

/// Single fault at a chosen moment.
#[derive(Clone, Debug)]
pub struct FaultRule {
    operation: Operation,
    path_pattern: PathPattern,
    fault: Fault,
    skipped: u64,
    times: u64,
}

impl FaultRule {
    /// Creates a rule for the next matching operation only.
    pub fn once(operation: Operation, place: PathPattern, fault: Fault) -> Self {
        Self { operation, path_pattern: place, fault, skipped: 0, times: 1 }
    }

    /// Creates a rule for every matching operation.
    pub fn always(operation: Operation, place: PathPattern, fault: Fault) -> Self {
        Self { operation, path_pattern: place, fault, skipped: 0, times: u64::MAX }
    }

    /// Skips the first `count` matching operations.
    pub fn after(self, count: u64) -> Self {
        Self { skipped: count, ..self }
    }

    fn decide(&mut self, operation: Operation, path: &str) -> Option<Fault> {
        let matches = self.operation == operation && self.path_pattern.matches(path);
        if !matches || !self.fault.fits(operation) {
            return None;
        }
        if self.skipped > 0 {
            self.skipped -= 1;
            return None;
        }
        self.times = self.times.checked_sub(1)?;
        Some(self.fault)
    }
}

/// Random faults.
#[derive(Clone, Debug)]
pub struct FaultRate {
    /// Mean number of operations per fault; 0 disables faults.
    pub one_in: u64,
    /// Possible faults; one that does not fit the operation is not applied.
    pub faults: Vec<Fault>,
    /// Paths that may be affected.
    pub path_pattern: PathPattern,
}

/// All faults of a disk.
#[derive(Clone, Debug)]
pub struct FaultInjector {
    rules: Vec<FaultRule>,
    rate: Option<FaultRate>,
    chance: u64,
    hit_count: u64,
}

impl FaultInjector {
    /// Creates a set without faults; later random choices are drawn from the seed.
    pub fn none(seed: u64) -> Self {
        Self { rules: Vec::new(), rate: None, chance: seed, hit_count: 0 }
    }

    /// Adds a rule. If several match, the first one added applies; the others still count the operation.
    pub fn add(&mut self, rule: FaultRule) {
        self.rules.push(rule);
    }

    /// Enables random faults.
    pub fn by_chance(&mut self, odds: FaultRate) {
        self.rate = Some(odds);
    }

    /// Removes all rules and random faults.
    pub fn clear(&mut self) {
        self.rules.clear();
        self.rate = None;
    }

    /// Returns the number of injected faults.
    pub fn hit_count(&self) -> u64 {
        self.hit_count
    }

    /// Returns the fault for this operation, if any. Each call counts as one operation.
    pub fn decide(&mut self, operation: Operation, path: &str) -> Option<Fault> {
        let mut fault = None;
        for rule in &mut self.rules {
            fault = fault.or(rule.decide(operation, path));
        }
        let fault = fault.or_else(|| self.decide_by_chance(operation, path));
        self.hit_count += u64::from(fault.is_some());
        fault
    }

    /// Returns a number from 0 to `bound` - 1; 0 if the bound is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.chance = SeededRng::new(self.chance).next_u64();
        self.chance.checked_rem(bound).unwrap_or(0)
    }

    fn decide_by_chance(&mut self, operation: Operation, path: &str) -> Option<Fault> {
        let odds =
            self.rate.as_ref().filter(|odds| odds.one_in > 0 && odds.path_pattern.matches(path))?;
        let (one_in, choice) = (odds.one_in, odds.faults.len() as u64);
        if self.below(one_in) != 0 {
            return None;
        }
        let chosen = usize::try_from(self.below(choice)).unwrap_or_default();
        let fault = self.rate.as_ref().and_then(|odds| odds.faults.get(chosen).copied());
        fault.filter(|fault| fault.fits(operation))
    }
}

/// Syncs that return Ok without making anything durable; for the mutation check only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IgnoredSync {
    /// Every `DiskFile::sync_data`.
    DataSync,
    /// Every `Disk::sync_folder`.
    FolderSync,
    /// Both kinds, for every path with this prefix.
    SyncOf(String),
}

impl IgnoredSync {
    /// Returns whether this sync is ignored.
    pub fn matches(&self, operation: Operation, path: &str) -> bool {
        match self {
            Self::DataSync => operation == Operation::SyncData,
            Self::FolderSync => operation == Operation::SyncFolder,
            Self::SyncOf(prefix) => path.starts_with(prefix.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_rule_hits_only_its_operation() {
        let mut faults = FaultInjector::none(0);
        let log = PathPattern::Prefix("log/".to_owned());
        faults.add(FaultRule::once(Operation::Write, log, Fault::Error).after(1));
        assert_eq!(faults.decide(Operation::Write, "log/1"), None);
        assert_eq!(faults.decide(Operation::Write, "big/1"), None);
        assert_eq!(faults.decide(Operation::Read, "log/1"), None);
        assert_eq!(faults.decide(Operation::Write, "log/2"), Some(Fault::Error));
        assert_eq!(faults.decide(Operation::Write, "log/2"), None);
        assert_eq!(faults.hit_count(), 1);
    }

    #[test]
    fn fault_injection_is_deterministic_per_seed() {
        let run = |seed| -> Vec<Option<Fault>> {
            let mut faults = FaultInjector::none(seed);
            let choice = vec![Fault::Error, Fault::Torn, Fault::WriteLost];
            faults.by_chance(FaultRate {
                one_in: 4,
                faults: choice,
                path_pattern: PathPattern::Any,
            });
            (0..200).map(|_| faults.decide(Operation::Write, "a")).collect()
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
        assert!(run(1).contains(&Some(Fault::Torn)));
    }
}
