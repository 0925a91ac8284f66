//! Segments that are only in the remote store: read through the cache, bounded, never a wrong byte.

use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use engine::disk::Disk;
use engine::disk::sim::{LossPolicy, SimDisk};
use engine::remote::{RemoteFault, RemoteStore, SimRemote};
use engine::replication::{RemoteAck, TierStatus, detach, restore_references};
use engine::{Error, Store};
use tests::store::{Contents, World, body, compact, delete, name, put, read};

use super::worlds::{RemoteWorld, fill, settle, ship, shown};

const INTERVAL_MS: u64 = engine::limits::EVICTION_INTERVAL_MS;
const UNIT_BYTES: u64 = engine::limits::TIER_UNIT_BYTES;

/// Creates a machine that has at most this many bytes of segments.
fn limited(seed: u64, local_bytes_max: u64) -> RemoteWorld {
    let mut world = RemoteWorld::new(seed);
    world.world.options.replication.as_mut().unwrap().local_bytes_max = local_bytes_max;
    world
}

/// Ships and uploads everything, and evicts what is above the limit.
fn settle_and_evict(world: &RemoteWorld, store: &Store) {
    settle(store).unwrap();
    store.checkpoint().unwrap();
    world.world.clock.advance(INTERVAL_MS);
    settle(store).unwrap();
}

/// Creates a machine and a store of which all segments are only in the remote store that can be.
fn evicted(seed: u64) -> (RemoteWorld, Store, Contents) {
    let world = limited(seed, 1);
    let store = world.open();
    (0..4).for_each(|round| fill(&store, 10 * seed + round));
    let expected = shown(&store);
    settle_and_evict(&world, &store);
    (world, store, expected)
}

fn tier(store: &Store) -> TierStatus {
    store.replication_status().unwrap().tier.unwrap()
}

/// Returns the paths of segments on the machine, and of references.
fn segments(disk: &SimDisk) -> (Vec<String>, Vec<String>) {
    let paths = disk.paths().into_iter().filter(|path| !path.starts_with("cache/"));
    let paths = paths.filter(|path| path.ends_with(".seg") || path.ends_with(".ref"));
    paths.partition(|path| path.ends_with(".seg"))
}

#[test]
fn evicted_segments_are_read_from_the_remote_store() {
    let (world, store, expected) = evicted(1);
    let (files, references) = segments(&world.world.disk);
    assert!(references.len() > 3, "{references:?}");
    assert!(files.iter().all(|path| path.starts_with("log/")), "{files:?}");
    let before = tier(&store);
    assert_eq!(before.remote_segments, references.len() as u64);
    assert_eq!(before.evictions, before.remote_segments);
    assert_eq!(shown(&store), expected);
    let after = tier(&store);
    assert!(after.fetches > 0 && after.fetched_bytes > before.fetched_bytes, "{after:?}");
    assert_eq!(shown(&store), expected);
    assert_eq!(tier(&store).fetches, after.fetches, "everything is in cache files");
    assert_eq!(world.restored(), expected);
}

#[test]
fn restarts_need_no_local_segment() {
    let (world, store, expected) = evicted(2);
    store.close().unwrap();
    let store = world.open();
    assert_eq!(shown(&store), expected);
    store.close().unwrap();
    // The index is rebuilt from segments in the remote store.
    let index = world.world.disk.paths().into_iter().find(|path| path.contains("index")).unwrap();
    world.world.disk.overwrite(&index, 0, &[0; 64]);
    let (store, report) = world.world.open_with_report();
    assert!(report.damage.is_empty(), "{report}");
    assert_eq!(shown(&store), expected);
}

#[test]
fn outage_of_the_remote_store_fails_cold_reads_only() {
    let (world, store, expected) = evicted(3);
    put(&store, &name("warm"), b"on this machine").unwrap();
    world.remote.set_outage(Some(ErrorKind::TimedOut));
    let mut failed = 0;
    for object in expected.objects.keys() {
        match read(&store, object) {
            Ok(found) => assert!(found.is_some()),
            Err(Error::RemoteUnavailable(why)) => {
                assert!(why.contains("seg/") && why.contains(".seg"), "{why}");
                failed += 1;
            }
            Err(other) => panic!("{object}: {other}"),
        }
    }
    assert!(failed > 3, "{failed}");
    assert_eq!(read(&store, &name("warm")).unwrap().unwrap(), b"on this machine");
    assert_eq!(store.damage().unwrap().count(), 0, "an outage is not damage");
    world.remote.set_outage(None);
    for (object, observed) in &expected.objects {
        assert_eq!(read(&store, object).unwrap().unwrap(), observed.body);
    }
}

