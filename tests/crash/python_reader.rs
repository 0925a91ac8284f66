//! State after a power cut as read by the engine, which uses its index and repairs, and by a reader in Python written
//! from the format description alone: torn tails, new segments, partial compactions.

use engine::disk::sim::LossPolicy;
use tests::python_reader::{read_disk_in_python, require_python};
use tests::store::{Contents, World};

use crate::scenario::{Act, record};

/// Stories whose last act is cut in the middle of its operations.
const STORIES: &[&[Act]] = &[
    &[Act::Put, Act::Overwrite, Act::Batch],
    &[Act::Fill, Act::Delete, Act::Fill],
    &[Act::Fill, Act::Fill, Act::Fill, Act::RollOver],
    &[Act::PutBig, Act::OverwriteBig],
    &[Act::PutBig, Act::Idle, Act::ReplaceBig],
    &[Act::Fill, Act::Overwrite, Act::Reopen, Act::Overwrite, Act::Close],
    &[Act::Fill, Act::Fill, Act::Batch, Act::Fill, Act::RollOver, Act::Compact],
    &[Act::Fill, Act::Overwrite, Act::Fill, Act::Compact, Act::Overwrite, Act::Batch, Act::Compact],
];
/// Number of power cuts in each story.
const CUTS: usize = 6;

#[test]
fn python_reader_matches_engine_after_power_loss() {
    require_python();
    let mut turn = 0;
    let mut torn = 0;
    for story in STORIES {
        let recording = record(story, &[], 0).unwrap();
        let count = recording.cuts.len();
        for at in (0..CUTS).map(|at| at * (count - 1) / (CUTS - 1)) {
            let policy = LossPolicy::ALL[turn % LossPolicy::ALL.len()];
            turn += 1;
            let disk = recording.cuts[at].fork();
            disk.power_on(policy, turn as u64);
            let output = read_disk_in_python(&disk);
            let (store, report) = World::on(disk, 3).open_with_report();
            torn += usize::from(report.torn_tail.is_some());
            let place = format!("{story:?}, cut {at} of {count}, {policy:?}");
            assert!(report.damage.is_empty(), "{place}: {report}");
            assert_eq!(output.code, 0, "{place}: {}", output.stderr);
            let agrees = output.must_be(&Contents::of(&store).unwrap());
            agrees.unwrap_or_else(|why| panic!("{place}: {why}"));
        }
    }
    assert!(torn > 0, "there were no torn tails to distinguish from damage");
}
