//! `trug compact`: giving back the space of what was deleted and overwritten.
//!
//! Never here: choosing and copying.

use engine::CompactionRules;
use server::management::{CompactionAsked, Request};

use crate::exit::{self, Failure};
use crate::management::{StoreArgs, perform};

/// Give back the space of deleted and overwritten files.
///
/// What is still wanted of segments that are mostly dead is copied to new ones, which take their place; `trug undelete`
/// cannot bring back what was dead there. Works while a server runs, which also does it by itself. Stopped early, what
/// was done until then counts. A segment of which something cannot be read is left as it is and named, and the exit
/// code is 3: `trug fsck` helps.
#[derive(clap::Args)]
#[command(after_help = exit::help("trug compact --data data --dry-run"))]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// Only show what would be done: which segments, what is copied, what comes back, about how long it takes.
    #[arg(long)]
    dry_run: bool,
    /// Take segments of which at least this share is dead, in percent.
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = CompactionRules::SHORT_OF_SPACE.segment_dead_percent_min,
        value_parser = clap::value_parser!(u8).range(0..=100)
    )]
    dead_percent_min: u8,
    /// Copy at most this many bytes a second. Without it, as fast as it goes beside uploads.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..))]
    rate: Option<u64>,
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let Args { store, dry_run, dead_percent_min, rate } = args;
    let asked = CompactionAsked { dead_percent_min, bytes_per_second_max: rate };
    let request = if dry_run { Request::SelectCompaction(asked) } else { Request::Compact(asked) };
    perform(&store, request)
}
