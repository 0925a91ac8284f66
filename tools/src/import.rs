//! `trug import`: files of a tar archive or a folder, of other machines, or of a bucket elsewhere, into a bucket.
//!
//! Never here: reading archives.

use std::path::PathBuf;

use server::archive::{BucketSource, ImportRules, OnConflict, Reach, Source};
use server::limits::archives::IMPORT_FILES_MAX;
use server::management::Request;

use crate::exit::{self, Failure};
use crate::management::{StoreArgs, perform};
use crate::names::Bucket;
use crate::units::SizeLimit;
use crate::{archive_place, bucket_credentials, choice, settings};

/// Largest file of certificates.
const CA_FILE_BYTES_MAX: u64 = 256 * 1_024;

/// Read the files of a tar archive or a folder into a bucket, or take them from a list of URLs or a bucket of S3.
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
///
/// `--from-s3 https://HOST/BUCKET` takes what is in a bucket of a service that speaks S3, under the keys that it has
/// there; behind the bucket may stand what keys begin with. Requests are signed with `AWS_ACCESS_KEY_ID` and
/// `AWS_SECRET_ACCESS_KEY` (and `AWS_SESSION_TOKEN`) of the environment, or with what stands in `--credentials-file`;
/// without either the bucket is asked as anybody may. Redirects are not followed.
#[derive(clap::Args)]
#[command(
    after_help = exit::help("trug import pics --from pics.tar --data data"),
    group = clap::ArgGroup::new("source").required(true)
)]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    bucket: Bucket,
    /// Into this folder of the bucket.
    #[arg(long, value_name = "FOLDER")]
    prefix: Option<String>,
    /// A tar archive, a folder, or "-" for an archive from stdin.
    #[arg(long, value_name = "FILE.tar|FOLDER|-", group = "source")]
    from: Option<PathBuf>,
    /// A list of URLs to take files from, or "-" for a list from stdin.
    #[arg(long, value_name = "FILE|-", group = "source")]
    from_urls: Option<PathBuf>,
    /// A bucket of S3 to take objects from.
    #[arg(long, value_name = "URL", group = "source")]
    from_s3: Option<String>,
    /// Its region. [default: what AWS_REGION or AWS_DEFAULT_REGION says, or us-east-1]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["from", "from_urls"])]
    region: Option<String>,
    /// The host of the URL is the bucket's own: what stands behind it is what keys begin with.
    #[arg(long, conflicts_with_all = ["from", "from_urls"])]
    virtual_hosted: bool,
    /// A file of credentials as aws-cli has it, instead of the environment.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from", "from_urls"])]
    credentials_file: Option<PathBuf>,
    /// Which of its profiles.
    #[arg(long, value_name = "NAME", default_value = "default", requires = "credentials_file")]
    profile: String,
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
    #[arg(long, value_name = "SIZE")]
    bytes_max: Option<SizeLimit>,
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let Args { store, bucket, prefix, from, from_urls, on_conflict, files_max, bytes_max, .. } =
        &args;
    let from = match (from, from_urls) {
        _ if args.from_s3.is_some() => Source::Bucket(bucket_source(&args)?),
        (_, Some(list)) => Source::Addresses {
            list: archive_place::from(list, store.data())?,
            reach: reach(&args)?,
        },
        (Some(files), None) => Source::Files(archive_place::from(files, store.data())?),
        (None, None) => {
            return Err(Failure::wrong_usage("--from, --from-urls or --from-s3 is missing"));
        }
    };
    let rules = ImportRules {
        on_conflict: *on_conflict,
        files_max: *files_max,
        bytes_max: bytes_max.and_then(|SizeLimit(bytes)| bytes),
    };
    let bucket = bucket.clone().get();
    let (bucket, folder) = (bucket, prefix.clone());
    perform(store, Request::Import { bucket, folder, from, rules })
}

/// Which bucket elsewhere, and how it is asked.
fn bucket_source(args: &Args) -> Result<BucketSource, Failure> {
    let credentials = match &args.credentials_file {
        Some(path) => Some(bucket_credentials::of_file(path, &args.profile)?),
        None => bucket_credentials::of_environment()?,
    };
    let region = match &args.region {
        Some(region) => region.clone(),
        None => bucket_credentials::region()?,
    };
    let source = BucketSource {
        address: args.from_s3.clone().unwrap_or_default(),
        is_virtual_hosted: args.virtual_hosted,
        region,
        credentials,
        reach: reach(args)?,
    };
    source.check().map_err(|why| Failure::wrong_usage(format!("--from-s3: {why}")))?;
    Ok(source)
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
