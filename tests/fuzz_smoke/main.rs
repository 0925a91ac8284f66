//! The properties of `fuzz` for their corpus, and for seeded inputs made from it.
//!
//! Each target runs over every file of its folder, over mutations of these files, and over random bytes. The seeds are
//! fixed, so a failure is reproducible; it names the target and the seed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::{Path, PathBuf};
use std::thread;

use engine::rng::{Rng, SeededRng};
use fuzz::Target;

const INPUT_BYTES_MAX: u64 = 2_048;

#[test]
fn fuzz_targets_pass_on_corpus_and_seeded_inputs() {
    thread::scope(|scope| {
        for target in fuzz::TARGETS {
            scope.spawn(|| holds(target));
        }
    });
}

fn holds(target: &Target) {
    let name = target.name;
    let corpus = corpus(name);
    assert!(!corpus.is_empty(), "fuzz/corpus/{name} has no seeds");
    for (path, input) in &corpus {
        println!("{}", path.display());
        (target.property)(input);
    }
    for seed in 0..target.seeds {
        let input = seeded_input(seed, &corpus);
        let held = std::panic::catch_unwind(|| (target.property)(&input));
        assert!(held.is_ok(), "{name} does not hold for seed {seed}: {input:02x?}");
    }
}

#[test]
fn every_fuzz_target_has_a_wrapper() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/targets");
    let mut wrappers: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    wrappers.sort();
    let targets: Vec<&str> = fuzz::TARGETS.iter().map(|target| target.name).collect();
    assert_eq!(wrappers, targets, "fuzz/targets and the table in fuzz/src/lib.rs, in order");
}

#[test]
fn every_corpus_folder_belongs_to_a_fuzz_target() {
    let known: Vec<&str> = fuzz::TARGETS.iter().map(|target| target.name).collect();
    for folder in std::fs::read_dir(corpus_root()).unwrap() {
        let name = folder.unwrap().file_name().into_string().unwrap();
        assert!(known.contains(&name.as_str()), "fuzz/corpus/{name} has no target");
    }
}

fn corpus_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus")
}

fn corpus(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = corpus_root().join(target);
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

/// Returns a file of the corpus with some bytes changed, cut or repeated; one time in four, random bytes.
fn seeded_input(seed: u64, corpus: &[(PathBuf, Vec<u8>)]) -> Vec<u8> {
    let chance = SeededRng::new(seed);
    let below = |bound: usize| usize::try_from(chance.below(bound as u64)).unwrap();
    if below(4) == 0 {
        let mut input = vec![0; usize::try_from(chance.below(INPUT_BYTES_MAX)).unwrap()];
        chance.fill(&mut input);
        return input;
    }
    let mut input = corpus[below(corpus.len())].1.clone();
    for _ in 0..=below(4) {
        let at = below(input.len() + 1);
        match below(4) {
            0 => input.truncate(at),
            1 => input.extend_from_within(at..),
            _ if at < input.len() => input[at] ^= 1 << below(8),
            _ => input.push(u8::try_from(below(256)).unwrap()),
        }
    }
    input
}
