//! Punched-out bodies: such a version is reported as reclaimed, not damaged, even where power was cut before all of it
//! was a hole; damage next to it is reported as damage; and copies and undeletes lose nothing by it.

use std::ops::ControlFlow;
use std::sync::Arc;

use engine::compaction::CompactionRules;
use engine::disk::Disk;
use engine::disk::sim::{LossPolicy, SimDisk};
use engine::history::{
    PutVersion, RestoreError, UndeleteRequest, VersionEvent, VersionFilter, VersionScope,
    VersionState,
};
use engine::{FolderKey, Store};
use tests::fixtures::find_bytes;
use tests::store::{
    Contents, Model, World, body, bucket, compact, delete, name, put, read, roll_over,
};

/// Length of an object in bytes.
const BYTES: usize = 100_000;

/// Creates a store of a few segments on a disk without room for copies; every other object in them is dead.
fn full_disk() -> (World, Store, Model) {
    let (world, mut model) = (World::wide(1), Model::default());
    let store = world.open();
    for at in 0..24 {
        let (name, bytes) = (name(&format!("{at}")), body(at, BYTES));
        put(&store, &name, &bytes).unwrap();
        model.objects.insert(name, (bytes.into(), false));
        roll_over(&store).unwrap();
    }
    delete_all(&store, &mut model, (0..24).step_by(2));
    store.checkpoint().unwrap();
    world.disk.set_free_bytes(300_000);
    (world, store, model)
}

fn delete_all(store: &Store, model: &mut Model, keys: impl Iterator<Item = u64>) {
    for at in keys {
        let name = name(&format!("{at}"));
        delete(store, &name).unwrap();
        model.objects.remove(&name);
    }
}

