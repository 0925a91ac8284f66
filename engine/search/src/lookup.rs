//! One search: top hits among the cached names or a scan of the index, resolved in one snapshot.
//!
//! Non-goals: scores (`rank.rs`), and loading names into memory (`name_cache.rs`).

use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ScopedJoinHandle};
use std::vec;

use engine::snapshot::Snapshot;
use engine::{BucketName, Error, FolderKey, Object, ObjectKey, ObjectName, Result};

use super::candidate::{Candidate, Folders};
use super::limits;
use super::name_cache::{CacheLookup, NameCache};
use super::name_list::{NameList, NameRange};
use super::rank::Ranker;
use super::top_hits::{TopHits, WorstHit};
use super::{Hit, HitItem, HitPage, SearchQuery};

/// Runs a search. Fails with [`Error::Cancelled`] once `cancelled` returns true.
pub(super) fn search(
    cache: &NameCache,
    snapshot: &Snapshot,
    query: &SearchQuery,
    cancelled: &(impl Fn() -> bool + Sync),
) -> Result<HitPage> {
    if query.offset.saturating_add(query.limit) > limits::WINDOW_MAX {
        return Err(Error::TooLarge("the window of a search"));
    }
    let Some(mut ranker) = Ranker::new(&query.text, query.folder.as_str()) else {
        return list_contents(snapshot, query, cancelled);
    };
    let usage = snapshot.bucket_usage(&query.bucket)?;
    let cached = cache.get(&query.bucket, usage.objects + usage.derived_objects);
    let from_memory = matches!(cached, CacheLookup::Hit(_));
    let (best, total_is_exact) = match cached {
        CacheLookup::Hit(names) => (search_cached(&names, query, &mut ranker, cancelled)?, true),
        CacheLookup::Loading => scan_index(
            snapshot,
            query,
            &mut ranker,
            limits::SCAN_NAMES_WHILE_LOADING_MAX,
            cancelled,
        )?,
        CacheLookup::Bypass => {
            scan_index(snapshot, query, &mut ranker, limits::SCAN_NAMES_MAX, cancelled)?
        }
    };
    let (count, ranked) = best.into_sorted();
    let total = count.min(limits::WINDOW_MAX);
    let total_is_exact = total_is_exact && total == count;
    let mut hits = HitPage { hits: Vec::new(), total, total_is_exact, from_memory };
    let mut folded = String::new();
    for ranked in ranked.into_iter().skip(query.offset) {
        let matches = ranker.matches(&Candidate::new(&ranked.key, &mut folded));
        match found(snapshot, &query.bucket, &ranked.key)? {
            Some(found) => hits.hits.push(Hit { item: found, score: ranked.points, matches }),
            // Cached names are newer than the snapshot.
            None => hits.total -= 1,
        }
    }
    Ok(hits)
}

/// Returns the top hits of cached names; for many names, with a second thread.
fn search_cached(
    names: &NameList,
    query: &SearchQuery,
    ranker: &mut Ranker,
    cancelled: &(impl Fn() -> bool + Sync),
) -> Result<TopHits> {
    let range = names.below(query.folder.as_str());
    let progress = Mutex::new(Progress::new(&range));
    if range.count() <= limits::SINGLE_THREAD_NAMES_MAX {
        return look_at(&range, query, ranker, &progress, cancelled);
    }
    let mut another = ranker.clone();
    thread::scope(|scope| {
        let look = || look_at(&range, query, &mut another, &progress, cancelled);
        let started = thread::Builder::new().spawn_scoped(scope, look);
        let mut best = look_at(&range, query, ranker, &progress, cancelled)?;
        match started.map(ScopedJoinHandle::join) {
            Ok(Ok(others)) => best.add(others?),
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            // The system cannot start another thread: this one has searched everything.
            Err(_) => {}
        }
        Ok(best)
    })
}

/// Number of rounds through a range, each of which takes blocks from all of it.
const ROUNDS: usize = 16;

/// Progress of all threads of a search.
struct Progress {
    /// Blocks that no thread has taken.
    blocks: vec::IntoIter<usize>,
    /// Number of hits.
    counted: usize,
    /// Best of the worst top hits of each thread.
    worst: WorstHit,
}

