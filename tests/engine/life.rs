//! Lifecycle of a store: one writer, closing, failing, a full disk, short-lived threads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use engine::disk::Disk;
use engine::disk::faults::{Fault, FaultRule, Operation, PathPattern};
use engine::{Batch, Create, Error, Health, OpenOptions, PutOptions, Store};
use tests::store::{
    Contents, Model, World, body, commit, delete, name, put, read, roll_over, stage,
};

#[test]
fn store_lock_rejects_second_open() {
    let world = World::new(1);
    let store = world.open();
    assert!(matches!(world.try_open(), Err(Error::InUse(Some(1)))));
    let clone = store.clone();
    drop(store);
    assert!(matches!(world.try_open(), Err(Error::InUse(_))), "a clone keeps it open");
    drop(clone);
    let store = world.open();
    store.close().unwrap();
    world.open();
}

#[test]
fn store_is_created_only_in_empty_folder_when_requested() {
    let mut world = World::new(1);
    world.options.create = Create::Never;
    assert!(matches!(world.try_open(), Err(Error::NotAStore(_))));
    world.options.create = Create::IfMissing;
    world.disk.create("holiday.jpg").unwrap();
    assert!(matches!(world.try_open(), Err(Error::NotAStore(_))));
    world.disk.remove("holiday.jpg").unwrap();
    drop(world.open());
    world.options.create = Create::Never;
    world.open();
}

#[test]
fn contradictory_open_options_are_rejected() {
    let mut world = World::new(1);
    let good = world.options.clone();
    let bad: [fn(&mut OpenOptions); 4] = [
        |options| options.segment_bytes = 1,
        |options| options.segment_bytes = 1 << 40,
        |options| options.inline_bytes_max = 9 << 20,
        |options| options.inline_bytes_max = 60 << 10,
    ];
    for spoil in bad {
        world.options = good.clone();
        spoil(&mut world.options);
        assert!(matches!(world.try_open(), Err(Error::TooLarge(_))));
    }
}

#[test]
fn closed_store_rejects_writes_and_releases_resources() {
    let world = World::new(1);
    let store = world.open();
    put(&store, &name("a"), b"1").unwrap();
    store.close().unwrap();
    assert!(matches!(put(&store, &name("b"), b"2"), Err(Error::Closed)));
    store.close().unwrap();
    let (reopened, report) = world.open_with_report();
    assert_eq!((report.replayed_records, report.segments_sealed), (0, 0), "{report}");
    assert_eq!(read(&reopened, &name("a")).unwrap().unwrap(), b"1");
}

/// Regression test: redb writes when it is dropped, and once wrote into the index of a store opened since.
#[test]
fn dropping_closed_store_does_not_touch_new_index() {
    let world = World::new(1);
    let first = world.open();
    put(&first, &name("a"), b"1").unwrap();
    first.close().unwrap();
    let second = world.open();
    for at in 0..50 {
        put(&second, &name(&format!("second/{at}")), &body(at, 100)).unwrap();
    }
    second.checkpoint().unwrap();
    let index = world.disk.bytes("index.redb");
    drop(first);
    assert!(world.disk.bytes("index.redb") == index, "the index is the second one's");
    put(&second, &name("b"), b"2").unwrap();
    second.checkpoint().unwrap();
    drop(second);
    let (third, report) = world.open_with_report();
    assert_eq!((report.index_rebuilt, report.index_fault), (false, None));
    assert_eq!(read(&third, &name("b")).unwrap().unwrap(), b"2");
}

#[test]
fn failed_sync_fails_all_waiters_and_stops_writes() {
    let mut world = World::new(1);
    let store = world.open();
    put(&store, &name("before"), b"1").unwrap();
    let (answer, answers) = mpsc::channel();
    let log = PathPattern::Prefix("log/".to_owned());
    world.disk.inject(FaultRule::once(Operation::SyncData, log, Fault::SyncLost));
    for at in 0..5 {
        let staged = stage(&store, &body(at, 50)).unwrap();
        let batch = Batch::new().put(name(&format!("{at}")), staged, PutOptions::default());
        let answer = answer.clone();
        store.submit(batch, move |outcome| answer.send(outcome.map(|_| ())).unwrap());
    }
    store.step_committer();
    let heard: Vec<_> = answers.try_iter().collect();
    assert_eq!(heard.len(), 5);
    assert!(heard.iter().all(|outcome| matches!(outcome, Err(Error::Io { .. }))), "{heard:?}");
    assert!(matches!(store.health(), Health::ReadOnly(_)));
    assert!(matches!(put(&store, &name("after"), b"2"), Err(Error::ReadOnly(_))));
    assert!(matches!(delete(&store, &name("before")), Err(Error::ReadOnly(_))));
    assert_eq!(read(&store, &name("before")).unwrap().unwrap(), b"1");
    assert_eq!(read(&store, &name("0")).unwrap(), None, "nothing of the group shows");
    store.close().unwrap();
    drop(store);
    let store = world.open_with_threads();
    assert_eq!(store.health(), Health::Writable);
    assert_eq!(read(&store, &name("before")).unwrap().unwrap(), b"1");
    let staged = stage(&store, b"2").unwrap();
    store.commit(Batch::new().put(name("after"), staged, PutOptions::default())).unwrap();
}

