//! `trug history`: the versions that a file had.
//!
//! Never here: reading the log.

use server::management::Request;

use crate::exit::{self, Failure};
use crate::management::{StoreArgs, perform};

/// Show earlier versions of files, and which of them can be brought back.
///
/// A version can be brought back until its space is given back: that of a small file by compaction, that of a large one
/// (over 1 MiB) some time after it was deleted or replaced (undelete_window_seconds, usually an hour), and at once
/// where it was moved. The bucket may be deleted.
#[derive(clap::Args)]
#[command(after_help = exit::help("trug history --data data --bucket pics cats/tom.png"))]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// The bucket.
    #[arg(long, value_name = "NAME")]
    bucket: String,
    /// A file, or a folder with "/" at its end. Without it, the whole bucket.
    #[arg(value_name = "PATH|FOLDER/", default_value = "", hide_default_value = true)]
    path: String,
    /// Only what happened then or later, as 2030-01-31T12:00:00Z.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Show at most this many versions.
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = SHOWN,
        value_parser = clap::value_parser!(u64).range(1..=engine::limits::VERSIONS_MAX as u64)
    )]
    limit: u64,
}

const SHOWN: u64 = 1_000;

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let Args { store, bucket, path, since, limit } = args;
    perform(&store, Request::History { bucket, path, since, limit })
}
