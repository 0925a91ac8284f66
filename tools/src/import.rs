//! `trug import`: files of a tar archive or a folder, into a bucket.
//!
//! Never here: reading archives.

use std::path::PathBuf;

use server::archive::{ImportRules, OnConflict};
use server::limits::IMPORT_FILES_MAX;
use server::management::Request;

use crate::exit::{self, Failure};
use crate::management::{StoreArgs, perform};
use crate::{archive_place, choice};

/// Read the files of a tar archive or a folder into a bucket.
///
/// The bucket must be there: `trug bucket create`. Works while a server runs: then the server reads the archive, as the
/// user that it runs as. Files are held to the rules of an upload; links, devices and names that may not be keys are
/// refused and named, the rest goes on, and the exit code is 1. A file whose content lies under its key already is
/// passed over, so that an import that was interrupted can be begun again. Archives must not be compressed: `gzip -dc
/// FILE | trug import --from - ...`.
#[derive(clap::Args)]
#[command(after_help = exit::help("trug import --data data --bucket pics --from pics.tar"))]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// The bucket.
    #[arg(long, value_name = "NAME")]
    bucket: String,
    /// Into this folder of the bucket.
    #[arg(long, value_name = "FOLDER")]
    prefix: Option<String>,
    /// A tar archive, a folder, or "-" for an archive from stdin.
    #[arg(long, value_name = "FILE.tar|FOLDER|-")]
    from: PathBuf,
    /// What happens to a file whose key holds other content: it is skipped, it replaces that, it is renamed as an
    /// upload is, or the import stops.
    #[arg(
        long,
        ignore_case = true,
        default_value = "skip",
        value_parser = choice::of(choice::ON_CONFLICT)
    )]
    on_conflict: OnConflict,
    /// Stop before more files than this are taken.
    #[arg(long, value_name = "COUNT", default_value_t = IMPORT_FILES_MAX)]
    files_max: u64,
    /// Stop before more bytes than this are taken.
    #[arg(long, value_name = "BYTES")]
    bytes_max: Option<u64>,
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let Args { store, bucket, prefix, from, on_conflict, files_max, bytes_max } = args;
    let from = archive_place::from(&from, store.data())?;
    let rules = ImportRules { on_conflict, files_max, bytes_max };
    perform(&store, Request::Import { bucket, folder: prefix, from, rules })
}
