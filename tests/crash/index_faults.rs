//! Transient disk failures under the index: redb accepts no more calls on a file after a failure, so the file is
//! reopened. Only the failing read returns an error, nothing is lost, and nothing stale is visible. After a failed sync
//! the file stays closed until the next opening of the store.

use engine::disk::Disk;
use engine::disk::faults::{Fault, FaultRule, Operation, PathPattern};
use engine::disk::sim::LossPolicy;
use engine::limits::INDEX_REOPEN_MS;
use engine::{Error, Health, Store};
use tests::store::{
    Change, Contents, Model, World, batch, body, commit, delete, fact, name, put, read,
};

use crate::survivor::check_after_kill;

const INDEX: &str = "index.redb";

fn index_fault(operation: Operation, fault: Fault) -> FaultRule {
    FaultRule::once(operation, PathPattern::Prefix(INDEX.to_owned()), fault)
}

fn permanent_index_fault(operation: Operation, fault: Fault) -> FaultRule {
    FaultRule::always(operation, PathPattern::Prefix(INDEX.to_owned()), fault)
}

fn key(at: u64) -> String {
    format!("key/{at:03}")
}

fn apply(store: &Store, model: &mut Model, changes: &[Change]) {
    commit(store, batch(store, changes).unwrap()).unwrap();
    model.apply(changes);
}

/// Fills so many objects that most leaves of the index are not its root, which redb keeps in memory.
fn filled(seed: u64) -> (World, Model) {
    let mut world = World::new(seed);
    let store = world.open();
    let mut model = Model::default();
    for at in 0..200 {
        apply(&store, &mut model, &[Change::Put(name(&key(at)), body(at, 50).into())]);
    }
    store.close().unwrap();
    world.options.index_cache_bytes = 0;
    (world, model)
}

/// Fills a store and leaves it open, with changes in memory that the index does not hold: some active, and some perhaps
/// frozen.
fn changed(seed: u64) -> (World, Store, Model) {
    let (world, mut model) = filled(seed);
    let store = world.open();
    for at in (0..200).step_by(7) {
        apply(&store, &mut model, &[Change::Put(name(&key(at)), body(at + 1, 60).into())]);
    }
    let others = [
        Change::Delete(name(&key(1))),
        Change::Put(name("new/one"), body(500, 100).into()),
        Change::PutFact(fact("token"), body(501, 30).into()),
    ];
    apply(&store, &mut model, &others);
    (world, store, model)
}

/// Kills the process with everything on the disk, and checks that it is all there, and in order down to the last byte.
fn must_survive(world: &World, store: Store, model: &Model) {
    world.disk.clear_faults();
    let disk = world.disk.fork();
    drop(store);
    check_after_kill(&disk, &[model]).unwrap();
}

