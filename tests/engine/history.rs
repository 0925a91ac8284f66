//! History and undelete: the versions that the log still has, and that one is restored whole, without overwriting
//! anything.

use std::ops::ControlFlow;

use engine::disk::Disk;
use engine::history::{
    RestoreError, RestoredObject, UndeleteReport, UndeleteRequest, VersionEvent, VersionFilter,
    VersionHistory, VersionScope, VersionState,
};
use engine::progress::WorkProgress;
use engine::{Batch, Error, FolderKey, ObjectName, PutOptions, Store};
use tests::fixtures::{always_continue, damage, version_states};
use tests::store::{
    START_MS, World, body, bucket, bucket_named, commit, delete, name, name_in, put, read,
    roll_over, stage,
};

fn history_of(store: &Store, scope: VersionScope, since_ms: u64, limit: usize) -> VersionHistory {
    let filter = VersionFilter { bucket: bucket(), scope, since_ms };
    store.version_history(&filter, limit, &mut always_continue).unwrap()
}

fn folder(folder: &str) -> VersionScope {
    VersionScope::Folder(FolderKey::parse(folder).unwrap())
}

fn undelete(store: &Store, request: &UndeleteRequest) -> UndeleteReport {
    store.undelete(request, &mut always_continue).unwrap()
}

fn undelete_object(store: &Store, key: &str) -> UndeleteReport {
    undelete(store, &UndeleteRequest::Object(name(key)))
}

fn undelete_folder(store: &Store, folder: &str, since_ms: u64) -> UndeleteReport {
    let folder = FolderKey::parse(folder).unwrap();
    undelete(store, &UndeleteRequest::Folder { bucket: bucket(), folder, since_ms })
}

fn restored(undeleted: &UndeleteReport) -> Vec<&str> {
    undeleted.restored.iter().map(|restored| restored.name.key.as_str()).collect()
}

#[test]
fn version_history_lists_versions_in_order_with_outcome() {
    let world = World::new(1);
    let store = world.open();
    let options = PutOptions { content_type: "image/png".to_owned(), ..PutOptions::default() };
    let staged = stage(&store, &body(1, 300)).unwrap();
    commit(&store, Batch::new().put(name("a"), staged, options)).unwrap();
    world.clock.advance(10);
    put(&store, &name("a"), &body(2, 400)).unwrap();
    world.clock.advance(10);
    delete(&store, &name("a")).unwrap();
    world.clock.advance(10);
    put(&store, &name("a"), &body(3, 500)).unwrap();
    put(&store, &name("b"), &body(4, 10)).unwrap();

    let history = history_of(&store, VersionScope::Key(name("a").key), 0, 100);
    let times: Vec<u64> = history.versions.iter().map(|it| it.happened_ms - START_MS).collect();
    assert_eq!(times, [0, 10, 20, 30]);
    let VersionEvent::Put(first) = &history.versions[0].event else { panic!("it was put first") };
    assert_eq!((first.bytes, first.content_type.as_str()), (300, "image/png"));
    assert_eq!(first.created_ms, START_MS);
    let VersionEvent::Put(last) = &history.versions[3].event else { panic!("and put again") };
    let object = store.get(&name("a")).unwrap().unwrap();
    assert_eq!((last.etag, history.versions[3].lsn), (object.etag(), object.lsn()));
    let expected = vec![
        Some((VersionState::Replaced, Ok(()))),
        Some((VersionState::Deleted, Ok(()))),
        None,
        Some((VersionState::Current, Ok(()))),
    ];
    assert_eq!(version_states(&store, "a"), expected);

    // Sealed, and with a rebuilt index, the log gives the same history.
    store.close().unwrap();
    drop(store);
    world.disk.remove("index.redb").unwrap();
    let store = world.open();
    assert_eq!(version_states(&store, "a"), expected);
    assert_eq!(version_states(&store, "nothing"), []);
}

