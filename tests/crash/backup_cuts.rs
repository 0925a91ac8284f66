//! Power cuts in the middle of every disk operation of a first and of a later backup, on the disk of the image and on
//! that of the store: the image is the previous or the new one, and the store is unchanged.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use engine::disk::Disk;
use engine::disk::sim::{LossPolicy, SimDisk};
use engine::{Create, Error, Store};
use tests::fixtures::back_up;
use tests::store::{Change, Contents, Model, World, batch, body, commit, name, roll_over};

use crate::survivor::{check, fingerprint};

/// Returns changes over several segments, with large objects that are put and deleted.
fn changes(turn: u64) -> Vec<Vec<Change>> {
    let put = |key: String, seed: u64, length| {
        Change::Put(name(&key), Bytes::from(body(100 * turn + seed, length)))
    };
    let mut all: Vec<Vec<Change>> =
        (0..30).map(|at| vec![put(format!("key/{at}"), at, 3_000)]).collect();
    all.push(vec![put("big/stays".into(), 50, 9_000), put(format!("big/{turn}"), 51, 7_000)]);
    all.push(vec![put("big/brief".into(), 52, 6_000)]);
    all.push(vec![Change::Delete(name("key/3")), Change::Delete(name("big/brief"))]);
    all
}

fn do_all(store: &Store, model: &mut Model, turn: u64) {
    for changes in changes(turn) {
        commit(store, batch(store, &changes).unwrap()).unwrap();
        model.apply(&changes);
        roll_over(store).unwrap();
    }
}

/// Returns the contents of the opened image; none where there is no image yet.
fn open_image(disk: &SimDisk) -> std::result::Result<Option<Contents>, String> {
    let mut world = World::on(disk.clone(), 8);
    world.options.create = Create::Never;
    match world.try_open() {
        Ok((store, report)) if report.damage.is_empty() => Contents::of(&store).map(Some),
        Ok((_, report)) => Err(format!("damage: {report}")),
        Err(Error::NotAStore(_)) => Ok(None),
        Err(error) => Err(format!("it does not open: {error}")),
    }
}

struct Tried {
    cuts: usize,
    survivors: usize,
    old: usize,
    new: usize,
}

/// Checks every cut of a backup: the image before it, or after it; then the backup is repeated.
fn must_be_one_of(store: &Store, cuts: &[SimDisk], before: Option<&Model>, after: &Model) -> Tried {
    let mut seen = BTreeSet::new();
    let mut tried = Tried { cuts: cuts.len(), survivors: 0, old: 0, new: 0 };
    for (at, cut) in cuts.iter().enumerate() {
        for (policy, seed) in LossPolicy::ALL.iter().flat_map(|it| (0..2).map(move |s| (*it, s))) {
            let disk = cut.fork();
            disk.power_on(policy, seed + 1_000 * at as u64);
            if !seen.insert(fingerprint(&disk)) {
                continue;
            }
            tried.survivors += 1;
            let what = format!("cut {at} of {}, {policy:?} seed {seed}", cuts.len());
            let again = disk.fork();
            let found = open_image(&disk).unwrap_or_else(|why| panic!("{what}: {why}"));
            let is_old = match (&found, before) {
                (None, before) => before.is_none(),
                (Some(found), Some(before)) => found.check_against(before).is_ok(),
                (Some(_), None) => false,
            };
            let is_new = found.as_ref().map(|found| found.check_against(after));
            tried.old += usize::from(is_old);
            tried.new += usize::from(is_new == Some(Ok(())));
            assert!(is_old || is_new == Some(Ok(())), "{what}: {is_new:?}");
            // The image as the cut left it, and as an opening left it, can be updated by a later backup.
            for disk in [again, disk.fork()].into_iter().take(1 + usize::from(at % 5 == 0)) {
                back_up(store, &disk).unwrap_or_else(|error| panic!("{what}, again: {error}"));
                let found = open_image(&disk).unwrap_or_else(|why| panic!("{what}, again: {why}"));
                let found =
                    found.unwrap_or_else(|| panic!("{what}: no image after the next backup"));
                found.check_against(after).unwrap_or_else(|why| panic!("{what}, again: {why}"));
            }
        }
    }
    tried
}

fn take_cuts(disk: &SimDisk) -> Vec<SimDisk> {
    let last = disk.fork();
    let mut cuts = disk.take_cuts();
    last.cut_power();
    cuts.push(last);
    cuts
}

#[test]
fn backup_power_loss_leaves_old_or_new_image() {
    let world = World::new(7);
    let store = world.open();
    let mut model = Model::default();
    do_all(&store, &mut model, 1);

    let image = SimDisk::new();
    image.record_cuts();
    back_up(&store, &image).unwrap();
    let cuts = take_cuts(&image);
    let first = must_be_one_of(&store, &cuts, None, &model);
    assert!(first.cuts > 20 && first.old > 10 && first.new > 0, "{} cuts", first.cuts);

    let before = model.clone();
    do_all(&store, &mut model, 2);
    image.record_cuts();
    back_up(&store, &image).unwrap();
    let cuts = take_cuts(&image);
    let later = must_be_one_of(&store, &cuts, Some(&before), &model);
    assert!(later.cuts > 20 && later.old > 10 && later.new > 0, "{} cuts", later.cuts);
    println!(
        "{} + {} cuts, {} + {} different survivors",
        first.cuts, later.cuts, first.survivors, later.survivors
    );
}

#[test]
fn store_power_loss_during_backup_loses_nothing() {
    let world = World::new(7);
    let store = world.open();
    let mut model = Model::default();
    do_all(&store, &mut model, 1);
    store.checkpoint().unwrap();
    let before = model.clone();
    let replaced = [
        Change::Put(name("big/stays"), Bytes::from(body(77, 8_000))),
        Change::Delete(name("big/1")),
    ];
    model.apply(&replaced);

    world.disk.record_cuts();
    let image = SimDisk::new();
    let to: Arc<dyn Disk> = Arc::new(image.clone());
    let mut is_done = false;
    store
        .backup(&to, &mut |_| {
            if !std::mem::replace(&mut is_done, true) {
                commit(&store, batch(&store, &replaced).unwrap()).unwrap();
                store.checkpoint().unwrap();
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    let cuts = take_cuts(&world.disk);
    open_image(&image).unwrap().unwrap().check_against(&before).unwrap();

    let mut seen = BTreeSet::new();
    for (at, cut) in cuts.iter().enumerate() {
        for policy in LossPolicy::ALL {
            let disk = cut.fork();
            disk.power_on(policy, at as u64);
            if seen.insert(fingerprint(&disk)) {
                check(&disk, &[&before, &model])
                    .unwrap_or_else(|what| panic!("cut {at}, {policy:?}: {what}"));
            }
        }
    }
    assert!(seen.len() > 5, "{} survivors", seen.len());
}
