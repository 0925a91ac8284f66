//! Retained large objects after their deletion: how long they can be restored, what removes them earlier, and their
//! accounting.

use std::ops::ControlFlow;
use std::sync::Arc;

use engine::compaction::CompactionRules;
use engine::disk::Disk;
use engine::disk::sim::SimDisk;
use engine::history::{
    DeletedFilter, LogScanCursor, LsnRange, NoncurrentFilter, NoncurrentVersion, RestoreError,
    UndeleteReport, UndeleteRequest,
};
use engine::stats::RetainedStats;
use engine::{Batch, FolderKey, PutOptions, Store};
use tests::fixtures::always_continue;
use tests::store::{
    START_MS, World, body, bucket, commit, compact, delete, idle, name, put, read, roll_over,
};

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const BIG_BYTES: usize = 90_000;

fn world() -> World {
    let mut world = World::new(1);
    world.options.retention_window_ms = HOUR_MS;
    world
}

fn retained(store: &Store) -> RetainedStats {
    store.stats().unwrap().retained
}

fn restore(store: &Store, key: &str) -> UndeleteReport {
    store.undelete(&UndeleteRequest::Object(name(key)), &mut always_continue).unwrap()
}

/// Creates a store in which `a`, 90,000 bytes, was deleted after a minute.
fn store_with_one_retained(world: &World) -> Store {
    let store = world.open();
    put(&store, &name("a"), &body(1, BIG_BYTES)).unwrap();
    world.clock.advance(MINUTE_MS);
    delete(&store, &name("a")).unwrap();
    store
}

#[test]
fn large_object_is_restorable_within_retention_window() {
    let world = world();
    let store = store_with_one_retained(&world);
    world.clock.advance(MINUTE_MS);
    put(&store, &name("b"), &body(2, BIG_BYTES)).unwrap();
    put(&store, &name("b"), b"small").unwrap();
    assert_eq!(world.files_in("big/").len(), 2);
    let until_ms = START_MS + MINUTE_MS + HOUR_MS;
    let stats = store.stats().unwrap();
    assert_eq!((stats.retained.segments, stats.retained.next_release_ms), (2, Some(until_ms)));
    assert_eq!((stats.big.segments, stats.object_bytes), (0, 5), "it counts as gone");

    let all = NoncurrentFilter {
        bucket: bucket(),
        prefix: "".into(),
        span: LsnRange::ALL,
        put_since_ms: 0,
    };
    let (lately, _) = store.recent_noncurrent(&all, None, 10).unwrap();
    let summary = |it: &engine::history::NoncurrentVersion| {
        (it.object.name().key.to_string(), store.recoverable_until_ms(&it.object))
    };
    let expected = [("b", until_ms + MINUTE_MS), ("a", until_ms)];
    let expected = expected.map(|(key, until)| (key.to_owned(), Some(until)));
    assert_eq!(lately.iter().map(summary).collect::<Vec<_>>(), expected);
    let in_log = store.list_noncurrent(&all, None, 10, &mut always_continue).unwrap();
    assert_eq!(in_log.versions.len(), 2);

    world.clock.advance(HOUR_MS - MINUTE_MS - 1);
    idle(&store);
    assert_eq!(restore(&store, "a").restored.len(), 1);
    assert_eq!(read(&store, &name("a")).unwrap().unwrap(), body(1, BIG_BYTES));
    world.clock.advance(1);
    idle(&store);
    assert_eq!(retained(&store).segments, 1, "the one that went first is gone");
    assert_eq!(world.files_in("big/").len(), 2);
    world.clock.advance(MINUTE_MS);
    idle(&store);
    assert_eq!(retained(&store), RetainedStats::default());
    assert_eq!(world.files_in("big/").len(), 1, "what came back");
    assert!(store.recent_noncurrent(&all, None, 10).unwrap().0.is_empty());
    let version = UndeleteRequest::Version { name: name("b"), lsn: lately[0].object.lsn() };
    let refused = store.undelete(&version, &mut always_continue).unwrap().failed;
    assert_eq!(refused[0].1, RestoreError::SpaceReclaimed);
}