#[test]
fn full_disk_rejects_writes_and_serves_reads() {
    let world = World::new(1);
    let store = world.open();
    let mut model = Model::default();
    world.disk.set_free_bytes(300 << 10);
    let mut refused = 0;
    for at in 0..200_u64 {
        let key = name(&format!("{at}"));
        let bytes = body(at, if at % 3 == 0 { 9_000 } else { 3_000 });
        match put(&store, &key, &bytes) {
            Ok(_) => {
                model.objects.insert(key, (bytes.into(), false));
            }
            Err(Error::NoSpace) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(refused > 10 && model.objects.len() > 10, "{refused} refused");
    assert_eq!(store.health(), Health::Writable);
    Contents::of(&store).unwrap().check_against(&model).unwrap();
    assert_eq!(world.files_in("big/").len() as u64, store.stats().unwrap().big.segments);
    world.disk.set_free_bytes(10 << 20);
    put(&store, &name("again"), b"room").unwrap();
    drop(store);
    model.objects.insert(name("again"), (b"room".as_slice().into(), false));
    Contents::of(&world.open()).unwrap().check_against(&model).unwrap();
}

/// Regression test: of two concurrent checkpoints, the later one to end once hid what had been frozen in between.
#[test]
fn checkpoints_concurrent_with_writers_lose_nothing() {
    let mut world = World::new(1);
    let store = world.open_with_threads();
    let done = AtomicBool::new(false);
    let written = |store: &Store, writer: u64| {
        for at in 0..60 {
            let staged = stage(store, &body(at, 500)).unwrap();
            let key = name(&format!("{writer}/{at}"));
            let batch = Batch::new().put(key.clone(), staged, PutOptions::default());
            store.commit(batch).unwrap();
            assert_eq!(read(store, &key).unwrap().unwrap(), body(at, 500));
        }
    };
    thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|writer| {
                scope.spawn({
                    let store = &store;
                    move || written(store, writer)
                })
            })
            .collect();
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    store.checkpoint().unwrap();
                }
            });
        }
        for writer in writers {
            writer.join().unwrap();
        }
        done.store(true, Ordering::SeqCst);
    });
    let before = Contents::of(&store).unwrap();
    assert_eq!(before.objects.len(), 180);
    store.close().unwrap();
    drop(store);
    assert_eq!(Contents::of(&world.open()).unwrap(), before);
}

#[test]
fn dropping_threaded_store_keeps_acknowledged_writes() {
    let mut world = World::new(1);
    for round in 0..5_u64 {
        let store = world.open_with_threads();
        for at in 0..20 {
            let staged = stage(&store, &body(at, 2_000)).unwrap();
            let key = name(&format!("{round}/{at}"));
            store.commit(Batch::new().put(key, staged, PutOptions::default())).unwrap();
        }
        drop(store);
    }
    let store = world.open();
    assert_eq!(Contents::of(&store).unwrap().objects.len(), 100);
    commit(&store, Batch::new().delete(name("0/0"))).unwrap();
}

/// The committer calls the callbacks, and must not wait for itself.
#[test]
fn store_closes_when_callback_drops_last_handle() {
    let mut world = World::new(1);
    let store = world.open_with_threads();
    let (answer, answers) = mpsc::channel();
    let (release, released) = mpsc::channel();
    let last = store.clone();
    let batch_of = |key: &str| {
        let staged = stage(&store, b"content").unwrap();
        Batch::new().put(name(key), staged, PutOptions::default())
    };
    let (first, second) = (batch_of("first"), batch_of("second"));
    let first_answer = answer.clone();
    store.submit(first, move |outcome| {
        released.recv().unwrap();
        drop(last);
        first_answer.send(outcome.is_ok()).unwrap();
    });
    store.submit(second, move |outcome| answer.send(outcome.is_ok()).unwrap());
    drop(store);
    release.send(()).unwrap();
    assert_eq!(answers.iter().collect::<Vec<_>>(), [true, true]);
    let deadline = Instant::now() + Duration::from_secs(20);
    let opened = loop {
        match world.try_open() {
            Err(Error::InUse(_)) if Instant::now() < deadline => thread::yield_now(),
            opened => break opened.unwrap().0,
        }
    };
    assert_eq!(Contents::of(&opened).unwrap().objects.len(), 2);
}

#[test]
fn long_segment_is_sealed_while_store_is_in_use() {
    let mut world = World::new(1);
    world.options.segment_bytes = 64 << 20;
    world.options.inline_bytes_max = 4 << 20;
    let store = world.open();
    let bytes = body(1, 4 << 20);
    let names: Vec<_> = (0..6).map(|number| name(&format!("{number}"))).collect();
    for name in &names {
        put(&store, name, &bytes).unwrap();
    }
    drop(store);

    let (store, report) = world.open_with_report();
    assert_eq!((report.replayed_records, report.segments_sealed), (6, 0), "{report}");
    let segment = world.files_in("log").remove(0);
    assert_eq!(world.disk.bytes(&segment).len(), 64 << 20, "it is not cut to its footer yet");
    put(&store, &name("later"), b"1").unwrap();
    roll_over(&store).unwrap();
    assert!(world.disk.bytes(&segment).len() < 25 << 20);
    drop(store);
    let (store, report) = world.open_with_report();
    assert!(report.damage.is_empty() && report.torn_tail.is_none(), "{report}");
    for name in &names {
        assert_eq!(read(&store, name).unwrap().unwrap(), bytes);
    }
}
