//! Upload, step 1: receives the files of a request into the store's staging.
//!
//! Small files stay in memory; large ones are buffered, and written to the disk in chunks while more arrives.
//! Guarantees: a request that breaks off or violates a rule leaves nothing behind; a large file has at most two chunks
//! in memory, within the memory budget of all uploads, and beyond that one frame of the body; at most
//! [`UPLOAD_WRITES_MAX`] threads write at once, since each holds memory of its own; no async worker waits for the disk.
//! Non-goals: names, and storing the files.

use std::fmt::Display;
use std::mem;

use bytes::Bytes;
use catalog::Bucket;
use catalog::object_attributes::{S3Attributes, StoredAttributes};
use engine::upload::UploadBuffer;
use engine::{Object, ObjectKey, PutOptions, StagedBody, Upload};
use http_body::Body;
use jobs::thumbnail_object::ThumbnailSkip;
use protocol::error::ApiError;
use protocol::multipart::{FormFiles, MultipartFile};
use protocol::object_path::PathInBucket;
use protocol::request_body::RequestBody;
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, spawn_blocking};
use usage::task::{blocking, join};

use super::{ThumbnailCache, UploadTarget, one_file_only};
use crate::limits::{UPLOAD_CHUNK_BYTES, UPLOAD_WRITES_MAX};
use crate::object_options::ObjectOptions;
use crate::state::AppState;

/// Received file that is not stored yet. Dropping it deletes it.
pub struct StagedFile {
    pub(super) client_name: Option<String>,
    pub(super) declared_type: Option<String>,
    pub staged: StagedBody,
    /// Thumbnail, if requested.
    pub(super) thumbnail: Option<Result<StagedBody, ThumbnailSkip>>,
    /// Thumbnail rendered by an earlier attempt to store the file.
    pub(super) thumbnail_cache: ThumbnailCache,
    /// Attributes of the object, except for its declared type and version.
    pub(super) attributes: StoredAttributes,
    /// Media type that the client chose, which the content must not contradict.
    pub(super) chosen_type: Option<String>,
}

impl StagedFile {
    /// Creates a file from completely staged content.
    pub fn new(
        client_name: Option<String>,
        declared_type: Option<String>,
        staged: StagedBody,
    ) -> Self {
        Self {
            client_name,
            declared_type,
            staged,
            thumbnail: None,
            thumbnail_cache: ThumbnailCache::default(),
            attributes: StoredAttributes::default(),
            chosen_type: None,
        }
    }

    /// Creates a copy of a stored file, with its media type, headers, S3 attributes and tags.
    pub fn copy_of(object: &Object, staged: StagedBody) -> Self {
        let StoredAttributes { declared_type, headers, s3, tags, .. } =
            StoredAttributes::of(object);
        let declared_type = declared_type.or_else(|| Some(object.content_type().to_owned()));
        // The original key belongs to the source only.
        let s3 = s3.map(|s3| S3Attributes { key: None, ..s3 });
        let attributes = StoredAttributes { headers, s3, tags, ..StoredAttributes::default() };
        Self { attributes, ..Self::new(None, declared_type, staged) }
    }

    /// Sets the attributes of the file; its declared type is that of the upload.
    pub fn with_attributes(self, attributes: StoredAttributes) -> Self {
        Self { attributes, ..self }
    }

    /// Sets the options that describe the object; fails if they do not fit.
    pub fn describe(&mut self, options: &ObjectOptions) -> Result<(), ApiError> {
        self.attributes = options.apply(std::mem::take(&mut self.attributes))?;
        self.chosen_type = options.content_type.clone().or(self.chosen_type.take());
        Ok(())
    }