#[test]
fn version_history_filters_by_folder_bucket_and_time() {
    let world = World::new(1);
    let store = world.open();
    for key in ["x/1", "x/y/2", "xx/3", "4"] {
        put(&store, &name(key), &body(1, 50)).unwrap();
    }
    put(&store, &name_in(&bucket_named("other"), "x/5"), &body(1, 50)).unwrap();
    world.clock.advance(100);
    delete(&store, &name("x/1")).unwrap();
    let keys = |scope, since_ms, limit| {
        let history = history_of(&store, scope, since_ms, limit);
        let keys = history.versions.iter().map(|version| version.name.key.as_str().to_owned());
        (keys.collect::<Vec<_>>(), history.truncated)
    };
    let owned = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>();
    assert_eq!(keys(folder("x/"), 0, 10), (owned(&["x/1", "x/1", "x/y/2"]), false));
    assert_eq!(keys(folder(""), 0, 10), (owned(&["4", "x/1", "x/1", "x/y/2", "xx/3"]), false));
    assert_eq!(keys(folder(""), START_MS + 100, 10), (owned(&["x/1"]), false));
    assert_eq!(keys(folder(""), START_MS + 101, 10), (owned(&[]), false));
    assert_eq!(keys(folder(""), 0, 3), (owned(&["4", "x/1", "x/1"]), true));
    assert_eq!(keys(folder(""), 0, 0), (owned(&[]), true));

    // The end of the last version shown is known although its successor is not shown.
    let cut = history_of(&store, folder(""), 0, 2);
    let VersionEvent::Put(put) = &cut.versions[1].event else { panic!("it was put") };
    assert_eq!(put.state, VersionState::Deleted);
}

#[test]
fn overwritten_large_object_reclaims_its_space() {
    let world = World::new(1);
    let store = world.open();
    put(&store, &name("big"), &body(1, 9_000)).unwrap();
    put(&store, &name("big"), &body(2, 8_000)).unwrap();
    let gone = Err(RestoreError::SpaceReclaimed);
    let expected = [Some((VersionState::Replaced, gone)), Some((VersionState::Current, Ok(())))];
    assert_eq!(version_states(&store, "big"), expected);
    delete(&store, &name("big")).unwrap();
    let undeleted = undelete_object(&store, "big");
    assert_eq!(undeleted.failed, [(name("big"), RestoreError::SpaceReclaimed)]);
    assert_eq!(undeleted.restored, []);
    assert_eq!(store.get(&name("big")).unwrap().map(|object| object.bytes()), None);
}

#[test]
fn file_of_deleted_large_object_is_never_reused() {
    let world = World::new(1);
    let store = world.open();
    put(&store, &name("small"), &body(1, 100)).unwrap();
    put(&store, &name("first"), &body(1, 9_000)).unwrap();
    let file = world.files_in("big/");
    delete(&store, &name("first")).unwrap();
    assert_eq!(world.files_in("big/"), Vec::<String>::new());
    store.close().unwrap();
    drop(store);
    // Only its record in the log still has the number of its file.
    world.disk.remove("index.redb").unwrap();
    let store = world.open();
    put(&store, &name("second"), &body(2, 9_000)).unwrap();
    assert!(world.files_in("big/") > file);
    let gone = Err(RestoreError::SpaceReclaimed);
    assert_eq!(version_states(&store, "first"), [Some((VersionState::Deleted, gone)), None]);
    assert_eq!(read(&store, &name("second")).unwrap().unwrap(), body(2, 9_000));
}

