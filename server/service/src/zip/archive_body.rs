//! Response body with a zip archive.
//!
//! Guarantees: pieces are read by the threads of `object_body`, one at a time; memory holds one piece, the entries that
//! are not sent yet, and the directory of those that are. Non-goals: which files there are.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::{thread, vec};

use bytes::{Bytes, BytesMut};
use engine::limits::READ_BYTES_MAX;
use engine::{Result, Store};
use http_body::{Body, Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::contents::{ZipContents, ZipEntry};
use super::encoding::write_end;
use crate::object_body::DiskReadPool;

/// Writer of an archive, piece by piece.
pub(super) struct ArchiveWriter {
    store: Store,
    entries: vec::IntoIter<ZipEntry>,
    root_bytes: usize,
    /// File that is being sent, and the offset of its next byte.
    file: Option<(engine::Body, u64)>,
    /// Central directory, until the end of the archive is written.
    directory: Option<Vec<u8>>,
    entry_count: u64,
    /// Bytes written: the offset of the next entry.
    written: u64,
    /// Pieces whose buffers are used again once they are sent. Each piece is read on another thread: the allocator
    /// would retain memory for each of these.
    sent: Vec<Bytes>,
}

/// Maximum buffers, of twice [`PIECE_BYTES`]: more than a connection holds.
const BUFFERS_MAX: usize = 8;
/// Bytes from which a piece is sent, so that small files are sent together.
const PIECE_BYTES: usize = 64 * 1_024;

impl ArchiveWriter {
    pub(super) fn new(store: Store, contents: ZipContents) -> Self {
        let (entries, root_bytes) = contents.into_entries();
        Self {
            store,
            entry_count: entries.len() as u64,
            entries: entries.into_iter(),
            root_bytes,
            file: None,
            directory: Some(Vec::new()),
            written: 0,
            sent: Vec::new(),
        }
    }

    /// Returns the next piece, which is empty at the end. Blocks on the disk.
    fn next_piece(&mut self) -> Result<Bytes> {
        let mut piece = self.buffer();
        while piece.len() < PIECE_BYTES {
            if let Some((body, offset)) = self.file.take() {
                let left = body.bytes() - offset;
                if left > PIECE_BYTES as u64 {
                    if piece.is_empty() {
                        return self.read_file(body, offset);
                    }
                    self.file = Some((body, offset));
                    break;
                }
                piece.extend_from_slice(&self.read_file(body, offset)?);
            } else if let Some(entry) = self.entries.next() {
                self.begin_entry(&entry, &mut piece)?;
            } else {
                let Some(mut end) = self.directory.take() else { break };
                write_end(self.entry_count, self.written, end.len() as u64, &mut end);
                piece.extend_from_slice(&end);
            }
        }
        let piece = piece.freeze();
        if self.sent.len() < BUFFERS_MAX {
            self.sent.push(piece.clone());
        }
        Ok(piece)
    }

    /// Returns an empty buffer.
    fn buffer(&mut self) -> BytesMut {
        let free = self.sent.iter().position(Bytes::is_unique);
        let used = free.and_then(|at| self.sent.swap_remove(at).try_into_mut().ok());
        let mut buffer = used.unwrap_or_else(|| BytesMut::with_capacity(2 * PIECE_BYTES));
        buffer.clear();
        buffer
    }

    /// Appends the local header of an entry, and opens its file.
    fn begin_entry(&mut self, entry: &ZipEntry, piece: &mut BytesMut) -> Result<()> {
        let body = self.store.body(&entry.object)?;
        let header = entry.header(self.root_bytes, body.crc32()?);
        if let Some(directory) = &mut self.directory {
            header.write_central(self.written, directory);
        }
        let start = piece.len();
        header.write_local(piece);
        self.written += (piece.len() - start) as u64;
        self.file = (body.bytes() > 0).then_some((body, 0));
        Ok(())
    }

    /// Reads the next bytes of a file, up to a multiple of what the engine reads at once.
    fn read_file(&mut self, body: engine::Body, offset: u64) -> Result<Bytes> {
        let read_max = READ_BYTES_MAX as u64;
        let end = ((offset / read_max + 1) * read_max).min(body.bytes());
        let bytes = body.read(offset..end)?;
        self.written += bytes.len() as u64;
        self.file = (end < body.bytes()).then_some((body, end));
        Ok(bytes)
    }
}

/// Response body.
pub(super) struct ArchiveBody {
    state: State,
    disk_reads: DiskReadPool,
    unsent_bytes: u64,
    /// Memory of the entries.
    _reserved: OwnedSemaphorePermit,
}

enum State {
    Ready(Bytes, Box<ArchiveWriter>),
    Reading(oneshot::Receiver<thread::Result<(Result<Bytes>, Box<ArchiveWriter>)>>),
    Ended,
}

impl ArchiveBody {
    /// Reads the first piece of an archive of this length.
    pub(super) async fn start(
        writer: ArchiveWriter,
        bytes: u64,
        disk_reads: DiskReadPool,
        reserved: OwnedSemaphorePermit,
    ) -> Result<Self> {
        let (state, unsent_bytes) = (State::Ended, bytes);
        let mut body = Self { state, disk_reads, unsent_bytes, _reserved: reserved };
        body.read(Box::new(writer));
        let (first, writer) = std::future::poll_fn(|context| body.poll_read(context)).await?;
        body.state = State::Ready(first, writer);
        Ok(body)
    }

    fn read(&mut self, mut writer: Box<ArchiveWriter>) {
        let is_remote = writer.file.as_ref().is_some_and(|(body, _)| body.is_remote());
        let read = move || (writer.next_piece(), writer);
        self.state = State::Reading(self.disk_reads.submit(is_remote, read));
    }

    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<(Bytes, Box<ArchiveWriter>)>> {
        let State::Reading(reading) = &mut self.state else {
            return Poll::Ready(Err(engine::Error::Closed));
        };
        // A panic is reported where it happens; the body is cut off.
        let read = ready!(Pin::new(reading).poll(context)).ok().and_then(thread::Result::ok);
        self.state = State::Ended;
        let Some((piece, writer)) = read else { return Poll::Ready(Err(engine::Error::Closed)) };
        Poll::Ready(piece.map(|piece| (piece, writer)))
    }
}

impl Body for ArchiveBody {
    type Data = Bytes;
    type Error = engine::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>>>> {
        let read = match std::mem::replace(&mut self.state, State::Ended) {
            State::Ended => return Poll::Ready(None),
            State::Ready(piece, writer) => Ok((piece, writer)),
            State::Reading(reading) => {
                self.state = State::Reading(reading);
                ready!(self.poll_read(context))
            }
        };
        match read {
            Ok((piece, _)) if piece.is_empty() => Poll::Ready(None),
            Ok((piece, writer)) => {
                self.unsent_bytes = self.unsent_bytes.saturating_sub(piece.len() as u64);
                if self.unsent_bytes > 0 {
                    self.read(writer);
                }
                Poll::Ready(Some(Ok(Frame::data(piece))))
            }
            Err(error) => {
                tracing::error!(%error, "read error while sending a zip archive; connection aborted");
                Poll::Ready(Some(Err(error)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.unsent_bytes)
    }
}
