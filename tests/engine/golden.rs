//! Golden stores: stores of earlier versions open and read back for ever, with their index and without.
//!
//! One folder of fixtures per format version. It was written once, by the ignored test below, and is never changed: a
//! version that cannot read it has broken the format.

use std::collections::BTreeSet;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use engine::disk::Disk;
use engine::disk::sim::SimDisk;
use engine::format::{GroupHeader, RecordKind, SEGMENT_HEADER_BYTES, SegmentHeader, salvage};
use engine::history::{RestoreError, UndeleteRequest, VersionState};
use engine::{Error, Store};
use memchr::memmem;
use tests::fixtures::version_states;
use tests::store::{
    Change, Contents, Model, START_MS, World, batch, body, bucket_named, commit, compact, delete,
    fact, name, name_in, put, read,
};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/format_v1")
}

/// Suffix of a file stored without its blank pages: the index is a mebibyte of mostly zeros.
///
/// The content is the file's length, then the number and the bytes of each non-blank page; numbers are 8 bytes,
/// little-endian.
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

/// Changes of the store of format version 1: before its first checkpoint; after it; during a compaction; and at the
/// end, after the damage had been recorded as loss.
fn story() -> [Vec<Vec<Change>>; 4] {
    let bytes = |seed, length| Bytes::from(body(seed, length));
    let put = |key: &str, seed, length| Change::Put(name(key), bytes(seed, length));
    let put_fact = |key: &str, seed| Change::PutFact(fact(key), bytes(seed, 16));
    let fill = |seed| (0_u64..7).map(|at| put(&format!("fill/{at}"), seed + at, 3_900)).collect();
    let other = bucket_named("other-bucket.1");
    let first = vec![
        vec![put("small", 1, 300), put("empty", 0, 0), put("gone", 2, 50)],
        vec![put("folder/Ünïcode 日本.txt", 3, 700), put("folder/", 0, 0)],
        vec![put("big", 4, 70_000), put_fact("account/1", 5), put_fact("gone", 11)],
        vec![put("overwritten", 6, 10), put_fact("token/x", 7)],
        fill(20),
    ];
    let second = vec![
        vec![put("overwritten", 8, 9_000), Change::Delete(name("gone"))],
        fill(30),
        vec![Change::PutDerived(name_in(&other, "thumb"), bytes(9, 64))],
        vec![Change::DeleteFact(fact("gone"))],
    ];
    let during_compaction = vec![
        vec![put(DOOMED, 13, 900)],
        vec![put("small", 12, 310), put("deleted", 14, 500), put(PUNCHED, 15, WIDE_INLINE_BYTES)],
        vec![Change::Delete(name("deleted")), Change::Delete(name(PUNCHED))],
    ];
    let last = vec![
        vec![put("small", 16, 320), put("late", 17, 40)],
        vec![Change::DeleteFact(fact("token/x")), put_fact("token/y", 10)],
    ];
    [first, second, during_compaction, last]
}

/// Object whose bytes were damaged, recorded as lost.
pub(crate) const DOOMED: &str = "doomed";
/// Object that was deleted, with a page of its body punched out.
const PUNCHED: &str = "punched";
/// Size of a body in the log that covers a whole page, wherever it is stored.
const WIDE_INLINE_BYTES: usize = 8 << 10;

/// Returns the expected final content, except for the lost object.
fn expected() -> Model {
    let mut model = Model::default();
    story().concat().iter().for_each(|changes| model.apply(changes));
    model.objects.remove(&name(DOOMED));
    model
}

