//! Pool of block buffers for uploads.
//!
//! Without the pool, each body would map, zero and unmap its memory.
//!
//! Guarantees: caches at most [`limits::UPLOAD_POOL_BLOCKS_MAX`] unused blocks, and returns others to the system at
//! once; a short body, or the short end of a body, uses at most twice its size.
//! Non-goals: checksums, budgets.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::limits;
use crate::mapped_buffer::MappedBuffer;

/// Unused blocks.
#[derive(Default)]
pub(crate) struct BlockPool(Mutex<Vec<MappedBuffer>>);

/// Buffer of at most [`limits::BLOCK_BYTES`] of a body.
pub(super) enum Block {
    /// At most a quarter of a block.
    Short(Vec<u8>),
    Whole(PooledBlock),
}

/// Memory of a whole block, which returns to its pool on drop.
pub(super) struct PooledBlock {
    /// `None` only during the drop.
    buffer: Option<MappedBuffer>,
    pool: Arc<BlockPool>,
}

impl BlockPool {
    fn take(self: &Arc<Self>) -> Result<PooledBlock> {
        let spare = self.lock().pop();
        let buffer = spare.map_or_else(|| MappedBuffer::new(limits::BLOCK_BYTES), Ok);
        let buffer = buffer.map_err(|source| Error::io("allocating a block", source))?;
        Ok(PooledBlock { buffer: Some(buffer), pool: Arc::clone(self) })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<MappedBuffer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Block {
    /// Returns the memory of the blocks of a body that has this many bytes so far.
    pub(super) fn memory_bytes(body_bytes: u64) -> u64 {
        Self::rounded_up(body_bytes, SHORT_BYTES_MAX)
    }

    /// Returns the memory of the blocks of a complete body, after [`Block::into_bytes`] of the last.
    pub(super) fn finished_memory_bytes(body_bytes: u64) -> u64 {
        Self::rounded_up(body_bytes, COPIED_BYTES_MAX)
    }

    /// Rounds up to whole blocks if the last block has more than `short_bytes_max` bytes.
    fn rounded_up(body_bytes: u64, short_bytes_max: usize) -> u64 {
        let block = limits::BLOCK_BYTES as u64;
        let is_short = body_bytes % block <= short_bytes_max as u64;
        if is_short { body_bytes } else { body_bytes.next_multiple_of(block) }
    }

    /// Returns the bytes so far.
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Short(bytes) => bytes,
            Self::Whole(block) => block.as_ref(),
        }
    }

    /// Returns the number of bytes that still fit.
    pub(super) fn room(&self) -> usize {
        limits::BLOCK_BYTES - self.bytes().len()
    }

    /// Appends bytes. Fails if they do not fit, or if the system has no memory.
    pub(super) fn extend(&mut self, more: &[u8], pool: &Arc<BlockPool>) -> Result<()> {
        match self {
            Self::Short(bytes) if bytes.len() + more.len() <= SHORT_BYTES_MAX => {
                bytes.extend_from_slice(more);
                Ok(())
            }
            Self::Short(bytes) => {
                let mut block = pool.take()?;
                block.extend(bytes)?;
                block.extend(more)?;
                *self = Self::Whole(block);
                Ok(())
            }
            Self::Whole(block) => block.extend(more),
        }
    }

    /// Clears the buffer.
    pub(super) fn clear(&mut self) {
        match self {
            Self::Short(bytes) => bytes.clear(),
            Self::Whole(block) => block.clear(),
        }
    }

    /// Converts the buffer to shared bytes. The memory of a whole block returns to the pool when the last clone is
    /// dropped, or immediately if at most half of it is used.
    pub(super) fn into_bytes(self) -> Bytes {
        match self {
            Self::Short(bytes) => bytes.into(),
            Self::Whole(block) if block.as_ref().len() > COPIED_BYTES_MAX => {
                Bytes::from_owner(block)
            }
            Self::Whole(block) => Bytes::copy_from_slice(block.as_ref()),
        }
    }
}

impl Default for Block {
    fn default() -> Self {
        Self::Short(Vec::new())
    }
}

/// Maximum bytes of a block that does not get the memory of a whole block.
const SHORT_BYTES_MAX: usize = limits::BLOCK_BYTES / 4;
/// Maximum bytes of a last block that are copied out of the memory of a whole block.
const COPIED_BYTES_MAX: usize = limits::BLOCK_BYTES / 2;

impl PooledBlock {
    fn extend(&mut self, more: &[u8]) -> Result<()> {
        let fits = self.buffer.as_mut().is_some_and(|buffer| buffer.try_extend(more));
        if fits { Ok(()) } else { Err(Error::TooLarge("a block has at most 64 KiB")) }
    }

    fn clear(&mut self) {
        if let Some(buffer) = &mut self.buffer {
            buffer.clear();
        }
    }
}

impl AsRef<[u8]> for PooledBlock {
    fn as_ref(&self) -> &[u8] {
        self.buffer.as_ref().map_or(&[], MappedBuffer::bytes)
    }
}

impl Drop for PooledBlock {
    fn drop(&mut self) {
        self.clear();
        let mut spare = self.pool.lock();
        if spare.len() < limits::UPLOAD_POOL_BLOCKS_MAX {
            spare.extend(self.buffer.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(bytes: usize, spare: &Arc<BlockPool>) -> Block {
        let mut block = Block::default();
        block.extend(&vec![7; bytes], spare).unwrap();
        block
    }

    #[test]
    fn pool_reuses_block_after_last_clone_is_dropped() {
        let spare = Arc::default();
        let first = block(limits::BLOCK_BYTES, &spare).into_bytes();
        let (address, clone) = (first.as_ptr(), first.clone());
        drop(first);
        let second = block(limits::BLOCK_BYTES, &spare).into_bytes();
        assert_ne!(second.as_ptr(), address, "a clone still shows it");
        drop(clone);
        let third = block(limits::BLOCK_BYTES - 1, &spare);
        assert_eq!(third.bytes().as_ptr(), address);
        assert_eq!(third.bytes(), vec![7; limits::BLOCK_BYTES - 1]);
    }

    #[test]
    fn short_body_uses_a_small_buffer() {
        let spare: Arc<BlockPool> = Arc::default();
        let quarter = limits::BLOCK_BYTES / 4;
        let short = block(quarter, &spare);
        assert!(matches!(&short, Block::Short(bytes) if bytes.capacity() <= 2 * quarter));
        assert_eq!(short.into_bytes(), vec![7; quarter]);
        assert_eq!(spare.lock().len(), 0);
        // Longer than a quarter of a block, but shorter than half.
        let mut end = block(quarter, &spare);
        end.extend(&[8], &spare).unwrap();
        let end = end.into_bytes();
        assert_eq!((end.len(), end[quarter]), (quarter + 1, 8));
        assert_eq!(spare.lock().len(), 1, "the block went back at once");
    }

    #[test]
    fn pool_size_is_bounded() {
        let spare: Arc<BlockPool> = Arc::default();
        let more = limits::UPLOAD_POOL_BLOCKS_MAX + 5;
        let blocks: Vec<_> = (0..more).map(|_| block(limits::BLOCK_BYTES, &spare)).collect();
        drop(blocks);
        assert_eq!(spare.lock().len(), limits::UPLOAD_POOL_BLOCKS_MAX);
    }
}
