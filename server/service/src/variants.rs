//! Variants: stored images, transformed on request, and compressed files, with caching.
//!
//! ```text
//! plan            step 1: properties of the image, and the plan for the transform options
//! cache           step 2: variants in the store, and their eviction
//! render          step 3: rendering of a missing variant
//!   single_flight   one job for concurrent requests
//!   render_pool     threads, queue, memory limit
//! compressed      compressed forms of files, in the same cache and the same pool
//! thumbnail       rendering of a thumbnail from a staged body
//! ```
//!
//! Guarantees: at most one job per variant, however many requests, and none without waiters; variants are served only
//! while their parent's version exists; the caller has checked access to the parent, and the permission to render.
//! Non-goals: requests and responses.

mod cache;
mod camera;
mod compressed;
mod plan;
mod render;
mod render_pool;
mod single_flight;
mod thumbnail;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use compression::Coding;
use engine::clock::Clock;
use engine::metrics::{Counter, Histogram, HistogramSnapshot};
use engine::{Etag, Object, Store};
use images::{Error, Format, LimitKind};
use protocol::error::ApiError;
use quick_cache::sync::Cache;
use usage::bucket_counters::BucketCounters;
use usage::task::blocking;

use self::cache::{VariantCache, VariantKey};
pub use images::CameraInfo;

pub use self::compressed::CompressedFile;
pub use self::plan::{HeaderDepth, ImageHeader, VariantLookup, read_header};
pub use self::render::RenderTask;
use self::render_pool::RenderPool;
pub use self::render_pool::{RenderCost, RenderFailure, RenderPoolStats};
use self::single_flight::SingleFlight;
pub use self::thumbnail::render_thumbnail;
use crate::delivery_activity::DeliveryActivity;
use crate::limits::{IMAGE_HEADER_CACHE_ENTRIES, IMAGE_QUEUE_TIMEOUT, VARIANTS_SWEEP_INTERVAL};
use crate::thread_pool::cpu_count;

/// Variants of all files. Cheap to clone.
#[derive(Clone)]
pub struct Variants(Arc<Inner>);

struct Inner {
    store: Store,
    clock: Arc<dyn Clock>,
    render_pool: RenderPool,
    cache: VariantCache,
    /// Headers by the LSN of the file's version.
    headers: Cache<u64, ImageHeader>,
    /// Failed jobs of unusable files, and when they expire, in milliseconds since 1970.
    failures: Cache<VariantKey, (Error, u64)>,
    header_reads: SingleFlight<(u64, HeaderDepth), Result<ImageHeader, VariantError>>,
    renders: SingleFlight<VariantKey, Result<VariantSource, VariantError>>,
    compressions: SingleFlight<(u64, Coding), Result<Option<CompressedFile>, VariantError>>,
    /// Versions of files that do not shrink, by LSN.
    incompressible: Cache<u64, ()>,
    hits: Counter,
    misses: Counter,
    work_us: Histogram,
}

/// Metrics of image processing.
#[derive(Clone, Debug)]
pub struct VariantStats {
    pub render_pool: RenderPoolStats,
    /// Requests answered from the variant cache since the start.
    pub hits: u64,
    /// Requests that required rendering since the start.
    pub misses: u64,
    /// Number of cached variants, and their bytes.
    pub cached: u64,
    pub cached_bytes: u64,
    /// Durations of image jobs, in microseconds of a thread.
    pub work_us: HistogramSnapshot,
}

/// Histogram buckets in microseconds.
const WORK_US: &[u64] = &[
    1_000, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    10_000_000, 60_000_000,
];

/// Representation for the transform options.
#[derive(Clone, Debug)]
pub enum VariantSource {
    /// The file as stored: it is not a supported image, or already matches the options.
    Original,
    /// The file as stored: the transformation would exceed this limit.
    OverLimit(LimitKind),
    /// Cached variant.
    Cached(Object, Format),
    /// Variant that is not cached.
    Rendered(RenderedVariant),
}

/// Variant in memory.
#[derive(Clone, Debug)]
pub struct RenderedVariant {
    /// Encoded image.
    pub bytes: Bytes,
    /// Strong entity tag.
    pub etag: Etag,
    /// Image format.
    pub format: Format,
}

/// Failed variant.
#[derive(Clone, Debug)]
pub enum VariantError {
    /// The file is corrupt.
    Undecodable(String),
    /// The queue is full.
    Busy,
    /// The store failed to return the file.
    Store(engine::Error),
    /// Internal error, for the log.
    Failed(String),
    /// The job was cancelled because it seemed to have no waiters.
    Abandoned,
}

