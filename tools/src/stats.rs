//! `trug stats`: what is in a store.
//!
//! Never here: counting.

use server::management::Request;

use crate::exit::{self, Failure};
use crate::management::{StoreArgs, perform};

/// Show what is in the store, how much of it is dead, and how it is.
#[derive(clap::Args)]
#[command(after_help = exit::help("trug stats --data data"))]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// List each segment, too.
    #[arg(long)]
    segments: bool,
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let Args { store, segments } = args;
    perform(&store, Request::Stats { segments })
}
