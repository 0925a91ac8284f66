//! Counters of buckets and of their top-level folders: exact after every change, removed with the last object, and any
//! error in them is detected and repaired.

use std::ops::ControlFlow;

use engine::disk::Disk;
use engine::format::{Usage, entry_key};
use engine::fsck::Severity;
use engine::history::UndeleteRequest;
use engine::{Batch, FolderKey, PutOptions, Store, limits};
use redb::{ReadableDatabase, ReadableTable, TableDefinition};
use tests::store::{
    Change, Contents, Model, World, batch, body, bucket, bucket_named, commit, compact, delete,
    folder_usages, name, name_in, put, stage,
};

use crate::fsck::{finding, fork, repaired};
use crate::fsck_index::index;

const USAGE: TableDefinition<&[u8], &[u8]> = TableDefinition::new("usage");

fn folder(name: &str) -> FolderKey {
    FolderKey::parse(name).unwrap()
}

fn row(of: &str) -> Vec<u8> {
    entry_key::folder_prefix(&bucket(), &folder(of))
}

/// Returns objects and bytes, and the same of derived objects.
fn counted(store: &Store, of: &str) -> (u64, u64, u64, u64) {
    let usage = store.folder_usage(&bucket(), &folder(of)).unwrap().unwrap();
    (usage.objects, usage.bytes, usage.derived_objects, usage.derived_bytes)
}

fn names(found: &[(FolderKey, Usage)]) -> Vec<&str> {
    found.iter().map(|(folder, _)| folder.as_str()).collect()
}

fn rows(world: &World) -> Vec<Vec<u8>> {
    let table = index(world).begin_read().unwrap().open_table(USAGE).unwrap();
    table.iter().unwrap().map(|row| row.unwrap().0.value().to_vec()).collect()
}

#[test]
fn folder_counters_include_all_descendants() {
    let world = World::new(1);
    let store = world.open();
    let everywhere = |step: &str, expected| {
        assert_eq!(counted(&store, "a/"), expected, "{step}, in memory");
        store.checkpoint().unwrap();
        assert_eq!(counted(&store, "a/"), expected, "{step}, in the index");
    };
    put(&store, &name("a"), &body(1, 1_000)).unwrap();
    everywhere("a key without a slash is in no folder", (0, 0, 0, 0));
    put(&store, &name("a/"), b"").unwrap();
    everywhere("a marker is in the folder that it marks", (1, 0, 0, 0));
    put(&store, &name("a/one"), &body(1, 10)).unwrap();
    put(&store, &name("a/deep/er/two"), &body(2, 9_000)).unwrap();
    everywhere("put", (3, 9_010, 0, 0));
    put(&store, &name("a/one"), &body(1, 70)).unwrap();
    everywhere("overwritten", (3, 9_070, 0, 0));
    let derived = PutOptions { derived: true, ..PutOptions::default() };
    let staged = stage(&store, &body(3, 5)).unwrap();
    commit(&store, Batch::new().put(name("a/one"), staged, derived)).unwrap();
    everywhere("derived now", (2, 9_000, 1, 5));
    let staged = stage(&store, &body(4, 300)).unwrap();
    let moved = Batch::new().delete(name("a/deep/er/two"));
    commit(&store, moved.put(name("b/two"), staged, PutOptions::default())).unwrap();
    everywhere("moved out", (1, 0, 1, 5));
    assert_eq!(counted(&store, "b/"), (1, 300, 0, 0));
    put(&store, &name_in(&bucket_named("other"), "a/one"), b"of another bucket").unwrap();
    delete(&store, &name("a/one")).unwrap();
    delete(&store, &name("a/one")).unwrap();
    everywhere("deleted", (1, 0, 0, 0));
    assert_eq!(counted(&store, ""), (3, 1_300, 0, 0));
    assert_eq!(store.folder_usage(&bucket(), &folder("a/deep/")).unwrap(), None, "not counted");
}

