//! The engine's interface of a remote store, over `object_store`.
//!
//! A missing bucket or removed folder is an error of every call, never a missing object.

use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use engine::remote::{Created, Part, ReadPiece, RemoteBytes, RemoteObject, RemoteStore};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    Error, GetOptions, GetRange, GetResultPayload, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMode, PutOptions, PutPayload,
};
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::limits;
use crate::open_folder::OpenFolder;
use crate::providers::Clients;

/// Remote store over `object_store`.
pub(crate) struct ObjectCalls {
    clients: Clients,
    runtime: Handle,
}

/// Codes of S3, Google Cloud and Azure for a missing bucket, whose status is that of a missing object.
const NO_BUCKET_CODES: [&str; 2] = ["NoSuchBucket", "ContainerNotFound"];

/// Texts of S3 and Azure for a request whose time is too far from the clock of the store.
const CLOCK_TEXTS: [&str; 2] = ["RequestTimeTooSkewed", "Request date header too old"];

impl ObjectCalls {
    pub(crate) fn new(clients: Clients, runtime: Handle) -> Self {
        Self { clients, runtime }
    }

    /// Waits for a call.
    fn wait<T>(
        &self,
        limit: Duration,
        call: impl Future<Output = object_store::Result<T>>,
    ) -> io::Result<object_store::Result<T>> {
        match self.runtime.block_on(async { timeout(limit, call).await }) {
            Ok(Err(error)) if is_missing_bucket(&error) => {
                let why = format!("the bucket does not exist: {}", self.described(&error));
                Err(io::Error::new(io::ErrorKind::NotFound, why))
            }
            Ok(result) => {
                self.clients.folder.as_ref().map_or(Ok(()), OpenFolder::check_exists)?;
                Ok(result)
            }
            Err(_) => {
                let why = format!("no response of the remote store within {} s", limit.as_secs());
                Err(io::Error::new(io::ErrorKind::TimedOut, why))
            }
        }
    }

    /// Waits for a call whose every error is a failure.
    fn done<T>(
        &self,
        limit: Duration,
        call: impl Future<Output = object_store::Result<T>>,
    ) -> io::Result<T> {
        self.wait(limit, call)?.map_err(|error| self.failure(&error))
    }

    fn path(&self, name: &str) -> io::Result<Path> {
        Path::parse(format!("{}{name}", self.clients.prefix))
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
    }

    fn upload_parts(
        &self,
        upload: &mut dyn MultipartUpload,
        bytes: u64,
        read: &mut ReadPiece<'_>,
    ) -> io::Result<()> {
        let part_bytes = limits::PART_BYTES.max(bytes.div_ceil(limits::PARTS_MAX));
        let mut from = 0;
        while from < bytes {
            let part = piece(read, from, part_bytes.min(bytes - from))?;
            from += part.content_length() as u64;
            self.done(limits::TRANSFER_TIMEOUT, upload.put_part(part))?;
        }
        self.done(limits::COMPLETE_TIMEOUT, upload.complete())?;
        Ok(())
    }

    /// Returns the objects that [`RemoteStore::list`] promises, by their whole names.
    async fn listed(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> object_store::Result<Vec<ObjectMeta>> {
        // The store lists whole folders only; the start skips what is before the prefix.
        let folder = prefix.rsplit_once('/').map(|(folder, _)| Path::parse(folder)).transpose()?;
        let before = name_before(prefix);
        let start = after.max(before.as_deref()).map(Path::parse).transpose()?;
        let store = &self.clients.retrying;
        let mut pages = match &start {
            Some(start) => store.list_with_offset(folder.as_ref(), start),
            None => store.list(folder.as_ref()),
        };
        let mut found: Vec<ObjectMeta> = Vec::new();
        while let Some(object) = next_within(limits::REQUEST_TIMEOUT, pages.next()).await? {
            let name = object.location.as_ref();
            if !name.starts_with(prefix) {
                if self.clients.lists_in_order && name > prefix {
                    break;
                }
                continue;
            }
            if after.is_some_and(|after| name <= after) {
                continue;
            }
            if self.clients.lists_in_order {
                check_order(found.last(), &object)?;
            }
            found.push(object);
            if self.clients.lists_in_order && found.len() >= limit {
                break;
            }
        }
        if !self.clients.lists_in_order {
            found.sort_unstable_by(|a, b| a.location.cmp(&b.location));
            found.truncate(limit);
        }
        Ok(found)
    }

    fn remote_object(&self, object: &ObjectMeta) -> RemoteObject {
        let name = object.location.as_ref();
        RemoteObject {
            name: name.strip_prefix(&self.clients.prefix).unwrap_or(name).to_owned(),
            bytes: object.size,
            modified_ms: u64::try_from(object.last_modified.timestamp_millis()).unwrap_or(0),
        }
    }

    fn failure(&self, error: &Error) -> io::Error {
        let kind = match error {
            Error::NotFound { .. } => io::ErrorKind::NotFound,
            Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
                io::ErrorKind::PermissionDenied
            }
            _ => io::ErrorKind::Other,
        };
        io::Error::new(kind, self.described(error))
    }

