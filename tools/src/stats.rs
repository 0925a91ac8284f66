//! `trug stats`: what is in a store.
//!
//! Never here: counting.

use server::management::Request;

use crate::exit::{self, Failure};
use crate::management::{StoreArgs, perform};

/// Show what is in the store, and how much of the disk is dead.
#[derive(clap::Args)]
#[command(after_help = exit::help("trug stats --data data"))]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    perform(&args.store, Request::Stats)
}
