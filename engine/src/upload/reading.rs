//! A staged body, read before it is committed: what is made of it can then be committed with it.
//!
//! Promises: the blocks come in order, and those of a big body are checked against their checksums, so that nothing is
//! made of bytes that rotted on the disk; memory is one block, and 4 bytes for each block of a big body. The body stays
//! as long as a reader is about. Never here: what the bytes mean.

use bytes::Bytes;

use super::{Staged, StagedPlace};
use crate::error::Result;
use crate::segment::BigReader;

/// A staged body, open for reading from front to back. It is one of the clones of its [`Staged`].
pub struct StagedReader {
    rest: Rest,
    /// Keeps the file of a big one.
    _staged: Staged,
}

/// What was not read yet.
enum Rest {
    Memory(std::vec::IntoIter<Bytes>),
    Big(Box<BigReader>),
}

impl Staged {
    /// Opens the body for reading, whether or not it is committed later. Waits for the disk when it
    /// [is big](Self::is_big).
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
    /// The next block of the body, at most [`limits::BLOCK_BYTES`](crate::limits::BLOCK_BYTES) bytes; none at its end.
    /// Waits for the disk when the body is big.
    ///
    /// # Errors
    ///
    /// As of [`Staged::reader`]; the same block can be tried again.
    pub fn next_block(&mut self) -> Result<Option<Bytes>> {
        match &mut self.rest {
            Rest::Memory(blocks) => Ok(blocks.next()),
            Rest::Big(reader) => reader.next_block(),
        }
    }
}
