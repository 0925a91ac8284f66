//! Shared support of the export and import tests: files in buckets, archives in memory.

use std::io::Read;

use tests::{DataFolder, Form, ServerProcess};

/// A file in an archive or a bucket.
pub(crate) type NamedFile = (String, Vec<u8>);

/// Uploads files into a bucket through a server.
pub(crate) fn upload(server: &ServerProcess, key: &str, files: &[NamedFile]) {
    for (path, bytes) in files {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let form = Form::new().file("file", name, Some("text/x-declared"), bytes);
        let address = format!("/photos/{folder}{}", if folder.is_empty() { "" } else { "/" });
        let answer = server.connect().with_key(key).upload(&address, form).expect("it answers");
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    }
}

/// Creates a store with these files in `photos`, the empty bucket `copy`, and a key to both.
pub(crate) fn store_with(files: &[NamedFile]) -> (DataFolder, String) {
    let (folder, key) = DataFolder::with_bucket();
    folder.done(&["bucket", "create", "--account", "ann", "--name", "copy"]);
    let server = folder.serve();
    upload(&server, &key, files);
    server.stop();
    (folder, key)
}

/// Returns files of all the kinds that are stored differently.
pub(crate) fn all_kinds() -> Vec<NamedFile> {
    let long = format!("{}/{}.txt", "long/".repeat(30).trim_end_matches('/'), "n".repeat(200));
    let file = |name: &str, bytes: Vec<u8>| (name.to_owned(), bytes);
    vec![
        file("a.txt", b"hello".to_vec()),
        file("empty.bin", Vec::new()),
        file("exact.bin", vec![7; 512]),
        file("deep/er/b.png", b"\x89PNG\r\n\x1a\n0000IHDR".to_vec()),
        file("deep/caf\u{e9}.html", b"<p>hi</p>".to_vec()),
        file("deep-er.txt", b"between a folder and its files in byte order".to_vec()),
        file(&long, b"a long name".to_vec()),
        file("big.bin", (0..3_000_000_u32).map(|at| (at / 7) as u8).collect()),
    ]
}

/// Returns the content of an archive, read by a third-party reader.
pub(crate) fn read_archive(bytes: &[u8]) -> Vec<NamedFile> {
    let mut archive = tar::Archive::new(bytes);
    let mut files = Vec::new();
    for entry in archive.entries().expect("it is an archive") {
        let mut entry = entry.expect("the archive can be read");
        let name = String::from_utf8(entry.path_bytes().into_owned()).expect("names are UTF-8");
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).expect("the file can be read");
        files.push((name, bytes));
    }
    files
}

/// Builds an archive of plain files with a third-party writer.
pub(crate) fn archive_of(files: &[NamedFile]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, &**bytes).expect("the archive can be made");
    }
    builder.into_inner().expect("the archive can be ended")
}

/// Returns a path as an argument.
pub(crate) fn word(path: &std::path::Path) -> String {
    path.to_str().expect("the path is text").to_owned()
}
