//! One search: top hits among the cached names or a scan of the index, resolved in one snapshot.
//!
//! Non-goals: scores (`rank.rs`), and loading names into memory (`name_cache.rs`).

use std::ops::ControlFlow;
use std::thread::{self, ScopedJoinHandle};

use engine::snapshot::Snapshot;
use engine::{BucketName, Error, FolderKey, Object, ObjectKey, ObjectName, Result};

use super::candidate::{Candidate, Folders};
use super::limits;
use super::name_cache::{CacheLookup, NameCache};
use super::name_list::{NameList, NameRange};
use super::rank::Ranker;
use super::top_hits::TopHits;
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
    let (total, ranked) = best.into_sorted();
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

/// Returns the top hits of cached names; for many names, a second thread searches one half.
fn search_cached(
    names: &NameList,
    query: &SearchQuery,
    ranker: &mut Ranker,
    cancelled: &(impl Fn() -> bool + Sync),
) -> Result<TopHits> {
    let part = names.below(query.folder.as_str());
    if part.count() <= limits::SINGLE_THREAD_NAMES_MAX {
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
    let prefilter = ranker.prefilter();
    let visit = |candidate: &Candidate<'_>| score_candidate(query, ranker, &mut best, candidate);
    let after_block = || if cancelled() { Err(Error::Cancelled) } else { Ok(()) };
    part.each(prefilter, visit, after_block)?;
    Ok(best)
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
    let mut visit = |candidate: &Candidate<'_>| {
        seen += 1;
        if seen % limits::CANCEL_CHECK_NAMES == 0 && cancelled() {
            return Err(Error::Cancelled);
        }
        score_candidate(query, ranker, &mut best, candidate);
        let is_enough = seen >= names_max;
        Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    };
    let walked = snapshot.visit_keys(&query.bucket, &query.folder, |key| {
        folders.show(&Candidate::new(key, &mut folded), &mut visit)
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
