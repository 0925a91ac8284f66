//! `trug undelete`: bringing back what was deleted or overwritten.
//!
//! Never here: reading the log.

use clap::ArgGroup;
use server::management::{Request, Wanted};

use crate::exit::{self, Failure};
use crate::management::{StoreArgs, perform};

/// Bring back files that were deleted, or an earlier version of one.
///
/// A file gets its newest version that is whole; a folder, every file in it that was deleted. What is there is never
/// overwritten, but by --version. `trug history` shows what can be brought back. Of a bucket that was deleted, make the
/// bucket first: `trug bucket create`. What cannot be brought back is named; if it was asked for by its path, the exit
/// code is 1.
#[derive(clap::Args)]
#[command(
    after_help = exit::help("trug undelete --data data --bucket pics cats/tom.png"),
    group(ArgGroup::new("wanted").args(["path", "since"]).required(true).multiple(true))
)]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// The bucket.
    #[arg(long, value_name = "NAME")]
    bucket: String,
    /// A file, or a folder with "/" at its end. Without it, the whole bucket since a time.
    #[arg(value_name = "PATH|FOLDER/")]
    path: Option<String>,
    /// The version of the file that it is to have, in place of what it has now: a number of `trug history`.
    #[arg(long, value_name = "VERSION", requires = "path", conflicts_with = "since")]
    version: Option<u64>,
    /// Of a folder, or the whole bucket: only what was deleted then or later, as 2030-01-31T12:00:00Z.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let Args { store, bucket, path, version, since } = args;
    let path = path.unwrap_or_default();
    let is_folder = path.is_empty() || path.ends_with('/');
    let wanted = match (is_folder, version, since) {
        (true, None, since) => Wanted::Folder { path, since },
        (false, None, None) => Wanted::File { path },
        (false, Some(lsn), _) => Wanted::Version { path, lsn },
        (true, Some(_), _) => {
            return Err(Failure::wrong_usage("--version is for a file, not for a folder"));
        }
        (false, None, Some(_)) => {
            return Err(Failure::wrong_usage(
                "--since is for a folder, which ends with \"/\", or for the whole bucket",
            ));
        }
    };
    perform(&store, Request::Undelete { bucket, wanted })
}