/// Returns the versions of all objects, by key and number.
fn versions(store: &Store) -> Vec<(String, u64, PutVersion)> {
    let scope = VersionScope::Folder(FolderKey::root());
    let filter = VersionFilter { bucket: bucket(), scope, since_ms: 0 };
    let history =
        store.version_history(&filter, 1_000, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(history.damage_count, 0);
    let puts = history.versions.into_iter().filter_map(|version| match version.event {
        VersionEvent::Put(put) => Some((version.name.key.as_str().to_owned(), version.lsn, put)),
        VersionEvent::Deleted => None,
    });
    puts.collect()
}

/// Whether some pages of a body are present and others are not.
fn is_partly_reclaimed(disk: &SimDisk, bytes: &[u8]) -> bool {
    let (path, at) = find_bytes(disk, &bytes[..100]);
    let found = &disk.bytes(&path)[at as usize..][..bytes.len()];
    let same = found.iter().zip(bytes).filter(|(found, put)| found == put).count();
    // The first and last page of the body are always present in part.
    same < bytes.len() && same > 3 * 4_096
}

#[test]
fn partly_reclaimed_version_is_gone_not_damaged() {
    let (world, store, _) = full_disk();
    world.disk.record_cuts();
    let rules = CompactionRules { store_dead_percent_min: 0, segment_dead_percent_min: 1 };
    let report = store.compact(rules, None, &mut |_| ControlFlow::Continue(())).unwrap();
    assert!(report.punched_bytes > 0, "{report:?}");
    let (mut gone, mut gone_in_part, mut back) = (0, 0, 0);
    for (at, cut) in cut_points(&world) {
        let mut world = World::wide(at);
        world.disk = cut;
        let was_lost = at % 2 == 0 && world.disk.remove("index.redb").is_ok();
        let store = world.open();
        for (key, lsn, version) in versions(&store) {
            let bytes = body(key.parse().unwrap(), BYTES);
            match version.recoverable {
                Ok(()) if version.state == VersionState::Deleted => {
                    let request = UndeleteRequest::Version { name: name(&key), lsn };
                    store.undelete(&request, &mut |_| ControlFlow::Continue(())).unwrap();
                    assert_eq!(read(&store, &name(&key)).unwrap().unwrap(), bytes, "{key}");
                    back += 1;
                }
                Ok(()) => {}
                Err(why) => {
                    let context = format!("cut {at}, index lost: {was_lost}: {key} {version:?}");
                    assert_eq!(why, RestoreError::SpaceReclaimed, "{context}");
                    assert_eq!(version.state, VersionState::Deleted, "{context}");
                    gone += 1;
                    gone_in_part += u64::from(is_partly_reclaimed(&world.disk, &bytes));
                }
            }
        }
    }
    println!("{gone} versions are gone, {gone_in_part} of them in part; {back} are back");
    assert!(gone > gone_in_part && gone_in_part > 0 && back > 0);
}

/// Returns some of the recorded cuts, powered on with a part of the unsynced data, and with room.
fn cut_points(world: &World) -> Vec<(u64, SimDisk)> {
    let cuts = world.disk.take_cuts();
    let some = (0..).zip(cuts).filter(|(at, _)| at % 3 == 0);
    let powered = some.map(|(at, cut)| {
        cut.power_on(LossPolicy::Sectors, at);
        cut.set_free_bytes(100 << 20);
        (at, cut)
    });
    powered.collect()
}

#[test]
fn damage_next_to_reclaimed_space_is_reported() {
    let world = World::wide(1);
    let store = world.open();
    let mixed = [vec![0; 65_536], body(1, 60_000)].concat();
    let zeros = [vec![0; 50_000], body(2, 1_000)].concat();
    for (key, bytes) in [("gone", &body(3, BYTES)), ("mixed", &mixed), ("zeros", &zeros)] {
        put(&store, &name(key), bytes).unwrap();
    }
    for at in 0..24 {
        put(&store, &name(&format!("{at}")), &body(100 + at, BYTES)).unwrap();
        roll_over(&store).unwrap();
    }
    delete(&store, &name("gone")).unwrap();
    store.checkpoint().unwrap();
    world.disk.set_free_bytes(300_000);
    assert!(compact(&store).unwrap().punched_bytes > 0);
    world.disk.set_free_bytes(100 << 20);
    // One is deleted later, and its damage is a block without zeros; the other is live.
    delete(&store, &name("mixed")).unwrap();
    for bytes in [body(1, 100), body(2, 100)] {
        let (path, at) = find_bytes(&world.disk, &bytes);
        world.disk.flip(&path, at, 1);
    }
    let unrecoverable: Vec<_> = versions(&store)
        .into_iter()
        .filter(|(_, _, version)| version.recoverable.is_err())
        .map(|(key, _, version)| (key, version.state, version.recoverable.unwrap_err()))
        .collect();
    let expected = [
        ("gone", VersionState::Deleted, RestoreError::SpaceReclaimed),
        ("mixed", VersionState::Deleted, RestoreError::Damaged),
        ("zeros", VersionState::Current, RestoreError::Damaged),
    ];
    assert_eq!(unrecoverable, expected.map(|(key, state, why)| (key.to_owned(), state, why)));
    let to: Arc<dyn Disk> = Arc::new(SimDisk::with_seed(1));
    let backup = store.backup(&to, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(backup.damage_count, 2, "{backup:?}");
}

#[test]
fn version_reclaimed_during_restore_is_gone_not_damaged() {
    let (world, store, mut model) = full_disk();
    // The room of the spare segment is used up.
    assert!(compact(&store).unwrap().punched_bytes > 0);
    delete_all(&store, &mut model, (1..24).step_by(4));
    let mut compacted = None;
    let undeleted = store.undelete(&UndeleteRequest::Object(name("1")), &mut |progress| {
        // The version was found, and is about to be read.
        if progress.total_items == 1 {
            world.disk.set_free_bytes(300_000);
            compacted = Some(compact(&store).unwrap());
            world.disk.set_free_bytes(100 << 20);
        }
        ControlFlow::Continue(())
    });
    let compacted = compacted.unwrap();
    assert!(compacted.punched_bytes > 0 && compacted.steps == 0, "{compacted:?}");
    assert_eq!(undeleted.unwrap().failed, [(name("1"), RestoreError::SpaceReclaimed)]);
    Contents::of(&store).unwrap().check_against(&model).unwrap();
}

#[test]
fn space_pinned_by_backup_is_not_reclaimed() {
    let (world, store, mut model) = full_disk();
    // The room of the spare segment is used up.
    assert!(compact(&store).unwrap().punched_bytes > 0);
    let image = SimDisk::with_seed(1);
    let to: Arc<dyn Disk> = Arc::new(image.clone());
    let before = model.clone();
    let mut compacted = None;
    let backup = store.backup(&to, &mut |_| {
        compacted.get_or_insert_with(|| {
            delete_all(&store, &mut model, (1..24).step_by(4));
            world.disk.set_free_bytes(300_000);
            compact(&store).unwrap()
        });
        ControlFlow::Continue(())
    });
    assert_eq!(backup.unwrap().damage_count, 0);
    let concurrent = compacted.unwrap();
    assert_eq!(concurrent.punched_bytes, 0, "{concurrent:?}");
    let (copy, report) = World::on(image, 8).open_with_report();
    assert_eq!(report.damage_count(), 0, "{report}");
    Contents::of(&copy).unwrap().check_against(&before).unwrap();
    // The space is reclaimed after the backup.
    world.disk.set_free_bytes(300_000);
    let after = compact(&store).unwrap();
    assert!(after.punched_bytes > 0, "{after:?}");
    Contents::of(&store).unwrap().check_against(&model).unwrap();
}
