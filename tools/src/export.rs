//! `trug export`: exports a bucket or folder to a tar archive or files.
//!
//! Non-goals: reading objects.

use std::path::PathBuf;

use server::management::AdminRequest;

use crate::archive_location;
use crate::exit::{self, Failure};
use crate::management::{StoreArgs, perform, perform_to_stderr};
use crate::names::Bucket;

/// Export to a folder or tar archive.
///
/// Contains one complete version of each object; objects that do not change during the export are in it. All content is
/// verified; damaged objects are left out and listed, and the exit code is 3. An archive appears when it is complete; a
/// repeated export to a folder skips files of the same size and time. While a server runs, the server writes files and
/// folders, as its user; "-" is written by this process.
#[derive(clap::Args)]
#[command(after_help = exit::help("trug export pics --to pics.tar --data data"))]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    bucket: Bucket,
    /// Only this folder of the bucket, without its name.
    #[arg(long, value_name = "FOLDER")]
    prefix: Option<String>,
    /// FILE.tar, a folder (with "/" at its end if new), or "-" for standard output.
    #[arg(long, value_name = "FILE.tar|FOLDER/|-")]
    to: PathBuf,
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let Args { store, bucket, prefix, to: typed } = args;
    let to = archive_location::to(&typed, store.data())?;
    let request = AdminRequest::Export { bucket: bucket.get(), folder: prefix, to };
    match archive_location::is_stream(&typed) {
        true => perform_to_stderr(&store, request),
        false => perform(&store, request),
    }
}
