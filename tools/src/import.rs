//! `trug import`: imports archives, folders, S3 buckets and lists of URLs into a bucket.
//!
//! Non-goals: reading the sources.

use std::path::PathBuf;

use jobs::archive::limits::IMPORT_FILES_MAX;
use jobs::archive::{
    BucketSource, ImportConflictRule, ImportNetworkPolicy, ImportRules, ImportSource,
};
use server::management::AdminRequest;

use crate::exit::{self, Failure};
use crate::management::{StoreArgs, perform};
use crate::names::Bucket;
use crate::units::SizeLimit;
use crate::{archive_location, bucket_credentials, settings, value_parsers};

/// Largest certificate file, in bytes.
const CA_FILE_BYTES_MAX: u64 = 256 * 1_024;

/// Import a tar archive, a folder, an S3 bucket or a list of URLs into a bucket.
///
/// The bucket must exist. While a server runs, the server reads archives and folders, as its user; "-" is read by this
/// process. Files must obey the rules of an upload: links, devices and names that are not valid keys are refused and
/// listed, the rest is imported, and the exit code is 1. Objects with the same content are skipped, so an interrupted
/// import can be repeated. Archives must not be compressed: `gzip -dc FILE | trug import BUCKET --from -`.
///
/// `--from s3://BUCKET[/PREFIX]` imports from MinIO, R2, B2 or another S3 service at --endpoint, with keys, content
/// types, Cache-Control, Content-Disposition, Content-Encoding, Content-Language, Expires and metadata. Requests are
/// signed with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN) of the environment, or with
/// --credentials-file; without either they are anonymous. Redirects are not followed.
///
/// `--from-urls` reads a list: one URL per line, optionally followed by the key of its file (default: the path of the
/// URL). Empty lines and lines that begin with "#" are skipped. Private addresses need --allow. Temporary failures are
/// tried five times. A file that is as long as the object and older is not fetched again.
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
    /// Import into this folder of the bucket.
    #[arg(long, value_name = "FOLDER")]
    prefix: Option<String>,
    /// Tar archive, folder, "-" for an archive from standard input, or s3://BUCKET[/PREFIX].
    #[arg(long, value_name = "SRC", group = "source")]
    from: Option<PathBuf>,
    /// List of URLs, or "-" for a list from standard input.
    #[arg(long, value_name = "FILE|-", group = "source")]
    from_urls: Option<PathBuf>,
    /// Alias of --from and --endpoint.
    #[arg(long, value_name = "URL", group = "source", hide = true)]
    from_s3: Option<String>,
    /// Endpoint of the S3 service, such as http://10.0.0.7:9000. [default: AWS]
    #[arg(long, value_name = "URL", env = "AWS_ENDPOINT_URL")]
    endpoint: Option<String>,
    /// Region of the S3 bucket. [default: AWS_REGION, AWS_DEFAULT_REGION or us-east-1]
    #[arg(long, value_name = "NAME", conflicts_with = "from_urls")]
    region: Option<String>,
    /// Put the bucket into the host name of requests (virtual-hosted style).
    #[arg(long, conflicts_with = "from_urls")]
    virtual_hosted: bool,
    /// Credentials file of aws-cli, instead of the environment.
    #[arg(long, value_name = "FILE", conflicts_with = "from_urls")]
    credentials_file: Option<PathBuf>,
    /// Profile in the credentials file.
    #[arg(long, value_name = "NAME", default_value = "default", requires = "credentials_file")]
    profile: String,
    /// Private origin that URLs may lead to, such as http://10.0.0.7:9000; can be repeated.
    #[arg(long, value_name = "ORIGIN")]
    allow: Vec<String>,
    /// Certificates (PEM) of additional certificate authorities.
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// What to do with a file whose key has other content: skip it, replace the object, rename the file, or fail.
    #[arg(
        long,
        ignore_case = true,
        default_value = "skip",
        value_parser = value_parsers::of(value_parsers::ON_CONFLICT)
    )]
    on_conflict: ImportConflictRule,
    /// Maximum number of files.
    #[arg(long, value_name = "COUNT", default_value_t = IMPORT_FILES_MAX)]
    files_max: u64,
    /// Maximum total size.
    #[arg(long, value_name = "SIZE")]
    bytes_max: Option<SizeLimit>,
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let from = source(&args)?;
    let rules = ImportRules {
        on_conflict: args.on_conflict,
        files_max: args.files_max,
        bytes_max: args.bytes_max.and_then(|SizeLimit(bytes)| bytes),
    };
    let Args { store, bucket, prefix: folder, .. } = args;
    perform(&store, AdminRequest::Import { bucket: bucket.get(), folder, from, rules })
}