    /// Describes an error in one short line.
    fn described(&self, error: &Error) -> String {
        let mut text: String =
            error.to_string().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        if let Some(folder) = &self.clients.folder {
            text = folder.with_path(&text);
        }
        if text.len() > limits::ERROR_BYTES_MAX {
            text.truncate(text.floor_char_boundary(limits::ERROR_BYTES_MAX));
            text.push_str("...");
        }
        match CLOCK_TEXTS.iter().any(|cause| text.contains(cause)) {
            true => {
                format!("the clock of this machine differs from that of the remote store: {text}")
            }
            false => text,
        }
    }
}

impl RemoteStore for ObjectCalls {
    fn create(&self, name: &str, pieces: &[Bytes]) -> io::Result<Created> {
        let path = self.path(name)?;
        let payload = PutPayload::from_iter(pieces.iter().cloned());
        let options = PutOptions::from(PutMode::Create);
        let put = self.clients.once.put_opts(&path, payload, options);
        match self.wait(limits::REQUEST_TIMEOUT, put)? {
            Ok(_) => Ok(Created::New),
            // Includes 409 ConditionalRequestConflict of S3: another creation is under way, and may yet fail.
            Err(Error::AlreadyExists { .. }) => Ok(Created::Exists),
            Err(error) => Err(self.failure(&error)),
        }
    }

    fn upload(&self, name: &str, bytes: u64, read: &mut ReadPiece<'_>) -> io::Result<()> {
        let (path, store) = (self.path(name)?, &self.clients.retrying);
        if bytes <= limits::PART_BYTES {
            let whole = piece(read, 0, bytes)?;
            self.done(limits::TRANSFER_TIMEOUT, store.put(&path, whole))?;
            return Ok(());
        }
        let mut upload = self.done(limits::REQUEST_TIMEOUT, store.put_multipart(&path))?;
        let uploaded = self.upload_parts(&mut *upload, bytes, read);
        if uploaded.is_err() {
            // What cannot be removed expires by the store's own rules; the first error counts.
            let _ = self.wait(limits::REQUEST_TIMEOUT, upload.abort());
        }
        uploaded
    }

    fn read(&self, name: &str, part: Part) -> io::Result<Option<RemoteBytes>> {
        let (path, store) = (self.path(name)?, &*self.clients.retrying);
        match self.wait(limits::TRANSFER_TIMEOUT, read_part(store, &path, part))? {
            Ok(read) => Ok(Some(read)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failure(&error)),
        }
    }

    fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> io::Result<Vec<RemoteObject>> {
        let whole_prefix = format!("{}{prefix}", self.clients.prefix);
        let after = after.map(|after| format!("{}{after}", self.clients.prefix));
        let listed = self.listed(&whole_prefix, after.as_deref(), limit);
        // Each page has its own time-out.
        let found = self.done(Duration::MAX, listed)?;
        Ok(found.iter().map(|object| self.remote_object(object)).collect())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let path = self.path(name)?;
        match self.wait(limits::REQUEST_TIMEOUT, self.clients.retrying.delete(&path))? {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failure(&error)),
        }
    }
}

/// Reads one piece of an upload.
fn piece(read: &mut ReadPiece<'_>, from: u64, bytes: u64) -> io::Result<PutPayload> {
    let bytes = usize::try_from(bytes).map_err(io::Error::other)?;
    let mut buffer = vec![0; bytes];
    if !buffer.is_empty() {
        read(from, &mut buffer)?;
    }
    Ok(buffer.into())
}