#[test]
fn retention_survives_restart_and_index_loss() {
    for (loses_index, closes) in [(false, false), (false, true), (true, false), (true, true)] {
        let world = world();
        let mut store = store_with_one_retained(&world);
        let before = retained(&store);
        for _ in 0..2 {
            if closes {
                store.close().unwrap();
            }
            drop(store);
            if loses_index {
                world.disk.remove("index.redb").unwrap();
            }
            world.clock.advance(10 * MINUTE_MS);
            store = world.open();
            assert_eq!(retained(&store), before);
        }
        assert_eq!(restore(&store, "a").restored.len(), 1);
        delete(&store, &name("a")).unwrap();
        assert_eq!(retained(&store).segments, 2);
        store.close().unwrap();
        drop(store);
        assert!(world.fsck(true).unwrap().findings.is_empty(), "nothing is an orphan");
        world.clock.advance(2 * HOUR_MS);
        let store = world.open();
        assert_eq!(retained(&store), RetainedStats::default());
        assert!(world.files_in("big/").is_empty());
    }
}

#[test]
fn zero_retention_window_removes_large_files_at_once() {
    let mut world = world();
    let store = store_with_one_retained(&world);
    store.close().unwrap();
    drop(store);
    world.options.retention_window_ms = 0;
    let store = world.open();
    assert!(world.files_in("big/").is_empty());
    put(&store, &name("b"), &body(2, BIG_BYTES)).unwrap();
    delete(&store, &name("b")).unwrap();
    assert!(world.files_in("big/").is_empty());
    assert_eq!(restore(&store, "b").failed[0].1, RestoreError::SpaceReclaimed);
}

#[test]
fn put_evicts_oldest_retained_files_when_space_is_short() {
    let mut world = world();
    world.options.reserve_bytes = Some(128 << 10);
    let store = store_with_one_retained(&world);
    world.clock.advance(MINUTE_MS);
    put(&store, &name("b"), &body(2, BIG_BYTES)).unwrap();
    delete(&store, &name("b")).unwrap();
    assert_eq!(retained(&store).segments, 2);
    world.disk.set_free_bytes(100 << 10);
    world.clock.advance(2_000);
    put(&store, &name("c"), &body(3, 3_000)).unwrap();
    assert_eq!(retained(&store).segments, 1);
    let left = world.files_in("big/");
    put(&store, &name("d"), &body(4, BIG_BYTES)).unwrap();
    world.clock.advance(2_000);
    put(&store, &name("e"), &body(5, 3_000)).unwrap();
    assert!(!world.files_in("big/").contains(&left[0]), "the other one");
    assert_eq!(retained(&store).segments, 0);
}

#[test]
fn large_put_on_full_disk_evicts_retained_files() {
    let world = world();
    let store = store_with_one_retained(&world);
    world.disk.set_free_bytes(40 << 10);
    put(&store, &name("b"), &body(2, BIG_BYTES)).unwrap();
    assert_eq!(retained(&store).segments, 0);
    assert_eq!(read(&store, &name("b")).unwrap().unwrap(), body(2, BIG_BYTES));
}

#[test]
fn derived_and_aborted_objects_are_not_retained() {
    let world = world();
    let store = world.open();
    let staged = tests::store::stage(&store, &body(1, BIG_BYTES)).unwrap();
    let options = engine::PutOptions { derived: true, ..engine::PutOptions::default() };
    let batch = engine::Batch::new().put(name("a"), staged, options);
    tests::store::commit(&store, batch).unwrap();
    delete(&store, &name("a")).unwrap();
    assert!(world.files_in("big/").is_empty());
}

