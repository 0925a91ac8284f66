//! Image variants: transformation of stored images on request, with caching.
//!
//! ```text
//! look     lookup: the stored file, a cached variant, or a missing one
//! make     rendering of a missing variant
//!   flight       single-flight of concurrent requests
//!   workshop     render pool: threads, queue, memory limit
//!   shelf        variant cache in the store
//!   remembered   cached image headers and failed jobs
//! ```
//!
//! Guarantees: at most one job per variant, however many requests, and none without waiters; variants are served only
//! while their parent's version exists; the caller has checked access to the parent, and the permission to render.
//! Non-goals: requests and responses.

mod flight;
mod remembered;
mod shelf;
mod workshop;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use engine::clock::Clock;
use engine::metrics::{Counter, Histogram, HistogramSnapshot};
use engine::{Etag, Object, Store};
use images::{
    Error, Format, LimitKind, Plan, PlanOutcome, Source, TransformOptions, limits::SOURCE_BYTES_MAX,
};
use protocol::error::ApiError;
use usage::bucket_counters::BucketCounters;
use usage::task::blocking;

use self::flight::{SingleFlight, WaiterToken};
use self::remembered::GenerationCache;
use self::shelf::VariantCache;
use self::workshop::RenderPool;
pub use self::workshop::{RenderCost, RenderFailure, RenderPoolStats};

use crate::crew::cpu_count;
use crate::limits::{
    IMAGE_FAILURE_CACHE_TTL, IMAGE_HEAD_BYTES, IMAGE_HEADER_CACHE_ENTRIES, IMAGE_JOBS_RETRIED_MAX,
    IMAGE_QUEUE_TIMEOUT, VARIANTS_SWEEP_INTERVAL,
};
use crate::object_body::{read_all, read_prefix};

/// Variants of all images. Cheap to clone.
#[derive(Clone)]
pub struct Variants(Arc<Inner>);

struct Inner {
    store: Store,
    clock: Arc<dyn Clock>,
    render_pool: RenderPool,
    cache: VariantCache,
    headers: GenerationCache<u64, ImageHeader>,
    /// Failed jobs of unusable files, and when they expire.
    refusals: GenerationCache<Name, (Error, u64)>,
    readings: SingleFlight<(u64, HeaderDepth), Result<ImageHeader, VariantError>>,
    makings: SingleFlight<Name, Result<VariantSource, VariantError>>,
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
    pub kept: u64,
    pub kept_bytes: u64,
    /// Durations of image jobs, in microseconds of a thread.
    pub work_us: HistogramSnapshot,
}

/// Histogram buckets in microseconds.
const WORK_US: &[u64] = &[
    1_000, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    10_000_000, 60_000_000,
];

/// LSN of a parent's version, and name of the plan.
type Name = (u64, String);

/// Header of a file: the image's properties, `None` for another type, or why it cannot be parsed.
pub type ImageHeader = Result<Option<Source>, Error>;

/// Purpose of reading a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HeaderDepth {
    /// Choosing the plan.
    Planning,
    /// Estimating the cost as well, which may require the whole file.
    Cost,
}

/// Result of a lookup.
#[derive(Clone, Debug)]
pub enum VariantLookup {
    /// Representation that can be served.
    Shown(VariantSource),
    /// Variant that has to be rendered.
    Miss(RenderTask),
}

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

/// Variant to be rendered, with its plan.
#[derive(Clone, Debug)]
pub struct RenderTask {
    parent: Object,
    source: Source,
    plan: Plan,
    name: String,
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
    /// Starts the threads. `kept_bytes_max` limits the variant cache, `memory_bytes` the memory of all concurrent work.
    pub fn start(
        store: Store,
        clock: Arc<dyn Clock>,
        kept_bytes_max: u64,
        memory_bytes: u64,
    ) -> Result<Self, String> {
        let workshop = RenderPool::start(cpu_count(), memory_bytes, IMAGE_QUEUE_TIMEOUT)
            .map_err(|error| format!("cannot start threads for pictures: {error}"))?;
        let shelf =
            VariantCache::new(store.clone(), kept_bytes_max).map_err(|error| error.to_string())?;
        Ok(Self(Arc::new(Inner {
            store,
            clock,
            render_pool: workshop,
            cache: shelf,
            headers: GenerationCache::new(IMAGE_HEADER_CACHE_ENTRIES),
            refusals: GenerationCache::new(IMAGE_HEADER_CACHE_ENTRIES),
            readings: SingleFlight::new(),
            makings: SingleFlight::new(),
            hits: Counter::default(),
            misses: Counter::default(),
            work_us: Histogram::new(WORK_US),
        })))
    }

