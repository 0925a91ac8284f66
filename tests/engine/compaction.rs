//! Compaction reclaims the space of dead records and changes nothing else.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use engine::compaction::{CompactionOptions, CompactionRules};
use engine::damage::SegmentId;
use engine::disk::Disk;
use engine::disk::sim::SimDisk;
use engine::{Batch, Error, PutOptions, Store};
use tests::fixtures::find_bytes;
use tests::store::{
    Contents, World, body, commit, compact, delete, fact, name, put, read, roll_over, stage,
};

const EVERYTHING: CompactionRules =
    CompactionRules { store_dead_percent_min: 0, segment_dead_percent_min: 1 };

/// Fills about a log segment with objects of these names, and seals it.
fn fill(store: &Store, keys: &[String], seed: u64) {
    for (at, key) in (0..).zip(keys) {
        put(store, &name(key), &body(seed + at, 3_500)).unwrap();
    }
    roll_over(store).unwrap();
}

fn keys(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|at| format!("{prefix}/{at}")).collect()
}

/// Creates two segments with mostly overwritten objects, sealed and in the index on disk.
fn half_dead(world: &World) -> Store {
    let store = world.open();
    put(&store, &name("big"), &body(1, 9_000)).unwrap();
    store.commit(Batch::new().put_fact(fact("kept"), body(2, 90).into())).unwrap();
    for turn in 0..4 {
        fill(&store, &keys("again", 12), 100 * turn);
        fill(&store, &keys(&format!("once/{turn}"), 6), 1_000 + 100 * turn);
    }
    store.checkpoint().unwrap();
    store
}

/// Returns the number of files that hold records, and their total length.
fn record_files(world: &World) -> (usize, usize) {
    let mut files = world.files_in("log/");
    files.extend(world.files_in("compacted/"));
    (files.len(), files.iter().map(|path| world.disk.bytes(path).len()).sum())
}

#[test]
fn compaction_reclaims_dead_space_and_keeps_live_data() {
    let world = World::new(1);
    let store = half_dead(&world);
    let before = Contents::of(&store).unwrap();
    let (_, bytes_before) = record_files(&world);
    let selection = store.select_compaction(EVERYTHING).unwrap();
    assert!(selection.freed_bytes() > 0);
    assert_eq!(record_files(&world).1, bytes_before, "to select changes nothing");

    let report = compact(&store).unwrap();
    assert_eq!(report.segments_removed, selection.inputs().count() as u64);
    assert_eq!(report.copied_bytes, selection.live_bytes());
    assert!(report.skipped.is_empty());
    let after = Contents::of(&store).unwrap();
    assert_eq!(
        (&after.objects, &after.facts, &after.usages),
        (&before.objects, &before.facts, &before.usages)
    );
    let (_, bytes_after) = record_files(&world);
    assert!(bytes_after + 50_000 < bytes_before, "{bytes_before} became {bytes_after}");
    assert_eq!(after.compacted.record_bytes, after.compacted.live_bytes, "nothing dead was copied");

    let again = store.select_compaction(CompactionRules::BACKGROUND).unwrap();
    assert!(again.steps.is_empty(), "there is nothing left to do: {again}");
    drop(store);
    let checked = World::on(world.disk.fork(), 2).fsck(true).unwrap();
    assert!(checked.is_clean(), "{checked}");
    assert_eq!(Contents::of(&world.open()).unwrap(), after, "after opening it again");
    world.disk.remove("index.redb").unwrap();
    assert_eq!(Contents::of(&world.open()).unwrap(), after, "with a rebuilt index");
}

#[test]
fn manual_compaction_rolls_over_newest_segment() {
    let world = World::new(1);
    let store = world.open();
    for turn in 0..10 {
        put(&store, &name("again"), &body(turn, 3_000)).unwrap();
    }
    let selection = store.select_compaction(EVERYTHING).unwrap();
    assert!(selection.steps.is_empty() && selection.newest_dead_bytes > 9 * 3_000);
    let report = compact(&store).unwrap();
    assert_eq!((report.segments_removed, report.copied_bytes / 3_000), (1, 1));
    assert_eq!(read(&store, &name("again")).unwrap().unwrap(), body(9, 3_000));
    assert_eq!(compact(&store).unwrap().segments_removed, 0, "there is nothing left to do");
    drop(store);
    assert_eq!(read(&world.open(), &name("again")).unwrap().unwrap(), body(9, 3_000));
}

#[test]
fn compaction_skips_segments_with_little_dead_space() {
    let world = World::new(1);
    let store = half_dead(&world);
    let selection = store.select_compaction(CompactionRules::BACKGROUND).unwrap();
    assert!(!selection.steps.is_empty());
    let strict = CompactionRules { store_dead_percent_min: 99, ..CompactionRules::BACKGROUND };
    assert!(store.select_compaction(strict).unwrap().steps.is_empty());
}

