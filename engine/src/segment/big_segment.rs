//! Writer and reader of big segments (one large body each).
//!
//! Guarantees: when [`BigWriter::finish`] returns Ok, body, block checksums, trailer and file name are durable. The
//! file has no effect until a log record refers to it. Writing fails before it uses the reserve of free disk space.
//! Memory: one write buffer, and 4 bytes per block. Before the commit, [`BigReader`] can read the segment.
//! Non-goals: the name of the object, which is chosen later.

use std::io::ErrorKind;
use std::sync::Arc;

use bytes::Bytes;

use crate::disk::DiskFile;
use crate::error::{Error, Result};
use crate::format::{
    BIG_TRAILER_BYTES, BigTrailer, ByteWriter, CheckClass, Checksum, DiskAddress, Malformed,
    SEGMENT_HEADER_BYTES, SegmentClass, SegmentHeader, SegmentId,
};
use crate::free_space::FreeSpace;
use crate::limits;
use crate::upload_memory::UploadBuffer;

use super::open_segment::read_header;
use super::set::SegmentSet;

/// Writer of one big segment from front to back.
pub(crate) struct BigWriter {
    segments: Arc<SegmentSet>,
    space: Arc<FreeSpace>,
    file: Arc<dyn DiskFile>,
    path: String,
    header: SegmentHeader,
    /// File offset of the buffered bytes.
    offset: u64,
    buffer: UploadBuffer,
    table: Vec<u8>,
    finished: bool,
}

impl BigWriter {
    /// Creates the file. Bytes for which the buffer gets no memory are written through.
    pub(crate) fn create(
        segments: &Arc<SegmentSet>,
        space: &Arc<FreeSpace>,
        buffer: UploadBuffer,
    ) -> Result<Self> {
        space.require_reserve()?;
        let (file, header) = segments.create_big()?;
        let mut writer = Self {
            segments: Arc::clone(segments),
            space: Arc::clone(space),
            file,
            path: header.segment.path(SegmentClass::Big),
            offset: 0,
            buffer,
            table: Vec::new(),
            finished: false,
            header,
        };
        let page = writer.header.encode_page();
        writer.write(&page)?;
        Ok(writer)
    }

    /// Appends the next block of the body; every block except the last has [`limits::BLOCK_BYTES`] bytes.
    pub(crate) fn block(&mut self, bytes: &[u8], checksum: Checksum) -> Result<()> {
        let place = self.place(self.offset + self.buffer.bytes().len() as u64);
        ByteWriter::new(&mut self.table).u32(checksum.bind(place).0);
        self.write(bytes)
    }

    /// Finishes the segment and makes it durable.
    pub(crate) fn finish(mut self, body_bytes: u64, hash: [u8; 32]) -> Result<SegmentId> {
        let table = std::mem::take(&mut self.table);
        self.write(&table)?;
        let trailer = BigTrailer { body_bytes, hash, table: Checksum::of(&table) };
        let place = self.place(self.offset + self.buffer.bytes().len() as u64);
        self.write(&trailer.encode(place))?;
        self.flush()?;
        self.file
            .sync_data()
            .map_err(|source| Error::io(format!("syncing {}", self.path), source))?;
        self.segments.sync_big_name(self.header.segment)?;
        self.segments.upload_before_commit(self.header.segment, SegmentClass::Big)?;
        self.finished = true;
        Ok(self.header.segment)
    }

