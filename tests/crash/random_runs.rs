//! Long runs by chance: commits, checkpoints, compactions, rolls, reopenings, and crashes at any operation under any
//! loss policy, against a model. A run comes from its seed alone: `TRUG_SEED=N` plays one again.

use bytes::Bytes;
use engine::disk::sim::LossPolicy;
use engine::{Entropy, SeededEntropy, Store};
use tests::store::{
    Change, Contents, Model, World, batch, body, bucket_named, commit, compact, fact, idle,
    name_in, roll_over,
};

use crate::survivor;

/// So many seeds are run each time.
const SEEDS: u64 = 60;
/// So many steps has a run.
const STEPS: u64 = 60;

/// What a run left: for comparing two runs of one seed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) crashes: u64,
    pub(crate) operations: u64,
    pub(crate) fingerprint: u64,
}

/// Plays the run of a seed.
pub(crate) fn run(seed: u64) -> Result<Ran, String> {
    let chance = SeededEntropy::new(seed);
    let world = World::new(seed);
    let mut model = Model::default();
    let mut crashes = 0;
    let mut store = Some(world.open());
    for step in 0..STEPS {
        let at = |what: String| format!("step {step}: {what}");
        let open = match store.take() {
            Some(open) => open,
            None => reopen(&world, &chance, &mut crashes).map_err(at)?,
        };
        if chance.below(6) == 0 {
            world.disk.cut_power_after(world.disk.operations() + chance.below(12));
        }
        let before = model.clone();
        let done = one_step(&world, &open, &chance, step, &mut model);
        if !world.disk.is_off() {
            done.map_err(at)?;
            match chance.below(16) {
                0 => {}
                1 => drop(open.close()),
                _ => store = Some(open),
            }
            continue;
        }
        drop(open);
        let open = reopen(&world, &chance, &mut crashes).map_err(at)?;
        let contents = Contents::of(&open).map_err(at)?;
        // What failed may have happened, what was answered has.
        let acknowledged = if done.is_ok() { &model } else { &before };
        let found = contents.must_be(acknowledged);
        if let (Err(this), Err(that)) = (&found, contents.must_be(&model)) {
            return Err(at(format!("{this}; or: {that}")));
        }
        if found.is_ok() {
            model = acknowledged.clone();
        }
        store = Some(open);
    }
    drop(store);
    let open = reopen(&world, &chance, &mut crashes)?;
    Contents::of(&open)?.must_be(&model)?;
    drop(open);
    let ran = Ran {
        crashes,
        operations: world.disk.operations(),
        fingerprint: survivor::fingerprint(&world.disk),
    };
    survivor::check(&world.disk, &[&model])?;
    Ok(ran)
}

/// Opens the store; power comes back where it was gone, also when it goes while the store is opened.
fn reopen(world: &World, chance: &SeededEntropy, crashes: &mut u64) -> Result<Store, String> {
    loop {
        if world.disk.is_off() {
            *crashes += 1;
            let policy = LossPolicy::ALL[usize::try_from(chance.below(6)).unwrap_or(0)];
            world.disk.power_on(policy, chance.number());
        }
        match world.try_open() {
            Ok((store, report)) if report.damage.is_empty() => return Ok(store),
            Ok((_, report)) => return Err(format!("damage: {report}")),
            Err(_) if world.disk.is_off() => {}
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// A commit, mostly. The model is changed whatever comes of it; an error says that it may not have happened.
fn one_step(
    world: &World,
    store: &Store,
    chance: &SeededEntropy,
    step: u64,
    model: &mut Model,
) -> Result<(), String> {
    world.clock.advance(chance.below(1_000));
    let done = match chance.below(12) {
        10 => compact(store).map(|_| ()),
        0 => store.checkpoint().map(|_| ()),
        1 => roll_over(store),
        2 => {
            idle(store);
            Ok(())
        }
        _ => {
            let changes: Vec<Change> =
                (0..=chance.below(4)).map(|part| change(chance, 10 * step + part)).collect();
            model.apply(&changes);
            batch(store, &changes).and_then(|batch| commit(store, batch)).map(|_| ())
        }
    };
    done.map_err(|error| error.to_string())
}

fn change(chance: &SeededEntropy, seed: u64) -> Change {
    let keys = ["a", "a/", "a/b", "a-b", "a.b/c", "d/e/f", "d/e", "g"];
    let bucket = bucket_named(if chance.below(4) == 0 { "other" } else { "photos" });
    let name = name_in(&bucket, keys[usize::try_from(chance.below(8)).unwrap_or(0)]);
    let fact = fact(&format!("fact/{}", chance.below(4)));
    let sizes = [0, 1, 100, 3_000, 4_096, 4_097, 9_000, 70_000];
    let length = sizes[usize::try_from(chance.below(8)).unwrap_or(0)];
    let bytes = Bytes::from(body(seed, length));
    match chance.below(8) {
        0 | 1 => Change::Delete(name),
        2 => Change::PutFact(fact, Bytes::from(body(seed, 40))),
        3 => Change::DeleteFact(fact),
        4 => Change::PutDerived(name, bytes),
        _ => Change::Put(name, bytes),
    }
}

#[test]
fn random_runs_with_crashes_match_the_model() {
    let only = std::env::var("TRUG_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = only.map_or(0..SEEDS, |seed| seed..seed + 1);
    let (mut runs, mut crashes) = (0, 0);
    for seed in seeds {
        match run(seed) {
            Ok(ran) => (runs, crashes) = (runs + 1, crashes + ran.crashes),
            Err(what) => panic!("seed {seed}: {what}"),
        }
    }
    println!("{runs} seeds, {crashes} crashes");
}
