//! The footer of a sealed log segment: its record heads once more, so that an index is rebuilt without reading bodies.
//!
//! It begins where the groups end. First the entries, in the order of the log:
//!
//! | offset | size | field  | meaning                                                        |
//! | ------ | ---- | ------ | -------------------------------------------------------------- |
//! | 0      | 8    | offset | of the record in this file                                     |
//! | 8      |      | head   | the record's head, byte for byte: its checksum is for `offset` |
//!
//! Then the trailer, the last 64 bytes of the file:
//!
//! | offset | size | field         | meaning                                                 |
//! | ------ | ---- | ------------- | ------------------------------------------------------- |
//! | 0      | 8    | magic         | [`FOOTER_MAGIC`] XOR the salt of the segment            |
//! | 8      | 8    | footer_offset | where the groups end and the entries begin              |
//! | 16     | 8    | entries_bytes | length of all entries                                   |
//! | 24     | 8    | entry_count   |                                                         |
//! | 32     | 8    | last_lsn      | of the last record in or before this segment            |
//! | 40     | 8    | next_group    | number of the first group after this segment            |
//! | 48     | 4    | previous_group | checksum of the last group header in or before it       |
//! | 52     | 4    | entries       | checksum of all entries, bound to no place              |
//! | 56     | 4    | reserved      | zero                                                    |
//! | 60     | 4    | checksum      | of bytes 0..60 at the offset of the trailer             |
//!
//! Promises: a footer says nothing that the groups do not say; who finds it damaged scans the groups instead. Entries
//! can be written and read in pieces of any size. Never here: when a segment is sealed.

use super::bytes::{Put, Take};
use super::checksum::{CheckClass, Checksum, Place, RunningChecksum, SegmentContext};
use super::malformed::Malformed;
use super::record::{HEAD_BYTES_MAX, HEAD_COMMON_BYTES, Record};
use super::segment_header::SEGMENT_HEADER_BYTES;

/// The magic number of a footer's trailer before its segment's salt is applied: `TRUGFOOT`, as it lies on disk.
pub const FOOTER_MAGIC: u64 = 0x544F_4F46_4755_5254;
/// Size of the trailer.
pub const FOOTER_TRAILER_BYTES: usize = 64;
/// What an entry takes besides the head.
pub const FOOTER_ENTRY_OVERHEAD_BYTES: usize = 8;
/// No entry is longer: a window of this size always holds a whole one.
pub const FOOTER_ENTRY_BYTES_MAX: usize = FOOTER_ENTRY_OVERHEAD_BYTES + HEAD_BYTES_MAX;

const CHECKED_BYTES: usize = FOOTER_TRAILER_BYTES - 4;

/// The end of a sealed log segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FooterTrailer {
    /// Where the groups end and the entries begin.
    pub footer_offset: u64,
    /// Length of all entries; the trailer follows them.
    pub entries_bytes: u64,
    /// How many entries.
    pub entry_count: u64,
    /// The LSN of the last record in or before the segment.
    pub last_lsn: u64,
    /// The number of the first group after the segment.
    pub next_group: u64,
    /// The checksum of the last group header in or before the segment: what the next group names as its predecessor's.
    pub previous_group: Checksum,
    /// The checksum of all entries.
    pub entries: Checksum,
}

impl FooterTrailer {
    /// The trailer as it lies in its segment.
    pub fn encode(&self, context: SegmentContext) -> Vec<u8> {
        let place = context.at(self.offset());
        let mut out = Vec::with_capacity(FOOTER_TRAILER_BYTES);
        Put::new(&mut out)
            .u64(FOOTER_MAGIC ^ place.salt)
            .u64(self.footer_offset)
            .u64(self.entries_bytes)
            .u64(self.entry_count)
            .u64(self.last_lsn)
            .u64(self.next_group)
            .u32(self.previous_group.0)
            .u32(self.entries.0)
            .zeros(4);
        let checksum = Checksum::of(&out).at(place);
        Put::new(&mut out).u32(checksum.0);
        out
    }

    /// Reads the trailer: the last [`FOOTER_TRAILER_BYTES`] of the file, which lie at `place`.
    pub fn decode(bytes: &[u8], place: Place) -> Result<Self, Malformed> {
        let mut take = Take::new(bytes);
        let checked = take.clone().bytes(CHECKED_BYTES)?;
        if take.u64()? != FOOTER_MAGIC ^ place.salt {
            return Err(Malformed::Magic);
        }
        let trailer = Self {
            footer_offset: take.u64()?,
            entries_bytes: take.u64()?,
            entry_count: take.u64()?,
            last_lsn: take.u64()?,
            next_group: take.u64()?,
            previous_group: Checksum(take.u32()?),
            entries: Checksum(take.u32()?),
        };
        let reserved = take.zeros(4);
        Checksum(take.u32()?).verify(CheckClass::Footer, checked, place)?;
        reserved?;
        take.end()?;
        trailer.check(place)?;
        Ok(trailer)
    }

    /// Where the trailer lies: after the entries.
    pub fn offset(&self) -> u64 {
        self.footer_offset.saturating_add(self.entries_bytes)
    }

