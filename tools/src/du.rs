//! `trug du`: object counts and sizes by folder.

use server::management::{AdminRequest, ObjectRequest};

use crate::exit::{self, Failure};
use crate::management::{StoreArgs, perform};
use crate::places::ObjectPath;

/// Show object counts and sizes by folder.
///
/// Lists the direct subfolders of a bucket or folder, each with everything below it, then the total. Without a bucket,
/// all buckets. Thumbnails are counted.
#[derive(clap::Args)]
#[command(after_help = exit::help("trug du pics/2026 --data data"))]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// Bucket or folder.
    #[arg(value_name = "BUCKET[/PREFIX]")]
    folder: Option<String>,
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let Args { store, folder } = args;
    let Some(folder) = folder else {
        return perform(&store, AdminRequest::ListBuckets { account: None });
    };
    let folder = ObjectPath::parse(&folder);
    let (bucket, folder) = (folder.bucket.clone(), folder.folder());
    perform(&store, AdminRequest::Object(ObjectRequest::Usage { bucket, folder }))
}
