//! Concurrent downloads of an import: several files at a time, each as a sequence of pieces, in the order of their
//! start.
//!
//! A file is downloaded ahead of its turn as far as its channel has room. Interrupted downloads and transient errors
//! are retried, with increasing delays. Guarantees: memory is bounded by the concurrent downloads; each file ends with
//! a result; dropping a file cancels its download. Non-goals: processing and selection of the files.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use catalog::object_attributes::{S3Attributes, StoredAttributes};
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, LAST_MODIFIED};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use outbound::OutboundClient;
use protocol::destination::OutboundUrl;
use protocol::stored_headers::{StoredHeaders, sent};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};

use super::progress::ProgressReporter;
use super::retry::{DownloadFailure, Tries};
use super::s3_source::{Bucket, ListedObject};
use crate::archive::limits;

/// Metadata of a remote file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DownloadHead {
    pub(super) bytes: Option<u64>,
    pub(super) modified_ms: Option<u64>,
    pub(super) content_type: Option<String>,
    /// Object attributes in their stored form.
    pub(super) attributes: Option<Vec<u8>>,
}

/// Decision whether a file is needed, given its metadata.
pub(super) type HeadFilter = Box<dyn Fn(&DownloadHead) -> DownloadDecision + Send + Sync>;

/// Decision about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DownloadDecision {
    Fetch,
    /// The object exists with the same content.
    Unchanged,
    /// The object exists with other content, and is not replaced.
    Skip,
    /// The decision failed: the reason.
    Refuse(String),
}

/// Event of a download.
#[derive(Debug)]
pub(super) enum DownloadEvent {
    /// Start of the file; discards an earlier attempt.
    Head(DownloadHead),
    Bytes(Bytes),
    End,
    /// The file is not downloaded.
    Skipped(DownloadDecision),
    /// The download failed: the reason.
    Failed(String),
}

/// Location of a remote file.
pub(super) enum RemoteFile {
    Url { outbound: OutboundClient, address: OutboundUrl },
    Object { bucket: Bucket, listed: ListedObject },
}

type RemoteBody = UnsyncBoxBody<Bytes, String>;

/// Download runtime.
pub(super) struct Downloader {
    runtime: Option<Runtime>,
}

/// Download in progress.
pub(super) struct Download {
    pieces: mpsc::Receiver<DownloadEvent>,
    task: AbortHandle,
}

impl Downloader {
    pub(super) fn new() -> std::io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(limits::IMPORT_FETCH_THREADS)
            .thread_name("import")
            .enable_all()
            .build()?;
        Ok(Self { runtime: Some(runtime) })
    }

    /// Starts a download.
    pub(super) fn start(&self, remote: RemoteFile, look: HeadFilter) -> Option<Download> {
        let (tell, pieces) = mpsc::channel(limits::IMPORT_PREFETCH_CHUNKS_MAX);
        let task = self.runtime.as_ref()?.spawn(fetch(remote, look, tell)).abort_handle();
        Some(Download { pieces, task })
    }

    /// Waits for the next event of a download, while checking for cancellation.
    pub(super) fn next(
        &self,
        file: &mut Download,
        work: &mut ProgressReporter<'_>,
    ) -> engine::Result<DownloadEvent> {
        let lost = || DownloadEvent::Failed("the transfer was interrupted".to_owned());
        let piece = self.wait_for(Box::pin(file.pieces.recv()), work)?;
        Ok(piece.flatten().unwrap_or_else(lost))
    }

    /// Waits for a future, while checking for cancellation. `None` only without a runtime.
    pub(super) fn wait_for<T>(
        &self,
        mut coming: Pin<Box<dyn Future<Output = T> + Send + '_>>,
        work: &mut ProgressReporter<'_>,
    ) -> engine::Result<Option<T>> {
        let Some(runtime) = &self.runtime else { return Ok(None) };
        loop {
            let come =
                async { timeout(limits::IMPORT_DRAIN_POLL_INTERVAL, &mut coming).await.ok() };
            match runtime.block_on(come) {
                Some(come) => return Ok(Some(come)),
                None => work.check_cancelled()?,
            }
        }
    }
}

