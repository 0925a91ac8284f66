//! Resumable upload: a body in a file that survives restarts.
//!
//! The file is in `uploads/` and has the layout of a big segment with a blank header page: the body is at its final
//! offset. A complete body gets header, block table and trailer, and a hard link as a big segment, so no byte is
//! written twice. A body that turns out to be small is read into memory.
//!
//! Guarantees: the state returned by [`ResumableUpload::sync`] survives a crash and a failed commit; an upload is
//! resumed only if its bytes are those received, and never while a record may refer to them. Opening a store does
//! not touch these files: the caller removes them.
//! Non-goals: expiry and ownership of uploads.

use std::io;
use std::sync::Arc;

use uuid::Uuid;

use super::{StagedBody, StagedInner, StagedLocation, UPLOAD_HEAD_BYTES, Upload, Uploads};
use crate::disk::DiskFile;
use crate::error::{Error, Result};
use crate::format::{
    Checksum, Malformed, RunningChecksum, SEGMENT_HEADER_BYTES, SegmentClass, SegmentHeader,
};
use crate::limits;
use crate::segment::adopt_big;
use crate::upload_memory::{UploadBuffer, UploadMemory};

/// Folder of resumable uploads.
pub(crate) const UPLOADS_FOLDER: &str = "uploads";

/// State of a resumable upload: length and hash of the received bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResumePoint {
    /// Number of bytes received.
    pub bytes: u64,
    /// BLAKE3 hash of the received bytes.
    pub hash: [u8; 32],
}

/// Upload to a file that survives restarts. When it is dropped, the file remains, with at least the bytes of the last
/// [`ResumableUpload::sync`].
pub struct ResumableUpload {
    uploads: Uploads,
    path: String,
    file: Arc<dyn DiskFile>,
    hasher: blake3::Hasher,
    head: Vec<u8>,
    bytes: u64,
    /// Unbound checksums of the complete blocks.
    blocks: Vec<Checksum>,
    /// Checksum of the incomplete block.
    running: RunningChecksum,
    /// Bytes that are not in the file yet.
    buffer: UploadBuffer,
    is_named: bool,
}

impl Uploads {
    /// Begins an upload. Fails with `AlreadyExists` if the id is in use.
    pub(crate) fn begin(&self, id: Uuid) -> Result<ResumableUpload> {
        self.space.require_reserve()?;
        let disk = self.segments.disk();
        let path = path_of(id);
        let made = disk.create_folder(UPLOADS_FOLDER).and_then(|()| disk.create(&path));
        let file = made.map_err(|source| Error::io(format!("making {path}"), source))?;
        Ok(self.resumable(path, file, false))
    }

    /// Resumes an upload at the given state and drops later bytes. Reads all of its bytes. Fails with `ResourceBusy`
    /// while the file is also a big segment, which a record may refer to.
    pub(crate) fn resume(&self, id: Uuid, received: ResumePoint) -> Result<ResumableUpload> {
        let path = path_of(id);
        let io = |source| Error::io(format!("reading {path}"), source);
        let file = self.segments.disk().open(&path).map_err(io)?;
        self.require_no_segment(&path, file.as_ref())?;
        let end = BODY_OFFSET + received.bytes;
        if received.bytes > 0 && file.bytes_len().map_err(io)? < end {
            return Err(Error::corrupt(path, end, Malformed::Short));
        }
        file.set_len(end).map_err(io)?;
        let mut upload = self.resumable(path.clone(), Arc::clone(&file), true);
        upload.read_again(received.bytes, |upload, piece| {
            upload.count(piece);
            Ok(())
        })?;
        if upload.resume_point() != received {
            return Err(Error::corrupt(path, BODY_OFFSET, Malformed::Checksum));
        }
        Ok(upload)
    }

    /// Reads the bytes of an upload without changing it.
    pub(crate) fn read(
        &self,
        id: Uuid,
        received: ResumePoint,
        take: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let path = path_of(id);
        let io = |source| Error::io(format!("reading {path}"), source);
        let file = self.segments.disk().open(&path).map_err(io)?;
        let mut hasher = blake3::Hasher::new();
        let mut piece = vec![0; limits::WRITE_BYTES_MAX];
        let mut at = 0;
        while at < received.bytes {
            let length = (received.bytes - at).min(piece.len() as u64);
            let piece = piece.get_mut(..length as usize).unwrap_or_default();
            file.read_at(BODY_OFFSET + at, piece).map_err(io)?;
            hasher.update(piece);
            take(piece)?;
            at += length;
        }
        if *hasher.finalize().as_bytes() != received.hash {
            return Err(Error::corrupt(path, BODY_OFFSET, Malformed::Checksum));
        }
        Ok(())
    }

