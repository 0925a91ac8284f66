//! `trug bucket`: buckets and their settings.
//!
//! Non-goals: the operations, which `management` performs.

use catalog::{Access, BucketKind};
use clap::{ArgGroup, Args, Subcommand};
use protocol::limits::MANAGEMENT_PAGE_MAX;
use server::management::{AdminRequest, BucketOwner, BucketSettings};

use crate::exit::{self, Failure};
use crate::management::{StoreArgs, perform};
use crate::names::{BucketName, NewBucket};
use crate::units::SizeLimit;
use crate::value_parsers::{self, Limit};

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Create a bucket.
    #[command(
        visible_alias = "mk",
        after_help = exit::help("trug bucket create pics --account me --data data"),
        group(ArgGroup::new("owner").args(["account", "organisation"]).required(true))
    )]
    Create(Create),
    /// List buckets.
    #[command(
        visible_alias = "ls",
        after_help = exit::help("trug bucket list --account me --data data")
    )]
    List(List),
    /// List top-level folders with object counts and sizes.
    #[command(after_help = exit::help("trug bucket folders pics --data data"))]
    Folders(Folders),
    /// Change the settings of a bucket.
    #[command(
        after_help = exit::help("trug bucket edit pics --access private --data data"),
        group(
            ArgGroup::new("change")
                .args([
                    "access",
                    "placeholder",
                    "cache_control",
                    "cors_origins",
                    "allowed_types",
                    "file_max",
                    "quota",
                    "quota_objects",
                    "serve_html",
                    "thumbnails",
                    "index",
                    "compression",
                ])
                .required(true)
                .multiple(true)
        )
    )]
    Edit(Edit),
    /// Delete a bucket; --force deletes its objects too.
    #[command(
        visible_alias = "rm",
        after_help = exit::help("trug bucket delete pics --force --data data")
    )]
    Delete(Delete),
}

#[derive(Args)]
pub(crate) struct Create {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    name: NewBucket,
    /// Account that owns the bucket (name or ID).
    #[arg(long)]
    account: Option<String>,
    /// Organisation that shares the bucket (name or ID); its owner's account is charged.
    #[arg(long)]
    organisation: Option<String>,
    /// Type; a phone bucket takes upload paths without an extension as folders.
    #[arg(
        long = "type",
        ignore_case = true,
        default_value = "standard",
        value_parser = value_parsers::of(value_parsers::KIND)
    )]
    kind: BucketKind,
    #[command(flatten)]
    settings: Settings,
}

#[derive(Args)]
pub(crate) struct List {
    #[command(flatten)]
    store: StoreArgs,
    /// Only buckets of this account (name or ID).
    #[arg(long)]
    account: Option<String>,
}

#[derive(Args)]
pub(crate) struct Folders {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    name: BucketName,
    /// Start after this folder (the last one of the previous page).
    #[arg(long, value_name = "FOLDER")]
    after: Option<String>,
    /// Maximum number of folders.
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = MANAGEMENT_PAGE_MAX as u64,
        value_parser = clap::value_parser!(u64).range(1..=MANAGEMENT_PAGE_MAX as u64)
    )]
    limit: u64,
}

#[derive(Args)]
pub(crate) struct Edit {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    name: BucketName,
    #[command(flatten)]
    settings: Settings,
}

#[derive(Args)]
pub(crate) struct Delete {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    name: BucketName,
    /// Delete the objects of the bucket too.
    #[arg(long)]
    force: bool,
}

#[derive(Args)]
struct Settings {
    /// Visibility: public or private.
    #[arg(long, ignore_case = true, value_parser = value_parsers::of(value_parsers::ACCESS))]
    access: Option<Access>,
    /// Object sent with status 404 when an object is missing, or /BUCKET/KEY in another bucket of the account; empty
    /// for none.
    #[arg(long, value_name = "KEY")]
    placeholder: Option<String>,
    /// Cache-Control of objects without random names; empty for the default.
    #[arg(long, value_name = "VALUE")]
    cache_control: Option<String>,
    /// Origins allowed to read objects (CORS), comma-separated, or "*".
    #[arg(long, value_name = "ORIGIN", value_delimiter = ',')]
    cors_origins: Option<Vec<String>>,
    /// Allowed content types, comma-separated, such as image/*; empty for all.
    #[arg(long, value_name = "TYPE", value_delimiter = ',')]
    allowed_types: Option<Vec<String>>,
    /// Maximum object size, such as 50MB, or "none".
    #[arg(long, value_name = "SIZE", alias = "file-bytes-max")]
    file_max: Option<SizeLimit>,
    /// Storage quota of the bucket, such as 10GB, or "none".
    #[arg(long, value_name = "SIZE", alias = "quota-bytes")]
    quota: Option<SizeLimit>,
    /// Object quota of the bucket, or "none".
    #[arg(long, value_name = "N")]
    quota_objects: Option<Limit>,
    /// Serve HTML as pages without scripts instead of plain text.
    #[arg(long, value_name = "BOOL")]
    serve_html: Option<bool>,
    /// Create thumbnails for uploads that don't specify it; on by default for phone buckets.
    #[arg(long, value_name = "BOOL")]
    thumbnails: Option<bool>,
    /// Allow search engines to index public objects.
    #[arg(long, value_name = "BOOL")]
    index: Option<bool>,
    /// Compress text-like files for clients that accept it; on by default.
    #[arg(long, value_name = "BOOL")]
    compression: Option<bool>,
}

pub(crate) fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Create(Create { store, account, organisation, name, kind, settings }) => {
            // The parser requires exactly one of them.
            let owner = match organisation {
                Some(organisation) => BucketOwner::Organisation(organisation),
                None => BucketOwner::Account(account.unwrap_or_default()),
            };
            let (name, settings) = (name.get(), settings.into());
            perform(&store, AdminRequest::CreateBucket { name, owner, kind, settings })
        }
        Command::List(List { store, account }) => {
            perform(&store, AdminRequest::ListBuckets { account })
        }
        Command::Folders(Folders { store, name, after, limit }) => {
            perform(&store, AdminRequest::ListFolders { bucket: name.get(), after, limit })
        }
        Command::Edit(Edit { store, name, settings }) => perform(
            &store,
            AdminRequest::EditBucket { name: name.get(), settings: settings.into() },
        ),
        Command::Delete(Delete { store, name, force }) => {
            perform(&store, AdminRequest::DeleteBucket { name: name.get(), force })
        }
    }
}

impl From<Settings> for BucketSettings {
    fn from(settings: Settings) -> Self {
        // An empty argument is an empty list.
        let list = |list: Vec<String>| list.into_iter().filter(|it| !it.is_empty()).collect();
        Self {
            access: settings.access,
            placeholder: settings.placeholder,
            cache_control: settings.cache_control,
            cors_origins: settings.cors_origins.map(list).map(Some),
            allowed_types: settings.allowed_types.map(list).map(Some),
            file_bytes_max: settings.file_max.map(|SizeLimit(bytes)| bytes),
            quota_bytes: settings.quota.map(|SizeLimit(bytes)| bytes),
            quota_objects: settings.quota_objects.map(Limit::get),
            serve_html: settings.serve_html,
            thumbnails: settings.thumbnails,
            index: settings.index,
            compression: settings.compression,
            lifecycle: None,
        }
    }
}
