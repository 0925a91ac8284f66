//! Pictures on the fly: what a request wants of a stored one, found or made.
//!
//! ```text
//! show     what is stored, a variant that is kept, or one that is made now
//!   flight       many who want the same make one job
//!   workshop     threads, turns, memory
//!   shelf        variants in the store
//!   remembered   headers that were read already
//! ```
//!
//! Promises: one job for one variant, however many ask; a version's variants are shown while it is there and never
//! after; whoever calls has checked that the caller may see the parent. Never here: requests and answers.

mod flight;
mod remembered;
mod shelf;
mod workshop;

use std::fmt;
use std::num::NonZero;
use std::sync::Arc;

use bytes::Bytes;
use engine::{Clock, Etag, Object, Store};

use self::flight::{Flights, Interest};
use self::remembered::Remembered;
use self::shelf::Shelf;
use self::workshop::Workshop;
pub use self::workshop::{Cost, Undone};
use crate::bridge::blocking;
use crate::images::{
    self, Bound, Error, Format, Plan, Planned, Source, Wish, limits::SOURCE_BYTES_MAX,
};
use crate::limits::{
    IMAGE_FAILURE_KEPT, IMAGE_HEADERS_REMEMBERED, IMAGE_JOBS_RETRIED_MAX, IMAGE_WAIT,
    VARIANTS_SWEEP_WAIT,
};

/// The variants of all pictures. Cheap to clone.
#[derive(Clone)]
pub struct Variants(Arc<Inner>);

struct Inner {
    store: Store,
    clock: Arc<dyn Clock>,
    workshop: Workshop,
    shelf: Shelf,
    headers: Remembered<u64, Header>,
    /// Jobs that failed by the file's fault, and until when that is believed.
    failures: Remembered<(u64, String), (VariantError, u64)>,
    readings: Flights<u64, Result<Header, VariantError>>,
    makings: Flights<(u64, String), Result<Shown, VariantError>>,
}

/// What the head of a file says: what kind of picture it is, that it is none, or why it cannot be read.
type Header = Result<Option<Source>, Error>;

