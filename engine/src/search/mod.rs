//! Search: names by likeness to a query, or without one the contents of a folder; folders first.
//!
//! `names.rs` shows the names, `rank.rs` gives them points, `best.rs` keeps the best. Promises: all of it is one moment
//! of the index; memory is bounded by the window, work by [`limits::SEARCH_NAMES_MAX`], and whoever waits may stop it;
//! a count that is not exact says so. Never here: who may search.

mod best;
mod fold;
mod names;
mod near;
mod rank;

use std::ops::{ControlFlow, Range};

use self::best::Best;
use self::names::Candidate;
use self::rank::Ranker;
use crate::error::{Error, Result};
use crate::index::{self, Object, View};
use crate::limits;
use crate::name::{BucketName, FolderKey, ObjectKey, ObjectName};

/// What is looked for, where, and which of the hits are wanted.
#[derive(Clone, Debug)]
pub struct SearchQuery {
    /// The bucket.
    pub bucket: BucketName,
    /// Only what lies below this folder.
    pub folder: FolderKey,
    /// Words, in Unicode's composed form as names are. Without any, the hits are what lies directly in the folder.
    pub text: String,
    /// Files whose names end so are passed over; empty for none.
    pub hidden_ending: String,
    /// Hits that are skipped.
    pub offset: usize,
    /// Hits that are wanted. Together with those that are skipped at most [`limits::SEARCH_WINDOW_MAX`].
    pub limit: usize,
}

/// The hits of one page.
#[derive(Clone, Debug, Default)]
pub struct Hits {
    /// Best first.
    pub hits: Vec<Hit>,
    /// How many hits there are on all pages,
    pub total: usize,
    /// if this is true; else there may be more.
    pub total_is_exact: bool,
}

/// One hit.
#[derive(Clone, Debug)]
pub struct Hit {
    /// What was found.
    pub found: Found,
    /// Up to 1,000, comparable among folders and among files of one search; 0 without a query.
    pub points: u16,
    /// The parts of the key that match, in bytes, in order.
    pub matches: Vec<Range<usize>>,
}

/// What a search finds.
#[derive(Clone, Debug)]
pub enum Found {
    /// A folder.
    Folder(FolderKey),
    /// A file.
    File(Object),
}

/// The hits of a query. [`Error::Cancelled`] when `cancelled` says so in between.
pub(crate) fn search(
    view: &View,
    query: &SearchQuery,
    cancelled: impl Fn() -> bool,
) -> Result<Hits> {
    if query.offset.saturating_add(query.limit) > limits::SEARCH_WINDOW_MAX {
        return Err(Error::TooLarge("the window of a search"));
    }
    match Ranker::new(&query.text, query.folder.as_str()) {
        Some(ranker) => look_for(view, query, ranker, cancelled),
        None => browse(view, query, cancelled),
    }
}

fn look_for(
    view: &View,
    query: &SearchQuery,
    mut ranker: Ranker,
    cancelled: impl Fn() -> bool,
) -> Result<Hits> {
    let mut best = Best::new(query.offset + query.limit);
    let mut seen = 0;
    let walked = names::each(view, &query.bucket, &query.folder, |candidate| {
        seen += 1;
        if seen % limits::SEARCH_STEP_NAMES == 0 && cancelled() {
            return Err(Error::Cancelled);
        }
        if !is_hidden(query, candidate.key)
            && let Some(points) = ranker.rate(candidate)
        {
            best.offer(candidate.key, points);
        }
        let is_enough = seen >= limits::SEARCH_NAMES_MAX;
        Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    let (total, ranked) = best.into_sorted();
    let mut hits = Hits { hits: Vec::new(), total, total_is_exact: walked.is_continue() };
    let mut folded = String::new();
    for ranked in ranked.into_iter().skip(query.offset) {
        let matches = ranker.matches(&Candidate::new(&ranked.key, &mut folded));
        if let Some(found) = found(view, &query.bucket, &ranked.key)? {
            hits.hits.push(Hit { found, points: ranked.points, matches });
        }
    }
    Ok(hits)
}

/// What lies directly in the folder. Counted as far as a search can show it.
fn browse(view: &View, query: &SearchQuery, cancelled: impl Fn() -> bool) -> Result<Hits> {
    let mut hits = Hits { total_is_exact: true, ..Hits::default() };
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
        let folders = page.folders.into_iter().map(Found::Folder);
        let is_shown = |file: &Object| !is_hidden(query, file.name.key.as_str());
        let files = page.files.into_iter().filter(is_shown).map(Found::File);
        for found in folders.chain(files) {
            if hits.total == limits::SEARCH_WINDOW_MAX {
                hits.total_is_exact = false;
                return Ok(hits);
            }
            if wanted.contains(&hits.total) {
                hits.hits.push(Hit { found, points: 0, matches: Vec::new() });
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
    !query.hidden_ending.is_empty() && key.ends_with(&query.hidden_ending)
}

/// What a key stands for. The view in which it was met still has it.
fn found(view: &View, bucket: &BucketName, key: &str) -> Result<Option<Found>> {
    if let Some(folder) = FolderKey::parse(key).ok().filter(|folder| !folder.is_root()) {
        return Ok(Some(Found::Folder(folder)));
    }
    let Ok(key) = ObjectKey::parse(key) else { return Ok(None) };
    let name = ObjectName::new(bucket.clone(), key);
    Ok(view.entry(&name)?.map(|entry| Found::File(Object { name, entry })))
}
