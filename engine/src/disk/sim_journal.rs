//! Pending (unsynced) changes of the simulated disk, and their effect on names.
//!
//! Guarantees: a rename is atomic, and later changes of its two names do not become durable before it.
//! Non-goals: file contents, the choice of a power cut.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

/// Files by path.
#[derive(Clone, Default)]
pub(super) struct Names {
    pub(super) files: BTreeMap<String, u64>,
    pub(super) folders: BTreeSet<String>,
}

/// Change that is not durable yet.
#[derive(Clone)]
pub(super) struct Pending {
    pub(super) change: Change,
    /// Whether power was cut during the change, so that it was never acknowledged.
    pub(super) in_flight: bool,
    /// For a rename between two folders, the folder that was synced since.
    pub(super) synced_folder: Option<String>,
}

/// Change of a name or a file.
#[derive(Clone)]
pub(super) enum Change {
    Name { path: String, file: u64 },
    NoName { path: String },
    Rename { from: String, to: String, file: u64 },
    Folder { path: String },
    Write { file: u64, offset: u64, bytes: Bytes },
    Len { file: u64, bytes_len: u64 },
    Punch { file: u64, offset: u64, bytes_len: u64 },
}

impl Names {
    pub(super) fn apply(&mut self, change: &Change) {
        match change {
            Change::Name { path, file } => {
                self.files.insert(path.clone(), *file);
            }
            Change::NoName { path } => {
                self.files.remove(path);
            }
            Change::Rename { from, to, file } => {
                self.files.remove(from);
                self.files.insert(to.clone(), *file);
            }
            Change::Folder { path } => {
                self.folders.insert(path.clone());
            }
            Change::Write { .. } | Change::Len { .. } | Change::Punch { .. } => {}
        }
    }

    /// Drops names in folders that do not exist.
    pub(super) fn forget_unreachable(&mut self) {
        let all = self.folders.clone();
        let reachable = |path: &str| {
            ancestors(parent(path)).all(|folder| folder.is_empty() || all.contains(folder))
        };
        self.folders.retain(|path| reachable(path));
        self.files.retain(|path, _| reachable(path));
    }
}

impl Pending {
    pub(super) fn new(change: Change, in_flight: bool) -> Self {
        Self { change, in_flight, synced_folder: None }
    }

    /// Returns whether a sync of the folder makes this change durable.
    fn is_synced_with(&mut self, folder: &str) -> bool {
        let mut folders = self.change.names().map(parent);
        let (first, last) = (folders.next(), folders.next());
        if first != Some(folder) && last != Some(folder) {
            return false;
        }
        let other = if first == Some(folder) { last } else { first };
        let is_last = other
            .is_none_or(|other| other == folder || self.synced_folder.as_deref() == Some(other));
        if !is_last {
            self.synced_folder = Some(folder.to_owned());
        }
        is_last
    }
}

impl Change {
    /// Returns the file whose data sync makes this change durable.
    pub(super) fn file(&self) -> Option<u64> {
        match self {
            Self::Write { file, .. } | Self::Len { file, .. } | Self::Punch { file, .. } => {
                Some(*file)
            }
            Self::Name { .. } | Self::NoName { .. } | Self::Rename { .. } | Self::Folder { .. } => {
                None
            }
        }
    }

    /// Returns the paths that changed their meaning; none for a change of bytes.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let names = match self {
            Self::Name { path, .. } | Self::NoName { path } | Self::Folder { path } => {
                [Some(path), None]
            }
            Self::Rename { from, to, .. } => [Some(from), Some(to)],
            Self::Write { .. } | Self::Len { .. } | Self::Punch { .. } => [None, None],
        };
        names.into_iter().flatten().map(String::as_str)
    }

    fn shares_a_name_with(&self, other: &Self) -> bool {
        self.names().any(|name| other.names().any(|theirs| theirs == name))
    }
}

/// Removes from the journal the changes that a sync of the folder makes durable, in order.
pub(super) fn take_synced(journal: &mut Vec<Pending>, folder: &str) -> Vec<Change> {
    let mut taken: Vec<bool> =
        journal.iter_mut().map(|pending| pending.is_synced_with(folder)).collect();
    let changes: Vec<&Change> = journal.iter().map(|pending| &pending.change).collect();
    take_renames_along(&changes, &mut taken);
    // Earlier changes of the names of a rename are settled by it.
    let is_settled = |at: usize| {
        let later = changes.iter().zip(&taken).skip(at + 1);
        let mut renames = later.filter(|(change, taken)| is_rename(change) && **taken);
        renames.any(|(change, _)| change.shares_a_name_with(changes[at]))
    };
    let left: Vec<bool> = (0..taken.len()).map(|at| !taken[at] && !is_settled(at)).collect();
    let (mut synced, mut kept) = (Vec::new(), Vec::new());
    for ((pending, taken), left) in std::mem::take(journal).into_iter().zip(taken).zip(left) {
        if taken {
            synced.push(pending.change);
        } else if left {
            kept.push(pending);
        }
    }
    *journal = kept;
    synced
}

/// Adds the renames that must become durable before the chosen changes of the same names, so that no file is lost.
pub(super) fn take_renames_along(changes: &[&Change], chosen: &mut [bool]) {
    for at in (0..changes.len()).rev().filter(|at| is_rename(changes[*at])) {
        let later = changes.iter().zip(&*chosen).skip(at + 1);
        let needed = later
            .filter(|(_, chosen)| **chosen)
            .any(|(change, _)| change.shares_a_name_with(changes[at]));
        chosen[at] |= needed;
    }
}

fn is_rename(change: &Change) -> bool {
    matches!(change, Change::Rename { .. })
}

pub(super) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// Returns the path and its ancestors, up to the root.
pub(super) fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| (!path.is_empty()).then(|| parent(path)))
}
