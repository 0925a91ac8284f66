//! Power cuts in the middle of every disk operation of scripted scenarios, under every loss policy. The remaining state
//! is checked by `survivor`.

use std::collections::BTreeSet;

use engine::disk::faults::IgnoredSync;
use engine::disk::sim::LossPolicy;

use crate::scenario::{Act, record};
use crate::survivor::{check_after_kill_with_window, check_with_window, fingerprint};

/// Totals of a survey.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Survey {
    pub(crate) scenarios: u64,
    /// Power cuts: one for each operation.
    pub(crate) cuts: u64,
    /// Power cuts under a policy with a seed.
    pub(crate) crashes: u64,
    /// Power cuts that left a disk unlike all others of their scenario, and were checked.
    pub(crate) survivors: u64,
}

/// Cuts the power in the last act at each operation under every policy; the random ones with so many seeds.
pub(crate) fn survey(
    acts: &[Act],
    ignored: &[IgnoredSync],
    seeds: u64,
    total: &mut Survey,
) -> Result<(), String> {
    survey_with_window(acts, ignored, seeds, 0, total)
}

/// Runs the survey with a retention window of so long for large deleted objects.
pub(crate) fn survey_with_window(
    acts: &[Act],
    ignored: &[IgnoredSync],
    seeds: u64,
    undelete_window_ms: u64,
    total: &mut Survey,
) -> Result<(), String> {
    let recording = record(acts, ignored, undelete_window_ms)?;
    let mut seen = BTreeSet::new();
    total.scenarios += 1;
    for (at, cut) in recording.cuts.iter().enumerate() {
        total.cuts += 1;
        let acceptable = recording.acceptable(cut);
        for policy in LossPolicy::ALL {
            let seeds = match policy {
                LossPolicy::Prefix | LossPolicy::Sectors => seeds,
                _ => 1,
            };
            for seed in 0..seeds {
                total.crashes += 1;
                let disk = cut.fork();
                disk.power_on(policy, seed + 1_000 * at as u64);
                if seen.insert((fingerprint(&disk), recording.acknowledged(cut))) {
                    total.survivors += 1;
                    check_with_window(&disk, &acceptable, undelete_window_ms).map_err(|what| {
                        format!("{acts:?}, cut at operation {at}, {policy:?} seed {seed}: {what}")
                    })?;
                }
            }
        }
        total.crashes += 1;
        check_after_kill_with_window(&cut.fork(), &acceptable, undelete_window_ms)
            .map_err(|what| format!("{acts:?}, killed at operation {at}: {what}"))?;
    }
    Ok(())
}

fn survey_all(scenarios: &[Vec<Act>], seeds: u64) {
    let mut total = Survey::default();
    for acts in scenarios {
        if let Err(what) = survey(acts, &[], seeds, &mut total) {
            panic!("{what}");
        }
    }
    println!(
        "{} scenarios, {} cut points, {} crashes, {} different survivors",
        total.scenarios, total.cuts, total.crashes, total.survivors
    );
}

#[test]
fn store_creation_survives_power_loss() {
    survey_all(&[Vec::new()], 6);
}

#[test]
fn power_loss_at_every_operation_of_one_action() {
    let scenarios: Vec<_> = Act::ALL.iter().map(|act| vec![*act]).collect();
    survey_all(&scenarios, 6);
}

#[test]
fn power_loss_at_every_operation_of_two_actions() {
    let pairs = Act::ALL.iter().flat_map(|one| Act::ALL.iter().map(|two| vec![*one, *two]));
    survey_all(&pairs.collect::<Vec<_>>(), 2);
}

#[test]
fn power_loss_at_every_operation_of_three_actions() {
    let mut triples = Vec::new();
    for one in Act::ALL {
        for two in Act::ALL {
            triples.extend(Act::ALL.iter().map(|three| vec![one, two, *three]));
        }
    }
    // A part of them, spread evenly; all with TRUG_ALL_CUTS=1.
    let step = if std::env::var_os("TRUG_ALL_CUTS").is_some() { 1 } else { 17 };
    let part: Vec<_> = triples.into_iter().step_by(step).collect();
    survey_all(&part, 1);
}
