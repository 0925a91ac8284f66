//! `trug stats`: disk usage and integrity of a store.
//!
//! Non-goals: counting.

use server::management::AdminRequest;

use crate::exit::{self, Failure};
use crate::management::{StoreArgs, perform};

/// Show disk usage, reclaimable space and integrity.
#[derive(clap::Args)]
#[command(after_help = exit::help("trug stats --data data"))]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// List all segments.
    #[arg(long)]
    segments: bool,
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let Args { store, segments } = args;
    perform(&store, AdminRequest::Stats { segments })
}
