//! `trug bucket`: named collections of files, and how they are delivered.
//!
//! Never here: how it is done; `management` does it.

use clap::{ArgGroup, Args, Subcommand};
use server::catalog::{Access, BucketKind};
use server::management::{BucketSettings, Request};

use crate::choice;
use crate::exit::{self, Failure};
use crate::management::{StoreArgs, perform};

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Make a bucket.
    #[command(after_help = exit::help("trug bucket create --data data --account me --name pics"))]
    Create(Create),
    /// List the buckets of an account, or all.
    #[command(after_help = exit::help("trug bucket list --data data --account me"))]
    List(List),
    /// Change how the files of a bucket are delivered.
    #[command(
        after_help = exit::help("trug bucket edit --data data --name pics --access private"),
        group(
            ArgGroup::new("change")
                .args(["access", "placeholder", "cache_control", "serve_html"])
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
    account: String,
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
    /// Key of the file that is sent, with status 404, where a file is missing; empty for none.
    #[arg(long, value_name = "KEY")]
    placeholder: Option<String>,
    /// Cache-Control of files whose names are not random; empty for the default.
    #[arg(long, value_name = "VALUE")]
    cache_control: Option<String>,
    /// Whether HTML goes out as pages, without scripts, instead of as text.
    #[arg(long, value_name = "BOOL")]
    serve_html: Option<bool>,
}

pub(crate) fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Create(Create { store, account, name, kind, settings }) => {
            let settings = settings.into();
            perform(&store, Request::CreateBucket { name, account, kind, settings })
        }
        Command::List(List { store, account }) => perform(&store, Request::ListBuckets { account }),
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
        let Settings { access, placeholder, cache_control, serve_html } = settings;
        Self { access, placeholder, cache_control, serve_html }
    }
}
