//! Between the async server and the synchronous engine: waiting for it, and sending what it reads.
//!
//! Promises: no worker waits for the disk, nor verifies what is long; a body is sent in the engine's own slices, at
//! most one of them held at a time, and a long one gives way to others now and then; an error in the middle of a body
//! ends the connection, so that a client never takes a part for the whole.
//! Never here: which bytes are sent.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::num::NonZero;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::thread;

use axum::body::Body;
use bytes::Bytes;
use engine::{Batch, Committed, Object, Staged, Store, limits};
use http_body::{Frame, SizeHint};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::crew::{Courtesy, Crew};
use crate::traces::{carried, step};

/// Does work that waits for the disk, away from the async workers. A panic in it goes on in the caller.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    joined(spawn_blocking(work)).await
}

/// What work came to that was begun apart. A panic in it goes on in the caller.
pub async fn joined<T>(work: JoinHandle<T>) -> T {
    match work.await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Does work that must not stop in the middle, also when whoever waits for it goes away. A panic in it goes on in the
/// caller.
pub async fn to_its_end<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    joined(tokio::spawn(carried(work))).await
}

/// Commits a batch; what comes back is durable.
pub async fn commit(store: &Store, batch: Batch) -> engine::Result<Committed> {
    let (answer, answered) = oneshot::channel();
    store.submit(batch, move |result| {
        // Nobody listens any more when the client went away; the batch is done or not all the same.
        let _ = answer.send(result);
    });
    told(answered).await
}

/// What a batch came to that was submitted.
pub async fn told(
    answered: oneshot::Receiver<engine::Result<Committed>>,
) -> engine::Result<Committed> {
    step("store.commit", answered).await.unwrap_or(Err(engine::Error::Closed))
}

/// The body of an object, opened.
pub async fn open(store: &Store, object: &Object) -> engine::Result<engine::Body> {
    if let Some(body) = store.body_if_open(object)? {
        return Ok(body);
    }
    let (store, object) = (store.clone(), object.clone());
    blocking(move || store.body(&object)).await
}

/// Reads a body to its end into memory. Waits for the disk.
pub fn read_whole(body: &engine::Body) -> engine::Result<Vec<u8>> {
    read_start(body, body.bytes())
}

/// Reads the first bytes of a body, as many as there are, into memory. Waits for the disk.
pub fn read_start(body: &engine::Body, bytes: u64) -> engine::Result<Vec<u8>> {
    let bytes = bytes.min(body.bytes());
    let mut read = Vec::with_capacity(usize::try_from(bytes).unwrap_or(0));
    for range in stretches(bytes) {
        read.extend_from_slice(&body.read(range)?);
    }
    Ok(read)
}

/// Reads the first bytes of a body that is not stored yet, as many as there are, into memory. Waits for the disk.
pub fn read_staged(body: &Staged, bytes: u64) -> engine::Result<Vec<u8>> {
    let bytes = usize::try_from(bytes.min(body.bytes())).unwrap_or(usize::MAX);
    let mut read = Vec::with_capacity(bytes);
    let mut reader = body.reader()?;
    while read.len() < bytes {
        let Some(block) = reader.next_block()? else { break };
        read.extend_from_slice(&block[..block.len().min(bytes - read.len())]);
    }
    Ok(read)
}

/// So many bytes in stretches that the engine reads at once.
pub fn stretches(bytes: u64) -> impl Iterator<Item = Range<u64>> {
    let stretch = limits::READ_BYTES_MAX as u64;
    (0..bytes.div_ceil(stretch)).map(move |at| at * stretch..bytes.min((at + 1) * stretch))
}

/// A piece of an answer's body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Bytes of our own.
    Text(Bytes),
    /// Bytes of the object.
    Slice(Range<u64>),
}

/// Makes the body of an answer out of pieces of an object. The first slice is read before this returns: an object that
/// cannot be read at all is an error that can still be answered. What fits into one slice is sent as one.
pub fn body_of(
    object: engine::Body,
    pieces: Vec<Piece>,
    disk_reads: &DiskReads,
) -> impl Future<Output = engine::Result<Body>> {
    let mut sending = Sending::new(object, pieces, disk_reads.clone());
    let lead = sending.take_text();
    begin(sending, lead)
}

async fn begin(mut sending: Sending, lead: Bytes) -> engine::Result<Body> {
    let Some(first) = sending.next_frame().await else { return Ok(Body::from(lead)) };
    let first = if lead.is_empty() { first? } else { Bytes::from([&*lead, &*first?].concat()) };
    if sending.pieces.is_empty() {
        return Ok(Body::from(first));
    }
    sending.unsent_bytes += first.len() as u64;
    sending.reading = Reading::Done(first);
    Ok(Body::new(sending))
}

/// Makes the body of an answer out of pieces of what is in memory.
pub fn body_in_memory(whole: &Bytes, pieces: Vec<Piece>) -> Body {
    let slice = |range: Range<u64>| {
        let end = range.end.min(whole.len() as u64) as usize;
        whole.slice((range.start as usize).min(end)..end)
    };
    let mut parts = pieces.into_iter().map(|piece| match piece {
        Piece::Text(text) => text,
        Piece::Slice(range) => slice(range),
    });
    let first = parts.next().unwrap_or_default();
    let mut rest = parts.peekable();
    if rest.peek().is_none() {
        return Body::from(first);
    }
    let mut body = first.to_vec();
    rest.for_each(|part| body.extend_from_slice(&part));
    Body::from(body)
}

