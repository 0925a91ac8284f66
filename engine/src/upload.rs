//! Upload: stages a body in memory, under a shared budget, or in a big segment.
//!
//! Guarantees: checksums and hash are computed while the bytes arrive; memory is bounded by the budget and one block
//! per upload; a body that is dropped without a commit leaves no file behind.
//! Non-goals: names, multipart, the meaning of the bytes.

mod block_pool;
mod resumable;
mod staged_reader;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::format::{Checksum, SegmentId};
use crate::free_space::FreeSpace;
use crate::limits;
use crate::segment::{BigWriter, SegmentSet};
pub use crate::upload_memory::UploadBuffer;
use crate::upload_memory::{UploadMemory, UploadMemoryBudget};

use self::block_pool::Block;
pub(crate) use self::block_pool::BlockPool;
pub(crate) use self::resumable::UPLOADS_FOLDER;
pub use self::resumable::{ResumableUpload, ResumePoint};
pub use self::staged_reader::StagedReader;

/// Uploads of a store: what they share.
#[derive(Clone)]
pub(crate) struct Uploads {
    pub(crate) segments: Arc<SegmentSet>,
    pub(crate) space: Arc<FreeSpace>,
    pub(crate) memory: Arc<UploadMemoryBudget>,
    pub(crate) blocks: Arc<BlockPool>,
    pub(crate) inline_bytes_max: u64,
}

/// Upload of one body, in pieces of any size. Dropping it discards the bytes.
///
/// A body stays in memory up to [`OpenOptions::inline_bytes_max`](crate::OpenOptions::inline_bytes_max) and while the
/// memory budget of all uploads suffices; otherwise it is written to a big segment.
pub struct Upload {
    uploads: Uploads,
    hasher: blake3::Hasher,
    bytes: u64,
    block: Block,
    /// Memory of all blocks.
    memory: UploadMemory,
    destination: Destination,
}

enum Destination {
    Memory(Vec<(Bytes, Checksum)>),
    Big { writer: Box<BigWriter>, head: Vec<u8> },
}

impl Upload {
    pub(crate) fn new(uploads: Uploads) -> Self {
        Self {
            hasher: blake3::Hasher::new(),
            bytes: 0,
            block: Block::default(),
            memory: UploadMemory::new(Arc::clone(&uploads.memory)),
            destination: Destination::Memory(Vec::new()),
            uploads,
        }
    }

    /// Returns the number of bytes received so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the first bytes of the body, at most [`UPLOAD_HEAD_BYTES`], for content type detection.
    pub fn head(&self) -> &[u8] {
        match &self.destination {
            Destination::Memory(blocks) if blocks.is_empty() => head_of(self.block.bytes()),
            Destination::Memory(blocks) => head_of_blocks(blocks),
            Destination::Big { head, .. } => head,
        }
    }

    /// Returns whether the body is written to a big segment: [`Upload::push`], [`Upload::finish`] and dropping the
    /// upload then wait for the disk.
    pub fn is_big(&self) -> bool {
        matches!(self.destination, Destination::Big { .. })
    }

    /// Creates a buffer for bytes that are to be pushed, of at most this many bytes.
    pub fn buffer(&self, bytes_max: usize) -> UploadBuffer {
        self.memory.buffer(bytes_max)
    }

    /// Appends bytes if they stay in memory. Otherwise appends nothing and returns false: use [`Upload::push`], which
    /// waits for the disk.
    ///
    /// Fails with [`Error::NoSpace`] before the first byte if the disk is full, because the body could not be
    /// committed.
    pub fn push_in_memory(&mut self, bytes: &[u8]) -> Result<bool> {
        if self.bytes == 0 {
            self.uploads.space.require_reserve()?;
        }
        let total = self.bytes.saturating_add(bytes.len() as u64);
        let stays = !self.is_big()
            && total <= self.uploads.inline_bytes_max
            && self.memory.grow_body(Block::memory_bytes(total));
        if stays {
            self.take(bytes)?;
        }
        Ok(stays)
    }

