//! Compact sorted list of a bucket's names, in index order.
//!
//! The names are stored in blocks of up to some hundred names: the text, the lengths, and letter sets, which exclude
//! most non-matching names and folders without reading them.
//!
//! Guarantees: a clone is cheap and immutable; a name uses its length and about twelve bytes, and eight more if it
//! opens a folder.
//! Non-goals: matching, and the source of changes.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::{Bound, Range};
use std::sync::Arc;

use engine::limits::KEY_BYTES_MAX;
use engine::snapshot::compare_keys;
use imbl::OrdMap;

use super::candidate::{Candidate, Folders, folder_of, shared_folder_bytes};
use super::case_fold::{fold_onto, folded, letters};
use super::prefilter::{Prefilter, Survivor};

/// Maximum number of names in a block.
const BLOCK_NAMES_MAX: usize = 256;
/// Number of names in a new block.
const BLOCK_NAMES: usize = 192;
/// Minimum number of names; a smaller block is merged with the next.
const BLOCK_NAMES_MIN: usize = 64;
/// Number of blocks of a chunk, which is scanned at once.
const CHUNK_BLOCKS: usize = 4;
/// Memory overhead of a block: its fields, its entry in the map, and its first key.
const BLOCK_OVERHEAD_BYTES: usize = 256;
/// Bit of a length: the name opens folders, those that the name before it is not in.
const OPENS_FOLDER: u16 = 1 << 15;
const _: () = assert!(KEY_BYTES_MAX < OPENS_FOLDER as usize);

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

/// Block of consecutive names.
struct Block {
    text: Box<str>,
    /// Length of each name, with [`OPENS_FOLDER`].
    lengths: Box<[u16]>,
    /// Letter set of each name, then one for each name that opens folders: that of the folders it opens, without their
    /// parents.
    letters: Box<[u64]>,
}

/// Name in a block, with its letter set.
type Name<'a> = (&'a str, u64);

impl Block {
    fn of(names: &[Name<'_>]) -> Self {
        let mut lengths = Vec::with_capacity(names.len());
        let mut sets: Vec<u64> = names.iter().map(|(_, letters)| *letters).collect();
        let (mut before, mut folded_folder) = ("", String::new());
        for (key, _) in names {
            let folder = folder_of(key);
            let opened = folder.get(shared_folder_bytes(folder, before)..).unwrap_or_default();
            // No key is longer than `KEY_BYTES_MAX`.
            let mut length = key.len() as u16;
            if !opened.is_empty() {
                length |= OPENS_FOLDER;
                folded_folder.clear();
                fold_onto(&mut folded_folder, opened);
                sets.push(letters(&folded_folder));
            }
            lengths.push(length);
            before = key;
        }
        Self {
            text: names.iter().map(|(key, _)| *key).collect::<String>().into(),
            lengths: lengths.into(),
            letters: sets.into(),
        }
    }

    /// Returns the range of each name, and whether it opens a folder.
    fn places(&self) -> impl Iterator<Item = (Range<usize>, bool)> {
        let mut end = 0;
        self.lengths.iter().map(move |length| {
            let start = end;
            end += usize::from(length & !OPENS_FOLDER);
            (start..end, length & OPENS_FOLDER != 0)
        })
    }

    fn names(&self) -> impl Iterator<Item = Name<'_>> {
        self.places().zip(&self.letters).map(|((place, _), letters)| (self.key(place), *letters))
    }

    fn key(&self, place: Range<usize>) -> &str {
        self.text.get(place).unwrap_or_default()
    }

    /// Collects the names that pass the letter test of a prefilter, not folded yet.
    fn pick(&self, prefilter: &mut Prefilter, picks: &mut Vec<Survivor>) {
        let (names, opened) = self.letters.split_at(self.lengths.len());
        let passed = prefilter.test_letters(names, opened);
        if passed.is_empty() {
            return;
        }
        let mut folders = passed.folders.iter();
        for (((key, opens_folder), letters), is_wanted) in
            self.places().zip(names).zip(passed.names)
        {
            let opens_folder = opens_folder && folders.next() == Some(&true);
            let (letters, is_wanted) = (*letters, *is_wanted);
            if is_wanted || (opens_folder && passed.passes_path(letters)) {
                picks.push(Survivor { folded: 0..0, key, letters, opens_folder, is_wanted });
            }
        }
    }

    /// Folds these names; all of the block at once if that is cheaper.
    fn fold(&self, picks: &mut [Survivor], folded: &mut String) {
        folded.clear();
        if picks.len() > self.lengths.len() / 8 && self.text.is_ascii() {
            fold_onto(folded, &self.text);
            picks.iter_mut().for_each(|pick| pick.folded = pick.key.clone());
            return;
        }
        for pick in picks {
            let start = folded.len();
            fold_onto(folded, self.key(pick.key.clone()));
            pick.folded = start..folded.len();
        }
    }

    fn first(&self) -> &str {
        self.names().next().unwrap_or_default().0
    }

    fn last(&self) -> &str {
        let length = self.lengths.last().map_or(0, |length| usize::from(length & !OPENS_FOLDER));
        self.key(self.text.len() - length..self.text.len())
    }