#[test]
fn counters_match_after_undelete_compaction_and_rebuild() {
    let world = World::new(1);
    let store = world.open();
    for at in 0..60 {
        put(&store, &name(&format!("f{}/{at}", at % 3)), &body(at, 3_000)).unwrap();
    }
    for at in 0..50 {
        delete(&store, &name(&format!("f{}/{at}", at % 3))).unwrap();
    }
    let undelete = UndeleteRequest::Object(name("f1/1"));
    store.undelete(&undelete, &mut |_| ControlFlow::Continue(())).unwrap();
    store.close().unwrap();
    let store = world.open();
    assert!(compact(&store).unwrap().segments_removed > 0);
    let expected = [("f0/", 3), ("f1/", 4), ("f2/", 4)];
    let must_be = |store: &Store| {
        for (of, objects) in expected {
            assert_eq!(counted(store, of), (objects, 3_000 * objects, 0, 0), "{of}");
        }
    };
    must_be(&store);
    store.close().unwrap();
    drop(store);
    world.disk.remove("index.redb").unwrap();
    must_be(&world.open());
}

#[test]
fn empty_folder_is_removed_from_pages_and_index() {
    let world = World::new(1);
    let store = world.open();
    for key in ["a/1", "b/1", "b/2", "c"] {
        put(&store, &name(key), b"of some bytes").unwrap();
    }
    put(&store, &name_in(&bucket_named("other"), "a/1"), b"").unwrap();
    store.checkpoint().unwrap();
    delete(&store, &name("b/1")).unwrap();
    delete(&store, &name("a/1")).unwrap();
    delete(&store, &name_in(&bucket_named("other"), "a/1")).unwrap();
    assert_eq!(names(&folder_usages(&store, &bucket(), 9).unwrap()), ["b/"]);
    let buckets = store.stats().unwrap().buckets;
    assert_eq!(buckets.iter().map(|(name, _)| name).collect::<Vec<_>>(), [&bucket()]);
    store.close().unwrap();
    drop(store);
    assert_eq!(rows(&world), [row(""), row("b/")]);
    let store = world.open();
    assert_eq!(names(&folder_usages(&store, &bucket(), 9).unwrap()), ["b/"]);
}

#[test]
fn folder_counters_are_paged_by_name() {
    let world = World::new(1);
    let store = world.open();
    let key = |at: usize| format!("folder-{at:05}/object");
    let mut model = Model::default();
    let mut change = |changes: &[Change]| {
        commit(&store, batch(&store, changes).unwrap()).unwrap();
        model.apply(changes);
    };
    let all = limits::LIST_PAGE_MAX + 200;
    // Some are in the index, some in the overlay, some are deleted from it.
    for from in (0..all).step_by(100) {
        let put = |at: usize| Change::Put(name(&key(at)), body(1, at % 7).into());
        change(&(from..from + 100).map(put).collect::<Vec<_>>());
        if from == 600 {
            store.checkpoint().unwrap();
        }
    }
    change(&[5, 900].map(|at| Change::Delete(name(&key(at)))));
    // By name, and not by name and slash, "folder-00001!" comes after "folder-00001".
    change(&[Change::Put(name("folder-00001!/a"), body(1, 3).into())]);
    let first = store.folder_usages(&bucket(), None, usize::MAX).unwrap();
    assert_eq!((first.folders.len(), first.more), (limits::LIST_PAGE_MAX, true));
    let firsts = ["folder-00000/", "folder-00001/", "folder-00001!/", "folder-00002/"];
    assert_eq!(names(&first.folders)[..4], firsts);
    let after = |of: &str| store.folder_usages(&bucket(), Some(&folder(of)), 2).unwrap().folders;
    assert_eq!(names(&after("folder-00004/")), ["folder-00006/", "folder-00007/"]);
    assert_eq!(names(&after("folder-00005/")), ["folder-00006/", "folder-00007/"]);
    assert_eq!(names(&after("folder-00004/deeper/")), ["folder-00006/", "folder-00007/"]);
    assert_eq!(names(&after("")), ["folder-00000/", "folder-00001/"]);
    assert_eq!(names(&after("folder-01199/")), [""; 0]);
    assert_eq!(names(&folder_usages(&store, &bucket_named("never"), 2).unwrap()), [""; 0]);
    let usages: Vec<_> = folder_usages(&store, &bucket(), 97).unwrap();
    let expected = model.usages().into_iter().filter(|((_, folder), _)| !folder.is_root());
    let mut expected: Vec<_> = expected.map(|((_, folder), usage)| (folder, usage)).collect();
    expected.sort_by_key(|(folder, _)| folder.last_segment().to_owned());
    assert_eq!(usages, expected);
}

