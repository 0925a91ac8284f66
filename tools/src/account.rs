//! `trug account`: who owns buckets and keys.
//!
//! Never here: how it is done; `management` does it.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};
use server::catalog::{Plan, Role, Standing};
use server::config::PublicUrl;
use server::management::{AccountSettings, Request};

use crate::choice::{self, Limit};
use crate::exit::{self, Failure};
use crate::management::{StoreArgs, perform, perform_creating};
use crate::password;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Make an account. Where the data folder is no store yet, one is made.
    #[command(after_help = exit::help("trug account create --data data --name me"))]
    Create(Create),
    /// List all accounts.
    #[command(after_help = exit::help("trug account list --data data"))]
    List(List),
    /// Change the name, the plan, the standing, the role or the quota of an account.
    #[command(
        after_help = exit::help("trug account edit --data data --account me --plan Pro"),
        group(
            ArgGroup::new("change")
                .args(["name", "plan", "standing", "role", "storage_bytes_max", "object_count_max"])
                .required(true)
                .multiple(true)
        )
    )]
    Edit(Edit),
    /// Give an account a password, or another one, to sign in to the dashboard with. It is asked for, or read from
    /// stdin or a file. All sessions of the account end.
    #[command(after_help = exit::help("trug account password --data data --account me"))]
    Password(SetPassword),
    /// Make a link with which the holder of an account chooses its password, once, within 24 hours. The link alone goes
    /// to stdout.
    #[command(after_help = exit::help("trug account invite --data data --account ann"))]
    Invite(Invite),
    /// Move accounts of the plan Free that break fair use one step on: notified, upgrade_requested, throttled,
    /// suspended. What accounts asked for is known to a running server alone; without one only what they store counts.
    #[command(after_help = exit::help("trug account sweep --data data"))]
    Sweep(Sweep),
}

#[derive(Args)]
pub(crate) struct Create {
    #[command(flatten)]
    store: StoreArgs,
    /// What the account is called; no two have the same name.
    #[arg(long)]
    name: String,
    /// What the account pays for.
    #[arg(long, ignore_case = true, default_value = "Free", value_parser = choice::of(choice::PLAN))]
    plan: Plan,
    #[command(flatten)]
    reach: Reach,
}

#[derive(Args)]
pub(crate) struct List {
    #[command(flatten)]
    store: StoreArgs,
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
    /// Name or id of the account.
    #[arg(long)]
    account: String,
    /// A file whose first line is the password.
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct Invite {
    #[command(flatten)]
    store: StoreArgs,
    /// Name or id of the account.
    #[arg(long)]
    account: String,
    /// What stands before the link. A running server knows its own.
    #[arg(long, value_name = "URL", env = "TRUG_PUBLIC_URL")]
    public_url: Option<String>,
}

#[derive(Args)]
pub(crate) struct Edit {
    #[command(flatten)]
    store: StoreArgs,
    /// Name or id of the account.
    #[arg(long)]
    account: String,
    /// Its new name.
    #[arg(long)]
    name: Option<String>,
    /// Its new plan.
    #[arg(long, ignore_case = true, value_parser = choice::of(choice::PLAN))]
    plan: Option<Plan>,
    /// Its new standing; keys of a suspended account open nothing.
    #[arg(long, ignore_case = true, value_parser = choice::of(choice::STANDING))]
    standing: Option<Standing>,
    #[command(flatten)]
    reach: Reach,
}

/// What an account may do and store.
#[derive(Args)]
struct Reach {
    /// Whether it manages accounts over HTTP.
    #[arg(long, ignore_case = true, value_parser = choice::of(choice::ROLE))]
    role: Option<Role>,
    /// Most bytes of all its buckets together; "none" for no limit.
    #[arg(long, value_name = "BYTES")]
    storage_bytes_max: Option<Limit>,
    /// Most files of all its buckets together; "none" for no limit.
    #[arg(long, value_name = "FILES")]
    object_count_max: Option<Limit>,
}

impl Reach {
    fn settings(self) -> AccountSettings {
        let Self { role, storage_bytes_max, object_count_max } = self;
        AccountSettings {
            role,
            storage_bytes_max: storage_bytes_max.map(Limit::get),
            object_count_max: object_count_max.map(Limit::get),
            ..AccountSettings::default()
        }
    }
}

pub(crate) fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Create(Create { store, name, plan, reach }) => {
            let settings = AccountSettings { plan: Some(plan), ..reach.settings() };
            perform_creating(&store, Request::CreateAccount { name, settings })
        }
        Command::List(List { store }) => perform(&store, Request::ListAccounts),
        Command::Password(SetPassword { store, account, password_file }) => {
            let password = password::read(password_file.as_deref())?;
            perform(&store, Request::SetPassword { account, password })
        }
        Command::Invite(Invite { store, account, public_url }) => {
            let public_url = public_url.map(|url| PublicUrl::parse(&url)).transpose()?;
            let public_url = public_url.map(|url| url.as_str().to_owned());
            perform(&store, Request::InviteAccount { account, public_url })
        }
        Command::Sweep(Sweep { store }) => perform(&store, Request::SweepAccounts),
        Command::Edit(Edit { store, account, name, plan, standing, reach }) => {
            let settings = AccountSettings { name, plan, standing, ..reach.settings() };
            perform(&store, Request::EditAccount { account, settings })
        }
    }
}