#[test]
fn failed_index_read_is_reported_once_and_recovers() {
    let (world, model) = filled(1);
    for skipped in 0..30 {
        let mut world = World::on(world.disk.fork(), 2);
        world.options.index_cache_bytes = 0;
        let store = world.open();
        world.disk.inject(index_fault(Operation::Read, Fault::Error).after(skipped));
        let mut failed = 0;
        for at in 0..200 {
            match read(&store, &name(&key(at))) {
                Ok(found) => assert_eq!(found.unwrap(), body(at, 50)),
                Err(Error::Io { .. }) => failed += 1,
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!((world.disk.fault_count(), failed), (1, 1), "read {skipped}");
        assert_eq!(store.health(), Health::Writable);
        Contents::of(&store).unwrap().check_against(&model).unwrap();
        put(&store, &name("after"), b"all works").unwrap();
        assert!(store.checkpoint().unwrap());
        store.close().unwrap();
        drop(store);
        assert_eq!(world.fsck(true).unwrap().findings, []);
    }
}

#[test]
fn overlay_survives_index_reopen() {
    for skipped in 0..20 {
        let (world, store, model) = changed(3);
        world.disk.inject(index_fault(Operation::Read, Fault::Error).after(skipped));
        let heard = Contents::of(&store);
        assert!(heard.is_err() && world.disk.fault_count() == 1, "read {skipped}");
        Contents::of(&store).unwrap().check_against(&model).unwrap();
        assert!(store.checkpoint().unwrap());
        Contents::of(&store).unwrap().check_against(&model).unwrap();
        must_survive(&world, store, &model);
    }
}

#[test]
fn unreadable_precondition_rejects_only_its_batch() {
    let (world, store, model) = changed(4);
    world.disk.inject(index_fault(Operation::Read, Fault::Error));
    assert!(matches!(delete(&store, &name(&key(2))), Err(Error::Io { .. })));
    assert_eq!(store.health(), Health::Writable);
    assert_eq!(delete(&store, &name(&key(3))).unwrap().deleted_count, 1);
    let mut model = model;
    model.apply(&[Change::Delete(name(&key(3)))]);
    Contents::of(&store).unwrap().check_against(&model).unwrap();
    must_survive(&world, store, &model);
}

#[test]
fn unreadable_index_is_retried_periodically() {
    let (world, model) = filled(5);
    let store = world.open();
    world.disk.inject(permanent_index_fault(Operation::Read, Fault::Error));
    let reads_of = |count: u64| {
        let before = world.disk.fault_count();
        for at in 0..count {
            assert!(matches!(read(&store, &name(&key(at))), Err(Error::Io { .. })));
        }
        world.disk.fault_count() - before
    };
    assert_eq!(reads_of(100), 2, "the one that failed, and the first of opening again");
    assert_eq!(reads_of(100), 0);
    world.clock.advance(INDEX_REOPEN_MS);
    assert_eq!(reads_of(100), 1);
    world.disk.clear_faults();
    assert_eq!(reads_of(10), 0, "it is not time yet");
    world.clock.advance(INDEX_REOPEN_MS);
    Contents::of(&store).unwrap().check_against(&model).unwrap();
}

#[test]
fn checkpoint_reopens_index_after_one_read_failure() {
    let mut hits = 0;
    for skipped in 0.. {
        let (world, store, model) = changed(6);
        world.disk.inject(index_fault(Operation::Read, Fault::Error).after(skipped));
        assert!(store.checkpoint().unwrap(), "read {skipped}");
        if world.disk.fault_count() == 0 {
            break;
        }
        hits += 1;
        assert_eq!(store.health(), Health::Writable);
        assert_eq!(store.stats().unwrap().overlay_changes, 0);
        Contents::of(&store).unwrap().check_against(&model).unwrap();
        must_survive(&world, store, &model);
    }
    println!("{hits} reads");
    assert!(hits > 5, "{hits}");
}

#[test]
fn checkpoint_with_unreadable_index_stops_writes() {
    let (world, store, model) = changed(7);
    world.disk.inject(permanent_index_fault(Operation::Read, Fault::Error));
    assert!(matches!(store.checkpoint(), Err(Error::Io { .. })));
    assert!(matches!(store.health(), Health::ReadOnly(_)));
    assert_eq!(read(&store, &name("new/one")).unwrap().unwrap(), body(500, 100));
    world.disk.clear_faults();
    world.clock.advance(INDEX_REOPEN_MS);
    Contents::of(&store).unwrap().check_against(&model).unwrap();
    assert!(matches!(put(&store, &name("late"), b"late"), Err(Error::ReadOnly(_))));
    must_survive(&world, store, &model);
}

#[test]
fn checkpoint_without_space_succeeds_once_space_is_free() {
    for operation in [Operation::Write, Operation::SetLen] {
        let mut hits = 0;
        for skipped in 0.. {
            let (world, store, mut model) = changed(8);
            world.disk.inject(permanent_index_fault(operation, Fault::NoSpace).after(skipped));
            let answer = store.checkpoint();
            if world.disk.fault_count() == 0 {
                break;
            }
            hits += 1;
            assert!(matches!(answer, Err(Error::NoSpace)), "{operation:?} {skipped}: {answer:?}");
            assert!(matches!(store.checkpoint(), Err(Error::NoSpace)), "and again");
            assert_eq!(store.health(), Health::Writable);
            // Entries in memory are readable; the rest once the file could be reopened, which writes to it in place.
            assert_eq!(read(&store, &name("new/one")).unwrap().unwrap(), body(500, 100));
            if operation == Operation::SetLen {
                world.clock.advance(INDEX_REOPEN_MS);
                Contents::of(&store).unwrap().check_against(&model).unwrap();
                apply(&store, &mut model, &[Change::Put(name("new/two"), body(9, 90).into())]);
            }
            let killed = world.disk.fork();
            killed.clear_faults();
            check_after_kill(&killed, &[&model]).unwrap();

            world.disk.clear_faults();
            world.clock.advance(INDEX_REOPEN_MS);
            Contents::of(&store).unwrap().check_against(&model).unwrap();
            while store.checkpoint().unwrap() {}
            assert_eq!(store.stats().unwrap().overlay_changes, 0);
            Contents::of(&store).unwrap().check_against(&model).unwrap();
            must_survive(&world, store, &model);
        }
        println!("{operation:?}: {hits} places");
        assert!(hits > 0, "{operation:?}");
    }
}

#[test]
fn index_with_failed_sync_stays_closed_until_reopen() {
    for fault in [Fault::Error, Fault::SyncLost] {
        let (world, store, model) = changed(9);
        world.disk.inject(index_fault(Operation::SyncData, fault));
        assert!(store.checkpoint().is_err());
        assert!(matches!(store.health(), Health::ReadOnly(_)));
        let writes = world.disk.operations();
        for _ in 0..3 {
            world.clock.advance(INDEX_REOPEN_MS);
            assert!(matches!(read(&store, &name(&key(100))), Err(Error::Io { .. })));
        }
        assert_eq!(world.disk.operations(), writes, "nobody writes to it");
        assert_eq!(read(&store, &name("new/one")).unwrap().unwrap(), body(500, 100));
        must_survive(&world, store, &model);
    }
}

#[test]
fn replaced_index_file_is_not_trusted() {
    let foreign = {
        let (world, _) = filled(99);
        world.disk.bytes(INDEX)
    };
    let (world, store, mut model) = changed(10);
    let older = world.disk.bytes(INDEX);
    assert!(store.checkpoint().unwrap());
    apply(&store, &mut model, &[Change::Put(name("new/three"), body(3, 30).into())]);
    let disk = world.disk.fork();
    drop(store);
    for (what, bytes) in [("another store's", foreign), ("an older one", older), ("no", Vec::new())]
    {
        let mut world = World::on(disk.fork(), 11);
        world.options.index_cache_bytes = 0;
        let store = world.open();
        world.disk.inject(index_fault(Operation::Read, Fault::Error));
        assert!(read(&store, &name(&key(100))).is_err());
        let file = world.disk.open(INDEX).unwrap();
        file.set_len(bytes.len() as u64).unwrap();
        world.disk.overwrite(INDEX, 0, &bytes);
        for at in 0..200 {
            let answer = read(&store, &name(&key(at)));
            assert!(matches!(answer, Err(Error::Io { .. })), "{what} index: {answer:?}");
        }
        assert!(store.stats().is_err(), "{what} index");
        assert_eq!(read(&store, &name("new/three")).unwrap().unwrap(), body(3, 30));
        let after_a_power_cut = world.disk.fork();
        after_a_power_cut.power_on(LossPolicy::KeepSynced, 0);
        assert!(!after_a_power_cut.paths().contains(&INDEX.to_owned()), "{what} index");
        assert!(
            matches!(world.disk.open(INDEX), Err(gone) if gone.kind() == std::io::ErrorKind::NotFound)
        );
        must_survive(&world, store, &model);
    }
}

#[test]
fn threaded_store_recovers_from_index_failure_and_full_disk() {
    let (mut world, mut model) = filled(12);
    let store = world.open_with_threads();
    let waits_for = |is_so: &dyn Fn() -> bool| {
        (0..400).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(25));
            world.clock.advance(INDEX_REOPEN_MS);
            is_so()
        })
    };
    let changes = [Change::Put(name("new/one"), body(500, 100).into())];
    store.commit(batch(&store, &changes).unwrap()).unwrap();
    model.apply(&changes);
    world.disk.inject(permanent_index_fault(Operation::Write, Fault::NoSpace));
    assert!(waits_for(&|| world.disk.fault_count() > 1), "it is tried again");
    assert_eq!(store.health(), Health::Writable);
    world.disk.clear_faults();
    let is_written = || store.stats().is_ok_and(|stats| stats.overlay_changes == 0);
    assert!(waits_for(&is_written), "it is written once there is room");
    world.disk.inject(index_fault(Operation::Read, Fault::Error));
    assert!(waits_for(&|| Contents::of(&store).is_ok_and(|all| all.check_against(&model).is_ok())));
    store.close().unwrap();
    drop(store);
    assert_eq!(world.fsck(true).unwrap().findings, []);
}
