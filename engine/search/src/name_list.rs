//! Compact sorted list of a bucket's names, in index order.
//!
//! The names are stored in blocks of up to some hundred names (`block.rs`): the text, the lengths, and letter sets,
//! which exclude most non-matching names and folders without reading them.
//!
//! Guarantees: a clone is cheap and immutable; a name uses its length without its folder, and about twelve bytes;
//! consecutive names in a folder use its length once, and sixteen bytes.
//! Non-goals: matching, and the source of changes.

mod block;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use engine::snapshot::compare_keys;
use imbl::OrdMap;

use self::block::{Block, BlockKeys, FolderRun, Name};
use super::candidate::{Candidate, CandidateFolder, shared_folder_bytes};
use super::case_fold::{folded, letters};
use super::prefilter::{Prefilter, Survivor};

/// Maximum number of names in a block.
const BLOCK_NAMES_MAX: usize = 682;
/// Number of names in a new block. Each block costs a search some reads that are in no cache of the processor, and a
/// change copies a block: with 192 searches took a quarter longer, with 1,024 a twentieth less.
const BLOCK_NAMES: usize = 512;
/// Minimum number of names; a smaller block is merged with the next.
const BLOCK_NAMES_MIN: usize = 170;

/// Key, compared in index order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key(Arc<str>);