#[test]
fn damage_in_the_cache_is_fetched_again() {
    let (world, store, expected) = evicted(4);
    // Each fetches a whole segment, of which the other objects are not verified yet.
    for at in [0, 9, 19, 29] {
        read(&store, &name(&format!("small/{at}"))).unwrap();
    }
    let caches = world.world.files_in("cache/");
    assert!(caches.len() > 1, "{caches:?}");
    for path in &caches {
        let bytes = world.world.disk.bytes(path).len();
        for offset in (4_096..bytes as u64).step_by(700) {
            world.world.disk.flip(path, offset, 0x10);
        }
    }
    let before = tier(&store).fetches;
    for at in (0..30).filter(|at| ![0, 9, 19, 29].contains(at)) {
        let object = name(&format!("small/{at}"));
        let found = read(&store, &object).unwrap().unwrap();
        assert!(found == expected.objects[&object].body, "{object}");
    }
    assert!(tier(&store).fetches > before);
}

#[test]
fn damage_in_the_remote_store_is_reported() {
    let (world, store, expected) = evicted(5);
    for object in world.remote.names().iter().filter(|name| name.starts_with("seg/")) {
        let content = world.remote.object(object).unwrap();
        let mut changed = content.to_vec();
        changed[4_096..].iter_mut().step_by(700).for_each(|byte| *byte ^= 1);
        world.remote.damage(object, Some(changed.into()));
    }
    let mut damaged = 0;
    for (object, observed) in &expected.objects {
        match read(&store, object) {
            Ok(found) => assert_eq!(found.unwrap(), observed.body, "{object}"),
            Err(Error::Corrupt(_)) => damaged += 1,
            Err(other) => panic!("{object}: {other}"),
        }
    }
    assert!(damaged > 3, "{damaged}");
}

#[test]
fn cache_is_bounded_and_read_segments_become_local() {
    let world = limited(6, 4 * UNIT_BYTES);
    let store = world.open();
    for at in 0..12 {
        put(&store, &name(&format!("big/{at:02}")), &body(at, 200_000)).unwrap();
        settle_and_evict(&world, &store);
        let found = tier(&store);
        assert!(found.local_bytes + found.cached_bytes <= found.local_bytes_max, "{found:?}");
    }
    assert!(tier(&store).remote_segments > 3);
    // The first one was evicted; reading it makes it the most recently read one.
    let hot = name("big/00");
    let path = "big/00/0000000001.seg".to_owned();
    assert!(!segments(&world.world.disk).0.contains(&path));
    assert_eq!(read(&store, &hot).unwrap().unwrap(), body(0, 200_000));
    settle_and_evict(&world, &store);
    assert!(segments(&world.world.disk).0.contains(&path), "{:?}", segments(&world.world.disk));
    let fetches = tier(&store).fetches;
    assert_eq!(read(&store, &hot).unwrap().unwrap(), body(0, 200_000));
    assert_eq!(tier(&store).fetches, fetches);
    for at in 0..12 {
        let object = name(&format!("big/{at:02}"));
        assert_eq!(read(&store, &object).unwrap().unwrap(), body(at, 200_000));
    }
    settle_and_evict(&world, &store);
    let found = tier(&store);
    assert!(found.local_bytes + found.cached_bytes <= found.local_bytes_max, "{found:?}");
}

#[test]
fn deleted_and_compacted_segments_leave_no_reference() {
    let (world, store, expected) = evicted(7);
    let objects: Vec<_> = expected.objects.keys().cloned().collect();
    let (last, others) = objects.split_last().unwrap();
    for object in others {
        delete(&store, object).unwrap();
    }
    settle_and_evict(&world, &store);
    compact(&store).unwrap();
    store.checkpoint().unwrap();
    settle_and_evict(&world, &store);
    let (_, references) = segments(&world.world.disk);
    assert!(references.len() < 4, "{references:?}");
    assert_eq!(read(&store, last).unwrap().unwrap(), expected.objects[last].body);
    assert_eq!(world.restored(), shown(&store));
}

