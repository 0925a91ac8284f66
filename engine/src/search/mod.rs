//! Fuzzy, typo-tolerant search for object names; without query words, a listing of a folder. Folders precede files.
//!
//! `name_cache.rs` caches the names of searched buckets, `name_list.rs` defines their layout, `index_scan.rs` scans the
//! index for names that are not cached; `prefilter.rs` discards most names, `rank.rs` scores the rest, `top_hits.rs`
//! collects the top hits.
//!
//! Guarantees: a search that scans all names finds everything acknowledged before it began; a returned file exists in
//! the view of the search; concurrent changes may or may not be visible. Memory and work are bounded: a search can be
//! cancelled, and an inexact count is marked as such.
//! Non-goals: authorization.

mod candidate;
mod case_fold;
mod fuzzy;
mod index_scan;
mod name_cache;
mod name_list;
mod prefilter;
mod rank;
mod top_hits;

use std::ops::{ControlFlow, Range};
use std::thread::{self, ScopedJoinHandle};

use self::candidate::Candidate;
pub(crate) use self::name_cache::NameCache;
pub use self::name_cache::SearchOptions;
use self::name_list::{NameList, NameRange};
use self::rank::Ranker;
use self::top_hits::TopHits;
use crate::error::{Error, Result};
use crate::index::{self, Object, View};
use crate::limits;
use crate::name::{BucketName, FolderKey, ObjectKey, ObjectName};

/// Query, scope and page of a search.
#[derive(Clone, Debug)]
pub struct SearchQuery {
    /// Bucket to search.
    pub bucket: BucketName,
    /// Folder to search, including its subfolders.
    pub folder: FolderKey,
    /// Query words, separated by spaces, in Unicode NFC form like the names. Without words, the hits are the direct
    /// content of the folder.
    pub text: String,
    /// Suffix of file names to leave out; empty for none.
    pub excluded_suffix: String,
    /// Number of hits to skip.
    pub offset: usize,
    /// Maximum number of hits. `offset` and `limit` together are at most [`limits::SEARCH_WINDOW_MAX`].
    pub limit: usize,
}

/// Page of hits.
#[derive(Clone, Debug, Default)]
pub struct HitPage {
    /// Hits, best first.
    pub hits: Vec<Hit>,
    /// Number of hits on all pages; a lower bound if `total_is_exact` is false.
    pub total: usize,
    /// Whether `total` is exact. If false, there may be more hits: not all names were scanned or counted.
    pub total_is_exact: bool,
    /// Whether the names came from the name cache. If false, the index was scanned.
    pub from_memory: bool,
}

/// Hit of a search.
#[derive(Clone, Debug)]
pub struct Hit {
    /// Folder or file found.
    pub item: HitItem,
    /// Score from 0 to 1,000; 0 without query words. Scores of folders and of files are not comparable with each other,
    /// nor are those of different searches.
    pub score: u16,
    /// Byte ranges of the key that match the query, ascending.
    pub matches: Vec<Range<usize>>,
}

/// Folder or file found by a search.
#[derive(Clone, Debug)]
pub enum HitItem {
    /// Folder.
    Folder(FolderKey),
    /// File.
    File(Object),
}

/// Runs a search. Fails with [`Error::Cancelled`] once `cancelled` returns true.
pub(crate) fn search(
    kept: &NameCache,
    view: &View,
    query: &SearchQuery,
    cancelled: &(impl Fn() -> bool + Sync),
) -> Result<HitPage> {
    if query.offset.saturating_add(query.limit) > limits::SEARCH_WINDOW_MAX {
        return Err(Error::TooLarge("the window of a search"));
    }
    let Some(mut ranker) = Ranker::new(&query.text, query.folder.as_str()) else {
        return list_contents(view, query, cancelled);
    };
    let usage = view.bucket_usage(&query.bucket)?;
    let kept = kept.get(&query.bucket, usage.objects + usage.derived_objects);
    let from_memory = matches!(kept, name_cache::CacheLookup::Hit(_));
    let (best, total_is_exact) = match kept {
        name_cache::CacheLookup::Hit(names) => {
            (search_cached(&names, query, &mut ranker, cancelled)?, true)
        }
        name_cache::CacheLookup::Loading => scan_index(
            view,
            query,
            &mut ranker,
            limits::SEARCH_SCAN_NAMES_WHILE_LOADING_MAX,
            cancelled,
        )?,
        name_cache::CacheLookup::Bypass => {
            scan_index(view, query, &mut ranker, limits::SEARCH_SCAN_NAMES_MAX, cancelled)?
        }
    };
    let (total, ranked) = best.into_sorted();
    let mut hits = HitPage { hits: Vec::new(), total, total_is_exact, from_memory };
    let mut folded = String::new();
    for ranked in ranked.into_iter().skip(query.offset) {
        let matches = ranker.matches(&Candidate::new(&ranked.key, &mut folded));
        match found(view, &query.bucket, &ranked.key)? {
            Some(found) => hits.hits.push(Hit { item: found, score: ranked.points, matches }),
            // Cached names are newer than the view.
            None => hits.total -= 1,
        }
    }
    Ok(hits)
}

