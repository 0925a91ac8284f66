//! Fuzzy, typo-tolerant search for the names of objects in an [`engine::Store`]; without query words, a listing of a
//! folder. Folders precede files.
//!
//! `lookup.rs` runs a search. `name_cache.rs` caches the names of searched buckets and follows the engine's
//! [`Subscription`](engine::snapshot::Subscription) to their changes, `name_list.rs` defines their layout;
//! `prefilter.rs` discards most names, `rank.rs` scores the rest, `top_hits.rs` collects the top hits.
//!
//! Guarantees: a search that scans all names finds everything acknowledged before it began; a returned file exists in
//! the snapshot of the search; concurrent changes may or may not be visible. Memory and work are bounded: a search can
//! be cancelled, and an inexact count is marked as such.
//! Non-goals: authorization.
#![warn(missing_docs)]

mod candidate;
mod case_fold;
mod fuzzy;
pub mod limits;
mod lookup;
mod name_cache;
mod name_list;
mod prefilter;
mod rank;
mod top_hits;

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use engine::{BucketName, FolderKey, Object, Result, Store};

use self::name_cache::NameCache;
pub use self::name_cache::{NameCacheStats, SearchOptions};

/// Search of a store, with the names of searched buckets in memory. Dropping it ends its thread.
pub struct NameSearch {
    store: Store,
    cache: Arc<NameCache>,
    loader: Option<JoinHandle<()>>,
}

impl NameSearch {
    /// Creates a search of a store, with a thread that reads names into memory.
    ///
    /// # Errors
    ///
    /// The error of starting the thread.
    pub fn start(store: Store, options: SearchOptions) -> io::Result<Self> {
        let mut search = Self::without_thread(store, options);
        let (store, cache) = (search.store.clone(), Arc::clone(&search.cache));
        let load = move || {
            while cache.wait(Duration::from_millis(limits::POLL_MS)) {
                cache.load_requested(&store);
            }
        };
        search.loader = Some(thread::Builder::new().name("trug-names".to_owned()).spawn(load)?);
        Ok(search)
    }

    /// Creates a search of a store that reads names into memory only in [`NameSearch::load_requested`].
    pub fn without_thread(store: Store, options: SearchOptions) -> Self {
        Self { store, cache: Arc::new(NameCache::new(options)), loader: None }
    }

    /// Searches a folder and its subfolders for names that match a query; without query words, lists the direct content
    /// of the folder.
    ///
    /// Scans all names below the folder. Fails with [`engine::Error::Cancelled`] soon after `cancelled` returns true.
    /// Until the names of a large bucket are cached, a search scans only some of them and sets
    /// [`HitPage::total_is_exact`] to false.
    pub fn search(
        &self,
        query: &SearchQuery,
        cancelled: impl Fn() -> bool + Sync,
    ) -> Result<HitPage> {
        lookup::search(&self.cache, &self.store.snapshot(), query, &cancelled)
    }

    /// Reads the names requested by searches into memory.
    pub fn load_requested(&self) {
        self.cache.load_requested(&self.store);
    }

    /// Returns the size of the names in memory.
    pub fn stats(&self) -> NameCacheStats {
        self.cache.stats()
    }
}

impl Drop for NameSearch {
    fn drop(&mut self) {
        self.cache.shut_down();
        // Its panic, if any, was reported by the panic hook; the cache is dropped either way.
        let _ = self.loader.take().map(JoinHandle::join);
    }
}

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
    /// Maximum number of hits. `offset` and `limit` together are at most [`limits::WINDOW_MAX`].
    pub limit: usize,
}

/// Page of hits.
#[derive(Clone, Debug, Default)]
pub struct HitPage {
    /// Hits, best first.
    pub hits: Vec<Hit>,
    /// Number of hits on all pages, at most [`limits::WINDOW_MAX`]; a lower bound if `total_is_exact` is false.
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
