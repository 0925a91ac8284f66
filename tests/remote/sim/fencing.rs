//! Fencing: of two processes with one store, one is the primary, and the other one finds out before it acknowledges.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use engine::remote::{Created, RemoteCall, RemoteStore};
use engine::replication::{ReplicationOptions, ReplicationState};
use engine::{Batch, Store};
use tests::store::{body, fact, idle, name, put, read, roll_over};

use super::worlds::{RemoteWorld, Stalling, fill, settle, ship, shown};

#[test]
fn clone_of_the_folder_fences_the_first_process() {
    let world = RemoteWorld::acknowledging_remotely(1);
    let first = world.open();
    put(&first, &name("before"), b"both have it").unwrap_err();
    ship(&first).unwrap();
    idle(&first);
    settle(&first).unwrap();
    let clone = world.machine(world.world.disk.fork(), 5);
    let second = clone.open();

    // The first process still writes to its own disk, and must not acknowledge.
    let (answer, outcome) = channel();
    let batch = Batch::new().put_fact(fact("token/1"), "used twice".into());
    first.submit(batch, move |result| drop(answer.send(result)));
    idle(&first);
    let fenced = first.step_ship().unwrap_err();
    assert!(fenced.to_string().contains("no longer the primary"), "{fenced}");
    assert!(outcome.try_recv().unwrap().is_err());
    let state = first.replication_status().unwrap().state;
    assert!(matches!(state, ReplicationState::Fenced(_)), "{state:?}");
    put(&first, &name("later"), b"rejected").unwrap_err();

    second.commit(Batch::new().put_fact(fact("token/1"), "used once".into())).unwrap();
    settle(&second).unwrap();
    assert_eq!(world.restored(), shown(&second));
    assert_eq!(world.restored().facts[&fact("token/1")], Bytes::from("used once"));
}

#[test]
fn folder_with_an_older_state_is_rejected() {
    let world = RemoteWorld::new(1);
    let store = world.open();
    fill(&store, 1);
    settle(&store).unwrap();
    let old = world.world.disk.fork();
    fill(&store, 2);
    ship(&store).unwrap();
    let expected = shown(&store);
    let stale = world.machine(old, 5);
    let opened = stale.world.open();
    let rejected = opened.step_ship().unwrap_err();
    assert!(rejected.to_string().contains("trug remote restore"), "{rejected}");
    put(&opened, &name("any"), b"rejected").unwrap_err();
    assert!(read(&opened, &name("small/1")).unwrap().is_some(), "reads are not affected");
    assert_eq!(world.restored(), expected);
}

#[test]
fn folder_with_unshipped_writes_is_rejected_after_a_later_epoch() {
    let world = RemoteWorld::new(1);
    let first = world.open();
    fill(&first, 1);
    settle(&first).unwrap();
    let shipped = world.machine(world.world.disk.fork(), 5);
    put(&first, &name("unshipped"), b"only here").unwrap();
    let ahead = world.machine(world.world.disk.fork(), 6);
    // Another process becomes the primary, and writes nothing.
    let restored = world.restore(None).unwrap().0;
    let second = world.machine(restored, 7).open();
    let expected = shown(&second);
    drop(second);

    let opened = ahead.world.open();
    let rejected = opened.step_ship().unwrap_err();
    assert!(rejected.to_string().contains("became the primary in epoch 2"), "{rejected}");
    assert_eq!(world.restored(), expected);
    // Without such writes the folder may continue.
    assert_eq!(shipped.open().replication_status().unwrap().epoch, 3);
}

#[test]
fn log_segment_with_unshipped_writes_is_not_uploaded() {
    let world = RemoteWorld::new(1);
    let first = world.open();
    fill(&first, 1);
    settle(&first).unwrap();
    let second = world.machine(world.restore(None).unwrap().0, 5);
    // The last segment is sealed with writes that are in no chunk.
    fill(&first, 2);
    roll_over(&first).unwrap();
    let second = second.open();
    fill(&second, 3);
    settle(&second).unwrap();
    // The first process does not know yet that it was fenced.
    while first.step_replication_upkeep().is_ok_and(|step| step == WORKED) {}
    assert_eq!(world.restored(), shown(&second));
}