#[test]
fn manual_compaction_removes_retained_files_automatic_keeps() {
    let world = world();
    let store = store_with_one_retained(&world);
    for at in 0..30 {
        put(&store, &name(&format!("{at}")), &body(at, 3_000)).unwrap();
    }
    for at in 0..30 {
        delete(&store, &name(&format!("{at}"))).unwrap();
    }
    store.close().unwrap();
    drop(store);
    let store = world.open();
    put(&store, &name("last"), b"x").unwrap();
    roll_over(&store).unwrap();
    store.checkpoint().unwrap();
    let report = store.step_compaction(CompactionRules::BACKGROUND).unwrap();
    assert!(report.steps > 0, "{report:?}");
    let again = store.step_compaction(CompactionRules::BACKGROUND).unwrap();
    assert_eq!(again.steps, 0, "what was kept is not copied again and again: {again:?}");
    // The rebuilt index has it, too, from the copied record, and that it is deleted.
    store.close().unwrap();
    drop(store);
    world.disk.remove("index.redb").unwrap();
    let store = world.open();
    assert!(read(&store, &name("a")).unwrap().is_none());
    assert_eq!(retained(&store).segments, 1);
    assert_eq!(restore(&store, "a").restored.len(), 1);
    delete(&store, &name("a")).unwrap();

    let bytes = retained(&store).bytes;
    let rules = CompactionRules { store_dead_percent_min: 0, segment_dead_percent_min: 1 };
    assert_eq!(store.select_compaction(rules).unwrap().retained_bytes, bytes);
    assert_eq!(compact(&store).unwrap().released_bytes, bytes);
    assert!(world.files_in("big/").is_empty());
    store.close().unwrap();
    drop(store);
    world.disk.remove("index.redb").unwrap();
    let store = world.open();
    assert!(read(&store, &name("a")).unwrap().is_none(), "and it stays deleted");
}

