//! Scrubs a big segment: trailer, block table, blocks, content hash.

use super::DamageCollector;
use super::segment_scrub::SegmentFile;
use crate::error::{Error, Result};
use crate::format::{
    BIG_BODY_OFFSET, BIG_TRAILER_BYTES, BigTrailer, CheckClass, Malformed, SegmentContext,
};
use crate::limits;

/// Scrub of a big segment. It ends with the first damage, because the segment has only one object.
pub(super) struct BigScrub {
    trailer: BigTrailer,
    table: Vec<u8>,
    /// Number of body bytes read.
    done: u64,
    hasher: blake3::Hasher,
    is_done: bool,
}

impl BigScrub {
    /// Reads trailer and block table; `None` if they are damaged.
    pub(super) fn begin(of: &SegmentFile, findings: &mut DamageCollector) -> Result<Option<Self>> {
        let io = |source| Error::io(format!("reading {}", of.path), source);
        let file_bytes = of.file.bytes_len().map_err(io)?;
        let trailer_at = file_bytes.saturating_sub(BIG_TRAILER_BYTES as u64);
        let trailer = of.read(trailer_at, BIG_TRAILER_BYTES as u64)?.and_then(|bytes| {
            let place = of.header.context().at(trailer_at);
            BigTrailer::decode(&bytes, place).map_err(|reason| (trailer_at, reason))
        });
        let trailer = match trailer {
            Ok(trailer) => trailer,
            Err((offset, reason)) => {
                findings.structure(offset, None, reason);
                return Ok(None);
            }
        };
        let table_at = BigTrailer::table_offset(trailer.body_bytes);
        let table = of.read(table_at, trailer_at.saturating_sub(table_at))?.and_then(|table| {
            let verified = trailer.verify_table(&table);
            verified.map(|()| table).map_err(|reason| (table_at, reason))
        });
        match table {
            Ok(table) => {
                let hasher = blake3::Hasher::new();
                Ok(Some(Self { trailer, table, done: 0, hasher, is_done: false }))
            }
            Err((offset, reason)) => {
                findings.structure(offset, None, reason);
                Ok(None)
            }
        }
    }

    /// Reads one piece and returns its length; `None` at the end.
    pub(super) fn step(
        &mut self,
        of: &SegmentFile,
        findings: &mut DamageCollector,
    ) -> Result<Option<u64>> {
        let left = self.trailer.body_bytes.saturating_sub(self.done);
        if self.is_done {
            return Ok(None);
        }
        if left == 0 {
            self.is_done = true;
            if self.hasher.finalize() != self.trailer.hash {
                findings.structure(BIG_BODY_OFFSET, None, Malformed::Checksum);
            }
            return Ok(None);
        }
        let length = left.min(limits::WRITE_BYTES_MAX as u64);
        let read = of.read(BIG_BODY_OFFSET + self.done, length)?;
        match read.and_then(|piece| self.check(&piece, of.header.context())) {
            Ok(()) => self.done += length,
            Err((offset, reason)) => {
                self.is_done = true;
                findings.structure(offset, None, reason);
            }
        }
        Ok(Some(length))
    }

    fn check(&mut self, piece: &[u8], context: SegmentContext) -> Result<(), (u64, Malformed)> {
        let mut at = self.done;
        for block in piece.chunks(limits::BLOCK_BYTES) {
            let offset = BIG_BODY_OFFSET + at;
            let index = usize::try_from(at / limits::BLOCK_BYTES as u64).unwrap_or(usize::MAX);
            let checksum = BigTrailer::block(&self.table, index).ok_or(Malformed::Length);
            checksum
                .and_then(|checksum| checksum.verify(CheckClass::Block, block, context.at(offset)))
                .map_err(|reason| (offset, reason))?;
            at += block.len() as u64;
        }
        self.hasher.update(piece);
        Ok(())
    }
}

const _: () = assert!(limits::WRITE_BYTES_MAX.is_multiple_of(limits::BLOCK_BYTES));
