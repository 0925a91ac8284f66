//! Scrubs: every kind of damage is found and attributed, damage to dead bytes is none, rate and order are kept, and
//! findings are recorded.

use std::ops::ControlFlow;
use std::time::Duration;

use engine::damage::{DamageList, Malformed, RecordName};
use engine::disk::faults::{Fault, FaultRule, Operation, PathPattern};
use engine::format::{BigTrailer, Checksum, SegmentHeader};
use engine::limits::{
    BLOCK_BYTES, DAMAGE_LISTED_MAX, SCRUB_BYTES_PER_SECOND_MIN, SCRUB_PERIOD_SECONDS,
    SCRUB_SCHEDULE_POLL_MS,
};
use engine::scrub::{ScrubOptions, ScrubReport};
use engine::{Batch, Error, Health, Store};
use tests::fixtures::find_bytes;
use tests::store::{START_MS, World, body, commit, delete, fact, idle, name, put, read, roll_over};

fn scrub(store: &Store) -> ScrubReport {
    store.scrub(&mut |_| ControlFlow::Continue(())).unwrap()
}

/// Returns the owners of the damage: keys of objects, names of facts, or nothing.
fn owners(damage: &DamageList) -> Vec<String> {
    let owner = |name: &Option<RecordName>| match name {
        Some(RecordName::Object(name)) => name.key.as_str().to_owned(),
        Some(RecordName::Fact(name)) => format!("fact {name}"),
        None => String::new(),
    };
    damage.places.iter().map(|place| owner(&place.name)).collect()
}

/// Creates a store with a sealed log segment and a big segment, opened again.
fn sealed(world: &World) -> Store {
    let store = world.open();
    put(&store, &name("one"), &body(1, 3_000)).unwrap();
    put(&store, &name("two"), &body(2, 3_000)).unwrap();
    commit(&store, Batch::new().put_fact(fact("token"), body(3, 40).into())).unwrap();
    put(&store, &name("big"), &body(4, 3 * BLOCK_BYTES)).unwrap();
    put(&store, &name("dead"), &body(5, 3_000)).unwrap();
    delete(&store, &name("dead")).unwrap();
    put(&store, &name("last"), &body(6, 100)).unwrap();
    store.close().unwrap();
    drop(store);
    world.open()
}

#[test]
fn scrub_of_intact_store_verifies_every_segment() {
    let world = World::new(1);
    let store = sealed(&world);
    put(&store, &name("growing"), &body(7, 2_000)).unwrap();
    let report = scrub(&store);
    assert_eq!((report.segments, report.damage), (3, DamageList::default()));
    let on_disk: usize =
        world.files_in("big/").iter().map(|path| world.disk.bytes(path).len()).sum();
    assert!(report.bytes > 3 * BLOCK_BYTES as u64 && report.bytes < on_disk as u64 + 30_000);
    let stats = store.stats().unwrap();
    assert_eq!(stats.verified_since_ms, Some(START_MS));
    let verified: Vec<_> = stats.segments.iter().map(|segment| segment.verified_ms).collect();
    // The log ends in the last one: it is read up to its end, and still grows.
    assert_eq!(verified, [Some(START_MS), Some(START_MS), None]);
}