    fn check(&self, place: Place) -> Result<(), Malformed> {
        let offset = self.footer_offset.checked_add(self.entries_bytes);
        if offset != Some(place.offset) || self.footer_offset < SEGMENT_HEADER_BYTES as u64 {
            return Err(Malformed::Place);
        }
        let bytes_of_each = |bytes: usize| self.entry_count.checked_mul(bytes as u64);
        let least = bytes_of_each(FOOTER_ENTRY_OVERHEAD_BYTES + HEAD_COMMON_BYTES);
        let most = bytes_of_each(FOOTER_ENTRY_BYTES_MAX);
        match (least, most) {
            (Some(least), Some(most)) if (least..=most).contains(&self.entries_bytes) => Ok(()),
            _ => Err(Malformed::Count),
        }
    }
}

/// Makes a footer, entry by entry.
#[derive(Clone, Debug)]
pub struct FooterWriter {
    context: SegmentContext,
    footer_offset: u64,
    buffered: Vec<u8>,
    bytes: u64,
    count: u64,
    running: RunningChecksum,
}

impl FooterWriter {
    /// A footer without entries, for the segment whose groups end at `footer_offset`.
    pub fn new(context: SegmentContext, footer_offset: u64) -> Self {
        let running = RunningChecksum::new();
        Self { context, footer_offset, buffered: Vec::new(), bytes: 0, count: 0, running }
    }

    /// Adds the record at `offset`, whose head is `head`.
    pub fn push(&mut self, offset: u64, head: &[u8]) {
        let start = self.buffered.len();
        Put::new(&mut self.buffered).u64(offset).bytes(head);
        let entry = self.buffered.get(start..).unwrap_or_default();
        self.running.update(entry);
        self.bytes = self.bytes.saturating_add(entry.len() as u64);
        self.count = self.count.saturating_add(1);
    }

    /// How many bytes are waiting to be taken.
    pub fn buffered_bytes(&self) -> usize {
        self.buffered.len()
    }

    /// The bytes that were not taken yet, for writing them before the footer is complete.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.buffered)
    }

    /// The bytes that were not taken yet, and the trailer.
    pub fn finish(self, last_lsn: u64, next_group: u64, previous_group: Checksum) -> Vec<u8> {
        let trailer = FooterTrailer {
            footer_offset: self.footer_offset,
            entries_bytes: self.bytes,
            entry_count: self.count,
            last_lsn,
            next_group,
            previous_group,
            entries: self.running.finish(),
        };
        let mut out = self.buffered;
        Put::new(&mut out).bytes(&trailer.encode(self.context));
        out
    }
}

/// One record of a sealed segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FooterEntry {
    /// What it says.
    pub record: Record,
    /// Where its head begins.
    pub offset: u64,
    /// Length of the head.
    pub head_bytes: u32,
}

impl FooterEntry {
    /// Reads the entry that `bytes` begin with and tells how long it is; none when more bytes are needed.
    pub fn decode(
        bytes: &[u8],
        context: SegmentContext,
    ) -> Result<Option<(Self, usize)>, Malformed> {
        let mut take = Take::new(bytes);
        let Ok(offset) = take.u64() else { return Ok(None) };
        match Record::decode(take.rest(), context.at(offset)) {
            Ok((record, head)) => {
                let head_bytes = u32::try_from(head).map_err(|_| Malformed::Length)?;
                let bytes = head.saturating_add(FOOTER_ENTRY_OVERHEAD_BYTES);
                Ok(Some((Self { record, offset, head_bytes }, bytes)))
            }
            // No whole entry is longer than this, so no further byte would help.
            Err(Malformed::Short) if bytes.len() < FOOTER_ENTRY_BYTES_MAX => Ok(None),
            Err(why) => Err(why),
        }
    }
}

/// The entries of a footer that is in memory, ascending in offset and LSN; ends after the first error.
#[derive(Clone, Debug)]
pub struct FooterEntries<'a> {
    rest: &'a [u8],
    context: SegmentContext,
    last: Option<(u64, u64)>,
}

impl<'a> FooterEntries<'a> {
    /// Reads `bytes`, which are all entries and no trailer.
    pub fn new(bytes: &'a [u8], context: SegmentContext) -> Self {
        Self { rest: bytes, context, last: None }
    }

    fn entry(&mut self) -> Result<FooterEntry, Malformed> {
        let decoded = FooterEntry::decode(self.rest, self.context)?;
        let (entry, bytes) = decoded.ok_or(Malformed::Short)?;
        let (offset, lsn) = (entry.offset, entry.record.lsn);
        if self.last.is_some_and(|last| offset <= last.0 || lsn <= last.1) {
            return Err(Malformed::Order);
        }
        self.last = Some((offset, lsn));
        self.rest = self.rest.get(bytes..).ok_or(Malformed::Short)?;
        Ok(entry)
    }
}

