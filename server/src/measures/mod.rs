//! What the server measures of itself while it works, for whoever watches over it.
//!
//! ```text
//! operation    what a request is, as far as it is counted apart
//! refusal      why a request was refused, the same
//! ```
//!
//! Promises: whoever counts adds to a few numbers, and takes neither a lock nor memory; what is counted with every
//! request is counted near its thread, in one of several places; there are as many numbers as there are names in this
//! folder, whatever is sent. Nothing of it survives a restart. Never here: how it is told.

mod operation;
mod refusal;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use engine::{Count, Histogram, HistogramReading};
use http::StatusCode;

pub use self::operation::Operation;
pub use self::refusal::{AuthFailure, Limited};
use crate::limits::MEASURE_SHARDS_MAX;

/// Where connections come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entrance {
    Public,
    Premium,
    Admin,
}

impl Entrance {
    pub const ALL: [Self; 3] = [Self::Public, Self::Premium, Self::Admin];

    pub fn name(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Premium => "premium",
            Self::Admin => "admin",
        }
    }
}

/// Everything that is measured.
#[derive(Debug)]
pub struct Measures {
    shards: Box<[Arc<Shard>]>,
    connections: [Arc<ConnectionCounts>; Entrance::ALL.len()],
    limited: [Count; Limited::ALL.len()],
    auth_failures: [Count; AuthFailure::ALL.len()],
    uploads: Going,
    /// Events that were taken by webhooks,
    pub webhooks_delivered: Count,
    /// that were not, this time,
    pub webhooks_failed: Count,
    /// and that were given up.
    pub webhooks_given_up: Count,
    /// The certificate with which TLS is spoken.
    pub certificate: Arc<CertificateMeasures>,
    /// Jobs that ended, by what they were and how they ended.
    jobs_ended: [[Count; JobOutcome::ALL.len()]; JobKind::ALL.len()],
    /// When it began. Milliseconds since 1970.
    pub started_ms: u64,
}

/// What is counted with every request.
#[derive(Debug)]
pub struct Shard {
    operations: [Answers; Operation::ALL.len()],
    bytes_in: Count,
    bytes_out: Count,
}

#[derive(Debug)]
struct Answers {
    /// By the first digit of the status.
    classes: [Count; CLASSES.len()],
    took_us: Histogram,
}

/// The connections of an entrance.
#[derive(Debug, Default)]
pub struct ConnectionCounts {
    open: Going,
    /// That were let in.
    pub accepted: Count,
    /// That were ended at once, as their address had its share.
    pub refused: Count,
}

/// The certificate with which TLS is spoken.
#[derive(Debug, Default)]
pub struct CertificateMeasures {
    /// Milliseconds since 1970; 0 while there is none, or its end is not known.
    end_ms: AtomicU64,
    /// Times that none came from the authority that was asked for one.
    pub failures: Count,
}

/// How many of something go on at this moment.
#[derive(Debug, Default)]
struct Going(AtomicU64);

/// One that goes on, until it is dropped.
#[derive(Debug)]
pub struct Ongoing<'a>(&'a Going);

/// A connection that is open, until it is dropped.
#[derive(Debug)]
pub struct OpenConnection(Arc<ConnectionCounts>);

/// What was measured of requests of one operation.
#[derive(Clone, Debug)]
pub struct AnswersReading {
    pub operation: Operation,
    /// As in [`CLASSES`].
    pub classes: [u64; CLASSES.len()],
    /// From the request's head to the answer's, in microseconds.
    pub took_us: HistogramReading,
}

/// What statuses are counted as.
pub const CLASSES: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];

const TOOK_US: &[u64] = &[
    250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 5_000_000, 10_000_000, 30_000_000, 60_000_000,
];

