//! `trug link`: shared links, which open pages with files or request files.
//!
//! Non-goals: the operations, which `management` performs.

use std::path::{Path, PathBuf};

use catalog::{AskName, LinkKind, PasswordHash};
use clap::{ArgGroup, Args, Subcommand};
use server::management::{AdminRequest, AdminResponse, LinkLifetime, LinkRequest, LinkSettings};

use crate::exit::{self, Failure};
use crate::management::{StoreArgs, perform, request};
use crate::names::Id;
use crate::places::ObjectPath;
use crate::units;
use crate::value_parsers::{self, Limit};
use crate::{output, password};

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Create a download link. The URL alone is written to stdout.
    #[command(
        visible_alias = "mk",
        after_help = exit::help("trug link create pics/2026/ --expires 7d --downloads 20 --data data")
    )]
    Create(Create),
    /// Create an upload link, on whose page others add files to a folder. The URL alone is written to stdout.
    #[command(after_help = exit::help("trug link request pics/inbox/ --files 50 --ask-name required --data data"))]
    Request(Request),
    /// List links and their use, newest first.
    #[command(visible_alias = "ls", after_help = exit::help("trug link list pics --data data"))]
    List(List),
    /// Show a link, its URL and its use.
    #[command(after_help = exit::help("trug link show abcdefghijklmnop --data data"))]
    Show(One),
    /// Change the expiry, password, texts or limits of a link.
    #[command(
        after_help = exit::help("trug link edit abcdefghijklmnop --expires 30d --data data"),
        group(
            ArgGroup::new("change")
                .args([
                    "expires", "password_file", "no_password", "title", "message", "downloads", "files", "size",
                    "types", "ask_name",
                ])
                .required(true)
                .multiple(true)
        )
    )]
    Edit(Edit),
    /// End a link: everyone who has it loses access at once.
    #[command(
        visible_aliases = ["delete", "rm"],
        after_help = exit::help("trug link end abcdefghijklmnop --data data")
    )]
    End(One),
}

/// Options of both kinds.
#[derive(Args)]
pub(crate) struct Common {
    /// Expiry: a duration such as 30d, a date, or "never" [default for a new link: 7d].
    #[arg(long, value_name = "WHEN", value_parser = units::expiry)]
    expires: Option<String>,
    /// File with the password that the page asks for ("-" for stdin).
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Title shown on the page.
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Message shown on the page.
    #[arg(long, value_name = "TEXT")]
    message: Option<String>,
}

/// Limits of an upload link.
#[derive(Args)]
pub(crate) struct UploadLimits {
    /// Maximum number of files of an upload link [default for a new link: 100].
    #[arg(long, value_name = "N")]
    files: Option<u64>,
    /// Maximum total size of an upload link [default for a new link: 10GB].
    #[arg(long, value_parser = units::size)]
    size: Option<u64>,
    /// Content types accepted by an upload link, comma-separated; empty for those of the bucket.
    #[arg(long, value_name = "LIST")]
    types: Option<String>,
    /// Ask for the sender's name [default for a new link: optional].
    #[arg(long, value_name = "MODE", ignore_case = true, value_parser = value_parsers::of(value_parsers::ASK_NAME))]
    ask_name: Option<AskName>,
}

#[derive(Args)]
pub(crate) struct Create {
    #[command(flatten)]
    store: StoreArgs,
    /// Objects, and folders with "/" at their end, of one bucket.
    #[arg(value_name = "BUCKET/PATH", required = true)]
    paths: Vec<String>,
    #[command(flatten)]
    common: Common,
    /// Maximum number of downloads, or "none".
    #[arg(long, value_name = "N")]
    downloads: Option<Limit>,
    /// Hide "Download all" on the page.
    #[arg(long)]
    no_zip: bool,
    /// Base URL. [default: that of the running server]
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
}

#[derive(Args)]
pub(crate) struct Request {
    #[command(flatten)]
    store: StoreArgs,
    /// Folder that gets the files.
    #[arg(value_name = "BUCKET/FOLDER/")]
    folder: String,
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    limits: UploadLimits,
    /// Base URL. [default: that of the running server]
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
}

#[derive(Args)]
pub(crate) struct List {
    #[command(flatten)]
    store: StoreArgs,
    /// Only links of this bucket.
    #[arg(value_name = "BUCKET")]
    bucket: Option<String>,
}

#[derive(Args)]
pub(crate) struct One {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    id: Id,
}

