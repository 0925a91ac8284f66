//! `trug stat`: describes an object.

use server::management::{AdminRequest, ObjectRequest};

use crate::exit::{self, Failure};
use crate::management::{StoreArgs, perform};
use crate::places::ObjectPath;

/// Show size, type, ETag, headers and metadata of an object.
#[derive(clap::Args)]
#[command(after_help = exit::help("trug stat pics/2026/cat.jpg --data data"))]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// Object.
    #[arg(value_name = "BUCKET/PATH")]
    path: String,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let ObjectPath { bucket, path } = ObjectPath::parse_object(&args.path)?;
    perform(&args.store, AdminRequest::Object(ObjectRequest::Stat { bucket, path }))
}
