//! Shared state of all handlers.
//!
//! Non-goals: its use by the handlers.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use arc_swap::{ArcSwap, Guard};
use catalog::claims::NameClaims;
use catalog::open_uploads::UploadLocks;
use catalog::{Catalog, CatalogError, TokenId};
use engine::Store;
use engine::clock::Clock;
use engine::rng::Rng;
use outbound::OutboundClient;
use protocol::public_url::PublicUrl;
use protocol::request_id::RequestIds;
use protocol::reserved_paths;
use search::{NameSearch, SearchOptions};
use usage::registry::ServerCounters;
use usage::store_stats_cache::StoreStatsCache;

use crate::config::Config;
use crate::delivery_activity::DeliveryActivity;
use crate::header_cache::ResponseHeaderCache;
use crate::limits::IMAGE_MEMORY_DIVISOR;
use crate::object_body::DiskReadPool;
use crate::own_pages::DashboardHosts;
use crate::password_work::PasswordHasher;
use crate::rate_limit::RateLimits;
use crate::recent_uploads::RecentUploads;
use crate::searches::SearchPool;
use crate::session_cookie::SecretCookie;
use crate::set_up_link::SetupLink;
use crate::thread_pool::cpu_count;
use crate::variants::Variants;
use crate::zip::{ZipDownloads, ZipMemory};

/// Running service, as seen by one of its endpoints. Cheap to clone.
#[derive(Clone)]
pub struct AppState(Arc<Inner>, EndpointTier);

/// Listener of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointTier {
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
    pub rng: Arc<dyn Rng>,
    pub rate_limiter: RateLimits,
    /// Server-wide metrics.
    pub metrics: ServerCounters,
    /// Access to resumable uploads.
    pub upload_locks: UploadLocks,
    /// Tokens used by uploads in flight.
    pub tokens_in_use: NameClaims<TokenId>,
    /// Search of object names.
    pub name_search: NameSearch,
    /// Search thread pool.
    pub searches: SearchPool,
    /// Thread pool that reads response bodies from the disk.
    pub disk_reads: DiskReadPool,
    /// Deliveries that image processing makes room for.
    pub deliveries: Arc<DeliveryActivity>,
    /// Image variants: render pool and variant cache.
    pub variants: Variants,
    /// Response-header cache.
    pub header_cache: ResponseHeaderCache,
    /// Cached store statistics, for the metrics.
    pub stats_cache: StoreStatsCache,
    /// Jobs, object operations and webhook delivery.
    pub jobs: Arc<jobs::Context>,
    /// Session cookie.
    pub session_cookie: SecretCookie,
    /// Device cookie, which identifies a browser after its session has ended.
    pub device_cookie: SecretCookie,
    /// Host names of the dashboard.
    dashboard_hosts: ArcSwap<DashboardHosts>,
    /// Password hashing queue.
    pub passwords: PasswordHasher,
    /// Link of the first set-up.
    pub set_up_link: SetupLink,
    /// Latest uploads of each bucket.
    pub recent_uploads: RecentUploads,
    /// Memory of zip archives.
    pub zip_memory: ZipMemory,
    /// Prepared zip archives.
    pub zip_downloads: ZipDownloads,
    /// Data folder, if the server knows it.
    pub data_folder: OnceLock<PathBuf>,
    /// Ids of the next requests.
    pub request_ids: RequestIds,
}

