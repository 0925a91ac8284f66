//! One failing disk operation: a sync that loses its data, a write, a creation. Every waiting caller gets the error, no
//! effect is visible, reads continue; and after a restart of the process nothing visible or acknowledged is lost by a
//! power cut.

use engine::disk::faults::{Fault, FaultRule, Operation, PathPattern};
use engine::{Error, Health, Store};
use tests::store::{
    Contents, Model, World, batch, body, commit, delete, idle, name, put, read, roll_over,
};

use crate::scenario::{Act, beginning};
use crate::survivor::check_after_kill;

/// Acts of the story.
pub(crate) const STORY: [Act; 10] = [
    Act::Put,
    Act::PutBig,
    Act::Fill,
    Act::Idle,
    Act::Checkpoint,
    Act::Fill,
    Act::Fill,
    Act::RollOver,
    Act::OverwriteBig,
    Act::Checkpoint,
];

/// Plays the story with one fault in it. Returns false when there were fewer operations.
fn story_with(operation: Operation, fault: Fault, skipped: u64) -> Result<bool, String> {
    let world = World::new(3);
    let store = world.open();
    let mut model = Model::default();
    for changes in beginning() {
        let committed = batch(&store, &changes).and_then(|batch| commit(&store, batch));
        committed.map_err(|error| error.to_string())?;
        model.apply(&changes);
    }
    world.disk.inject(FaultRule::once(operation, PathPattern::Any, fault).after(skipped));
    let mut in_doubt = None;
    for (turn, act) in (1..).zip(STORY) {
        let Some(changes) = act.changes(turn) else {
            // A failure here has no caller to report to.
            match act {
                Act::Idle => idle(&store),
                Act::Checkpoint => drop(store.checkpoint()),
                _ => drop(roll_over(&store)),
            }
            continue;
        };
        let committed = batch(&store, &changes).and_then(|batch| commit(&store, batch));
        let mut next = model.clone();
        next.apply(&changes);
        match committed {
            Ok(_) => model = next,
            Err(Error::ReadOnly(_)) => {}
            Err(_) if in_doubt.is_none() => in_doubt = Some(next),
            Err(error) => return Err(format!("{act:?} failed too: {error}")),
        }
        Contents::of(&store)?.check_against(&model)?;
    }
    let happened = world.disk.fault_count() > 0;
    world.disk.clear_faults();
    check_permanently_read_only(&store, &model)?;
    let acceptable: Vec<&Model> = [&model].into_iter().chain(&in_doubt).collect();
    // The process is killed, so that nothing is written on the way out.
    let disk = world.disk.fork();
    drop(store);
    check_after_kill(&disk, &acceptable)?;
    Ok(happened)
}

/// Checks that a store that has become read-only stays so although its disk works again, and that reads work.
pub(crate) fn check_permanently_read_only(store: &Store, model: &Model) -> Result<(), String> {
    if store.health() == Health::Writable {
        return Ok(());
    }
    match put(store, &name("too-late"), &body(1, 10)) {
        Err(Error::ReadOnly(_)) => Contents::of(store)?.check_against(model),
        other => Err(format!("a read-only store answers a put with {other:?}")),
    }
}

fn every_one(operation: Operation, fault: Fault) {
    let mut skipped = 0;
    loop {
        match story_with(operation, fault, skipped) {
            Ok(true) => skipped += 1,
            Ok(false) => break,
            Err(what) => panic!("{fault:?} of {operation:?} number {skipped}: {what}"),
        }
    }
    println!("{fault:?} of {operation:?}: {skipped} places");
    assert!(skipped > 0, "{operation:?} happens");
}

#[test]
fn sync_failure_with_lost_bytes_is_reported_and_final() {
    every_one(Operation::SyncData, Fault::SyncLost);
    every_one(Operation::SyncFolder, Fault::SyncLost);
}

#[test]
fn failed_sync_that_kept_its_bytes_may_be_durable() {
    every_one(Operation::SyncData, Fault::Error);
    every_one(Operation::SyncFolder, Fault::Error);
}

#[test]
fn failed_log_sync_or_write_stops_writes_permanently() {
    for (operation, fault) in [
        (Operation::SyncData, Fault::SyncLost),
        (Operation::SyncData, Fault::Error),
        (Operation::Write, Fault::Error),
        (Operation::Write, Fault::Torn),
    ] {
        let mut world = World::new(3);
        // A full disk in addition: the write failure takes precedence.
        world.options.reserve_bytes = Some(1 << 20);
        let store = world.open();
        put(&store, &name("before"), b"1").unwrap();
        world.disk.inject(FaultRule::once(
            operation,
            PathPattern::Prefix("log/".to_owned()),
            fault,
        ));
        assert!(matches!(put(&store, &name("failed"), b"2"), Err(Error::Io { .. })));
        world.disk.set_free_bytes(4_096);
        for _ in 0..3 {
            world.clock.advance(60_000);
            assert!(matches!(store.health(), Health::ReadOnly(_)), "{operation:?}, {fault:?}");
            assert!(matches!(delete(&store, &name("before")), Err(Error::ReadOnly(_))));
            assert_eq!(read(&store, &name("before")).unwrap().unwrap(), b"1");
        }
    }
}

#[test]
fn unreadable_segment_does_not_affect_others() {
    let world = World::new(3);
    let store = world.open();
    for at in 0..30 {
        put(&store, &name(&format!("{at}")), &body(at, 4_000)).unwrap();
    }
    roll_over(&store).unwrap();
    let segment = world.files_in("log/").remove(0);
    for operation in [Operation::Read, Operation::Map, Operation::Open] {
        world.disk.inject(FaultRule::always(
            operation,
            PathPattern::Prefix(segment.clone()),
            Fault::Error,
        ));
    }
    let answers: Vec<_> = (0..30).map(|at| read(&store, &name(&format!("{at}")))).collect();
    let is_failed = |answer: &engine::Result<_>| matches!(answer, Err(Error::Io { .. }));
    let failed = answers.iter().filter(|answer| is_failed(answer)).count();
    assert!((1..20).contains(&failed), "{failed} of 30 cannot be read");
    for (at, answer) in (0..).zip(answers).filter(|(_, answer)| !is_failed(answer)) {
        assert_eq!(answer.unwrap().unwrap(), body(at, 4_000));
    }
    assert_eq!(store.health(), Health::Writable, "nothing was written");
    put(&store, &name("0"), b"new").unwrap();
    assert_eq!(read(&store, &name("0")).unwrap().unwrap(), b"new");
    world.disk.clear_faults();
    for at in 1..30 {
        assert_eq!(read(&store, &name(&format!("{at}"))).unwrap().unwrap(), body(at, 4_000));
    }
}

#[test]
fn failed_or_short_write_is_not_visible() {
    every_one(Operation::Write, Fault::Error);
    every_one(Operation::Write, Fault::Torn);
}

#[test]
fn disk_full_rejects_writes_and_loses_nothing() {
    every_one(Operation::Write, Fault::NoSpace);
    every_one(Operation::Create, Fault::NoSpace);
    every_one(Operation::Allocate, Fault::NoSpace);
    every_one(Operation::SetLen, Fault::NoSpace);
}

#[test]
fn failed_create_or_unlink_loses_nothing() {
    every_one(Operation::Create, Fault::Error);
    every_one(Operation::Remove, Fault::Error);
}
