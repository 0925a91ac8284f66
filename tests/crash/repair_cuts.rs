//! Interrupted repairs can be restarted: the power is cut at every disk operation of a repair, under every loss policy,
//! and the next repair ends in the same state as the first would have.

use std::collections::BTreeSet;

use engine::disk::Disk;
use engine::disk::sim::{LossPolicy, SimDisk};
use engine::fsck::{RepairReport, Severity};
use memchr::memmem;
use tests::store::{Model, World, name, read};

use crate::bit_rot::{Past, Specimen};
use crate::survivor::fingerprint;

/// Damage before the repair, and the objects that it costs.
struct Damage {
    what: &'static str,
    lost: &'static [&'static str],
    done: fn(&SimDisk),
}

const LOG: &str = "log/0000000001.seg";

const DAMAGES: &[Damage] = &[
    Damage { what: "STORE", lost: &[], done: |disk| disk.flip("STORE", 20, 1) },
    Damage { what: "no STORE", lost: &[], done: |disk| disk.remove("STORE").unwrap() },
    Damage { what: "a header", lost: &[], done: |disk| disk.flip(LOG, 30, 1) },
    Damage {
        what: "a footer",
        lost: &[],
        done: |disk| {
            let bytes = disk.bytes(LOG).len() as u64;
            disk.flip(LOG, bytes - 70, 1);
        },
    },
    Damage {
        what: "the index",
        lost: &[],
        done: |disk| disk.overwrite("index.redb", 4_096, &[9; 9_000]),
    },
    Damage {
        what: "a big segment that nothing names",
        lost: &[],
        done: |disk| {
            let file = disk.create("big/00/0000000999.seg").unwrap();
            file.write_at(0, &[&[9; 5_000]]).unwrap();
            file.sync_data().unwrap();
        },
    },
    Damage {
        what: "a big segment is gone",
        lost: &["big"],
        done: |disk| {
            let bigs = disk.paths().into_iter().filter(|path| path.starts_with("big/"));
            let first = bigs.min().unwrap();
            disk.remove(&first).unwrap();
        },
    },
    Damage {
        what: "the head of an object",
        lost: &[],
        done: |disk| disk.flip(LOG, offset_of_body(disk) - 20, 1),
    },
    Damage {
        what: "an object from head to body, a header and STORE",
        lost: &["kept"],
        done: |disk| {
            disk.flip(LOG, offset_of_body(disk) - 20, 1);
            disk.flip(LOG, offset_of_body(disk) + 20, 1);
            disk.flip(LOG, 2_100, 1);
            disk.flip("STORE", 3, 1);
        },
    },
];

/// Returns the offset of an object's body.
fn offset_of_body(disk: &SimDisk) -> u64 {
    let kept = tests::store::body(1, 300);
    let bytes = disk.bytes(LOG);
    // Part of it may be damaged already.
    memmem::find(&bytes, &kept[..16]).unwrap() as u64
}

#[test]
fn interrupted_repair_is_completed_by_the_next_one() {
    let (mut cuts, mut crashes, mut survivors) = (0, 0, 0);
    for past in [Past::Closed, Past::Killed] {
        let specimen = Specimen::new(past);
        for damage in DAMAGES {
            let world = World::on(specimen.fork(), 11);
            (damage.done)(&world.disk);
            // A removed file stays removed after a power cut.
            for folder in ["", "big/00"] {
                world.disk.sync_folder(folder).unwrap();
            }
            world.disk.record_cuts();
            let (first, said) = world.repair().unwrap();
            let recorded = world.disk.take_cuts();
            assert!(!recorded.is_empty() && !said.is_empty(), "{past:?}, {}", damage.what);
            assert!(first.after.is_clean(), "{past:?}, {}:\n{}", damage.what, first.after);
            let has_loss = first.before.worst() == Some(Severity::Loss);
            assert_eq!(has_loss, !damage.lost.is_empty(), "{}:\n{}", damage.what, first.before);
            must_stay(&world.disk, &first, damage);
            check_store(&world, specimen.model(), damage, "not cut");
            let mut seen = BTreeSet::new();
            for (at, cut) in recorded.into_iter().enumerate() {
                cuts += 1;
                for policy in LossPolicy::ALL {
                    crashes += 1;
                    let disk = cut.fork();
                    disk.power_on(policy, at as u64);
                    if !seen.insert(fingerprint(&disk)) {
                        continue;
                    }
                    survivors += 1;
                    let world = World::on(disk, 12);
                    let place = format!("{past:?}, {}, cut {at}, {policy:?}", damage.what);
                    let (again, said) = world.repair().unwrap_or_else(|e| panic!("{place}: {e}"));
                    assert!(again.after.is_clean(), "{place}: {said:?}\n{}", again.after);
                    check_store(&world, specimen.model(), damage, &place);
                }
            }
        }
    }
    println!("{cuts} cut points, {crashes} crashes, {survivors} different survivors");
}

/// Checks that a reported repair survives a power cut right afterwards.
fn must_stay(disk: &SimDisk, repaired: &RepairReport, damage: &Damage) {
    let disk = disk.fork();
    disk.cut_power();
    disk.power_on(LossPolicy::KeepSynced, 0);
    let report = World::on(disk, 13).fsck(true).unwrap();
    assert_eq!(report.findings, repaired.after.findings, "{}", damage.what);
}

fn check_store(world: &World, model: &Model, damage: &Damage, place: &str) {
    let store = world.open();
    for (object, (bytes, _)) in &model.objects {
        let found = read(&store, object);
        let is_lost = damage.lost.iter().any(|key| name(key) == *object);
        match found {
            Ok(Some(found)) if !is_lost => assert!(found == *bytes, "{place}: {object}"),
            Err(engine::Error::Corrupt(_)) if is_lost => {}
            other => panic!("{place}: {object}: {:?}", other.map(|found| found.map(|b| b.len()))),
        }
    }
    let facts = store.facts("", None, 1_000).unwrap();
    assert!(facts.into_iter().eq(model.facts.clone()), "{place}");
    store.close().unwrap();
}