#[derive(Args)]
pub(crate) struct Edit {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    id: Id,
    #[command(flatten)]
    common: Common,
    /// Remove the password.
    #[arg(long, conflicts_with = "password_file")]
    no_password: bool,
    /// Maximum number of downloads of a download link, or "none".
    #[arg(long, value_name = "N")]
    downloads: Option<Limit>,
    #[command(flatten)]
    limits: UploadLimits,
}

pub(crate) fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Create(create) => run_create(create),
        Command::Request(wanted) => {
            let Request { store, folder, common, limits, public_url } = wanted;
            let place = ObjectPath::parse(&folder);
            let password = password_of(common.password_file.as_deref())?;
            let settings = limits.applied_to(common.settings());
            let kind = LinkKind::Upload;
            let (bucket, paths) = (place.bucket, vec![place.path]);
            let lifetime = LinkLifetime::default();
            let link = LinkRequest::Create {
                kind,
                bucket,
                paths,
                settings,
                password,
                public_url,
                lifetime,
            };
            create(&store, link)
        }
        Command::List(List { store, bucket }) => {
            perform(&store, AdminRequest::Link(LinkRequest::List { bucket, public_url: None }))
        }
        Command::Show(One { store, id }) => perform(
            &store,
            AdminRequest::Link(LinkRequest::Show { id: id.get(), public_url: None }),
        ),
        Command::Edit(Edit { store, id, common, no_password, downloads, limits }) => {
            let password = password_of(common.password_file.as_deref())?;
            let settings = LinkSettings {
                password: no_password.then_some(None),
                downloads_max: downloads.map(Limit::get),
                ..limits.applied_to(common.settings())
            };
            let (id, public_url, lifetime) = (id.get(), None, LinkLifetime::default());
            perform(
                &store,
                AdminRequest::Link(LinkRequest::Edit {
                    id,
                    settings,
                    password,
                    public_url,
                    lifetime,
                }),
            )
        }
        Command::End(One { store, id }) => {
            perform(&store, AdminRequest::Link(LinkRequest::End { id: id.get(), public_url: None }))
        }
    }
}

fn run_create(wanted: Create) -> Result<(), Failure> {
    let Create { store, paths, common, downloads, no_zip, public_url } = wanted;
    let places: Vec<_> = paths.iter().map(|path| ObjectPath::parse(path)).collect();
    let bucket = places.first().map(|place| place.bucket.clone()).unwrap_or_default();
    if let Some(other) = places.iter().find(|place| place.bucket != bucket) {
        let message =
            format!("{:?} is another bucket than {bucket:?}: a link has one", other.bucket);
        return Err(Failure::wrong_usage(message));
    }
    let password = password_of(common.password_file.as_deref())?;
    let settings = LinkSettings {
        downloads_max: downloads.map(Limit::get),
        zip: no_zip.then_some(false),
        ..common.settings()
    };
    let (kind, paths) = (LinkKind::Download, places.into_iter().map(|place| place.path).collect());
    let lifetime = LinkLifetime::default();
    create(
        &store,
        LinkRequest::Create { kind, bucket, paths, settings, password, public_url, lifetime },
    )
}

fn create(store: &StoreArgs, link: LinkRequest) -> Result<(), Failure> {
    let reply = request(store, AdminRequest::Link(link))?;
    if let AdminResponse::LinkCreated(link) = &reply {
        let until = link.expires_at.as_ref().map(|at| format!(", until {at}"));
        output::print_note(&format!("link {} created{}", link.id, until.unwrap_or_default()));
        if link.url.starts_with('/') {
            output::print_note("no server is running: add its address, or use --public-url");
        }
    }
    output::reply(&reply, store.format())
}

fn password_of(file: Option<&Path>) -> Result<Option<PasswordHash>, Failure> {
    file.map(password::read_for_link).transpose()
}

impl Common {
    fn settings(self) -> LinkSettings {
        LinkSettings {
            // An empty text is "never".
            expires_at: self.expires.map(|time| Some(time).filter(|time| !time.is_empty())),
            title: self.title,
            message: self.message,
            ..LinkSettings::default()
        }
    }
}

impl UploadLimits {
    fn applied_to(self, settings: LinkSettings) -> LinkSettings {
        let list = |text: String| {
            let types = text.split(',').map(str::trim).filter(|kind| !kind.is_empty());
            types.map(str::to_owned).collect()
        };
        LinkSettings {
            files_max: self.files,
            bytes_max: self.size,
            allowed_types: self.types.map(list),
            ask_name: self.ask_name,
            ..settings
        }
    }
}