async fn read_part(
    store: &dyn ObjectStore,
    path: &Path,
    part: Part,
) -> object_store::Result<RemoteBytes> {
    let range = match part {
        Part::Whole => None,
        Part::Range(range) => Some(GetRange::Bounded(range)),
        Part::Suffix(bytes) => Some(GetRange::Suffix(bytes)),
    };
    let is_empty = match &range {
        Some(GetRange::Bounded(range)) => range.is_empty(),
        Some(GetRange::Suffix(bytes)) => *bytes == 0,
        _ => false,
    };
    if is_empty {
        let object_bytes = store.head(path).await?.size;
        return Ok(RemoteBytes { bytes: Bytes::new(), object_bytes });
    }
    match (get(store, path, range.clone()).await, range) {
        (Err(error), Some(range)) if !matches!(error, Error::NotFound { .. }) => {
            read_within(store, path, &range, error).await
        }
        (read, _) => read,
    }
}

/// Reads a range again that was refused, cut to the length of the object: it may begin beyond the end, or be a suffix,
/// which Azure does not support. Returns `refusal` if neither is so.
async fn read_within(
    store: &dyn ObjectStore,
    path: &Path,
    range: &GetRange,
    refusal: Error,
) -> object_store::Result<RemoteBytes> {
    let object = match store.head(path).await {
        Ok(object) => object,
        Err(missing @ Error::NotFound { .. }) => return Err(missing),
        Err(_) => return Err(refusal),
    };
    let range = match range {
        GetRange::Bounded(range) => range.start..range.end.min(object.size),
        GetRange::Offset(start) => *start..object.size,
        GetRange::Suffix(bytes) => object.size.saturating_sub(*bytes)..object.size,
    };
    if range.is_empty() {
        return Ok(RemoteBytes { bytes: Bytes::new(), object_bytes: object.size });
    }
    match refusal {
        Error::NotSupported { .. } => get(store, path, Some(GetRange::Bounded(range))).await,
        refusal => Err(refusal),
    }
}

async fn get(
    store: &dyn ObjectStore,
    path: &Path,
    range: Option<GetRange>,
) -> object_store::Result<RemoteBytes> {
    let got = store.get_opts(path, GetOptions { range, ..GetOptions::default() }).await?;
    let (object_bytes, length) = (got.meta.size, got.range.end - got.range.start);
    let bytes = match got.payload {
        GetResultPayload::Stream(pieces) => collected(pieces, length).await?,
        GetResultPayload::File(..) => got.bytes().await?,
    };
    Ok(RemoteBytes { bytes, object_bytes })
}

/// Collects a body of this length. A longer or shorter one is an error, whatever the service announced.
async fn collected(
    mut pieces: BoxStream<'static, object_store::Result<Bytes>>,
    length: u64,
) -> object_store::Result<Bytes> {
    let wrong = || Error::Generic {
        store: "remote",
        source: format!("the body is not of the announced {length} bytes").into(),
    };
    let mut bytes = BytesMut::new();
    while let Some(piece) = pieces.next().await {
        bytes.extend_from_slice(&piece?);
        if bytes.len() as u64 > length {
            return Err(wrong());
        }
    }
    if bytes.len() as u64 == length { Ok(bytes.freeze()) } else { Err(wrong()) }
}

/// Returns a name after which a listing contains all names with the prefix, and few others. `None`: from the start.
fn name_before(prefix: &str) -> Option<String> {
    let last = prefix.bytes().last().filter(|last| *last > b'0')?;
    Some(format!("{}{}~", &prefix[..prefix.len() - 1], char::from(last - 1)))
}

async fn next_within<T>(
    limit: Duration,
    next: impl Future<Output = Option<object_store::Result<T>>>,
) -> object_store::Result<Option<T>> {
    match timeout(limit, next).await {
        Ok(object) => object.transpose(),
        Err(elapsed) => Err(Error::Generic { store: "remote", source: Box::new(elapsed) }),
    }
}

fn is_missing_bucket(error: &Error) -> bool {
    matches!(error, Error::NotFound { .. } | Error::Generic { .. }) && {
        let text = error.to_string();
        NO_BUCKET_CODES.iter().any(|code| text.contains(code))
    }
}

/// Rejects a listing that is not in the byte order of names: pages of it would miss objects.
fn check_order(last: Option<&ObjectMeta>, next: &ObjectMeta) -> object_store::Result<()> {
    match last {
        Some(last) if last.location >= next.location => Err(Error::Generic {
            store: "remote",
            source: "listings are not in the byte order of names, which trug requires".into(),
        }),
        _ => Ok(()),
    }
}
