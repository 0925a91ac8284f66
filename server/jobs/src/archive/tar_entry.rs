//! Encoding of tar entries: the header block, and the extension records (pax) before it.
//!
//! Metadata without a tar field is stored in private records, which other readers ignore:
//!
//! | record            | meaning                                                        |
//! | ----------------- | -------------------------------------------------------------- |
//! | `TRUG.type`       | content type                                                   |
//! | `TRUG.attributes` | attributes, as they are stored                                 |
//! | `TRUG.etag`       | validator of the content: a file with another one is corrupt   |
//! | `TRUG.created`    | when the key was first put, in milliseconds since 1970         |
//!
//! Guarantees: pure; decoding never panics, and takes memory in proportion to its input. Non-goals: source of the
//! bytes, and validity of names as keys.

use std::fmt::Write as _;

use tar::{EntryType, Header};

/// Block size, of which everything in an archive is a multiple.
pub(super) const BLOCK_BYTES: usize = 512;

/// Largest size that fits the header's own field: eleven octal digits.
const HEADER_SIZE_MAX: u64 = 0o777_7777_7777;
/// Longest name that is written into the header's own field.
const HEADER_NAME_BYTES_MAX: usize = 100;

const PATH: &str = "path";
const SIZE: &str = "size";
const MTIME: &str = "mtime";
const TYPE: &str = "TRUG.type";
const ATTRIBUTES: &str = "TRUG.attributes";
const ETAG: &str = "TRUG.etag";
const CREATED: &str = "TRUG.created";

/// Decoded header block.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TarHeader {
    pub(super) name: Vec<u8>,
    pub(super) bytes: u64,
    pub(super) kind: EntryKind,
}

/// Kind of the data after a header block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryKind {
    File,
    Folder,
    /// Records for the next entry.
    PaxHeader,
    /// Records for all further entries.
    PaxGlobalHeader,
    /// Name of the next entry, in the format of GNU tar.
    LongName,
    /// Target of the next entry, which is a link.
    LongLink,
    /// Sparse file; whether further blocks of its map follow.
    Sparse {
        is_extended: bool,
    },
    /// Never imported: the reason.
    Other(&'static str),
}

/// Decoded extension records of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PaxRecords {
    pub(super) path: Option<Vec<u8>>,
    pub(super) bytes: Option<u64>,
    pub(super) is_sparse: bool,
    pub(super) content_type: Option<String>,
    pub(super) attributes: Option<Vec<u8>>,
    pub(super) etag: Option<String>,
    pub(super) created_ms: Option<u64>,
}

/// File to be written.
pub(super) struct EntryHeader<'a> {
    pub(super) name: &'a str,
    pub(super) bytes: u64,
    pub(super) modified_ms: u64,
    pub(super) created_ms: u64,
    pub(super) content_type: &'a str,
    pub(super) attributes: &'a [u8],
    pub(super) etag: &'a str,
}

/// Decodes a header block. The error describes the defect.
pub(super) fn decode(block: &[u8; BLOCK_BYTES]) -> Result<TarHeader, &'static str> {
    let header = Header::from_byte_slice(block);
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    let own: u32 = header.as_old().cksum.iter().map(|byte| u32::from(*byte)).sum();
    let wanted = sum - own + 8 * u32::from(b' ');
    if header.cksum().ok() != Some(wanted) {
        return Err("header checksum mismatch");
    }
    // Numbers larger than eleven octal digits are binary; the tar crate reads only their last eight bytes.
    let bytes = match header.as_old().size.split_at(4) {
        ([first, rest @ ..], _) if first & 0x80 != 0 && (*first != 0x80 || rest != [0; 3]) => {
            return Err("the size in a header is negative or out of bounds");
        }
        _ => header.entry_size().map_err(|_| "the size in a header is not a number")?,
    };
    let name = header.path_bytes().into_owned();
    let kind = match header.entry_type() {
        EntryType::Regular | EntryType::Continuous => EntryKind::File,
        EntryType::Directory => EntryKind::Folder,
        EntryType::XHeader => EntryKind::PaxHeader,
        EntryType::XGlobalHeader => EntryKind::PaxGlobalHeader,
        EntryType::GNULongName => EntryKind::LongName,
        EntryType::GNULongLink => EntryKind::LongLink,
        EntryType::GNUSparse => {
            EntryKind::Sparse { is_extended: header.as_gnu().is_some_and(|gnu| gnu.is_extended()) }
        }
        EntryType::Symlink => EntryKind::Other("it is a symbolic link"),
        EntryType::Link => EntryKind::Other("it is a hard link"),
        EntryType::Char | EntryType::Block => EntryKind::Other("it is a device"),
        EntryType::Fifo => EntryKind::Other("it is a named pipe"),
        _ => EntryKind::Other("it is not a regular file"),
    };
    Ok(TarHeader { name, bytes, kind })
}