    /// Returns the options for storing the file under a key with a chosen media type; fails if the bucket does not
    /// accept it, or the content contradicts it.
    pub(crate) fn chosen_options(
        mut self,
        bucket: &Bucket,
        key: &ObjectKey,
        content_type: String,
    ) -> Result<PutOptions, ApiError> {
        self.chosen_type = Some(content_type);
        self.check_allowed(bucket, key)?;
        match self.attributes.encoded() {
            Some(_) => Ok(self.put_options(key)),
            None => Err(ApiError::metadata_too_large()),
        }
    }

    /// Sets the client's name of the file.
    pub fn with_client_name(self, client_name: Option<String>) -> Self {
        Self { client_name, ..self }
    }

    /// Sets the holder that preserves the rendered thumbnail for the next attempt to store the file.
    pub fn with_thumbnail_cache(self, thumbnail_cache: ThumbnailCache) -> Self {
        Self { thumbnail_cache, ..self }
    }
}

/// Receives all files of a form.
pub async fn receive(
    app: &AppState,
    target: &UploadTarget,
    mut form: FormFiles,
) -> Result<Vec<StagedFile>, ApiError> {
    let is_file = matches!(target.place, PathInBucket::File(_));
    let takes_one_file = is_file && target.lenient_folder().is_none();
    let mut files = Vec::new();
    let received = async {
        while let Some(part) = form.next_file().await? {
            if !files.is_empty() && takes_one_file {
                return Err(one_file_only());
            }
            files.push(receive_file(app, &target.bucket, part).await?);
        }
        Ok(())
    };
    match received.await {
        Ok(()) if files.is_empty() => Err(ApiError::no_file()),
        Ok(()) => Ok(files),
        Err(error) => Err(drop_blocking(files, error).await),
    }
}

/// Sets the options that describe the objects of all files.
pub(super) async fn describe(
    mut files: Vec<StagedFile>,
    options: &ObjectOptions,
) -> Result<Vec<StagedFile>, ApiError> {
    match files.iter_mut().try_for_each(|file| file.describe(options)) {
        Ok(()) => Ok(files),
        Err(error) => Err(drop_blocking(files, error).await),
    }
}

async fn receive_file(
    app: &AppState,
    bucket: &Bucket,
    mut part: MultipartFile<'_>,
) -> Result<StagedFile, ApiError> {
    let client_name = part.file_name().map(str::to_owned);
    let declared_type = part.declared_type().map(str::to_owned);
    let staged = stage_body(app.store.upload(), bucket.file_bytes_max, &mut part).await?;
    Ok(StagedFile::new(client_name, declared_type, staged))
}

/// Receives a body that is a single file.
pub async fn receive_raw<B>(
    app: &AppState,
    bucket: &Bucket,
    declared_type: Option<String>,
    mut body: RequestBody<B>,
) -> Result<StagedFile, ApiError>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: Display,
{
    let staged = stage_body(app.store.upload(), bucket.file_bytes_max, &mut body).await?;
    Ok(StagedFile::new(None, declared_type, staged))
}

/// Receives the current part of a form as one file. `check` gets each chunk before it is staged.
pub async fn receive_part(
    app: &AppState,
    bucket: &Bucket,
    declared_type: Option<String>,
    form: &mut FormFiles,
    check: &mut (dyn FnMut(&[u8]) -> Result<(), ApiError> + Send),
) -> Result<StagedFile, ApiError> {
    let mut chunks = CheckedPart { form, check };
    let staged = stage_body(app.store.upload(), bucket.file_bytes_max, &mut chunks).await?;
    Ok(StagedFile::new(None, declared_type, staged))
}

/// Drops received files on a blocking thread, since removing staged files may wait for the disk.
pub(super) async fn drop_blocking<T: Send + 'static>(received: T, error: ApiError) -> ApiError {
    blocking(move || drop(received)).await;
    error
}

/// Source of a file's bytes.
trait ChunkSource {
    /// Returns the next bytes; `None` at the end.
    fn next(&mut self) -> impl Future<Output = Result<Option<Bytes>, ApiError>> + Send;
}

impl ChunkSource for MultipartFile<'_> {
    async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        self.chunk().await
    }
}

