//! `GET /api/search/{bucketName}`: fuzzy search of files and folders, or the contents of a folder.
//!
//! Guarantees: the search of a dropped request ends soon, whether it waits or runs. Non-goals: matching and ranking,
//! and the number of concurrent searches.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::extract::State;
use catalog::Scope;
use catalog::object_attributes::last_modified_ms;
use engine::clock::Clock;
use engine::{BucketName, FolderKey, Object, ObjectName, Store};
use jobs::thumbnail_object::{is_thumbnail_of, thumbnail_object_name};
use protocol::error::ApiError;
use protocol::file_name::THUMBNAIL_SUFFIX;
use protocol::name_filter::search_text;
use protocol::object_path::normalize;
use protocol::public_url::public_url;
use protocol::query::Query;
use protocol::time_format::iso_time;
use search::{Hit, HitItem, HitPage, SearchQuery};
use service::auth::Caller;
use service::limits::{SEARCH_HITS_MAX, SEARCH_QUEUE_TIMEOUT};
use service::parameters::BucketParameter;
use service::replies::{SearchFile, SearchHit, SearchPage, SearchReply, Success};
use service::request_context::Path;
use service::state::AppState;
use service::thread_pool::QueueFull;

use crate::limits::{SEARCH_HITS_DEFAULT, SEARCH_TIME_MS_MAX};

/// Part of [`THUMBNAIL_SUFFIX`] that a query must contain for thumbnails to be hits.
const THUMBNAIL_MARK: &str = "_thumb";

/// Searches files and folders by name; without `q`, lists a folder.
#[utoipa::path(
    get,
    path = "/api/search/{bucket}",
    operation_id = "search",
    tag = "Listing and search",
    params(
        BucketParameter,
        ("q" = Option<String>, Query, description = "Search text, at most 16 words and 256 characters.", max_length = 256),
        ("parent" = Option<String>, Query, description = "Folder to search, with or without a trailing slash."),
        ("limit" = Option<u64>, Query, description = "Hits per page, 1 to 1000; default 20."),
        ("offset" = Option<u64>, Query, description = "Hits to skip; `offset` plus `limit` is at \
            most 10,000."),
    ),
    responses((status = OK, body = SearchReply))
)]
pub async fn search(
    State(app): State<AppState>,
    caller: Caller,
    query: Query,
    Path(bucket): Path<BucketName>,
) -> Result<Success<SearchReply>, ApiError> {
    caller.bucket(&app.catalog, &bucket, Scope::List)?;
    let folder = parent(&query)?;
    caller.require_folder_access(&folder)?;
    let page = page(&query)?;
    let text = search_text(&query)?;
    let excluded_suffix = match text.to_lowercase().contains(THUMBNAIL_MARK) {
        true => String::new(),
        false => THUMBNAIL_SUFFIX.to_owned(),
    };
    let asked = SearchQuery {
        bucket,
        folder,
        text,
        excluded_suffix,
        offset: page.offset,
        limit: page.limit,
    };
    let request_is_gone = Arc::new(AtomicBool::new(false));
    let _request = CancelOnDrop(Arc::clone(&request_is_gone));
    let work = {
        let (app, asked) = (app.clone(), asked.clone());
        move || {
            let start = app.clock.monotonic_ms();
            let patience = SearchDeadline::from_now(Arc::clone(&app.clock), request_is_gone);
            let found = answer(&app, app.name_search.search(&asked, || patience.is_over())?)?;
            Ok::<_, ApiError>((found, app.clock.monotonic_ms().saturating_sub(start)))
        }
    };
    let found = app.searches.run(work).await;
    let (found, took_ms) =
        found.map_err(|QueueFull| ApiError::overloaded(SEARCH_QUEUE_TIMEOUT.as_secs()))??;
    let SearchQuery { bucket, folder, text, .. } = asked;
    Ok(Success(
        SearchReply::new(text, bucket.as_str(), folder.as_str(), page)
            .with_hits(found.hits, found.total, found.total_is_exact)
            .with_duration(took_ms),
    ))
}

/// Cancellation and deadline of a search.
struct SearchDeadline {
    clock: Arc<dyn Clock>,
    until_ms: u64,
    is_disconnected: Arc<AtomicBool>,
}

impl SearchDeadline {
    fn from_now(clock: Arc<dyn Clock>, request_is_gone: Arc<AtomicBool>) -> Self {
        let until_ms = clock.monotonic_ms().saturating_add(SEARCH_TIME_MS_MAX);
        Self { clock, until_ms, is_disconnected: request_is_gone }
    }