impl Progress {
    /// Begins the search of a range. Matching names are often in neighbouring folders: samples of all the range find
    /// the bound soon.
    fn new(range: &NameRange<'_>) -> Self {
        let of_round = |first| (first..range.blocks()).step_by(ROUNDS);
        let blocks: Vec<usize> = (0..ROUNDS).flat_map(of_round).collect();
        Self { blocks: blocks.into_iter(), counted: 0, worst: WorstHit::default() }
    }
}

/// Returns the top hits of the blocks that no other thread takes. When the hits are more than [`limits::WINDOW_MAX`],
/// only names are examined that may be one of the top hits.
fn look_at(
    range: &NameRange<'_>,
    query: &SearchQuery,
    ranker: &mut Ranker,
    progress: &Mutex<Progress>,
    cancelled: &impl Fn() -> bool,
) -> Result<TopHits> {
    let mut best = TopHits::new(query.offset + query.limit);
    let (mut prefilter, mut scan) = (ranker.prefilter(), range.scan());
    let mut counted = 0;
    loop {
        let mut shared = progress.lock().unwrap_or_else(PoisonError::into_inner);
        shared.counted += best.count() - counted;
        shared.worst = shared.worst.max(best.worst());
        counted = best.count();
        if shared.counted > limits::WINDOW_MAX {
            prefilter.want(Ranker::files_above(&shared.worst));
        }
        let Some(block) = shared.blocks.next() else { return Ok(best) };
        drop(shared);
        scan.visit_block(block, &mut prefilter, |name| {
            score_candidate(query, ranker, &mut best, name);
        });
        if cancelled() {
            return Err(Error::Cancelled);
        }
    }
}