/// Decodes extension records: each is its length in decimal, a space, a keyword, `=`, a value, and a line end.
pub(super) fn decode_records(mut bytes: &[u8]) -> Result<PaxRecords, &'static str> {
    const MALFORMED: &str = "an extension header is malformed";
    let mut records = PaxRecords::default();
    while !bytes.is_empty() {
        let space = bytes.iter().take(20).position(|byte| *byte == b' ').ok_or(MALFORMED)?;
        let (digits, _) = bytes.split_at(space);
        let length = number(digits).and_then(|length| usize::try_from(length).ok());
        let (record, rest) = length.and_then(|it| bytes.split_at_checked(it)).ok_or(MALFORMED)?;
        let record = record.get(space + 1..).and_then(|it| it.strip_suffix(b"\n"));
        let record = record.ok_or(MALFORMED)?;
        let equals = record.iter().position(|byte| *byte == b'=').ok_or(MALFORMED)?;
        let (keyword, value) = record.split_at(equals);
        let value = value.get(1..).unwrap_or_default();
        let text = || str::from_utf8(value).map(str::to_owned).map_err(|_| MALFORMED);
        match str::from_utf8(keyword).map_err(|_| MALFORMED)? {
            PATH => records.path = Some(value.to_owned()),
            SIZE => records.bytes = Some(number(value).ok_or(MALFORMED)?),
            TYPE => records.content_type = Some(text()?),
            ATTRIBUTES => records.attributes = Some(value.to_owned()),
            ETAG => records.etag = Some(text()?),
            CREATED => records.created_ms = Some(number(value).ok_or(MALFORMED)?),
            other => records.is_sparse |= other.starts_with("GNU.sparse."),
        }
        bytes = rest;
    }
    Ok(records)
}

/// Encodes a file's header block, preceded by its records and their own header block.
pub(super) fn encode(file: &EntryHeader<'_>) -> Vec<u8> {
    let mut records = Vec::new();
    let fits = file.name.is_ascii() && file.name.len() <= HEADER_NAME_BYTES_MAX;
    if !fits {
        put_record(&mut records, PATH, file.name.as_bytes());
    }
    if file.bytes > HEADER_SIZE_MAX {
        put_record(&mut records, SIZE, file.bytes.to_string().as_bytes());
    }
    let (seconds, milliseconds) = (file.modified_ms / 1_000, file.modified_ms % 1_000);
    put_record(&mut records, MTIME, format!("{seconds}.{milliseconds:03}").as_bytes());
    put_record(&mut records, TYPE, file.content_type.as_bytes());
    if !file.attributes.is_empty() {
        put_record(&mut records, ATTRIBUTES, file.attributes);
    }
    put_record(&mut records, ETAG, file.etag.as_bytes());
    put_record(&mut records, CREATED, file.created_ms.to_string().as_bytes());

    let mut bytes = Vec::with_capacity(4 * BLOCK_BYTES);
    let records_bytes = records.len() as u64;
    bytes.extend(header(EntryType::XHeader, "TRUG.records", records_bytes, seconds).as_bytes());
    bytes.extend(&records);
    bytes.resize(bytes.len().next_multiple_of(BLOCK_BYTES), 0);
    // Readers that support the records take name and size from there.
    let name = if fits { file.name } else { "TRUG.long-name" };
    let size = file.bytes.min(HEADER_SIZE_MAX);
    bytes.extend(header(EntryType::Regular, name, size, seconds).as_bytes());
    bytes
}

fn header(kind: EntryType, name: &str, bytes: u64, modified_s: u64) -> Header {
    let mut header = Header::new_ustar();
    for (to, from) in header.as_old_mut().name.iter_mut().zip(name.bytes()) {
        *to = from;
    }
    header.set_entry_type(kind);
    header.set_size(bytes);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(modified_s.min(HEADER_SIZE_MAX));
    header.set_cksum();
    header
}

