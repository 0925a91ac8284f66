//! Output of bits, the least significant first.

/// Bytes of a stream, and the bits of the last one.
pub(super) struct BitWriter {
    bytes: Vec<u8>,
    pending: u64,
    /// Number of pending bits, below 32.
    pending_count: u32,
}

/// Position in a stream.
pub(super) struct Position {
    length: usize,
    pending: u64,
    count: u32,
}

impl BitWriter {
    pub(super) fn new() -> Self {
        Self { bytes: Vec::new(), pending: 0, pending_count: 0 }
    }

    /// Writes up to 32 bits of a value, whose other bits are 0.
    pub(super) fn write(&mut self, value: u32, count: u32) {
        self.pending |= u64::from(value) << self.pending_count;
        self.pending_count += count;
        if self.pending_count >= 32 {
            self.bytes.extend_from_slice(&(self.pending as u32).to_le_bytes());
            self.pending >>= 32;
            self.pending_count -= 32;
        }
    }

    /// Writes whole bytes, from the next byte boundary on.
    pub(super) fn write_bytes(&mut self, bytes: &[u8]) {
        self.align();
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the bytes, of which the last one is padded with 0.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.align();
        self.bytes
    }

    /// Returns the number of bits.
    pub(super) fn bit_count(&self) -> usize {
        8 * self.bytes.len() + self.pending_count as usize
    }

    /// Returns the position, to which [`Self::rewind`] returns.
    pub(super) fn position(&self) -> Position {
        Position { length: self.bytes.len(), pending: self.pending, count: self.pending_count }
    }

    /// Removes what was written since a position.
    pub(super) fn rewind(&mut self, to: Position) {
        self.bytes.truncate(to.length);
        (self.pending, self.pending_count) = (to.pending, to.count);
    }

    fn align(&mut self) {
        let count = self.pending_count.div_ceil(8) as usize;
        let pending = self.pending.to_le_bytes();
        self.bytes.extend_from_slice(pending.get(..count).unwrap_or_default());
        (self.pending, self.pending_count) = (0, 0);
    }
}
