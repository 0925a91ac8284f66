//! Shipping: what is committed is in the remote store, whole and in order, and acknowledged when it should be.

use std::io::ErrorKind;
use std::sync::mpsc::channel;

use engine::remote::SimRemote;
use engine::replication::{RemoteAck, ReplicationState, ReplicationStep};
use engine::{Batch, Error};
use tests::store::{World, body, compact, delete, idle, name, put, read, roll_over};

use super::worlds::{RemoteWorld, contents_of, fill, settle, ship, shown};

#[test]
fn restored_store_equals_the_replicated_one() {
    let world = RemoteWorld::new(1);
    let store = world.open();
    fill(&store, 1);
    delete(&store, &name("small/7")).unwrap();
    settle(&store).unwrap();
    assert_eq!(world.restored(), shown(&store));

    fill(&store, 2);
    ship(&store).unwrap();
    assert_eq!(world.restored(), shown(&store), "chunks after the manifest are applied");
}

#[test]
fn store_from_before_replication_is_uploaded_whole() {
    let mut world = World::new(1);
    let store = world.open();
    fill(&store, 1);
    delete(&store, &name("small/3")).unwrap();
    store.close().unwrap();
    let disk = world.disk.clone();
    drop(store);
    let remote = SimRemote::new(world.clock.clone());
    world = World::on(disk, 2);
    let world = RemoteWorld::with(world, remote, RemoteAck::Local);
    let store = world.open();
    let missing = world.restore(None).unwrap_err();
    assert!(matches!(missing, Error::NotAStore(_)), "{missing}");
    settle(&store).unwrap();
    assert!(store.replication_status().unwrap().is_complete);
    assert_eq!(world.restored(), shown(&store));
}

#[test]
fn compaction_is_replicated_and_waits_for_uploads() {
    let world = RemoteWorld::new(1);
    let store = world.open();
    for round in 0..4 {
        fill(&store, round);
    }
    roll_over(&store).unwrap();
    ship(&store).unwrap();
    let before = compact(&store).unwrap();
    assert_eq!(before.copied_bytes, 0, "nothing is replaced before it is in the remote store");
    settle(&store).unwrap();
    let after = compact(&store).unwrap();
    assert!(after.freed_bytes > 0, "{after:?}");
    put(&store, &name("after"), b"the compaction").unwrap();
    ship(&store).unwrap();
    assert_eq!(world.restored(), shown(&store));
    settle(&store).unwrap();
    assert_eq!(world.restored(), shown(&store));
}

#[test]
fn replicated_store_without_its_remote_store_is_not_compacted() {
    let world = RemoteWorld::new(1);
    let store = world.open();
    for round in 0..4 {
        fill(&store, round);
    }
    settle(&store).unwrap();
    store.close().unwrap();
    let disk = world.world.disk.clone();
    let alone = World::on(disk.clone(), 5);
    let store = alone.open();
    assert_eq!(compact(&store).unwrap().copied_bytes, 0);
    store.close().unwrap();
    engine::replication::detach(&disk).unwrap();
    let store = alone.open();
    assert!(compact(&store).unwrap().copied_bytes > 0, "a detached store is compacted");
}

#[test]
fn remote_acknowledgement_waits_for_the_chunk() {
    let world = RemoteWorld::acknowledging_remotely(1);
    let store = world.open();
    let (answer, outcome) = channel();
    let batch = Batch::new().put_fact(tests::store::fact("token/1"), "used".into());
    store.submit(batch, move |result| drop(answer.send(result)));
    idle(&store);
    assert!(outcome.try_recv().is_err(), "durable on the disk only");
    assert_eq!(store.step_ship().unwrap(), ReplicationStep::Worked);
    assert!(outcome.try_recv().unwrap().is_ok());
    settle(&store).unwrap();
    assert_eq!(world.restored().facts.len(), 1);
}

#[test]
fn remote_acknowledgement_fails_after_ten_seconds() {
    let world = RemoteWorld::acknowledging_remotely(1);
    let store = world.open();
    world.remote.set_outage(Some(ErrorKind::TimedOut));
    let (answer, outcome) = channel();
    let batch = Batch::new().put_fact(tests::store::fact("token/1"), "used".into());
    store.submit(batch, move |result| drop(answer.send(result)));
    idle(&store);
    store.step_ship().unwrap_err();
    assert!(outcome.try_recv().is_err());
    world.world.clock.advance(10_000);
    store.step_ship().unwrap_err();
    let failed = outcome.try_recv().unwrap().unwrap_err();
    assert!(matches!(failed, Error::RemoteUnavailable(_)), "{failed}");
    // Later writes are rejected before they change anything.
    let rejected = put(&store, &name("late"), b"never").unwrap_err();
    assert!(matches!(rejected, Error::RemoteUnavailable(_)), "{rejected}");
    assert_eq!(read(&store, &name("late")).unwrap(), None);
    world.remote.set_outage(None);
    ship(&store).unwrap();
    store.commit(Batch::new().delete(name("none"))).unwrap();
}

#[test]
fn local_acknowledgement_survives_an_outage() {
    let world = RemoteWorld::new(1);
    let store = world.open();
    world.remote.set_outage(Some(ErrorKind::PermissionDenied));
    fill(&store, 1);
    world.world.clock.advance(3_600_000);
    let failed = store.step_ship().unwrap_err();
    assert!(failed.to_string().contains("permission denied"), "{failed}");
    fill(&store, 2);
    let status = store.replication_status().unwrap();
    assert!(status.unshipped_bytes > 0 && status.last_error.is_some(), "{status:?}");
    world.remote.set_outage(None);
    settle(&store).unwrap();
    let status = store.replication_status().unwrap();
    assert_eq!((status.unshipped_bytes, status.lag_ms, status.last_error), (0, 0, None));
    assert_eq!(world.restored(), shown(&store));
}