#[test]
fn scrub_finds_each_damage_kind_and_names_the_object() {
    let world = World::new(2);
    drop(sealed(&world));
    let one = find_bytes(&world.disk, &body(1, 3_000));
    let token = find_bytes(&world.disk, &body(3, 40));
    let big = find_bytes(&world.disk, &body(4, 3 * BLOCK_BYTES));
    let log_bytes = world.disk.bytes(&one.0).len() as u64;
    let big_bytes = world.disk.bytes(&big.0).len() as u64;
    // The last bytes of a head are the checksums of the body's blocks.
    let cases = [
        (one.0.as_str(), one.1 + 2_999, "one"),
        (&one.0, one.1 - 10, "one"),
        (&one.0, token.1 + 5, "fact token"),
        (&one.0, token.1 - 3, "fact token"),
        // A header page's first and second copy, a group's header, entries and trailer of a footer.
        (&one.0, 30, ""),
        (&one.0, 2_048 + 30, ""),
        (&one.0, 4_096 + 20, ""),
        (&one.0, log_bytes - 100, ""),
        (&one.0, log_bytes - 10, ""),
        (&big.0, big.1, "big"),
        (&big.0, big.1 + 2 * BLOCK_BYTES as u64 + 7, "big"),
        (&big.0, big_bytes - 70, "big"),
        (&big.0, big_bytes - 20, "big"),
        (&big.0, 50, "big"),
    ];
    for (path, offset, owner) in cases {
        let damaged = World::on(world.disk.fork(), 3);
        let store = damaged.open();
        damaged.disk.flip(path, offset, 4);
        let report = scrub(&store);
        let found = owners(&report.damage);
        assert!(found.iter().any(|found| found == owner), "{path} {offset}: {:?}", report.damage);
        let others = found.iter().filter(|found| !found.is_empty() && *found != owner).count();
        assert_eq!(others, 0, "{path} {offset}: {:?}", report.damage);
        assert!(report.damage.places.iter().all(|place| place.file() == path));
        assert_eq!(store.damage().unwrap(), report.damage);
        assert_eq!(store.health(), Health::Writable);
        // A repaired place is removed from the record.
        damaged.disk.flip(path, offset, 4);
        assert_eq!(scrub(&store).damage.count(), 0);
        assert_eq!(store.damage().unwrap(), DamageList::default());
    }
}

#[test]
fn scrub_names_all_objects_of_an_unreadable_segment() {
    let world = World::new(2);
    drop(sealed(&world));
    let (log, _) = find_bytes(&world.disk, &body(1, 3_000));
    for remove in [false, true] {
        let damaged = World::on(world.disk.fork(), 3);
        let store = damaged.open();
        match remove {
            true => engine::disk::Disk::remove(&damaged.disk, &log).unwrap(),
            false => damaged.disk.overwrite(&log, 0, &[0; 4_096]),
        }
        let report = scrub(&store);
        let mut found = owners(&report.damage);
        found.sort();
        assert_eq!(found, ["", "big", "fact token", "last", "one", "two"]);
        drop(store);
    }
}

#[test]
fn scrub_ignores_damaged_dead_body() {
    let world = World::new(4);
    let store = sealed(&world);
    let (path, at) = find_bytes(&world.disk, &body(5, 3_000));
    world.disk.overwrite(&path, at, &[0; 3_000]);
    assert_eq!(scrub(&store).damage.count(), 0);
    // A big segment is deleted with its object, even while it is read.
    delete(&store, &name("big")).unwrap();
    let report = scrub(&store);
    assert_eq!((report.segments, report.damage.count()), (2, 0));
}

#[test]
fn scrub_detects_hash_mismatch_with_valid_checksums() {
    let world = World::new(5);
    let store = sealed(&world);
    let (path, at) = find_bytes(&world.disk, &body(4, 3 * BLOCK_BYTES));
    world.disk.flip(&path, at, 1);
    let bytes = world.disk.bytes(&path);
    let context = SegmentHeader::decode_page(&bytes[..4_096]).unwrap().context();
    let trailer_at = bytes.len() - 64;
    let trailer_place = context.at(trailer_at as u64);
    let trailer = BigTrailer::decode(&bytes[trailer_at..], trailer_place).unwrap();
    let mut table = bytes[trailer_at - 12..trailer_at].to_vec();
    let block = Checksum::of(&bytes[4_096..4_096 + BLOCK_BYTES]).bind(context.at(4_096));
    table[..4].copy_from_slice(&block.0.to_le_bytes());
    let forged = BigTrailer { table: Checksum::of(&table), ..trailer };
    world.disk.overwrite(&path, trailer_at as u64 - 12, &table);
    world.disk.overwrite(&path, trailer_at as u64, &forged.encode(trailer_place));
    assert_eq!(owners(&scrub(&store).damage), ["big"]);
}

