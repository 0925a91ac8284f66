//! Full disk: puts are rejected before the reserve is used, deletions and facts continue up to the last available
//! segment, reads are unaffected; and once there is room again, all operations resume by themselves. Wherever in a
//! story the room ends, no acknowledged change is lost and no partial change is visible.

use std::thread::sleep;
use std::time::Duration;

use engine::disk::faults::{Fault, FaultRule, Operation, PathPattern};
use engine::disk::sim::SimDisk;
use engine::{Batch, Error, Health, Store, limits};
use tests::store::{
    Change, Contents, Model, World, batch, body, commit, delete, fact, name, put, read, roll_over,
};

use crate::failed_sync::{STORY, check_permanently_read_only};
use crate::scenario::{Act, beginning};
use crate::survivor::check_after_kill;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Advances the clock by a second; the disk is queried again only after some time.
fn advance_one_second(world: &World) {
    world.clock.advance(1_000);
}

fn is_no_space<T>(answer: &engine::Result<T>) -> bool {
    matches!(answer, Err(Error::NoSpace))
}

#[test]
fn full_disk_rejects_puts_accepts_deletes_and_recovers() {
    let mut world = World::new(1);
    world.disk.set_free_bytes(4 * MIB);
    world.options.reserve_bytes = Some(2 * MIB);
    let store = world.open();
    assert_eq!(store.health(), Health::Writable);
    let mut model = Model::default();
    let mut refused = None;
    for at in 0..500 {
        advance_one_second(&world);
        let (key, bytes) = (name(&format!("{at}")), body(at, 9_000));
        let Err(error) = put(&store, &key, &bytes) else {
            model.objects.insert(key, (bytes.into(), false));
            continue;
        };
        refused = Some(error);
        break;
    }
    assert!(matches!(refused, Some(Error::NoSpace)), "{refused:?}");
    assert!(model.objects.len() > 50);
    advance_one_second(&world);
    let free_bytes = engine::disk::Disk::free_bytes(&world.disk).unwrap();
    assert!(free_bytes > 2 * MIB - 100 * KIB, "the reserve is still there: {free_bytes}");
    assert_eq!(store.health(), Health::Full { free_bytes, reserve_bytes: 2 * MIB });

    // Small bodies are rejected as well, and before they are complete.
    assert!(is_no_space(&put(&store, &name("small"), b"small")));
    assert!(is_no_space(&store.upload().push(b"first bytes").map(|()| 0)));
    assert!(is_no_space(&put(&store, &name("empty"), b"")), "at the latest when it is committed");
    commit(&store, Batch::new().put_fact(fact("token/1"), b"x".as_slice().into())).unwrap();
    commit(&store, Batch::new().delete_fact(fact("token/1"))).unwrap();
    Contents::of(&store).unwrap().check_against(&model).unwrap();
    store.checkpoint().unwrap();

    for at in 0..20 {
        delete(&store, &name(&format!("{at}"))).unwrap();
        model.objects.remove(&name(&format!("{at}")));
    }
    advance_one_second(&world);
    assert_eq!(store.health(), Health::Writable, "the files of what was deleted are gone");
    put(&store, &name("again"), b"room").unwrap();
    model.objects.insert(name("again"), (b"room".as_slice().into(), false));
    Contents::of(&store).unwrap().check_against(&model).unwrap();
    drop(store);
    Contents::of(&world.open()).unwrap().check_against(&model).unwrap();
}

#[test]
fn rejected_put_does_not_fail_deletes_in_its_group() {
    let mut world = World::new(1);
    let store = world.open();
    put(&store, &name("old"), b"old").unwrap();
    drop(store);
    world.options.reserve_bytes = Some(u64::MAX);
    let store = world.open();
    let (answer, answers) = std::sync::mpsc::channel();
    // An empty body is checked nowhere else.
    let staged = store.upload().finish().unwrap();
    let batches = [
        Batch::new().delete(name("old")),
        Batch::new().put(name("new"), staged, engine::PutOptions::default()),
        Batch::new().put_fact(fact("seen"), b"x".as_slice().into()),
    ];
    for batch in batches {
        let answer = answer.clone();
        store.submit(batch, move |outcome| answer.send(outcome.map(drop)).unwrap());
    }
    store.step_committer();
    let heard: Vec<_> = answers.try_iter().collect();
    assert!(matches!(heard[..], [Ok(()), Err(Error::NoSpace), Ok(())]), "{heard:?}");
    assert_eq!(read(&store, &name("old")).unwrap(), None);
    assert_eq!(read(&store, &name("new")).unwrap(), None);
    assert!(store.fact(&fact("seen")).unwrap().is_some());
}

