//! Pool of block buffers for uploads.
//!
//! Without the pool, the allocator would return the memory of each body to the system, which would map and zero it
//! again for the next body.
//!
//! Guarantees: caches at most [`limits::UPLOAD_POOL_BLOCKS_MAX`] unused blocks; a short body, or the short end of a
//! body, uses at most twice its size.
//! Non-goals: checksums, budgets.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::limits;

/// Unused blocks.
#[derive(Default)]
pub(super) struct BlockPool(Mutex<Vec<Vec<u8>>>);

/// Buffer of at most [`limits::BLOCK_BYTES`] of a body.
#[derive(Default)]
pub(super) struct Block {
    bytes: Vec<u8>,
    /// Pool to return the memory of a whole block to.
    from: Option<Arc<BlockPool>>,
}

impl BlockPool {
    fn take(&self) -> Vec<u8> {
        self.lock().pop().unwrap_or_else(|| Vec::with_capacity(limits::BLOCK_BYTES))
    }

    fn release(&self, mut bytes: Vec<u8>) {
        bytes.clear();
        let mut spare = self.lock();
        if spare.len() < limits::UPLOAD_POOL_BLOCKS_MAX {
            spare.push(bytes);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Block {
    /// Returns the bytes so far.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the number of bytes that still fit.
    pub(super) fn room(&self) -> usize {
        limits::BLOCK_BYTES - self.bytes.len()
    }

    /// Appends bytes, which must fit. Above a quarter of a block, the buffer gets the memory of a whole block.
    pub(super) fn extend(&mut self, more: &[u8], spare: &Arc<BlockPool>) {
        let is_long = self.bytes.len() + more.len() > limits::BLOCK_BYTES / 4;
        if is_long && self.from.is_none() {
            let mut bytes = spare.take();
            bytes.extend_from_slice(&self.bytes);
            *self = Self { bytes, from: Some(Arc::clone(spare)) };
        }
        self.bytes.extend_from_slice(more);
    }

    /// Clears the buffer.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Converts the buffer to shared bytes. The memory of a whole block returns to the pool when the last clone is
    /// dropped, or immediately if less than half of it is used.
    pub(super) fn into_bytes(mut self) -> Bytes {
        match (self.from.is_some(), self.bytes.len() > limits::BLOCK_BYTES / 2) {
            (false, _) => std::mem::take(&mut self.bytes).into(),
            (true, true) => Bytes::from_owner(self),
            (true, false) => Bytes::copy_from_slice(&self.bytes),
        }
    }
}

impl AsRef<[u8]> for Block {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if let Some(from) = self.from.take() {
            from.release(std::mem::take(&mut self.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(bytes: usize, spare: &Arc<BlockPool>) -> Block {
        let mut block = Block::default();
        block.extend(&vec![7; bytes], spare);
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
        assert!(short.from.is_none() && short.bytes.capacity() <= 2 * quarter);
        assert_eq!(short.into_bytes(), vec![7; quarter]);
        assert_eq!(spare.lock().len(), 0);
        // Longer than a quarter of a block, but shorter than half.
        let mut end = block(quarter, &spare);
        end.extend(&[8], &spare);
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
