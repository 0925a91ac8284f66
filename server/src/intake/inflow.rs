//! Staging of an incoming file: small files stay in memory; large ones are buffered, and written to the disk in chunks
//! while more arrives.
//!
//! Guarantees: a large file has at most two chunks in memory, within the memory budget of all uploads, and beyond that
//! one frame of the body; at most [`UPLOAD_WRITES_MAX`] threads write at once, since each holds memory of its own; no
//! async worker waits for the disk. Non-goals: the source of the bytes, and storing the file.

use std::fmt::Display;
use std::mem;

use bytes::Bytes;
use engine::upload::UploadBuffer;
use engine::{StagedBody, Upload};
use http_body::Body;
use protocol::error::ApiError;
#[cfg(feature = "s3")]
use protocol::multipart::FormFiles;
use protocol::multipart::MultipartFile;
use protocol::request_body::RequestBody;
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, spawn_blocking};
use usage::task::{blocking, join};

use super::drop_blocking;
use crate::limits::{UPLOAD_CHUNK_BYTES, UPLOAD_WRITES_MAX};

/// Source of a file's bytes.
pub(super) trait ChunkSource {
    /// Returns the next bytes; `None` at the end.
    fn next(&mut self) -> impl Future<Output = Result<Option<Bytes>, ApiError>> + Send;
}

impl ChunkSource for MultipartFile<'_> {
    async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        self.chunk().await
    }
}

/// Current part of a form, each chunk of which is checked.
#[cfg(feature = "s3")]
pub(super) struct CheckedPart<'f> {
    pub(super) form: &'f mut FormFiles,
    pub(super) check: &'f mut (dyn FnMut(&[u8]) -> Result<(), ApiError> + Send),
}

#[cfg(feature = "s3")]
impl ChunkSource for CheckedPart<'_> {
    async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        let piece = self.form.part_chunk().await?;
        if let Some(piece) = &piece {
            (self.check)(piece)?;
        }
        Ok(piece)
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
pub(super) async fn stage_body(
    upload: Upload,
    file_bytes_max: Option<u64>,
    pieces: &mut impl ChunkSource,
) -> Result<StagedBody, ApiError> {
    let mut inflow = StagingWriter::new(upload);
    let mut bytes = 0;
    let refusal = loop {
        match pieces.next().await {
            Ok(Some(piece)) => {
                bytes += piece.len() as u64;
                if let Some(limit) = file_bytes_max.filter(|limit| bytes > *limit) {
                    break ApiError::file_over_limit(limit);
                }
                inflow.push(piece).await?;
            }
            Ok(None) => return inflow.finish().await,
            Err(refusal) => break refusal,
        }
    };
    Err(drop_blocking(inflow, refusal).await)
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

    async fn push(&mut self, mut piece: Bytes) -> Result<(), ApiError> {
        if let Some(upload) = &mut self.upload
            && self.buffer.bytes().is_empty()
            && upload.push_in_memory(&piece)?
        {
            return Ok(());
        }
        while !piece.is_empty() {
            let part = piece.split_to(piece.len().min(self.buffer.room()));
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
        let mut chunk = mem::replace(&mut self.buffer, next);
        let turn = WRITES.acquire().await.map_err(|_| ApiError::overloaded(1))?;
        self.writing = Some(spawn_blocking(move || {
            upload.push(chunk.bytes())?;
            upload.push(&more)?;
            drop(turn);
            chunk.clear();
            Ok((upload, chunk))
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
        let turn = WRITES.acquire().await.map_err(|_| ApiError::overloaded(1))?;
        let finish = move || {
            upload.push(self.buffer.bytes())?;
            let staged = upload.finish();
            drop(turn);
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
        piece_bytes: usize,
        max: Option<u64>,
    ) -> Result<StagedBody, ApiError> {
        stage_body(store.upload(), max, &mut Cut(file.chunks(piece_bytes))).await
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
            for piece_bytes in [999, 65_536, UPLOAD_CHUNK_BYTES, 700_001, 3_000_000] {
                let staged = taken(&store, &file, piece_bytes, None).await.unwrap();
                assert_eq!(staged.bytes(), bytes as u64);
                assert_eq!(staged.is_big(), bytes > large);
                assert_eq!(*staged.hash(), hash, "{bytes} in pieces of {piece_bytes}");
            }
        }
    }

    #[tokio::test]
    async fn oversized_upload_leaves_no_staged_data() {
        let disk = SimDisk::new();
        let store = store(&disk);
        let file = file(3_000_000);
        for max in [5, 1_500_000, 2_999_999] {
            let refusal = taken(&store, &file, 100_000, Some(max)).await.err().unwrap();
            assert_eq!(refusal.status(), 413, "{max}");
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
