//! Streaming reader of untrusted tar archives, in bounded memory.
//!
//! Where two readers could disagree about the position of the next header, reading stops: a link with a body, global
//! records that rename or resize, records too long to be read. Guarantees: a body is never longer than its header says;
//! a truncated archive is distinguished from a complete one. Non-goals: keys, the store.
//!
//! Own code over the headers of `tar`: its `Archive` reads extension headers of any length into memory, accepts an
//! archive that ends without an end marker, and its `PaxExtensions` splits values at line ends.

use std::io::{self, ErrorKind, Read};

use super::progress::ProgressReporter;
use super::tar_entry::{BLOCK_BYTES, EntryKind, PaxRecords, decode, decode_records};
use crate::archive::limits::{NAME_BYTES_MAX, RECORDS_BYTES_MAX, SPARSE_BLOCKS_MAX};

/// Archive that is being read.
pub(super) struct TarReader<R> {
    source: R,
    /// Bytes read so far.
    at: u64,
    /// Unread bytes of the entry's body and its padding.
    body_left: u64,
    padding_left: u64,
}

/// Entry of an archive.
#[derive(Debug)]
pub(super) struct Entry {
    /// Unvalidated name.
    pub(super) name: Vec<u8>,
    pub(super) bytes: u64,
    pub(super) content: TarEntryContent,
    pub(super) records: PaxRecords,
}

/// Content of an entry.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TarEntryContent {
    File,
    Folder,
    /// Never imported: the reason.
    Refused(&'static str),
}

/// Reason why an archive cannot be read further.
#[derive(Debug)]
pub(super) enum TarError {
    /// The work was cancelled.
    Stopped(engine::Error),
    /// The archive is invalid: a sentence.
    Malformed(String),
}

