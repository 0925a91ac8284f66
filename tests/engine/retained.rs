//! Retained large objects after their deletion: how long they can be restored, what removes them earlier, and their
//! accounting.

use std::ops::ControlFlow;
use std::sync::Arc;

use engine::disk::Disk;
use engine::disk::sim::SimDisk;
use engine::{
    Batch, CompactionRules, DeletedAsked, FolderKey, GoneAsked, GoneVersion, LogPlace, LogSpan,
    PutOptions, RetainedStats, Store, UndeleteRequest, Undeleted, Unrecoverable, WorkProgress,
};
use tests::store::{
    START_MS, World, body, bucket, commit, compact, delete, idle, name, put, read, roll_over,
};

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const BIG_BYTES: usize = 90_000;

fn go_on(_: WorkProgress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn world() -> World {
    let mut world = World::new(1);
    world.options.undelete_window_ms = HOUR_MS;
    world
}

fn retained(store: &Store) -> RetainedStats {
    store.stats().unwrap().retained
}

fn bring_back(store: &Store, key: &str) -> Undeleted {
    store.undelete(&UndeleteRequest::Object(name(key)), &mut go_on).unwrap()
}

/// Creates a store in which `a`, 90,000 bytes, was deleted after a minute.
fn with_one_gone(world: &World) -> Store {
    let store = world.open();
    put(&store, &name("a"), &body(1, BIG_BYTES)).unwrap();
    world.clock.advance(MINUTE_MS);
    delete(&store, &name("a")).unwrap();
    store
}

#[test]
fn a_large_object_that_was_deleted_or_replaced_can_come_back_for_the_window_and_no_longer() {
    let world = world();
    let store = with_one_gone(&world);
    world.clock.advance(MINUTE_MS);
    put(&store, &name("b"), &body(2, BIG_BYTES)).unwrap();
    put(&store, &name("b"), b"small").unwrap();
    assert_eq!(world.files_in("big/").len(), 2);
    let until_ms = START_MS + MINUTE_MS + HOUR_MS;
    let stats = store.stats().unwrap();
    assert_eq!((stats.retained.segments, stats.retained.next_release_ms), (2, Some(until_ms)));
    assert_eq!((stats.big.segments, stats.object_bytes), (0, 5), "it counts as gone");

    let all =
        GoneAsked { bucket: bucket(), prefix: "".into(), span: LogSpan::ALL, put_since_ms: 0 };
    let (lately, _) = store.gone_lately(&all, None, 10).unwrap();
    let told = |it: &engine::GoneVersion| {
        (it.object.name().key.to_string(), store.recoverable_until_ms(&it.object))
    };
    let expected = [("b", until_ms + MINUTE_MS), ("a", until_ms)];
    let expected = expected.map(|(key, until)| (key.to_owned(), Some(until)));
    assert_eq!(lately.iter().map(told).collect::<Vec<_>>(), expected);
    let in_log = store.gone(&all, None, 10, &mut go_on).unwrap();
    assert_eq!(in_log.versions.len(), 2);

    world.clock.advance(HOUR_MS - MINUTE_MS - 1);
    idle(&store);
    assert_eq!(bring_back(&store, "a").restored.len(), 1);
    assert_eq!(read(&store, &name("a")).unwrap().unwrap(), body(1, BIG_BYTES));
    world.clock.advance(1);
    idle(&store);
    assert_eq!(retained(&store).segments, 1, "the one that went first is gone");
    assert_eq!(world.files_in("big/").len(), 2);
    world.clock.advance(MINUTE_MS);
    idle(&store);
    assert_eq!(retained(&store), RetainedStats::default());
    assert_eq!(world.files_in("big/").len(), 1, "what came back");
    assert!(store.gone_lately(&all, None, 10).unwrap().0.is_empty());
    let version = UndeleteRequest::Version { name: name("b"), lsn: lately[0].object.lsn() };
    let refused = store.undelete(&version, &mut go_on).unwrap().refused;
    assert_eq!(refused[0].1, Unrecoverable::SpaceGivenBack);
}

#[test]
fn it_stays_over_restarts_and_where_the_index_is_lost_and_its_time_goes_on() {
    for (loses_index, closes) in [(false, false), (false, true), (true, false), (true, true)] {
        let world = world();
        let mut store = with_one_gone(&world);
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
        assert_eq!(bring_back(&store, "a").restored.len(), 1);
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
fn without_a_window_it_goes_at_once_and_with_the_next_opening_what_was_kept() {
    let mut world = world();
    let store = with_one_gone(&world);
    store.close().unwrap();
    drop(store);
    world.options.undelete_window_ms = 0;
    let store = world.open();
    assert!(world.files_in("big/").is_empty());
    put(&store, &name("b"), &body(2, BIG_BYTES)).unwrap();
    delete(&store, &name("b")).unwrap();
    assert!(world.files_in("big/").is_empty());
    assert_eq!(bring_back(&store, "b").refused[0].1, Unrecoverable::SpaceGivenBack);
}

#[test]
fn a_put_for_which_there_is_no_room_takes_that_of_what_is_gone_the_oldest_first() {
    let mut world = world();
    world.options.reserve_bytes = Some(128 << 10);
    let store = with_one_gone(&world);
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
fn where_the_disk_is_full_to_the_last_a_large_put_takes_what_is_gone() {
    let world = world();
    let store = with_one_gone(&world);
    world.disk.set_free_bytes(40 << 10);
    put(&store, &name("b"), &body(2, BIG_BYTES)).unwrap();
    assert_eq!(retained(&store).segments, 0);
    assert_eq!(read(&store, &name("b")).unwrap().unwrap(), body(2, BIG_BYTES));
}

#[test]
fn derived_objects_and_what_is_given_up_are_not_kept() {
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
fn compaction_by_itself_leaves_it_and_one_that_is_asked_for_takes_it() {
    let world = world();
    let store = with_one_gone(&world);
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
    assert_eq!(bring_back(&store, "a").restored.len(), 1);
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
fn a_backup_leaves_it_out_and_what_it_holds_stays_for_it() {
    let world = world();
    let store = with_one_gone(&world);
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
    restored.options.undelete_window_ms = HOUR_MS;
    let store = restored.open();
    assert_eq!(retained(&store), RetainedStats::default());
    assert_eq!(read(&store, &name("b")).unwrap().unwrap(), body(2, BIG_BYTES));
    assert_eq!(bring_back(&store, "a").refused.len(), 1);
}

#[test]
fn who_reads_it_when_it_goes_reads_on() {
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
    let staged = store.stage_copy(&object, &mut go_on).unwrap();
    let created_ms = Some(object.created_ms());
    let content_type = object.content_type().to_owned();
    let options = PutOptions { content_type, created_ms, ..PutOptions::default() };
    commit(store, Batch::new().put(name(to), staged, options).delete(name(from))).unwrap();
}

/// Returns the keys that can be restored, by memory where it knows them, by the log, and by the log in pieces.
fn gone_keys(store: &Store) -> Vec<String> {
    let all =
        GoneAsked { bucket: bucket(), prefix: "".into(), span: LogSpan::ALL, put_since_ms: 0 };
    let keys = |versions: &[GoneVersion]| -> Vec<String> {
        let mut keys: Vec<_> = versions.iter().map(|it| it.object.name().key.to_string()).collect();
        keys.sort();
        keys
    };
    let lately = keys(&store.gone_lately(&all, None, 100).unwrap().0);
    let log = keys(&store.gone(&all, None, 100, &mut go_on).unwrap().versions);
    let along = store.gone_along(&all, LogPlace::default(), 100, usize::MAX, &mut go_on).unwrap();
    assert_eq!(keys(&along.versions), log);
    assert!(lately.is_empty() || lately == log, "{lately:?} {log:?}");
    let GoneAsked { bucket, span, .. } = all;
    let asked = DeletedAsked { bucket, folder: FolderKey::root(), since_ms: 0, span };
    let deleted = store
        .deleted(&asked, &mut go_on)
        .unwrap()
        .into_iter()
        .map(|it| it.unwrap().name().key.to_string());
    assert_eq!(deleted.collect::<Vec<_>>(), log);
    log
}

#[test]
fn what_was_moved_is_not_gone_and_its_file_goes_at_once() {
    for bytes in [BIG_BYTES, 1_000] {
        let world = world();
        let store = world.open();
        put(&store, &name("a"), &body(1, bytes)).unwrap();
        world.clock.advance(MINUTE_MS);
        for (from, to) in [("a", "on/the way"), ("on/the way", "there"), ("there", "a")] {
            move_to(&store, from, to);
            world.clock.advance(MINUTE_MS);
            assert_eq!(read(&store, &name(to)).unwrap().unwrap(), body(1, bytes));
            assert_eq!(gone_keys(&store), Vec::<String>::new());
            idle(&store);
            assert_eq!(retained(&store), RetainedStats::default());
            assert_eq!(world.files_in("big/").len(), usize::from(bytes == BIG_BYTES));
        }
        move_to(&store, "a", "b");
        // An object deleted at its present name can be restored there.
        delete(&store, &name("b")).unwrap();
        assert_eq!(gone_keys(&store), ["b"]);
        roll_over(&store).unwrap();
        store.close().unwrap();
        drop(store);
        let store = world.open();
        assert_eq!(gone_keys(&store), ["b"]);
        let folder =
            UndeleteRequest::Folder { bucket: bucket(), folder: FolderKey::root(), since_ms: 0 };
        let back = store.undelete(&folder, &mut go_on).unwrap();
        assert_eq!((back.restored.len(), back.refused.len()), (1, 0), "{back:?}");
        assert_eq!(read(&store, &name("b")).unwrap().unwrap(), body(1, bytes));
        drop(store);
        let checked = World::on(world.disk.fork(), 2).fsck(true).unwrap();
        assert!(checked.is_clean(), "{checked}");
    }
}

#[test]
fn a_deletion_right_after_the_same_bytes_were_put_elsewhere_is_no_move() {
    let world = world();
    let store = world.open();
    put(&store, &name("a"), &body(1, BIG_BYTES)).unwrap();
    world.clock.advance(MINUTE_MS);
    let staged = tests::store::stage(&store, &body(1, BIG_BYTES)).unwrap();
    let batch = Batch::new().put(name("b"), staged, PutOptions::default()).delete(name("a"));
    commit(&store, batch).unwrap();
    assert_eq!((gone_keys(&store), retained(&store).segments), (vec!["a".to_owned()], 1));
    store.close().unwrap();
    drop(store);
    assert_eq!(gone_keys(&world.open()), ["a"]);
}