#[test]
fn undelete_restores_object_unchanged() {
    let world = World::new(1);
    let store = world.open();
    let options = PutOptions {
        content_type: "text/plain".to_owned(),
        attributes: vec![1, 2, 3],
        derived: true,
        created_ms: Some(START_MS - 7),
    };
    let staged = stage(&store, &body(1, 3_000)).unwrap();
    commit(&store, Batch::new().put(name("a"), staged, options)).unwrap();
    let usage = store.bucket_usage(&bucket()).unwrap();
    let lsn = store.get(&name("a")).unwrap().unwrap().lsn();
    delete(&store, &name("a")).unwrap();
    world.clock.advance(50);

    let undeleted = undelete_object(&store, "a");
    assert_eq!(
        undeleted.restored,
        [RestoredObject { name: name("a"), lsn, newer_unrecoverable: None }]
    );
    assert_eq!(undeleted.failed, []);
    let back = store.get(&name("a")).unwrap().unwrap();
    assert_eq!((back.content_type(), back.attributes()), ("text/plain", &[1, 2, 3][..]));
    assert!(back.is_derived() && back.lsn() > lsn);
    assert_eq!((back.created_ms(), back.modified_ms()), (START_MS - 7, START_MS + 50));
    assert_eq!(read(&store, &name("a")).unwrap().unwrap(), body(1, 3_000));
    assert_eq!(store.bucket_usage(&bucket()).unwrap(), usage);
}

#[test]
fn undelete_and_extra_operations_are_atomic() {
    let world = World::new(1);
    let store = world.open();
    let lsn = put(&store, &name("a"), b"first").unwrap().objects[0].lsn();
    put(&store, &name("a"), b"second").unwrap();
    let options = PutOptions { derived: true, ..PutOptions::default() };
    let made = stage(&store, b"made of the second").unwrap();
    commit(&store, Batch::new().put(name("of a"), made, options)).unwrap();
    let along = |name: &ObjectName| {
        assert_eq!(name.key.as_str(), "a");
        Batch::new().delete_derived(name_in(&name.bucket, "of a"), Vec::new())
    };
    let back = |lsn| {
        let request = UndeleteRequest::Version { name: name("a"), lsn };
        store.undelete_with(&request, &along, &mut always_continue).unwrap()
    };
    assert_eq!(back(lsn + 100).restored, []);
    assert!(store.get(&name("of a")).unwrap().is_some());
    assert_eq!(restored(&back(lsn)), ["a"]);
    assert_eq!(read(&store, &name("a")).unwrap().unwrap(), b"first");
    assert!(store.get(&name("of a")).unwrap().is_none());
}

#[test]
fn undelete_rejects_existing_and_unknown_objects() {
    let world = World::new(1);
    let store = world.open();
    put(&store, &name("a"), &body(1, 30)).unwrap();
    let lsn = store.get(&name("a")).unwrap().unwrap().lsn();
    let before = store.stats().unwrap().last_lsn;
    assert_eq!(undelete_object(&store, "a").failed, [(name("a"), RestoreError::NotDeleted)]);
    assert_eq!(undelete_object(&store, "b").failed, [(name("b"), RestoreError::NotFound)]);
    let version = |lsn| UndeleteRequest::Version { name: name("a"), lsn };
    let refused = undelete(&store, &version(lsn)).failed;
    assert_eq!(refused, [(name("a"), RestoreError::NotDeleted)]);
    let refused = undelete(&store, &version(lsn + 1)).failed;
    assert_eq!(refused, [(name("a"), RestoreError::NotFound)]);
    assert_eq!(store.stats().unwrap().last_lsn, before, "nothing was written");
}

#[test]
fn restored_version_replaces_current_which_stays_in_history() {
    let world = World::new(1);
    let store = world.open();
    put(&store, &name("a"), &body(1, 100)).unwrap();
    let first = store.get(&name("a")).unwrap().unwrap().lsn();
    put(&store, &name("a"), &body(2, 200)).unwrap();
    let second = store.get(&name("a")).unwrap().unwrap().lsn();
    for (lsn, bytes) in [(first, body(1, 100)), (second, body(2, 200))] {
        let undeleted = undelete(&store, &UndeleteRequest::Version { name: name("a"), lsn });
        assert_eq!(undeleted.restored.len(), 1);
        assert_eq!(read(&store, &name("a")).unwrap().unwrap(), bytes);
    }
    let put_then = |state| Some((state, Ok(())));
    let mut expected = vec![put_then(VersionState::Replaced); 3];
    expected.push(put_then(VersionState::Current));
    assert_eq!(version_states(&store, "a"), expected);

    // A deleted version, by its number.
    delete(&store, &name("a")).unwrap();
    undelete(&store, &UndeleteRequest::Version { name: name("a"), lsn: first });
    assert_eq!(read(&store, &name("a")).unwrap().unwrap(), body(1, 100));
}

