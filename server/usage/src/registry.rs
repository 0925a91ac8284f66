//! Metrics of a running server.
//!
//! Guarantees: counting adds to a few atomics, and takes no lock and no memory; counters of every request are sharded
//! by thread; the number of counters is fixed, whatever is requested. Nothing survives a restart. Non-goals: encoding.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use engine::metrics::{Counter, Histogram, HistogramSnapshot};
use http::StatusCode;

use crate::limits::MEASURE_SHARDS_MAX;
use crate::operation::Operation;
use crate::rejection::{AuthFailure, Limited};

/// Listener of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenerKind {
    Public,
    Premium,
    Admin,
}

impl ListenerKind {
    pub const ALL: [Self; 3] = [Self::Public, Self::Premium, Self::Admin];

    pub fn name(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Premium => "premium",
            Self::Admin => "admin",
        }
    }
}

/// Metrics of the server, except for those of [`JobCounters`].
#[derive(Debug)]
pub struct ServerCounters {
    shards: Box<[Arc<CounterShard>]>,
    connections: [Arc<ConnectionCounts>; ListenerKind::ALL.len()],
    limited: [Counter; Limited::ALL.len()],
    auth_failures: [Counter; AuthFailure::ALL.len()],
    uploads: InFlightGauge,
    /// TLS certificate in use.
    pub certificate: Arc<CertificateMetrics>,
    /// Start of the server, in milliseconds since 1970.
    pub started_ms: u64,
}

/// Metrics of jobs and webhooks.
#[derive(Debug, Default)]
pub struct JobCounters {
    /// Delivered webhook events.
    pub webhooks_delivered: Counter,
    /// Failed delivery attempts of webhook events.
    pub webhooks_failed: Counter,
    /// Webhook events that became dead letters.
    pub webhooks_given_up: Counter,
    /// Ended jobs, by kind and outcome.
    jobs_ended: [[Counter; JobOutcome::ALL.len()]; JobKind::ALL.len()],
}

/// Per-request counters, shared by some of the threads.
#[derive(Debug)]
pub struct CounterShard {
    operations: [OperationCounters; Operation::ALL.len()],
    bytes_in: Counter,
    bytes_out: Counter,
}

#[derive(Debug)]
struct OperationCounters {
    /// Responses by the first digit of the status.
    classes: [Counter; STATUS_CLASSES.len()],
    took_us: Histogram,
}

/// Connection counters of a listener.
#[derive(Debug, Default)]
pub struct ConnectionCounts {
    open: InFlightGauge,
    /// Accepted connections.
    pub accepted: Counter,
    /// Connections closed immediately, because of the limit per address.
    pub refused: Counter,
}

/// Metrics of the TLS certificate in use.
#[derive(Debug, Default)]
pub struct CertificateMetrics {
    /// Expiry in milliseconds since 1970; 0 without a certificate, or if its expiry is unknown.
    end_ms: AtomicU64,
    /// Failed certificate orders.
    pub failures: Counter,
}

/// Gauge of operations in progress.
#[derive(Debug, Default)]
struct InFlightGauge(AtomicU64);

/// Guard of an operation in progress.
#[derive(Debug)]
pub struct InFlightGuard<'a>(&'a InFlightGauge);

/// Guard of an open connection.
#[derive(Debug)]
pub struct OpenConnectionGuard(Arc<ConnectionCounts>);

/// Metrics of the requests of one operation.
#[derive(Clone, Debug)]
pub struct OperationSnapshot {
    pub operation: Operation,
    /// Counts by status class, as in [`STATUS_CLASSES`].
    pub classes: [u64; STATUS_CLASSES.len()],
    /// Time from the request head to the response head, in microseconds.
    pub took_us: HistogramSnapshot,
}

/// Status classes.
pub const STATUS_CLASSES: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];

