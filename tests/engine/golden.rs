//! Golden stores: what an earlier version wrote opens and reads back for ever, with its index and without.
//!
//! One folder of fixtures per format version. It was written once, by the ignored test below, and is never changed: a
//! version that cannot read it has broken the format.

use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use engine::disk::Disk;
use engine::disk::sim::SimDisk;
use tests::store::{
    Change, Contents, Model, START_MS, World, batch, body, bucket_named, commit, fact, name,
    name_in, put, read,
};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/format_v1")
}

/// The end of the name of a file that is kept without its blank pages: the index is a mebibyte of nearly nothing.
///
/// Its length, then the number and the bytes of each page with something in it; numbers are 8 bytes, little-endian.
const PAGES: &str = ".pages";
const PAGE_BYTES: usize = 4_096;

fn fold(bytes: &[u8]) -> Vec<u8> {
    let mut folded = (bytes.len() as u64).to_le_bytes().to_vec();
    for (number, page) in (0_u64..).zip(bytes.chunks(PAGE_BYTES)) {
        if page.iter().any(|byte| *byte != 0) {
            folded.extend_from_slice(&number.to_le_bytes());
            folded.extend_from_slice(page);
        }
    }
    folded
}

fn unfold(folded: &[u8]) -> Vec<u8> {
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap()) as usize;
    let (length, pages) = folded.split_at(8);
    let mut bytes = vec![0; number(length)];
    for page in pages.chunks(8 + PAGE_BYTES) {
        let (at, page) = page.split_at(8);
        bytes[number(at) * PAGE_BYTES..][..page.len()].copy_from_slice(page);
    }
    bytes
}

/// What the store of format version 1 was told to do, before and after a checkpoint.
fn story() -> [Vec<Vec<Change>>; 2] {
    let bytes = |seed, length| Bytes::from(body(seed, length));
    let put = |key: &str, seed, length| Change::Put(name(key), bytes(seed, length));
    let other = bucket_named("other-bucket.1");
    let before = vec![
        vec![put("small", 1, 300), put("empty", 0, 0), put("gone", 2, 50)],
        vec![put("folder/Ünïcode 日本.txt", 3, 700), put("folder/", 0, 0)],
        vec![put("big", 4, 70_000), Change::PutFact(fact("account/1"), bytes(5, 100))],
        vec![put("overwritten", 6, 10), Change::PutFact(fact("token/x"), bytes(7, 16))],
        (0..7).map(|at| put(&format!("fill/{at}"), 20 + at, 3_900)).collect(),
    ];
    let after = vec![
        vec![put("overwritten", 8, 5_000), Change::Delete(name("gone"))],
        (0..7).map(|at| put(&format!("fill/{at}"), 30 + at, 3_900)).collect(),
        vec![Change::PutDerived(name_in(&other, "thumb"), bytes(9, 64))],
        vec![Change::DeleteFact(fact("token/x")), Change::PutFact(fact("token/y"), bytes(10, 16))],
    ];
    [before, after]
}

fn expected() -> Model {
    let mut model = Model::default();
    story().concat().iter().for_each(|changes| model.apply(changes));
    model
}

/// A machine with the golden store on its disk.
fn golden() -> World {
    let disk = SimDisk::new();
    copy_in(&disk, &folder(), "");
    World::on(disk, 2)
}

fn copy_in(disk: &SimDisk, from: &Path, to: &str) {
    for entry in fs::read_dir(from).expect("the golden store is in the repository") {
        let entry = entry.unwrap();
        let found = entry.file_name().into_string().unwrap();
        let path = if to.is_empty() { found } else { format!("{to}/{found}") };
        if entry.file_type().unwrap().is_dir() {
            disk.create_folder(&path).unwrap();
            copy_in(disk, &entry.path(), &path);
        } else {
            let bytes = fs::read(entry.path()).unwrap();
            let (path, bytes) = match path.strip_suffix(PAGES) {
                Some(path) => (path, unfold(&bytes)),
                None => (path.as_str(), bytes),
            };
            let file = disk.create(path).unwrap();
            file.write_at(0, &[&bytes]).unwrap();
            file.sync_data().unwrap();
        }
        disk.sync_folder(to).unwrap();
    }
}

#[test]
fn a_store_of_format_version_1_opens_reads_back_and_goes_on() {
    let world = golden();
    let (store, report) = world.open_and_tell();
    assert_eq!(report.damage.len(), 0);
    assert!(report.index_rebuilt, "its tables are of an older version");
    Contents::of(&store).unwrap().must_be(&expected()).unwrap();
    let object = store.get(&name("small")).unwrap().unwrap();
    assert_eq!((object.created_ms(), object.lsn()), (START_MS, 1));
    put(&store, &name("new"), b"of a later version").unwrap();
    drop(store);
    assert_eq!(read(&world.open(), &name("new")).unwrap().unwrap(), b"of a later version");
}

#[test]
fn a_store_of_format_version_1_opens_without_its_index() {
    let world = golden();
    world.disk.remove("index.redb").unwrap();
    let (store, report) = world.open_and_tell();
    assert!(report.index_rebuilt && report.damage.is_empty(), "{report}");
    Contents::of(&store).unwrap().must_be(&expected()).unwrap();
}

#[test]
#[ignore = "writes the golden store anew: only for a format version that was never released"]
fn write_the_golden_store() {
    let world = World::new(1);
    let store = world.open();
    let [before, after] = story();
    for changes in &before {
        commit(&store, batch(&store, changes).unwrap()).unwrap();
        world.clock.advance(1_000);
    }
    store.checkpoint().unwrap();
    for changes in &after {
        commit(&store, batch(&store, changes).unwrap()).unwrap();
    }
    tests::store::idle(&store);
    let disk = world.disk.fork();
    drop(store);
    // The process was killed: the last segment is not sealed. What was never written in it is left out.
    let world = World::on(disk, 2);
    for path in world.disk.paths().iter().filter(|path| path.as_str() != "LOCK") {
        let target = folder().join(path);
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        let mut bytes = world.disk.bytes(path);
        if path == "index.redb" {
            fs::write(target.with_file_name(format!("{path}{PAGES}")), fold(&bytes)).unwrap();
            continue;
        }
        if path.starts_with("log/") {
            let written = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            bytes.truncate(written.next_multiple_of(4_096));
        }
        fs::write(target, bytes).unwrap();
    }
}