fn put_record(records: &mut Vec<u8>, keyword: &str, value: &[u8]) {
    let rest = keyword.len() + value.len() + 3;
    // The length includes its own digits.
    let mut length = rest + 1;
    while rest + decimal_digits(length) != length {
        length = rest + decimal_digits(length);
    }
    let mut head = String::new();
    let _ = write!(head, "{length} {keyword}=");
    records.extend(head.as_bytes());
    records.extend(value);
    records.push(b'\n');
}

fn decimal_digits(number: usize) -> usize {
    number.checked_ilog10().map_or(1, |digits| digits as usize + 1)
}

fn number(digits: &[u8]) -> Option<u64> {
    let is_plain = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    str::from_utf8(digits).ok().filter(|_| is_plain)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, bytes: u64) -> EntryHeader<'_> {
        EntryHeader {
            name,
            bytes,
            modified_ms: 1_700_000_000_042,
            created_ms: 1_600_000_000_000,
            content_type: "text/plain; charset=utf-8",
            attributes: b"{\"a\":\"=\n\"}",
            etag: "00112233445566778899aabbccddeeff",
        }
    }

    fn block(bytes: &[u8], at: usize) -> &[u8; BLOCK_BYTES] {
        bytes[at..at + BLOCK_BYTES].try_into().unwrap()
    }

    #[test]
    fn tar_header_round_trips() {
        let long = "d/".repeat(500);
        let (long, large) = (format!("{long}ä.txt"), HEADER_SIZE_MAX + 1);
        for (name, bytes) in [("a.txt", 0), (&*long, 7), ("caf\u{e9}.txt", large)] {
            let written = encode(&file(name, bytes));
            let first = decode(block(&written, 0)).unwrap();
            assert_eq!(first.kind, EntryKind::PaxHeader);
            let end = BLOCK_BYTES + first.bytes as usize;
            let records = decode_records(&written[BLOCK_BYTES..end]).unwrap();
            let head = decode(block(&written, end.next_multiple_of(BLOCK_BYTES))).unwrap();
            assert_eq!(head.kind, EntryKind::File);
            assert_eq!(records.path.clone().unwrap_or(head.name), name.as_bytes());
            assert_eq!(records.bytes.unwrap_or(head.bytes), bytes);
            assert_eq!(records.content_type.as_deref(), Some("text/plain; charset=utf-8"));
            assert_eq!(records.attributes.as_deref(), Some(&b"{\"a\":\"=\n\"}"[..]));
            assert_eq!(records.etag.as_deref(), Some("00112233445566778899aabbccddeeff"));
            assert_eq!(records.created_ms, Some(1_600_000_000_000));
        }
    }

    #[test]
    fn pax_record_length_includes_its_digits() {
        for bytes in [0, 1, 87, 88, 89, 90, 91, 985, 986, 987, 988, 989, 990] {
            let mut records = Vec::new();
            put_record(&mut records, PATH, &vec![b'x'; bytes]);
            assert_eq!(decode_records(&records).unwrap().path.map(|it| it.len()), Some(bytes));
        }
    }

    #[test]
    fn malformed_records_are_refused() {
        for bad in [
            &b"x"[..],
            b"5 a=b",
            b"6 a=b\n9 ",
            b"99 a=b\n",
            b"0 a=b\n",
            b"2 a=b\n",
            b"-6 a=b\n",
            b"6 a-b\n",
            b"10 size=x\n",
            b"11 size=-1\n",
            b"17 TRUG.created=\n",
            b"19 TRUG.created=-1\n",
            b"99999999999999999999 a=b\n",
        ] {
            assert!(decode_records(bad).is_err(), "{}", bad.escape_ascii());
        }
        assert!(decode_records(b"22 GNU.sparse.major=1\n").unwrap().is_sparse);
    }

    #[test]
    fn malformed_headers_are_refused() {
        let good = header(EntryType::Regular, "a", 5, 0);
        assert_eq!(decode(good.as_bytes()).unwrap().bytes, 5);
        let mut flipped = good.clone();
        flipped.as_mut_bytes()[0] ^= 1;
        assert!(decode(flipped.as_bytes()).is_err());
        for size in [&b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"[..], b"\x81", b"zzz"] {
            let mut odd = good.clone();
            odd.as_mut_bytes()[124..124 + size.len()].copy_from_slice(size);
            odd.set_cksum();
            assert!(decode(odd.as_bytes()).is_err(), "{}", size.escape_ascii());
        }
    }
}