#[test]
fn scrub_reports_unreadable_sector_until_readable() {
    let world = World::new(6);
    let store = sealed(&world);
    let (path, _) = find_bytes(&world.disk, &body(4, 3 * BLOCK_BYTES));
    let place = PathPattern::Prefix(path);
    world.disk.inject(FaultRule::always(Operation::Read, place, Fault::Error).after(3));
    let report = scrub(&store);
    assert_eq!(owners(&report.damage), ["big"]);
    assert_eq!(report.damage.places[0].reason, Malformed::Unreadable);
    world.disk.clear_faults();
    assert_eq!(scrub(&store).damage.count(), 0);
    assert_eq!(store.damage().unwrap().count(), 0);
}

#[test]
fn scrub_results_survive_reopen_but_not_index_loss() {
    let world = World::new(7);
    let store = sealed(&world);
    let (path, at) = find_bytes(&world.disk, &body(1, 3_000));
    world.disk.flip(&path, at, 1);
    let found = scrub(&store).damage;
    assert_eq!(owners(&found), ["one"]);
    drop(store);
    world.clock.advance(1_000);
    let store = world.open();
    assert_eq!(store.damage().unwrap(), found);
    let stats = store.stats().unwrap();
    assert_eq!(stats.damage, found);
    assert_eq!((stats.segments[0].damage, stats.segments[0].verified_ms), (1, Some(START_MS)));
    // Found again, it is not new.
    assert_eq!(scrub(&store).damage.places[0].found_ms, START_MS + 1_000);
    assert_eq!(store.damage().unwrap(), found);
    // The object is put again: the damaged bytes are dead.
    put(&store, &name("one"), &body(1, 3_000)).unwrap();
    assert_eq!(scrub(&store).damage.count(), 0);
    assert_eq!(store.damage().unwrap().count(), 0);
    drop(store);
    engine::disk::Disk::remove(&world.disk, "index.redb").unwrap();
    let store = world.open();
    assert!(store.stats().unwrap().segments.iter().all(|segment| segment.verified_ms.is_none()));
}

#[test]
fn damage_found_at_open_survives_checkpoint_and_reopen() {
    let world = World::new(8);
    let store = world.open();
    for key in ["one", "two", "three"] {
        put(&store, &name(key), &body(key.len() as u64, 900)).unwrap();
    }
    idle(&store);
    drop(store);
    let (path, at) = find_bytes(&world.disk, &body(3, 900));
    world.disk.flip(&path, at - 40, 1);
    let (store, report) = world.open_with_report();
    assert_eq!(report.damage.len(), 1);
    let noted = store.damage().unwrap();
    assert_eq!(noted.places[0].offset, report.damage[0].offset);
    put(&store, &name("after"), b"all works").unwrap();
    store.checkpoint().unwrap();
    store.close().unwrap();
    drop(store);
    let (store, report) = world.open_with_report();
    assert_eq!(report.damage, [], "the log before the checkpoint is not read again");
    assert_eq!(store.damage().unwrap(), noted);
    assert_eq!(store.stats().unwrap().damage, noted);
}

#[test]
fn damage_found_by_reads_is_recorded() {
    let world = World::wide(9);
    let store = world.open();
    put(&store, &name("small"), &body(1, 900)).unwrap();
    put(&store, &name("large"), &body(2, 2 * BLOCK_BYTES)).unwrap();
    put(&store, &name("old"), &body(3, 900)).unwrap();
    for seed in 1..=3 {
        let bytes = if seed == 2 { 2 * BLOCK_BYTES } else { 900 };
        let (path, at) = find_bytes(&world.disk, &body(seed, bytes));
        world.disk.flip(&path, at + bytes as u64 - 1, 1);
    }
    for key in ["small", "large", "old", "large"] {
        assert!(matches!(read(&store, &name(key)), Err(Error::Corrupt(_))));
    }
    delete(&store, &name("old")).unwrap();
    let mut noted = owners(&store.damage().unwrap());
    noted.sort();
    assert_eq!(noted, ["large", "small"]);
    store.close().unwrap();
    drop(store);
    assert_eq!(world.open().stats().unwrap().damage.count(), 2);
}