impl<R: Read> TarReader<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, at: 0, body_left: 0, padding_left: 0 }
    }

    /// Skips the rest of the current entry and returns the next one. `None` at the archive's end.
    pub(super) fn next(
        &mut self,
        work: &mut ProgressReporter<'_>,
    ) -> Result<Option<Entry>, TarError> {
        self.skip_body(work)?;
        let mut records = PaxRecords::default();
        let mut long_name = None;
        loop {
            let Some(block) = self.header(work)? else { return Ok(None) };
            let head = match decode(&block) {
                Ok(head) => head,
                Err(_) if self.at == BLOCK_BYTES as u64 => return Err(no_archive(&block)),
                Err(why) => return Err(self.malformed(why)),
            };
            let bytes = match head.kind {
                EntryKind::File | EntryKind::Folder | EntryKind::Other(_) => {
                    records.bytes.unwrap_or(head.bytes)
                }
                _ => head.bytes,
            };
            self.body_left = bytes;
            let padded = bytes.checked_next_multiple_of(BLOCK_BYTES as u64);
            let padded = padded.ok_or_else(|| self.malformed("invalid entry size"))?;
            self.padding_left = padded - bytes;
            let content = match head.kind {
                EntryKind::PaxHeader => {
                    records = self.records(work)?;
                    continue;
                }
                EntryKind::PaxGlobalHeader => {
                    let global = self.records(work)?;
                    if global.path.is_some() || global.bytes.is_some() || global.is_sparse {
                        return Err(self.malformed(
                            "global pax headers that change names or sizes are not supported",
                        ));
                    }
                    continue;
                }
                EntryKind::LongName => {
                    long_name = Some(self.name(work)?);
                    self.skip_body(work)?;
                    continue;
                }
                EntryKind::LongLink => {
                    self.skip_body(work)?;
                    continue;
                }
                EntryKind::Sparse { is_extended } => {
                    self.skip_map(is_extended, work)?;
                    TarEntryContent::Refused("sparse files are not supported (tar --sparse)")
                }
                EntryKind::File if records.is_sparse => {
                    TarEntryContent::Refused("sparse files are not supported (tar --sparse)")
                }
                EntryKind::File => TarEntryContent::File,
                EntryKind::Folder | EntryKind::Other(_) if bytes > 0 => {
                    return Err(self.malformed("an entry that is not a file has a body"));
                }
                EntryKind::Folder => TarEntryContent::Folder,
                EntryKind::Other(why) => TarEntryContent::Refused(why),
            };
            let (name, content) = match (records.path.take(), long_name) {
                (Some(path), Some(Some(long))) if path != long => {
                    (path, TarEntryContent::Refused("it has two names"))
                }
                (Some(path), _) => (path, content),
                (None, Some(Some(long))) => (long, content),
                (None, Some(None)) => (head.name, TarEntryContent::Refused("its name is too long")),
                (None, None) => (head.name, content),
            };
            // Before tar had a type for folders, they were empty files with a trailing slash in the name. The header's
            // own name may be the start of a longer one, so the type is known only here.
            let content = match content {
                TarEntryContent::File if bytes == 0 && name.ends_with(b"/") => {
                    TarEntryContent::Folder
                }
                other => other,
            };
            return Ok(Some(Entry { name, bytes, content, records }));
        }
    }

    /// Reads the next bytes of the entry's body; 0 at its end.
    pub(super) fn read(
        &mut self,
        buffer: &mut [u8],
        work: &mut ProgressReporter<'_>,
    ) -> Result<usize, TarError> {
        let wanted = usize::try_from(self.body_left).unwrap_or(usize::MAX).min(buffer.len());
        let Some(buffer) = buffer.get_mut(..wanted).filter(|it| !it.is_empty()) else {
            return Ok(0);
        };
        let count = self.fill(buffer, work)?;
        if count < wanted {
            return Err(self.malformed("the archive is truncated inside a file"));
        }
        self.body_left -= count as u64;
        Ok(count)
    }

    fn skip_body(&mut self, work: &mut ProgressReporter<'_>) -> Result<(), TarError> {
        let mut passed = vec![0; 64 * 1_024];
        while self.read(&mut passed, work)? > 0 {}
        let padding = usize::try_from(self.padding_left).unwrap_or(0);
        let padding = passed.get_mut(..padding).unwrap_or_default();
        if self.fill(padding, work)? < padding.len() {
            return Err(self.malformed("the archive is truncated after a file"));
        }
        self.padding_left = 0;
        Ok(())
    }

    /// Reads a header block; `None` at the end marker, which is a block of zeros.
    fn header(
        &mut self,
        work: &mut ProgressReporter<'_>,
    ) -> Result<Option<[u8; BLOCK_BYTES]>, TarError> {
        let mut block = [0; BLOCK_BYTES];
        let is_first = self.at == 0;
        match self.fill(&mut block, work)? {
            0 if is_first => Err(TarError::Malformed("the archive is empty".to_owned())),
            BLOCK_BYTES if block == [0; BLOCK_BYTES] => Ok(None),
            BLOCK_BYTES => Ok(Some(block)),
            _ if is_first => Err(no_archive(&block)),
            _ => Err(self.malformed("the archive is truncated: no end-of-archive marker")),
        }
    }

    fn records(&mut self, work: &mut ProgressReporter<'_>) -> Result<PaxRecords, TarError> {
        if self.body_left > RECORDS_BYTES_MAX {
            return Err(self.malformed("an extension header is too long"));
        }
        let bytes = self.read_body(work)?;
        decode_records(&bytes).map_err(|why| self.malformed(why))
    }

    /// Reads a name from a body, up to its zero byte; `None` if it is over the limit.
    fn name(&mut self, work: &mut ProgressReporter<'_>) -> Result<Option<Vec<u8>>, TarError> {
        if self.body_left > NAME_BYTES_MAX {
            return Ok(None);
        }
        let mut name = self.read_body(work)?;
        if name.last() == Some(&0) {
            name.pop();
        }
        Ok(Some(name))
    }

    /// Reads a whole body, whose length was checked.
    fn read_body(&mut self, work: &mut ProgressReporter<'_>) -> Result<Vec<u8>, TarError> {
        let mut bytes = vec![0; usize::try_from(self.body_left).unwrap_or(0)];
        self.read(&mut bytes, work)?;
        self.skip_body(work)?;
        Ok(bytes)
    }

    /// Skips the rest of a GNU sparse map, which the size of the entry does not include.
    fn skip_map(
        &mut self,
        mut is_extended: bool,
        work: &mut ProgressReporter<'_>,
    ) -> Result<(), TarError> {
        const IS_EXTENDED_AT: usize = 504;
        for _ in 0..SPARSE_BLOCKS_MAX {
            if !is_extended {
                return Ok(());
            }
            let mut block = [0; BLOCK_BYTES];
            if self.fill(&mut block, work)? < BLOCK_BYTES {
                return Err(self.malformed("the archive is truncated inside a sparse map"));
            }
            is_extended = block.get(IS_EXTENDED_AT) == Some(&1);
        }
        Err(self.malformed("too many holes in a sparse file"))
    }

    /// Reads until the buffer is full or the source ends.
    fn fill(
        &mut self,
        buffer: &mut [u8],
        work: &mut ProgressReporter<'_>,
    ) -> Result<usize, TarError> {
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|it| !it.is_empty()) {
            match self.source.read(rest) {
                Ok(0) => break,
                Ok(count) => {
                    filled += count;
                    self.at += count as u64;
                    work.read_to(self.at).map_err(TarError::Stopped)?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // A pipe that currently has no data.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    work.read_to(self.at).map_err(TarError::Stopped)?;
                }
                Err(error) => return Err(unreadable(&error)),
            }
        }
        Ok(filled)
    }

    fn malformed(&self, why: &str) -> TarError {
        TarError::Malformed(format!("{why}, at byte {}", self.at))
    }
}