#[test]
fn fsck_reports_and_repairs_wrong_folder_counters() {
    let world = World::new(7);
    let store = world.open();
    let put = |key: &str, length| Change::Put(name(key), body(1, length).into());
    let changes = [put("a/1", 10), put("a/b/2", 20), put("c/3", 40), put("d", 80)];
    commit(&store, batch(&store, &changes).unwrap()).unwrap();
    store.close().unwrap();
    drop(store);
    let mut model = Model::default();
    model.apply(&changes);

    let usage = |objects, bytes| Usage { objects, bytes, ..Usage::default() }.encode();
    let broken: [(&str, &str, Option<Vec<u8>>, &str); 8] = [
        ("a corrupt row", "a/", Some(usage(2, 31)), "2 objects of 31 bytes"),
        ("another folder's row", "c/", Some(usage(2, 30)), "2 objects of 30 bytes"),
        ("a lost row", "c/", None, "0 objects of 0 bytes"),
        ("a row too many", "b/", Some(usage(1, 1)), "1 objects of 1 bytes"),
        ("one after all others", "z/", Some(usage(1, 1)), "1 objects of 1 bytes"),
        ("one of a folder in another", "a/b/", Some(usage(1, 20)), "1 objects of 20 bytes"),
        ("a row of zeros", "b/", Some(usage(0, 0)), "0 objects of 0 bytes"),
        ("a corrupt row of a bucket", "", Some(usage(4, 151)), "4 objects of 151 bytes"),
    ];
    for (what, of, value, expected) in broken {
        let world = fork(&world);
        let database = index(&world);
        let transaction = database.begin_write().unwrap();
        let mut table = transaction.open_table(USAGE).unwrap();
        match value {
            Some(value) => table.insert(row(of).as_slice(), value.as_slice()).map(|_| ()),
            None => table.remove(row(of).as_slice()).map(|_| ()),
        }
        .unwrap();
        drop(table);
        transaction.commit().unwrap();
        drop(database);

        let report = world.fsck(false).unwrap();
        let found = finding(&report, "rebuild-index");
        assert_eq!((found.severity, report.findings.len()), (Severity::Repairable, 1), "{what}");
        let named = format!("{expected} and 0 derived of 0 in {}/{of}, but there are", bucket());
        assert!(found.what.contains(&named), "{what}: {}", found.what);
        repaired(&world);
        Contents::of(&world.open())
            .unwrap()
            .check_against(&model)
            .unwrap_or_else(|e| panic!("{what}: {e}"));
    }
}

#[test]
fn undecodable_counters_are_reported_and_rebuilt() {
    let world = World::new(7);
    let store = world.open();
    put(&store, &name("a/1"), b"of some bytes").unwrap();
    store.close().unwrap();
    drop(store);
    let database = index(&world);
    let transaction = database.begin_write().unwrap();
    let mut table = transaction.open_table(USAGE).unwrap();
    let mut value = table.get(row("a/").as_slice()).unwrap().unwrap().value().to_vec();
    value[3] ^= 1;
    table.insert(row("a/").as_slice(), value.as_slice()).unwrap();
    drop(table);
    transaction.commit().unwrap();
    drop(database);

    let report = world.fsck(false).unwrap();
    assert_eq!(finding(&report, "rebuild-index").severity, Severity::Repairable, "{report}");
    let store = world.open();
    let error = store.folder_usage(&bucket(), &folder("a/")).unwrap_err();
    assert!(error.to_string().contains("checksum"), "{error}");
    assert!(store.stats().is_ok_and(|stats| stats.index_is_corrupt));
    drop(store);
    // The failed read condemned the index, so the next opening rebuilds it.
    assert_eq!(counted(&world.open(), "a/"), (1, 13, 0, 0));
}