impl Iterator for FooterEntries<'_> {
    type Item = Result<FooterEntry, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let entry = self.entry();
        if entry.is_err() {
            self.rest = &[];
        }
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::record::What;
    use crate::format::testing::{context, every_byte_counts, place};
    use crate::name::FactName;

    fn head(lsn: u64, offset: u64) -> Vec<u8> {
        let name = FactName::parse(&format!("fact/{lsn}")).unwrap();
        let mut head = Vec::new();
        Record { lsn, what: What::FactGone { name } }.encode(place(offset), &mut head);
        head
    }

    fn finish(writer: FooterWriter) -> Vec<u8> {
        writer.finish(12, 5, Checksum(6))
    }

    fn writer() -> FooterWriter {
        let mut writer = FooterWriter::new(context(), 9_000);
        for (lsn, offset) in [(10, 4_200), (11, 4_300), (12, 4_400)] {
            writer.push(offset, &head(lsn, offset));
        }
        writer
    }

    fn parts(footer: &[u8]) -> (&[u8], FooterTrailer) {
        let (entries, trailer) = footer.split_at(footer.len() - FOOTER_TRAILER_BYTES);
        let at = place(9_000 + entries.len() as u64);
        (entries, FooterTrailer::decode(trailer, at).unwrap())
    }

    #[test]
    fn a_footer_survives_its_bytes() {
        let buffered = writer().buffered_bytes();
        let footer = finish(writer());
        assert_eq!(footer.len(), buffered + FOOTER_TRAILER_BYTES);
        let (entries, trailer) = parts(&footer);
        assert_eq!((trailer.footer_offset, trailer.last_lsn), (9_000, 12));
        assert_eq!((trailer.next_group, trailer.previous_group), (5, Checksum(6)));
        assert_eq!(trailer.entries_bytes, entries.len() as u64);
        assert_eq!(trailer.entries, Checksum::of(entries));
        let read: Result<Vec<_>, _> = FooterEntries::new(entries, context()).collect();
        let read = read.unwrap();
        assert_eq!(read.len() as u64, trailer.entry_count);
        assert_eq!(read.iter().map(|e| e.offset).collect::<Vec<_>>(), [4_200, 4_300, 4_400]);
        assert_eq!(read.iter().map(|e| e.record.lsn).collect::<Vec<_>>(), [10, 11, 12]);
    }

    #[test]
    fn a_footer_made_in_pieces_is_the_same_footer() {
        let mut writer = writer();
        let mut bytes = writer.take();
        writer.push(4_500, &head(13, 4_500));
        bytes.extend(writer.take());
        bytes.extend(finish(writer));
        let mut whole = super::tests::writer();
        whole.push(4_500, &head(13, 4_500));
        assert_eq!(bytes, finish(whole));
    }

    #[test]
    fn every_byte_of_the_entries_and_of_the_trailer_counts() {
        let footer = finish(writer());
        let (entries, trailer) = parts(&footer);
        every_byte_counts(entries, |bytes| {
            bytes.len() == entries.len() && FooterEntries::new(bytes, context()).all(|e| e.is_ok())
        });
        let at = place(trailer.offset());
        let bytes = trailer.encode(context());
        every_byte_counts(&bytes, |bytes| FooterTrailer::decode(bytes, at).is_ok());
    }

    #[test]
    fn trailers_that_break_a_rule_are_refused_for_that_rule() {
        let good = parts(&finish(writer())).1;
        let decode =
            |t: FooterTrailer| FooterTrailer::decode(&t.encode(context()), place(t.offset()));
        assert_eq!(decode(good), Ok(good));
        let early = FooterTrailer { footer_offset: 4_095, ..good };
        assert_eq!(decode(early), Err(Malformed::Place));
        for entry_count in [0, 100, u64::MAX] {
            let wrong = FooterTrailer { entry_count, ..good };
            assert_eq!(decode(wrong), Err(Malformed::Count));
        }
        let none = FooterTrailer { entry_count: 0, entries_bytes: 0, ..good };
        assert_eq!(decode(none), Ok(none), "a segment without records has a footer too");
        let overflow = FooterTrailer { entries_bytes: u64::MAX, ..good };
        assert_eq!(decode(overflow), Err(Malformed::Place));
    }

    #[test]
    fn entries_are_read_through_a_window() {
        let footer = finish(writer());
        let (entries, _) = parts(&footer);
        let (first, bytes) = FooterEntry::decode(entries, context()).unwrap().unwrap();
        assert_eq!(first.record.lsn, 10);
        for short in 0..bytes {
            assert_eq!(FooterEntry::decode(&entries[..short], context()), Ok(None));
        }
        let cut = &entries[..entries.len() - 1];
        let last = FooterEntries::new(cut, context()).last();
        assert_eq!(last, Some(Err(Malformed::Short)));
    }

    #[test]
    fn entries_out_of_order_are_refused() {
        let mut writer = writer();
        writer.push(4_350, &head(13, 4_350));
        let bytes = writer.take();
        let read: Vec<_> = FooterEntries::new(&bytes, context()).collect();
        assert_eq!(read.len(), 4);
        assert_eq!(read[3], Err(Malformed::Order));
    }
}