    fn bytes(&self) -> usize {
        self.text.len()
            + size_of_val(&*self.lengths)
            + size_of_val(&*self.letters)
            + BLOCK_OVERHEAD_BYTES
    }
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
        let names = self.blocks.values().flat_map(|block| block.names());
        names.map(|(key, _)| key.to_owned()).collect()
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
            let mut names = merged(old.as_deref(), &come, &gone);
            if let Some(end) = end.filter(|_| names.len() < BLOCK_NAMES_MIN) {
                (next, _) = self.take(&end);
            }
            names.extend(next.iter().flat_map(|block: &Arc<Block>| block.names()));
            self.put(&names);
        }
    }

    /// Returns the first key of the block that a key belongs to.
    fn block_of(&self, key: &Key) -> Option<Key> {
        let before = self.blocks.get_prev(key).map(|(first, _)| first);
        before.or_else(|| self.blocks.get_min().map(|(first, _)| first)).cloned()
    }

    /// Takes a block out, with the first key of the block after it.
    fn take(&mut self, first: &Key) -> (Option<Arc<Block>>, Option<Key>) {
        let block = self.blocks.remove(first).inspect(|block| {
            self.count -= block.lengths.len();
            self.bytes -= block.bytes();
        });
        (block, self.blocks.get_next(first).map(|(next, _)| next.clone()))
    }

    /// Inserts names in new blocks.
    fn put(&mut self, names: &[Name<'_>]) {
        let blocks =
            if names.len() <= BLOCK_NAMES_MAX { 1 } else { names.len().div_ceil(BLOCK_NAMES) };
        for names in names.chunks(names.len().div_ceil(blocks).max(1)) {
            let block = Block::of(names);
            self.count += names.len();
            self.bytes += block.bytes();
            self.blocks.insert(Key::new(block.first()), Arc::new(block));
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
fn merged<'a>(old: Option<&'a Block>, come: &'a [(Key, u64)], gone: &[Key]) -> Vec<Name<'a>> {
    let mut names = Vec::with_capacity(BLOCK_NAMES_MAX);
    let mut come = come.iter().map(|(key, letters)| (&*key.0, *letters)).peekable();
    let mut gone = gone.iter().map(|key| &*key.0).peekable();
    for name in old.iter().flat_map(|block| block.names()) {
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

/// Range of the names below a folder, in chunks that can be scanned in any order.
pub(super) struct NameRange<'a> {
    folder: &'a str,
    blocks: Vec<&'a Block>,
}

impl NameRange<'_> {
    /// Returns the approximate number of names.
    pub(super) fn count(&self) -> usize {
        self.blocks.len() * BLOCK_NAMES
    }

    /// Returns the number of chunks.
    pub(super) fn chunks(&self) -> usize {
        self.blocks.len().div_ceil(CHUNK_BLOCKS)
    }

    /// Creates a scan.
    pub(super) fn scan(&self) -> Scan<'_> {
        Scan {
            range: self,
            folders: Folders::new(self.folder, self.folder),
            picks: Vec::new(),
            folded: String::new(),
        }
    }

    /// Returns the folder of the name before a block, if it is in the range.
    fn folder_before(&self, block: usize) -> &str {
        let before = block.checked_sub(1).and_then(|before| self.blocks.get(before));
        let folder = before.map_or("", |block| folder_of(block.last()));
        if folder.starts_with(self.folder) { folder } else { self.folder }
    }
}

/// Scan of a range, chunk by chunk.
pub(super) struct Scan<'a> {
    range: &'a NameRange<'a>,
    folders: Folders,
    /// Scratch memory: the names of the block that may match, and its folded text.
    picks: Vec<Survivor>,
    folded: String,
}

impl Scan<'_> {
    /// Visits every name of a chunk that passes a prefilter, and every folder that such names open.
    pub(super) fn visit_chunk(
        &mut self,
        chunk: usize,
        prefilter: &mut Prefilter,
        mut visit: impl FnMut(&Candidate<'_>),
    ) {
        let first = chunk * CHUNK_BLOCKS;
        self.folders.restart(self.range.folder_before(first));
        for block in self.range.blocks.iter().skip(first).take(CHUNK_BLOCKS) {
            self.visit_block(block, prefilter, &mut visit);
        }
    }

    fn visit_block(
        &mut self,
        block: &Block,
        prefilter: &mut Prefilter,
        visit: &mut impl FnMut(&Candidate<'_>),
    ) {
        block.pick(prefilter, &mut self.picks);
        if !self.picks.is_empty() {
            block.fold(&mut self.picks, &mut self.folded);
            prefilter.retain_candidates(&self.folded, &mut self.picks);
        }
        for Survivor { key, folded, letters, is_wanted, .. } in self.picks.drain(..) {
            let folded = self.folded.get(folded).unwrap_or_default();
            let name = Candidate { key: block.key(key), folded, letters };
            // Comparing with an empty prefix is expensive: glibc reads the memory anyway.
            let below = self.range.folder;
            if !below.is_empty() && !name.key.starts_with(below) {
                continue;
            }
            self.folders.enter(&name).for_each(|folder| visit(&folder));
            if is_wanted && !name.is_folder() {
                visit(&name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use engine::rng::{Rng, SeededRng};

    /// Returns every name and folder visited, the last chunk first.
    fn shown(names: &NameList, folder: &str) -> Vec<String> {
        let mut shown = Vec::new();
        let range = names.below(folder);
        let (mut prefilter, mut scan) = (Prefilter::new(String::new(), Vec::new()), range.scan());
        for chunk in (0..range.chunks()).rev() {
            scan.visit_chunk(chunk, &mut prefilter, |candidate| {
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
                let sizes = || names.blocks.values().map(|block| block.lengths.len());
                assert!(sizes().all(|size| (1..=BLOCK_NAMES_MAX).contains(&size)));
                assert_eq!(names.bytes(), names.blocks.values().map(|block| block.bytes()).sum());
                for (first, block) in &names.blocks {
                    assert_eq!(*first.0, *block.first());
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
