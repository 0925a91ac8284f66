//! `trug import`: files of a tar archive or a folder, or of other machines, into a bucket.
//!
//! Never here: reading archives.

use std::path::PathBuf;

use server::archive::{ImportRules, OnConflict, Reach, Source};
use server::limits::IMPORT_FILES_MAX;
use server::management::Request;

use crate::exit::{self, Failure};
use crate::management::{StoreArgs, perform};
use crate::{archive_place, choice, settings};

/// Largest file of certificates.
const CA_FILE_BYTES_MAX: u64 = 256 * 1_024;

/// Read the files of a tar archive or a folder into a bucket, or take them from a list of URLs.
///
/// The bucket must be there: `trug bucket create`. Works while a server runs: then the server reads the archive, as the
/// user that it runs as. Files are held to the rules of an upload; links, devices and names that may not be keys are
/// refused and named, the rest goes on, and the exit code is 1. A file whose content lies under its key already is
/// passed over, so that an import that was interrupted can be begun again. Archives must not be compressed: `gzip -dc
/// FILE | trug import --from - ...`.
///
/// `--from-urls` reads a list: one URL a line, and behind it, if you like, the key that its file gets; without one it
/// is the path of the URL. Empty lines and lines that begin with `#` are passed over. Only machines of the internet at
/// large are asked, and those that `--allow` names. What fails in passing is tried again, five times in all. A file
/// that has as many bytes as the object under its key, and was changed before that was, is not fetched again.
#[derive(clap::Args)]
#[command(
    after_help = exit::help("trug import --data data --bucket pics --from pics.tar"),
    group = clap::ArgGroup::new("source").required(true)
)]
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
    #[arg(long, value_name = "FILE.tar|FOLDER|-", group = "source")]
    from: Option<PathBuf>,
    /// A list of URLs to take files from, or "-" for a list from stdin.
    #[arg(long, value_name = "FILE|-", group = "source")]
    from_urls: Option<PathBuf>,
    /// A machine of a private network that may be asked, like http://10.0.0.7:9000; may be given again.
    #[arg(long, value_name = "ORIGIN", conflicts_with = "from")]
    allow: Vec<String>,
    /// Certificates (PEM) of authorities to trust beside Mozilla's.
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    ca_file: Option<PathBuf>,
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
    let Args { store, bucket, prefix, from, from_urls, on_conflict, files_max, bytes_max, .. } =
        &args;
    let from = match (from, from_urls) {
        (_, Some(list)) => Source::Addresses {
            list: archive_place::from(list, store.data())?,
            reach: reach(&args)?,
        },
        (Some(files), None) => Source::Files(archive_place::from(files, store.data())?),
        (None, None) => return Err(Failure::wrong_usage("--from or --from-urls is missing")),
    };
    let rules =
        ImportRules { on_conflict: *on_conflict, files_max: *files_max, bytes_max: *bytes_max };
    let (bucket, folder) = (bucket.clone(), prefix.clone());
    perform(store, Request::Import { bucket, folder, from, rules })
}

/// Whom the import may ask, as far as that makes sense.
fn reach(args: &Args) -> Result<Reach, Failure> {
    let ca = args.ca_file.as_deref().map(|path| {
        settings::read_text(path, CA_FILE_BYTES_MAX)
            .map_err(|why| Failure::wrong_usage(format!("--ca-file {}: {why}", path.display())))
    });
    let reach = Reach { allow: args.allow.clone(), ca: ca.transpose()? };
    reach.outbound().map_err(Failure::wrong_usage)?;
    Ok(reach)
}