/// What is shown for a wish.
#[derive(Clone, Debug)]
pub enum Shown {
    /// The file as it is stored: it is no picture that is worked on, or just what was wished for.
    AsStored,
    /// The file as it is stored: making what was wished for would be over this bound.
    Skipped(Bound),
    /// A variant that is kept.
    Kept(Object),
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
        let threads = std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
        let workshop = Workshop::start(threads, memory_bytes, IMAGE_WAIT)
            .map_err(|error| format!("cannot start threads for pictures: {error}"))?;
        let shelf = Shelf::new(store.clone(), kept_bytes_max).map_err(|error| error.to_string())?;
        Ok(Self(Arc::new(Inner {
            store,
            clock,
            workshop,
            shelf,
            headers: Remembered::new(IMAGE_HEADERS_REMEMBERED),
            failures: Remembered::new(IMAGE_HEADERS_REMEMBERED),
            readings: Flights::new(),
            makings: Flights::new(),
        })))
    }

    /// What is shown of a file for a wish.
    pub async fn show(&self, parent: &Object, wish: &Wish) -> Result<Shown, VariantError> {
        let source = match self.header(parent).await? {
            Ok(Some(source)) => source,
            Ok(None) => return Ok(Shown::AsStored),
            Err(error) => return told(error),
        };
        let plan = match images::plan(&source, wish) {
            Ok(Planned::Made(plan)) => plan,
            Ok(Planned::AsStored) => return Ok(Shown::AsStored),
            Err(error) => return told(error),
        };
        let name = plan.to_string();
        if let Some(variant) = self.0.shelf.get(parent, &name)? {
            return Ok(Shown::Kept(variant));
        }
        let key = (parent.lsn(), name);
        if let Some((failure, until_ms)) = self.0.failures.get(&key)
            && self.0.clock.unix_ms() < until_ms
        {
            return Err(failure);
        }
        for _ in 0..IMAGE_JOBS_RETRIED_MAX {
            let job = |interest| self.clone().make(parent.clone(), source, plan, interest);
            match self.0.makings.join(key.clone(), job).await {
                // Whoever waited before went away just when this request came.
                Some(Err(VariantError::GivenUp)) => {}
                Some(done) => return done,
                None => return Err(VariantError::Failed("a job panicked".to_owned())),
            }
        }
        Err(VariantError::Busy)
    }

    /// Does other work on pictures where all of it is done: on the same threads, within the same bounds.
    pub async fn work<T: Send + 'static>(
        &self,
        cost: Cost,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Undone> {
        self.0.workshop.run(cost, work).await
    }

    /// Looks what is kept, then removes now and then what has to go. Ends with the task.
    pub async fn keep_tidy(self) {
        let variants = self.clone();
        if let Err(error) = blocking(move || variants.find()).await {
            tracing::warn!(%error, "cannot look which variants of pictures are kept");
        }
        loop {
            let variants = self.clone();
            if let Err(error) = blocking(move || variants.sweep()).await {
                tracing::warn!(%error, "cannot remove variants of pictures");
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
    async fn header(&self, parent: &Object) -> Result<Header, VariantError> {
        let version = parent.lsn();
        if let Some(known) = self.0.headers.get(&version) {
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
                    let bytes = read_whole(&store, &parent)?;
                    let read = |format| images::read_source(format, &bytes).map(Some);
                    Ok(Format::of(&bytes).map_or(Ok(None), read))
                });
                let header: Header = read.await.map_err(undone)?.map_err(VariantError::Store)?;
                inner.headers.put(version, header.clone());
                Ok(header)
            }
        };
        let panicked = || Err(VariantError::Failed("reading a header panicked".to_owned()));
        self.0.readings.join(version, job).await.unwrap_or_else(panicked)
    }

    async fn make(
        self,
        parent: Object,
        source: Source,
        plan: Plan,
        interest: Interest<Result<Shown, VariantError>>,
    ) -> Result<Shown, VariantError> {
        let inner = self.0;
        let name = plan.to_string();
        let cost =
            Cost { ms: plan.cost_ms(&source), bytes: parent.bytes() + plan.memory_bytes(&source) };
        let (store, stored) = (inner.store.clone(), parent.clone());
        let rendered = inner.workshop.run(cost, move || {
            if interest.is_gone() {
                return Err(VariantError::GivenUp);
            }
            let bytes = read_whole(&store, &stored)?;
            match images::render(&bytes, &source, &plan, &|| interest.is_gone()) {
                Ok(rendered) => Ok(Ok(Bytes::from(rendered))),
                Err(Error::TooLarge(bound)) => Ok(Err(bound)),
                Err(error) => Err(error.into()),
            }
        });
        let rendered = match rendered.await {
            Ok(rendered) => rendered,
            // It would panic again.
            Err(Undone::Panicked) => {
                Err(VariantError::Undecodable("its decoder failed".to_owned()))
            }
            Err(Undone::Busy) => Err(VariantError::Busy),
        };
        let bytes = match rendered {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(bound)) => return Ok(Shown::Skipped(bound)),
            Err(failure) => {
                if let VariantError::Undecodable(_) = failure {
                    let until_ms = inner.clock.unix_ms() + IMAGE_FAILURE_KEPT.as_millis() as u64;
                    inner.failures.put((parent.lsn(), name), (failure.clone(), until_ms));
                }
                return Err(failure);
            }
        };
        let content_type = plan.format.content_type();
        match inner.shelf.put(&parent, &name, content_type, bytes.clone()).await {
            Ok(Some(variant)) => return Ok(Shown::Kept(variant)),
            Ok(None) => {}
            // A store that is full or read-only goes on showing pictures.
            Err(error) => tracing::debug!(%error, "a variant of a picture is not kept"),
        }
        let etag = Etag::of_hash(blake3::hash(&bytes).as_bytes());
        Ok(Shown::Made(Made { bytes, etag, format: plan.format }))
    }
}

fn read_whole(store: &Store, object: &Object) -> engine::Result<Vec<u8>> {
    let body = store.body(object)?;
    let mut bytes = Vec::with_capacity(usize::try_from(object.bytes()).unwrap_or(0));
    while (bytes.len() as u64) < object.bytes() {
        let at = bytes.len() as u64;
        let end = (at + engine::limits::READ_BYTES_MAX as u64).min(object.bytes());
        bytes.extend_from_slice(&body.read(at..end)?);
    }
    Ok(bytes)
}

fn told(error: Error) -> Result<Shown, VariantError> {
    match error {
        Error::TooLarge(bound) => Ok(Shown::Skipped(bound)),
        error => Err(error.into()),
    }
}

fn undone(undone: Undone) -> VariantError {
    match undone {
        Undone::Busy => VariantError::Busy,
        Undone::Panicked => VariantError::Undecodable("its decoder failed".to_owned()),
    }
}

impl From<Error> for VariantError {
    fn from(error: Error) -> Self {
        match error {
            Error::Undecodable(why) => Self::Undecodable(why),
            Error::Cancelled => Self::GivenUp,
            error @ (Error::TooLarge(_) | Error::Failed(_)) => Self::Failed(error.to_string()),
        }
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
            Self::Undecodable(why) => write!(f, "the picture cannot be decoded: {why}"),
            Self::Busy => write!(f, "too many pictures wait to be made"),
            Self::Store(error) => write!(f, "{error}"),
            Self::Failed(why) => write!(f, "{why}"),
            Self::GivenUp => write!(f, "nobody waited for it"),
        }
    }
}

impl std::error::Error for VariantError {}
