//! State that background jobs, object operations and webhook delivery share.
//!
//! Non-goals: what only the server above them knows; see [`Services`](crate::services::Services).

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use catalog::claims::NameClaims;
use catalog::{Actor, Catalog};
use engine::clock::Clock;
use engine::rng::Rng;
use engine::{ObjectName, Store};
use outbound::OutboundClient;
use protocol::destination::Origin;
use protocol::error::ApiError;
use protocol::public_url::PublicUrl;
use tokio::sync::{Mutex, OwnedMutexGuard, OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use usage::registry::JobCounters;

use crate::limits::{COPIES_MAX, LOG_SCANS_QUEUED_MAX, WEBHOOK_TESTS_MAX};
use crate::running_jobs::RunningJobs;

/// State of jobs, object operations and webhook delivery, with the author of changes through its catalog.
pub struct Context {
    pub(crate) catalog: Catalog,
    shared: Arc<SharedContext>,
}

/// State that does not depend on the author.
pub struct SharedContext {
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) rng: Arc<dyn Rng>,
    /// Base URL before `/{bucket}/{key}` in webhook messages.
    pub(crate) public_url: PublicUrl,
    /// Names chosen by uploads, moves and restores in flight.
    pub claims: NameClaims<ObjectName>,
    pub(crate) webhook_client: OutboundClient,
    /// HTTP client of imports from URLs.
    pub(crate) import_client: OutboundClient,
    /// Registry of running jobs.
    pub running: RunningJobs,
    pub counters: JobCounters,
    /// Permits of webhook tests.
    pub(crate) webhook_tests: Semaphore,
    /// Queue places of log scans.
    pub(crate) log_scan_queue: Semaphore,
    log_scan_lock: Arc<Semaphore>,
    copy_permits: Semaphore,
    whole_store_lock: Arc<Mutex<()>>,
    draining: AtomicBool,
}

impl Context {
    pub fn new(
        store: Store,
        catalog: Catalog,
        clock: Arc<dyn Clock>,
        rng: Arc<dyn Rng>,
        public_url: PublicUrl,
        webhook_client: OutboundClient,
        import_client: OutboundClient,
    ) -> Self {
        let shared = SharedContext {
            store,
            clock,
            rng,
            public_url,
            claims: NameClaims::default(),
            webhook_client,
            import_client,
            running: RunningJobs::default(),
            counters: JobCounters::default(),
            webhook_tests: Semaphore::new(WEBHOOK_TESTS_MAX),
            log_scan_queue: Semaphore::new(LOG_SCANS_QUEUED_MAX),
            log_scan_lock: Arc::new(Semaphore::new(1)),
            copy_permits: Semaphore::new(COPIES_MAX),
            whole_store_lock: Arc::default(),
            draining: AtomicBool::new(false),
        };
        Self { catalog, shared: Arc::new(shared) }
    }

    /// Returns the same context on behalf of an author: changes of files through it are recorded as theirs.
    pub fn acting_as(&self, actor: Actor) -> Arc<Self> {
        Arc::new(Self { catalog: self.catalog.acting_as(actor), shared: self.shared.clone() })
    }
}

impl Deref for Context {
    type Target = SharedContext;

    fn deref(&self) -> &SharedContext {
        &self.shared
    }
}

impl SharedContext {
    /// Replaces the origins that webhooks, and imports, may contact although their addresses are private.
    pub fn set_allowed_origins(&self, webhooks: &[Origin], imports: &[Origin]) {
        self.webhook_client.set_allowed_origins(webhooks);
        self.import_client.set_allowed_origins(imports);
    }

    /// Waits for one of the [`COPIES_MAX`] permits to copy a body for a request.
    pub async fn copy_permit(&self) -> Result<SemaphorePermit<'_>, ApiError> {
        self.copy_permits.acquire().await.map_err(|_| ApiError::overloaded(1))
    }

    /// Waits for the permit of a log scan, for a request or an object job.
    pub(crate) async fn log_scan_permit(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        let permit = self.log_scan_lock.clone().acquire_owned().await;
        permit.map_err(|_| ApiError::overloaded(1))
    }

    /// Waits for the lock of exclusive work on the whole store.
    pub async fn lock_whole_store(&self) -> OwnedMutexGuard<()> {
        self.whole_store_lock.clone().lock_owned().await
    }

    /// Takes the lock of exclusive work on the whole store; `None` if it is held.
    pub fn try_lock_whole_store(&self) -> Option<OwnedMutexGuard<()>> {
        self.whole_store_lock.clone().try_lock_owned().ok()
    }

    /// Marks the server as draining: long operations stop, and no job starts.
    pub fn start_draining(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }
}
