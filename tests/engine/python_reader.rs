//! The independent reader in Python agrees with the engine: it was written from the format description alone, and walks
//! the segments without an index. It must report the same of every object as the engine; and where bytes were changed,
//! it must report the damage.

use bytes::Bytes;
use engine::{Batch, PutOptions, Store};
use tests::fixtures::find_bytes;
use tests::python_reader::{ReaderOutput, read_disk_in_python, require_python};
use tests::store::{
    Change, Contents, World, batch, body, bucket_named, commit, compact, delete, fact, name,
    name_in, put, read, roll_over, stage,
};

use crate::golden::{DOOMED, golden};

/// Body sizes around the bounds where their place and their number of blocks change.
const SIZES: [usize; 12] =
    [0, 1, 511, 4_096, 65_535, 65_536, 65_537, 131_072, 196_608, 196_609, 400_000, 1_200_000];

/// Creates a store with every feature: bodies of all sizes, names that are not ASCII, metadata, overwritten, deleted
/// and moved objects, facts, several segments, and two compactions, one of the output of the other.
fn rich() -> World {
    let world = World::wide(5);
    let store = world.open();
    for (seed, size) in (0..).zip(SIZES) {
        put(&store, &name(&format!("sizes/{size}")), &body(seed, size)).unwrap();
    }
    for turn in 0..6 {
        for at in 0..30 {
            let key = name(&format!("turns/{at:02}.bin"));
            put(&store, &key, &body(100 * turn + at, 20_000 + 1_000 * at as usize)).unwrap();
        }
        put(&store, &name("big"), &body(turn, 300_000)).unwrap();
        roll_over(&store).unwrap();
        if turn % 2 == 1 {
            assert!(compact(&store).unwrap().segments_removed > 0);
        }
    }
    store.checkpoint().unwrap();
    described(&store);
    let other = name_in(&bucket_named("other-bucket.1"), "derived");
    let last = [
        vec![Change::PutDerived(other, Bytes::from(body(7, 64)))],
        vec![Change::PutFact(fact("kept"), Bytes::from(body(8, 90)))],
        vec![Change::PutFact(fact("gone"), Bytes::new()), Change::Delete(name("turns/00.bin"))],
        vec![Change::DeleteFact(fact("gone"))],
    ];
    for changes in last {
        commit(&store, batch(&store, &changes).unwrap()).unwrap();
    }
    delete(&store, &name("sizes/1200000")).unwrap();
    world
}

/// Puts objects with all kinds of metadata, and moves one.
fn described(store: &Store) {
    let long = format!("{}/{}", "é日".repeat(100), "n".repeat(200));
    let mut created_ms = None;
    for key in ["from here", "to/there", &long] {
        let options = PutOptions {
            content_type: "text/x-kind; charset=utf-8".to_owned(),
            attributes: (0..=255).collect(),
            created_ms,
            ..PutOptions::default()
        };
        let staged = stage(store, b"moved").unwrap();
        let mut batch = Batch::new().put(name(key), staged, options);
        if key == "to/there" {
            batch = batch.delete(name("from here"));
        }
        commit(store, batch).unwrap();
        created_ms = Some(store.get(&name(key)).unwrap().unwrap().created_ms());
    }
    put(store, &name("folder/"), b"").unwrap();
}

#[test]
fn python_reader_matches_engine_per_object() {
    require_python();
    let world = rich();
    for closed in [false, true] {
        if closed {
            world.open().close().unwrap();
        }
        let output = read_disk_in_python(&world.disk);
        assert_eq!(output.code, 0, "{}", output.stderr);
        assert!(output.stderr.contains("not checked: BLAKE3"), "{}", output.stderr);
        let contents = Contents::of(&World::on(world.disk.fork(), 9).open()).unwrap();
        assert!(contents.objects.len() > 40 && contents.compacted.record_bytes > 0);
        output.must_be(&contents).unwrap();
    }
}

#[test]
fn python_reader_reads_golden_store() {
    require_python();
    let world = golden();
    let output = read_disk_in_python(&world.disk);
    assert_eq!(output.code, 3, "something in it was lost: {}", output.stderr);
    let doomed = ("photos".to_owned(), DOOMED.to_owned());
    assert!(output.objects[&doomed]["sha256"].is_null(), "{:?}", output.objects[&doomed]);
    let store = world.open();
    delete(&store, &name(DOOMED)).unwrap();
    let mut objects = output.objects;
    objects.remove(&doomed);
    ReaderOutput { objects, ..output }.must_be(&Contents::of(&store).unwrap()).unwrap();
}

#[test]
fn python_reader_detects_every_damaged_byte() {
    require_python();
    let world = rich();
    world.open().close().unwrap();
    let disk = &world.disk;
    let store = World::on(disk.fork(), 9).open();
    let place_of = |key: &str| {
        let wanted = read(&store, &name(key)).unwrap().unwrap();
        find_bytes(disk, &wanted[..64])
    };
    let (log, at) = place_of("turns/07.bin");
    let (big, start) = place_of("big");
    let end = disk.bytes(&big).len() as u64;
    for (path, offset, says) in [
        (&log, at, "photos/turns/07.bin"),
        (&log, at + 20_000, "photos/turns/07.bin"),
        (&log, at - 1, "the head of a record"),
        (&log, 4_096 + 9, "no whole group"),
        (&log, 9, "a copy of the header"),
        (&log, 2_048 + 50, "a copy of the header"),
        (&big, start + 299_999, "photos/big: a block of the body"),
        (&big, end - 70, "photos/big: the table of blocks"),
        (&big, end - 30, "photos/big: the trailer"),
        (&big, 16, "photos/big: the header"),
    ] {
        let damaged = disk.fork();
        damaged.flip(path, offset, 0x10);
        let output = read_disk_in_python(&damaged);
        assert_eq!(output.code, 3, "{path} at {offset}: {}", output.stderr);
        assert!(output.stderr.contains(says), "{path} at {offset}, {says}: {}", output.stderr);
        assert!(output.stderr.contains("DAMAGE in"), "{}", output.stderr);
    }
    let missing = disk.fork();
    engine::disk::Disk::remove(&missing, &big).unwrap();
    let output = read_disk_in_python(&missing);
    assert!(output.code == 3 && output.stderr.contains("photos/big: "), "{}", output.stderr);
}
