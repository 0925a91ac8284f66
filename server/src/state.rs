//! Shared state of all handlers.
//!
//! Non-goals: its use by the handlers.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::{ArcSwap, Guard};
use engine::{Clock, Entropy, ObjectName, Store};
use tokio::sync::{Mutex, Semaphore};

use crate::bridge::DiskReads;
use crate::catalog::{Catalog, CatalogError, TokenId};
use crate::claims::Claims;
use crate::config::{Config, PublicUrl};
use crate::crew::processors;
use crate::job_board::JobBoard;
use crate::kept_heads::KeptHeads;
use crate::kept_stats::KeptStats;
use crate::limits::{COPIES_MAX, IMAGE_MEMORY_PART, LOG_LOOKS_WAITING_MAX, WEBHOOK_TESTS_MAX};
use crate::measures::Measures;
use crate::open_uploads::OpenUploads;
use crate::outbound::Outbound;
use crate::own_pages::OwnHosts;
use crate::password_work::PasswordWork;
use crate::rate_limit::Allowances;
use crate::recent_uploads::RecentUploads;
use crate::reserved;
use crate::searches::Searches;
use crate::session_cookie::SecretCookie;
use crate::set_up_link::SetUpLink;
use crate::variants::Variants;

/// Running service, as seen by one of its endpoints. Cheap to clone.
#[derive(Clone)]
pub struct AppState(Arc<Inner>, Endpoint);

/// Listener of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Open to all accounts.
    Basic,
    /// For accounts on the plan `Pro` or above: larger bodies.
    Premium,
}

/// Fields of [`AppState`].
pub struct Inner {
    pub store: Store,
    pub catalog: Catalog,
    config: ArcSwap<Config>,
    /// Base URL before `/{bucket}/{key}` in responses.
    pub public_url: PublicUrl,
    pub clock: Arc<dyn Clock>,
    pub entropy: Arc<dyn Entropy>,
    /// Names chosen by uploads in flight.
    pub claims: Claims<ObjectName>,
    pub allowances: Allowances,
    /// Server-wide metrics.
    pub measures: Measures,
    /// Access to resumable uploads.
    pub open_uploads: OpenUploads,
    /// Tokens used by uploads in flight.
    pub tokens_in_use: Claims<TokenId>,
    /// Search thread pool.
    pub searches: Searches,
    /// HTTP client of webhooks.
    pub outbound: Outbound,
    /// HTTP client of imports from URLs.
    pub imports: Outbound,
    /// Permits of webhook tests.
    pub webhook_tests: Arc<Semaphore>,
    /// Thread pool that reads response bodies from the disk.
    pub disk_reads: DiskReads,
    /// Image variants: render pool and variant cache.
    pub variants: Variants,
    /// Response-header cache.
    pub kept_heads: KeptHeads,
    /// Cached store statistics, for the metrics.
    pub kept_stats: KeptStats,
    /// Registry of running jobs.
    pub jobs: JobBoard,
    /// Lock of exclusive work on the whole store.
    pub long_work: Arc<Mutex<()>>,
    /// Permits of body copies for requests.
    pub copies: Semaphore,
    /// Permit of a log scan, for a request or an object job.
    pub log_look: Arc<Semaphore>,
    /// Queue places of log scans.
    pub log_looks: Arc<Semaphore>,
    /// Session cookie.
    pub session_cookie: SecretCookie,
    /// Device cookie, which identifies a browser after its session has ended.
    pub device_cookie: SecretCookie,
    /// Host names of the dashboard.
    own_hosts: ArcSwap<OwnHosts>,
    /// Password hashing queue.
    pub passwords: PasswordWork,
    /// Link of the first set-up.
    pub set_up_link: SetUpLink,
    /// Latest uploads of each bucket.
    pub recent_uploads: RecentUploads,
    /// Data folder, if the server knows it.
    pub data_folder: OnceLock<PathBuf>,
    draining: AtomicBool,
    request_ids: RequestIds,
}

/// Generator of request ids: unique within a process, and very likely across processes.
struct RequestIds {
    start: u64,
    count: AtomicU64,
}