impl Key {
    pub(super) fn new(key: &str) -> Self {
        Self(key.into())
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        compare_keys(&self.0, &other.0)
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Names of one bucket.
#[derive(Clone, Default)]
pub(super) struct NameList {
    /// Blocks by their first keys.
    blocks: OrdMap<Key, Arc<Block>>,
    count: usize,
    bytes: usize,
}

impl NameList {
    /// Returns the number of names, including folder markers.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Returns the approximate memory use.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns all names, in index order.
    #[cfg(test)]
    pub(super) fn keys(&self) -> Vec<String> {
        let blocks: Vec<BlockKeys> = self.blocks.values().map(|block| block.keys()).collect();
        blocks.iter().flat_map(BlockKeys::iter).map(|(key, _)| key.to_owned()).collect()
    }

    /// Adds (`true`) and removes names. Existing names may be added, and missing names removed.
    pub(super) fn apply(&mut self, changes: BTreeMap<Key, bool>) {
        let mut changes = changes.into_iter().peekable();
        while let Some((key, _)) = changes.peek() {
            let (mut old, mut end) = (None, None);
            if let Some(first) = self.block_of(key) {
                (old, end) = self.take(&first);
            }
            let (mut come, mut gone) = (Vec::new(), Vec::new());
            while let Some((key, is_there)) =
                changes.next_if(|(key, _)| end.as_ref().is_none_or(|end| key < end))
            {
                match is_there {
                    true => come.push((key.clone(), letters(&folded(&key.0)))),
                    false => gone.push(key),
                }
            }
            let mut next = None;
            let mut names = merged(old.as_ref(), &come, &gone);
            if let Some(end) = end.filter(|_| names.len() < BLOCK_NAMES_MIN) {
                (next, _) = self.take(&end);
            }
            names.extend(next.iter().flat_map(BlockKeys::iter));
            self.put(&names);
        }
    }

    /// Returns the first key of the block that a key belongs to.
    fn block_of(&self, key: &Key) -> Option<Key> {
        let before = self.blocks.get_prev(key).map(|(first, _)| first);
        before.or_else(|| self.blocks.get_min().map(|(first, _)| first)).cloned()
    }

    /// Takes a block out, and returns its keys and the first key of the block after it.
    fn take(&mut self, first: &Key) -> (Option<BlockKeys>, Option<Key>) {
        let block = self.blocks.remove(first).inspect(|block| {
            self.count -= block.count();
            self.bytes -= block.bytes();
        });
        (block.map(|block| block.keys()), self.blocks.get_next(first).map(|(next, _)| next.clone()))
    }

    /// Inserts names in new blocks.
    fn put(&mut self, names: &[Name<'_>]) {
        let blocks =
            if names.len() <= BLOCK_NAMES_MAX { 1 } else { names.len().div_ceil(BLOCK_NAMES) };
        for names in names.chunks(names.len().div_ceil(blocks).max(1)) {
            let block = Block::of(names);
            self.count += names.len();
            self.bytes += block.bytes();
            self.blocks.insert(Key::new(&block.first_key()), Arc::new(block));
        }
    }

    /// Returns the names below a folder, in index order.
    pub(super) fn below<'a>(&'a self, folder: &'a str) -> NameRange<'a> {
        let start = Key::new(folder);
        let first = self.blocks.get_prev(&start).map_or(&start, |(first, _)| first);
        let blocks = self
            .blocks
            .range::<_, Key>((Bound::Included(first), Bound::Unbounded))
            // Without a folder no key is read: they are seldom in the processor's cache.
            .take_while(|(key, _)| folder.is_empty() || **key <= start || key.0.starts_with(folder))
            .map(|(_, block)| block.as_ref())
            .collect();
        NameRange { folder, blocks }
    }
}

/// Merges the names of a block with added and removed names, in order.
fn merged<'a>(old: Option<&'a BlockKeys>, come: &'a [(Key, u64)], gone: &[Key]) -> Vec<Name<'a>> {
    let mut names = Vec::with_capacity(BLOCK_NAMES_MAX);
    let mut come = come.iter().map(|(key, letters)| (&*key.0, *letters)).peekable();
    let mut gone = gone.iter().map(|key| &*key.0).peekable();
    for name in old.into_iter().flat_map(BlockKeys::iter) {
        while let Some(new) = come.next_if(|(new, _)| compare_keys(new, name.0).is_lt()) {
            names.push(new);
        }
        come.next_if(|(new, _)| *new == name.0);
        while gone.next_if(|gone| compare_keys(gone, name.0).is_lt()).is_some() {}
        if gone.next_if(|gone| *gone == name.0).is_none() {
            names.push(name);
        }
    }
    names.extend(come);
    names
}

/// Builder from names in index order.
#[derive(Default)]
pub(super) struct Builder {
    names: NameList,
    open: Vec<(String, u64)>,
}

impl Builder {
    /// Adds the next name.
    pub(super) fn push(&mut self, key: &str) {
        self.open.push((key.to_owned(), letters(&folded(key))));
        if self.open.len() == BLOCK_NAMES {
            self.end_block();
        }
    }

    /// Returns the approximate memory use so far.
    pub(super) fn bytes(&self) -> usize {
        self.names.bytes
    }

    /// Finishes the list.
    pub(super) fn finish(mut self) -> NameList {
        self.end_block();
        self.names
    }

    fn end_block(&mut self) {
        let open = std::mem::take(&mut self.open);
        let names: Vec<Name<'_>> =
            open.iter().map(|(key, letters)| (key.as_str(), *letters)).collect();
        self.names.put(&names);
    }
}

/// Range of the names below a folder, in blocks that can be scanned in any order.
pub(super) struct NameRange<'a> {
    folder: &'a str,
    blocks: Vec<&'a Block>,
}

impl NameRange<'_> {
    /// Returns the approximate number of names.
    pub(super) fn count(&self) -> usize {
        self.blocks.len() * BLOCK_NAMES
    }

    /// Returns the number of blocks.
    pub(super) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Creates a scan.
    pub(super) fn scan(&self) -> Scan<'_> {
        Scan {
            range: self,
            picks: Vec::new(),
            folded: String::new(),
            folder: CandidateFolder::default(),
        }
    }

    /// Returns the length of the longest part of the folder of a run that contains the name before it, or the folder of
    /// the range.
    fn known(&self, block: usize, run: &FolderRun<'_>) -> usize {
        let known = run.known.unwrap_or_else(|| {
            let before = block.checked_sub(1).and_then(|before| self.blocks.get(before));
            shared_folder_bytes(run.folder, before.map_or("", |block| block.last_folder()))
        });
        known.max(self.folder.len())
    }
}

/// Scan of a range, block by block.
pub(super) struct Scan<'a> {
    range: &'a NameRange<'a>,
    /// Scratch memory: the names of the block that may match, their folded forms, and the folder of the current name.
    picks: Vec<Survivor>,
    folded: String,
    folder: CandidateFolder,
}