    /// Looks up the representation of a file for transform options.
    pub async fn lookup(
        &self,
        parent: &Object,
        wish: &TransformOptions,
    ) -> Result<VariantLookup, VariantError> {
        let source = match self.header(parent, HeaderDepth::Planning).await? {
            Ok(Some(source)) => source,
            Ok(None) => return Ok(VariantLookup::Shown(VariantSource::Original)),
            Err(error) => return source_or_error(error).map(VariantLookup::Shown),
        };
        let plan = match images::plan(&source, wish) {
            Ok(PlanOutcome::Transform(plan)) => plan,
            Ok(PlanOutcome::Original) => return Ok(VariantLookup::Shown(VariantSource::Original)),
            Err(error) => return source_or_error(error).map(VariantLookup::Shown),
        };
        let mut missing =
            RenderTask { parent: parent.clone(), source, plan, name: plan.to_string() };
        if let Some(variant) = self.0.cache.get(parent, &missing.name)? {
            self.0.hits.add(1);
            return Ok(VariantLookup::Shown(VariantSource::Cached(variant, plan.format)));
        }
        match self.0.refusals.get(&missing.key()) {
            Some((error, until_ms)) if self.0.clock.unix_ms() < until_ms => {
                source_or_error(error).map(VariantLookup::Shown)
            }
            _ => {
                if let Ok(Some(source)) = self.header(parent, HeaderDepth::Cost).await? {
                    missing.source = source;
                }
                self.0.misses.add(1);
                Ok(VariantLookup::Miss(missing))
            }
        }
    }

    /// Returns whether a job currently renders the variant.
    pub fn is_rendering(&self, missing: &RenderTask) -> bool {
        self.0.makings.is_running(&missing.key())
    }

    /// Returns the number of variants that are being rendered or queued.
    pub fn rendering_count(&self) -> usize {
        self.0.makings.count()
    }

    /// Renders a missing variant, or joins a running job. Dropping the future stops waiting; a job without waiters is
    /// cancelled. The work counts as usage of the bucket.
    pub async fn render(
        &self,
        missing: RenderTask,
        traffic: &Arc<BucketCounters>,
    ) -> Result<VariantSource, VariantError> {
        for _ in 0..IMAGE_JOBS_RETRIED_MAX {
            let job = |interest| self.clone().work(missing.clone(), traffic.clone(), interest);
            match self.0.makings.join(missing.key(), job).await {
                // The previous waiters left just as this request joined.
                Some(Err(VariantError::Abandoned)) => {}
                Some(done) => return done,
                None => return Err(VariantError::Failed("a job panicked".to_owned())),
            }
        }
        Err(VariantError::Busy)
    }

    /// Runs other image work in the render pool, within the same limits.
    pub async fn run<T: Send + 'static>(
        &self,
        cost: RenderCost,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, RenderFailure> {
        self.0.render_pool.run(cost, work).await
    }

