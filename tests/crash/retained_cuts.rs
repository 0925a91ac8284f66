//! Retained large deleted objects: power cuts in the middle of every operation that retains or removes their files.
//! Each file belongs to an object or to a version that can be restored, and none remains after its retention window.

use engine::disk::faults::IgnoredSync;

use crate::power_loss::{Survey, survey_with_window};
use crate::scenario::Act;

const HOUR_MS: u64 = 60 * 60 * 1_000;

/// Acts between the deletion of an object and the removal of its file.
const BETWEEN: [Act; 7] = [
    Act::Checkpoint,
    Act::Reopen,
    Act::Close,
    Act::Wait,
    Act::OverwriteBig,
    Act::ReplaceBig,
    Act::Compact,
];

fn survey_all(scenarios: &[Vec<Act>], ignored: &[IgnoredSync]) -> Result<Survey, String> {
    let mut total = Survey::default();
    for acts in scenarios {
        survey_with_window(acts, ignored, 1, HOUR_MS, &mut total)?;
    }
    Ok(total)
}

#[test]
fn power_loss_after_large_file_overwrite_leaves_no_orphan() {
    survey_after(Act::ReplaceBig);
}

#[test]
fn power_loss_after_retained_overwrite_leaves_no_orphan() {
    survey_after(Act::OverwriteBig);
}

/// Cuts the power at every operation of scenarios that begin with this act: each file of the store must be
/// referenced or retained.
fn survey_after(end: Act) {
    let mut scenarios = vec![vec![end]];
    for one in BETWEEN {
        scenarios.push(vec![end, one]);
        scenarios.extend(BETWEEN.map(|two| vec![end, one, two]));
    }
    let total = survey_all(&scenarios, &[]).unwrap_or_else(|what| panic!("{what}"));
    assert!(total.survivors > 200, "{total:?}");
}

#[test]
fn power_loss_during_retention_expiry_leaves_no_file() {
    let before = [Act::OverwriteBig, Act::Checkpoint, Act::Wait, Act::Wait];
    let ends = [Act::Put, Act::Checkpoint, Act::Reopen, Act::Close, Act::OverwriteBig];
    let scenarios: Vec<Vec<Act>> = (2..=before.len())
        .flat_map(|count| ends.map(|end| [&before[..count], &[Act::Put, end][..]].concat()))
        .collect();
    survey_all(&scenarios, &[]).unwrap_or_else(|what| panic!("{what}"));
}