#[test]
fn tombstone_is_kept_while_older_record_may_exist() {
    let world = World::new(1);
    let store = world.open();
    // The first segment keeps the old records, next to live ones; the records that end them come much later.
    commit(&store, Batch::new().put_fact(fact("victim"), Bytes::from_static(b"1"))).unwrap();
    fill(&store, &[vec!["victim".to_owned()], keys("alive", 16)].concat(), 1);
    fill(&store, &keys("dying", 16), 100);
    let end = Batch::new().delete(name("victim")).delete_fact(fact("victim"));
    commit(&store, end).unwrap();
    for key in keys("dying", 16) {
        delete(&store, &name(&key)).unwrap();
    }
    // The other records of the tombstones' segment die too, so that the tombstones are copied, or not, while the old
    // records stay in place.
    fill(&store, &keys("again", 16), 200);
    fill(&store, &keys("again", 16), 300);
    store.checkpoint().unwrap();

    let mostly_dead = CompactionRules { store_dead_percent_min: 0, segment_dead_percent_min: 60 };
    let go_on = &mut |_| ControlFlow::Continue(());
    let report = store.compact(mostly_dead, None, go_on).unwrap();
    assert_eq!((report.segments_removed, report.tombstones_dropped), (2, 0));
    let before = Contents::of(&store).unwrap();
    assert!(store.get(&name("victim")).unwrap().is_none());
    drop(store);
    world.disk.remove("index.redb").unwrap();
    let store = world.open();
    assert!(store.get(&name("victim")).unwrap().is_none(), "what was deleted came back");
    assert_eq!(store.fact(&fact("victim")).unwrap(), None, "a fact that was removed came back");
    assert_eq!(Contents::of(&store).unwrap(), before);

    // Tombstones are dropped once no remaining segment can hold an older record.
    put(&store, &name("next"), b"begins a segment").unwrap();
    store.checkpoint().unwrap();
    let mut dropped = 0;
    for _ in 0..4 {
        dropped += compact(&store).unwrap().tombstones_dropped;
    }
    assert!(dropped >= 18, "{dropped} tombstones and ends of facts went");
    drop(store);
    world.disk.remove("index.redb").unwrap();
    let store = world.open();
    assert!(store.get(&name("victim")).unwrap().is_none());
    assert!(store.get(&name("dying/3")).unwrap().is_none());
}

#[test]
fn compaction_is_deferred_while_backup_pins_segments() {
    let world = World::new(1);
    let store = half_dead(&world);
    let image: Arc<dyn Disk> = Arc::new(SimDisk::with_seed(2));
    let mut reports = Vec::new();
    let backup = store.backup(&image, &mut |_| {
        if reports.len() < 2 {
            fill(&store, &keys("again", 12), 500);
            fill(&store, &keys("again", 12), 600);
            store.checkpoint().unwrap();
            reports.push(compact(&store).unwrap());
        }
        ControlFlow::Continue(())
    });
    backup.unwrap();
    assert_eq!(reports[0].steps, 1, "{:?}", reports[0]);
    assert_eq!((reports[1].steps, reports[1].is_deferred), (0, true), "{:?}", reports[1]);
    let after = compact(&store).unwrap();
    assert!(after.steps > 0 && !after.is_deferred, "{after:?}");
}

#[test]
fn open_reader_survives_compaction() {
    let world = World::new(1);
    let store = half_dead(&world);
    let object = store.get(&name("once/0/3")).unwrap().unwrap();
    let open = store.body(&object).unwrap();
    let unopened = store.get(&name("once/0/4")).unwrap().unwrap();
    assert!(compact(&store).unwrap().segments_removed > 0);
    assert_eq!(open.read(0..3_500).unwrap(), body(1_003, 3_500), "a body that was open");
    let late = store.body(&unopened).unwrap();
    assert_eq!(late.read(0..3_500).unwrap(), body(1_004, 3_500), "an object that was looked up");
}

#[test]
fn compaction_copies_damage_with_its_object() {
    let world = World::new(1);
    let store = half_dead(&world);
    drop(store);
    let wanted = body(1_003, 3_500);
    let (path, at) = find_bytes(&world.disk, &wanted[..64]);
    assert!(path.starts_with("log/"), "{path}");
    world.disk.overwrite(&path, at + 9, &[!wanted[9]]);
    let store = world.open();
    let hurt = name("once/0/3");
    assert!(matches!(read(&store, &hurt), Err(Error::Corrupt(_))));
    put(&store, &name("next"), b"begins a segment").unwrap();
    store.checkpoint().unwrap();
    assert!(compact(&store).unwrap().segments_removed > 0);
    match read(&store, &hurt) {
        Err(Error::Corrupt(corruption)) => {
            assert_eq!(corruption.object, Some(hurt));
            assert!(corruption.file.starts_with("compacted/"), "{corruption}");
        }
        other => panic!("the damage is gone: {other:?}"),
    }
    assert_eq!(read(&store, &name("once/0/4")).unwrap().unwrap(), body(1_004, 3_500));
}

