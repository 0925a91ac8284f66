//! The model test: after any operations on a store, in any order, and under any disk faults, the store matches its
//! model.
//!
//! A run is determined by its seed alone, its length too: batches with preconditions, one or several in a group,
//! deletions, facts, consumed tokens, dropped uploads, listings, searches, bodies that are kept open; checkpoints,
//! rolls, watermarks, compactions that are stopped or find no room, scrubs, histories, undeletes, backups; and commits
//! concurrent with the long ones of these. Disturbances: power cuts and kills at any disk operation, syncs that fail
//! and lose their data, errors of reads and writes, short writes, full disks, indexes that are lost or damaged.
//! `TRUG_SEED=N` replays one run.

mod commits;
mod faults;
mod found;
mod looks;
mod run;
mod search;
mod soak;
mod tally;
mod upkeep;
mod versions;

use self::run::Run;
use self::tally::Tally;

/// Number of seeds played each time.
const SEEDS: u64 = 150;

/// Minimum count of each event over all runs: a test that no longer covers something fails.
const LEAST: &[(&str, u64)] = &[
    ("operations", 20_000),
    ("operations during long work", 500),
    ("batches committed", 10_000),
    ("batches refused by a precondition", 2_000),
    ("batches in doubt", 200),
    ("doubts that happened", 50),
    ("doubts that did not", 50),
    ("tokens presented", 500),
    ("uploads dropped", 200),
    ("bodies read", 1_000),
    ("bodies read later", 500),
    ("pages of keys", 1_000),
    ("pages of folders", 1_000),
    ("searches", 1_000),
    ("searches with names in memory", 150),
    ("typing errors forgiven", 15),
    ("checkpoints", 500),
    ("rolls", 500),
    ("watermarks", 300),
    ("compactions that replaced something", 150),
    ("compactions stopped", 20),
    ("removals dropped", 1_000),
    ("segments punched", 1),
    ("scrubs", 50),
    ("histories", 100),
    ("objects brought back", 100),
    ("backups", 100),
    ("power cuts of a backup's machine", 50),
    ("closed", 50),
    ("dropped", 20),
    ("killed", 50),
    ("killed in an operation", 50),
    ("power cut", 100),
    ("power cut in an operation", 150),
    ("power cut while opening", 50),
    ("openings that failed", 20),
    ("faults that hit", 200),
    ("full disks", 100),
    ("indexes lost", 20),
    ("indexes damaged", 20),
    ("indexes cut", 20),
    ("indexes rebuilt", 60),
    ("segments sealed by recovery", 400),
    ("orphans removed", 200),
    ("torn tails", 5),
    ("survivors checked", 50),
];

/// Plays the run of a seed.
fn play(seed: u64) -> Result<Tally, String> {
    Run::new(seed)?.play().map_err(|what| format!("seed {seed}: {what}"))
}

/// Returns the seed to replay.
fn wanted_seed() -> Option<u64> {
    std::env::var("TRUG_SEED").ok().and_then(|seed| seed.parse().ok())
}

#[test]
fn store_matches_model_under_random_operations() {
    if let Some(seed) = wanted_seed() {
        let tally = play(seed).unwrap_or_else(|what| panic!("{what}"));
        println!("{tally}");
        return;
    }
    let mut total = Tally::default();
    for seed in 0..SEEDS {
        total.add(&play(seed).unwrap_or_else(|what| panic!("{what}")));
    }
    println!("{SEEDS} seeds\n{total}");
    for (what, least) in LEAST {
        assert!(total.of(what) >= *least, "{what}: {} times, not {least}", total.of(what));
    }
}

#[test]
fn same_seed_produces_identical_bytes() {
    let fingerprints = [1, 2, 3].map(|seed| {
        let [one, two] = [(); 2].map(|()| {
            let mut run = Run::new(seed).unwrap();
            (run.steps(), crate::survivor::fingerprint(run.disk()), run.disk().operations())
        });
        assert_eq!(one, two, "seed {seed}");
        one.1
    });
    assert_ne!(fingerprints[0], fingerprints[1]);
}
