//! What can go wrong on the simulated disk, and when.
//!
//! A [`Rule`] breaks the n-th operation of a kind on some path; [`Odds`] break one operation in so many, from a seed.
//! The simulated disk asks before each operation and carries out what it is told. [`Ignore`] is for the mutation check:
//! a sync that answers Ok and does nothing, as if the engine had forgotten to call it.
//! Promises: the same rules, the same seed and the same operations give the same faults.
//! Never here: the bytes.

use crate::entropy::{Entropy, SeededEntropy};

/// The kinds of operations that a fault can hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// `Disk::open`.
    Open,
    /// `Disk::create`.
    Create,
    /// `Disk::remove`.
    Remove,
    /// `Disk::rename`, by the name that the file had.
    Rename,
    /// `Disk::link`, by the name that the file has.
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

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Any operation: EIO, and nothing done. A sync leaves what was unsynced as it was: it may still become durable.
    Error,
    /// Whatever needs space: `StorageFull`, and nothing done.
    NoSpace,
    /// A link or a punch: `Unsupported`, and nothing done.
    Unsupported,
    /// A sync of a file or folder: EIO once, and what was unsynced never becomes durable, though it can still be read
    /// and the next sync says Ok. So do kernels.
    SyncGone,
    /// A write: its first bytes are written, then EIO.
    Torn,
    /// A write: Ok, and nothing was written.
    Lost,
    /// A write: Ok, and the bytes went to another sector of the same file.
    Misdirected,
    /// A read, a write or a map: Ok, with one bit wrong.
    Flipped,
}

impl Fault {
    /// Whether the fault can hit the operation; where it cannot, it does not happen.
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
            Self::SyncGone => matches!(operation, O::SyncData | O::SyncFolder),
            Self::Torn | Self::Lost | Self::Misdirected => operation == O::Write,
            Self::Flipped => matches!(operation, O::Read | O::Write | O::Map),
        }
    }
}

/// Which paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Where {
    /// All of them.
    Anywhere,
    /// Those that begin so, for example `log/`.
    Prefix(String),
    /// Those that end so, for example `.seg`.
    Suffix(String),
}

impl Where {
    /// Whether the path is one of them.
    pub fn holds(&self, path: &str) -> bool {
        match self {
            Self::Anywhere => true,
            Self::Prefix(prefix) => path.starts_with(prefix.as_str()),
            Self::Suffix(suffix) => path.ends_with(suffix.as_str()),
        }
    }
}

/// One fault at a chosen moment.
#[derive(Clone, Debug)]
pub struct Rule {
    operation: Operation,
    place: Where,
    fault: Fault,
    skipped: u64,
    times: u64,
}

impl Rule {
    /// The next matching operation goes wrong, and that one only.
    pub fn once(operation: Operation, place: Where, fault: Fault) -> Self {
        Self { operation, place, fault, skipped: 0, times: 1 }
    }

    /// Every matching operation goes wrong.
    pub fn always(operation: Operation, place: Where, fault: Fault) -> Self {
        Self { operation, place, fault, skipped: 0, times: u64::MAX }
    }

    /// Lets `count` matching operations pass first.
    pub fn after(self, count: u64) -> Self {
        Self { skipped: count, ..self }
    }

    fn decide(&mut self, operation: Operation, path: &str) -> Option<Fault> {
        let matches = self.operation == operation && self.place.holds(path);
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

/// Faults by chance.
#[derive(Clone, Debug)]
pub struct Odds {
    /// One operation in so many goes wrong; 0 means none.
    pub one_in: u64,
    /// Which faults may happen; one that does not fit the operation does not happen.
    pub faults: Vec<Fault>,
    /// Where they may happen.
    pub place: Where,
}

/// All faults of a disk.
#[derive(Clone, Debug)]
pub struct Faults {
    rules: Vec<Rule>,
    odds: Option<Odds>,
    chance: u64,
    hit_count: u64,
}

impl Faults {
    /// No faults; what is left to chance later comes from the seed.
    pub fn none(seed: u64) -> Self {
        Self { rules: Vec::new(), odds: None, chance: seed, hit_count: 0 }
    }

    /// Adds a rule. Where several match, the first one added wins; the others still count the operation.
    pub fn add(&mut self, rule: Rule) {
        self.rules.push(rule);
    }

    /// From now on, faults by chance too.
    pub fn by_chance(&mut self, odds: Odds) {
        self.odds = Some(odds);
    }

    /// Forgets rules and odds.
    pub fn clear(&mut self) {
        self.rules.clear();
        self.odds = None;
    }

    /// How many operations went wrong.
    pub fn hit_count(&self) -> u64 {
        self.hit_count
    }

    /// What goes wrong with this operation, if anything. Asking counts as doing it.
    pub fn decide(&mut self, operation: Operation, path: &str) -> Option<Fault> {
        let mut fault = None;
        for rule in &mut self.rules {
            fault = fault.or(rule.decide(operation, path));
        }
        let fault = fault.or_else(|| self.decide_by_chance(operation, path));
        self.hit_count += u64::from(fault.is_some());
        fault
    }

    /// A number from 0 to `bound` - 1; 0 when the bound is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.chance = SeededEntropy::new(self.chance).number();
        self.chance.checked_rem(bound).unwrap_or(0)
    }

    fn decide_by_chance(&mut self, operation: Operation, path: &str) -> Option<Fault> {
        let odds = self.odds.as_ref().filter(|odds| odds.one_in > 0 && odds.place.holds(path))?;
        let (one_in, choice) = (odds.one_in, odds.faults.len() as u64);
        if self.below(one_in) != 0 {
            return None;
        }
        let chosen = usize::try_from(self.below(choice)).unwrap_or_default();
        let fault = self.odds.as_ref().and_then(|odds| odds.faults.get(chosen).copied());
        fault.filter(|fault| fault.fits(operation))
    }
}

/// A sync that answers Ok and makes nothing durable: for the mutation check only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ignore {
    /// Every `DiskFile::sync_data`.
    DataSync,
    /// Every `Disk::sync_folder`.
    FolderSync,
    /// Both kinds, of every path that begins so.
    SyncOf(String),
}

impl Ignore {
    /// Whether this sync is one of them.
    pub fn holds(&self, operation: Operation, path: &str) -> bool {
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
    fn a_rule_hits_the_operation_it_names_and_no_other() {
        let mut faults = Faults::none(0);
        let log = Where::Prefix("log/".to_owned());
        faults.add(Rule::once(Operation::Write, log, Fault::Error).after(1));
        assert_eq!(faults.decide(Operation::Write, "log/1"), None);
        assert_eq!(faults.decide(Operation::Write, "big/1"), None);
        assert_eq!(faults.decide(Operation::Read, "log/1"), None);
        assert_eq!(faults.decide(Operation::Write, "log/2"), Some(Fault::Error));
        assert_eq!(faults.decide(Operation::Write, "log/2"), None);
        assert_eq!(faults.hit_count(), 1);
    }

    #[test]
    fn the_same_seed_gives_the_same_faults() {
        let run = |seed| -> Vec<Option<Fault>> {
            let mut faults = Faults::none(seed);
            let choice = vec![Fault::Error, Fault::Torn, Fault::Lost];
            faults.by_chance(Odds { one_in: 4, faults: choice, place: Where::Anywhere });
            (0..200).map(|_| faults.decide(Operation::Write, "a")).collect()
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
        assert!(run(1).contains(&Some(Fault::Torn)));
    }
}