macro_rules! names {
    ($(#[doc = $about:literal])* $kind:ident { $($variant:ident = $name:literal),+ $(,)? }) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $kind {
            $($variant),+
        }

        impl $kind {
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }

            /// The one of this name.
            pub fn named(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}
use names;

names! {
    /// What kind of job it is, by the names that jobs have in the API.
    JobKind {
        DeleteFolder = "deleteFolder",
        EmptyBucket = "emptyBucket",
        MoveFolder = "moveFolder",
        UndeleteFolder = "undeleteFolder",
        ImportUrls = "importUrls",
        Compact = "compact",
        Scrub = "scrub",
    }
}

names! {
    /// How a job ended.
    JobOutcome {
        Done = "done",
        Failed = "failed",
        Cancelled = "cancelled",
    }
}

impl CertificateMeasures {
    /// From now on this one is used, which ends then.
    pub fn note_end(&self, end_ms: Option<u64>) {
        self.end_ms.store(end_ms.unwrap_or(0), Ordering::Relaxed);
    }

    /// When the one that is used ends, if there is one.
    pub fn end_ms(&self) -> Option<u64> {
        Some(self.end_ms.load(Ordering::Relaxed)).filter(|end_ms| *end_ms > 0)
    }
}

impl Measures {
    pub fn new(processors: usize, started_ms: u64) -> Self {
        let shards = processors.next_power_of_two().min(MEASURE_SHARDS_MAX);
        Self {
            shards: (0..shards).map(|_| Arc::default()).collect(),
            connections: Default::default(),
            limited: Default::default(),
            auth_failures: Default::default(),
            uploads: Going::default(),
            webhooks_delivered: Count::default(),
            webhooks_failed: Count::default(),
            webhooks_given_up: Count::default(),
            certificate: Arc::default(),
            jobs_ended: Default::default(),
            started_ms,
        }
    }

    /// Where this thread counts.
    pub fn here(&self) -> &Arc<Shard> {
        &self.shards[seat() % self.shards.len()]
    }

    /// The connections of an entrance.
    pub fn connections(&self, entrance: Entrance) -> &Arc<ConnectionCounts> {
        &self.connections[entrance as usize]
    }

    /// A request was refused as one too many.
    pub fn note_limited(&self, why: Limited) {
        self.limited[why as usize].add(1);
    }

    pub fn limited(&self, why: Limited) -> u64 {
        self.limited[why as usize].get()
    }

    /// A request was refused for who sent it.
    pub fn note_auth_failure(&self, kind: AuthFailure) {
        self.auth_failures[kind as usize].add(1);
    }

    pub fn auth_failures(&self, kind: AuthFailure) -> u64 {
        self.auth_failures[kind as usize].get()
    }

    /// An upload begins; it ends when this is dropped.
    pub fn begin_upload(&self) -> Ongoing<'_> {
        self.uploads.begin();
        Ongoing(&self.uploads)
    }

    /// Uploads that go on.
    pub fn uploads(&self) -> u64 {
        self.uploads.count()
    }

    /// A job ended.
    pub fn note_job_end(&self, kind: JobKind, outcome: JobOutcome) {
        self.jobs_ended[kind as usize][outcome as usize].add(1);
    }

    pub fn jobs_ended(&self, kind: JobKind, outcome: JobOutcome) -> u64 {
        self.jobs_ended[kind as usize][outcome as usize].get()
    }

    /// Bytes of bodies that came in, and that went out.
    pub fn bytes(&self) -> (u64, u64) {
        let sum = |of: fn(&Shard) -> &Count| self.shards.iter().map(|shard| of(shard).get()).sum();
        (sum(|shard| &shard.bytes_in), sum(|shard| &shard.bytes_out))
    }

    /// What was answered so far.
    pub fn answers(&self, operation: Operation) -> AnswersReading {
        let mut all = self.shards.iter().map(|shard| &shard.operations[operation as usize]);
        let mut reading = AnswersReading {
            operation,
            classes: [0; CLASSES.len()],
            took_us: Histogram::new(TOOK_US).read(),
        };
        for answers in &mut all {
            for (sum, count) in reading.classes.iter_mut().zip(&answers.classes) {
                *sum += count.get();
            }
            reading.took_us = reading.took_us.and(&answers.took_us.read());
        }
        reading
    }
}

impl Shard {
    /// A request was answered, and it took so long until it was known how.
    pub fn answered(&self, operation: Operation, status: StatusCode, took_us: u64) {
        let answers = &self.operations[operation as usize];
        // An answer has none of 1xx, which are no answers yet.
        let class = usize::from(status.as_u16() / 100).saturating_sub(2);
        if let Some(count) = answers.classes.get(class) {
            count.add(1);
        }
        answers.took_us.note(took_us);
    }

    /// A piece of a request has come.
    pub fn note_bytes_in(&self, bytes: usize) {
        self.bytes_in.add(bytes as u64);
    }

    /// A piece of an answer goes out.
    pub fn note_bytes_out(&self, bytes: usize) {
        self.bytes_out.add(bytes as u64);
    }
}

impl Default for Shard {
    fn default() -> Self {
        let answers = || Answers { classes: Default::default(), took_us: Histogram::new(TOOK_US) };
        Self {
            operations: std::array::from_fn(|_| answers()),
            bytes_in: Count::default(),
            bytes_out: Count::default(),
        }
    }
}

impl ConnectionCounts {
    /// A connection is let in; it is open until this is dropped.
    pub fn let_in(self: &Arc<Self>) -> OpenConnection {
        self.accepted.add(1);
        self.open.begin();
        OpenConnection(self.clone())
    }

    /// Connections that are open.
    pub fn open(&self) -> u64 {
        self.open.count()
    }
}

impl Going {
    fn begin(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn end(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Ongoing<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.open.end();
    }
}

/// The number of this thread among those that count.
fn seat() -> usize {
    static SEATS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static SEAT: Cell<Option<usize>> = const { Cell::new(None) };
    }
    SEAT.with(|seat| {
        seat.get().unwrap_or_else(|| {
            let taken = SEATS.fetch_add(1, Ordering::Relaxed);
            seat.set(Some(taken));
            taken
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_count_apart_is_told_together() {
        let measures = Measures::new(3, 0);
        assert_eq!(measures.shards.len(), 4);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let shard = measures.here();
                    for status in [200, 206, 304, 404, 429, 500] {
                        let status = StatusCode::from_u16(status).unwrap();
                        shard.answered(Operation::Deliver, status, 300);
                    }
                    shard.note_bytes_in(3);
                    shard.note_bytes_out(5);
                });
            }
        });
        let answers = measures.answers(Operation::Deliver);
        assert_eq!(answers.classes, [16, 8, 16, 8]);
        assert_eq!((answers.took_us.count(), answers.took_us.sum), (48, 48 * 300));
        assert_eq!(measures.bytes(), (24, 40));
        assert_eq!(measures.answers(Operation::Upload).classes, [0; 4]);
    }

    #[test]
    fn what_goes_on_ends_however_it_ends() {
        let measures = Measures::new(1, 0);
        let upload = measures.begin_upload();
        let connection = measures.connections(Entrance::Admin).let_in();
        let open = || measures.connections(Entrance::Admin).open();
        assert_eq!((measures.uploads(), open()), (1, 1));
        drop((upload, connection));
        assert_eq!((measures.uploads(), open()), (0, 0));
        assert_eq!(measures.connections(Entrance::Admin).accepted.get(), 1);
        assert_eq!(measures.connections(Entrance::Public).accepted.get(), 0);
    }

    #[test]
    fn every_place_is_that_of_its_name() {
        for (at, operation) in Operation::ALL.into_iter().enumerate() {
            assert_eq!(operation as usize, at);
        }
        for (at, why) in Limited::ALL.into_iter().enumerate() {
            assert_eq!((why as usize, Limited::named(why.name())), (at, Some(why)));
        }
        for (at, kind) in AuthFailure::ALL.into_iter().enumerate() {
            assert_eq!((kind as usize, AuthFailure::named(kind.name())), (at, Some(kind)));
        }
    }
}