    /// Runs image work on a thread of the pool, and counts it.
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
        let (kept, kept_bytes) = self.0.cache.totals();
        VariantStats {
            render_pool: self.0.render_pool.read(),
            hits: self.0.hits.get(),
            misses: self.0.misses.get(),
            kept: kept as u64,
            kept_bytes,
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

    /// Returns the header of a file, cached or parsed.
    async fn header(
        &self,
        parent: &Object,
        purpose: HeaderDepth,
    ) -> Result<ImageHeader, VariantError> {
        let version = parent.lsn();
        if let Some(known) = self.0.headers.get(&version).filter(|known| purpose.is_met(known)) {
            return Ok(known);
        }
        if parent.bytes() > SOURCE_BYTES_MAX {
            return Ok(Err(Error::TooLarge(LimitKind::Bytes)));
        }
        let job = |_| {
            let (inner, parent) = (self.0.clone(), parent.clone());
            async move {
                let cost = RenderCost { ms: 1, bytes: parent.bytes() };
                let store = inner.store.clone();
                let read = inner.render_pool.run(cost, move || {
                    let body = store.body(&parent)?;
                    read_header(body.bytes(), purpose, |bytes| read_prefix(&body, bytes))
                });
                let header = verdict(read.await)?;
                inner.headers.put(version, header.clone());
                Ok(header)
            }
        };
        let panicked = || Err(VariantError::Failed("reading a header panicked".to_owned()));
        self.0.readings.join((version, purpose), job).await.unwrap_or_else(panicked)
    }

    /// Renders a missing variant, and caches it if possible.
    async fn work(
        self,
        missing: RenderTask,
        traffic: Arc<BucketCounters>,
        interest: WaiterToken<Result<VariantSource, VariantError>>,
    ) -> Result<VariantSource, VariantError> {
        let (inner, counting) = (self.0.clone(), self);
        let key = missing.key();
        let RenderTask { parent, source, plan, name } = missing;
        let bytes = parent.bytes() + plan.memory_bytes(&source);
        let cost = RenderCost { ms: plan.cost_ms(&source), bytes };
        let (store, stored, waiting) = (inner.store.clone(), parent.clone(), interest.clone());
        let rendering = inner.render_pool.run(cost, move || {
            let bytes = read_all(&store.body(&stored)?)?;
            let render = || images::render(&bytes, &source, &plan, &|| waiting.is_abandoned());
            Ok(counting.count(&traffic, render))
        });
        let rendered = tokio::select! {
            rendered = rendering => verdict(rendered)?,
            () = interest.abandoned() => Err(Error::Cancelled),
        };
        let bytes = match rendered {
            Ok(bytes) => Bytes::from(bytes),
            Err(error) => {
                if let Error::TooLarge(_) | Error::Undecodable(_) = error {
                    let until_ms =
                        inner.clock.unix_ms() + IMAGE_FAILURE_CACHE_TTL.as_millis() as u64;
                    inner.refusals.put(key, (error.clone(), until_ms));
                }
                return source_or_error(error);
            }
        };
        let (keeping, kept) = (inner.clone(), bytes.clone());
        let content_type = plan.format.content_type();
        match blocking(move || keeping.cache.put(&parent, &name, content_type, &kept)).await {
            Ok(Some(variant)) => return Ok(VariantSource::Cached(variant, plan.format)),
            Ok(None) => {}
            // Images are served even if the store is full or read-only.
            Err(error) => tracing::debug!(%error, "image variant not cached"),
        }
        let etag = Etag::of_hash(blake3::hash(&bytes).as_bytes());
        Ok(VariantSource::Rendered(RenderedVariant { bytes, etag, format: plan.format }))
    }
}

impl RenderTask {
    /// Returns the estimated CPU time in milliseconds; at least 1.
    pub fn cost_ms(&self) -> u64 {
        self.plan.cost_ms(&self.source).max(1)
    }

    fn key(&self) -> Name {
        (self.parent.lsn(), self.name.clone())
    }
}

impl HeaderDepth {
    /// Returns whether a header is sufficient for the purpose.
    fn is_met(self, header: &ImageHeader) -> bool {
        match (self, header) {
            (Self::Cost, Ok(Some(source))) => source.has_complete_cost(),
            _ => true,
        }
    }
}

/// Parses the header of a file, for most files from its start alone. `read` returns up to that many of its first bytes.
pub fn read_header(
    bytes: u64,
    purpose: HeaderDepth,
    read: impl Fn(u64) -> engine::Result<Vec<u8>>,
) -> engine::Result<ImageHeader> {
    let start = read(IMAGE_HEAD_BYTES)?;
    let Some(format) = Format::detect(&start) else { return Ok(Ok(None)) };
    let header = Ok(images::read_source_of_start(format, &start));
    if matches!(header, Ok(Some(_))) && purpose.is_met(&header) {
        return Ok(header);
    }
    let whole = if start.len() as u64 == bytes { start } else { read(bytes)? };
    Ok(images::read_source(format, &whole).map(Some))
}

/// Separates permanent results of work on a file from transient errors.
fn verdict<T>(
    done: Result<engine::Result<Result<T, Error>>, RenderFailure>,
) -> Result<Result<T, Error>, VariantError> {
    match done {
        Ok(read) => Ok(read?),
        // It would panic again.
        Err(RenderFailure::Panicked) => {
            Ok(Err(Error::Undecodable("its decoder failed".to_owned())))
        }
        Err(RenderFailure::Busy) => Err(VariantError::Busy),
    }
}

fn source_or_error(error: Error) -> Result<VariantSource, VariantError> {
    match error {
        Error::TooLarge(bound) => Ok(VariantSource::OverLimit(bound)),
        Error::Undecodable(why) => Err(VariantError::Undecodable(why)),
        Error::Cancelled => Err(VariantError::Abandoned),
        Error::Failed(why) => Err(VariantError::Failed(why)),
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
