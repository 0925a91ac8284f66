//! Reads a staged body before it is committed, so that derived objects can be committed together with it.
//!
//! Guarantees: blocks are returned in order, and those of a big body are verified against their checksums, so that
//! nothing is derived from corrupt bytes; memory is one block, and 4 bytes per block of a big body. The body exists
//! at least as long as its readers.
//! Non-goals: the meaning of the bytes.

use bytes::Bytes;

use super::{Staged, StagedPlace};
use crate::error::Result;
use crate::segment::BigReader;

/// Reader of a staged body, from front to back. Holds a clone of its [`Staged`].
pub struct StagedReader {
    rest: Rest,
    /// Prevents the removal of a big segment.
    _staged: Staged,
}

/// Unread part of the body.
enum Rest {
    Memory(std::vec::IntoIter<Bytes>),
    Big(Box<BigReader>),
}

impl Staged {
    /// Opens the body for reading, whether or not it is committed later. Waits for the disk if it [is
    /// big](Self::is_big).
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`](crate::Error::Corrupt) and [`Error::Io`](crate::Error::Io), of a big one.
    pub fn reader(&self) -> Result<StagedReader> {
        let rest = match &self.0.place {
            StagedPlace::Memory { blocks, .. } => {
                let blocks: Vec<_> = blocks.iter().map(|(block, _)| block.clone()).collect();
                Rest::Memory(blocks.into_iter())
            }
            StagedPlace::Big { segment, segments, .. } => {
                let reader = BigReader::open(segments, *segment, self.bytes(), self.hash())?;
                Rest::Big(Box::new(reader))
            }
        };
        Ok(StagedReader { rest, _staged: self.clone() })
    }
}

impl StagedReader {
    /// Returns the next block of the body, at most [`limits::BLOCK_BYTES`](crate::limits::BLOCK_BYTES) bytes; `None`
    /// at its end. Waits for the disk if the body is big.
    ///
    /// # Errors
    ///
    /// As of [`Staged::reader`]; the same block can be retried.
    pub fn next_block(&mut self) -> Result<Option<Bytes>> {
        match &mut self.rest {
            Rest::Memory(blocks) => Ok(blocks.next()),
            Rest::Big(reader) => reader.next_block(),
        }
    }
}
