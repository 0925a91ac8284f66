//! Files on their way from other machines: some at once, each told in pieces, in the order in which they were begun.
//!
//! A file comes ahead of its turn as far as its channel has room. What breaks off, and what is answered with an error
//! that may pass, is asked for again, each time after a longer rest.
//! Promises: memory is bounded by the files that are on their way; each file ends with a word of what became of it; one
//! that is dropped is let go. Never here: what is done with the files, and which are wanted.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, LAST_MODIFIED};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout};

use super::work::Work;
use crate::destination::Destination;
use crate::limits;
use crate::outbound::{FetchError, Outbound, RetryAfter};

/// What a file is, as its machine says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) bytes: Option<u64>,
    pub(super) modified_ms: Option<u64>,
    pub(super) content_type: Option<String>,
}

/// Whether a file is wanted, once its head is known.
pub(super) type Look = Box<dyn Fn(&Head) -> Need + Send + Sync>;

/// What there is to do for a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Need {
    Fetch,
    /// It is there already.
    Unchanged,
    /// Other content is there, and stays.
    Skip,
    /// It cannot be told: a sentence.
    Refuse(String),
}

/// A word of a file that is on its way.
#[derive(Debug)]
pub(super) enum Piece {
    /// It begins; where it began before, it begins anew.
    Head(Head),
    Bytes(Bytes),
    End,
    /// It is not fetched.
    NotNeeded(Need),
    /// It cannot be fetched: a sentence.
    Failed(String),
}

/// A file where it lies.
pub(super) enum Remote {
    Address { outbound: Outbound, address: Destination },
}

type RemoteBody = UnsyncBoxBody<Bytes, String>;

/// Why a file did not come.
struct Fault {
    why: String,
    /// Whether it may come later, and how long the other side wants to be left alone.
    passes: bool,
    rest: Duration,
}

/// What fetches.
pub(super) struct Fetches {
    runtime: Option<Runtime>,
}

/// A file that was begun.
pub(super) struct Arriving {
    pieces: mpsc::Receiver<Piece>,
    task: AbortHandle,
}

impl Fetches {
    pub(super) fn new() -> std::io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(limits::IMPORT_FETCH_THREADS)
            .thread_name("import")
            .enable_all()
            .build()?;
        Ok(Self { runtime: Some(runtime) })
    }

    /// Begins to fetch a file.
    pub(super) fn begin(&self, remote: Remote, look: Look) -> Option<Arriving> {
        let (tell, pieces) = mpsc::channel(limits::IMPORT_PIECES_AHEAD_MAX);
        let task = self.runtime.as_ref()?.spawn(fetch(remote, look, tell)).abort_handle();
        Some(Arriving { pieces, task })
    }

    /// The next word of a file, waited for while somebody is asked whether to go on.
    pub(super) fn next(&self, file: &mut Arriving, work: &mut Work<'_>) -> engine::Result<Piece> {
        let lost = || Piece::Failed("the work on it broke off".to_owned());
        let piece = self.wait_for(Box::pin(file.pieces.recv()), work)?;
        Ok(piece.flatten().unwrap_or_else(lost))
    }

    /// Waits for something, and asks meanwhile whether to go on. None only without a runtime.
    pub(super) fn wait_for<T>(
        &self,
        mut coming: Pin<Box<dyn Future<Output = T> + Send + '_>>,
        work: &mut Work<'_>,
    ) -> engine::Result<Option<T>> {
        let Some(runtime) = &self.runtime else { return Ok(None) };
        loop {
            let come = async { timeout(limits::IMPORT_DRAIN_LOOK, &mut coming).await.ok() };
            match runtime.block_on(come) {
                Some(come) => return Ok(Some(come)),
                None => work.tell()?,
            }
        }
    }
}

impl Drop for Fetches {
    fn drop(&mut self) {
        // A name that is being looked up is not waited for.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Fetches a file, as often as it takes and may.
async fn fetch(remote: Remote, look: Look, tell: mpsc::Sender<Piece>) {
    let mut rest = limits::IMPORT_FIRST_REST;
    let mut tries = 1;
    let last = loop {
        let fault = match fetch_once(&remote, &look, &tell).await {
            Ok(last) => break last,
            Err(fault) => fault,
        };
        if !fault.passes {
            break Piece::Failed(fault.why);
        }
        if tries == limits::IMPORT_TRIES_MAX {
            break Piece::Failed(format!("{}; tried {tries} times", fault.why));
        }
        sleep(rest.max(fault.rest).min(limits::IMPORT_LONGEST_REST)).await;
        tries += 1;
        rest *= 2;
    };
    // Where nobody listens, nobody wants it.
    let _ = tell.send(last).await;
}

/// Fetches a file; the last word of it.
async fn fetch_once(
    remote: &Remote,
    look: &Look,
    tell: &mpsc::Sender<Piece>,
) -> Result<Piece, Fault> {
    let (head, mut body) = remote.get().await?;
    match look(&head) {
        Need::Fetch => {}
        other => return Ok(Piece::NotNeeded(other)),
    }
    if tell.send(Piece::Head(head)).await.is_err() {
        return Ok(Piece::End);
    }
    let too_slow = || Fault::passing("it takes too long".to_owned());
    // Only the time that the other side takes counts.
    let mut left = limits::IMPORT_FILE_WAIT;
    loop {
        let asked = Instant::now();
        let frame = timeout(left.min(limits::IMPORT_ANSWER_WAIT), body.frame()).await;
        left = left.saturating_sub(asked.elapsed());
        match frame.map_err(|_| too_slow())? {
            None => return Ok(Piece::End),
            Some(Err(why)) => return Err(Fault::passing(why)),
            Some(Ok(frame)) => {
                let Ok(bytes) = frame.into_data() else { continue };
                if tell.send(Piece::Bytes(bytes)).await.is_err() {
                    return Ok(Piece::End);
                }
            }
        }
    }
}

impl Remote {
    async fn get(&self) -> Result<(Head, RemoteBody), Fault> {
        match self {
            Self::Address { outbound, address } => {
                let fetched = outbound.fetch(address).await?;
                let (headers, body) = fetched.into_parts();
                let body = body.map_err(|why| format!("the body breaks off: {why}"));
                Ok((Head::of(&headers), body.boxed_unsync()))
            }
        }
    }
}

impl Head {
    fn of(headers: &HeaderMap) -> Self {
        let text = |name| headers.get(name).and_then(|it| it.to_str().ok());
        let time = text(LAST_MODIFIED).and_then(|it| httpdate::parse_http_date(it).ok());
        let since = time.and_then(|it| it.duration_since(std::time::UNIX_EPOCH).ok());
        Self {
            bytes: text(CONTENT_LENGTH).and_then(|it| it.parse().ok()),
            modified_ms: since.and_then(|it| u64::try_from(it.as_millis()).ok()),
            content_type: text(CONTENT_TYPE).map(str::to_owned),
        }
    }
}

impl Fault {
    fn passing(why: String) -> Self {
        Self { why, passes: true, rest: Duration::ZERO }
    }
}

impl From<FetchError> for Fault {
    fn from(error: FetchError) -> Self {
        let rest = match error.retry_after() {
            Some(RetryAfter::Wait(rest)) => rest,
            // Whoever names a moment gets the longest rest, which costs no look at a clock.
            Some(RetryAfter::Until(_)) => limits::IMPORT_LONGEST_REST,
            None => Duration::ZERO,
        };
        Self { why: error.to_string(), passes: error.is_passing(), rest }
    }
}