#[test]
fn undelete_folder_restores_objects_deleted_since() {
    let world = World::new(1);
    let store = world.open();
    // More objects than one batch takes, over several segments.
    let keys: Vec<String> = (0..150).map(|at| format!("x/{at:03}")).collect();
    for (at, key) in keys.iter().enumerate() {
        put(&store, &name(key), &body(at as u64, 900)).unwrap();
        roll_over(&store).unwrap();
    }
    put(&store, &name("y/other"), &body(1, 30)).unwrap();
    put(&store, &name("x/early"), &body(1, 30)).unwrap();
    delete(&store, &name("x/early")).unwrap();
    world.clock.advance(1_000);
    delete(&store, &name("y/other")).unwrap();
    for key in &keys {
        delete(&store, &name(key)).unwrap();
    }
    put(&store, &name("x/001"), b"written since").unwrap();

    let undeleted = undelete_folder(&store, "x/", START_MS + 1_000);
    let expected: Vec<&str> =
        keys.iter().map(String::as_str).filter(|key| *key != "x/001").collect();
    assert_eq!(restored(&undeleted), expected);
    assert_eq!(undeleted.failed, []);
    for (at, key) in keys.iter().enumerate().filter(|(at, _)| *at != 1) {
        assert_eq!(read(&store, &name(key)).unwrap().unwrap(), body(at as u64, 900), "{key}");
    }
    assert_eq!(read(&store, &name("x/001")).unwrap().unwrap(), b"written since");
    for absent in ["x/early", "y/other"] {
        assert!(store.get(&name(absent)).unwrap().is_none(), "{absent}");
    }
    let undeleted = undelete_folder(&store, "", 0);
    assert_eq!(restored(&undeleted), ["x/early", "y/other"]);
    assert_eq!(undelete_folder(&store, "", 0), UndeleteReport::default());
}

#[test]
fn damaged_version_is_not_restored_and_older_is_suggested() {
    let world = World::new(1);
    let store = world.open();
    put(&store, &name("a"), &body(1, 2_000)).unwrap();
    put(&store, &name("a"), &body(2, 2_000)).unwrap();
    let first = version_states(&store, "a").len();
    delete(&store, &name("a")).unwrap();
    damage(&world.disk, &body(2, 2_000));
    let damaged = Err(RestoreError::Damaged);
    let expected =
        [Some((VersionState::Replaced, Ok(()))), Some((VersionState::Deleted, damaged)), None];
    assert_eq!((first, version_states(&store, "a")), (2, expected.to_vec()));
    let undeleted = undelete_object(&store, "a");
    assert_eq!(undeleted.restored[0].newer_unrecoverable, Some(RestoreError::Damaged));
    assert_eq!(read(&store, &name("a")).unwrap().unwrap(), body(1, 2_000));

    delete(&store, &name("a")).unwrap();
    damage(&world.disk, &body(1, 2_000));
    put(&store, &name("b"), &body(3, 2_000)).unwrap();
    delete(&store, &name("b")).unwrap();
    damage(&world.disk, &body(3, 2_000));
    assert_eq!(undelete_object(&store, "b").failed, [(name("b"), RestoreError::Damaged)]);
}