impl AppState {
    /// Loads the catalog of the store. Blocks on the disk.
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
        match catalog.renew_signing_keys() {
            // Files can be delivered even from a full disk; the key is created later.
            Err(CatalogError::Store(error)) => {
                tracing::warn!("failed to create a signing key for presigned uploads: {error}");
            }
            renewed => renewed?,
        }
        #[cfg(feature = "s3")]
        match catalog.make_signature_secret() {
            Err(CatalogError::Store(error)) => {
                tracing::warn!("failed to create the S3 signature secret: {error}");
            }
            made => made?,
        }
        let tls = config.webhook_roots.client();
        let tls =
            tls.map_err(|why| CatalogError::Refused(format!("TLS cannot be set up: {why}")))?;
        let imports = Outbound::new(&config.import_allow, tls.clone());
        let outbound = Outbound::new(&config.webhook_allow, tls);
        let memory_bytes = config.image_memory_bytes.unwrap_or_else(image_memory_bytes);
        let kept_bytes_max = config.variants_bytes_max;
        let variants = Variants::start(store.clone(), clock.clone(), kept_bytes_max, memory_bytes);
        let variants = variants.map_err(CatalogError::Refused)?;
        let no_thread = |for_what: &'static str| {
            move |why: io::Error| {
                CatalogError::Refused(format!("cannot start a thread to {for_what}: {why}"))
            }
        };
        let searches = Searches::start().map_err(no_thread("search"))?;
        let disk_reads = DiskReads::start().map_err(no_thread("read"))?;
        let request_ids = RequestIds { start: entropy.number(), count: AtomicU64::new(0) };
        let draining = AtomicBool::new(false);
        let session_cookie = SecretCookie::session(&public_url);
        let device_cookie = SecretCookie::device(&public_url);
        let own_hosts = OwnHosts::new(&public_url, &config.dashboard_hosts);
        let measures = Measures::new(processors().get(), clock.unix_ms());
        let inner = Arc::new(Inner {
            store,
            catalog,
            config: ArcSwap::from_pointee(config),
            public_url,
            clock,
            entropy,
            claims: Claims::default(),
            allowances,
            measures,
            open_uploads: OpenUploads::default(),
            tokens_in_use: Claims::default(),
            searches,
            outbound,
            imports,
            webhook_tests: Arc::new(Semaphore::new(WEBHOOK_TESTS_MAX)),
            disk_reads,
            variants,
            kept_heads: KeptHeads::default(),
            kept_stats: KeptStats::default(),
            jobs: JobBoard::default(),
            long_work: Arc::default(),
            copies: Semaphore::new(COPIES_MAX),
            log_look: Arc::new(Semaphore::new(1)),
            log_looks: Arc::new(Semaphore::new(LOG_LOOKS_WAITING_MAX)),
            session_cookie,
            device_cookie,
            own_hosts: ArcSwap::from_pointee(own_hosts),
            passwords: PasswordWork::new(),
            set_up_link: SetUpLink::default(),
            recent_uploads: RecentUploads::default(),
            data_folder: OnceLock::new(),
            draining,
            request_ids,
        });
        evict_when_full(&inner);
        Ok(Self(inner, Endpoint::Basic))
    }

    /// Returns the state as seen by the premium endpoint.
    pub fn premium(&self) -> Self {
        Self(self.0.clone(), Endpoint::Premium)
    }

    /// Returns the listener of the requests.
    pub fn endpoint(&self) -> Endpoint {
        self.1
    }

    /// Returns the largest request body of this endpoint.
    pub fn body_bytes_max(&self) -> u64 {
        match self.1 {
            Endpoint::Basic => self.config().body_bytes_max,
            Endpoint::Premium => self.config().upload_body_bytes_max,
        }
    }

    /// Returns the current configuration. Not to be held for long: it may be replaced at any time.
    pub fn config(&self) -> Guard<Arc<Config>> {
        self.0.config.load()
    }

    /// Returns the current host names of the dashboard.
    pub fn own_hosts(&self) -> Guard<Arc<OwnHosts>> {
        self.0.own_hosts.load()
    }

    /// Replaces the configuration. Settings that require a restart have no effect.
    pub fn change(&self, config: Config) {
        let hosts = OwnHosts::new(&self.public_url, &config.dashboard_hosts);
        self.0.own_hosts.store(Arc::new(hosts));
        self.outbound.allow(&config.webhook_allow);
        self.imports.allow(&config.import_allow);
        self.allowances.change(&config, &*self.entropy);
        self.0.config.store(Arc::new(config));
    }

    /// Marks the server as draining: readiness checks fail from now on.
    pub fn start_draining(&self) {
        self.0.draining.store(true, Ordering::Relaxed);
    }

    pub fn is_draining(&self) -> bool {
        self.0.draining.load(Ordering::Relaxed)
    }

    /// Returns the path, with its secret, of a new set-up link, or `None` once an operator has a password.
    pub fn issue_set_up_link(&self) -> Option<String> {
        if !self.catalog.needs_set_up() {
            return None;
        }
        let secret = self.set_up_link.issue(&*self.entropy, self.clock.monotonic_ms());
        Some(format!("{}#{secret}", reserved::SET_UP_PATH))
    }

    /// Returns an id for the next request: 16 hexadecimal digits.
    pub fn next_request_id(&self) -> String {
        let RequestIds { start, count } = &self.0.request_ids;
        // An odd factor makes consecutive ids look different, and never repeats a number.
        let number = count.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        format!("{:016x}", start.wrapping_add(number))
    }
}

/// Registers the eviction of idle unfinished uploads, which runs before the store rejects bodies for want of space,
/// least recently used first. Their records stay until the sweep or the client finds them.
fn evict_when_full(app: &Arc<Inner>) {
    let weak = Arc::downgrade(app);
    app.store.reclaim_by(move |wanted| {
        let Some(app) = weak.upgrade() else { return 0 };
        let mut freed = 0;
        while freed < wanted {
            let evicted = app.catalog.staging().evict(|id| app.open_uploads.is_taken(id));
            let Some((id, upload)) = evicted else { break };
            for (body, bytes) in upload.bodies {
                // Open files would hold on to their space.
                app.open_uploads.close(body);
                match app.store.remove_upload(body) {
                    Ok(()) => freed += bytes,
                    Err(error) => tracing::warn!(%error, %id, "cannot remove an unfinished upload"),
                }
            }
            tracing::warn!(%id, account = %upload.account, "unfinished upload removed: the disk is full");
        }
        freed
    });
}

/// Returns the default memory limit of image processing: a part of the machine's memory.
fn image_memory_bytes() -> u64 {
    let machine = rustix::system::sysinfo();
    machine.totalram * u64::from(machine.mem_unit) / IMAGE_MEMORY_PART
}

impl std::ops::Deref for AppState {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}
