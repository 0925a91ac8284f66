//! `trug bucket`: named collections of files, and how they are delivered.
//!
//! Never here: how it is done; `management` does it.

use clap::{ArgGroup, Args, Subcommand};
use server::catalog::{Access, BucketKind};
use server::limits::MANAGEMENT_PAGE_MAX;
use server::management::{BucketOwner, BucketSettings, Request};

use crate::choice::{self, Limit};
use crate::exit::{self, Failure};
use crate::management::{StoreArgs, perform};

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Make a bucket.
    #[command(
        after_help = exit::help("trug bucket create --data data --account me --name pics"),
        group(ArgGroup::new("owner").args(["account", "organisation"]).required(true))
    )]
    Create(Create),
    /// List the buckets of an account, or all.
    #[command(after_help = exit::help("trug bucket list --data data --account me"))]
    List(List),
    /// List the top-level folders of a bucket, with the files and bytes in each, however deep.
    #[command(after_help = exit::help("trug bucket folders --data data --name pics"))]
    Folders(Folders),
    /// Change how the files of a bucket are delivered.
    #[command(
        after_help = exit::help("trug bucket edit --data data --name pics --access private"),
        group(
            ArgGroup::new("change")
                .args([
                    "access",
                    "placeholder",
                    "cache_control",
                    "cors_origins",
                    "allowed_types",
                    "file_bytes_max",
                    "quota_bytes",
                    "quota_objects",
                    "serve_html",
                    "thumbnails",
                ])
                .required(true)
                .multiple(true)
        )
    )]
    Edit(Edit),
    /// Delete a bucket. One that holds files needs --force, which deletes them too.
    #[command(after_help = exit::help("trug bucket delete --data data --name pics --force"))]
    Delete(Delete),
}

#[derive(Args)]
pub(crate) struct Create {
    #[command(flatten)]
    store: StoreArgs,
    /// Name or id of the account that owns it.
    #[arg(long)]
    account: Option<String>,
    /// Name or id of the organisation whose it is; it counts to the account that owns that.
    #[arg(long)]
    organisation: Option<String>,
    /// What it is called: 3 to 63 of a-z, 0-9, "-", "." and "_", first a letter or digit.
    #[arg(long)]
    name: String,
    /// What it is for; a phone bucket takes a path without extension for a folder.
    #[arg(
        long = "type",
        ignore_case = true,
        default_value = "standard",
        value_parser = choice::of(choice::KIND)
    )]
    kind: BucketKind,
    #[command(flatten)]
    settings: Settings,
}

#[derive(Args)]
pub(crate) struct List {
    #[command(flatten)]
    store: StoreArgs,
    /// Name or id of an account.
    #[arg(long)]
    account: Option<String>,
}

#[derive(Args)]
pub(crate) struct Folders {
    #[command(flatten)]
    store: StoreArgs,
    /// The bucket.
    #[arg(long)]
    name: String,
    /// Begin behind this folder: the last one that was shown.
    #[arg(long, value_name = "FOLDER")]
    after: Option<String>,
    /// Show at most this many folders.
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
    /// The bucket.
    #[arg(long)]
    name: String,
    #[command(flatten)]
    settings: Settings,
}

#[derive(Args)]
pub(crate) struct Delete {
    #[command(flatten)]
    store: StoreArgs,
    /// The bucket.
    #[arg(long)]
    name: String,
    /// Delete the files in it too.
    #[arg(long)]
    force: bool,
}

#[derive(Args)]
struct Settings {
    /// Who may read without a key: everybody, or nobody.
    #[arg(long, ignore_case = true, value_parser = choice::of(choice::ACCESS))]
    access: Option<Access>,
    /// Key of the file that is sent, with status 404, where a file is missing, or /BUCKET/KEY for one of another bucket
    /// of the account; empty for none.
    #[arg(long, value_name = "KEY")]
    placeholder: Option<String>,
    /// Cache-Control of files whose names are not random; empty for the default.
    #[arg(long, value_name = "VALUE")]
    cache_control: Option<String>,
    /// Origins whose pages may read the files, with commas; "*" for all.
    #[arg(long, value_name = "ORIGIN", value_delimiter = ',')]
    cors_origins: Option<Vec<String>>,
    /// Media types that it takes, such as image/png or image/*, with commas; empty for all.
    #[arg(long, value_name = "TYPE", value_delimiter = ',')]
    allowed_types: Option<Vec<String>>,
    /// Largest file that it takes; "none" for no limit of its own.
    #[arg(long, value_name = "BYTES")]
    file_bytes_max: Option<Limit>,
    /// Most bytes that it holds; "none" for no limit.
    #[arg(long, value_name = "BYTES")]
    quota_bytes: Option<Limit>,
    /// Most files that it holds; "none" for no limit.
    #[arg(long, value_name = "FILES")]
    quota_objects: Option<Limit>,
    /// Whether HTML goes out as pages, without scripts, instead of as text.
    #[arg(long, value_name = "BOOL")]
    serve_html: Option<bool>,
    /// Whether uploads that do not say make thumbnails of their images; a phone bucket begins with true.
    #[arg(long, value_name = "BOOL")]
    thumbnails: Option<bool>,
}

pub(crate) fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Create(Create { store, account, organisation, name, kind, settings }) => {
            // The command line has exactly one of them.
            let owner = match organisation {
                Some(organisation) => BucketOwner::Organisation(organisation),
                None => BucketOwner::Account(account.unwrap_or_default()),
            };
            let settings = settings.into();
            perform(&store, Request::CreateBucket { name, owner, kind, settings })
        }
        Command::List(List { store, account }) => perform(&store, Request::ListBuckets { account }),
        Command::Folders(Folders { store, name, after, limit }) => {
            perform(&store, Request::ListFolders { bucket: name, after, limit })
        }
        Command::Edit(Edit { store, name, settings }) => {
            perform(&store, Request::EditBucket { name, settings: settings.into() })
        }
        Command::Delete(Delete { store, name, force }) => {
            perform(&store, Request::DeleteBucket { name, force })
        }
    }
}

impl From<Settings> for BucketSettings {
    fn from(settings: Settings) -> Self {
        // An empty argument is a list of nothing.
        let list = |list: Vec<String>| list.into_iter().filter(|it| !it.is_empty()).collect();
        Self {
            access: settings.access,
            placeholder: settings.placeholder,
            cache_control: settings.cache_control,
            cors_origins: settings.cors_origins.map(list).map(Some),
            allowed_types: settings.allowed_types.map(list).map(Some),
            file_bytes_max: settings.file_bytes_max.map(Limit::get),
            quota_bytes: settings.quota_bytes.map(Limit::get),
            quota_objects: settings.quota_objects.map(Limit::get),
            serve_html: settings.serve_html,
            thumbnails: settings.thumbnails,
        }
    }
}