    /// Removes an upload. A missing one is not an error.
    pub(crate) fn remove(&self, id: Uuid) -> Result<()> {
        let path = path_of(id);
        match self.segments.disk().remove(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(Error::io(format!("removing {path}"), source))
            }
            _ => {
                self.segments.was_removed_from(UPLOADS_FOLDER.to_owned());
                Ok(())
            }
        }
    }

    /// Returns the ids of all uploads.
    pub(crate) fn list(&self) -> Result<Vec<Uuid>> {
        let names = self.segments.disk().list(UPLOADS_FOLDER);
        let names =
            names.map_err(|source| Error::io(format!("listing {UPLOADS_FOLDER}"), source))?;
        Ok(names.iter().filter_map(|name| Uuid::parse_str(name).ok()).collect())
    }

    /// Checks that the file is not also a big segment, because then its bytes may not change. Header pages of two
    /// files differ in their salt.
    fn require_no_segment(&self, path: &str, file: &dyn DiskFile) -> Result<()> {
        let Some(page) = header_page(path, file)? else { return Ok(()) };
        let Ok(header) = SegmentHeader::decode_page(&page) else { return Ok(()) };
        let segment = header.segment.path(SegmentClass::Big);
        let other = match self.segments.disk().open(&segment) {
            Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => opened.map_err(|source| Error::io(format!("opening {segment}"), source))?,
        };
        if header_page(&segment, other.as_ref())?.is_some_and(|other| other == page) {
            let why = format!("it is {segment}, too");
            let refused = io::Error::new(io::ErrorKind::ResourceBusy, why);
            return Err(Error::io(format!("taking up {path}"), refused));
        }
        Ok(())
    }

    fn buffer(&self) -> UploadBuffer {
        UploadMemory::new(Arc::clone(&self.memory)).buffer(limits::WRITE_BYTES_MAX)
    }

    fn resumable(&self, path: String, file: Arc<dyn DiskFile>, is_named: bool) -> ResumableUpload {
        ResumableUpload {
            uploads: self.clone(),
            path,
            file,
            hasher: blake3::Hasher::new(),
            head: Vec::new(),
            bytes: 0,
            blocks: Vec::new(),
            running: RunningChecksum::new(),
            buffer: self.buffer(),
            is_named,
        }
    }
}

impl ResumableUpload {
    /// Returns the current state. After a crash, only the state last returned by [`ResumableUpload::sync`] can be
    /// resumed.
    pub fn resume_point(&self) -> ResumePoint {
        ResumePoint { bytes: self.bytes, hash: *self.hasher.finalize().as_bytes() }
    }

    /// Returns the number of bytes received so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends bytes if that does not wait for the disk; otherwise appends nothing and returns false.
    pub fn push_in_memory(&mut self, bytes: &[u8]) -> bool {
        let total = self.bytes.saturating_add(bytes.len() as u64);
        let stays = total <= limits::OBJECT_BYTES_MAX && self.buffer.try_extend(bytes);
        if stays {
            self.count(bytes);
        }
        stays
    }