#[test]
fn scrub_counts_damage_beyond_the_list_limit() {
    let world = World::new(10);
    let store = world.open();
    let many = DAMAGE_LISTED_MAX as u64 + 44;
    for seed in 0..many {
        put(&store, &name(&format!("{seed:03}")), &body(1_000 + seed, 100)).unwrap();
    }
    store.close().unwrap();
    drop(store);
    let store = world.open();
    for seed in 0..many {
        let (path, at) = find_bytes(&world.disk, &body(1_000 + seed, 100));
        world.disk.flip(&path, at, 1);
    }
    let report = scrub(&store);
    assert_eq!((report.damage.places.len(), report.damage.count()), (DAMAGE_LISTED_MAX, many));
    assert_eq!(store.damage().unwrap().count(), many);
    drop(store);
    let noted = world.open().damage().unwrap();
    assert_eq!((noted.places.len(), noted.count()), (DAMAGE_LISTED_MAX, many));
}

#[test]
fn scrub_results_stay_in_memory_when_disk_is_full() {
    let world = World::new(11);
    let store = sealed(&world);
    let (path, at) = find_bytes(&world.disk, &body(1, 3_000));
    world.disk.flip(&path, at, 1);
    world.disk.set_free_bytes(1 << 20);
    let writes = world.disk.operations();
    assert_eq!(owners(&scrub(&store).damage), ["one"]);
    assert_eq!(world.disk.operations(), writes, "nothing is written");
    assert_eq!(owners(&store.damage().unwrap()), ["one"]);
    assert_eq!(store.health(), Health::Writable);
    world.disk.set_free_bytes(1 << 30);
    store.close().unwrap();
    drop(store);
    assert_eq!(owners(&world.open().damage().unwrap()), ["one"]);
}

#[test]
fn scrub_tolerates_segment_being_sealed() {
    let mut moment = 0;
    loop {
        let world = World::new(12);
        let store = world.open();
        // The first segment is full, and waits to be sealed.
        let mut at = 0;
        while world.files_in("log/").len() < 2 {
            put(&store, &name(&format!("key/{at}")), &body(at, 3_000)).unwrap();
            at += 1;
        }
        let mut looks = 0;
        let scrubbed = store.scrub(&mut |_| {
            if looks == moment {
                roll_over(&store).unwrap();
            }
            looks += 1;
            ControlFlow::Continue(())
        });
        scrubbed.unwrap();
        assert_eq!(store.damage().unwrap().count(), 0, "sealed at look {moment}");
        moment += 1;
        if looks < moment {
            break;
        }
    }
    assert!(moment > 5, "{moment} looks");
}

