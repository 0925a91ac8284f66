//! Power cuts in the middle of a scrub that records its findings: the store is unchanged, and records are whole or
//! absent.

use std::ops::ControlFlow;

use engine::Store;
use engine::damage::Malformed;
use engine::disk::sim::LossPolicy;
use tests::store::{Model, World, batch, commit, name};

use crate::scenario::beginning;
use crate::survivor::{check, check_after_kill};

fn scrub(store: &Store) -> u64 {
    store.scrub(&mut |_| ControlFlow::Continue(())).unwrap().damage.count()
}

#[test]
fn scrub_power_loss_changes_only_scrub_results() {
    let world = World::new(7);
    let mut model = Model::default();
    let store = world.open();
    for changes in beginning() {
        commit(&store, batch(&store, &changes).unwrap()).unwrap();
        model.apply(&changes);
    }
    store.close().unwrap();
    drop(store);
    let store = world.open();
    world.disk.record_cuts();
    assert_eq!(scrub(&store), 0);
    let cuts = world.disk.take_cuts();
    assert!(!cuts.is_empty(), "a scrub writes notes");
    for (at, cut) in cuts.iter().enumerate() {
        for policy in LossPolicy::ALL {
            for seed in 0..4 {
                let disk = cut.fork();
                disk.power_on(policy, seed);
                check(&disk, &[&model]).unwrap_or_else(|what| {
                    panic!("cut at operation {at}, {policy:?} seed {seed}: {what}")
                });
            }
        }
        check_after_kill(&cut.fork(), &[&model]).unwrap();
    }
}

#[test]
fn scrub_results_are_atomic_under_power_loss() {
    let world = World::new(7);
    let store = world.open();
    for changes in beginning() {
        commit(&store, batch(&store, &changes).unwrap()).unwrap();
    }
    let path = world.files_in("big/").remove(0);
    world.disk.flip(&path, 5_000, 1);
    world.disk.record_cuts();
    assert_eq!(scrub(&store), 1);

    for cut in world.disk.take_cuts() {
        for policy in LossPolicy::ALL {
            let disk = cut.fork();
            disk.power_on(policy, 1);
            let store = World::on(disk, 8).open();
            let damage = store.damage().unwrap();
            assert!(damage.count() <= 1);
            for place in &damage.places {
                assert_eq!((place.file(), place.reason), (path.clone(), Malformed::Checksum));
                assert_eq!(place.name, Some(engine::damage::RecordName::Object(name("big"))));
            }
            assert_eq!(scrub(&store), 1);
        }
    }
    drop(store);
    assert_eq!(World::on(world.disk.fork(), 9).open().damage().unwrap().count(), 1);
}