impl From<VariantError> for ApiError {
    fn from(error: VariantError) -> Self {
        match error {
            VariantError::Undecodable(why) => Self::undecodable(&why),
            VariantError::Busy | VariantError::Abandoned => Self::overloaded(1),
            VariantError::Store(error) => error.into(),
            VariantError::Failed(log) => Self::internal(log),
        }
    }
}

impl Variants {
    /// Starts the threads. `cached_bytes_max` limits the variant cache, `memory_bytes` the memory of all concurrent
    /// work. While `deliveries` are idle, the work uses all processors.
    pub fn start(
        store: Store,
        clock: Arc<dyn Clock>,
        cached_bytes_max: u64,
        memory_bytes: u64,
        deliveries: Arc<DeliveryActivity>,
    ) -> Result<Self, String> {
        let started = RenderPool::start(cpu_count(), memory_bytes, IMAGE_QUEUE_TIMEOUT, deliveries);
        let render_pool =
            started.map_err(|error| format!("cannot start threads for images: {error}"))?;
        let cache = VariantCache::new(store.clone(), cached_bytes_max)
            .map_err(|error| error.to_string())?;
        Ok(Self(Arc::new(Inner {
            store,
            clock,
            render_pool,
            cache,
            headers: Cache::new(IMAGE_HEADER_CACHE_ENTRIES),
            failures: Cache::new(IMAGE_HEADER_CACHE_ENTRIES),
            header_reads: SingleFlight::new(),
            renders: SingleFlight::new(),
            compressions: SingleFlight::new(),
            incompressible: Cache::new(IMAGE_HEADER_CACHE_ENTRIES),
            hits: Counter::default(),
            misses: Counter::default(),
            work_us: Histogram::new(WORK_US),
        })))
    }

    /// Runs other image work in the render pool, within the same limits.
    pub async fn run<T: Send + 'static>(
        &self,
        cost: RenderCost,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, RenderFailure> {
        self.0.render_pool.run(cost, work).await
    }

    /// Runs image work on the current thread, and counts it as usage of a bucket.
    pub fn count<T>(&self, traffic: &BucketCounters, work: impl FnOnce() -> T) -> T {
        let clock = &self.0.clock;
        let began_us = clock.monotonic_us();
        let done = work();
        let took_us = clock.monotonic_us().saturating_sub(began_us);
        traffic.count_image(took_us);
        self.0.work_us.observe(took_us);
        done
    }

    /// Returns the metrics.
    pub fn read(&self) -> VariantStats {
        let (cached, cached_bytes) = self.0.cache.totals();
        VariantStats {
            render_pool: self.0.render_pool.read(),
            hits: self.0.hits.get(),
            misses: self.0.misses.get(),
            cached: cached as u64,
            cached_bytes,
            work_us: self.0.work_us.read(),
        }
    }

    /// Removes a corrupt variant, so that it is rendered again. Blocks on the disk.
    pub fn discard(&self, variant: &Object) -> engine::Result<()> {
        self.0.cache.discard(variant)
    }

    /// Loads the variant cache, then evicts periodically. Ends with the task.
    pub async fn run_eviction(self) {
        let variants = self.clone();
        if let Err(error) = blocking(move || variants.load()).await {
            tracing::warn!(%error, "failed to load the variant cache");
        }
        loop {
            let variants = self.clone();
            if let Err(error) = blocking(move || variants.sweep()).await {
                tracing::warn!(%error, "failed to evict image variants");
            }
            tokio::time::sleep(VARIANTS_SWEEP_INTERVAL).await;
        }
    }

    /// Loads the variants in the store. Blocks on the disk.
    pub fn load(&self) -> engine::Result<()> {
        self.0.cache.load()
    }

    /// Evicts variants whose parent was deleted or replaced, and those over the limit. Blocks on the disk.
    pub fn sweep(&self) -> engine::Result<()> {
        self.0.cache.evict()
    }
}

impl From<engine::Error> for VariantError {
    fn from(error: engine::Error) -> Self {
        Self::Store(error)
    }
}

impl fmt::Display for VariantError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undecodable(why) => write!(f, "the image cannot be decoded: {why}"),
            Self::Busy => write!(f, "too many queued image jobs"),
            Self::Store(error) => write!(f, "{error}"),
            Self::Failed(why) => write!(f, "{why}"),
            Self::Abandoned => write!(f, "all waiting requests were cancelled"),
        }
    }
}

impl std::error::Error for VariantError {}
