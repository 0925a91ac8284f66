//! Encoding of zip archives: local headers, central directory and end records, as in APPNOTE.TXT 6.3.10.
//!
//! Entries are stored without compression, and their CRC-32 is known before their bytes: no entry has a data
//! descriptor, which readers of streams cannot skip in a stored entry. Zip64 fields (4.5.3) are written only where a
//! number does not fit, because some readers refuse them.
//!
//! Guarantees: the length of a header depends only on the length of the name, and on the numbers that exceed 32 bits.
//! Non-goals: which names are valid, and the content.

use bytes::BufMut;
use jiff::tz::TimeZone;
use protocol::time_format::timestamp;

/// Header fields of an entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryHeader<'a> {
    /// Path of the file; that of a folder ends in `/`.
    pub name: &'a str,
    pub bytes: u64,
    pub crc32: u32,
    pub modified_ms: u64,
}

const LOCAL_HEADER: u32 = 0x0403_4b50;
const CENTRAL_HEADER: u32 = 0x0201_4b50;
const ZIP64_END: u32 = 0x0606_4b50;
const ZIP64_LOCATOR: u32 = 0x0706_4b50;
const END: u32 = 0x0605_4b50;

/// Version that extracts stored files in folders, and the one for zip64 (4.4.3).
const VERSION: u16 = 20;
const VERSION_ZIP64: u16 = 45;
/// System that the attributes are of: Unix (4.4.2).
const MADE_BY_UNIX: u16 = 3 << 8;
/// Flag of names in UTF-8 (appendix D).
const UTF8: u16 = 1 << 11;
const STORED: u16 = 0;

const ZIP64_FIELD: u16 = 0x0001;
/// Extended timestamp of Info-ZIP: seconds since 1970, whereas the fields of MS-DOS have no time zone.
const TIMESTAMP_FIELD: u16 = 0x5455;
const TIMESTAMP_MODIFIED: u8 = 1;

const FILE_MODE: u32 = 0o100_644 << 16;
const FOLDER_MODE: u32 = (0o040_755 << 16) | 0x10;

/// Value of a 16-bit or 32-bit field whose number is in a zip64 field.
const IN_ZIP64_16: u16 = u16::MAX;
const IN_ZIP64_32: u32 = u32::MAX;

impl EntryHeader<'_> {
    /// Appends the header before the content.
    pub(super) fn write_local(&self, out: &mut impl BufMut) {
        let size = short(self.bytes);
        let zip64 = if size.is_none() { vec![self.bytes, self.bytes] } else { Vec::new() };
        out.put_u32_le(LOCAL_HEADER);
        self.write_shared(size, &zip64, out);
        out.put_slice(self.name.as_bytes());
        self.write_extra(&zip64, out);
    }

    /// Appends the header in the central directory, of an entry that starts at `offset`.
    pub(super) fn write_central(&self, offset: u64, out: &mut impl BufMut) {
        let (size, start) = (short(self.bytes), short(offset));
        let mut zip64 = if size.is_none() { vec![self.bytes, self.bytes] } else { Vec::new() };
        if start.is_none() {
            zip64.push(offset);
        }
        out.put_u32_le(CENTRAL_HEADER);
        out.put_u16_le(MADE_BY_UNIX | VERSION_ZIP64);
        self.write_shared(size, &zip64, out);
        // Comment, disk number and internal attributes.
        [0; 3].into_iter().for_each(|none| out.put_u16_le(none));
        out.put_u32_le(if self.name.ends_with('/') { FOLDER_MODE } else { FILE_MODE });
        out.put_u32_le(start.unwrap_or(IN_ZIP64_32));
        out.put_slice(self.name.as_bytes());
        self.write_extra(&zip64, out);
    }

    /// Appends what both headers have in common.
    fn write_shared(&self, size: Option<u32>, zip64: &[u64], out: &mut impl BufMut) {
        let (date, time) = dos_time(self.modified_ms);
        let extra_bytes = TIMESTAMP_BYTES + zip64_bytes(zip64);
        out.put_u16_le(if zip64.is_empty() { VERSION } else { VERSION_ZIP64 });
        [UTF8, STORED, time, date].into_iter().for_each(|field| out.put_u16_le(field));
        out.put_u32_le(self.crc32);
        out.put_u32_le(size.unwrap_or(IN_ZIP64_32));
        out.put_u32_le(size.unwrap_or(IN_ZIP64_32));
        // A key has at most 1,024 bytes.
        out.put_u16_le(u16::try_from(self.name.len()).unwrap_or(u16::MAX));
        out.put_u16_le(extra_bytes);
    }

    fn write_extra(&self, zip64: &[u64], out: &mut impl BufMut) {
        if !zip64.is_empty() {
            out.put_u16_le(ZIP64_FIELD);
            out.put_u16_le(zip64_bytes(zip64) - EXTRA_HEAD_BYTES);
            zip64.iter().for_each(|number| out.put_u64_le(*number));
        }
        out.put_u16_le(TIMESTAMP_FIELD);
        out.put_u16_le(TIMESTAMP_BYTES - EXTRA_HEAD_BYTES);
        out.put_u8(TIMESTAMP_MODIFIED);
        // Signed in the format.
        out.put_u32_le(u32::try_from(self.modified_ms / 1_000).unwrap_or(0).min(i32::MAX as u32));
    }
}

