//! Torn tails: unacknowledged data is cut off; acknowledged data never is, however damaged. They are distinguished by
//! evidence in later durable data: a later group, the watermark of an idle store, a footer, the next segment.

use engine::Store;
use engine::disk::Disk;
use engine::disk::sim::LossPolicy;
use engine::format::Malformed;
use engine::recovery::RecoveryReport;
use tests::store::{World, body, commit, fact, idle, name, put, read};

use crate::layout::{flip, groups};

const LOG: &str = "log/0000000001.seg";

/// Creates objects `a`, `b`, `c`, each in a group of its own, and a process that was killed after that.
fn three_groups(is_idle: bool) -> World {
    let world = World::new(1);
    let store = world.open();
    for key in ["a", "b", "c"] {
        put(&store, &name(key), &body(5, 600)).unwrap();
    }
    if is_idle {
        idle(&store);
    }
    killed(world, store)
}

fn killed(world: World, store: Store) -> World {
    let disk = world.disk.fork();
    drop(store);
    World::on(disk, 2)
}

fn flipped(world: &World, offset: usize) -> (Store, RecoveryReport) {
    let world = World::on(world.disk.fork(), 3);
    flip(&world.disk, LOG, offset);
    world.open_with_report()
}

fn is_whole(store: &Store, key: &str) -> bool {
    read(store, &name(key)).is_ok_and(|found| found == Some(body(5, 600)))
}

#[test]
fn torn_tail_is_truncated_and_reported_on_recovery() {
    let mut torn = 0;
    for seed in 0..40 {
        let world = World::new(1);
        let store = world.open();
        put(&store, &name("a"), &body(5, 600)).unwrap();
        world.disk.cut_power_after(world.disk.operations());
        put(&store, &name("b"), &body(5, 3_000)).unwrap_err();
        drop(store);
        world.disk.power_on(LossPolicy::Sectors, seed);
        let (store, report) = world.open_with_report();
        assert!(report.damage.is_empty(), "seed {seed}: {report}");
        assert!(is_whole(&store, "a"), "seed {seed}");
        let found = read(&store, &name("b")).unwrap();
        assert!(found.is_none() || found == Some(body(5, 3_000)), "seed {seed}");
        if let Some((segment, offset)) = report.torn_tail {
            assert_eq!((segment.get(), found), (1, None), "seed {seed}");
            assert!(offset > 4_096 + 600, "seed {seed}: behind what was acknowledged");
            torn += 1;
        }
    }
    assert!(torn > 10, "{torn} tails were torn");
}

#[test]
fn damage_before_acknowledged_group_is_not_a_torn_tail() {
    let world = three_groups(false);
    let found = groups(&world.disk, LOG);
    assert_eq!(found.len(), 3);
    for (damaged, key) in [(0, "a"), (1, "b")] {
        for offset in found[damaged].bytes.clone() {
            let (store, report) = flipped(&world, offset);
            assert!(!report.damage.is_empty(), "offset {offset}: {report}");
            assert_eq!(report.torn_tail, None, "offset {offset}");
            assert!(!is_whole(&store, key) || read(&store, &name(key)).is_ok());
            for other in ["a", "b", "c"].iter().filter(|other| **other != key) {
                assert!(is_whole(&store, other), "offset {offset}: {other} is lost too");
            }
        }
    }
}

#[test]
fn idle_watermark_confirms_the_last_group() {
    let last = |is_idle| {
        let world = three_groups(is_idle);
        let group = groups(&world.disk, LOG)[2].bytes.clone();
        (world, group)
    };
    let (world, group) = last(true);
    for offset in group {
        let (store, report) = flipped(&world, offset);
        assert!(!report.damage.is_empty(), "offset {offset}: {report}");
        assert!(is_whole(&store, "a") && is_whole(&store, "b"), "offset {offset}");
        assert_ne!(read(&store, &name("c")).ok(), Some(Some(Vec::new())));
    }
    // Without it nothing distinguishes damage in the last group from a write interrupted by a power cut.
    let (world, group) = last(false);
    let (_, report) = flipped(&world, group.start + 3);
    assert!(report.damage.is_empty() && report.torn_tail.is_some(), "{report}");
}

#[test]
fn damaged_body_is_confirmed_by_the_next_group() {
    let world = three_groups(true);
    let groups = groups(&world.disk, LOG);
    let (store, report) = flipped(&world, groups[2].records[0].body.start + 7);
    assert_eq!(report.damage.len(), 1, "{report}");
    assert_eq!(report.damage[0].reason, Malformed::Checksum);
    let message = read(&store, &name("c")).unwrap_err().to_string();
    assert!(message.contains("photos/c") && message.contains(LOG), "{message}");
}

#[test]
fn damaged_watermark_keeps_the_following_group() {
    let world = World::new(1);
    let store = world.open();
    put(&store, &name("a"), &body(5, 600)).unwrap();
    idle(&store);
    put(&store, &name("b"), &body(5, 600)).unwrap();
    let world = killed(world, store);
    let watermark = groups(&world.disk, LOG)[1].bytes.clone();
    for offset in watermark {
        let (store, report) = flipped(&world, offset);
        assert!(is_whole(&store, "a") && is_whole(&store, "b"), "offset {offset}: {report}");
    }
}

#[test]
fn damaged_fact_value_loses_only_that_fact() {
    let world = World::new(1);
    let store = world.open();
    commit(&store, engine::Batch::new().put_fact(fact("lost"), vec![7; 50].into())).unwrap();
    commit(&store, engine::Batch::new().put_fact(fact("kept"), vec![8; 50].into())).unwrap();
    put(&store, &name("a"), &body(5, 600)).unwrap();
    store.close().unwrap();
    drop(store);
    world.disk.remove("index.redb").unwrap();
    let value = groups(&world.disk, LOG)[0].records[0].body.start;
    let (store, report) = flipped(&world, value);
    assert_eq!(report.damage.len(), 1, "{report}");
    assert_eq!(store.fact(&fact("lost")).unwrap(), None);
    assert_eq!(store.fact(&fact("kept")).unwrap().unwrap(), vec![8; 50]);
    assert!(is_whole(&store, "a"));
}