#[test]
fn lag_grows_behind_a_heartbeat_that_fails() {
    let world = RemoteWorld::new(1);
    let store = world.open();
    world.remote.set_outage(Some(ErrorKind::TimedOut));
    world.world.clock.advance(engine::limits::HEARTBEAT_MS);
    store.step_ship().unwrap_err();
    put(&store, &name("one"), b"1").unwrap();
    assert_eq!(store.replication_status().unwrap().lag_ms, 0);
    for _ in 0..5 {
        world.world.clock.advance(1_000);
        store.step_ship().unwrap_err();
    }
    assert_eq!(store.replication_status().unwrap().lag_ms, 5_000);
    world.remote.set_outage(None);
    ship(&store).unwrap();
    assert_eq!(store.replication_status().unwrap().lag_ms, 0);
}

#[test]
fn store_opens_and_writes_while_the_remote_store_is_away() {
    let world = RemoteWorld::new(1);
    world.remote.set_outage(Some(ErrorKind::TimedOut));
    let store = world.world.open();
    store.step_ship().unwrap_err();
    fill(&store, 1);
    assert_eq!(store.replication_status().unwrap().state, ReplicationState::Connecting);
    world.remote.set_outage(None);
    settle(&store).unwrap();
    assert_eq!(world.restored(), shown(&store));
}

#[test]
fn lease_stops_writes_when_the_remote_store_is_silent() {
    let mut world = RemoteWorld::new(1);
    if let Some(replication) = &mut world.world.options.replication {
        replication.lease_seconds = 15;
    }
    let store = world.open();
    put(&store, &name("one"), b"1").unwrap();
    world.remote.set_outage(Some(ErrorKind::TimedOut));
    world.world.clock.advance(14_000);
    put(&store, &name("two"), b"2").unwrap();
    world.world.clock.advance(1_000);
    let rejected = put(&store, &name("three"), b"3").unwrap_err();
    assert!(matches!(rejected, Error::RemoteUnavailable(_)), "{rejected}");
    world.remote.set_outage(None);
    ship(&store).unwrap();
    put(&store, &name("four"), b"4").unwrap();
}

#[test]
fn idle_primary_creates_heartbeats() {
    let world = RemoteWorld::new(1);
    let store = world.open();
    put(&store, &name("one"), b"1").unwrap();
    ship(&store).unwrap();
    let chunk = store.replication_status().unwrap().chunk;
    for seconds in [9, 1, 10] {
        world.world.clock.advance(seconds * 1_000);
        ship(&store).unwrap();
    }
    assert_eq!(store.replication_status().unwrap().chunk, chunk + 2);
    settle(&store).unwrap();
    assert_eq!(world.restored(), shown(&store));
}

#[test]
fn closing_ships_what_is_left() {
    let world = RemoteWorld::new(1);
    let store = world.open();
    settle(&store).unwrap();
    fill(&store, 3);
    let expected = shown(&store);
    store.close().unwrap();
    assert_eq!(world.restored(), expected);
}

#[test]
fn replication_continues_after_a_restart() {
    let world = RemoteWorld::new(1);
    for round in 0..5 {
        let store = world.open();
        assert_eq!(store.replication_status().unwrap().epoch, round + 1);
        fill(&store, round);
        if round % 2 == 0 {
            settle(&store).unwrap();
        }
        let expected = shown(&store);
        store.close().unwrap();
        drop(store);
        if round > 0 {
            assert_eq!(world.restored(), expected, "round {round}");
        }
    }
}

#[test]
fn body_deleted_before_its_upload_is_not_missed() {
    let world = RemoteWorld::new(1);
    let store = world.open();
    settle(&store).unwrap();
    put(&store, &name("big"), &body(1, 9_000)).unwrap();
    delete(&store, &name("big")).unwrap();
    assert!(world.world.files_in("big/").is_empty(), "its file was removed at once");
    put(&store, &name("other"), &body(2, 9_000)).unwrap();
    settle(&store).unwrap();
    assert_eq!(world.restored(), shown(&store));
}

#[test]
fn restored_store_becomes_the_primary() {
    let world = RemoteWorld::new(1);
    let store = world.open();
    fill(&store, 1);
    settle(&store).unwrap();
    fill(&store, 2);
    ship(&store).unwrap();
    let (disk, _) = world.restore(None).unwrap();
    let next = world.machine(disk.clone(), 9);
    next.world.open().close().unwrap();
    let other = next.open();
    assert_eq!(shown(&other), shown(&store));
    fill(&other, 3);
    settle(&other).unwrap();
    assert_eq!(world.restored(), shown(&other));
    other.close().unwrap();
    drop(other);
    assert_eq!(contents_of(disk), world.restored());
}

#[test]
fn folder_of_another_store_is_rejected() {
    let world = RemoteWorld::new(1);
    world.open().close().unwrap();
    let other = RemoteWorld::with(World::new(2), world.remote.clone(), RemoteAck::Local);
    let store = other.world.open();
    let rejected = store.step_ship().unwrap_err();
    assert!(rejected.to_string().contains("belongs to store"), "{rejected}");
    assert!(matches!(store.replication_status().unwrap().state, ReplicationState::Fenced(_)));
}