/// Appends the end of an archive, whose central directory has `entries` headers and is at `offset`.
pub(super) fn write_end(entries: u64, offset: u64, directory_bytes: u64, out: &mut impl BufMut) {
    let count = u16::try_from(entries).ok().filter(|count| *count != IN_ZIP64_16);
    let (start, size) = (short(offset), short(directory_bytes));
    if count.is_none() || start.is_none() || size.is_none() {
        out.put_u32_le(ZIP64_END);
        out.put_u64_le(ZIP64_END_BYTES);
        out.put_u16_le(MADE_BY_UNIX | VERSION_ZIP64);
        out.put_u16_le(VERSION_ZIP64);
        // Disk numbers.
        out.put_u64_le(0);
        [entries, entries, directory_bytes, offset].into_iter().for_each(|it| out.put_u64_le(it));
        out.put_u32_le(ZIP64_LOCATOR);
        out.put_u32_le(0);
        out.put_u64_le(offset + directory_bytes);
        out.put_u32_le(1);
    }
    out.put_u32_le(END);
    out.put_u32_le(0);
    out.put_u16_le(count.unwrap_or(IN_ZIP64_16));
    out.put_u16_le(count.unwrap_or(IN_ZIP64_16));
    out.put_u32_le(size.unwrap_or(IN_ZIP64_32));
    out.put_u32_le(start.unwrap_or(IN_ZIP64_32));
    out.put_u16_le(0);
}

/// Bytes of the zip64 end record after its length field.
const ZIP64_END_BYTES: u64 = 44;
const EXTRA_HEAD_BYTES: u16 = 4;
const TIMESTAMP_BYTES: u16 = EXTRA_HEAD_BYTES + 5;

/// Returns a number for a 32-bit field, if it fits.
fn short(number: u64) -> Option<u32> {
    u32::try_from(number).ok().filter(|number| *number != IN_ZIP64_32)
}

fn zip64_bytes(numbers: &[u64]) -> u16 {
    // At most three numbers.
    if numbers.is_empty() { 0 } else { EXTRA_HEAD_BYTES + 8 * numbers.len() as u16 }
}

/// Returns date and time of MS-DOS in UTC: from 1980 to 2107, in steps of two seconds.
fn dos_time(unix_ms: u64) -> (u16, u16) {
    let time = timestamp(unix_ms).to_zoned(TimeZone::UTC);
    let bits = |number: i8, shift: u32| u16::from(number.unsigned_abs()) << shift;
    match time.year() {
        ..1980 => (bits(1, 5) | 1, 0),
        year => (
            (year.unsigned_abs() - 1980).min(127) << 9
                | bits(time.month(), 5)
                | bits(time.day(), 0),
            bits(time.hour(), 11) | bits(time.minute(), 5) | bits(time.second() / 2, 0),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(bytes: u64) -> EntryHeader<'static> {
        EntryHeader { name: "a.txt", bytes, crc32: 0xcbf4_3926, modified_ms: 1_769_860_801_000 }
    }

    #[test]
    fn zip_local_header_has_the_fields_of_the_appnote() {
        let mut out = Vec::new();
        header(9).write_local(&mut out);
        let expected = [
            &b"PK\x03\x04\x14\x00\x00\x08\x00\x00"[..],
            // 2026-01-31 12:00:00 in steps of two seconds.
            b"\x00\x60\x3f\x5c",
            b"\x26\x39\xf4\xcb\x09\x00\x00\x00\x09\x00\x00\x00\x05\x00\x09\x00a.txt",
            b"UT\x05\x00\x01\xc1\xee\x7d\x69",
        ];
        assert_eq!(out, expected.concat());
    }

    #[test]
    fn zip64_fields_are_written_only_for_large_numbers() {
        let lengths = |bytes: u64, offset: u64| {
            let (mut local, mut central) = (Vec::new(), Vec::new());
            header(bytes).write_local(&mut local);
            header(bytes).write_central(offset, &mut central);
            (local.len() - 44, central.len() - 60)
        };
        let large = u64::from(u32::MAX);
        assert_eq!(lengths(large - 1, large - 1), (0, 0));
        assert_eq!(lengths(large, large - 1), (20, 20));
        assert_eq!(lengths(0, large), (0, 12));
        assert_eq!(lengths(large, large), (20, 28));
        let end = |entries: u64, offset: u64| {
            let mut out = Vec::new();
            write_end(entries, offset, 60, &mut out);
            out.len() - 22
        };
        assert_eq!(end(65_534, large - 1), 0);
        assert_eq!((end(65_535, 0), end(1, large)), (76, 76));
    }

    #[test]
    fn dos_times_outside_the_range_are_clamped() {
        assert_eq!(dos_time(0), (0x21, 0));
        assert_eq!(dos_time(315_532_800_000), (0x21, 0));
        assert_eq!(dos_time(u64::MAX).0 >> 9, 127);
    }
}