    /// Appends bytes. Waits for the disk if they do not stay in memory.
    ///
    /// Fails with [`Error::TooLarge`] beyond [`limits::OBJECT_BYTES_MAX`], and with [`Error::NoSpace`] if the disk is
    /// full.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        if self.bytes.saturating_add(bytes.len() as u64) > limits::OBJECT_BYTES_MAX {
            return Err(Error::TooLarge("an object has at most 64 GiB"));
        }
        if self.push_in_memory(bytes)? {
            return Ok(());
        }
        if !self.is_big() {
            self.move_to_disk()?;
        }
        self.take(bytes)
    }

    /// Finishes the body. A body in a big segment is durable when this returns, and the call waits for the disk; a body
    /// in memory becomes durable with its batch.
    pub fn finish(mut self) -> Result<StagedBody> {
        if !self.block.bytes().is_empty() {
            self.end_block()?;
        }
        let hash = *self.hasher.finalize().as_bytes();
        let place = match self.destination {
            Destination::Memory(blocks) => {
                self.memory.set(Block::finished_memory_bytes(self.bytes));
                StagedLocation::Memory { blocks, _memory: self.memory }
            }
            Destination::Big { writer, head } => {
                let segment = writer.finish(self.bytes, hash)?;
                StagedLocation::big(segment, self.uploads.segments, head)
            }
        };
        let body = StagedInner { bytes: self.bytes, hash, place };
        Ok(StagedBody(Arc::new(body)))
    }

    fn take(&mut self, bytes: &[u8]) -> Result<()> {
        if let Destination::Big { head, .. } = &mut self.destination {
            let room = UPLOAD_HEAD_BYTES - head.len();
            head.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        }
        self.bytes += bytes.len() as u64;
        let mut rest = bytes;
        while !rest.is_empty() {
            // Writes a whole block directly from the caller's buffer.
            if self.block.bytes().is_empty()
                && let Destination::Big { writer, .. } = &mut self.destination
                && let Some((whole, later)) = rest.split_at_checked(limits::BLOCK_BYTES)
            {
                self.hasher.update(whole);
                writer.block(whole, Checksum::of(whole))?;
                rest = later;
                continue;
            }
            let (taken, later) = rest.split_at(rest.len().min(self.block.room()));
            self.block.extend(taken, &self.uploads.blocks)?;
            rest = later;
            if self.block.room() == 0 {
                self.end_block()?;
            }
        }
        Ok(())
    }

    /// Hashes the block while it is in the processor cache, in one call: BLAKE3 is fastest with many bytes at once.
    fn end_block(&mut self) -> Result<()> {
        self.hasher.update(self.block.bytes());
        let checksum = Checksum::of(self.block.bytes());
        match &mut self.destination {
            Destination::Memory(blocks) => {
                blocks.push((std::mem::take(&mut self.block).into_bytes(), checksum));
            }
            Destination::Big { writer, .. } => {
                writer.block(self.block.bytes(), checksum)?;
                self.block.clear();
            }
        }
        Ok(())
    }

    fn move_to_disk(&mut self) -> Result<()> {
        let Uploads { segments, space, .. } = &self.uploads;
        let buffer = self.memory.buffer(limits::WRITE_BYTES_MAX);
        let mut writer = BigWriter::create(segments, space, buffer)?;
        if let Destination::Memory(blocks) = &self.destination {
            for (block, checksum) in blocks {
                writer.block(block, *checksum)?;
            }
        }
        let head = self.head().to_vec();
        self.destination = Destination::Big { writer: Box::new(writer), head };
        self.memory.set(limits::BLOCK_BYTES as u64);
        Ok(())
    }
}

/// Maximum number of bytes that [`Upload::head`] and [`StagedBody::head`] return.
pub const UPLOAD_HEAD_BYTES: usize = 4_096;

