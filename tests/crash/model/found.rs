//! Regression tests for findings of random runs, each reduced to a story of its own.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::channel;

use bytes::Bytes;
use engine::compaction::CompactionRules;
use engine::disk::Disk;
use engine::disk::faults::{Fault, FaultRule, Operation, PathPattern};
use engine::disk::sim::{LossPolicy, SimDisk};
use engine::history::{VersionFilter, VersionScope};
use engine::{Batch, Error, FolderKey, Health, Precondition, Store};
use tests::store::{
    Change, Contents, Model, World, batch, body, commit, compact, delete, name, put, roll_over,
};

use crate::survivor::{Syncs, check, check_after};

/// Puts objects, each in a batch of its own.
fn put_all(store: &Store, model: &mut Model, keys: std::ops::Range<u64>, length: usize) {
    for at in keys {
        let (name, bytes) = (name(&format!("key/{at}")), body(at, length));
        put(store, &name, &bytes).unwrap();
        model.objects.insert(name, (Bytes::from(bytes), false));
    }
}

fn delete_all(store: &Store, model: &mut Model, keys: std::ops::Range<u64>) {
    for at in keys {
        delete(store, &name(&format!("key/{at}"))).unwrap();
        model.objects.remove(&name(&format!("key/{at}")));
    }
}

fn reopens_without_index(world: &World, model: &Model) {
    world.disk.remove("index.redb").unwrap();
    let (store, report) = world.open_with_report();
    assert_eq!(report.damage_count(), 0, "{report}");
    Contents::of(&store).unwrap().check_against(model).unwrap();
}

#[test]
fn segment_without_groups_is_not_missed() {
    let world = World::wide(1);
    let mut model = Model::default();
    let store = world.open();
    put_all(&store, &mut model, 0..3, 1_000);
    store.close().unwrap();
    drop(store);
    let store = world.open();
    // A small segment is begun for a deletion, which is rejected; the next object does not fit in it.
    world.disk.set_free_bytes(300_000);
    let absent = name("absent");
    let refused = Batch::new().delete(absent.clone()).require(Precondition::KeyPresent(absent));
    assert!(matches!(commit(&store, refused), Err(Error::Conflict(_))));
    let small = world.files_in("log/").len();
    world.disk.set_free_bytes(100 << 20);
    put_all(&store, &mut model, 3..4, 190_000);
    put_all(&store, &mut model, 4..8, 100_000);
    assert_eq!(world.files_in("log/").len(), small, "the small one made way");
    store.close().unwrap();
    drop(store);
    reopens_without_index(&world, &model);
}

#[test]
fn segment_without_groups_is_not_missed_after_power_loss() {
    // The same story without closing the store.
    for policy in [LossPolicy::KeepSynced, LossPolicy::NamesLost] {
        let world = World::wide(1);
        let mut model = Model::default();
        let store = world.open();
        put_all(&store, &mut model, 0..3, 1_000);
        store.close().unwrap();
        drop(store);
        let store = world.open();
        world.disk.set_free_bytes(300_000);
        let absent = name("absent");
        let refused = Batch::new().delete(absent.clone()).require(Precondition::KeyPresent(absent));
        assert!(matches!(commit(&store, refused), Err(Error::Conflict(_))));
        world.disk.set_free_bytes(100 << 20);
        put_all(&store, &mut model, 3..4, 190_000);
        put_all(&store, &mut model, 4..30, 100_000);
        world.disk.cut_power();
        drop(store);
        world.disk.power_on(policy, 0);
        reopens_without_index(&world, &model);
        check(&world.disk, &[&model]).unwrap();
    }
}

#[test]
fn compacted_segment_id_is_not_reused_after_lost_removal() {
    let world = World::new(1);
    let mut model = Model::default();
    let store = world.open();
    put_all(&store, &mut model, 0..40, 3_000);
    delete_all(&store, &mut model, 0..20);
    roll_over(&store).unwrap();
    store.checkpoint().unwrap();
    store.close().unwrap();
    drop(store);
    let store = world.open();
    // The compaction has created its segment when there is no room to commit it, and removes it again.
    let log = PathPattern::Prefix("log/".to_owned());
    world.disk.inject(FaultRule::always(Operation::Allocate, log, Fault::NoSpace));
    assert_eq!(compact(&store).unwrap().steps, 0);
    assert!(world.files_in("compacted/").is_empty());
    world.disk.clear_faults();
    world.disk.cut_power();
    drop(store);
    world.disk.restart_process();
    let store = world.open();
    put_all(&store, &mut model, 100..104, 9_000);
    world.disk.cut_power();
    drop(store);
    world.disk.power_on(LossPolicy::KeepSynced, 0);
    check(&world.disk, &[&model]).unwrap();
}

