//! Power cuts in the middle of every disk operation of a compaction: the content is preserved, whichever of the copies
//! the next opening finds, with the index and without it.

use std::collections::BTreeSet;

use bytes::Bytes;
use engine::disk::Disk;
use engine::disk::faults::{Fault, FaultRule, IgnoredSync, Operation, PathPattern};
use engine::disk::sim::{LossPolicy, SimDisk};
use engine::{Error, Store};
use tests::store::{
    Change, Contents, Model, World, batch, body, bucket_named, commit, compact, fact, name,
    name_in, roll_over,
};

use crate::survivor::{check, check_after_kill, fingerprint};

/// A store of several segments, with its model.
pub(crate) struct Grown {
    pub(crate) world: World,
    pub(crate) model: Model,
    turn: u64,
}

impl Grown {
    /// Creates segments with live and dead records of every kind, all sealed and checkpointed, and one active segment.
    pub(crate) fn new(ignored: &[IgnoredSync]) -> Result<(Self, Store), String> {
        let world = World::new(11);
        for ignore in ignored {
            world.disk.ignore_syncs(ignore.clone());
        }
        let store = world.open();
        let mut grown = Self { world, model: Model::default(), turn: 0 };
        let bytes = |seed: u64| Bytes::from(body(seed, 70));
        grown.play(&store, &[Change::Put(name("deleted-later"), bytes(1))])?;
        grown.play(&store, &[Change::Put(name("big"), Bytes::from(body(2, 9_000)))])?;
        grown.play(&store, &[Change::PutFact(fact("kept"), bytes(3))])?;
        grown.play(&store, &[Change::PutFact(fact("gone-later"), bytes(4))])?;
        grown.fill(&store)?;
        grown.play(&store, &[Change::Delete(name("deleted-later"))])?;
        grown.play(&store, &[Change::DeleteFact(fact("gone-later"))])?;
        grown.fill(&store)?;
        let other = name_in(&bucket_named("other"), "derived");
        grown.play(&store, &[Change::PutDerived(other, bytes(5))])?;
        grown.fill(&store)?;
        Ok((grown, store))
    }

    /// Puts a segment's worth of objects, most of them overwritten by the next call.
    fn fill(&mut self, store: &Store) -> Result<(), String> {
        self.turn += 1;
        for at in 0..16 {
            let key =
                if at < 12 { format!("fill/{at}") } else { format!("once/{}/{at}", self.turn) };
            let bytes = Bytes::from(body(100 * self.turn + at, 4_000));
            self.play(store, &[Change::Put(name(&key), bytes)])?;
        }
        roll_over(store).map_err(error_text)?;
        store.checkpoint().map(|_| ()).map_err(error_text)
    }

    fn play(&mut self, store: &Store, changes: &[Change]) -> Result<(), String> {
        batch(store, changes).and_then(|batch| commit(store, batch)).map_err(error_text)?;
        self.model.apply(changes);
        Ok(())
    }
}

fn error_text(error: Error) -> String {
    error.to_string()
}

/// Numbers of cuts in a compaction.
#[derive(Debug, Default)]
struct Cuts {
    points: usize,
    crashes: u64,
    survivors: u64,
}

/// Cuts the power at each operation of `work`, which has no visible effect on the store.
fn survey(
    grown: &Grown,
    seeds: u64,
    total: &mut Cuts,
    work: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    let disk = &grown.world.disk;
    disk.record_cuts();
    work()?;
    let last = disk.fork();
    let mut cuts = disk.take_cuts();
    last.cut_power();
    cuts.push(last);
    total.points += cuts.len();
    let mut seen = BTreeSet::new();
    for (at, cut) in cuts.iter().enumerate() {
        for policy in LossPolicy::ALL {
            let seeds = match policy {
                LossPolicy::Prefix | LossPolicy::Sectors => seeds,
                _ => 1,
            };
            for seed in 0..seeds {
                total.crashes += 1;
                let disk = cut.fork();
                disk.power_on(policy, seed + 1_000 * at as u64);
                if seen.insert(fingerprint(&disk)) {
                    total.survivors += 1;
                    let failed = |what| format!("cut at {at}, {policy:?} seed {seed}: {what}");
                    without_index(&disk.fork(), &grown.model)
                        .and_then(|()| check(&disk, &[&grown.model]))
                        .map_err(failed)?;
                }
            }
        }
        total.crashes += 1;
        check_after_kill(&cut.fork(), &[&grown.model])
            .map_err(|what| format!("killed at {at}: {what}"))?;
    }
    Ok(())
}

