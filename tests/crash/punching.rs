//! Compaction on a disk without room for copies: dead bodies are punched out in place. Live data stays, readers
//! continue, and a power cut at any operation changes neither.

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use engine::Store;
use engine::compaction::CompactionRules;
use engine::disk::Disk;
use engine::disk::faults::{Fault, FaultRule, Operation, PathPattern};
use engine::disk::sim::{LossPolicy, SimDisk};
use tests::store::{Contents, Model, World, body, compact, delete, name, put, read, roll_over};

use crate::survivor::check;

/// Creates segments full of bodies of 100 KB, every other of which is dead, on a full disk. `before` gets the store
/// before any of them is deleted.
fn full<T>(before: impl FnOnce(&Store) -> T) -> (World, Store, Model, T) {
    let world = World::wide(21);
    let store = world.open();
    let mut model = Model::default();
    for at in 0..60 {
        let name = name(&format!("photo/{at}"));
        let bytes = body(at, 100_000);
        put(&store, &name, &bytes).unwrap();
        model.objects.insert(name, (Bytes::from(bytes), false));
        roll_over(&store).unwrap();
    }
    let seen = before(&store);
    for at in (0..60).step_by(2) {
        let name = name(&format!("photo/{at}"));
        delete(&store, &name).unwrap();
        model.objects.remove(&name);
    }
    store.checkpoint().unwrap();
    world.disk.set_free_bytes(300_000);
    (world, store, model, seen)
}

fn free_bytes(world: &World) -> u64 {
    engine::disk::Disk::free_bytes(&world.disk).unwrap()
}

#[test]
fn hole_punching_reclaims_dead_bodies_without_copy_space() {
    let (world, store, model, ()) = full(|_| ());
    let before = free_bytes(&world);
    let report = compact(&store).unwrap();
    assert!(report.punched_bytes > 1_000_000, "{report:?}");
    assert!(free_bytes(&world) > before + 1_000_000);
    for (name, (body, _)) in &model.objects {
        assert_eq!(read(&store, name).unwrap().as_deref(), Some(&**body), "{name}");
    }
    // With room again, the rest is compacted like any other segment.
    world.disk.set_free_bytes(100_000_000);
    let later = compact(&store).unwrap();
    assert_eq!(later.punched_bytes, 0, "{later:?}");
    store.close().unwrap();
    drop(store);
    world.disk.cut_power();
    world.disk.power_on(LossPolicy::KeepSynced, 0);
    check(&world.disk, &[&model]).unwrap();
}

#[test]
fn segment_with_readers_is_not_punched() {
    let (world, store, model, readers) = full(|store| {
        let open = |at: u64| {
            let object = store.get(&name(&format!("photo/{at}"))).unwrap().unwrap();
            let open = store.body(&object).unwrap();
            let piece = open.read(0..100_000).unwrap();
            (at, open, piece)
        };
        (0..60).step_by(2).map(open).collect::<Vec<_>>()
    });
    let held = compact(&store).unwrap();
    for (at, open, piece) in &readers {
        assert_eq!(open.read(0..100_000).unwrap(), body(*at, 100_000), "photo/{at}; {held:?}");
        assert_eq!(piece, &body(*at, 100_000));
    }
    assert_eq!(held.punched_bytes, 0, "every segment is read");
    let pieces: Vec<_> = readers.into_iter().map(|(_, _, piece)| piece).collect();
    // The copies that the first compaction could still make, into the space of the spare segment, freed room.
    world.disk.set_free_bytes(300_000);
    // Pieces of the newest segment, which was not mapped, are copies.
    let concurrent = compact(&store).unwrap();
    assert!(concurrent.punched_bytes <= 100_000, "pieces are in use: {concurrent:?}");
    drop(pieces);
    let alone = compact(&store).unwrap();
    assert!(alone.punched_bytes > 1_000_000, "{alone:?}; before: {held:?}, {concurrent:?}");
    for (name, (body, _)) in &model.objects {
        assert_eq!(read(&store, name).unwrap().as_deref(), Some(&**body), "{name}");
    }
}

#[test]
fn backup_keeps_bodies_that_died_after_it_began() {
    let (world, store, mut model, ()) = full(|_| ());
    let at_first = model.clone();
    let no_room = PathPattern::Prefix("compacted/".to_owned());
    world.disk.inject(FaultRule::always(Operation::Create, no_room, Fault::NoSpace));
    let image = SimDisk::with_seed(1);
    let to: Arc<dyn Disk> = Arc::new(image.clone());
    let mut punched = None;
    let copied = store.backup(&to, &mut |_| {
        if punched.is_none() {
            for at in (1..60).step_by(2) {
                let name = name(&format!("photo/{at}"));
                delete(&store, &name).unwrap();
                model.objects.remove(&name);
            }
            punched = Some(compact(&store).unwrap().punched_bytes);
        }
        ControlFlow::Continue(())
    });
    assert_eq!(copied.unwrap().damage, []);
    assert_eq!(punched, Some(0), "the backup needs it");
    let (restored, report) = World::on(image, 22).open_with_report();
    assert_eq!(report.damage_count(), 0, "{report}");
    Contents::of(&restored).unwrap().check_against(&at_first).unwrap();
    assert!(compact(&store).unwrap().punched_bytes > 1_000_000, "now nobody does");
    Contents::of(&store).unwrap().check_against(&model).unwrap();
}

#[test]
fn hole_punching_survives_power_loss_at_every_operation() {
    let (world, store, model, ()) = full(|_| ());
    world.disk.record_cuts();
    // The first step only: punched, and not copied.
    let rules = CompactionRules { store_dead_percent_min: 0, segment_dead_percent_min: 1 };
    let mut steps = 0;
    let _ = store.compact(rules, None, &mut |_| {
        steps += 1;
        if steps > 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let cuts = world.disk.take_cuts();
    assert!(cuts.len() > 20, "{} operations", cuts.len());
    let mut checked = 0;
    for (at, cut) in cuts.iter().enumerate().step_by(cuts.len() / 40 + 1) {
        for policy in LossPolicy::ALL {
            let disk = cut.fork();
            disk.power_on(policy, at as u64);
            disk.set_free_bytes(100_000_000);
            check(&disk, &[&model])
                .unwrap_or_else(|what| panic!("cut at {at}, {policy:?}: {what}"));
            checked += 1;
        }
    }
    println!("{} cut points, {checked} survivors checked", cuts.len());
}