impl AppState {
    /// Loads the catalog of the store. Blocks on the disk.
    pub fn new(
        store: Store,
        config: Config,
        public_url: PublicUrl,
        clock: Arc<dyn Clock>,
        rng: Arc<dyn Rng>,
    ) -> Result<Self, CatalogError> {
        let catalog = Catalog::open(store.clone(), clock.clone(), rng.clone())?;
        let rejections = catalog.rate_limit_rejections().clone();
        let rate_limits = RateLimits::new(&config, clock.clone(), &*rng, rejections);
        match catalog.tokens().renew_keys() {
            // Files can be delivered even from a full disk; the key is created later.
            Err(CatalogError::Store(error)) => {
                tracing::warn!("failed to create a signing key for presigned uploads: {error}");
            }
            renewed => renewed?,
        }
        match catalog.api_keys().ensure_s3_secret() {
            Err(CatalogError::Store(error)) => {
                tracing::warn!("failed to create the S3 signature secret: {error}");
            }
            made => made?,
        }
        let tls = config.webhook_roots.client();
        let tls = tls
            .map_err(|why| CatalogError::InvalidRequest(format!("TLS cannot be set up: {why}")))?;
        let jobs = jobs::Context::new(
            store.clone(),
            catalog.clone(),
            clock.clone(),
            rng.clone(),
            public_url.clone(),
            OutboundClient::new(&config.webhook_allow, tls.clone()),
            OutboundClient::new(&config.import_allow, tls),
        );
        let of_machine = || physical_memory_bytes() / IMAGE_MEMORY_DIVISOR;
        let memory_bytes = config.image_memory_bytes.unwrap_or_else(of_machine);
        let cached_bytes_max = config.variants_bytes_max;
        let deliveries = Arc::new(DeliveryActivity::start(clock.clone()));
        let variants = Variants::start(
            store.clone(),
            clock.clone(),
            cached_bytes_max,
            memory_bytes,
            Arc::clone(&deliveries),
        );
        let variants = variants.map_err(CatalogError::InvalidRequest)?;
        let no_thread = |for_what: &'static str| {
            move |why: io::Error| {
                CatalogError::InvalidRequest(format!("cannot start a thread to {for_what}: {why}"))
            }
        };
        let search_options = SearchOptions {
            names_bytes_max: config.search_memory_bytes,
            ..SearchOptions::default()
        };
        let name_search = NameSearch::start(store.clone(), search_options);
        let name_search = name_search.map_err(no_thread("load names"))?;
        let searches = SearchPool::start().map_err(no_thread("search"))?;
        let disk_reads = DiskReadPool::start(Arc::clone(&deliveries)).map_err(no_thread("read"))?;
        let request_ids = RequestIds::new(rng.next_u64());
        let session_cookie = SecretCookie::session(&public_url);
        let device_cookie = SecretCookie::device(&public_url);
        let own_hosts = DashboardHosts::new(&public_url, &config.dashboard_hosts);
        let measures = ServerCounters::new(cpu_count().get(), clock.unix_ms());
        let inner = Arc::new(Inner {
            store,
            catalog,
            config: ArcSwap::from_pointee(config),
            public_url,
            clock,
            rng,
            rate_limiter: rate_limits,
            metrics: measures,
            upload_locks: UploadLocks::default(),
            tokens_in_use: NameClaims::default(),
            name_search,
            searches,
            disk_reads,
            deliveries,
            variants,
            header_cache: ResponseHeaderCache::default(),
            stats_cache: StoreStatsCache::default(),
            jobs: Arc::new(jobs),
            session_cookie,
            device_cookie,
            dashboard_hosts: ArcSwap::from_pointee(own_hosts),
            passwords: PasswordHasher::new(),
            set_up_link: SetupLink::default(),
            recent_uploads: RecentUploads::default(),
            zip_memory: ZipMemory::default(),
            zip_downloads: ZipDownloads::default(),
            data_folder: OnceLock::new(),
            request_ids,
        });
        evict_when_full(&inner);
        Ok(Self(inner, EndpointTier::Basic))
    }

    /// Returns the state as seen by the premium endpoint.
    pub fn premium(&self) -> Self {
        Self(self.0.clone(), EndpointTier::Premium)
    }

    /// Returns the listener of the requests.
    pub fn endpoint(&self) -> EndpointTier {
        self.1
    }

    /// Returns the largest request body of this endpoint.
    pub fn body_bytes_max(&self) -> u64 {
        match self.1 {
            EndpointTier::Basic => self.config().body_bytes_max,
            EndpointTier::Premium => self.config().upload_body_bytes_max,
        }
    }

    /// Returns the current configuration. Not to be held for long: it may be replaced at any time.
    pub fn config(&self) -> Guard<Arc<Config>> {
        self.0.config.load()
    }

    /// Returns the current host names of the dashboard.
    pub fn dashboard_hosts(&self) -> Guard<Arc<DashboardHosts>> {
        self.0.dashboard_hosts.load()
    }

    /// Replaces the configuration. Settings that require a restart have no effect.
    pub fn reload(&self, config: Config) {
        let hosts = DashboardHosts::new(&self.public_url, &config.dashboard_hosts);
        self.0.dashboard_hosts.store(Arc::new(hosts));
        self.jobs.set_allowed_origins(&config.webhook_allow, &config.import_allow);
        self.rate_limiter.change(&config, &*self.rng);
        self.0.config.store(Arc::new(config));
    }

    /// Marks the server as draining: readiness checks fail from now on.
    pub fn start_draining(&self) {
        self.jobs.start_draining();
    }

    pub fn is_draining(&self) -> bool {
        self.jobs.is_draining()
    }

    /// Returns the path, with its secret, of a new set-up link, or `None` once an operator has a password.
    pub fn issue_set_up_link(&self) -> Option<String> {
        if !self.catalog.needs_set_up() {
            return None;
        }
        let secret = self.set_up_link.issue(&*self.rng, self.clock.monotonic_ms());
        Some(format!("{}#{secret}", reserved_paths::SET_UP_PATH))
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
            let evicted = app.catalog.staging().evict(|id| app.upload_locks.is_locked(id));
            let Some((id, upload)) = evicted else { break };
            for (body, bytes) in upload.bodies {
                // Open files would hold on to their space.
                app.upload_locks.close(body);
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

/// Returns the memory of the machine in bytes.
pub fn physical_memory_bytes() -> u64 {
    let machine = rustix::system::sysinfo();
    machine.totalram * u64::from(machine.mem_unit)
}

impl std::ops::Deref for AppState {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}
