//! `trug account`: accounts, which own buckets and API keys.
//!
//! Non-goals: the operations, which `management` performs.

use std::path::PathBuf;

use catalog::{FairUseStanding, Plan, Role};
use clap::{ArgGroup, Args, Subcommand};
use protocol::public_url::PublicUrl;
use server::management::{AccountSettings, AdminRequest};

use crate::exit::{self, Failure};
use crate::management::{StoreArgs, perform, perform_creating};
use crate::names::{Account, NewAccount};
use crate::startup::quoted;
use crate::units::SizeLimit;
use crate::value_parsers::{self, Limit};
use crate::{output, password};

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Create an account, and the data folder if needed. The first account is an operator.
    #[command(
        visible_alias = "mk",
        after_help = exit::help("trug account create me --data data")
    )]
    Create(Create),
    /// List accounts.
    #[command(visible_alias = "ls", after_help = exit::help("trug account list --data data"))]
    List(List),
    /// Change the name, role, quota, plan or standing of an account.
    #[command(
        after_help = exit::help("trug account edit me --role operator --data data"),
        group(
            ArgGroup::new("change")
                .args(["new_name", "plan", "standing", "role", "storage_max", "objects_max"])
                .required(true)
                .multiple(true)
        )
    )]
    Edit(Edit),
    /// Set the password of an account, which signs out all its sessions.
    #[command(after_help = exit::help("trug account password me --data data"))]
    Password(SetPassword),
    /// Create a link to choose a password, valid once for 24 hours. The link alone is written to stdout.
    #[command(after_help = exit::help("trug account invite ann --data data"))]
    Invite(Invite),
    /// Delete an account; --force deletes its buckets and organisations too.
    #[command(
        visible_alias = "rm",
        after_help = exit::help("trug account delete carl --data data")
    )]
    Delete(Delete),
    /// Apply the fair-use policy to accounts on the plan Free: notified, upgrade_requested, throttled, suspended.
    /// Request counts are known only to a running server; without one only stored bytes count.
    #[command(after_help = exit::help("trug account sweep --data data"))]
    Sweep(Sweep),
}

#[derive(Args)]
pub(crate) struct Create {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    name: NewAccount,
    /// Rate-limit tier [default: Business].
    #[arg(long, ignore_case = true, value_parser = value_parsers::of(value_parsers::PLAN))]
    plan: Option<Plan>,
    #[command(flatten)]
    reach: Reach,
}

#[derive(Args)]
pub(crate) struct List {
    #[command(flatten)]
    store: StoreArgs,
}

#[derive(Args)]
pub(crate) struct Delete {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    account: Account,
    /// Delete the buckets and organisations of the account too.
    #[arg(long)]
    force: bool,
}

#[derive(Args)]
pub(crate) struct Sweep {
    #[command(flatten)]
    store: StoreArgs,
}

#[derive(Args)]
pub(crate) struct SetPassword {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    account: Account,
    /// File whose first line is the password [default: ask, or read stdin].
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct Invite {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    account: Account,
    /// Base URL of the link [default: that of the running server].
    #[arg(long, value_name = "URL", env = "TRUG_PUBLIC_URL")]
    public_url: Option<String>,
}

#[derive(Args)]
pub(crate) struct Edit {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    account: Account,
    /// New name.
    #[arg(id = "new_name", long = "name", value_name = "NAME")]
    name: Option<String>,
    /// Rate-limit tier.
    #[arg(long, ignore_case = true, value_parser = value_parsers::of(value_parsers::PLAN))]
    plan: Option<Plan>,
    /// Fair-use standing; the API keys and sessions of a suspended account are rejected.
    #[arg(long, ignore_case = true, value_parser = value_parsers::of(value_parsers::STANDING))]
    standing: Option<FairUseStanding>,
    #[command(flatten)]
    reach: Reach,
}

/// Role and quota of an account.
#[derive(Args)]
struct Reach {
    /// Role [default: user; operator for the first account].
    #[arg(long, ignore_case = true, value_parser = value_parsers::of(value_parsers::ROLE))]
    role: Option<Role>,
    /// Storage quota of the account, such as 50GB, or "none".
    #[arg(long, value_name = "SIZE", alias = "storage-bytes-max")]
    storage_max: Option<SizeLimit>,
    /// Object quota of the account, or "none".
    #[arg(long, value_name = "N", alias = "object-count-max")]
    objects_max: Option<Limit>,
}

impl Reach {
    fn settings(self) -> AccountSettings {
        let Self { role, storage_max, objects_max } = self;
        AccountSettings {
            role,
            storage_bytes_max: storage_max.map(|SizeLimit(bytes)| bytes),
            object_count_max: objects_max.map(Limit::get),
            ..AccountSettings::default()
        }
    }
}

pub(crate) fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Create(Create { store, name, plan, reach }) => {
            let (name, settings) = (name.get(), AccountSettings { plan, ..reach.settings() });
            perform_creating(&store, AdminRequest::CreateAccount { name: name.clone(), settings })?;
            let (name, data) = (quoted(&name), quoted(&store.data().display().to_string()));
            output::print_note(&format!(
                "next: set a password to sign in to the dashboard, or create an invitation link:\n  \
                 trug account password {name} --data {data}\n  \
                 trug account invite {name} --data {data}"
            ));
            Ok(())
        }
        Command::List(List { store }) => perform(&store, AdminRequest::ListAccounts),
        Command::Password(SetPassword { store, account, password_file }) => {
            let password = password::read(password_file.as_deref())?;
            perform(&store, AdminRequest::SetPassword { account: account.get(), password })
        }
        Command::Invite(Invite { store, account, public_url }) => {
            let public_url = public_url.map(|url| PublicUrl::parse(&url)).transpose();
            let public_url =
                public_url.map_err(|why| Failure::wrong_usage(format!("--public-url: {why}")))?;
            let public_url = public_url.map(|url| url.as_str().to_owned());
            perform(&store, AdminRequest::InviteAccount { account: account.get(), public_url })
        }
        Command::Delete(Delete { store, account, force }) => {
            perform(&store, AdminRequest::DeleteAccount { account: account.get(), force })
        }
        Command::Sweep(Sweep { store }) => perform(&store, AdminRequest::SweepAccounts),
        Command::Edit(Edit { store, account, name, plan, standing, reach }) => {
            let settings = AccountSettings { name, plan, standing, ..reach.settings() };
            perform(&store, AdminRequest::EditAccount { account: account.get(), settings })
        }
    }
}
