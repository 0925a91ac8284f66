//! `trug presign`: creates a URL that downloads or uploads one object.

use server::management::{AdminRequest, AdminResponse, ObjectRequest};

use crate::exit::{self, Failure};
use crate::management::{StoreArgs, request};
use crate::places::ObjectPath;
use crate::{output, units};

/// Create a presigned URL to download or upload one object.
///
/// Anyone who has the URL can use it until it expires, as the owner of the bucket could. An upload replaces the object:
/// `curl -T FILE URL`. Objects of a public bucket are downloaded by their plain URL, which does not expire.
#[derive(clap::Args)]
#[command(after_help = exit::help("trug presign pics/2026/cat.jpg --expires 1d --data data"))]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// Object.
    #[arg(value_name = "BUCKET/PATH")]
    path: String,
    /// Create a URL for an upload by PUT.
    #[arg(long)]
    put: bool,
    /// Lifetime, such as 90s, 15m, 12h or 7d; at most 7 days.
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = units::seconds)]
    expires: u64,
    /// Base URL. [default: that of the running server]
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let ObjectPath { bucket, path } = ObjectPath::parse_object(&args.path)?;
    let Args { store, put: upload, expires: expires_in, public_url, .. } = args;
    let presign = ObjectRequest::Presign { bucket, path, upload, expires_in, public_url };
    let reply = request(&store, AdminRequest::Object(presign))?;
    if let AdminResponse::Presigned(presigned) = &reply {
        if presigned.expires_at.is_none() {
            output::print_note("the bucket is public: this URL does not expire");
        }
        if presigned.url.starts_with('/') {
            output::print_note("no server is running: add its address, or use --public-url");
        }
    }
    output::reply(&reply, store.format())
}