/// Returns the top hits of the first names of an index scan, and whether these were all.
fn scan_index(
    snapshot: &Snapshot,
    query: &SearchQuery,
    ranker: &mut Ranker,
    names_max: usize,
    cancelled: &impl Fn() -> bool,
) -> Result<(TopHits, bool)> {
    let mut best = TopHits::new(query.offset + query.limit);
    let (mut seen, mut folded) = (0, String::new());
    let mut folders = Folders::new(query.folder.as_str(), query.folder.as_str());
    let walked = snapshot.visit_keys(&query.bucket, &query.folder, |key| {
        let name = Candidate::new(key, &mut folded);
        let new_folders = folders.enter(&name);
        for candidate in new_folders.chain(Some(name).filter(|name| !name.is_folder())) {
            seen += 1;
            if seen % limits::CANCEL_CHECK_NAMES == 0 && cancelled() {
                return Err(Error::Cancelled);
            }
            score_candidate(query, ranker, &mut best, &candidate);
            if seen >= names_max {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok((best, walked.is_continue()))
}

fn score_candidate(
    query: &SearchQuery,
    ranker: &mut Ranker,
    best: &mut TopHits,
    candidate: &Candidate<'_>,
) {
    let points_min = best.score_min(candidate.is_folder());
    if !is_hidden(query, candidate.key)
        && let Some(points) = ranker.score(candidate, points_min)
    {
        best.offer(candidate.key, points);
    }
}

/// Lists the direct content of the folder. Counts only as far as a search can page.
fn list_contents(
    snapshot: &Snapshot,
    query: &SearchQuery,
    cancelled: &impl Fn() -> bool,
) -> Result<HitPage> {
    let mut hits = HitPage { total_is_exact: true, ..HitPage::default() };
    let wanted = query.offset..query.offset + query.limit;
    let mut after = None;
    loop {
        let page = snapshot.list_folder(
            &query.bucket,
            &query.folder,
            after.as_ref(),
            engine::limits::LIST_PAGE_MAX,
        )?;
        let folders = page.folders.into_iter().map(HitItem::Folder);
        let is_shown = |file: &Object| !is_hidden(query, file.name().key.as_str());
        let files = page.files.into_iter().filter(is_shown).map(HitItem::File);
        for found in folders.chain(files) {
            if hits.total == limits::WINDOW_MAX {
                hits.total_is_exact = false;
                return Ok(hits);
            }
            if wanted.contains(&hits.total) {
                hits.hits.push(Hit { item: found, score: 0, matches: Vec::new() });
            }
            hits.total += 1;
        }
        after = page.next;
        if after.is_none() {
            return Ok(hits);
        }
        if cancelled() {
            return Err(Error::Cancelled);
        }
    }
}

fn is_hidden(query: &SearchQuery, key: &str) -> bool {
    !query.excluded_suffix.is_empty() && key.ends_with(&query.excluded_suffix)
}

/// Resolves a key in the snapshot; `None` if it does not exist there.
fn found(snapshot: &Snapshot, bucket: &BucketName, key: &str) -> Result<Option<HitItem>> {
    if let Some(folder) = FolderKey::parse(key).ok().filter(|folder| !folder.is_root()) {
        return Ok(Some(HitItem::Folder(folder)));
    }
    let Ok(key) = ObjectKey::parse(key) else { return Ok(None) };
    let name = ObjectName::new(bucket.clone(), key);
    Ok(snapshot.get(&name)?.map(HitItem::File))
}

#[cfg(test)]
mod tests {
    use engine::rng::{Rng, SeededRng};

    use super::super::name_list::Key;
    use super::super::top_hits::RankedName;
    use super::*;

    const WORDS: [&str; 12] =
        ["cat", "Cat", "cart", "dog", "2024", "red", "report", "a", "chloé", "img", "kitchen", "x"];
    const QUERIES: [&str; 14] = [
        "cat", "2024", "dog cat", "img_2", "ktichen", "chloe", "ct", "a", "cat.png", "red/",
        "report 9", "cat cat", "zq", "a/2",
    ];

    /// Scores every name and folder, and returns the number of hits and the top hits.
    fn all_scored(
        keys: &[String],
        query: &SearchQuery,
        ranker: &mut Ranker,
    ) -> (usize, Vec<RankedName>) {
        let mut best = TopHits::new(query.offset + query.limit);
        let (mut folders, mut folded) = (Folders::new("", ""), String::new());
        for key in keys {
            let name = Candidate::new(key, &mut folded);
            for candidate in folders.enter(&name).chain([name]) {
                let points = ranker.score(&candidate, 0);
                points.into_iter().for_each(|points| best.offer(candidate.key, points));
            }
        }
        best.into_sorted()
    }

    #[test]
    fn uncounted_names_are_not_among_the_top_hits() {
        let chance = SeededRng::new(3);
        let word = || WORDS[chance.below(WORDS.len() as u64) as usize];
        let mut changes = std::collections::BTreeMap::new();
        for number in 0..80_000 {
            let (one, two, three) = (word(), word(), word());
            let key = match chance.below(6) {
                0 => format!("{one}/{two}-{number}/{three}.png"),
                1 => format!("{one}/{two}/{three}_{number}.png"),
                2 => format!("{one}/{two} {three} {number}.JPG"),
                3 => format!("{one}{two}/{three}.{number}"),
                4 => format!("IMG_2024{number}_{one}.png"),
                _ => format!("{one}/{two}/{}/{three}{number}", chance.below(900)),
            };
            changes.insert(Key::new(&key), true);
        }
        let mut names = NameList::default();
        names.apply(changes);
        let keys = names.keys();
        let mut bounded = 0;
        for (text, (offset, limit)) in QUERIES
            .iter()
            .flat_map(|text| [(0, 1), (0, 20), (9_000, 1_000), (0, 0)].map(|window| (text, window)))
        {
            let query = SearchQuery {
                bucket: BucketName::parse("bucket").unwrap(),
                folder: FolderKey::root(),
                text: (*text).to_owned(),
                excluded_suffix: String::new(),
                offset,
                limit,
            };
            let mut ranker = Ranker::new(text, "").unwrap();
            let (all, expected) = all_scored(&keys, &query, &mut ranker);
            let best = search_cached(&names, &query, &mut ranker, &|| false).unwrap();
            let (count, hits) = best.into_sorted();
            bounded += usize::from(count > limits::WINDOW_MAX);
            assert_eq!(hits, expected, "{text:?}, {offset} + {limit}");
            if count <= limits::WINDOW_MAX {
                assert_eq!(count, all, "{text:?}");
            }
        }
        assert!(bounded > QUERIES.len(), "{bounded} searches with more hits than are counted");
    }
}