#[test]
fn power_lost_during_eviction_loses_nothing() {
    let prepare = || {
        let world = limited(8, 1);
        let store = world.open();
        (0..3).for_each(|round| fill(&store, round));
        settle(&store).unwrap();
        store.checkpoint().unwrap();
        world.world.clock.advance(INTERVAL_MS);
        (world, store)
    };
    let (world, store) = prepare();
    let expected = shown(&store);
    let begun = world.world.disk.operations();
    settle(&store).unwrap();
    let operations = world.world.disk.operations() - begun;
    assert!(operations > 30, "{operations}");
    for at in 0..operations {
        let policy = [LossPolicy::KeepSynced, LossPolicy::NamesLost, LossPolicy::NamesKept]
            [usize::try_from(at).unwrap() % 3];
        let (world, store) = prepare();
        let disk = &world.world.disk;
        disk.cut_power_after(disk.operations() + at);
        let _ = settle(&store);
        drop(store);
        disk.power_on(policy, at);
        let store = world.open();
        assert_eq!(shown(&store), expected, "operation {at}");
        settle_and_evict(&world, &store);
        assert_eq!(shown(&store), expected, "operation {at}");
        assert_eq!(world.restored(), expected, "operation {at}");
    }
}

#[test]
fn full_disk_does_not_stop_cold_reads() {
    let (world, store, expected) = evicted(9);
    world.world.disk.set_free_bytes(0);
    for (object, observed) in &expected.objects {
        assert_eq!(read(&store, object).unwrap().unwrap(), observed.body, "{object}");
    }
}

#[test]
fn store_without_its_remote_store_fails_cold_reads() {
    let (mut world, store, expected) = evicted(10);
    store.close().unwrap();
    world.world.options.replication = None;
    let checked = world.world.fsck(true);
    assert!(matches!(checked, Err(Error::RemoteUnavailable(_))), "{checked:?}");
    let store = world.world.open();
    put(&store, &name("warm"), b"on this machine").unwrap();
    let failed = expected.objects.keys().filter(|object| match read(&store, object) {
        Ok(found) => found.is_none(),
        Err(Error::RemoteUnavailable(why)) => why.contains("none is configured"),
        Err(other) => panic!("{object}: {other}"),
    });
    assert!(failed.count() > 3);
    assert_eq!(read(&store, &name("warm")).unwrap().unwrap(), b"on this machine");
}

#[test]
fn segments_are_fetched_back_without_a_limit() {
    let (mut world, store, expected) = evicted(11);
    store.close().unwrap();
    let refused = detach(&world.world.disk).unwrap_err();
    assert!(refused.to_string().contains("segments are only in the remote store"), "{refused}");
    world.world.options.replication.as_mut().unwrap().local_bytes_max = 0;
    let store = world.open();
    assert!(!segments(&world.world.disk).1.is_empty());
    settle_and_evict(&world, &store);
    assert_eq!(segments(&world.world.disk).1, [""; 0]);
    assert_eq!(store.replication_status().unwrap().tier, None);
    store.close().unwrap();
    detach(&world.world.disk).unwrap();
    world.world.options.replication = None;
    assert_eq!(shown(&world.world.open()), expected);
    assert!(world.world.fsck(true).unwrap().is_clean());
}

#[test]
fn local_damage_is_repaired_from_the_remote_store() {
    let world = RemoteWorld::new(12);
    let store = world.open();
    fill(&store, 12);
    let expected = shown(&store);
    settle_and_evict(&world, &store);
    let (files, _) = segments(&world.world.disk);
    // The others are the newest log segment and a spare one.
    let is_sealed = |path: &String| path.starts_with("big/") || path.ends_with("1.seg");
    let sealed: Vec<_> = files.into_iter().filter(is_sealed).collect();
    assert_eq!(sealed.len(), 2, "{sealed:?}");
    for path in &sealed {
        let bytes = world.world.disk.bytes(path).len() as u64;
        (0..bytes).step_by(700).for_each(|at| world.world.disk.flip(path, at, 4));
    }
    store.scrub(&mut |_| ControlFlow::Continue(())).unwrap();
    let found = store.damage().unwrap().count();
    assert!(found >= sealed.len() as u64, "{found}");
    settle_and_evict(&world, &store);
    assert_eq!(store.damage().unwrap().count(), 0);
    assert_eq!(shown(&store), expected);
    store.close().unwrap();
    assert!(world.world.fsck(true).unwrap().is_clean());
}

