//! Stores written by the real binary, as read by `tests/reader/read_store.py` and as delivered by a server.

use std::path::Path;

use tests::python_reader::{read_in_python, require_python, sha256};
use tests::{DataFolder, ServerProcess};

use crate::archives::{all_kinds, upload, word};

/// Checks that the reader and the server name the same files of `photos`, with the same bytes.
fn agrees(folder: &Path, server: &ServerProcess, count: usize) {
    let output = read_in_python(folder);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(output.objects.len(), count, "{:?}", output.objects.keys());
    for ((bucket, key), object) in &output.objects {
        let path: String = key.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let answer = server.get(&format!("/{bucket}/{path}"));
        assert_eq!(answer.status, 200, "{key}");
        assert_eq!(object["sha256"], sha256(&answer.body), "{key}");
        assert_eq!(object["bytes"], answer.body.len(), "{key}");
    }
}

#[test]
fn python_reader_reads_killed_store_and_its_backup() {
    require_python();
    let (folder, key) = DataFolder::with_bucket();
    let mut server = folder.serve();
    let files = all_kinds();
    upload(&server, &key, &files);
    for turn in 0..4_u8 {
        let again: Vec<_> = (0..40).map(|at| (format!("again/{at}"), vec![turn; 3_000])).collect();
        for (path, _) in &again[..if turn == 0 { 0 } else { 40 }] {
            let answer = server.connect().with_key(&key).delete(&format!("/photos/{path}"));
            assert_eq!(answer.expect("it answers").status, 200);
        }
        upload(&server, &key, &again);
    }
    folder.done(&["compact", "--dead-percent-min", "1"]);
    agrees(&folder.path(), &server, files.len() + 40);
    let backup = folder.parent().join("backup");
    folder.done(&["backup", "--to", &word(&backup)]);
    agrees(&backup, &server, files.len() + 40);

    upload(&server, &key, &[("last.bin".to_owned(), vec![9; 200_000])]);
    server.kill();
    let output = read_in_python(&folder.path());
    assert_eq!((output.code, output.objects.len()), (0, files.len() + 41), "{}", output.stderr);
    let server = folder.serve();
    agrees(&folder.path(), &server, files.len() + 41);
    server.stop();
}

#[test]
fn python_reader_rejects_foreign_folder() {
    require_python();
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let output = read_in_python(folder.path());
    assert!(
        output.code == 1 && output.stderr.contains("is no store of format version 1"),
        "{output:?}"
    );
}
