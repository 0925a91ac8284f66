//! What every handler may use.
//!
//! Never here: what a handler does with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use engine::{Clock, Entropy, Store};

use crate::catalog::{Catalog, CatalogError};
use crate::claims::Claims;
use crate::config::{Config, PublicUrl};
use crate::rate_limit::Allowances;

/// The running service. Cheap to clone.
#[derive(Clone)]
pub struct AppState(Arc<Inner>);

/// The fields of [`AppState`].
pub struct Inner {
    pub store: Store,
    pub catalog: Catalog,
    pub config: Config,
    /// What stands before `/{bucket}/{key}` in answers.
    pub public_url: PublicUrl,
    pub clock: Arc<dyn Clock>,
    pub entropy: Arc<dyn Entropy>,
    /// Names that uploads have chosen and not stored yet.
    pub claims: Claims,
    pub allowances: Allowances,
    draining: AtomicBool,
    request_ids: RequestIds,
}

/// Numbers for requests: no two alike in this process, and hardly in two.
struct RequestIds {
    start: u64,
    count: AtomicU64,
}

impl AppState {
    /// Reads the catalog of the store. Waits for the disk.
    pub fn new(
        store: Store,
        config: Config,
        public_url: PublicUrl,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Self, CatalogError> {
        let catalog = Catalog::open(store.clone(), clock.clone(), entropy.clone())?;
        let conduct = catalog.conduct().clone();
        let allowances = Allowances::new(&config, clock.clone(), &*entropy, conduct);
        let request_ids = RequestIds { start: entropy.number(), count: AtomicU64::new(0) };
        let draining = AtomicBool::new(false);
        Ok(Self(Arc::new(Inner {
            store,
            catalog,
            config,
            public_url,
            clock,
            entropy,
            claims: Claims::default(),
            allowances,
            draining,
            request_ids,
        })))
    }

    /// Says that the server is about to stop: it is not ready for new requests from now on.
    pub fn start_draining(&self) {
        self.0.draining.store(true, Ordering::Relaxed);
    }

    pub fn is_draining(&self) -> bool {
        self.0.draining.load(Ordering::Relaxed)
    }

    /// An id for the next request: 16 hexadecimal digits.
    pub fn next_request_id(&self) -> String {
        let RequestIds { start, count } = &self.0.request_ids;
        // An odd factor makes neighbours look different, and never gives a number twice.
        let number = count.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        format!("{:016x}", start.wrapping_add(number))
    }
}

impl std::ops::Deref for AppState {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}