#[test]
fn damaged_copy_does_not_replace_a_file() {
    let world = RemoteWorld::new(13);
    let store = world.open();
    fill(&store, 13);
    settle_and_evict(&world, &store);
    let path = "log/0000000001.seg";
    let object = world.remote.names().into_iter().find(|it| it.starts_with("seg/0000000001-"));
    let object = object.unwrap();
    let mut copy = world.remote.object(&object).unwrap().to_vec();
    copy[9_000] ^= 1;
    world.remote.damage(&object, Some(copy.into()));
    world.world.disk.flip(path, 20_000, 4);
    let damaged = world.world.disk.bytes(path);
    store.scrub(&mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(store.damage().unwrap().count(), 1);
    settle_and_evict(&world, &store);
    assert!(world.world.disk.bytes(path) == damaged);
    assert_eq!(store.damage().unwrap().count(), 1);
    let is_empty = |path: &String| world.world.disk.bytes(path).iter().all(|byte| *byte == 0);
    assert!(world.world.files_in("cache/").iter().all(is_empty));
}

#[test]
fn restored_references_serve_without_fetching_segments() {
    let world = RemoteWorld::new(14);
    let store = world.open();
    (0..4).for_each(|round| fill(&store, round));
    settle_and_evict(&world, &store);
    put(&store, &name("later"), b"in a chunk").unwrap();
    ship(&store).unwrap();
    let expected = shown(&store);
    let stored: usize = expected.objects.values().map(|object| object.body.len()).sum();

    let disk = SimDisk::new();
    let (remote, to): (Arc<dyn RemoteStore>, Arc<dyn Disk>) =
        (Arc::new(world.remote.clone()), Arc::new(disk.clone()));
    let report = restore_references(&remote, &to, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(report.damage, [""; 0]);
    let (files, references) = segments(&disk);
    assert!(references.len() > 3 && files.len() < 3, "{files:?} {references:?}");
    let local: usize = files.iter().map(|path| disk.bytes(path).len()).sum();
    assert!(local < stored, "{local} of {stored}");
    let machine = world.machine(disk.clone(), 99);
    let second = machine.open();
    assert_eq!(shown(&second), expected);
    settle_and_evict(&machine, &second);
    assert_eq!(segments(&disk).1, [""; 0], "without a limit everything is fetched");
    assert_eq!(shown(&second), expected);
    second.close().unwrap();
    assert!(machine.world.fsck(true).unwrap().is_clean());
    assert_eq!(world.restored(), expected);
}

#[test]
fn restored_references_name_damaged_and_missing_objects() {
    let world = RemoteWorld::new(15);
    let store = world.open();
    fill(&store, 15);
    settle_and_evict(&world, &store);
    let names = world.remote.names();
    let log = names.iter().find(|name| name.starts_with("seg/0000000001-")).unwrap();
    for damage in [None, Some(Bytes::from(vec![0; 9_000]))] {
        let remote = world.remote.fork();
        remote.damage(log, damage);
        let (remote, to): (Arc<dyn RemoteStore>, Arc<dyn Disk>) =
            (Arc::new(remote), Arc::new(SimDisk::new()));
        let report = restore_references(&remote, &to, &mut |_| ControlFlow::Continue(())).unwrap();
        assert!(report.damage_count > 0, "{report:?}");
        assert!(report.damage[0].contains("0000000001"), "{report:?}");
    }
}

#[test]
fn folder_with_references_needs_the_same_remote_store() {
    let (world, store, expected) = evicted(16);
    store.close().unwrap();
    let other = SimRemote::new(Arc::clone(&world.world.clock) as _);
    let moved = RemoteWorld::with(World::on(world.world.disk.clone(), 5), other, RemoteAck::Local);
    let store = moved.world.open();
    let refused = store.step_ship().unwrap_err();
    assert!(refused.to_string().contains("set remote_url to that one"), "{refused}");
    assert_eq!(moved.remote.names(), [""; 0]);
    let read = read(&store, expected.objects.keys().next().unwrap());
    assert!(matches!(read, Err(Error::RemoteUnavailable(_))), "{read:?}");
    store.close().unwrap();
    assert_eq!(shown(&world.open()), expected);
}

#[test]
fn fsck_reads_segments_in_the_remote_store() {
    let (world, store, expected) = evicted(17);
    store.close().unwrap();
    let before = segments(&world.world.disk);
    for deep in [false, true] {
        let report = world.world.fsck(deep).unwrap();
        assert!(report.is_clean(), "{report}");
        assert_eq!(report.objects, expected.objects.len() as u64);
    }
    assert_eq!(world.world.files_in("cache/"), [""; 0]);
    assert_eq!(segments(&world.world.disk), before);

    // Damage there is found and recorded, and what is intact remains.
    let names = world.remote.names().into_iter().filter(|name| name.starts_with("seg/"));
    for object in names.step_by(2) {
        let mut content = world.remote.object(&object).unwrap().to_vec();
        content[4_096..].iter_mut().step_by(700).for_each(|byte| *byte ^= 1);
        world.remote.damage(&object, Some(content.into()));
    }
    assert!(!world.world.fsck(true).unwrap().is_clean());
    let (repaired, said) = world.world.repair().unwrap();
    assert!(repaired.has_lost(), "{said:?}");
    let store = world.open();
    let mut lost = 0;
    for (object, observed) in &expected.objects {
        match read(&store, object) {
            Ok(found) => assert_eq!(found.unwrap(), observed.body, "{object}"),
            Err(Error::Corrupt(_)) => lost += 1,
            Err(other) => panic!("{object}: {other}"),
        }
    }
    assert!(lost > 0 && lost < expected.objects.len(), "{lost}");
}

#[test]
fn stopped_store_reads_segments_in_the_remote_store() {
    let (mut world, store, expected) = evicted(18);
    store.close().unwrap();
    let environment = world.world.environment();
    world.world.options.replication = None;
    let (store, _) = Store::open(environment, world.world.options.clone()).unwrap();
    assert_eq!(shown(&store), expected);
    store.close().unwrap();
    assert!(!segments(&world.world.disk).1.is_empty());
}

#[test]
fn open_body_is_read_while_its_cache_file_is_emptied() {
    let world = limited(19, 1);
    let store = world.open();
    let object = name("big/0");
    put(&store, &object, &body(0, 3 << 20)).unwrap();
    settle_and_evict(&world, &store);
    let opened = store.body(&store.get(&object).unwrap().unwrap()).unwrap();
    let expected = body(0, 3 << 20);
    let step = 200_000;
    for start in (0..expected.len()).step_by(step) {
        let end = expected.len().min(start + step);
        let mut found = Vec::new();
        while found.len() < end - start {
            let at = (start + found.len()) as u64;
            found.extend(opened.read(at..end as u64).unwrap());
        }
        assert!(found == expected[start..end], "from {start}");
        settle_and_evict(&world, &store);
        assert_eq!(tier(&store).cached_bytes, 0);
    }
}

#[test]
fn requests_that_fail_are_no_damage() {
    let (world, store, expected) = evicted(20);
    store.close().unwrap();
    // The index is rebuilt from segments in the remote store.
    let index = world.world.disk.paths().into_iter().find(|path| path.contains("index")).unwrap();
    world.world.disk.overwrite(&index, 0, &[0; 64]);
    let calls = |work: &dyn Fn()| {
        let before = world.remote.calls();
        work();
        world.remote.calls() - before
    };
    let check = || world.world.fsck(true);
    let report = check().unwrap();
    for call in 0..calls(&|| drop(check())) {
        world.remote.inject(world.remote.calls() + call, RemoteFault::Refused(ErrorKind::TimedOut));
        match check() {
            Err(Error::RemoteUnavailable(_)) => {}
            // The request was made again.
            checked => assert_eq!(checked.unwrap().findings, report.findings, "call {call}"),
        }
        world.remote.clear_faults();
    }
    let machine = || world.machine(world.world.disk.fork(), 5).world;
    let open = || machine().try_open();
    for call in 0..calls(&|| drop(open())) {
        world.remote.inject(world.remote.calls() + call, RemoteFault::Refused(ErrorKind::TimedOut));
        let machine = machine();
        match machine.try_open() {
            Err(Error::RemoteUnavailable(_)) => {}
            opened => assert!(opened.unwrap().1.damage.is_empty(), "call {call}"),
        }
        world.remote.clear_faults();
        let (store, report) = machine.open_with_report();
        assert!(report.damage.is_empty(), "call {call}: {report}");
        assert_eq!(store.damage().unwrap().count(), 0, "call {call}");
        assert_eq!(shown(&store), expected, "call {call}");
    }
}

#[test]
fn compaction_survives_requests_that_fail() {
    let prepare = || {
        let (world, store, expected) = evicted(21);
        let small = expected.objects.keys().filter(|object| !object.to_string().contains("big"));
        // Three quarters and more of each segment are dead.
        for object in small.enumerate().filter(|(at, _)| at % 8 != 0).map(|(_, object)| object) {
            delete(&store, object).unwrap();
        }
        store.checkpoint().unwrap();
        let expected = shown(&store);
        (world, store, expected)
    };
    let (world, store, _) = prepare();
    let before = world.remote.calls();
    compact(&store).unwrap();
    let calls = world.remote.calls() - before;
    assert!(calls > 3, "{calls}");
    for call in 0..calls {
        let (world, store, expected) = prepare();
        world.remote.inject(world.remote.calls() + call, RemoteFault::Refused(ErrorKind::TimedOut));
        let compacted = compact(&store);
        world.remote.clear_faults();
        assert_eq!(store.damage().unwrap().count(), 0, "call {call}: {compacted:?}");
        let check = || assert_eq!(shown(&store).objects, expected.objects, "call {call}");
        check();
        compact(&store).unwrap();
        check();
        store.close().unwrap();
        assert!(world.world.fsck(true).unwrap().is_clean(), "call {call}");
    }
}