#[test]
fn fenced_process_removes_nothing() {
    let world = RemoteWorld::new(1);
    let first = world.open();
    fill(&first, 1);
    settle(&first).unwrap();
    let second = world.machine(world.world.disk.fork(), 5).open();
    fill(&second, 2);
    settle(&second).unwrap();
    let before = world.remote.names();
    world.world.clock.advance(30 * 24 * 3_600_000);
    // The first process does not know yet that it was fenced.
    while first.step_replication_upkeep().is_ok_and(|step| step == WORKED) {}
    assert_eq!(world.remote.names(), before);
    assert_eq!(world.restored(), shown(&second));
}

#[test]
fn segments_of_two_processes_with_one_id_differ() {
    for seed in 0..8 {
        let world = RemoteWorld::acknowledging_remotely(seed);
        let first = world.open();
        settle(&first).unwrap();
        // Its body is uploaded, its record is not.
        put(&first, &name("lost"), &body(1, 9_000)).unwrap_err();
        let restored = world.restore(None).unwrap().0;
        let second = world.machine(restored, seed + 100).open();
        put(&second, &name("present"), &body(2, 9_000)).unwrap_err();
        settle(&second).unwrap();
        let names = world.remote.names();
        let copies = names.iter().filter(|name| name.starts_with("seg/0000000001-"));
        assert_eq!(copies.count(), 2, "{names:?}");
        assert_eq!(world.restored(), shown(&second));
    }
}

#[test]
fn fence_that_arrives_late_has_no_effect() {
    let world = RemoteWorld::new(1);
    let store = world.open();
    fill(&store, 1);
    settle(&store).unwrap();
    let chunk = store.replication_status().unwrap().chunk;
    let fence = world.remote.object(&format!("log/{:020}", 1)).unwrap();
    let next = format!("log/{:020}", chunk + 1);
    fill(&store, 2);
    ship(&store).unwrap();
    assert_eq!(world.remote.create(&next, &[fence]).unwrap(), Created::Exists);
    assert_eq!(world.restored(), shown(&store));
}

#[test]
fn fence_in_the_collected_past_does_not_make_a_primary() {
    let world = RemoteWorld::new(1);
    let first = world.open();
    fill(&first, 1);
    settle(&first).unwrap();
    let fence = format!("log/{:020}", first.replication_status().unwrap().chunk + 1);
    let candidate = world.machine(world.world.disk.fork(), 5);
    let (clock, remote) = (Arc::clone(&world.world.clock), world.remote.clone());
    let writer = first.clone();
    let proceed = move || {
        for round in 2..5 {
            fill(&writer, round);
            settle(&writer).unwrap();
            clock.advance(2 * 3_600_000);
            fill(&writer, round + 10);
            settle(&writer).unwrap();
        }
        assert_eq!(remote.object(&fence), None, "its number was collected");
    };
    // The candidate stalls before it creates its fence.
    let proceed = Mutex::new(Some(proceed));
    let stalling = Stalling::new(&world.remote, move |call, name| {
        let is_fence = call == RemoteCall::Create && name.starts_with("log/");
        if let Some(proceed) = is_fence.then(|| proceed.lock().unwrap().take()).flatten() {
            proceed();
        }
    });
    let mut options = candidate.world.options.clone();
    let mut replication = ReplicationOptions::new(Arc::new(stalling));
    replication.probe = false;
    options.replication = Some(replication);
    let (second, _) = Store::open(candidate.world.environment(), options).unwrap();
    let rejected = second.step_ship().unwrap_err();
    assert!(rejected.to_string().contains("writes that this folder does not have"), "{rejected}");
    put(&first, &name("after"), b"it is still the primary").unwrap();
    ship(&first).unwrap();
    assert_eq!(world.restored(), shown(&first));
}

const WORKED: engine::replication::ReplicationStep = engine::replication::ReplicationStep::Worked;
