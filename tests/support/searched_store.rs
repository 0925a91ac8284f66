//! Store with a search of its names.

use std::ops::Deref;

use engine::Store;
use search::{HitPage, NameSearch, SearchOptions, SearchQuery};

/// Store and its search.
pub struct SearchedStore {
    store: Store,
    /// Search of the store.
    pub names: NameSearch,
}

impl SearchedStore {
    /// Adds a search that loads names only when a test asks for it.
    pub fn new(store: Store, options: SearchOptions) -> Self {
        let names = NameSearch::without_thread(store.clone(), options);
        Self { store, names }
    }

    /// Adds a search that loads names in a thread.
    pub fn with_thread(store: Store, options: SearchOptions) -> Self {
        let names = NameSearch::start(store.clone(), options).expect("a thread");
        Self { store, names }
    }

    /// Returns the hits of a query.
    pub fn search(&self, query: &SearchQuery) -> HitPage {
        self.names.search(query, || false).expect("hits")
    }
}

impl Deref for SearchedStore {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}
