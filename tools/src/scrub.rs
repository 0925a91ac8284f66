//! `trug scrub`: verifies the checksums of all stored data.
//!
//! Non-goals: reading segments.

use server::management::AdminRequest;

use crate::exit::{self, Failure};
use crate::management::{StoreArgs, perform};

/// Verify the checksums of all stored data.
///
/// Changes nothing. A running server also verifies in the background. Damage is listed, and shown by `trug stats` until
/// a scrub finds it repaired; the exit code is then 3.
#[derive(clap::Args)]
#[command(after_help = exit::help("trug scrub --data data"))]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    perform(&args.store, AdminRequest::Scrub)
}
