//! `trug remote restore --on-demand`: a server on a folder whose large files are only in the remote store.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use tests::DataFolder;
use tests::store::body;

const BIG_BYTES: usize = 3_000_000;
/// Timeout for what happens in the background.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns the names of the segments of large files, and of references to them.
fn large(folder: &DataFolder) -> (Vec<String>, Vec<String>) {
    let names = fs::read_dir(folder.path().join("big/00")).expect("a folder");
    let name = |name: OsString| name.into_string().expect("the name is UTF-8");
    let names = names.map(|entry| name(entry.expect("it is read").file_name()));
    names.partition(|name| name.ends_with(".seg"))
}

fn put(folder: &DataFolder, name: &str, content: &[u8]) {
    let path = folder.parent().join(name);
    fs::write(&path, content).expect("it can be written");
    folder.done(&["cp", path.to_str().expect("the path is UTF-8"), "photos/"]);
}

/// A folder restored on demand of which `big.bin` is only in the remote store.
fn restored(remote: &Path) -> (DataFolder, String, Vec<u8>) {
    let url = format!("file://{}", remote.display());
    let (folder, _) = DataFolder::with_bucket();
    let content = body(7, BIG_BYTES);
    put(&folder, "big.bin", &content);
    put(&folder, "small.txt", b"small");
    folder.done(&["remote", "attach", &url]);
    let copy = DataFolder::new();
    let ran = copy.done(&["remote", "restore", &url, "--on-demand"]);
    assert!(ran.stdout.starts_with("restored the state of "), "{ran:?}");
    let (files, references) = large(&copy);
    assert_eq!((files.len(), references.len()), (0, 1), "{files:?} {references:?}");
    (copy, url, content)
}

#[test]
fn files_are_served_from_the_remote_store_on_demand() {
    let remote = tempfile::tempdir().expect("a folder");
    let (folder, url, content) = restored(remote.path());
    folder.run(&["fsck"]).check_failure(1, "is only in the remote store");
    folder.run(&["cat", "photos/big.bin"]).check_failure(1, "name it with --config");
    folder.run(&["remote", "detach"]).check_failure(1, " segments are only in the remote store");
    let set = [format!("remote_url={url}"), "local_cache_bytes=1073741824".to_owned()];
    let words = ["--listen", "127.0.0.1:0", "--set", &set[0], "--set", &set[1]];
    let server = folder.serve_with(&words);
    let mut connection = server.connect();
    assert_eq!(connection.get("/photos/small.txt").expect("it answers").body, b"small");
    let part = connection
        .send("GET", "/photos/big.bin", &[("range", "bytes=1000000-1000099")], b"")
        .expect("it answers");
    assert_eq!(part.status, 206);
    assert!(part.body == content[1_000_000..1_000_100]);
    // The segments in the remote store cannot be read: what is on this machine is served, and other files get an error
    // until they can be read again.
    server.stop();
    let (segments, away) = (remote.path().join("seg"), remote.path().with_extension("away"));
    fs::rename(&segments, &away).expect("it is renamed");
    symlink("/dev/null", &segments).expect("it is linked");
    let server = folder.serve_with(&words);
    let mut connection = server.connect();
    let rejected = connection.get("/photos/big.bin").expect("it answers");
    assert_eq!((rejected.status, &rejected.json()["code"]), (503, &"remote_unavailable".into()));
    assert_eq!(connection.get("/photos/small.txt").expect("it answers").body, b"small");
    let link = remote.path().join("seg.new");
    symlink(&away, &link).expect("it is linked");
    fs::rename(&link, &segments).expect("it is renamed");
    assert!(connection.get("/photos/big.bin").expect("it answers").body == content);
    server.stop();
}

#[test]
fn files_are_fetched_back_without_a_limit() {
    let remote = tempfile::tempdir().expect("a folder");
    let (folder, url, content) = restored(remote.path());
    let set = format!("remote_url={url}");
    let server = folder.serve_with(&["--listen", "127.0.0.1:0", "--set", &set]);
    let deadline = Instant::now() + PATIENCE;
    while large(&folder).1.len() == 1 {
        assert!(Instant::now() < deadline, "{:?}", large(&folder));
        thread::sleep(Duration::from_millis(50));
    }
    server.stop();
    folder.done(&["fsck", "--deep"]);
    folder.done(&["remote", "detach"]);
    let server = folder.serve();
    assert!(server.connect().get("/photos/big.bin").expect("it answers").body == content);
    server.stop();
}

#[test]
fn stopped_folder_reads_files_in_the_remote_store() {
    let remote = tempfile::tempdir().expect("a folder");
    let (folder, url, content) = restored(remote.path());
    let config = folder.write_file("trug.toml", format!("remote_url = \"{url}\"\n"));
    let copy = folder.parent().join("copy.bin");
    let copy = copy.to_str().expect("the path is UTF-8");
    folder.done(&["cp", "photos/big.bin", copy, "--config", &config]);
    assert!(fs::read(copy).expect("it was copied") == content);
    folder.done(&["fsck", "--deep", "--config", &config]);
    // A change to the copy in the remote store is damage.
    let name = large(&folder).1.remove(0);
    let id = name.strip_suffix(".ref").expect("a reference");
    let objects = fs::read_dir(remote.path().join("seg")).expect("a folder");
    let objects = objects.map(|entry| entry.expect("it is read").path());
    let object = objects.into_iter().find(|path| path.display().to_string().contains(id));
    let object = object.expect("it is there");
    let mut changed = fs::read(&object).expect("it is read");
    changed[1_000_000] ^= 1;
    fs::write(&object, &changed).expect("it is written");
    let checked = folder.run(&["fsck", "--deep", "--config", &config]);
    assert_eq!(checked.code, 3, "{checked:?}");
    assert!(checked.stdout.contains("photos/big.bin"), "{checked:?}");
    folder.done(&["fsck", "--config", &config]);
    // The running server needs no configuration of the command.
    let server = folder.serve_with(&["--listen", "127.0.0.1:0", "--config", &config]);
    assert_eq!(folder.done(&["cat", "photos/small.txt"]).stdout, "small");
    server.stop();
}
