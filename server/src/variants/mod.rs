//! Pictures on the fly: what a request wants of a stored one, found or made.
//!
//! ```text
//! look     what is stored, a variant that is kept, or what is missing
//! make     what is missing
//!   flight       many who want the same make one job
//!   workshop     threads, turns, memory
//!   shelf        variants in the store
//!   remembered   headers that were read already, and jobs that came to nothing
//! ```
//!
//! Promises: one job for one variant, however many ask, and none for nobody; a version's variants are shown while it is
//! there and never after; whoever calls has checked that the caller may see the parent, and may have what is missing
//! made. Never here: requests and answers.

mod flight;
mod remembered;
mod shelf;
mod workshop;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use engine::{Clock, Count, Etag, Histogram, HistogramReading, Object, Store};
use images::{Bound, Error, Format, Plan, Planned, Source, Wish, limits::SOURCE_BYTES_MAX};

use self::flight::{Flights, Interest};
use self::remembered::Remembered;
use self::shelf::Shelf;
use self::workshop::Workshop;
pub use self::workshop::{Cost, Undone, WorkshopReading};
use crate::bridge::{blocking, read_start, read_whole};
use crate::crew::processors;
use crate::limits::{
    IMAGE_HEAD_BYTES, IMAGE_HEADERS_REMEMBERED, IMAGE_JOBS_RETRIED_MAX, IMAGE_REFUSAL_KEPT,
    IMAGE_WAIT, VARIANTS_SWEEP_WAIT,
};
use crate::traffic::Traffic;

/// The variants of all pictures. Cheap to clone.
#[derive(Clone)]
pub struct Variants(Arc<Inner>);

struct Inner {
    store: Store,
    clock: Arc<dyn Clock>,
    workshop: Workshop,
    shelf: Shelf,
    headers: Remembered<u64, Header>,
    /// Jobs that came to nothing by the file's fault, and until when that is believed.
    refusals: Remembered<Name, (Error, u64)>,
    readings: Flights<(u64, Purpose), Result<Header, VariantError>>,
    makings: Flights<Name, Result<Shown, VariantError>>,
    hits: Count,
    misses: Count,
    work_us: Histogram,
}

/// How it goes with pictures.
#[derive(Clone, Debug)]
pub struct VariantsReading {
    pub workshop: WorkshopReading,
    /// Since the start: wishes for which a variant was kept,
    pub hits: u64,
    /// and wishes for which one had to be made.
    pub misses: u64,
    /// Variants that are kept, and their bytes.
    pub kept: u64,
    pub kept_bytes: u64,
    /// How long pictures were worked on, in microseconds of a thread.
    pub work_us: HistogramReading,
}

/// Of microseconds.
const WORK_US: &[u64] = &[
    1_000, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    10_000_000, 60_000_000,
];

/// The number of a parent's version, and the name of the plan.
type Name = (u64, String);

/// What the head of a file says: what kind of picture it is, that it is none, or why it cannot be read.
pub type Header = Result<Option<Source>, Error>;

/// What a head is read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// To decide what is made.
    Planning,
    /// To know what it costs as well, which may take the whole file.
    Reckoning,
}

/// What there is for a wish.
#[derive(Clone, Debug)]
pub enum Found {
    /// This is shown.
    Shown(Shown),
    /// It has to be made.
    Missing(Missing),
}

/// What is shown for a wish.
#[derive(Clone, Debug)]
pub enum Shown {
    /// The file as it is stored: it is no picture that is worked on, or just what was wished for.
    AsStored,
    /// The file as it is stored: making what was wished for would be over this bound.
    Skipped(Bound),
    /// A variant that is kept.
    Kept(Object, Format),
    /// A variant that is not.
    Made(Made),
}

/// A variant in memory.
#[derive(Clone, Debug)]
pub struct Made {
    /// The file.
    pub bytes: Bytes,
    /// Its strong validator.
    pub etag: Etag,
    /// Its format.
    pub format: Format,
}

