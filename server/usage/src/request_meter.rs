//! Request accounting: the bucket that a request counts for, and the bytes of its bodies.
//!
//! Guarantees: a byte is counted when its frame is passed on, in either direction, so a transfer that is cut off counts
//! only what was transferred; bytes that precede the identification of the bucket are not lost. Non-goals: the counters
//! (`bucket_counters`).

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};

use crate::bucket_counters::BucketCounters;
use crate::registry::CounterShard;

/// Accounting of a request in flight. Cheap to clone.
#[derive(Clone)]
pub struct RequestMeter(Arc<Inner>);

struct Inner {
    traffic: OnceLock<Arc<BucketCounters>>,
    /// Server-wide counters.
    shard: Arc<CounterShard>,
    /// Bytes that arrived before the bucket was known.
    early_bytes: AtomicU64,
}

/// Response body that counts the bytes sent.
pub type MeteredBody = CountingBody<ResponseCounter>;

/// Counters of a response body: those of a bucket, and the server-wide ones.
pub struct ResponseCounter {
    pub traffic: Arc<BucketCounters>,
    pub shard: Arc<CounterShard>,
}

/// Body that counts each frame when it is passed on.
pub struct CountingBody<C> {
    body: Body,
    counter: C,
}

/// Counter of the frames of a body.
pub trait ByteCounter: Unpin {
    /// Counts a frame.
    fn count(&self, bytes: usize);
}

/// Counts response bytes.
impl ByteCounter for ResponseCounter {
    fn count(&self, bytes: usize) {
        self.traffic.add_bytes_out(bytes);
        self.shard.add_bytes_out(bytes);
    }
}

/// Counts request bytes.
impl ByteCounter for RequestMeter {
    fn count(&self, bytes: usize) {
        self.0.shard.add_bytes_in(bytes);
        match self.0.traffic.get() {
            Some(traffic) => traffic.add_bytes_in(bytes),
            None => {
                self.0.early_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
            }
        }
    }
}

impl RequestMeter {
    /// Creates the accounting of a request for the bucket that its URL names, if any.
    pub fn new(traffic: Option<&Arc<BucketCounters>>, shard: &Arc<CounterShard>) -> Self {
        let traffic = traffic.map_or_else(OnceLock::new, |it| OnceLock::from(it.clone()));
        Self(Arc::new(Inner { traffic, shard: shard.clone(), early_bytes: AtomicU64::new(0) }))
    }

    /// Assigns the request to a bucket, unless it is already assigned to one.
    pub fn attribute_to(&self, traffic: &Arc<BucketCounters>, now_ms: u64) {
        self.0.traffic.get_or_init(|| traffic.clone()).advance_to(now_ms);
        self.flush_early_bytes();
    }

    /// Wraps a request body so that its bytes are counted.
    pub fn wrap_request_body(&self, body: Body) -> Body {
        if body.is_end_stream() {
            return body;
        }
        Body::new(CountingBody::new(body, self.clone()))
    }

    /// Returns the counters of the request: those of its bucket, or else `nobody`, which then also gets the early
    /// bytes.
    pub fn finish(&self, nobody: &Arc<BucketCounters>) -> Arc<BucketCounters> {
        let traffic = self.0.traffic.get_or_init(|| nobody.clone()).clone();
        self.flush_early_bytes();
        traffic
    }

    fn flush_early_bytes(&self) {
        let early = self.0.early_bytes.swap(0, Ordering::Relaxed);
        if let Some(traffic) = self.0.traffic.get() {
            traffic.add_bytes_in(usize::try_from(early).unwrap_or(usize::MAX));
        }
    }
}

impl<C> CountingBody<C> {
    pub fn new(body: Body, counter: C) -> Self {
        Self { body, counter }
    }
}

impl<C: ByteCounter> http_body::Body for CountingBody<C> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(bytes) = frame.data_ref()
        {
            self.counter.count(bytes.len());
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