/// Current part of a form, each chunk of which is checked.
struct CheckedPart<'f> {
    form: &'f mut FormFiles,
    check: &'f mut (dyn FnMut(&[u8]) -> Result<(), ApiError> + Send),
}

impl ChunkSource for CheckedPart<'_> {
    async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        let chunk = self.form.part_chunk().await?;
        if let Some(chunk) = &chunk {
            (self.check)(chunk)?;
        }
        Ok(chunk)
    }
}

impl<B> ChunkSource for RequestBody<B>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: Display,
{
    async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        self.chunk().await
    }
}

/// Stages a file to its end. Fails if it exceeds the limit.
async fn stage_body(
    upload: Upload,
    file_bytes_max: Option<u64>,
    chunks: &mut impl ChunkSource,
) -> Result<StagedBody, ApiError> {
    let mut writer = StagingWriter::new(upload);
    let mut bytes = 0;
    let error = loop {
        match chunks.next().await {
            Ok(Some(chunk)) => {
                bytes += chunk.len() as u64;
                if let Some(limit) = file_bytes_max.filter(|limit| bytes > *limit) {
                    break ApiError::file_over_limit(limit);
                }
                writer.push(chunk).await?;
            }
            Ok(None) => return writer.finish().await,
            Err(error) => break error,
        }
    };
    Err(drop_blocking(writer, error).await)
}

/// Permits to write to the disk.
static WRITES: Semaphore = Semaphore::const_new(UPLOAD_WRITES_MAX);

/// Incomplete staged file.
struct StagingWriter {
    /// `None` while a thread writes to it, and after a failed write.
    upload: Option<Box<Upload>>,
    writing: Option<Writing>,
    /// Received bytes that are not written yet.
    buffer: UploadBuffer,
    /// Buffer of the previous write.
    spare: Option<UploadBuffer>,
}

/// Write task, which returns the upload and its buffer.
type Writing = JoinHandle<engine::Result<(Box<Upload>, UploadBuffer)>>;

impl StagingWriter {
    fn new(upload: Upload) -> Self {
        let buffer = upload.buffer(UPLOAD_CHUNK_BYTES);
        Self { upload: Some(Box::new(upload)), writing: None, buffer, spare: None }
    }

    async fn push(&mut self, mut chunk: Bytes) -> Result<(), ApiError> {
        if let Some(upload) = &mut self.upload
            && self.buffer.bytes().is_empty()
            && upload.push_in_memory(&chunk)?
        {
            return Ok(());
        }
        while !chunk.is_empty() {
            let part = chunk.split_to(chunk.len().min(self.buffer.room()));
            if !self.buffer.try_extend(&part) {
                self.write_buffered_and(part).await?;
            } else if self.buffer.room() == 0 {
                self.write_buffered_and(Bytes::new()).await?;
            }
        }
        Ok(())
    }

    /// Starts writing the buffered bytes and `more`, after the previous write has finished.
    async fn write_buffered_and(&mut self, more: Bytes) -> Result<(), ApiError> {
        let mut upload = self.settled().await?;
        let next = self.spare.take().unwrap_or_else(|| upload.buffer(UPLOAD_CHUNK_BYTES));
        let mut full = mem::replace(&mut self.buffer, next);
        let permit = WRITES.acquire().await.map_err(|_| ApiError::overloaded(1))?;
        self.writing = Some(spawn_blocking(move || {
            upload.push(full.bytes())?;
            upload.push(&more)?;
            drop(permit);
            full.clear();
            Ok((upload, full))
        }));
        Ok(())
    }

    /// Returns the upload, once no thread writes to it.
    async fn settled(&mut self) -> Result<Box<Upload>, ApiError> {
        if let Some(writing) = self.writing.take() {
            let (upload, spare) = join(writing).await?;
            self.spare = Some(spare);
            return Ok(upload);
        }
        self.upload.take().ok_or_else(|| ApiError::internal("an upload continues after it failed"))
    }

