//! `trug export`: a bucket, or a folder of it, as a tar archive or as files.
//!
//! Never here: reading objects.

use std::path::PathBuf;

use server::management::Request;

use crate::archive_place;
use crate::exit::{self, Failure};
use crate::management::{StoreArgs, perform, perform_beside_stdout};
use crate::names::Bucket;

/// Write the files of a bucket to a tar archive or a folder.
///
/// Works while a server runs: then the server writes the archive, as the user that it runs as. Each file is one whole
/// version that it had during the export; what was there before and did not change is in it. Every byte is verified; a
/// damaged file is left out and named, and the exit code is 3. An archive appears when it is whole; an export to a
/// folder that was interrupted passes over files that are there with the same size and time.
#[derive(clap::Args)]
#[command(after_help = exit::help("trug export pics --to pics.tar --data data"))]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    bucket: Bucket,
    /// Only this folder of the bucket; its name is left off.
    #[arg(long, value_name = "FOLDER")]
    prefix: Option<String>,
    /// FILE.tar, a folder (a new one with "/" at its end), or "-" for stdout.
    #[arg(long, value_name = "FILE.tar|FOLDER/|-")]
    to: PathBuf,
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let Args { store, bucket, prefix, to: typed } = args;
    let to = archive_place::to(&typed, store.data())?;
    let request = Request::Export { bucket: bucket.get(), folder: prefix, to };
    match archive_place::is_stream(&typed) {
        true => perform_beside_stdout(&store, request),
        false => perform(&store, request),
    }
}
