//! Buffer of fixed capacity in an anonymous memory map.
//!
//! For memory that another thread drops than the one that fills it, such as the blocks of uploads: an allocator retains
//! such memory until the allocating thread next needs some, whereas a map returns to the system at once.
//!
//! Guarantees: the part that was never written takes no memory.

use std::io;

use memmap2::MmapMut;

/// Buffer in a memory map.
pub(crate) struct MappedBuffer {
    map: MmapMut,
    length: usize,
}

impl MappedBuffer {
    /// Creates an empty buffer for this many bytes.
    pub(crate) fn new(capacity: usize) -> io::Result<Self> {
        Ok(Self { map: MmapMut::map_anon(capacity)?, length: 0 })
    }

    /// Returns the content.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.map.get(..self.length).unwrap_or_default()
    }

    /// Appends bytes. Returns false, and appends nothing, if they do not fit.
    pub(crate) fn try_extend(&mut self, bytes: &[u8]) -> bool {
        let end = self.length.saturating_add(bytes.len());
        let Some(room) = self.map.get_mut(self.length..end) else { return false };
        room.copy_from_slice(bytes);
        self.length = end;
        true
    }

    /// Removes the content. Its memory is retained.
    pub(crate) fn clear(&mut self) {
        self.length = 0;
    }
}
