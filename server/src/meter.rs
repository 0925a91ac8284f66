//! Which bucket a request counts for, and the bytes of bodies on their way.
//!
//! Promises: a byte is counted when its piece goes on, in whichever direction, so of what is cut off only what went;
//! what came before it was known which bucket is meant is not lost. Never here: what is counted, which `traffic` says.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};

use crate::measures::Shard;
use crate::traffic::Traffic;

/// A request that is not answered yet, as an extension of it. Cheap to clone.
#[derive(Clone)]
pub struct Meter(Arc<Inner>);

struct Inner {
    request_id: String,
    traffic: OnceLock<Arc<Traffic>>,
    /// What is counted of all requests together.
    shard: Arc<Shard>,
    /// Bytes that came before the bucket was known.
    early_bytes: AtomicU64,
}

/// The body of an answer: what goes out of it counts.
pub type Metered = Counted<Outflow>;

/// What the body of an answer counts for: a bucket, and all requests together.
pub struct Outflow {
    pub traffic: Arc<Traffic>,
    pub shard: Arc<Shard>,
}

/// A body of which each piece is counted when it goes on.
pub struct Counted<C> {
    body: Body,
    counter: C,
}

/// What pieces are counted for.
pub trait Counter: Unpin {
    /// A piece of so many bytes goes on.
    fn note(&self, bytes: usize);
}

/// Of an answer.
impl Counter for Outflow {
    fn note(&self, bytes: usize) {
        self.traffic.note_bytes_out(bytes);
        self.shard.note_bytes_out(bytes);
    }
}

/// Of a request.
impl Counter for Meter {
    fn note(&self, bytes: usize) {
        self.0.shard.note_bytes_in(bytes);
        match self.0.traffic.get() {
            Some(traffic) => traffic.note_bytes_in(bytes),
            None => {
                self.0.early_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
            }
        }
    }
}

impl Meter {
    /// Of the request of this id, for the bucket that its address names, if it does.
    pub fn new(request_id: &str, traffic: Option<&Arc<Traffic>>, shard: &Arc<Shard>) -> Self {
        let traffic = traffic.map_or_else(OnceLock::new, |it| OnceLock::from(it.clone()));
        let (request_id, shard) = (request_id.to_owned(), shard.clone());
        Self(Arc::new(Inner { request_id, traffic, shard, early_bytes: AtomicU64::new(0) }))
    }

    /// The id of the request.
    pub fn request_id(&self) -> &str {
        &self.0.request_id
    }

    /// The request is about this bucket, unless it is known to be about another one.
    pub fn count_for(&self, traffic: &Arc<Traffic>, now_ms: u64) {
        self.0.traffic.get_or_init(|| traffic.clone()).turn_to(now_ms);
        self.pass_on();
    }

    /// Counts what comes in.
    pub fn incoming(&self, body: Body) -> Body {
        if body.is_end_stream() {
            return body;
        }
        Body::new(Counted::new(body, self.clone()))
    }

    /// What the request counts for: the bucket that it turned out to be about, else this.
    pub fn end(&self, nobody: &Arc<Traffic>) -> Arc<Traffic> {
        let traffic = self.0.traffic.get_or_init(|| nobody.clone()).clone();
        self.pass_on();
        traffic
    }

    fn pass_on(&self) {
        let early = self.0.early_bytes.swap(0, Ordering::Relaxed);
        if let Some(traffic) = self.0.traffic.get() {
            traffic.note_bytes_in(usize::try_from(early).unwrap_or(usize::MAX));
        }
    }
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Meter").field(&self.0.request_id).finish()
    }
}

impl<C> Counted<C> {
    pub fn new(body: Body, counter: C) -> Self {
        Self { body, counter }
    }
}

impl<C: Counter> http_body::Body for Counted<C> {
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
            self.counter.note(bytes.len());
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
