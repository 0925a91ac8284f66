//! fsck of a store whose index is stale, missing, damaged or of another moment.

use engine::disk::{Disk, RedbFile};
use engine::fsck::Severity;
use redb::TableDefinition;
use tests::store::{World, delete, name, put, read};

use crate::fsck::{check, check_store, closed, finding, fork, repaired, written};

/// Opens the index of a closed store.
pub(crate) fn index(world: &World) -> redb::Database {
    let file = world.disk.open("index.redb").unwrap();
    redb::Builder::new().create_with_backend(RedbFile::new(file)).unwrap()
}

#[test]
fn fsck_accepts_stale_or_missing_index() {
    let world = World::new(7);
    let store = world.open();
    let model = written(&world, &store);
    drop(store);
    let killed = fork(&world);
    killed.disk.restart_process();
    assert_eq!(check(&killed).findings, []);
    killed.disk.remove("index.redb").unwrap();
    let report = check(&killed);
    assert_eq!(finding(&report, "rebuild-index").severity, Severity::Note);
    repaired(&killed);
    check_store(&killed, &model, &[]);
}

#[test]
fn repair_rebuilds_damaged_index() {
    let (world, model) = closed();
    let bytes = world.disk.bytes("index.redb");
    for offset in [0, 70, bytes.len() / 3, bytes.len() / 2] {
        let world = fork(&world);
        world.disk.overwrite("index.redb", offset as u64, &[0x5a; 700]);
        let report = check(&world);
        if !report.findings.is_empty() {
            assert_eq!(finding(&report, "rebuild-index").severity, Severity::Repairable);
            assert!(!world.repair().unwrap().0.has_lost());
        }
        repaired(&world);
        check_store(&world, &model, &[]);
    }
    let cut = fork(&world);
    cut.disk.open("index.redb").unwrap().set_len(bytes.len() as u64 / 2).unwrap();
    finding(&check(&cut), "rebuild-index");
    repaired(&cut);
    check_store(&cut, &model, &[]);
}

/// The segments are checked before the entries of the index are read.
#[test]
fn fsck_checks_segments_again_without_unreadable_index() {
    let (world, model) = closed();
    let without = fork(&world);
    without.disk.remove("index.redb").unwrap();
    let mut expected = check(&without);
    let entries = TableDefinition::<&[u8], &[u8]>::new("entries");
    for (key, value) in [(&b"no key"[..], &b""[..]), (b"\xfe", b"sorts after every key")] {
        let world = fork(&world);
        let change = index(&world).begin_write().unwrap();
        change.open_table(entries).unwrap().insert(key, value).unwrap();
        change.commit().unwrap();
        let mut report = check(&world);
        let unusable = finding(&report, "rebuild-index");
        assert_eq!(unusable.severity, Severity::Repairable);
        assert!(unusable.what.starts_with("the index is unusable: "), "{}", unusable.what);
        assert_eq!((report.objects, report.segments), (expected.objects, expected.segments));
        for report in [&mut report, &mut expected] {
            report.findings.retain(|finding| finding.file != "index.redb");
        }
        assert_eq!(report.findings, expected.findings);
        repaired(&world);
        check_store(&world, &model, &[]);
    }
}

#[test]
fn fsck_detects_index_of_another_moment() {
    let world = World::new(7);
    let store = world.open();
    put(&store, &name("a"), b"one").unwrap();
    put(&store, &name("b"), b"two").unwrap();
    store.checkpoint().unwrap();
    let older = world.disk.bytes("index.redb");
    delete(&store, &name("a")).unwrap();
    put(&store, &name("b"), b"three").unwrap();
    store.close().unwrap();
    drop(store);
    // An older index is only stale: the records after it are replayed when the store is opened.
    let behind = fork(&world);
    behind.disk.overwrite("index.redb", 0, &older);
    let behind_file = behind.disk.open("index.redb").unwrap();
    behind_file.set_len(older.len() as u64).unwrap();
    assert_eq!(check(&behind).count(Severity::Loss), 0);
    repaired(&behind);
    assert_eq!(read(&behind.open(), &name("b")).unwrap().unwrap(), b"three");
    assert_eq!(read(&behind.open(), &name("a")).unwrap(), None);
}