#[test]
fn deletes_use_smaller_segments_on_full_disk() {
    let world = World::wide(1);
    let store = world.open();
    let mut model = Model::default();
    for at in 0..40_u64 {
        let (key, bytes) = (name(&format!("{at}")), body(at, 100_000));
        put(&store, &key, &bytes).unwrap();
        model.objects.insert(key, (bytes.into(), false));
    }
    roll_over(&store).unwrap();
    store.checkpoint().unwrap();
    world.disk.set_free_bytes(300 * KIB);
    // The segment prepared in advance, and the rest of the active one.
    let mut puts = 0;
    while put(&store, &name("filler"), &body(7, 150_000)).is_ok() {
        model.objects.insert(name("filler"), (body(7, 150_000).into(), false));
        puts += 1;
        assert!(puts < 60, "puts never end");
    }
    let mut facts = 0;
    let mut set = |model: &mut Model| {
        let (name, value) = (fact(&format!("fact/{facts}")), body(facts, 60_000));
        let set = commit(&store, Batch::new().put_fact(name.clone(), value.clone().into()));
        if set.is_ok() {
            model.facts.insert(name, value.into());
        }
        facts += 1;
        set
    };
    let segments = |world: &World| world.files_in("log/").len();
    let before = segments(&world);
    while segments(&world) == before {
        set(&mut model).unwrap();
    }
    let last = world.files_in("log/").pop().unwrap();
    assert_eq!(world.disk.bytes(&last).len() as u64, 256 * KIB, "halved until there was room");
    for at in 0..40 {
        delete(&store, &name(&format!("{at}"))).unwrap();
        model.objects.remove(&name(&format!("{at}")));
    }
    while set(&mut model).is_ok() {}
    assert_eq!(store.health(), Health::Writable, "a full disk is no failure");
    Contents::of(&store).unwrap().check_against(&model).unwrap();
    world.disk.set_free_bytes(10 * MIB);
    put(&store, &name("again"), b"room").unwrap();
    model.objects.insert(name("again"), (b"room".as_slice().into(), false));
    store.close().unwrap();
    drop(store);
    Contents::of(&world.open()).unwrap().check_against(&model).unwrap();
}

#[test]
fn checkpoint_waits_for_free_space() {
    let world = World::new(1);
    let store = world.open();
    put(&store, &name("a"), b"1").unwrap();
    world.disk.set_free_bytes(100 * KIB);
    assert!(is_no_space(&store.checkpoint()));
    assert!(is_no_space(&store.checkpoint()), "and again");
    assert_eq!(store.health(), Health::Writable);
    put(&store, &name("b"), b"2").unwrap();
    store.checkpoint().unwrap_err();
    world.disk.set_free_bytes(10 * MIB);
    assert!(store.checkpoint().unwrap() && store.checkpoint().unwrap(), "two overlays waited");
    assert!(!store.checkpoint().unwrap());
    for (key, bytes) in [("a", b"1"), ("b", b"2")] {
        assert_eq!(read(&store, &name(key)).unwrap().unwrap(), bytes);
    }
}

#[test]
fn threaded_store_checkpoints_once_space_is_free() {
    let mut world = World::new(1);
    let store = world.open_with_threads();
    let batch = batch(&store, &[Change::Put(name("a"), body(1, 10).into())]).unwrap();
    store.commit(batch).unwrap();
    world.disk.set_free_bytes(100 * KIB);
    world.clock.advance(limits::CHECKPOINT_MS);
    // Long enough for an attempt that finds no room.
    sleep(Duration::from_millis(2 * limits::WATERMARK_IDLE_MS));
    assert!(store.stats().unwrap().overlay_changes > 0);
    world.disk.set_free_bytes(10 * MIB);
    let is_written = (0..200).any(|_| {
        sleep(Duration::from_millis(50));
        store.stats().unwrap().overlay_changes == 0
    });
    assert!(is_written, "it was tried again");
    assert_eq!(store.health(), Health::Writable);
}

#[test]
fn store_closes_and_reopens_on_full_disk() {
    let world = World::new(1);
    let store = world.open();
    put(&store, &name("a"), b"1").unwrap();
    world.disk.set_free_bytes(0);
    store.close().unwrap();
    drop(store);
    let store = world.open();
    assert_eq!(read(&store, &name("a")).unwrap().unwrap(), b"1");
    assert!(is_no_space(&delete(&store, &name("a"))), "not a byte is left");
    world.disk.set_free_bytes(MIB);
    delete(&store, &name("a")).unwrap();
}