#[test]
fn backup_skips_retained_files_and_keeps_pinned_ones() {
    let world = world();
    let store = store_with_one_retained(&world);
    put(&store, &name("b"), &body(2, BIG_BYTES)).unwrap();
    let image = SimDisk::new();
    let to: Arc<dyn Disk> = Arc::new(image.clone());
    let mut is_done = false;
    store
        .backup(&to, &mut |_| {
            if !std::mem::replace(&mut is_done, true) {
                world.clock.advance(2 * HOUR_MS);
                idle(&store);
                assert_eq!(world.files_in("big/").len(), 2, "names are held");
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(world.files_in("big/").len(), 1);
    let copied = image.paths().into_iter().filter(|path| path.starts_with("big/")).count();
    assert_eq!(copied, 1, "what is gone is not in the image");
    let mut restored = World::on(image, 2);
    restored.options.retention_window_ms = HOUR_MS;
    let store = restored.open();
    assert_eq!(retained(&store), RetainedStats::default());
    assert_eq!(read(&store, &name("b")).unwrap().unwrap(), body(2, BIG_BYTES));
    assert_eq!(restore(&store, "a").failed.len(), 1);
}

#[test]
fn open_reader_survives_removal_of_retained_file() {
    let world = world();
    let store = world.open();
    put(&store, &name("a"), &body(1, BIG_BYTES)).unwrap();
    let held = store.body(&store.get(&name("a")).unwrap().unwrap()).unwrap();
    delete(&store, &name("a")).unwrap();
    world.clock.advance(2 * HOUR_MS);
    idle(&store);
    assert!(world.files_in("big/").is_empty());
    assert_eq!(held.read(0..60_000).unwrap(), body(1, BIG_BYTES)[..60_000]);
}

/// Moves an object as the server does: under another name, with its creation time.
fn move_to(store: &Store, from: &str, to: &str) {
    let object = store.get(&name(from)).unwrap().unwrap();
    let staged = store.stage_copy(&object, &mut always_continue).unwrap();
    let created_ms = Some(object.created_ms());
    let content_type = object.content_type().to_owned();
    let options = PutOptions { content_type, created_ms, ..PutOptions::default() };
    commit(store, Batch::new().put(name(to), staged, options).delete(name(from))).unwrap();
}

/// Returns the keys that can be restored, by memory where it knows them, by the log, and by the log in pieces.
fn noncurrent_keys(store: &Store) -> Vec<String> {
    let all = NoncurrentFilter {
        bucket: bucket(),
        prefix: "".into(),
        span: LsnRange::ALL,
        put_since_ms: 0,
    };
    let keys = |versions: &[NoncurrentVersion]| -> Vec<String> {
        let mut keys: Vec<_> = versions.iter().map(|it| it.object.name().key.to_string()).collect();
        keys.sort();
        keys
    };
    let lately = keys(&store.recent_noncurrent(&all, None, 100).unwrap().0);
    let log = keys(&store.list_noncurrent(&all, None, 100, &mut always_continue).unwrap().versions);
    let along = store
        .list_noncurrent_in_log_order(
            &all,
            LogScanCursor::default(),
            100,
            usize::MAX,
            &mut always_continue,
        )
        .unwrap();
    assert_eq!(keys(&along.versions), log);
    assert!(lately.is_empty() || lately == log, "{lately:?} {log:?}");
    let NoncurrentFilter { bucket, span, .. } = all;
    let asked = DeletedFilter { bucket, folder: FolderKey::root(), since_ms: 0, span };
    let deleted = store
        .newest_deleted_versions(&asked, &mut always_continue)
        .unwrap()
        .into_iter()
        .map(|it| it.unwrap().name().key.to_string());
    assert_eq!(deleted.collect::<Vec<_>>(), log);
    log
}

#[test]
fn moved_large_file_is_not_retained() {
    for bytes in [BIG_BYTES, 1_000] {
        let world = world();
        let store = world.open();
        put(&store, &name("a"), &body(1, bytes)).unwrap();
        world.clock.advance(MINUTE_MS);
        for (from, to) in [("a", "on/the way"), ("on/the way", "there"), ("there", "a")] {
            move_to(&store, from, to);
            world.clock.advance(MINUTE_MS);
            assert_eq!(read(&store, &name(to)).unwrap().unwrap(), body(1, bytes));
            assert_eq!(noncurrent_keys(&store), Vec::<String>::new());
            idle(&store);
            assert_eq!(retained(&store), RetainedStats::default());
            assert_eq!(world.files_in("big/").len(), usize::from(bytes == BIG_BYTES));
        }
        move_to(&store, "a", "b");
        // An object deleted at its present name can be restored there.
        delete(&store, &name("b")).unwrap();
        assert_eq!(noncurrent_keys(&store), ["b"]);
        roll_over(&store).unwrap();
        store.close().unwrap();
        drop(store);
        let store = world.open();
        assert_eq!(noncurrent_keys(&store), ["b"]);
        let folder =
            UndeleteRequest::Folder { bucket: bucket(), folder: FolderKey::root(), since_ms: 0 };
        let back = store.undelete(&folder, &mut always_continue).unwrap();
        assert_eq!((back.restored.len(), back.failed.len()), (1, 0), "{back:?}");
        assert_eq!(read(&store, &name("b")).unwrap().unwrap(), body(1, bytes));
        drop(store);
        let checked = World::on(world.disk.fork(), 2).fsck(true).unwrap();
        assert!(checked.is_clean(), "{checked}");
    }
}

#[test]
fn delete_after_put_of_same_bytes_is_not_a_move() {
    let world = world();
    let store = world.open();
    put(&store, &name("a"), &body(1, BIG_BYTES)).unwrap();
    world.clock.advance(MINUTE_MS);
    let staged = tests::store::stage(&store, &body(1, BIG_BYTES)).unwrap();
    let batch = Batch::new().put(name("b"), staged, PutOptions::default()).delete(name("a"));
    commit(&store, batch).unwrap();
    assert_eq!((noncurrent_keys(&store), retained(&store).segments), (vec!["a".to_owned()], 1));
    store.close().unwrap();
    drop(store);
    assert_eq!(noncurrent_keys(&world.open()), ["a"]);
}
