//! `trug compact`: reclaims space.
//!
//! Non-goals: selecting and copying segments.

use engine::compaction::CompactionRules;
use server::management::{AdminRequest, CompactionParams};

use crate::exit::{self, Failure};
use crate::management::{StoreArgs, perform};

/// Reclaim space used by deleted and overwritten objects.
///
/// Live records of segments with many dead bytes are copied to new segments, which replace them. `trug undelete` cannot
/// restore versions in replaced segments. A running server also compacts in the background. An interrupted compaction
/// keeps what it has reclaimed. Damaged segments are skipped and listed, and the exit code is 3: run `trug fsck`.
#[derive(clap::Args)]
#[command(after_help = exit::help("trug compact --data data --dry-run"))]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// Show segments, bytes to copy, bytes to reclaim and expected duration without compacting.
    #[arg(long)]
    dry_run: bool,
    /// Minimum share of dead bytes of a segment, in percent.
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = CompactionRules::LOW_SPACE.segment_dead_percent_min,
        value_parser = clap::value_parser!(u8).range(0..=100)
    )]
    dead_percent_min: u8,
    /// Maximum copy rate in bytes per second. [default: unlimited]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..))]
    rate: Option<u64>,
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let Args { store, dry_run, dead_percent_min, rate } = args;
    let asked = CompactionParams { dead_percent_min, bytes_per_second_max: rate };
    let request =
        if dry_run { AdminRequest::SelectCompaction(asked) } else { AdminRequest::Compact(asked) };
    perform(&store, request)
}