impl Scan<'_> {
    /// Visits every name of a block that passes a prefilter, and every folder that such names open.
    pub(super) fn visit_block(
        &mut self,
        number: usize,
        prefilter: &mut Prefilter,
        mut visit: impl FnMut(&Candidate<'_>),
    ) {
        let Some(block) = self.range.blocks.get(number) else { return };
        block.pick(prefilter, &mut self.picks, &mut self.folded);
        self.visit_picks(number, block, prefilter, &mut visit);
    }

    fn visit_picks(
        &mut self,
        number: usize,
        block: &Block,
        prefilter: &mut Prefilter,
        visit: &mut impl FnMut(&Candidate<'_>),
    ) {
        let Self { range, picks, folded, folder } = self;
        let mut picks = picks.drain(..).peekable();
        while let Some(first) = picks.peek() {
            let of_run = first.run;
            let run = block.run(of_run);
            let is_below = run.folder.starts_with(range.folder);
            prefilter.enter(folder.enter(run.folder));
            while let Some(pick) = picks.next_if(|pick| pick.run == of_run) {
                if !is_below {
                    continue;
                }
                let name = folded.get(pick.folded).unwrap_or_default();
                if !pick.opens_folder && !prefilter.may_match(name) {
                    continue;
                }
                let name = folder.candidate(block.name(pick.key), name, pick.letters);
                if pick.opens_folder {
                    name.folders(range.known(number, &run)).for_each(|folder| visit(&folder));
                }
                if pick.is_wanted && !name.is_folder() && prefilter.wants_path(&name) {
                    visit(&name);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use engine::rng::{Rng, SeededRng};

    /// Returns every name and folder visited, the last block first.
    fn shown(names: &NameList, folder: &str) -> Vec<String> {
        let mut shown = Vec::new();
        let range = names.below(folder);
        let (mut prefilter, mut scan) = (Prefilter::new(String::new(), Vec::new()), range.scan());
        for block in (0..range.blocks()).rev() {
            scan.visit_block(block, &mut prefilter, |candidate| {
                assert_eq!(candidate.letters, letters(&folded(candidate.key)));
                shown.push(candidate.key.to_owned());
            });
        }
        shown
    }

    #[test]
    fn name_list_stays_sorted_in_bounded_blocks() {
        for seed in 0..6 {
            let chance = SeededRng::new(seed);
            let below = |bound: u64| chance.below(bound);
            let key = || match below(5) {
                0 => format!("{}", below(900)),
                1 => format!("{}/", below(40)),
                2 => format!("{}/{}", below(40), below(90)),
                3 => format!("{}/é{}/{}", below(9), below(9), below(90)),
                _ => format!("{}/{}/{}/x", below(9), below(3), below(200)),
            };
            let mut model: BTreeSet<Key> = (0..below(3_000)).map(|_| Key::new(&key())).collect();
            let mut builder = Builder::default();
            model.iter().for_each(|key| builder.push(&key.0));
            let mut names = builder.finish();
            for round in 0..30 {
                let before = (names.clone(), model.clone());
                let mut changes = BTreeMap::new();
                for _ in 0..below(400) {
                    // Rounds that mostly add, then rounds that mostly remove.
                    changes.insert(Key::new(&key()), below(4) > round / 10);
                }
                for (key, is_there) in &changes {
                    if *is_there {
                        model.insert(key.clone());
                    } else {
                        model.remove(key);
                    }
                }
                names.apply(changes);
                let is_as = |names: &NameList, model: &BTreeSet<Key>| {
                    assert!(names.keys().iter().eq(model.iter().map(|key| &*key.0)));
                };
                is_as(&names, &model);
                is_as(&before.0, &before.1);
                assert_eq!(names.count(), model.len());
                let sizes = || names.blocks.values().map(|block| block.count());
                assert!(sizes().all(|size| (1..=BLOCK_NAMES_MAX).contains(&size)));
                assert_eq!(names.bytes(), names.blocks.values().map(|block| block.bytes()).sum());
                for (first, block) in &names.blocks {
                    assert_eq!(*first.0, *block.first_key());
                }
            }
            for folder in ["", "3/", "3/é3/", "7/1/", "39/", "nowhere/"] {
                let mut expected = BTreeSet::new();
                for key in model.iter().map(|key| &*key.0).filter(|key| key.starts_with(folder)) {
                    let paths = key.match_indices('/').map(|(at, _)| key[..=at].to_owned());
                    expected.extend(paths.filter(|path| path.len() > folder.len()));
                    expected.insert(key.to_owned());
                }
                expected.remove(folder);
                let mut shown = shown(&names, folder);
                shown.sort();
                assert!(shown.iter().eq(&expected), "{folder}: {shown:?} {expected:?}");
            }
        }
    }
}