const LATENCY_BUCKETS_US: &[u64] = &[
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

            /// Returns the variant with this name.
            pub fn named(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}
pub(crate) use names;

names! {
    /// Kind of a job, with the names of the API.
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
    /// Outcome of a job.
    JobOutcome {
        Done = "done",
        Failed = "failed",
        Cancelled = "cancelled",
    }
}

impl CertificateMetrics {
    /// Sets the expiry of the certificate in use.
    pub fn set_expiry(&self, end_ms: Option<u64>) {
        self.end_ms.store(end_ms.unwrap_or(0), Ordering::Relaxed);
    }

    /// Returns the expiry of the certificate in use, if known.
    pub fn expiry_ms(&self) -> Option<u64> {
        Some(self.end_ms.load(Ordering::Relaxed)).filter(|end_ms| *end_ms > 0)
    }
}

impl ServerCounters {
    pub fn new(processors: usize, started_ms: u64) -> Self {
        let shards = processors.next_power_of_two().min(MEASURE_SHARDS_MAX);
        Self {
            shards: (0..shards).map(|_| Arc::default()).collect(),
            connections: Default::default(),
            limited: Default::default(),
            auth_failures: Default::default(),
            uploads: InFlightGauge::default(),
            certificate: Arc::default(),
            started_ms,
        }
    }

    /// Returns the shard of this thread.
    pub fn local_shard(&self) -> &Arc<CounterShard> {
        &self.shards[shard_index() % self.shards.len()]
    }

    /// Returns the connection counters of a listener.
    pub fn connections(&self, entrance: ListenerKind) -> &Arc<ConnectionCounts> {
        &self.connections[entrance as usize]
    }

    /// Counts a request rejected by a rate limit.
    pub fn count_rate_limited(&self, why: Limited) {
        self.limited[why as usize].add(1);
    }

    pub fn limited(&self, why: Limited) -> u64 {
        self.limited[why as usize].get()
    }

    /// Counts a request rejected by authentication or authorization.
    pub fn count_auth_failure(&self, kind: AuthFailure) {
        self.auth_failures[kind as usize].add(1);
    }

    pub fn auth_failures(&self, kind: AuthFailure) -> u64 {
        self.auth_failures[kind as usize].get()
    }

    /// Counts an upload in progress, until the guard is dropped.
    pub fn track_upload(&self) -> InFlightGuard<'_> {
        self.uploads.begin();
        InFlightGuard(&self.uploads)
    }

    /// Returns the number of uploads in progress.
    pub fn uploads(&self) -> u64 {
        self.uploads.count()
    }

    /// Returns the received and sent bytes of bodies.
    pub fn bytes(&self) -> (u64, u64) {
        let sum = |of: fn(&CounterShard) -> &Counter| {
            self.shards.iter().map(|shard| of(shard).get()).sum()
        };
        (sum(|shard| &shard.bytes_in), sum(|shard| &shard.bytes_out))
    }

    /// Returns the metrics of an operation.
    pub fn operation_snapshot(&self, operation: Operation) -> OperationSnapshot {
        let mut all = self.shards.iter().map(|shard| &shard.operations[operation as usize]);
        let mut reading = OperationSnapshot {
            operation,
            classes: [0; STATUS_CLASSES.len()],
            took_us: Histogram::new(LATENCY_BUCKETS_US).read(),
        };
        for answers in &mut all {
            for (sum, count) in reading.classes.iter_mut().zip(&answers.classes) {
                *sum += count.get();
            }
            reading.took_us = reading.took_us.merge(&answers.took_us.read());
        }
        reading
    }
}

impl JobCounters {
    /// Counts an ended job.
    pub fn count_job_end(&self, kind: JobKind, outcome: JobOutcome) {
        self.jobs_ended[kind as usize][outcome as usize].add(1);
    }

    pub fn jobs_ended(&self, kind: JobKind, outcome: JobOutcome) -> u64 {
        self.jobs_ended[kind as usize][outcome as usize].get()
    }
}

impl CounterShard {
    /// Counts a response, and the time until its head.
    pub fn record_response(&self, operation: Operation, status: StatusCode, took_us: u64) {
        let answers = &self.operations[operation as usize];
        // A final response has no status 1xx.
        let class = usize::from(status.as_u16() / 100).saturating_sub(2);
        if let Some(count) = answers.classes.get(class) {
            count.add(1);
        }
        answers.took_us.observe(took_us);
    }

    /// Counts received bytes of a request body.
    pub fn add_bytes_in(&self, bytes: usize) {
        self.bytes_in.add(bytes as u64);
    }

    /// Counts sent bytes of a response body.
    pub fn add_bytes_out(&self, bytes: usize) {
        self.bytes_out.add(bytes as u64);
    }
}

impl Default for CounterShard {
    fn default() -> Self {
        let answers = || OperationCounters {
            classes: Default::default(),
            took_us: Histogram::new(LATENCY_BUCKETS_US),
        };
        Self {
            operations: std::array::from_fn(|_| answers()),
            bytes_in: Counter::default(),
            bytes_out: Counter::default(),
        }
    }
}

impl ConnectionCounts {
    /// Counts an accepted connection, which is open until the guard is dropped.
    pub fn track_connection(self: &Arc<Self>) -> OpenConnectionGuard {
        self.accepted.add(1);
        self.open.begin();
        OpenConnectionGuard(self.clone())
    }

    /// Returns the number of open connections.
    pub fn open(&self) -> u64 {
        self.open.count()
    }
}

impl InFlightGauge {
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

impl Drop for InFlightGuard<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Drop for OpenConnectionGuard {
    fn drop(&mut self) {
        self.0.open.end();
    }
}

/// Returns the counting number of this thread.
fn shard_index() -> usize {
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
    fn counter_shards_are_summed() {
        let measures = ServerCounters::new(3, 0);
        assert_eq!(measures.shards.len(), 4);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let shard = measures.local_shard();
                    for status in [200, 206, 304, 404, 429, 500] {
                        let status = StatusCode::from_u16(status).unwrap();
                        shard.record_response(Operation::Deliver, status, 300);
                    }
                    shard.add_bytes_in(3);
                    shard.add_bytes_out(5);
                });
            }
        });
        let answers = measures.operation_snapshot(Operation::Deliver);
        assert_eq!(answers.classes, [16, 8, 16, 8]);
        assert_eq!((answers.took_us.count(), answers.took_us.sum), (48, 48 * 300));
        assert_eq!(measures.bytes(), (24, 40));
        assert_eq!(measures.operation_snapshot(Operation::Upload).classes, [0; 4]);
    }

    #[test]
    fn in_flight_gauge_decrements_on_drop() {
        let measures = ServerCounters::new(1, 0);
        let upload = measures.track_upload();
        let connection = measures.connections(ListenerKind::Admin).track_connection();
        let open = || measures.connections(ListenerKind::Admin).open();
        assert_eq!((measures.uploads(), open()), (1, 1));
        drop((upload, connection));
        assert_eq!((measures.uploads(), open()), (0, 0));
        assert_eq!(measures.connections(ListenerKind::Admin).accepted.get(), 1);
        assert_eq!(measures.connections(ListenerKind::Public).accepted.get(), 0);
    }

    #[test]
    fn metric_index_matches_its_name() {
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