    fn place(&self, offset: u64) -> DiskAddress {
        self.header.context().at(offset)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        for piece in bytes.chunks(limits::WRITE_BYTES_MAX) {
            if self.buffer.try_extend(piece) {
                continue;
            }
            self.flush()?;
            if !self.buffer.try_extend(piece) {
                self.offset = self.write_through(piece)?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if !self.buffer.bytes().is_empty() {
            self.offset = self.write_through(self.buffer.bytes())?;
            self.buffer.clear();
        }
        Ok(())
    }

    /// Writes bytes at the end of the file, and returns the new end.
    fn write_through(&self, bytes: &[u8]) -> Result<u64> {
        self.space.write(self.file.as_ref(), &self.path, self.offset, bytes)?;
        let end = self.offset + bytes.len() as u64;
        self.file.start_write_back(self.offset..end);
        Ok(end)
    }
}

impl Drop for BigWriter {
    fn drop(&mut self) {
        if !self.finished {
            self.segments.abandon_big(self.header.segment);
        }
    }
}

/// Reader of an uncommitted big segment from front to back.
///
/// Uses no memory map, because a resumed upload may still truncate the file. Memory: one block, and 4 bytes per
/// block of the body.
pub(crate) struct BigReader {
    file: Arc<dyn DiskFile>,
    path: String,
    header: SegmentHeader,
    body_bytes: u64,
    table: Vec<u8>,
    /// Index of the next block.
    block: usize,
}

impl BigReader {
    /// Opens the segment and verifies that its body has this length and hash.
    pub(crate) fn open(
        segments: &SegmentSet,
        id: SegmentId,
        body_bytes: u64,
        hash: &[u8; 32],
    ) -> Result<Self> {
        let path = id.path(SegmentClass::Big);
        let file = segments.disk().open(&path);
        let file = file.map_err(|source| Error::io(format!("opening {path}"), source))?;
        let header = read_header(file.as_ref(), &path, id, SegmentClass::Big, segments.store())?;
        let mut reader = Self { file, path, header, body_bytes, table: Vec::new(), block: 0 };
        let at = BigTrailer::offset(body_bytes);
        let trailer = reader.read(at, BIG_TRAILER_BYTES as u64)?;
        let trailer = BigTrailer::decode(&trailer, reader.header.context().at(at));
        let trailer = trailer.map_err(|reason| reader.damaged(at, reason))?;
        if (trailer.body_bytes, &trailer.hash) != (body_bytes, hash) {
            return Err(reader.damaged(at, Malformed::Misplaced));
        }
        let at = BigTrailer::table_offset(body_bytes);
        reader.table = reader.read(at, BigTrailer::table_bytes(body_bytes))?;
        let verified = trailer.verify_table(&reader.table);
        verified.map_err(|reason| reader.damaged(at, reason))?;
        Ok(reader)
    }

    /// Returns the next block of the body, verified; `None` at its end.
    pub(crate) fn next_block(&mut self) -> Result<Option<Bytes>> {
        let within = self.block as u64 * limits::BLOCK_BYTES as u64;
        let length = self.body_bytes.saturating_sub(within).min(limits::BLOCK_BYTES as u64);
        if length == 0 {
            return Ok(None);
        }
        let at = SEGMENT_HEADER_BYTES as u64 + within;
        let block = self.read(at, length)?;
        let checksum = BigTrailer::block(&self.table, self.block).ok_or(Malformed::Length);
        checksum
            .and_then(|it| it.verify(CheckClass::Block, &block, self.header.context().at(at)))
            .map_err(|reason| self.damaged(at, reason))?;
        self.block += 1;
        Ok(Some(block.into()))
    }

    fn read(&self, at: u64, length: u64) -> Result<Vec<u8>> {
        let mut bytes = vec![0; length as usize];
        match self.file.read_at(at, &mut bytes) {
            Ok(()) => Ok(bytes),
            Err(source) if source.kind() == ErrorKind::UnexpectedEof => {
                Err(self.damaged(at, Malformed::Short))
            }
            Err(source) => Err(Error::io(format!("reading {}", self.path), source)),
        }
    }

    fn damaged(&self, at: u64, reason: Malformed) -> Error {
        Error::corrupt(self.path.clone(), at, reason)
    }
}

/// Completes a file that already contains a body at the body offset to a big segment, and hard-links it as one.
///
/// The old name remains, so that the body survives if the segment is abandoned; on a file system without links the
/// file is renamed instead. Guarantees as [`BigWriter::finish`]. `blocks` are the unbound checksums of the body's
/// blocks.
pub(crate) fn adopt_big(
    segments: &SegmentSet,
    from: &str,
    file: &dyn DiskFile,
    body_bytes: u64,
    blocks: &[Checksum],
    hash: [u8; 32],
) -> Result<SegmentId> {
    let header = segments.begin_big()?;
    let adopted = || -> Result<()> {
        let to = header.segment.path(SegmentClass::Big);
        let io = |source| Error::io(format!("writing {from}"), source);
        let mut end = Vec::with_capacity(4 * blocks.len());
        let mut offset = SEGMENT_HEADER_BYTES as u64;
        for checksum in blocks {
            ByteWriter::new(&mut end).u32(checksum.bind(header.context().at(offset)).0);
            offset += limits::BLOCK_BYTES as u64;
        }
        let trailer = BigTrailer { body_bytes, hash, table: Checksum::of(&end) };
        end.extend(trailer.encode(header.context().at(BigTrailer::offset(body_bytes))));
        let mut at = BigTrailer::table_offset(body_bytes);
        for piece in end.chunks(limits::WRITE_BYTES_MAX) {
            file.write_at(at, &[piece]).map_err(io)?;
            at += piece.len() as u64;
        }
        file.write_at(0, &[&header.encode_page()]).map_err(io)?;
        file.sync_data().map_err(|source| Error::io(format!("syncing {from}"), source))?;
        let linked = segments.disk().link(from, &to);
        let must_move = linked.as_ref().is_err_and(|it| it.kind() == ErrorKind::Unsupported);
        let named = if must_move { segments.disk().rename(from, &to) } else { linked };
        named.map_err(|source| Error::io(format!("naming {to}"), source))?;
        segments.sync_big_name(header.segment)?;
        segments.upload_before_commit(header.segment, SegmentClass::Big)?;
        if !must_move {
            return Ok(());
        }
        // A renamed file needs a sync of the source folder too.
        let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
        let synced = segments.disk().sync_folder(folder);
        synced.map_err(|source| Error::io(format!("syncing {folder}"), source))
    };
    match adopted() {
        Ok(()) => Ok(header.segment),
        Err(error) => {
            segments.abandon_big(header.segment);
            Err(error)
        }
    }
}

const _: () = assert!(SEGMENT_HEADER_BYTES < limits::WRITE_BYTES_MAX);