/// A variant that is not kept, and how it is made.
#[derive(Clone, Debug)]
pub struct Missing {
    parent: Object,
    source: Source,
    plan: Plan,
    name: String,
}

/// Why there is nothing to show.
#[derive(Clone, Debug)]
pub enum VariantError {
    /// The file is broken.
    Undecodable(String),
    /// Too much work waits already.
    Busy,
    /// The store does not give the file.
    Store(engine::Error),
    /// Our fault, for the log.
    Failed(String),
    /// The job was given up because nobody seemed to wait.
    GivenUp,
}

impl Variants {
    /// Starts the threads. `kept_bytes_max` is what the variants in the store may take, `memory_bytes` what all work at
    /// once may.
    pub fn start(
        store: Store,
        clock: Arc<dyn Clock>,
        kept_bytes_max: u64,
        memory_bytes: u64,
    ) -> Result<Self, String> {
        let workshop = Workshop::start(processors(), memory_bytes, IMAGE_WAIT)
            .map_err(|error| format!("cannot start threads for pictures: {error}"))?;
        let shelf = Shelf::new(store.clone(), kept_bytes_max).map_err(|error| error.to_string())?;
        Ok(Self(Arc::new(Inner {
            store,
            clock,
            workshop,
            shelf,
            headers: Remembered::new(IMAGE_HEADERS_REMEMBERED),
            refusals: Remembered::new(IMAGE_HEADERS_REMEMBERED),
            readings: Flights::new(),
            makings: Flights::new(),
            hits: Count::default(),
            misses: Count::default(),
            work_us: Histogram::new(WORK_US),
        })))
    }

    /// Looks what there is of a file for a wish.
    pub async fn look(&self, parent: &Object, wish: &Wish) -> Result<Found, VariantError> {
        let source = match self.header(parent, Purpose::Planning).await? {
            Ok(Some(source)) => source,
            Ok(None) => return Ok(Found::Shown(Shown::AsStored)),
            Err(error) => return told(error).map(Found::Shown),
        };
        let plan = match images::plan(&source, wish) {
            Ok(Planned::Made(plan)) => plan,
            Ok(Planned::AsStored) => return Ok(Found::Shown(Shown::AsStored)),
            Err(error) => return told(error).map(Found::Shown),
        };
        let mut missing = Missing { parent: parent.clone(), source, plan, name: plan.to_string() };
        if let Some(variant) = self.0.shelf.get(parent, &missing.name)? {
            self.0.hits.add(1);
            return Ok(Found::Shown(Shown::Kept(variant, plan.format)));
        }
        match self.0.refusals.get(&missing.key()) {
            Some((error, until_ms)) if self.0.clock.unix_ms() < until_ms => {
                told(error).map(Found::Shown)
            }
            _ => {
                if let Ok(Some(source)) = self.header(parent, Purpose::Reckoning).await? {
                    missing.source = source;
                }
                self.0.misses.add(1);
                Ok(Found::Missing(missing))
            }
        }
    }

    /// Whether a job makes it at this moment.
    pub fn is_in_work(&self, missing: &Missing) -> bool {
        self.0.makings.is_running(&missing.key())
    }

    /// How many variants are being made at this moment, or wait for it.
    pub fn in_work(&self) -> usize {
        self.0.makings.count()
    }

    /// Makes what is missing, or waits for whoever does. Dropped, it waits no more; what nobody waits for is not made.
    /// The work counts for `traffic`.
    pub async fn make(
        &self,
        missing: Missing,
        traffic: &Arc<Traffic>,
    ) -> Result<Shown, VariantError> {
        for _ in 0..IMAGE_JOBS_RETRIED_MAX {
            let job = |interest| self.clone().work(missing.clone(), traffic.clone(), interest);
            match self.0.makings.join(missing.key(), job).await {
                // Whoever waited before went away just when this request came.
                Some(Err(VariantError::GivenUp)) => {}
                Some(done) => return done,
                None => return Err(VariantError::Failed("a job panicked".to_owned())),
            }
        }
        Err(VariantError::Busy)
    }