/// Returns the top hits of cached names; for many names, a second thread searches one half.
fn search_cached(
    names: &NameList,
    query: &SearchQuery,
    ranker: &mut Ranker,
    cancelled: &(impl Fn() -> bool + Sync),
) -> Result<TopHits> {
    let part = names.below(query.folder.as_str());
    if part.count() <= limits::SEARCH_SINGLE_THREAD_NAMES_MAX {
        return look_at(&part, query, ranker, cancelled);
    }
    let (first, second) = part.halves();
    let mut another = ranker.clone();
    thread::scope(|scope| {
        let look = || look_at(&second, query, &mut another, cancelled);
        let started = thread::Builder::new().spawn_scoped(scope, look);
        let mut best = look_at(&first, query, ranker, cancelled)?;
        let others = match started.map(ScopedJoinHandle::join) {
            Ok(Ok(others)) => others,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            // The system cannot start another thread.
            Err(_) => look_at(&second, query, ranker, cancelled),
        };
        best.add(others?);
        Ok(best)
    })
}

fn look_at(
    part: &NameRange,
    query: &SearchQuery,
    ranker: &mut Ranker,
    cancelled: &impl Fn() -> bool,
) -> Result<TopHits> {
    let mut best = TopHits::new(query.offset + query.limit);
    let sieve = ranker.prefilter();
    let visit = |candidate: &Candidate<'_>| score_candidate(query, ranker, &mut best, candidate);
    let after_block = || if cancelled() { Err(Error::Cancelled) } else { Ok(()) };
    part.each(sieve, visit, after_block)?;
    Ok(best)
}

/// Returns the top hits of the first names of an index scan, and whether these were all.
fn scan_index(
    view: &View,
    query: &SearchQuery,
    ranker: &mut Ranker,
    names_max: usize,
    cancelled: &impl Fn() -> bool,
) -> Result<(TopHits, bool)> {
    let mut best = TopHits::new(query.offset + query.limit);
    let mut seen = 0;
    let walked = index_scan::each(view, &query.bucket, &query.folder, |candidate| {
        seen += 1;
        if seen % limits::SEARCH_CANCEL_CHECK_NAMES == 0 && cancelled() {
            return Err(Error::Cancelled);
        }
        score_candidate(query, ranker, &mut best, candidate);
        let is_enough = seen >= names_max;
        Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok((best, walked.is_continue()))
}

fn score_candidate(
    query: &SearchQuery,
    ranker: &mut Ranker,
    best: &mut TopHits,
    candidate: &Candidate<'_>,
) {
    let points_min = best.score_min(candidate.key.ends_with('/'));
    if !is_hidden(query, candidate.key)
        && let Some(points) = ranker.score(candidate, points_min)
    {
        best.offer(candidate.key, points);
    }
}

/// Lists the direct content of the folder. Counts only as far as a search can page.
fn list_contents(
    view: &View,
    query: &SearchQuery,
    cancelled: &impl Fn() -> bool,
) -> Result<HitPage> {
    let mut hits = HitPage { total_is_exact: true, ..HitPage::default() };
    let wanted = query.offset..query.offset + query.limit;
    let mut after = None;
    loop {
        let page = index::list_folder(
            view,
            &query.bucket,
            &query.folder,
            after.as_ref(),
            limits::LIST_PAGE_MAX,
        )?;
        let folders = page.folders.into_iter().map(HitItem::Folder);
        let is_shown = |file: &Object| !is_hidden(query, file.name.key.as_str());
        let files = page.files.into_iter().filter(is_shown).map(HitItem::File);
        for found in folders.chain(files) {
            if hits.total == limits::SEARCH_WINDOW_MAX {
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

/// Resolves a key in the view; `None` if it does not exist there.
fn found(view: &View, bucket: &BucketName, key: &str) -> Result<Option<HitItem>> {
    if let Some(folder) = FolderKey::parse(key).ok().filter(|folder| !folder.is_root()) {
        return Ok(Some(HitItem::Folder(folder)));
    }
    let Ok(key) = ObjectKey::parse(key) else { return Ok(None) };
    let name = ObjectName::new(bucket.clone(), key);
    Ok(view.entry(&name)?.map(|entry| HitItem::File(Object { name, entry })))
}