/// Checks the same cut with the index lost too.
fn without_index(disk: &SimDisk, model: &Model) -> Result<(), String> {
    disk.remove("index.redb").map_err(|error| error.to_string())?;
    let world = World::on(disk.clone(), 12);
    let (store, report) = world.try_open().map_err(error_text)?;
    if !report.damage.is_empty() {
        return Err(format!("without index: {report}"));
    }
    let contents = Contents::of(&store).map_err(|what| format!("without index: {what}"))?;
    contents.check_against(model).map_err(|what| format!("without index: {what}; {report}"))
}

/// Checks that compactions survive power cuts with some syncs left out.
fn survives_without(ignored: &[IgnoredSync], seeds: u64) -> Result<String, String> {
    let mut total = Cuts::default();
    let (mut grown, store) = Grown::new(ignored)?;
    survey(&grown, seeds, &mut total, || {
        let report = compact(&store).map_err(error_text)?;
        if report.segments_removed < 2 || report.freed_bytes == 0 {
            return Err(format!("there was something to compact: {report:?}"));
        }
        Ok(())
    })?;
    // Compacted segments are compacted again, with tombstones of objects deleted long ago.
    grown.play(&store, &[Change::Delete(name("fill/3")), Change::Delete(name("big"))])?;
    grown.fill(&store)?;
    grown.fill(&store)?;
    survey(&grown, seeds, &mut total, || compact(&store).map(|_| ()).map_err(error_text))?;
    survey(&grown, seeds, &mut total, || store.close().map_err(error_text))?;
    Ok(format!("{total:?}"))
}

#[test]
fn compaction_survives_power_loss_at_every_operation() {
    match survives_without(&[], 4) {
        Ok(total) => println!("{total}"),
        Err(what) => panic!("{what}"),
    }
}

#[test]
fn mutation_missing_compaction_sync_is_detected() {
    let of = |path: &str| IgnoredSync::SyncOf(path.to_owned());
    for ignored in [of("compacted/0"), of("compacted")] {
        match survives_without(std::slice::from_ref(&ignored), 4) {
            Ok(_) => panic!("nobody notices that {ignored:?} is left out"),
            Err(noticed) => println!("without {ignored:?}: {noticed}"),
        }
    }
}

#[test]
fn mutation_missing_compaction_checkpoint_is_detected() {
    let (grown, store) = Grown::new(&[]).unwrap_or_else(|what| panic!("{what}"));
    // From here on only: without any checkpoint, the index would be rebuilt.
    grown.world.disk.ignore_syncs(IgnoredSync::SyncOf("index.redb".to_owned()));
    let mut total = Cuts::default();
    match survey(&grown, 4, &mut total, || compact(&store).map(|_| ()).map_err(error_text)) {
        Ok(()) => panic!("nobody notices that originals go before the index lets go of them"),
        Err(noticed) => println!("without the sync of the index: {noticed}"),
    }
}

#[test]
fn open_without_space_keeps_segments_of_the_index() {
    let (grown, store) = Grown::new(&[]).unwrap_or_else(|what| panic!("{what}"));
    grown.world.disk.record_cuts();
    compact(&store).unwrap_or_else(|error| panic!("{error}"));
    let mut refused = 0;
    for (at, cut) in grown.world.disk.take_cuts().into_iter().enumerate() {
        // Room for so many writes to the index.
        for writes in 0..40 {
            let disk = cut.fork();
            disk.power_on(LossPolicy::KeepSynced, 0);
            let index = PathPattern::Prefix("index.redb".to_owned());
            disk.inject(FaultRule::always(Operation::Write, index, Fault::NoSpace).after(writes));
            let opened = World::on(disk.clone(), 12).try_open();
            refused += u64::from(opened.is_ok() && disk.fault_count() > 0);
            disk.cut_power();
            drop(opened);
            disk.clear_faults();
            disk.power_on(LossPolicy::KeepSynced, 0);
            check(&disk, &[&grown.model])
                .unwrap_or_else(|what| panic!("cut at {at}, {writes} writes: {what}"));
        }
    }
    assert!(refused > 0, "no store was opened without its checkpoint");
}