    /// Does other work on pictures where all of it is done: on the same threads, within the same bounds.
    pub async fn run<T: Send + 'static>(
        &self,
        cost: Cost,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Undone> {
        self.0.workshop.run(cost, work).await
    }

    /// Works on a picture, on one of those threads, and counts that.
    pub fn count<T>(&self, traffic: &Traffic, work: impl FnOnce() -> T) -> T {
        let clock = &self.0.clock;
        let began_us = clock.monotonic_us();
        let done = work();
        let took_us = clock.monotonic_us().saturating_sub(began_us);
        traffic.note_image(took_us);
        self.0.work_us.note(took_us);
        done
    }

    /// How it goes.
    pub fn read(&self) -> VariantsReading {
        let (kept, kept_bytes) = self.0.shelf.totals();
        VariantsReading {
            workshop: self.0.workshop.read(),
            hits: self.0.hits.get(),
            misses: self.0.misses.get(),
            kept: kept as u64,
            kept_bytes,
            work_us: self.0.work_us.read(),
        }
    }

    /// Removes a variant that turned out to be damaged, so that it is made anew. Waits for the disk.
    pub fn discard(&self, variant: &Object) -> engine::Result<()> {
        self.0.shelf.discard(variant)
    }

    /// Looks what is kept, then removes now and then what has to go. Ends with the task.
    pub async fn keep_tidy(self) {
        let variants = self.clone();
        if let Err(error) = blocking(move || variants.find()).await {
            tracing::warn!(%error, "failed to load the variant cache");
        }
        loop {
            let variants = self.clone();
            if let Err(error) = blocking(move || variants.sweep()).await {
                tracing::warn!(%error, "failed to evict image variants");
            }
            tokio::time::sleep(VARIANTS_SWEEP_WAIT).await;
        }
    }

    /// Looks which variants the store has. Waits for the disk.
    pub fn find(&self) -> engine::Result<()> {
        self.0.shelf.find()
    }

    /// Removes variants whose file is gone or another, and what is over the bound. Waits for the disk.
    pub fn sweep(&self) -> engine::Result<()> {
        self.0.shelf.sweep()
    }

    /// What the head of a file says, remembered or read.
    async fn header(&self, parent: &Object, purpose: Purpose) -> Result<Header, VariantError> {
        let version = parent.lsn();
        if let Some(known) = self.0.headers.get(&version).filter(|known| purpose.is_met(known)) {
            return Ok(known);
        }
        if parent.bytes() > SOURCE_BYTES_MAX {
            return Ok(Err(Error::TooLarge(Bound::Bytes)));
        }
        let job = |_| {
            let (inner, parent) = (self.0.clone(), parent.clone());
            async move {
                let cost = Cost { ms: 1, bytes: parent.bytes() };
                let store = inner.store.clone();
                let read = inner.workshop.run(cost, move || {
                    let body = store.body(&parent)?;
                    read_header(body.bytes(), purpose, |bytes| read_start(&body, bytes))
                });
                let header = verdict(read.await)?;
                inner.headers.put(version, header.clone());
                Ok(header)
            }
        };
        let panicked = || Err(VariantError::Failed("reading a header panicked".to_owned()));
        self.0.readings.join((version, purpose), job).await.unwrap_or_else(panicked)
    }