#[test]
fn cancelled_scrub_keeps_its_results() {
    let world = World::new(12);
    let store = sealed(&world);
    let mut looks = 0;
    let stopped = store.scrub(&mut |progress| {
        looks += 1;
        assert!(progress.done_bytes <= progress.total_bytes && progress.total_items == 2);
        if progress.done_items == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(matches!(stopped, Err(Error::Cancelled)) && looks > 1);
    let verified = store.stats().unwrap().segments;
    assert_eq!(verified.iter().filter(|segment| segment.verified_ms.is_some()).count(), 1);
}

/// Advances the clock step by step until nothing is due. Returns the elapsed milliseconds.
fn step_until_idle(world: &World, store: &Store) -> u64 {
    let mut passed = 0;
    for _ in 0..100_000 {
        let pause = store.step_scrub().unwrap();
        if pause >= Duration::from_secs(60) {
            return passed;
        }
        // Nothing is read before it is due.
        let reads = world.disk.reads();
        if pause > Duration::from_millis(2) {
            store.step_scrub().unwrap();
            assert_eq!(world.disk.reads(), reads);
        }
        let pause_ms = pause.as_micros().div_ceil(1_000) as u64;
        world.clock.advance(pause_ms);
        passed += pause_ms;
    }
    panic!("the scrub does not end");
}

#[test]
fn scrub_respects_rate_and_rests_until_next_period() {
    for (rate_max, rate) in [(64 << 20, SCRUB_BYTES_PER_SECOND_MIN), (256 << 10, 256 << 10)] {
        let mut world = World::new(13);
        let period = Duration::from_secs(SCRUB_PERIOD_SECONDS);
        world.options.scrub = Some(ScrubOptions { period, bytes_per_second_max: rate_max });
        let store = world.open();
        let bytes = 2 << 20;
        put(&store, &name("big"), &body(1, bytes)).unwrap();
        let took = step_until_idle(&world, &store);
        let asked = bytes as u64 * 1_000 / rate;
        assert!((asked..asked + 1_000).contains(&took), "{took} ms at {rate} bytes a second");
        let verified = || store.stats().unwrap().segments.iter().map(|it| it.verified_ms).max();
        let first = verified();
        // The scrubber is idle.
        world.clock.advance(SCRUB_SCHEDULE_POLL_MS * 10);
        let reads = world.disk.reads();
        store.step_scrub().unwrap();
        store.step_scrub().unwrap();
        assert!(world.disk.reads() - reads <= 4, "it looks, and reads no segment");
        world.clock.advance(SCRUB_PERIOD_SECONDS * 1_000);
        step_until_idle(&world, &store);
        assert!(verified() > first);
    }
}

#[test]
fn scrub_starts_with_oldest_verification() {
    let world = World::new(14);
    let store = world.open();
    let verified = |store: &Store| -> Vec<Option<u64>> {
        store.stats().unwrap().segments.iter().map(|segment| segment.verified_ms).collect()
    };
    put(&store, &name("a"), &body(1, 200_000)).unwrap();
    step_until_idle(&world, &store);
    world.clock.advance(SCRUB_PERIOD_SECONDS * 500);
    put(&store, &name("b"), &body(2, 200_000)).unwrap();
    step_until_idle(&world, &store);
    world.clock.advance(SCRUB_PERIOD_SECONDS * 2_000);
    for (at, key) in (3..).zip(["c", "d"]) {
        put(&store, &name(key), &body(at, 200_000)).unwrap();
        world.clock.advance(1);
    }
    roll_over(&store).unwrap();
    let before = verified(&store);
    let mut order = Vec::new();
    for _ in 0..10_000 {
        let pause = store.step_scrub().unwrap();
        world.clock.advance(pause.as_millis() as u64 + 1);
        let now = verified(&store);
        let new = (0..now.len()).filter(|at| now[*at] != before[*at] && !order.contains(at));
        order.extend(new.collect::<Vec<_>>());
        if order.len() == 4 {
            break;
        }
    }
    // Big segments in creation order; the log is still being written.
    let big: Vec<_> = (0..before.len())
        .filter(|at| {
            store.stats().unwrap().segments[*at].class == engine::damage::SegmentClass::Big
        })
        .collect();
    assert_eq!(order, big);
}

#[test]
fn scrub_does_not_starve_old_segments() {
    let mut world = World::new(16);
    let period = Duration::from_secs(60);
    world.options.scrub = Some(ScrubOptions { period, bytes_per_second_max: 10_000 });
    let store = world.open();
    let mut made = 0;
    let mut put_one = |store: &Store| {
        put(store, &name(&format!("{made}")), &body(made, 20_000)).unwrap();
        made += 1;
    };
    put_one(&store);
    let first = |store: &Store| {
        let segments = store.stats().unwrap().segments.into_iter();
        let mut big = segments.filter(|segment| segment.class == engine::damage::SegmentClass::Big);
        big.next().unwrap().verified_ms
    };
    let mut verified = std::collections::BTreeSet::new();
    // Twice as much is written as is read.
    for _ in 0..3_000 {
        world.clock.advance(1_000);
        put_one(&store);
        for _ in 0..4 {
            store.step_scrub().unwrap();
        }
        verified.extend(first(&store));
        if verified.len() == 2 {
            return;
        }
    }
    panic!("the first segment was verified {} times", verified.len());
}

#[test]
fn close_cancels_manual_scrub() {
    let world = World::wide(17);
    let store = world.open();
    for at in 0..15 {
        put(&store, &name(&format!("{at}")), &body(at, 100_000)).unwrap();
    }
    let again = store.clone();
    let scrubbed = store.scrub(&mut |_| {
        again.close().unwrap();
        let place = PathPattern::Suffix(".seg".to_owned());
        world.disk.inject(FaultRule::always(Operation::Read, place, Fault::Error));
        ControlFlow::Continue(())
    });
    assert!(matches!(scrubbed, Err(Error::Cancelled)), "{scrubbed:?}");
    assert!(world.disk.fault_count() <= 1, "{} reads after that", world.disk.fault_count());
}

#[test]
fn scrub_cancels_after_the_current_read() {
    let world = World::wide(18);
    let store = world.open();
    for at in 0..15 {
        put(&store, &name(&format!("{at}")), &body(at, 100_000)).unwrap();
    }
    store.close().unwrap();
    drop(store);
    let (path, first) = find_bytes(&world.disk, &body(0, 100_000));
    let (_, last) = find_bytes(&world.disk, &body(14, 100_000));
    // With all group headers damaged, the rest of the segment is searched; and the index, for the owners of the
    // records.
    for at in (0..15).map(|at| first + (last - first) / 14 * at) {
        world.disk.overwrite(&path, at.saturating_sub(400), &[0; 300]);
    }
    let mut stops = 0;
    loop {
        let mut world = World::on(world.disk.fork(), 19);
        world.options.segment_bytes = 2 << 20;
        world.options.inline_bytes_max = 192 << 10;
        let store = world.open();
        let mut asked = 0;
        let scrubbed = store.scrub(&mut |_| {
            asked += 1;
            if asked <= stops {
                return ControlFlow::Continue(());
            }
            let place = PathPattern::Suffix(".seg".to_owned());
            world.disk.inject(FaultRule::always(Operation::Read, place, Fault::Error));
            ControlFlow::Break(())
        });
        match scrubbed {
            Ok(report) => {
                assert!(report.damage.count() > 10, "{report:?}");
                break;
            }
            Err(Error::Cancelled) => {}
            Err(other) => panic!("{other}"),
        }
        assert_eq!(world.disk.fault_count(), 0, "stopped at {stops}");
        assert_eq!(store.damage().unwrap().count(), 0, "what was cut short is not believed");
        stops += 1;
    }
    assert!(stops > 8, "{stops}");
}

#[test]
fn scrub_thread_finds_damage_and_stops_with_store() {
    let mut world = World::new(15);
    drop(sealed(&world));
    let (path, at) = find_bytes(&world.disk, &body(1, 3_000));
    world.disk.flip(&path, at, 1);
    world.options.scrub = Some(ScrubOptions::default());
    let store = world.open_with_threads();
    for _ in 0..10_000 {
        // The pieces are as far apart as the clock says, and the thread polls it in real time.
        world.clock.advance(1_000);
        if store.damage().unwrap().count() > 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(owners(&store.damage().unwrap()), ["one"]);
    store.close().unwrap();
}
