//! Malicious archives and folders: forbidden entries are rejected and named, the rest is imported.

use std::fs;

use tar::{EntryType, Header};
use tests::{DataFolder, Ran};

use crate::archives::word;

/// An archive, byte by byte.
#[derive(Default)]
struct Crafted(Vec<u8>);

impl Crafted {
    /// Appends a header block with this name, unchanged, and this size, whatever follows.
    fn head(mut self, kind: EntryType, name: &[u8], bytes: u64) -> Self {
        let mut header = Header::new_gnu();
        header.as_old_mut().name[..name.len()].copy_from_slice(name);
        header.set_entry_type(kind);
        header.set_size(bytes);
        header.set_mode(0o644);
        if matches!(kind, EntryType::Symlink | EntryType::Link) {
            header.as_old_mut().linkname[..11].copy_from_slice(b"/etc/passwd");
        }
        header.set_cksum();
        self.0.extend(header.as_bytes());
        self
    }

    fn body(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    fn file(self, name: &[u8], bytes: &[u8]) -> Self {
        self.head(EntryType::Regular, name, bytes.len() as u64).body(bytes)
    }

    fn records(self, kind: EntryType, records: &[u8]) -> Self {
        self.head(kind, b"records", records.len() as u64).body(records)
    }

    fn end(mut self) -> Vec<u8> {
        self.0.extend([0; 1_024]);
        self.0
    }
}

/// Returns an extension record, which starts with its own length.
fn record(keyword: &str, value: &str) -> Vec<u8> {
    let rest = format!(" {keyword}={value}\n");
    let length = (rest.len()..).find(|it| it.to_string().len() + rest.len() == *it);
    format!("{}{rest}", length.expect("there is a length")).into_bytes()
}

fn check_plain(ran: &Ran) {
    for text in [&ran.stdout, &ran.stderr] {
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    }
}

/// Checks that the entry is rejected with this reason, and that the file after it is imported.
fn check_rejected(archive: Crafted, says: &str) {
    let (folder, _) = DataFolder::with_bucket();
    let ran = folder.import_archive(&archive.file(b"good.txt", b"good").end(), &[]);
    assert_eq!(ran.code, 1, "{says}: {ran:?}");
    assert!(ran.stdout.contains(says), "{says:?} is not in {ran:?}");
    assert!(ran.stdout.contains("refused       1 files"), "{ran:?}");
    assert!(ran.stderr.contains("1 files were refused"), "{ran:?}");
    assert_eq!(folder.json(&["stats"])["objects"], 1, "{says}");
    check_plain(&ran);
}

/// Checks that reading stops with this reason; earlier entries are imported.
fn broken(archive: &[u8], says: &str, before: u64) {
    let (folder, _) = DataFolder::with_bucket();
    let ran = folder.import_archive(archive, &[]);
    assert_eq!(ran.code, 1, "{says}: {ran:?}");
    assert!(ran.stderr.contains("ended early") && ran.stderr.contains(says), "{says:?}: {ran:?}");
    assert_eq!(folder.json(&["stats"])["objects"], before, "{says}");
    check_plain(&ran);
}

#[test]
fn archive_path_traversal_names_are_rejected() {
    for (name, says) in [
        (&b"../evil.txt"[..], "../evil.txt: its name is not a valid key: it has a path segment"),
        (b"a/../../evil.txt", "a/../../evil.txt: its name is not a valid key"),
        (b"a/..", "path segment"),
        (b"./../evil.txt", "path segment"),
        (b"/etc/passwd", "/etc/passwd: its path is absolute"),
        (b"//etc/passwd", "its path is absolute"),
        (b"C:\\evil.txt", "begins with a drive letter"),
        (b"c:/evil.txt", "begins with a drive letter"),
        (b"a\\..\\evil.txt", "it contains a backslash"),
        (
            b"a\x1b[2J.txt",
            "a\\u{1b}[2J.txt: its name is not a valid key: it contains a control character",
        ),
        (b"a\r\nb.txt", "it contains a control character"),
        (b"a\xc2\x9b2J.txt", "it contains a control character"),
        (b"a\xff\xfe.txt", "a\\xff\\xfe.txt: its name is not UTF-8"),
        (b"a//b.txt", "it has an empty path segment"),
        (b"", "it is empty"),
        (b"presigned/a.txt", "reserved"),
    ] {
        check_rejected(Crafted::default().file(name, b"evil"), says);
    }
    // A folder entry with content is rejected.
    check_rejected(Crafted::default().file(b"a/", b"evil"), "its name is a folder name");
    // A name too long for a header block is in an extension.
    let long = record("path", &format!("{}x", "k/".repeat(600)));
    let with_records = |records: &[u8]| Crafted::default().records(EntryType::XHeader, records);
    check_rejected(with_records(&long).file(b"x", b"evil"), "it is longer than 1024 bytes");
    check_rejected(
        with_records(&record("path", "a\0b")).file(b"x", b"evil"),
        "it contains a control character",
    );
    let long_name = |name: &[u8]| Crafted::default().records(EntryType::GNULongName, name);
    check_rejected(long_name(b"../evil\0").file(b"x", b"evil"), "path segment");
    check_rejected(long_name(b"a\0b\0").file(b"x", b"evil"), "it contains a control character");
}

#[test]
fn archive_special_files_are_rejected() {
    for (kind, says) in [
        (EntryType::Symlink, "it is a symbolic link"),
        (EntryType::Link, "it is a hard link"),
        (EntryType::Char, "it is a device"),
        (EntryType::Block, "it is a device"),
        (EntryType::Fifo, "it is a named pipe"),
        (EntryType::new(b'V'), "not a regular file"),
    ] {
        check_rejected(Crafted::default().head(kind, b"odd.txt", 0), says);
    }
    // A link, and then a file through it: the name is only a name here.
    let (folder, _) = DataFolder::with_bucket();
    let archive = Crafted::default().head(EntryType::Symlink, b"etc", 0).file(b"etc/x", b"x").end();
    let ran = folder.import_archive(&archive, &[]);
    assert!(ran.code == 1 && ran.stdout.contains("imported      1 files"), "{ran:?}");
}

#[test]
fn archive_sparse_files_are_rejected_without_desync() {
    let mut sparse = Crafted::default().head(EntryType::GNUSparse, b"holes.bin", 4);
    // The header announces one more block of the map, which its size does not count.
    sparse.0[482] = 1;
    let sum: u32 = sparse
        .0
        .iter()
        .enumerate()
        .map(|(at, byte)| match at {
            148..156 => 32,
            _ => u32::from(*byte),
        })
        .sum();
    sparse.0[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut map = [0; 512];
    map[..9].copy_from_slice(b"evil.txt\0");
    check_rejected(sparse.body(&map).body(b"data"), "holes.bin: sparse files are not supported");
    let records = [record("GNU.sparse.major", "1"), record("GNU.sparse.realsize", "999999")];
    let sparse = Crafted::default().records(EntryType::XHeader, &records.concat());
    check_rejected(sparse.file(b"holes.bin", b"data"), "sparse files are not supported");
}

#[test]
fn archive_duplicate_names_are_rejected() {
    let twice = Crafted::default().file(b"./good.txt", b"first");
    check_rejected(twice, "good.txt: duplicate file name in the archive");
    let (folder, _) = DataFolder::with_bucket();
    let archive = Crafted::default()
        .file(b"A.txt", b"upper")
        .file(b"a.txt", b"lower")
        .file("caf\u{e9}.txt".as_bytes(), b"composed")
        .file("cafe\u{301}.txt".as_bytes(), b"decomposed")
        .end();
    let ran = folder.import_archive(&archive, &[]);
    assert!(ran.code == 1 && ran.stdout.contains("imported      3 files"), "{ran:?}");
    assert!(ran.stdout.contains("duplicate file name"), "{ran:?}");
}

#[test]
fn archive_false_sizes_import_nothing() {
    let lie = |bytes: u64| {
        let before = Crafted::default().file(b"good.txt", b"good");
        before.head(EntryType::Regular, b"lie.bin", bytes).body(b"short").end()
    };
    broken(&lie(100_000), "truncated inside a file", 1);
    broken(&lie(7 << 30), "truncated inside a file", 1);
    broken(&lie(1 << 60), "truncated inside a file", 1);
    broken(&lie(u64::MAX >> 1), "truncated inside a file", 1);
    let records = Crafted::default()
        .records(EntryType::XHeader, &record("size", &u64::MAX.to_string()))
        .file(b"lie.bin", b"short")
        .end();
    broken(&records, "invalid entry size", 0);
    // A link with a body: some readers skip the body, others read it as the next header.
    let hidden = Crafted::default().file(b"evil.txt", b"evil").end();
    let archive =
        Crafted::default().head(EntryType::Link, b"link", hidden.len() as u64).body(&hidden).end();
    broken(&archive, "not a file has a body", 0);
    let global = Crafted::default().records(EntryType::XGlobalHeader, &record("path", "evil"));
    broken(&global.file(b"a", b"a").end(), "global pax headers", 0);
}

#[test]
fn archive_truncation_is_detected() {
    let whole = Crafted::default().file(b"a.txt", b"a").file(b"b.txt", &[b'b'; 2_000]).end();
    for (length, says, before) in [
        (whole.len() - 1_024, "no end-of-archive marker", 1 + 1),
        (whole.len() - 1_024 - 300, "truncated", 1),
        (whole.len() - 2_100, "truncated inside a file", 1),
        (1_024 + 100, "no end-of-archive marker", 1),
        (100, "not a tar archive", 0),
        (0, "the archive is empty", 0),
    ] {
        broken(&whole[..length], says, before);
    }
    let mut flipped = whole.clone();
    flipped[1_024] ^= 1;
    broken(&flipped, "header checksum mismatch, at byte 1536", 1);
}

#[test]
fn archive_long_extensions_are_bounded_in_memory() {
    let bomb = vec![b'a'; 3_000_000];
    let long_name = Crafted::default().records(EntryType::GNULongName, &bomb);
    check_rejected(long_name.file(b"x", b"evil"), "its name is too long");
    let records = Crafted::default().records(EntryType::XHeader, &bomb);
    broken(&records.file(b"x", b"evil").end(), "an extension header is too long", 0);
    let claims = Crafted::default().head(EntryType::GNULongName, b"x", 8 << 30).end();
    broken(&claims, "truncated inside", 0);
    let records = Crafted::default().records(EntryType::XHeader, b"99999 path=a\n");
    broken(&records.file(b"x", b"evil").end(), "an extension header is malformed", 0);
    let mut chain = Crafted::default();
    for _ in 0..5_000 {
        chain = chain.records(EntryType::XHeader, &record("path", "a"));
    }
    let (folder, _) = DataFolder::with_bucket();
    assert_eq!(folder.import_archive(&chain.file(b"x", b"x").end(), &[]).code, 0);
}

#[test]
fn archive_trug_metadata_is_validated() {
    let with = |keyword: &str, value: &str| {
        Crafted::default().records(EntryType::XHeader, &record(keyword, value))
    };
    let etag = "00112233445566778899aabbccddeeff";
    check_rejected(
        with("TRUG.etag", etag).file(b"x.txt", b"x"),
        "its checksum does not match the exported one",
    );
    check_rejected(
        with("TRUG.attributes", "[1]").file(b"x.txt", b"x"),
        "its pax attributes are not",
    );
    let large = format!("{{\"a\":\"{}\"}}", "x".repeat(7_000));
    check_rejected(
        with("TRUG.attributes", &large).file(b"x.txt", b"x"),
        "its pax attributes are not",
    );
    // A content type is untrusted, like a client's.
    let (folder, _) = DataFolder::with_bucket();
    let png = b"\x89PNG\r\n\x1a\n0000IHDR";
    let archive = with("TRUG.type", "text/html").file(b"x.png", png).end();
    assert_eq!(folder.import_archive(&archive, &[]).code, 0);
    let server = folder.serve();
    let answer = server.get("/photos/x.png");
    assert_eq!(answer.header("content-type"), "image/png");
}

#[test]
fn archive_non_tar_input_is_reported() {
    for (start, says) in [
        (&b"\x1f\x8b\x08"[..], "decompress it first (gzip -dc"),
        (b"\x28\xb5\x2f\xfd", "decompress it first (zstd -dc"),
        (b"\xfd7zXZ\0", "decompress it first (xz -dc"),
        (b"BZh9", "decompress it first (bzip2 -dc"),
        (b"PK\x03\x04", "it is a ZIP archive"),
        (b"#!/bin/sh", "it is not a tar archive"),
    ] {
        broken(&[start, &[b'x'; 2_000]].concat(), says, 0);
        broken(start, says, 0);
    }
}

#[test]
fn import_of_folder_does_not_follow_symlinks() {
    let (folder, _) = DataFolder::with_bucket();
    let source = folder.parent().join("source");
    fs::create_dir_all(source.join("deep")).expect("a folder can be made");
    fs::write(source.join("deep/good.txt"), "good").expect("it can be written");
    fs::write(source.join("a\u{1b}[2J.txt"), "evil").expect("it can be written");
    fs::write(source.join("a\\b.txt"), "evil").expect("it can be written");
    std::os::unix::fs::symlink("/etc/passwd", source.join("link")).expect("a link can be made");
    std::os::unix::fs::symlink("/etc", source.join("deep/folder")).expect("a link can be made");
    drop(std::os::unix::net::UnixListener::bind(source.join("socket")).expect("a socket"));
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, source.join("pipe"), fifo, mode, 0).expect("a pipe");
    let mut deep = source.join("very");
    for _ in 0..260 {
        deep.push("d");
    }
    fs::create_dir_all(&deep).expect("folders can be made");
    let ran = folder.run(&["import", "--bucket", "photos", "--from", &word(&source)]);
    assert_eq!(ran.code, 1, "{ran:?}");
    check_plain(&ran);
    for part in [
        "imported      1 files",
        "refused       7 files",
        "link: it is a symbolic link",
        "deep/folder: it is a symbolic link",
        "pipe: it is a named pipe",
        "socket: it is a socket",
        "a\\u{1b}[2J.txt: its name is not a valid key",
        "it contains a backslash",
        "it is nested too deeply (limit 256 folders)",
    ] {
        assert!(ran.stdout.contains(part), "{part:?} is not in {ran:?}");
    }
}
