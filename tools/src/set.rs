//! `trug set`: changes type, headers, metadata or expiry of an object.

use std::collections::BTreeMap;

use clap::ArgGroup;
use server::management::{AdminRequest, ObjectEdit, ObjectRequest};

use crate::exit::{self, Failure};
use crate::management::{StoreArgs, perform};
use crate::places::ObjectPath;
use crate::units;

/// Change content type, metadata or expiry of an object.
///
/// Content, ETag and modification time do not change.
#[derive(clap::Args)]
#[command(
    after_help = exit::help("trug set pics/2026/cat.jpg --meta camera=X100 --expires 30d --data data"),
    group(
        ArgGroup::new("change")
            .args(["content_type", "cache_control", "metadata", "expires"])
            .required(true)
            .multiple(true)
    )
)]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// Object.
    #[arg(value_name = "BUCKET/PATH")]
    path: String,
    /// Content type, which the content must not contradict.
    #[arg(id = "content_type", long = "type", value_name = "TYPE")]
    content_type: Option<String>,
    /// Cache-Control; empty for the default.
    #[arg(long, value_name = "VALUE")]
    cache_control: Option<String>,
    /// User metadata; an empty value removes the key. Can be repeated.
    #[arg(id = "metadata", long = "meta", value_name = "KEY=VALUE", value_parser = pair)]
    metadata: Vec<(String, String)>,
    /// Expiry: a duration such as 30d, a date, or "never".
    #[arg(long, value_name = "WHEN", value_parser = units::expiry)]
    expires: Option<String>,
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let ObjectPath { bucket, path } = ObjectPath::parse_object(&args.path)?;
    let edit = ObjectEdit {
        content_type: args.content_type,
        cache_control: args.cache_control,
        metadata: BTreeMap::from_iter(args.metadata),
        expires_at: args.expires,
    };
    perform(&args.store, AdminRequest::Object(ObjectRequest::Edit { bucket, path, edit }))
}

fn pair(typed: &str) -> Result<(String, String), String> {
    let (key, value) = typed.split_once('=').ok_or("expected KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}