    /// Appends bytes. Waits for the disk.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        if self.bytes.saturating_add(bytes.len() as u64) > limits::OBJECT_BYTES_MAX {
            return Err(Error::TooLarge("an object has at most 64 GiB"));
        }
        for piece in bytes.chunks(limits::WRITE_BYTES_MAX) {
            if self.push_in_memory(piece) {
                continue;
            }
            self.flush()?;
            if !self.push_in_memory(piece) {
                self.write(self.bytes, piece)?;
                self.count(piece);
            }
        }
        Ok(())
    }

    /// Makes the received bytes durable and returns the state. Waits for the disk, and releases the memory.
    ///
    /// After an error the upload can be resumed only from the state of an earlier successful call.
    pub fn sync(&mut self) -> Result<ResumePoint> {
        self.flush()?;
        self.buffer = self.uploads.buffer();
        let disk = self.uploads.segments.disk();
        let synced = self.file.sync_data().and_then(|()| {
            if self.is_named {
                return Ok(());
            }
            disk.sync_folder(UPLOADS_FOLDER).and_then(|()| disk.sync_folder(""))
        });
        synced.map_err(|source| Error::io(format!("syncing {}", self.path), source))?;
        self.is_named = true;
        Ok(self.resume_point())
    }

    /// Finishes the body. A large body is durable when this returns; a small one is in memory until its batch is
    /// committed. Waits for the disk.
    ///
    /// The file remains until [`Store::remove_upload`](crate::Store::remove_upload) removes it, so that an uncommitted
    /// upload can be resumed once its [`StagedBody`] is dropped. On a file system without hard links, the file of a
    /// large body is moved instead.
    pub fn finish(mut self) -> Result<StagedBody> {
        self.flush()?;
        if self.bytes <= self.uploads.inline_bytes_max {
            return self.finish_small();
        }
        if !self.is_whole_block() {
            self.blocks.push(std::mem::take(&mut self.running).finish());
        }
        let Self { uploads, path, file, hasher, head, bytes, blocks, .. } = self;
        let hash = *hasher.finalize().as_bytes();
        let segment = adopt_big(&uploads.segments, &path, file.as_ref(), bytes, &blocks, hash)?;
        let place = StagedLocation::big(segment, uploads.segments, head);
        Ok(StagedBody(Arc::new(StagedInner { bytes, hash, place })))
    }

    fn finish_small(mut self) -> Result<StagedBody> {
        let mut upload = Upload::new(self.uploads.clone());
        let bytes = self.bytes;
        self.read_again(bytes, |_, piece| upload.push(piece))?;
        let staged = upload.finish()?;
        if staged.hash() != self.hasher.finalize().as_bytes() {
            return Err(Error::corrupt(self.path, BODY_OFFSET, Malformed::Checksum));
        }
        Ok(staged)
    }

    /// Reads the first bytes of the body from the file.
    fn read_again(
        &mut self,
        bytes: u64,
        mut take: impl FnMut(&mut Self, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let file = Arc::clone(&self.file);
        let mut piece = vec![0; limits::WRITE_BYTES_MAX];
        let mut at = 0;
        while at < bytes {
            let length = (bytes - at).min(piece.len() as u64);
            let piece = piece.get_mut(..length as usize).unwrap_or_default();
            file.read_at(BODY_OFFSET + at, piece)
                .map_err(|source| Error::io(format!("reading {}", self.path), source))?;
            take(self, piece)?;
            at += length;
        }
        Ok(())
    }

    fn count(&mut self, mut bytes: &[u8]) {
        let head_room = UPLOAD_HEAD_BYTES - self.head.len();
        self.head.extend_from_slice(bytes.get(..head_room).unwrap_or(bytes));
        self.hasher.update(bytes);
        while !bytes.is_empty() {
            let in_block = (self.bytes % limits::BLOCK_BYTES as u64) as usize;
            let room = limits::BLOCK_BYTES - in_block;
            let (taken, later) = bytes.split_at(bytes.len().min(room));
            self.running.update(taken);
            self.bytes += taken.len() as u64;
            bytes = later;
            if self.is_whole_block() {
                self.blocks.push(std::mem::take(&mut self.running).finish());
            }
        }
    }

    fn is_whole_block(&self) -> bool {
        self.bytes.is_multiple_of(limits::BLOCK_BYTES as u64)
    }

    fn flush(&mut self) -> Result<()> {
        if !self.buffer.bytes().is_empty() {
            let at = self.bytes - self.buffer.bytes().len() as u64;
            self.write(at, self.buffer.bytes())?;
            self.buffer.clear();
        }
        Ok(())
    }

    /// Writes bytes at an offset of the body.
    fn write(&self, at: u64, bytes: &[u8]) -> Result<()> {
        self.uploads.space.write(self.file.as_ref(), &self.path, BODY_OFFSET + at, bytes)
    }
}

/// Offset of the body in the file.
const BODY_OFFSET: u64 = SEGMENT_HEADER_BYTES as u64;

/// Returns the page before the body; `None` if the file is shorter.
fn header_page(path: &str, file: &dyn DiskFile) -> Result<Option<[u8; SEGMENT_HEADER_BYTES]>> {
    let mut page = [0; SEGMENT_HEADER_BYTES];
    match file.read_at(0, &mut page) {
        Ok(()) => Ok(Some(page)),
        Err(source) if source.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(source) => Err(Error::io(format!("reading {path}"), source)),
    }
}

fn path_of(id: Uuid) -> String {
    format!("{UPLOADS_FOLDER}/{id}")
}