/// Staged body, ready to be committed under a name. Dropping the last clone without a commit discards it.
///
/// Clones share one body, so that a batch that was rejected because its name exists can be retried with another name. A
/// body can be committed only once.
#[derive(Clone)]
pub struct StagedBody(Arc<StagedInner>);

struct StagedInner {
    bytes: u64,
    hash: [u8; 32],
    place: StagedLocation,
}

enum StagedLocation {
    Memory { blocks: Vec<(Bytes, Checksum)>, _memory: UploadMemory },
    Big { segment: SegmentId, segments: Arc<SegmentSet>, head: Vec<u8>, committed: AtomicBool },
}

impl StagedLocation {
    fn big(segment: SegmentId, segments: Arc<SegmentSet>, head: Vec<u8>) -> Self {
        Self::Big { segment, segments, head, committed: AtomicBool::new(false) }
    }
}

/// Returns the head of a body that begins with these bytes.
fn head_of(bytes: &[u8]) -> &[u8] {
    bytes.get(..UPLOAD_HEAD_BYTES).unwrap_or(bytes)
}

/// Returns the head of a body in blocks.
fn head_of_blocks(blocks: &[(Bytes, Checksum)]) -> &[u8] {
    blocks.first().map_or(&[], |(block, _)| head_of(block))
}

/// Location of the content of a staged body.
pub(crate) enum StagedContent {
    /// In memory: blocks with their unbound checksums.
    Memory(Vec<(Bytes, Checksum)>),
    /// In a big segment.
    Big(SegmentId),
}

impl StagedBody {
    /// Returns the length of the body in bytes.
    pub fn bytes(&self) -> u64 {
        self.0.bytes
    }

    /// Returns the BLAKE3 hash of the body.
    pub fn hash(&self) -> &[u8; 32] {
        &self.0.hash
    }

    /// Returns whether the body is in a big segment. Dropping it without a commit then waits for the disk.
    pub fn is_big(&self) -> bool {
        matches!(self.0.place, StagedLocation::Big { .. })
    }

    /// Returns the first bytes of the body, at most [`UPLOAD_HEAD_BYTES`].
    pub fn head(&self) -> &[u8] {
        match &self.0.place {
            StagedLocation::Memory { blocks, .. } => head_of_blocks(blocks),
            StagedLocation::Big { head, .. } => head,
        }
    }

    /// Returns the length of the body in a commit group.
    pub(crate) fn inline_bytes(&self) -> u64 {
        match &self.0.place {
            StagedLocation::Memory { .. } => self.0.bytes,
            StagedLocation::Big { .. } => 0,
        }
    }

    /// Returns the content for the committer; `None` if it was committed before: one big segment has one name.
    pub(crate) fn content(&self) -> Option<StagedContent> {
        match &self.0.place {
            StagedLocation::Memory { blocks, .. } => Some(StagedContent::Memory(blocks.clone())),
            StagedLocation::Big { segment, committed, .. } => {
                (!committed.load(Ordering::SeqCst)).then_some(StagedContent::Big(*segment))
            }
        }
    }

    /// Retains the body on drop, because after a crash a record may refer to it.
    pub(crate) fn disarm_cleanup(&self) {
        if let StagedLocation::Big { committed, .. } = &self.0.place {
            committed.store(true, Ordering::SeqCst);
        }
    }

    /// Marks the body as referred to by a durable record.
    pub(crate) fn committed(&self) {
        if let StagedLocation::Big { segment, segments, committed, .. } = &self.0.place
            && !committed.swap(true, Ordering::SeqCst)
        {
            segments.commit_big(*segment);
        }
    }
}

impl Drop for StagedInner {
    fn drop(&mut self) {
        if let StagedLocation::Big { segment, segments, committed, .. } = &self.place
            && !committed.load(Ordering::SeqCst)
        {
            segments.abandon_big(*segment);
        }
    }
}
