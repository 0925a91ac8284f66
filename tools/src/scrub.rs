//! `trug scrub`: whether every stored byte is what was written.
//!
//! Never here: reading segments.

use server::management::Request;

use crate::exit::{self, Failure};
use crate::management::{StoreArgs, perform};

/// Read everything that is stored, and check it.
///
/// Works while a server runs, which also does it by itself, slowly. What is damaged is named and remembered: `trug
/// stats` shows it until a scrub finds it whole. Nothing is changed. With damage, the exit code is 3.
#[derive(clap::Args)]
#[command(after_help = exit::help("trug scrub --data data"))]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    perform(&args.store, Request::Scrub)
}