    /// The job for what is missing: makes it, and keeps it if that may be.
    async fn work(
        self,
        missing: Missing,
        traffic: Arc<Traffic>,
        interest: Interest<Result<Shown, VariantError>>,
    ) -> Result<Shown, VariantError> {
        let (inner, counting) = (self.0.clone(), self);
        let key = missing.key();
        let Missing { parent, source, plan, name } = missing;
        let bytes = parent.bytes() + plan.memory_bytes(&source);
        let cost = Cost { ms: plan.cost_ms(&source), bytes };
        let (store, stored, waiting) = (inner.store.clone(), parent.clone(), interest.clone());
        let rendering = inner.workshop.run(cost, move || {
            let bytes = read_whole(&store.body(&stored)?)?;
            let render = || images::render(&bytes, &source, &plan, &|| waiting.is_gone());
            Ok(counting.count(&traffic, render))
        });
        let rendered = tokio::select! {
            rendered = rendering => verdict(rendered)?,
            () = interest.gone() => Err(Error::Cancelled),
        };
        let bytes = match rendered {
            Ok(bytes) => Bytes::from(bytes),
            Err(error) => {
                if let Error::TooLarge(_) | Error::Undecodable(_) = error {
                    let until_ms = inner.clock.unix_ms() + IMAGE_REFUSAL_KEPT.as_millis() as u64;
                    inner.refusals.put(key, (error.clone(), until_ms));
                }
                return told(error);
            }
        };
        let (keeping, kept) = (inner.clone(), bytes.clone());
        let content_type = plan.format.content_type();
        match blocking(move || keeping.shelf.put(&parent, &name, content_type, &kept)).await {
            Ok(Some(variant)) => return Ok(Shown::Kept(variant, plan.format)),
            Ok(None) => {}
            // A store that is full or read-only goes on showing pictures.
            Err(error) => tracing::debug!(%error, "image variant not cached"),
        }
        let etag = Etag::of_hash(blake3::hash(&bytes).as_bytes());
        Ok(Shown::Made(Made { bytes, etag, format: plan.format }))
    }
}

impl Missing {
    /// About how long a processor works on it, in milliseconds; at least 1.
    pub fn cost_ms(&self) -> u64 {
        self.plan.cost_ms(&self.source).max(1)
    }

    fn key(&self) -> Name {
        (self.parent.lsn(), self.name.clone())
    }
}

impl Purpose {
    /// Whether a header says enough for it.
    fn is_met(self, header: &Header) -> bool {
        match (self, header) {
            (Self::Reckoning, Ok(Some(source))) => source.is_reckoned(),
            _ => true,
        }
    }
}

/// Reads the header of a file of so many bytes, of most files from their start alone. `read` gives so many of the first
/// ones.
pub fn read_header(
    bytes: u64,
    purpose: Purpose,
    read: impl Fn(u64) -> engine::Result<Vec<u8>>,
) -> engine::Result<Header> {
    let start = read(IMAGE_HEAD_BYTES)?;
    let Some(format) = Format::of(&start) else { return Ok(Ok(None)) };
    let header = Ok(images::read_source_of_start(format, &start));
    if matches!(header, Ok(Some(_))) && purpose.is_met(&header) {
        return Ok(header);
    }
    let whole = if start.len() as u64 == bytes { start } else { read(bytes)? };
    Ok(images::read_source(format, &whole).map(Some))
}

/// What came of work on a file, apart from what another try may change.
fn verdict<T>(
    done: Result<engine::Result<Result<T, Error>>, Undone>,
) -> Result<Result<T, Error>, VariantError> {
    match done {
        Ok(read) => Ok(read?),
        // It would panic again.
        Err(Undone::Panicked) => Ok(Err(Error::Undecodable("its decoder failed".to_owned()))),
        Err(Undone::Busy) => Err(VariantError::Busy),
    }
}

fn told(error: Error) -> Result<Shown, VariantError> {
    match error {
        Error::TooLarge(bound) => Ok(Shown::Skipped(bound)),
        Error::Undecodable(why) => Err(VariantError::Undecodable(why)),
        Error::Cancelled => Err(VariantError::GivenUp),
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
            Self::GivenUp => write!(f, "all waiting requests were cancelled"),
        }
    }
}

impl std::error::Error for VariantError {}
