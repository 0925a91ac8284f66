//! Memory budget of all uploads.
//!
//! Guarantees: bodies that stay in memory use at most three quarters of the budget, so that the rest is left for
//! buffers of bodies on their way to the disk; memory returns to the budget on drop.
//! Non-goals: what happens to bytes for which there is no memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::mapped_buffer::MappedBuffer;

/// Budget shared by all uploads of a store.
pub(crate) struct UploadMemoryBudget {
    used: AtomicU64,
    bytes_max: u64,
}

/// Share of the budget, returned on drop.
pub(crate) struct UploadMemory {
    budget: Arc<UploadMemoryBudget>,
    bytes: u64,
}

/// Buffer of bytes on their way to the disk. Its memory counts against the budget of all uploads and is retained until
/// the buffer is dropped.
pub struct UploadBuffer {
    /// `None` before the first bytes.
    buffer: Option<MappedBuffer>,
    bytes_max: usize,
    memory: UploadMemory,
}

impl UploadMemoryBudget {
    /// Creates a budget of this many bytes.
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self { used: AtomicU64::new(0), bytes_max }
    }

    /// Returns the number of bytes in use.
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }
}

impl UploadMemory {
    /// Creates an empty share.
    pub(crate) fn new(budget: Arc<UploadMemoryBudget>) -> Self {
        Self { budget, bytes: 0 }
    }

    /// Grows to this many bytes of a body that stays in memory. Returns false, and changes nothing, if the bodies in
    /// memory would leave less than a quarter of the budget.
    pub(crate) fn grow_body(&mut self, bytes: u64) -> bool {
        self.grow(bytes, self.budget.bytes_max - self.budget.bytes_max / 4)
    }

    /// Changes the share to this many bytes, even beyond the budget: for memory that an upload cannot do without.
    pub(crate) fn set(&mut self, bytes: u64) {
        self.budget.used.fetch_add(bytes, Ordering::Relaxed);
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = bytes;
    }

    /// Creates an empty buffer of at most this many bytes.
    pub(crate) fn buffer(&self, bytes_max: usize) -> UploadBuffer {
        UploadBuffer { buffer: None, bytes_max, memory: Self::new(Arc::clone(&self.budget)) }
    }

    fn grow(&mut self, bytes: u64, budget_bytes: u64) -> bool {
        if bytes <= self.bytes {
            return true;
        }
        let more = bytes - self.bytes;
        let used = self.budget.used.fetch_add(more, Ordering::Relaxed);
        let fits = used.saturating_add(more) <= budget_bytes;
        if fits {
            self.bytes = bytes;
        } else {
            self.budget.used.fetch_sub(more, Ordering::Relaxed);
        }
        fits
    }
}

impl Drop for UploadMemory {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl UploadBuffer {
    /// Appends bytes. Returns false, and appends nothing, if they exceed the size of the buffer or the budget.
    pub fn try_extend(&mut self, bytes: &[u8]) -> bool {
        if bytes.len() > self.room() {
            return false;
        }
        let length = self.bytes().len() + bytes.len();
        if !self.memory.grow(length as u64, self.memory.budget.bytes_max) {
            return false;
        }
        if self.buffer.is_none() {
            self.buffer = MappedBuffer::new(self.bytes_max).ok();
        }
        self.buffer.as_mut().is_some_and(|buffer| buffer.try_extend(bytes))
    }

    /// Returns the buffered bytes.
    pub fn bytes(&self) -> &[u8] {
        self.buffer.as_ref().map_or(&[], MappedBuffer::bytes)
    }

    /// Returns how many bytes fit, if the budget has memory for them.
    pub fn room(&self) -> usize {
        self.bytes_max - self.bytes().len()
    }

    /// Removes the bytes. The memory is retained.
    pub fn clear(&mut self) {
        if let Some(buffer) = &mut self.buffer {
            buffer.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_leave_a_quarter_of_the_budget_to_buffers() {
        let budget = Arc::new(UploadMemoryBudget::new(4_000));
        let mut body = UploadMemory::new(Arc::clone(&budget));
        assert!(body.grow_body(3_000) && !body.grow_body(3_001) && body.grow_body(3_000));
        let mut buffer = body.buffer(1_000);
        assert!(buffer.try_extend(&[1; 600]) && !buffer.try_extend(&[2; 401]));
        assert_eq!(budget.used(), 3_600, "as much as was written");
        assert!(buffer.try_extend(&[2; 400]));
        assert_eq!((budget.used(), buffer.bytes().len(), buffer.room()), (4_000, 1_000, 0));
        assert!(!body.buffer(1_000).try_extend(&[3]), "the budget is used up");
        buffer.clear();
        assert_eq!((budget.used(), buffer.room()), (4_000, 1_000), "its memory is retained");
        body.set(3_500);
        assert_eq!(budget.used(), 4_500, "what an upload cannot do without");
        drop((body, buffer));
        assert_eq!(budget.used(), 0);
    }
}