fn source(args: &Args) -> Result<ImportSource, Failure> {
    let data = args.store.data();
    if let Some(address) = &args.from_s3 {
        return s3_source(args, address.clone(), args.virtual_hosted, &args.allow);
    }
    if let Some(list) = &args.from_urls {
        let reach = reach(args, &args.allow)?;
        return Ok(ImportSource::Addresses { list: archive_location::from(list, data)?, reach });
    }
    let missing = || Failure::wrong_usage("--from or --from-urls is missing");
    let files = args.from.as_ref().ok_or_else(missing)?;
    match files.to_str().and_then(|files| files.strip_prefix("s3://")) {
        Some(place) => bucket_source(args, place),
        None => {
            reject_remote_options(args)?;
            Ok(ImportSource::Files(archive_location::from(files, data)?))
        }
    }
}

/// Rejects options of remote sources for an archive or folder.
fn reject_remote_options(args: &Args) -> Result<(), Failure> {
    for (option, is_given) in [
        ("--region", args.region.is_some()),
        ("--virtual-hosted", args.virtual_hosted),
        ("--credentials-file", args.credentials_file.is_some()),
        ("--allow", !args.allow.is_empty()),
        ("--ca-file", args.ca_file.is_some()),
    ] {
        if is_given {
            let message = format!("{option} cannot be used with --from of an archive or folder");
            return Err(Failure::wrong_usage(message));
        }
    }
    Ok(())
}

/// Returns the source of `s3://BUCKET[/PREFIX]` at the endpoint, which may be private since the operator names it.
fn bucket_source(args: &Args, place: &str) -> Result<ImportSource, Failure> {
    let Some(endpoint) = &args.endpoint else {
        let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
        let region = region(args)?;
        let address = format!("https://{bucket}.s3.{region}.amazonaws.com/{}", escaped(prefix));
        return s3_source(args, address, true, &args.allow);
    };
    let endpoint = endpoint.trim_end_matches('/');
    let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
    let address = match (args.virtual_hosted, endpoint.split_once("://")) {
        (true, Some((scheme, host))) => format!("{scheme}://{bucket}.{host}/{}", escaped(prefix)),
        _ => format!("{endpoint}/{bucket}/{}", escaped(prefix)),
    };
    let allow = [&args.allow[..], &[endpoint.to_owned()]].concat();
    s3_source(args, address, args.virtual_hosted, &allow)
}

/// Escapes what would end the path of a URL.
fn escaped(prefix: &str) -> String {
    prefix.replace('%', "%25").replace('?', "%3F").replace('#', "%23").replace(' ', "%20")
}

fn region(args: &Args) -> Result<String, Failure> {
    args.region.clone().map_or_else(bucket_credentials::region, Ok)
}

fn s3_source(
    args: &Args,
    address: String,
    is_virtual_hosted: bool,
    allow: &[String],
) -> Result<ImportSource, Failure> {
    let credentials = match &args.credentials_file {
        Some(path) => Some(bucket_credentials::of_file(path, &args.profile)?),
        None => bucket_credentials::of_environment()?,
    };
    let (region, reach) = (region(args)?, reach(args, allow)?);
    let source = BucketSource { address, is_virtual_hosted, region, credentials, reach };
    source.check().map_err(|why| Failure::wrong_usage(format!("S3 source: {why}")))?;
    Ok(ImportSource::Bucket(source))
}

/// Returns the private origins and certificate authorities of the import.
fn reach(args: &Args, allow: &[String]) -> Result<ImportNetworkPolicy, Failure> {
    let ca = args.ca_file.as_deref().map(|path| {
        settings::read_text(path, CA_FILE_BYTES_MAX)
            .map_err(|why| Failure::wrong_usage(format!("--ca-file {}: {why}", path.display())))
    });
    let reach = ImportNetworkPolicy { allow: allow.to_vec(), ca: ca.transpose()? };
    reach.outbound().map_err(Failure::wrong_usage)?;
    Ok(reach)
}