    async fn finish(mut self) -> Result<StagedBody, ApiError> {
        let mut upload = self.settled().await?;
        if self.buffer.bytes().is_empty() && !upload.is_big() {
            return Ok(upload.finish()?);
        }
        let permit = WRITES.acquire().await.map_err(|_| ApiError::overloaded(1))?;
        let finish = move || {
            upload.push(self.buffer.bytes())?;
            let staged = upload.finish();
            drop(permit);
            staged
        };
        Ok(blocking(finish).await?)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use engine::clock::SimClock;
    use engine::disk::faults::{Fault, FaultRule, Operation, PathPattern};
    use engine::disk::sim::SimDisk;
    use engine::rng::SeededRng;
    use engine::{Create, Environment, OpenOptions, Store};

    use super::*;

    fn store(disk: &SimDisk) -> Store {
        let surroundings = Environment {
            disk: Arc::new(disk.clone()),
            clock: Arc::new(SimClock::at(0)),
            rng: Arc::new(SeededRng::new(1)),
            remote: None,
        };
        Store::open(surroundings, OpenOptions::new(Create::IfMissing)).unwrap().0
    }

    struct Cut<'a>(std::slice::Chunks<'a, u8>);

    impl ChunkSource for Cut<'_> {
        async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
            Ok(self.0.next().map(Bytes::copy_from_slice))
        }
    }

    async fn taken(
        store: &Store,
        file: &[u8],
        chunk_bytes: usize,
        max: Option<u64>,
    ) -> Result<StagedBody, ApiError> {
        stage_body(store.upload(), max, &mut Cut(file.chunks(chunk_bytes))).await
    }

    fn file(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|at| (at / 3 + at / 4_099) as u8).collect()
    }

    #[tokio::test]
    async fn staged_file_is_independent_of_chunking() {
        let store = store(&SimDisk::new());
        let large = engine::limits::INLINE_BYTES_MAX;
        for bytes in [0, 1, 70_000, large, large + 1, large + UPLOAD_CHUNK_BYTES, 2_500_001] {
            let file = file(bytes);
            let mut whole = store.upload();
            whole.push(&file).unwrap();
            let hash = *whole.finish().unwrap().hash();
            for chunk_bytes in [999, 65_536, UPLOAD_CHUNK_BYTES, 700_001, 3_000_000] {
                let staged = taken(&store, &file, chunk_bytes, None).await.unwrap();
                assert_eq!(staged.bytes(), bytes as u64);
                assert_eq!(staged.is_big(), bytes > large);
                assert_eq!(*staged.hash(), hash, "{bytes} in chunks of {chunk_bytes}");
            }
        }
    }

    #[tokio::test]
    async fn oversized_upload_leaves_no_staged_data() {
        let disk = SimDisk::new();
        let store = store(&disk);
        let file = file(3_000_000);
        for max in [5, 1_500_000, 2_999_999] {
            let error = taken(&store, &file, 100_000, Some(max)).await.err().unwrap();
            assert_eq!(error.status(), 413, "{max}");
        }
        assert!(taken(&store, &file, 100_000, Some(3_000_000)).await.is_ok());
        // A thread that is still writing is the last to release a file.
        let is_left =
            || disk.paths().iter().any(|path| path.starts_with("big/") && path.ends_with(".seg"));
        for _ in 0..400 {
            if !is_left() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("{:?}", disk.paths());
    }

    #[tokio::test]
    async fn disk_write_error_fails_the_upload() {
        let disk = SimDisk::new();
        let store = store(&disk);
        disk.inject(FaultRule::always(Operation::Write, PathPattern::Any, Fault::Error));
        assert_eq!(taken(&store, &file(100_000), 9_999, None).await.unwrap().bytes(), 100_000);
        for bytes in [1_100_000, 3_000_000] {
            assert!(taken(&store, &file(bytes), 100_000, None).await.is_err());
        }
    }
}