#[test]
fn compaction_skips_segment_that_lost_a_live_record() {
    let world = World::new(1);
    let store = half_dead(&world);
    let lost = store.get(&name("once/0/3")).unwrap().unwrap();
    drop(store);
    // The record's head in the group, and its copy in the footer.
    let (path, at) = find_bytes(&world.disk, &body(1_003, 3_500)[..64]);
    assert!(path.starts_with("log/"), "{path}");
    world.disk.overwrite(&path, at - 9, &[0x55; 4]);
    let length = world.disk.bytes(&path).len() as u64;
    world.disk.overwrite(&path, length - 300, &[0x55; 4]);
    let store = world.open();
    put(&store, &name("next"), b"begins a segment").unwrap();
    store.checkpoint().unwrap();
    let report = compact(&store).unwrap();
    let id = SegmentId::from_file_name(path.trim_start_matches("log/")).unwrap();
    assert!(report.skipped.iter().any(|(refused, _)| *refused == id), "{report:?}");
    assert!(world.disk.paths().contains(&path), "it is still there");
    assert!(matches!(store.body(&lost), Err(Error::Corrupt(_))));
    assert_eq!(read(&store, &name("once/0/4")).unwrap().unwrap(), body(1_004, 3_500));
    assert_eq!(read(&store, &name("once/1/4")).unwrap().unwrap(), body(1_104, 3_500));
}

#[test]
fn cancelled_compaction_leaves_nothing_behind() {
    let world = World::new(1);
    let store = half_dead(&world);
    let before = Contents::of(&store).unwrap();
    let mut records = 0;
    let stopped = store.compact(EVERYTHING, None, &mut |_| {
        records += 1;
        if records > 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(matches!(stopped, Err(Error::Cancelled)));
    assert_eq!(Contents::of(&store).unwrap(), before);
    assert!(world.files_in("compacted/").is_empty());
    assert!(compact(&store).unwrap().segments_removed > 0, "and it can be done later");
}

#[test]
fn compaction_runs_concurrently_with_readers_and_writers() {
    let mut world = World::new(1);
    let store = world.open_with_threads();
    let done = AtomicBool::new(false);
    let value = |writer: u64, turn: u64| body(10_000 * writer + turn, 3_000);
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let (store, done) = (&store, &done);
            scope.spawn(move || {
                for turn in 0..400 {
                    let staged = stage(store, &value(writer, turn)).unwrap();
                    let key = name(&format!("{writer}/{}", turn % 23));
                    store.commit(Batch::new().put(key, staged, PutOptions::default())).unwrap();
                }
                done.store(true, Ordering::SeqCst);
            });
        }
        for reader in 0..2_u64 {
            let (store, done) = (&store, &done);
            scope.spawn(move || {
                let mut at = 0;
                while !done.load(Ordering::SeqCst) {
                    at += 1;
                    let key = name(&format!("{reader}/{}", at % 23));
                    match read(store, &key) {
                        Ok(Some(bytes)) => {
                            let is_one = (0..400).any(|turn| bytes == value(reader, turn));
                            assert!(is_one, "{key} holds what nobody put");
                        }
                        Ok(None) | Err(Error::Conflict(_)) => {}
                        Err(error) => panic!("{key}: {error}"),
                    }
                }
            });
        }
        let mut removed = 0;
        while !done.load(Ordering::SeqCst) {
            removed += compact(&store).unwrap().segments_removed;
        }
        while removed == 0 {
            removed += compact(&store).unwrap().segments_removed;
        }
    });
    for writer in 0..2 {
        for key in 0..23 {
            let last = (0..400).rev().find(|turn| turn % 23 == key).unwrap();
            let bytes = read(&store, &name(&format!("{writer}/{key}"))).unwrap().unwrap();
            assert_eq!(bytes, value(writer, last));
        }
    }
    store.close().unwrap();
    let contents = Contents::of(&world.open()).unwrap();
    world.disk.remove("index.redb").unwrap();
    let (store, report) = world.open_with_report();
    assert!(report.damage.is_empty(), "{report}");
    let rebuilt = Contents::of(&store).unwrap();
    assert_eq!((rebuilt.log, rebuilt.compacted), (contents.log, contents.compacted));
    for (name, seen) in &contents.objects {
        let again = &rebuilt.objects[name];
        assert_eq!((&again.described, again.lsn), (&seen.described, seen.lsn), "{name}");
    }
    let summary = |it: &Contents| (it.usages.clone(), it.big, it.last_lsn, it.objects.len());
    assert_eq!(summary(&rebuilt), summary(&contents));
    assert!(rebuilt == contents, "a rebuilt index shows other bytes");
}

#[test]
fn automatic_compaction_runs_in_background() {
    let mut world = World::new(1);
    drop(half_dead(&world));
    world.options.compaction =
        Some(CompactionOptions { bytes_per_second_max: 1 << 30, poll_ms: 5 });
    let store = world.open_with_threads();
    let staged = stage(&store, b"begins a segment").unwrap();
    store.commit(Batch::new().put(name("next"), staged, PutOptions::default())).unwrap();
    store.checkpoint().unwrap();
    let compacted = || store.stats().unwrap().compacted.segments > 0;
    assert!((0..2_000).any(|_| compacted() || {
        std::thread::sleep(Duration::from_millis(5));
        false
    }));
    assert_eq!(read(&store, &name("once/0/4")).unwrap().unwrap(), body(1_004, 3_500));
    store.close().unwrap();
}