#[test]
fn log_ends_at_lost_footer_and_continues_in_compacted() {
    let world = World::new(1);
    let mut model = Model::default();
    let store = world.open();
    put_all(&store, &mut model, 0..5, 3_000);
    store.close().unwrap();
    drop(store);
    let store = world.open();
    put_all(&store, &mut model, 5..10, 3_000);
    // The segment is sealed by the next opening, but the footer does not reach the disk, and this is not detected.
    world.disk.cut_power();
    drop(store);
    world.disk.restart_process();
    let sealing = FaultRule::once(
        Operation::SyncData,
        PathPattern::Prefix("log/".to_owned()),
        Fault::SyncLost,
    );
    world.disk.inject(sealing.after(1));
    assert!(world.try_open().is_err(), "sealing failed");
    let store = world.open();
    put_all(&store, &mut model, 20..30, 3_000);
    store.close().unwrap();
    drop(store);
    let store = world.open();
    delete_all(&store, &mut model, 20..30);
    put_all(&store, &mut model, 40..41, 100);
    store.checkpoint().unwrap();
    let rules = CompactionRules { store_dead_percent_min: 0, segment_dead_percent_min: 90 };
    let report = store.compact(rules, None, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(report.segments_removed, 1, "{report:?}");
    world.disk.cut_power();
    drop(store);
    world.disk.power_on(LossPolicy::KeepSynced, 0);
    reopens_without_index(&world, &model);
}

#[test]
fn file_left_by_cancelled_backup_becomes_durable() {
    let world = World::new(1);
    let store = world.open();
    let changes = [Change::Put(name("big"), Bytes::from(body(1, 9_000)))];
    commit(&store, batch(&store, &changes).unwrap()).unwrap();
    let mut model = Model::default();
    model.apply(&changes);
    let image = SimDisk::with_seed(1);
    let to: Arc<dyn Disk> = Arc::new(image.clone());
    let stopped = store.backup(&to, &mut |progress| match progress.done_items {
        0 => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    });
    assert!(matches!(stopped, Err(Error::Cancelled)), "{stopped:?}");
    let done = store.backup(&to, &mut |_| ControlFlow::Continue(())).unwrap();
    assert!(done.unchanged_files > 0, "{done:?}");
    image.cut_power();
    image.power_on(LossPolicy::KeepSynced, 0);
    let (store, report) = World::on(image, 8).open_with_report();
    assert_eq!(report.damage_count(), 0, "{report}");
    Contents::of(&store).unwrap().check_against(&model).unwrap();
}

#[test]
fn twice_replaced_segment_does_not_resurrect_objects() {
    let world = World::new(1);
    let mut model = Model::default();
    let store = world.open();
    put_all(&store, &mut model, 0..10, 3_000);
    store.close().unwrap();
    drop(store);
    let store = world.open();
    delete_all(&store, &mut model, 0..9);
    put_all(&store, &mut model, 20..30, 100);
    store.checkpoint().unwrap();
    let rules = CompactionRules { store_dead_percent_min: 0, segment_dead_percent_min: 1 };
    // The first segment is replaced, and its removal does not reach the disk.
    let removing = FaultRule::always(
        Operation::SyncFolder,
        PathPattern::Prefix("log".to_owned()),
        Fault::SyncLost,
    );
    world.disk.inject(removing);
    let replaced = store.compact(rules, None, &mut |_| ControlFlow::Continue(()));
    assert!(replaced.is_err(), "{replaced:?}");
    world.disk.clear_faults();
    world.disk.cut_power();
    drop(store);
    world.disk.restart_process();
    // Then the rest is replaced, with the deletions.
    for round in 0..3 {
        let store = world.open();
        delete_all(&store, &mut model, 9..10 + round);
        put_all(&store, &mut model, 40..41 + round, 100);
        store.checkpoint().unwrap();
        store.compact(rules, None, &mut |_| ControlFlow::Continue(())).unwrap();
        store.close().unwrap();
    }
    world.disk.cut_power();
    world.disk.power_on(LossPolicy::KeepSynced, 0);
    reopens_without_index(&world, &model);
}

#[test]
fn group_is_not_committed_when_segment_creation_fails() {
    let world = World::new(1);
    let mut model = Model::default();
    let store = world.open();
    put_all(&store, &mut model, 0..2, 100);
    store.close().unwrap();
    drop(store);
    let store = world.open();
    let changes = [Change::Put(name("key/2"), Bytes::from_static(b"new"))];
    let batches = [batch(&store, &changes).unwrap(), Batch::new().delete(name("key/0"))];
    // There is room for the segment, but the disk reports none for its header.
    let log = PathPattern::Prefix("log/".to_owned());
    world.disk.inject(FaultRule::once(Operation::Write, log, Fault::NoSpace));
    let (answer, answers) = channel();
    for batch in batches {
        let answer = answer.clone();
        store.submit(batch, move |result| answer.send(result).unwrap());
    }
    store.step_committer();
    let answers: Vec<_> = answers.try_iter().collect();
    assert!(matches!(store.health(), Health::ReadOnly(_)), "{:?}", store.health());
    assert!(matches!(answers[..], [Err(_), Err(_)]), "{answers:?}");
    world.disk.cut_power();
    drop(store);
    world.disk.power_on(LossPolicy::KeepSynced, 0);
    check(&world.disk, &[&model]).unwrap();
}

#[test]
fn footer_without_trailer_is_rewritten() {
    let world = World::new(1);
    let mut model = Model::default();
    let store = world.open();
    put_all(&store, &mut model, 0..5, 3_000);
    // The entries are durable, and the trailer is not, though it is readable until the power cut.
    let log = PathPattern::Prefix("log/".to_owned());
    world.disk.inject(FaultRule::once(Operation::SyncData, log, Fault::SyncLost).after(1));
    assert!(store.close().is_err(), "sealing failed");
    drop(store);
    world.disk.cut_power();
    world.disk.restart_process();
    let after_power_cut = World::on(world.disk.fork(), 2);
    check_after(&world.disk, &[&model], Syncs::Failed).unwrap();
    after_power_cut.disk.power_on(LossPolicy::KeepSynced, 0);
    let (_, report) = after_power_cut.open_with_report();
    assert!(
        report.torn_tail.is_some(),
        "entries without a trailer are an unfinished write: {report}"
    );
    assert_eq!(report.segments_sealed, 1, "{report}");
}

#[test]
fn open_without_checkpoint_space_keeps_replaced_segments() {
    let world = World::new(1);
    let mut model = Model::default();
    let store = world.open();
    put_all(&store, &mut model, 0..40, 3_000);
    delete_all(&store, &mut model, 0..20);
    roll_over(&store).unwrap();
    // A compaction is committed, and the index on disk does not include it.
    let index = || PathPattern::Prefix("index.redb".to_owned());
    let rules = CompactionRules { store_dead_percent_min: 0, segment_dead_percent_min: 1 };
    let cut_off = store.compact(rules, None, &mut |_| {
        world.disk.inject(FaultRule::always(Operation::SyncData, index(), Fault::Error));
        ControlFlow::Continue(())
    });
    assert!(cut_off.is_err(), "{cut_off:?}");
    assert!(!world.files_in("compacted/").is_empty());
    world.disk.clear_faults();
    world.disk.cut_power();
    drop(store);
    world.disk.power_on(LossPolicy::KeepSynced, 0);
    let mut opened = 0;
    for skipped in 0..20 {
        let mut world = World::on(world.disk.fork(), 2);
        world.options.index_cache_bytes = 0;
        let no_room = FaultRule::once(Operation::Write, index(), Fault::NoSpace).after(skipped);
        world.disk.inject(no_room);
        match world.try_open() {
            Ok((store, _)) => {
                opened += 1;
                Contents::of(&store).and_then(|found| found.check_against(&model)).unwrap();
            }
            Err(error) => assert!(matches!(error, Error::NoSpace), "{error}"),
        }
        world.disk.clear_faults();
        world.disk.cut_power();
        world.disk.power_on(LossPolicy::KeepSynced, 0);
        check(&world.disk, &[&model]).unwrap();
    }
    assert!(opened > 0, "it opens without a checkpoint");
}

#[test]
fn failed_segment_creation_does_not_break_backup_or_history() {
    let world = World::new(1);
    let mut model = Model::default();
    let store = world.open();
    put_all(&store, &mut model, 0..5, 3_000);
    // There is no room for a spare, and its file cannot be removed; then there is room.
    let log = || PathPattern::Prefix("log".to_owned());
    world.disk.inject(FaultRule::once(Operation::Allocate, log(), Fault::NoSpace));
    world.disk.inject(FaultRule::once(Operation::Remove, log(), Fault::Error));
    assert!(matches!(roll_over(&store), Err(Error::NoSpace)));
    for round in 1..4 {
        roll_over(&store).unwrap();
        put_all(&store, &mut model, 10 * round..10 * round + 5, 3_000);
    }
    let is_left = |path: &String| path.starts_with("log/") && world.disk.bytes(path).is_empty();
    assert!(world.disk.paths().iter().any(is_left), "{:?}", world.disk.paths());
    let image = SimDisk::with_seed(1);
    let to: Arc<dyn Disk> = Arc::new(image.clone());
    let report = store.backup(&to, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(report.damage, []);
    let (bucket, scope) = (name("any").bucket, VersionScope::Folder(FolderKey::root()));
    let filter = VersionFilter { bucket, scope, since_ms: 0 };
    let history =
        store.version_history(&filter, 1_000, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(history.damage_count, 0);
    let (copy, _) = World::on(image, 8).open_with_report();
    Contents::of(&copy).unwrap().check_against(&model).unwrap();
}

/// Histories, undeletes and backups concurrent with sealing of the log, a segment whose successor was compacted, and
/// space that was reclaimed in part when power was cut.
#[test]
fn log_readers_pass_on_past_failing_seeds() {
    for seed in [702_002_307, 704_002_319, 808_000_744, 808_002_351] {
        super::play(seed).unwrap_or_else(|what| panic!("{what}"));
    }
}

#[test]
fn copies_with_undurable_names_resurrect_nothing() {
    let world = World::new(1);
    let mut model = Model::default();
    let store = world.open();
    put_all(&store, &mut model, 0..30, 3_000);
    delete_all(&store, &mut model, 0..5);
    roll_over(&store).unwrap();
    store.checkpoint().unwrap();
    let names = PathPattern::Prefix("compacted".to_owned());
    world.disk.inject(FaultRule::once(Operation::SyncFolder, names, Fault::Error));
    let failed = compact(&store);
    assert!(matches!(failed, Err(Error::Io { .. })), "{failed:?}");
    assert_eq!(world.files_in("compacted/"), Vec::<String>::new(), "nothing is left of it");
    // The same segments are compacted again, and later what was copied is deleted, and the deletions are dropped.
    for from in [5, 15, 25] {
        compact(&store).unwrap();
        delete_all(&store, &mut model, from..(from + 10).min(30));
        put_all(&store, &mut model, 100 + from..102 + from, 100);
        roll_over(&store).unwrap();
        store.checkpoint().unwrap();
    }
    compact(&store).unwrap();
    store.close().unwrap();
    drop(store);
    reopens_without_index(&world, &model);
}

#[test]
fn compaction_failed_after_commit_is_resumed() {
    let world = World::new(1);
    let mut model = Model::default();
    let store = world.open();
    put_all(&store, &mut model, 0..30, 3_000);
    delete_all(&store, &mut model, 0..5);
    roll_over(&store).unwrap();
    store.checkpoint().unwrap();
    // The first opening seals it, the second reads where the copies are.
    let copies = PathPattern::Prefix("compacted/".to_owned());
    world.disk.inject(FaultRule::once(Operation::Open, copies, Fault::Error).after(1));
    let failed = compact(&store);
    assert!(matches!(failed, Err(Error::Io { .. })), "{failed:?}");
    assert_eq!(world.files_in("compacted/").len(), 1, "it was committed");
    // The index on disk includes the commit, so replay does not repeat it.
    store.checkpoint().unwrap();
    let before = world.files_in("log/");
    let crashed = world.disk.fork();
    crashed.power_on(LossPolicy::KeepSynced, 0);
    check(&crashed, &[&model]).unwrap();

    compact(&store).unwrap();
    let after = world.files_in("log/");
    assert!(!after.contains(&before[0]), "{before:?}, then {after:?}");
    store.close().unwrap();
    drop(store);
    check(&world.disk, &[&model]).unwrap();
}