/// Threads that read bodies of answers from the disk.
///
/// What the disk has just filled is verified there, and touched for the first time, which costs more than to send it
/// (`benches/README.md`, cold_beside). Threads like the others would stand in the workers' way with it: a kernel that
/// takes the processor from nobody within a system call lets workers wait 50 ms beside them. At most one piece of each
/// connection waits here.
#[derive(Clone)]
pub struct DiskReads(Arc<Crew>);

impl DiskReads {
    /// Starts them.
    ///
    /// # Errors
    ///
    /// Those of starting a thread.
    pub fn start() -> io::Result<Self> {
        Crew::start("trug-read", DISK_READS_MAX, 0, Courtesy::Lowest).map(|it| Self(Arc::new(it)))
    }
}

/// How many of them there are: disks are as fast as they can be with fewer.
const DISK_READS_MAX: NonZero<usize> = NonZero::<usize>::MIN.saturating_add(15);

/// A body lets other connections have their turn when so much of it was sent.
const SENT_IN_A_TURN_BYTES: u64 = limits::READ_BYTES_MAX as u64;

struct Sending {
    object: engine::Body,
    disk_reads: DiskReads,
    pieces: VecDeque<Piece>,
    reading: Reading,
    unsent_bytes: u64,
    /// What was handed out since others had their turn.
    turn_bytes: u64,
}

enum Reading {
    Nothing,
    Running(oneshot::Receiver<thread::Result<engine::Result<Bytes>>>),
    Done(Bytes),
}

impl Sending {
    fn new(object: engine::Body, pieces: Vec<Piece>, disk_reads: DiskReads) -> Self {
        let bytes_of = |piece: &Piece| match piece {
            Piece::Text(text) => text.len() as u64,
            Piece::Slice(range) => range.end - range.start,
        };
        let unsent_bytes = pieces.iter().map(bytes_of).sum();
        let reading = Reading::Nothing;
        Self { object, disk_reads, pieces: pieces.into(), reading, unsent_bytes, turn_bytes: 0 }
    }

    /// The text that stands before the first slice.
    fn take_text(&mut self) -> Bytes {
        let Some(Piece::Text(text)) = self.pieces.pop_front_if(|it| matches!(it, Piece::Text(_)))
        else {
            return Bytes::new();
        };
        self.unsent_bytes -= text.len() as u64;
        text
    }

    async fn next_frame(&mut self) -> Option<engine::Result<Bytes>> {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<engine::Result<Bytes>>> {
        let read = match std::mem::replace(&mut self.reading, Reading::Nothing) {
            Reading::Done(bytes) => Ok(bytes),
            Reading::Running(running) => return self.poll_running(running, context),
            Reading::Nothing => match self.take_piece() {
                None => return Poll::Ready(None),
                Some(Piece::Text(text)) => Ok(text),
                Some(Piece::Slice(range)) => match self.object.read_if_resident(range.clone()) {
                    Ok(Some(bytes)) => Ok(bytes),
                    Ok(None) => {
                        let object = self.object.clone();
                        let running = self.disk_reads.0.begin(move || object.read(range));
                        return self.poll_running(running, context);
                    }
                    Err(error) => Err(error),
                },
            },
        };
        Poll::Ready(Some(self.sent(read)))
    }

    fn poll_running(
        &mut self,
        mut running: oneshot::Receiver<thread::Result<engine::Result<Bytes>>>,
        context: &mut Context<'_>,
    ) -> Poll<Option<engine::Result<Bytes>>> {
        match Pin::new(&mut running).poll(context) {
            Poll::Pending => {
                self.reading = Reading::Running(running);
                Poll::Pending
            }
            // A panic is told where it happens; the body breaks off.
            Poll::Ready(done) => {
                let read = done.ok().and_then(Result::ok).unwrap_or(Err(engine::Error::Closed));
                Poll::Ready(Some(self.sent(read)))
            }
        }
    }

    /// The next piece, no longer than the engine reads at once, cut where its blocks end.
    fn take_piece(&mut self) -> Option<Piece> {
        let read_max = limits::READ_BYTES_MAX as u64;
        match self.pieces.front_mut()? {
            Piece::Slice(range) if range.end > (range.start / read_max + 1) * read_max => {
                let start = range.start;
                range.start = (start / read_max + 1) * read_max;
                Some(Piece::Slice(start..range.start))
            }
            _ => self.pieces.pop_front(),
        }
    }

    fn sent(&mut self, read: engine::Result<Bytes>) -> engine::Result<Bytes> {
        match &read {
            Ok(bytes) => self.unsent_bytes = self.unsent_bytes.saturating_sub(bytes.len() as u64),
            Err(_) => self.pieces.clear(),
        }
        read
    }
}

impl http_body::Body for Sending {
    type Data = Bytes;
    type Error = engine::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, engine::Error>>> {
        if self.turn_bytes >= SENT_IN_A_TURN_BYTES && !self.is_end_stream() {
            self.turn_bytes = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let Some(read) = ready!(self.poll_next(context)) else { return Poll::Ready(None) };
        self.turn_bytes += read.as_ref().map_or(0, |bytes| bytes.len() as u64);
        if let Err(error) = &read {
            tracing::error!(%error, "read error while sending a body; connection aborted");
        }
        Poll::Ready(Some(read.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty() && matches!(self.reading, Reading::Nothing)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.unsent_bytes)
    }
}
