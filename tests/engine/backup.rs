//! Backups: an image opens with the state of the store, is updated incrementally, and is rejected where it would do
//! harm.

use std::ops::ControlFlow;
use std::sync::Arc;

use engine::disk::Disk;
use engine::disk::sim::{LossPolicy, SimDisk};
use engine::recovery::RecoveryReport;
use engine::{Create, Error, Store};
use tests::fixtures::{back_up, find_bytes};
use tests::store::{Contents, World, body, compact, delete, idle, name, put, read, roll_over};

fn image_world(image: &SimDisk) -> World {
    let mut world = World::on(image.clone(), 8);
    world.options.create = Create::Never;
    world
}

fn open_image(image: &SimDisk) -> (Store, RecoveryReport) {
    image_world(image).open_with_report()
}

/// Puts objects into several log segments, and some with segments of their own.
fn fill(store: &Store, seed: u64) {
    for at in 0..40 {
        put(store, &name(&format!("small/{at}")), &body(seed + at, 3_000)).unwrap();
        roll_over(store).unwrap();
    }
    for at in 0..3 {
        put(store, &name(&format!("big/{seed}/{at}")), &body(seed + at, 9_000)).unwrap();
    }
}

/// Returns what must be equal in image and store: segments may be sealed in one and active in the other.
fn shown(store: &Store) -> Contents {
    Contents::of(store).unwrap()
}

#[test]
fn backup_opens_as_the_store_without_an_index() {
    let world = World::new(1);
    let store = world.open();
    fill(&store, 1);
    delete(&store, &name("small/7")).unwrap();
    let image = SimDisk::new();
    let report = back_up(&store, &image).unwrap();
    assert_eq!(report.last_lsn, store.stats().unwrap().last_lsn);
    assert_eq!((report.unchanged_files, report.removed_files, report.damage_count), (0, 0, 0));
    assert!(!image.paths().iter().any(|path| path.ends_with(".part") || path == "index.redb"));
    let copied: u64 = image
        .paths()
        .iter()
        .filter(|path| path.ends_with(".seg"))
        .map(|path| image.bytes(path).len() as u64)
        .sum();
    assert_eq!(report.copied_bytes, copied);

    let expected = shown(&store);
    let (restored, opened) = open_image(&image);
    assert!(opened.damage.is_empty() && opened.index_rebuilt, "{opened}");
    assert_eq!(shown(&restored), expected);
    put(&restored, &name("after"), b"it goes on").unwrap();
}

#[test]
fn empty_store_can_be_backed_up() {
    let store = World::new(1).open();
    let image = SimDisk::new();
    let report = back_up(&store, &image).unwrap();
    assert_eq!((report.copied_files, report.last_lsn), (0, 0));
    assert_eq!(shown(&open_image(&image).0), Contents::default());
}

#[test]
fn incremental_backup_copies_new_and_removes_old_segments() {
    let world = World::new(1);
    let store = world.open();
    fill(&store, 1);
    let image = SimDisk::new();
    let first = back_up(&store, &image).unwrap();
    let again = back_up(&store, &image).unwrap();
    assert_eq!(again.copied_files, 1, "only the segment that still grows");
    assert_eq!(again.unchanged_files + 1, first.copied_files);
    assert_eq!(again.unchanged_bytes + again.copied_bytes, first.copied_bytes);

    fill(&store, 2);
    delete(&store, &name("big/1/0")).unwrap();
    put(&store, &name("big/1/1"), b"small now").unwrap();
    let later = back_up(&store, &image).unwrap();
    assert_eq!(later.removed_files, 2);
    assert!(later.unchanged_files >= 3 && later.copied_files >= 5, "{later:?}");
    assert_eq!(shown(&open_image(&image).0), shown(&store));
}

#[test]
fn opened_backup_can_be_updated_but_modified_is_rejected() {
    let world = World::new(1);
    let store = world.open();
    fill(&store, 1);
    let image = SimDisk::new();
    back_up(&store, &image).unwrap();
    open_image(&image).0.close().unwrap();
    fill(&store, 2);
    back_up(&store, &image).unwrap();
    assert_eq!(shown(&open_image(&image).0), shown(&store));

    let (own, _) = open_image(&image);
    put(&own, &name("own"), b"written to the image").unwrap();
    assert!(matches!(back_up(&store, &image), Err(Error::InUse(_))));
    own.close().unwrap();
    drop(own);
    fill(&store, 3);
    assert!(matches!(back_up(&store, &image), Err(Error::NotAStore(_))));
    let (own, _) = open_image(&image);
    assert_eq!(read(&own, &name("own")).unwrap().unwrap(), b"written to the image");
}

#[test]
fn backup_rejects_foreign_target_folder() {
    let world = World::new(1);
    let store = world.open();
    fill(&store, 1);
    let other = World::new(2);
    put(&other.open(), &name("a"), b"of another store").unwrap();
    let unrelated = SimDisk::new();
    unrelated.create("holiday.jpg").unwrap();
    for disk in [&other.disk, &unrelated] {
        let before: Vec<_> = disk.paths().into_iter().filter(|path| path != "LOCK").collect();
        assert!(matches!(back_up(&store, disk), Err(Error::NotAStore(_))));
        let after: Vec<_> = disk.paths().into_iter().filter(|path| path != "LOCK").collect();
        assert_eq!(after, before);
    }
    assert!(matches!(back_up(&store, &world.disk), Err(Error::InUse(_))), "the store's own");
    // A third-party store without its STORE file is not mistaken for an interrupted backup.
    other.disk.remove("STORE").unwrap();
    assert!(matches!(back_up(&store, &other.disk), Err(Error::NotAStore(_))));
}