#[test]
fn damaged_head_hides_version_and_is_counted() {
    let world = World::new(1);
    let store = world.open();
    for key in ["a", "b", "c"] {
        put(&store, &name(key), &body(1, 100)).unwrap();
    }
    // The last bytes of its head are the key and the checksum of the one block.
    damage(&world.disk, b"photosb");
    let history = history_of(&store, folder(""), 0, 10);
    let keys: Vec<_> = history.versions.iter().map(|version| version.name.key.as_str()).collect();
    assert_eq!((keys, history.damage_count), (vec!["a", "c"], 1));
}

#[test]
fn undelete_does_not_overwrite_concurrent_put() {
    let world = World::new(1);
    let store = world.open();
    for key in ["a", "b", "c"] {
        put(&store, &name(key), &body(1, 100)).unwrap();
        delete(&store, &name(key)).unwrap();
    }
    let since =
        UndeleteRequest::Folder { bucket: bucket(), folder: FolderKey::root(), since_ms: 0 };
    let undeleted = store
        .undelete(&since, &mut |progress| {
            if progress.total_items == 3 && progress.done_items == 1 {
                put(&store, &name("b"), b"newer").unwrap();
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(restored(&undeleted), ["a", "c"]);
    assert_eq!(undeleted.failed, [(name("b"), RestoreError::Overwritten)]);
    assert_eq!(read(&store, &name("b")).unwrap().unwrap(), b"newer");

    // The same for a version that was to replace another.
    let lsn = store.version_history(
        &VersionFilter { bucket: bucket(), scope: VersionScope::Key(name("b").key), since_ms: 0 },
        10,
        &mut always_continue,
    );
    let lsn = lsn.unwrap().versions[0].lsn;
    let mut is_written = false;
    let undeleted = store
        .undelete(&UndeleteRequest::Version { name: name("b"), lsn }, &mut |_| {
            if !std::mem::replace(&mut is_written, true) {
                put(&store, &name("b"), b"newest").unwrap();
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(undeleted.failed, [(name("b"), RestoreError::Overwritten)]);
    assert_eq!(read(&store, &name("b")).unwrap().unwrap(), b"newest");
}

#[test]
fn undelete_can_be_cancelled_without_effect() {
    let world = World::new(1);
    let store = world.open();
    put(&store, &name("a"), &body(1, 100)).unwrap();
    delete(&store, &name("a")).unwrap();
    let stop = &mut |_: WorkProgress| ControlFlow::Break(());
    let filter = VersionFilter { bucket: bucket(), scope: folder(""), since_ms: 0 };
    assert!(matches!(store.version_history(&filter, 10, stop), Err(Error::Cancelled)));
    let request = UndeleteRequest::Object(name("a"));
    assert!(matches!(store.undelete(&request, stop), Err(Error::Cancelled)));
    assert!(store.get(&name("a")).unwrap().is_none());
}

#[test]
fn version_history_continues_during_segment_rollover() {
    let mut world = World::new(1);
    let store = world.open_with_threads();
    put_in_pieces(&store, 0..40);
    let written = std::thread::scope(|scope| {
        let writer = scope.spawn(|| put_in_pieces(&store, 40..400));
        let mut rounds = 0;
        while !writer.is_finished() {
            let history = history_of(&store, folder(""), 0, 10_000);
            assert_eq!(history.damage_count, 0);
            let of_first = history.versions.iter().filter(|it| it.name == name("key/0")).count();
            assert!(history.versions.len() >= 40 && of_first >= 4, "{of_first}");
            rounds += 1;
        }
        writer.join().unwrap();
        rounds
    });
    assert!(written > 0);
    assert_eq!(history_of(&store, folder(""), 0, 10_000).versions.len(), 400);
}

fn put_in_pieces(store: &Store, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let object: ObjectName = name(&format!("key/{}", number % 10));
        let staged = stage(store, &body(number, 3_000)).unwrap();
        store.commit(Batch::new().put(object, staged, PutOptions::default())).unwrap();
    }
}