    fn is_over(&self) -> bool {
        self.is_disconnected.load(Ordering::Relaxed) || self.clock.monotonic_ms() > self.until_ms
    }
}

/// Sets the flag when the request's future is dropped.
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Parses the folder to search, with or without slashes at its ends.
fn parent(query: &Query) -> Result<FolderKey, ApiError> {
    let text = query.string(&["parent"])?.unwrap_or_default();
    let text = normalize(text.trim_matches('/'));
    let folder = if text.is_empty() { String::new() } else { format!("{text}/") };
    let must = |rule| format!("must be a folder: {rule}");
    FolderKey::parse(&folder).map_err(|rule| ApiError::bad_parameter("parent", &must(rule)))
}

fn page(query: &Query) -> Result<SearchPage, ApiError> {
    let limit = query.number(&["limit"])?.unwrap_or(SEARCH_HITS_DEFAULT as u64);
    let limit = usize::try_from(limit).unwrap_or(SEARCH_HITS_MAX).clamp(1, SEARCH_HITS_MAX);
    let offset = query.number(&["offset"])?.unwrap_or(0);
    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
    let window = search::limits::WINDOW_MAX;
    if offset.saturating_add(limit) > window {
        let must = format!("plus limit must be at most {window}; narrow the search");
        return Err(ApiError::bad_parameter("offset", &must));
    }
    Ok(SearchPage { limit, offset })
}

struct SearchResult {
    hits: Vec<SearchHit>,
    total: usize,
    total_is_exact: bool,
}

fn answer(app: &AppState, hits: HitPage) -> Result<SearchResult, ApiError> {
    let HitPage { hits, total, total_is_exact, .. } = hits;
    let is_current = |hit: &Hit| match &hit.item {
        HitItem::Folder(_) => true,
        HitItem::File(object) => {
            let bucket = app.catalog.buckets().get(&object.name().bucket);
            bucket.is_some_and(|it| !it.is_expired(object, || app.clock.unix_ms()))
        }
    };
    let hits = hits
        .into_iter()
        .filter(is_current)
        .map(|hit| search_hit(app, hit))
        .collect::<Result<_, ApiError>>()?;
    Ok(SearchResult { hits, total, total_is_exact })
}

fn search_hit(app: &AppState, hit: Hit) -> Result<SearchHit, ApiError> {
    let Hit { item: found, score: points, matches } = hit;
    let (key, file) = match found {
        HitItem::Folder(folder) => (folder.to_string(), None),
        HitItem::File(object) => (object.name().key.to_string(), Some(found_file(app, &object)?)),
    };
    Ok(SearchHit::new(key, points, &matches, file))
}

fn found_file(app: &AppState, object: &Object) -> Result<SearchFile, ApiError> {
    let thumbnail = displayed_thumbnail(&app.store, object.name())?;
    let url = |name: &ObjectName| public_url(app.public_url.as_str(), name);
    Ok(SearchFile {
        size: object.bytes(),
        last_modified: iso_time(last_modified_ms(object)),
        etag: format!("\"{}\"", object.etag()),
        content_type: object.content_type().to_owned(),
        url: url(object.name()),
        thumbnail_url: thumbnail.as_ref().map(url),
    })
}

/// Returns the displayed thumbnail of a file: the generated one, or an uploaded file of that name.
fn displayed_thumbnail(store: &Store, file: &ObjectName) -> Result<Option<ObjectName>, ApiError> {
    let Ok(name) = thumbnail_object_name(file) else { return Ok(None) };
    let there = store.get(&name)?;
    let is_shown = there.is_some_and(|it| !it.is_derived() || is_thumbnail_of(&it, &file.key));
    Ok(is_shown.then_some(name))
}

#[cfg(test)]
mod tests {
    use engine::clock::SimClock;

    use super::*;

    #[test]
    fn search_stops_on_disconnect_or_deadline() {
        let clock = Arc::new(SimClock::at(0));
        let gone = Arc::new(AtomicBool::new(false));
        let request = CancelOnDrop(Arc::clone(&gone));
        let first = SearchDeadline::from_now(clock.clone(), Arc::clone(&gone));
        clock.advance(SEARCH_TIME_MS_MAX);
        let second = SearchDeadline::from_now(clock.clone(), gone);
        assert!(!first.is_over() && !second.is_over());
        clock.advance(1);
        assert!(first.is_over() && !second.is_over());
        drop(request);
        assert!(second.is_over());
    }
}