impl Drop for Downloader {
    fn drop(&mut self) {
        // Does not wait for pending name lookups.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Downloads a file, with retries.
async fn fetch(remote: RemoteFile, look: HeadFilter, tell: mpsc::Sender<DownloadEvent>) {
    let mut tries = Tries::begin();
    let last = loop {
        let fault = match fetch_once(&remote, &look, &tell).await {
            Ok(last) => break last,
            Err(fault) => fault,
        };
        if let Err(why) = tries.rest_after(fault).await {
            break DownloadEvent::Failed(why);
        }
    };
    // A dropped receiver has cancelled the download.
    let _ = tell.send(last).await;
}

/// Downloads a file once; returns the last event.
async fn fetch_once(
    remote: &RemoteFile,
    look: &HeadFilter,
    tell: &mpsc::Sender<DownloadEvent>,
) -> Result<DownloadEvent, DownloadFailure> {
    let (head, mut body) = remote.get().await?;
    match look(&head) {
        DownloadDecision::Fetch => {}
        other => return Ok(DownloadEvent::Skipped(other)),
    }
    let (expected, mut come) = (head.bytes, 0_u64);
    if tell.send(DownloadEvent::Head(head)).await.is_err() {
        return Ok(DownloadEvent::End);
    }
    let too_slow = || DownloadFailure::passing("timed out");
    // Counts only time spent waiting for the server.
    let mut left = limits::IMPORT_FILE_TIMEOUT;
    loop {
        let asked = Instant::now();
        let frame = timeout(left.min(outbound::limits::RESPONSE_HEAD_TIMEOUT), body.frame()).await;
        left = left.saturating_sub(asked.elapsed());
        match frame.map_err(|_| too_slow())? {
            None if expected.is_some_and(|bytes| bytes != come) => {
                return Err(DownloadFailure::passing(
                    "the body does not have the announced length",
                ));
            }
            None => return Ok(DownloadEvent::End),
            Some(Err(why)) => return Err(DownloadFailure::passing(why)),
            Some(Ok(frame)) => {
                let Ok(bytes) = frame.into_data() else { continue };
                come += bytes.len() as u64;
                if tell.send(DownloadEvent::Bytes(bytes)).await.is_err() {
                    return Ok(DownloadEvent::End);
                }
            }
        }
    }
}

impl RemoteFile {
    async fn get(&self) -> Result<(DownloadHead, RemoteBody), DownloadFailure> {
        match self {
            Self::Url { outbound, address } => {
                let fetched = outbound.fetch(address).await?;
                let (headers, body) = fetched.into_parts();
                let body = body.map_err(|why| format!("the body was interrupted: {why}"));
                Ok((DownloadHead::of(&headers), body.boxed_unsync()))
            }
            Self::Object { bucket, listed } => {
                let (headers, body) = bucket.object(listed).await?.into_parts();
                let mut head = DownloadHead::of(&headers);
                // A chunked response may not state its length.
                head.bytes = head.bytes.or(Some(listed.bytes));
                head.attributes = Some(attributes_of(&headers)?);
                let body = body.map_err(|why| format!("the body was interrupted: {why}"));
                Ok((head, body.boxed_unsync()))
            }
        }
    }
}

impl DownloadHead {
    fn of(headers: &HeaderMap) -> Self {
        let text = |name| headers.get(name).and_then(|it| it.to_str().ok());
        let time = text(LAST_MODIFIED).and_then(|it| httpdate::parse_http_date(it).ok());
        let since = time.and_then(|it| it.duration_since(std::time::UNIX_EPOCH).ok());
        Self {
            bytes: text(CONTENT_LENGTH).and_then(|it| it.parse().ok()),
            modified_ms: since.and_then(|it| u64::try_from(it.as_millis()).ok()),
            content_type: text(CONTENT_TYPE).map(str::to_owned),
            attributes: None,
        }
    }
}

/// Encodes the attributes of an S3 object.
fn attributes_of(headers: &HeaderMap) -> Result<Vec<u8>, DownloadFailure> {
    let mut metadata = BTreeMap::new();
    for (name, value) in headers {
        if let Some(name) = name.as_str().strip_prefix("x-amz-meta-") {
            let value = str::from_utf8(value.as_bytes());
            let value = value.map_err(|_| DownloadFailure::lasting("its metadata is not UTF-8"))?;
            metadata.insert(name.to_owned(), value.to_owned());
        }
    }
    let attributes = StoredAttributes {
        declared_type: sent(headers, &CONTENT_TYPE),
        headers: StoredHeaders::of(headers),
        s3: Some(S3Attributes { metadata, ..S3Attributes::default() }),
        ..StoredAttributes::default()
    };
    attributes
        .encoded()
        .ok_or_else(|| DownloadFailure::lasting("its metadata and headers exceed the limit"))
}
