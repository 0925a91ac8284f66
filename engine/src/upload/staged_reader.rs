//! Reads a staged body before it is committed, so that derived objects can be committed together with it.
//!
//! Guarantees: blocks are returned in order, and those of a big body are verified against their checksums, so that
//! nothing is derived from corrupt bytes; memory is one block, and 4 bytes per block of a big body. The body exists
//! at least as long as its readers.
//! Non-goals: the meaning of the bytes.

use bytes::Bytes;

use super::{StagedBody, StagedLocation};
use crate::error::Result;
use crate::segment::BigReader;

/// Reader of a staged body, from front to back. Holds a clone of its [`StagedBody`].
pub struct StagedReader {
    rest: ReaderState,
    /// Prevents the removal of a big segment.
    _staged: StagedBody,
}

/// Unread part of the body.
enum ReaderState {
    Memory(std::vec::IntoIter<Bytes>),
    Big(Box<BigReader>),
}

impl StagedBody {
    /// Opens the body for reading, whether or not it will be committed. Waits for the disk if the body [is
    /// big](Self::is_big).
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`](crate::Error::Corrupt) and [`Error::Io`](crate::Error::Io), if the body is big.
    pub fn reader(&self) -> Result<StagedReader> {
        let rest = match &self.0.place {
            StagedLocation::Memory { blocks, .. } => {
                let blocks: Vec<_> = blocks.iter().map(|(block, _)| block.clone()).collect();
                ReaderState::Memory(blocks.into_iter())
            }
            StagedLocation::Big { segment, segments, .. } => {
                let reader = BigReader::open(segments, *segment, self.bytes(), self.hash())?;
                ReaderState::Big(Box::new(reader))
            }
        };
        Ok(StagedReader { rest, _staged: self.clone() })
    }
}

impl StagedReader {
    /// Returns the next block of the body, at most [`limits::BLOCK_BYTES`](crate::limits::BLOCK_BYTES) bytes; `None` at
    /// the end of the body. Waits for the disk if the body is big.
    ///
    /// # Errors
    ///
    /// Those of [`StagedBody::reader`]. The call can be retried, for the same block.
    pub fn next_block(&mut self) -> Result<Option<Bytes>> {
        match &mut self.rest {
            ReaderState::Memory(blocks) => Ok(blocks.next()),
            ReaderState::Big(reader) => reader.next_block(),
        }
    }
}