fn unreadable(error: &io::Error) -> TarError {
    TarError::Malformed(format!("the archive cannot be read: {error}"))
}

/// Describes a first block that is not a header.
fn no_archive(block: &[u8; BLOCK_BYTES]) -> TarError {
    const COMPRESSED: &[(&[u8], &str)] = &[
        (b"\x1f\x8b", "gzip -dc"),
        (b"\x28\xb5\x2f\xfd", "zstd -dc"),
        (b"\xfd7zXZ\0", "xz -dc"),
        (b"BZh", "bzip2 -dc"),
        (b"\x04\x22\x4d\x18", "lz4 -dc"),
    ];
    let mut found = COMPRESSED.iter().filter(|(magic, _)| block.starts_with(magic));
    TarError::Malformed(match found.next() {
        Some((_, command)) => {
            format!(
                "it is compressed: decompress it first ({command} FILE | trug import --from - ...)"
            )
        }
        None if block.starts_with(b"PK") => {
            "it is a ZIP archive, not a tar archive: unpack it into a folder and import that"
                .to_owned()
        }
        None => "it is not a tar archive".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::super::tar_entry::{EntryHeader, encode};
    use super::*;

    fn archive() -> Vec<u8> {
        let mut bytes = Vec::new();
        for (name, body) in [("a.txt", &b"hello"[..]), ("caf\u{e9}/b.txt", &[b'b'; 600])] {
            bytes.extend(encode(&EntryHeader {
                name,
                bytes: body.len() as u64,
                modified_ms: 1_700_000_000_042,
                created_ms: 1_600_000_000_000,
                content_type: "text/plain",
                attributes: b"{}",
                etag: "00112233445566778899aabbccddeeff",
            }));
            bytes.extend(body);
            bytes.resize(bytes.len().next_multiple_of(BLOCK_BYTES), 0);
        }
        bytes.resize(bytes.len() + 2 * BLOCK_BYTES, 0);
        bytes
    }

    /// Name and body of a file.
    type NamedFile = (Vec<u8>, Vec<u8>);

    /// Returns the files of an archive, and how it ended.
    fn walk(source: impl Read) -> (Vec<NamedFile>, Result<(), TarError>) {
        let mut watch = |_| ControlFlow::Continue(());
        let mut work = ProgressReporter::new(&mut watch, 0, 0);
        let mut reader = TarReader::new(source);
        let mut files = Vec::new();
        let mut walk = || {
            while let Some(entry) = reader.next(&mut work)? {
                let (mut body, mut piece) = (Vec::new(), [0; 100]);
                loop {
                    match reader.read(&mut piece, &mut work)? {
                        0 => break,
                        count => body.extend(&piece[..count]),
                    }
                }
                assert_eq!(body.len() as u64, entry.bytes);
                files.push((entry.name, body));
            }
            Ok(())
        };
        let ended = walk();
        (files, ended)
    }

    /// Reader that yields a few bytes at a time, and sometimes would block.
    struct Trickle<'a>(&'a [u8], u32);

    impl Read for Trickle<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1 += 1;
            match self.1 % 5 {
                0 => Err(ErrorKind::WouldBlock.into()),
                1 => Err(ErrorKind::Interrupted.into()),
                _ => {
                    let count = buffer.len().min(97);
                    self.0.read(&mut buffer[..count])
                }
            }
        }
    }

    #[test]
    fn slow_tar_source_yields_the_same_files() {
        let archive = archive();
        let (files, ended) = walk(&*archive);
        assert!(ended.is_ok() && files.len() == 2, "{ended:?}");
        assert_eq!(files[1].0, "caf\u{e9}/b.txt".as_bytes());
        let (trickled, ended) = walk(Trickle(&archive, 0));
        assert!(ended.is_ok() && trickled == files, "{ended:?}");
    }

    #[test]
    fn corrupt_tar_headers_are_detected() {
        let archive = archive();
        let end = archive.len() - 2 * BLOCK_BYTES;
        for length in 0..=end {
            let (_, ended) = walk(&archive[..length]);
            assert!(matches!(ended, Err(TarError::Malformed(_))), "cut at {length}");
        }
        for at in 0..archive.len() {
            for mask in [1, 0x80, 0xff] {
                let mut flipped = archive.clone();
                flipped[at] ^= mask;
                let (_, ended) = walk(&*flipped);
                assert!(ended.is_err() || at >= BLOCK_BYTES, "flipped at {at}");
            }
        }
    }

    #[test]
    fn cancelled_progress_stops_the_tar_reader() {
        let archive = archive();
        let mut watch = |_| ControlFlow::Break(());
        let mut work = ProgressReporter::new(&mut watch, 0, 0);
        let next = TarReader::new(&*archive).next(&mut work);
        assert!(matches!(next, Err(TarError::Stopped(engine::Error::Cancelled))), "{next:?}");
    }
}