/// Checks the store, however it was opened. Deletes the lost object.
fn check_golden_contents(store: &Store) {
    match read(store, &name(DOOMED)) {
        Err(Error::Corrupt(corruption)) => assert_eq!(corruption.object, Some(name(DOOMED))),
        other => panic!("it was lost: {other:?}"),
    }
    delete(store, &name(DOOMED)).unwrap();
    Contents::of(store).unwrap().check_against(&expected()).unwrap();
    let object = store.get(&name("folder/Ünïcode 日本.txt")).unwrap().unwrap();
    assert_eq!(
        (object.created_ms(), object.lsn()),
        (START_MS + 1_000, 4),
        "as before it was copied"
    );
    let stats = store.stats().unwrap();
    assert_eq!((stats.compacted.segments, stats.big.segments), (1, 2), "{stats:?}");

    let old = |state, recoverable| Some((state, recoverable));
    let whole = |state| old(state, Ok(()));
    let (current, replaced, deleted) =
        (VersionState::Current, VersionState::Replaced, VersionState::Deleted);
    // The first is in the compacted segment, the others in two of the log.
    assert_eq!(version_states(store, "small"), [whole(replaced), whole(replaced), whole(current)]);
    assert_eq!(
        version_states(store, "overwritten"),
        [whole(current)],
        "the first one was compacted away"
    );
    assert_eq!(version_states(store, "deleted"), [whole(deleted), None]);
    let given_back = old(deleted, Err(RestoreError::SpaceReclaimed));
    assert_eq!(version_states(store, PUNCHED), [given_back, None]);
    let damaged = |state| old(state, Err(RestoreError::Damaged));
    assert_eq!(version_states(store, DOOMED), [damaged(replaced), damaged(deleted), None]);
    let request = UndeleteRequest::Object(name("deleted"));
    store.undelete(&request, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(read(store, &name("deleted")).unwrap().unwrap(), body(14, 500));
}

/// Creates a machine with the golden store on its disk.
pub(crate) fn golden() -> World {
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
fn golden_v1_store_opens_reads_and_accepts_writes() {
    let world = golden();
    let (store, report) = world.open_with_report();
    assert!(!report.index_rebuilt && report.damage.is_empty(), "{report}");
    check_golden_contents(&store);
    put(&store, &name("new"), b"of a later version").unwrap();
    let compacted = compact(&store).unwrap();
    assert!(compacted.segments_removed > 0, "{compacted:?}");
    drop(store);
    assert_eq!(read(&world.open(), &name("new")).unwrap().unwrap(), b"of a later version");
}

#[test]
fn golden_v1_store_opens_without_index() {
    let world = golden();
    world.disk.remove("index.redb").unwrap();
    let (store, report) = world.open_with_report();
    assert!(report.index_rebuilt && report.damage.is_empty(), "{report}");
    check_golden_contents(&store);
}

#[test]
fn golden_v1_store_passes_fsck() {
    let world = golden();
    for index in ["as written", "after an open"] {
        let report = world.fsck(true).unwrap();
        assert!(report.is_clean(), "{index}: {report}");
        assert_eq!(report.known_losses, 1, "{index}: {report}");
        world.open().close().unwrap();
    }
}

#[test]
fn golden_v1_store_scrub_finds_only_its_known_damage() {
    let world = golden();
    let store = world.open();
    let scrubbed = store.scrub(&mut |_| ControlFlow::Continue(())).unwrap();
    // The group with the lost object in it.
    let places = scrubbed.damage.places.iter().map(|it| (it.file(), it.offset));
    assert_eq!(Vec::from_iter(places), [("log/0000000005.seg".to_owned(), 4_096)]);
}

#[test]
fn golden_v1_store_has_every_record_kind() {
    let world = golden();
    let mut kinds = BTreeSet::new();
    for path in world.disk.paths().iter().filter(|path| !path.starts_with("big/")) {
        let bytes = world.disk.bytes(path);
        let Some(page) = bytes.get(..SEGMENT_HEADER_BYTES) else { continue };
        let Ok(header) = SegmentHeader::decode_page(page) else { continue };
        let mut at = SEGMENT_HEADER_BYTES;
        // The group with the lost object is damaged.
        while let place = header.context().at(at as u64)
            && let Ok((group, _)) = GroupHeader::decode(&bytes[at..], place)
        {
            let end = at + group.group_bytes as usize;
            let records = salvage(&bytes[at..end], place);
            kinds.extend(records.iter().map(|scanned| scanned.record.op.kind().to_byte()));
            at = end;
        }
    }
    let all = (1..=u8::MAX).filter(|byte| RecordKind::from_byte(*byte).is_ok());
    assert_eq!(Vec::from_iter(kinds), Vec::from_iter(all));
}

#[test]
#[ignore = "rewrites the golden store: only for a format version that was never released"]
fn write_the_golden_store() {
    let mut world = World::new(1);
    world.options.inline_bytes_max = WIDE_INLINE_BYTES;
    let [first, second, during_compaction, last] = story();
    let play = |store: &Store, part: &[Vec<Change>]| {
        for changes in part {
            commit(store, batch(store, changes).unwrap()).unwrap();
            world.clock.advance(1_000);
        }
    };
    let store = world.open();
    play(&store, &first);
    store.checkpoint().unwrap();
    play(&store, &second);
    store.close().unwrap();

    let store = world.open();
    play(&store, &during_compaction[..1]);
    let compacted = compact(&store).unwrap();
    assert_eq!((compacted.segments_removed, compacted.segments_written), (1, 1), "{compacted:?}");
    play(&store, &during_compaction[1..]);
    store.close().unwrap();

    let store = world.open();
    play(&store, &last[..1]);
    store.checkpoint().unwrap();
    world.disk.set_free_bytes(300_000);
    let punched = compact(&store).unwrap();
    assert_eq!((punched.punched_bytes, punched.segments_removed), (4_096, 0), "{punched:?}");
    world.disk.set_free_bytes(1 << 30);
    store.close().unwrap();

    let doomed = body(13, 900);
    let (path, at) = world
        .files_in("log/")
        .into_iter()
        .find_map(|path| {
            let bytes = world.disk.bytes(&path);
            let at = memmem::find(&bytes, &doomed)?;
            Some((path, at as u64))
        })
        .unwrap();
    // The end of its head, and its body.
    for damaged in [at - 20, at] {
        world.disk.flip(&path, damaged, 1);
    }
    world.repair().unwrap();

    let store = world.open();
    store.checkpoint().unwrap();
    play(&store, &last[1..]);
    tests::store::idle(&store);
    let disk = world.disk.fork();
    drop(store);
    // The process was killed: the last segment is not sealed. Its unwritten part is left out.
    fs::remove_dir_all(folder()).unwrap();
    for path in disk.paths().iter().filter(|path| path.as_str() != "LOCK") {
        let target = folder().join(path);
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        let mut bytes = disk.bytes(path);
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