#[test]
fn backup_copies_damage_and_reports_it() {
    let world = World::new(1);
    let store = world.open();
    fill(&store, 1);
    idle(&store);
    let flip = |folder: &str, bytes: &[u8]| {
        let (path, at) = find_bytes(&world.disk, &bytes[..64]);
        assert!(path.starts_with(folder), "{path}");
        world.disk.flip(&path, at, 1);
        path
    };
    let in_log = flip("log/", &body(1 + 4, 3_000));
    let in_big = flip("big/", &body(1 + 2, 9_000));
    let image = SimDisk::new();
    let report = back_up(&store, &image).unwrap();
    let mut files: Vec<_> = report.damage.iter().map(|damage| damage.file.clone()).collect();
    files.sort();
    assert_eq!((files, report.damage_count), (vec![in_big, in_log], 2));
    let named = report.damage.iter().filter_map(|damage| damage.object.clone());
    assert_eq!(named.collect::<Vec<_>>(), [name("small/4")]);

    let (restored, _) = open_image(&image);
    for damaged in ["small/4", "big/1/2"] {
        assert!(matches!(read(&restored, &name(damaged)), Err(Error::Corrupt(_))), "{damaged}");
    }
    assert_eq!(read(&restored, &name("small/5")).unwrap().unwrap(), body(6, 3_000));
}

#[test]
fn backup_keeps_concurrently_deleted_then_reclaims() {
    let world = World::new(1);
    let store = world.open();
    fill(&store, 1);
    let expected = shown(&store);
    let image = SimDisk::new();
    let to: Arc<dyn Disk> = Arc::new(image.clone());
    let mut is_done = false;
    store
        .backup(&to, &mut |_| {
            if !std::mem::replace(&mut is_done, true) {
                for at in 0..3 {
                    delete(&store, &name(&format!("big/1/{at}"))).unwrap();
                }
                put(&store, &name("later"), b"not in the image").unwrap();
                assert_eq!(world.files_in("big/").len(), 3, "held");
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(world.files_in("big/").len(), 0);
    assert_eq!(shown(&open_image(&image).0), expected);
}

#[test]
fn cancelled_backup_keeps_previous_and_can_be_repeated() {
    let world = World::new(1);
    let store = world.open();
    fill(&store, 1);
    let image = SimDisk::new();
    back_up(&store, &image).unwrap();
    let before = shown(&store);
    fill(&store, 2);
    let to: Arc<dyn Disk> = Arc::new(image.clone());
    let stopped = store.backup(&to, &mut |progress| match progress.done_items {
        0..4 => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    });
    assert!(matches!(stopped, Err(Error::Cancelled)));
    assert_eq!(shown(&open_image(&SimDisk::fork(&image)).0), before);
    back_up(&store, &image).unwrap();
    assert_eq!(shown(&open_image(&image).0), shown(&store));
}

#[test]
fn backup_during_writes_is_a_consistent_snapshot() {
    let mut world = World::new(1);
    let store = world.open_with_threads();
    let image = SimDisk::new();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for at in 0..600_u64 {
                let staged = tests::store::stage(&store, &body(at, 2_500)).unwrap();
                let both = engine::Batch::new()
                    .put(name(&format!("one/{}", at % 20)), staged, Default::default())
                    .put_fact(tests::store::fact("last"), at.to_string().into());
                store.commit(both).unwrap();
            }
        });
        let mut rounds = 0;
        while !writer.is_finished() || rounds == 0 {
            let report = back_up(&store, &image).unwrap();
            assert_eq!(report.damage_count, 0, "{report:?}");
            let (restored, opened) = open_image(&image.fork());
            assert!(opened.damage.is_empty(), "{opened}");
            assert_eq!(opened.last_lsn, report.last_lsn);
            if let Some(last) = restored.fact(&tests::store::fact("last")).unwrap() {
                let last: u64 = std::str::from_utf8(&last).unwrap().parse().unwrap();
                let newest = name(&format!("one/{}", last % 20));
                assert_eq!(read(&restored, &newest).unwrap().unwrap(), body(last, 2_500));
            }
            rounds += 1;
        }
    });
}

/// Returns the contents without the segment counters: the records of an image have the same places as in the store, but
/// segments replaced by a compaction may still exist in one of the two.
fn objects_of(contents: &Contents) -> Contents {
    let (log, compacted) = Default::default();
    Contents { log, compacted, ..contents.clone() }
}

#[test]
fn backup_follows_compactions_and_passes_fsck() {
    let world = World::new(1);
    let store = world.open();
    let image = SimDisk::new();
    let mut seed = 1;
    let mut compacted = 0;
    for turn in 0..5 {
        fill(&store, seed);
        seed += 1_000;
        delete(&store, &name(&format!("small/{turn}"))).unwrap();
        store.checkpoint().unwrap();
        // Compacts before some backups only, so that the image misses both inputs and outputs of compactions.
        if turn != 1 {
            compacted += compact(&store).unwrap().segments_removed;
        }
        if turn == 2 {
            continue;
        }
        let report = back_up(&store, &image).unwrap();
        assert_eq!(report.damage_count, 0);
        let copy = image.fork();
        copy.cut_power();
        copy.power_on(LossPolicy::KeepSynced, 0);
        let checked = World::on(copy.fork(), 9).fsck(true).unwrap();
        assert!(checked.is_clean(), "turn {turn}: {checked}");
        let (restored, opened) = open_image(&copy);
        assert!(opened.damage.is_empty(), "turn {turn}: {opened}");
        let is_same = objects_of(&shown(&restored)) == objects_of(&shown(&store));
        assert!(is_same, "turn {turn}: {opened}");
    }
    assert!(compacted > 8, "{compacted} segments were compacted");
}