/// Outcome of a story.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// The room was always sufficient.
    Untouched,
    /// Operations were rejected, and all were accepted again later.
    GoesOn,
    /// The store became read-only.
    ReadOnly,
}

/// Plays a story on a disk that runs out of room at some point.
fn story_on(run_out: impl Fn(&SimDisk)) -> Result<Ending, String> {
    let world = World::new(3);
    let store = world.open();
    let mut model = Model::default();
    for changes in beginning() {
        let committed = batch(&store, &changes).and_then(|batch| commit(&store, batch));
        committed.map_err(|error| error.to_string())?;
        model.apply(&changes);
    }
    run_out(&world.disk);
    let (mut in_doubt, mut ran_out) = (None, false);
    let mut note = |answer: engine::Result<()>| match answer {
        Ok(()) => Ok(()),
        Err(Error::NoSpace | Error::ReadOnly(_)) => {
            ran_out = true;
            Ok(())
        }
        Err(error) => Err(error.to_string()),
    };
    for (turn, act) in (1..).zip(STORY.into_iter().chain([Act::Delete, Act::ReplaceBig])) {
        let Some(changes) = act.changes(turn) else {
            note(maintain(&store, act))?;
            continue;
        };
        let was_writable = !is_read_only(&store);
        let committed = batch(&store, &changes).and_then(|batch| commit(&store, batch));
        let mut next = model.clone();
        next.apply(&changes);
        match committed {
            Ok(_) => model = next,
            // Only the failure that ended writing may have left something.
            Err(_) if was_writable && is_read_only(&store) => in_doubt = Some(next),
            Err(_) => {}
        }
        note(committed.map(drop))?;
        Contents::of(&store)?.check_against(&model)?;
    }
    world.disk.clear_faults();
    world.disk.set_free_bytes(100 * MIB);
    // An index that had no room is reopened from time to time.
    advance_one_second(&world);
    let is_read_only = is_read_only(&store);
    if is_read_only {
        check_permanently_read_only(&store, &model)?;
    } else {
        let again = [Change::Put(name("again"), body(5, 3_000).into())];
        let committed = batch(&store, &again).and_then(|batch| commit(&store, batch));
        committed.map_err(|error| format!("it does not go on: {error}"))?;
        model.apply(&again);
        for act in [Act::RollOver, Act::Checkpoint, Act::Checkpoint] {
            maintain(&store, act).map_err(|error| format!("{act:?}: {error}"))?;
        }
        Contents::of(&store)?.check_against(&model)?;
    }
    let acceptable: Vec<&Model> = [&model].into_iter().chain(&in_doubt).collect();
    // The process is killed, so that nothing is written on the way out.
    let disk = world.disk.fork();
    drop(store);
    check_after_kill(&disk, &acceptable)?;
    Ok(match (ran_out, is_read_only) {
        (_, true) => Ending::ReadOnly,
        (true, false) => Ending::GoesOn,
        (false, false) => Ending::Untouched,
    })
}

fn is_read_only(store: &Store) -> bool {
    matches!(store.health(), Health::ReadOnly(_))
}

fn maintain(store: &Store, act: Act) -> engine::Result<()> {
    match act {
        Act::Checkpoint => store.checkpoint().map(drop),
        Act::RollOver => roll_over(store),
        _ => {
            tests::store::idle(store);
            Ok(())
        }
    }
}

#[test]
fn enospc_after_any_page_count_loses_nothing() {
    let mut ran_out_last = 0;
    for pages in 0..400 {
        match story_on(|disk| disk.set_free_bytes(4_096 * pages)) {
            Ok(Ending::GoesOn) => ran_out_last = pages,
            Ok(Ending::Untouched) => {}
            other => panic!("room for {pages} pages: {other:?}"),
        }
    }
    assert!((50..390).contains(&ran_out_last), "{ran_out_last} pages were too few");
}

#[test]
fn enospc_from_any_operation_loses_nothing() {
    for operation in
        [Operation::Create, Operation::CreateFolder, Operation::Write, Operation::SetLen]
            .into_iter()
            .chain([Operation::Allocate])
    {
        let mut skipped = 0;
        let refuse = |skipped| {
            move |disk: &SimDisk| {
                let rule = FaultRule::always(operation, PathPattern::Any, Fault::NoSpace);
                disk.inject(rule.after(skipped));
            }
        };
        loop {
            let ran_out = story_on(refuse(skipped));
            match ran_out {
                Ok(Ending::GoesOn | Ending::ReadOnly) => skipped += 1,
                Ok(Ending::Untouched) => break,
                Err(what) => panic!("{operation:?} from number {skipped} on: {what}"),
            }
        }
        println!("{operation:?}: {skipped} places");
    }
}
