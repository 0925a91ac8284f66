//! Restore: to any restore point, exactly, and never to anything in between.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use engine::disk::Disk;
use engine::disk::sim::SimDisk;
use engine::replication::{restore, restore_points};
use engine::rng::{Rng, SeededRng};
use engine::{Error, Store};
use tests::store::{Contents, body, compact, delete, name, put, roll_over};

use super::worlds::{RemoteWorld, contents_of, fill, settle, ship, shown};

const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 24 * 60 * MINUTE_MS;

/// Writes, overwrites and deletes small and large objects.
fn work(store: &Store, rng: &SeededRng) {
    for _ in 0..rng.below(8) {
        let key = name(&format!("{}/{}", rng.below(3), rng.below(12)));
        match rng.below(6) {
            0 => drop(delete(store, &key)),
            1 => drop(put(store, &key, &body(rng.next_u64(), 9_000))),
            _ => drop(put(store, &key, &body(rng.next_u64(), 3_000))),
        }
    }
    roll_over(store).unwrap();
}

#[test]
fn every_restore_point_of_ten_days_is_exact() {
    let mut world = RemoteWorld::new(1);
    world.world.options.retention_window_ms = 2 * 60 * MINUTE_MS;
    let rng = SeededRng::new(3);
    let store = world.open();
    let mut states: BTreeMap<u64, Contents> = BTreeMap::new();
    let mut checked = 0;
    for round in 0..10 * 24 {
        for _ in 0..3 {
            work(&store, &rng);
            settle(&store).unwrap();
            states.entry(store.stats().unwrap().last_lsn).or_insert_with(|| shown(&store));
            world.world.clock.advance(20 * MINUTE_MS);
        }
        if round % 7 == 6 {
            compact(&store).unwrap();
        }
        if round % 40 != 39 {
            continue;
        }
        let points = restore_points(&world.remote).unwrap();
        let now_ms = points.last().unwrap().created_ms;
        for point in points.iter().step_by(9) {
            let (disk, report) = world.restore(Some(point.created_ms)).unwrap();
            assert_eq!(report.damage, [""; 0], "{point:?}");
            let expected = &states[&report.last_lsn];
            assert_eq!(contents_of(disk), *expected, "{point:?}");
            checked += 1;
        }
        let oldest_ms = points[0].created_ms;
        let expected_ms = (40 * (round / 40 + 1) * 60 * MINUTE_MS).min(7 * DAY_MS);
        assert!(now_ms - oldest_ms >= expected_ms - 3 * 60 * MINUTE_MS, "seven days are kept");
        assert!(now_ms - oldest_ms <= 7 * DAY_MS + 2 * 60 * MINUTE_MS, "older ones are removed");
    }
    assert!(checked > 50, "{checked}");
}

#[test]
fn restore_to_a_time_stops_before_later_chunks() {
    let world = RemoteWorld::new(1);
    let store = world.open();
    fill(&store, 1);
    settle(&store).unwrap();
    let mut states = Vec::new();
    for second in 0..20 {
        world.world.clock.advance(1_000);
        put(&store, &name(&format!("second/{second}")), &body(second, 100)).unwrap();
        ship(&store).unwrap();
        states.push((engine::clock::Clock::unix_ms(&*world.world.clock), shown(&store)));
    }
    for (at_ms, expected) in states {
        let (disk, report) = world.restore(Some(at_ms + 500)).unwrap();
        assert_eq!(report.created_ms, at_ms);
        assert_eq!(contents_of(disk), expected);
    }
}

#[test]
fn time_before_the_first_restore_point_is_rejected() {
    let world = RemoteWorld::new(1);
    let store = world.open();
    fill(&store, 1);
    settle(&store).unwrap();
    let rejected = world.restore(Some(1)).unwrap_err();
    assert!(rejected.to_string().contains("no restore point at or before"), "{rejected}");
}

#[test]
fn folder_that_is_not_empty_is_rejected() {
    let world = RemoteWorld::new(1);
    let store = world.open();
    settle(&store).unwrap();
    let disk = SimDisk::new();
    disk.create("other").unwrap();
    let rejected = restore(&world.remote, &disk, None, &mut |_| ControlFlow::Continue(()));
    assert!(matches!(rejected, Err(Error::NotAStore(_))), "{rejected:?}");
}

#[test]
fn interrupted_restore_leaves_no_store() {
    let world = RemoteWorld::new(1);
    let store = world.open();
    fill(&store, 1);
    settle(&store).unwrap();
    let remote = world.remote.fork();
    let begun = remote.calls();
    let (_, report) = super::worlds::restore_from(&remote, None).unwrap();
    let calls = remote.calls() - begun;
    assert!(report.segments >= 2 && calls > 5, "{report:?}");
    for at in 0..calls {
        let remote = world.remote.fork();
        remote.cut_after(Some(remote.calls() + at));
        let disk = SimDisk::new();
        restore(&remote, &disk, None, &mut |_| ControlFlow::Continue(())).unwrap_err();
        assert!(!disk.paths().contains(&"STORE".to_owned()), "call {at}");
    }
}
