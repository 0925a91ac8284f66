//! `trug organisation`: accounts that share buckets.
//!
//! Non-goals: the operations, which `management` performs.

use catalog::MemberRole;
use clap::{Args, Subcommand};
use server::management::AdminRequest;

use crate::exit::{self, Failure};
use crate::management::{StoreArgs, perform};
use crate::names::{Member, NewName, NewOrganisation, Organisation};
use crate::value_parsers;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Create an organisation. Its buckets count to the account that owns it.
    #[command(
        visible_alias = "mk",
        after_help = exit::help("trug organisation create Crew --account me --data data")
    )]
    Create(Create),
    /// List organisations.
    #[command(
        visible_alias = "ls",
        after_help = exit::help("trug organisation list --account me --data data")
    )]
    List(List),
    /// Rename an organisation.
    #[command(after_help = exit::help("trug organisation rename Crew Team --data data"))]
    Rename(Rename),
    /// Delete an organisation without buckets.
    #[command(
        visible_alias = "rm",
        after_help = exit::help("trug organisation delete Crew --data data")
    )]
    Delete(Delete),
    /// Add a member, or change the role of a member.
    #[command(
        after_help = exit::help("trug organisation add Crew bob --role member --data data")
    )]
    Add(Add),
    /// Remove a member, which loses access to the buckets of the organisation.
    #[command(after_help = exit::help("trug organisation remove Crew bob --data data"))]
    Remove(Remove),
}

#[derive(Args)]
pub(crate) struct Create {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    name: NewOrganisation,
    /// Account that owns the organisation (name or ID).
    #[arg(long)]
    account: String,
}

#[derive(Args)]
pub(crate) struct List {
    #[command(flatten)]
    store: StoreArgs,
    /// Only organisations of this account (name or ID).
    #[arg(long)]
    account: Option<String>,
}

#[derive(Args)]
pub(crate) struct Rename {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    organisation: Organisation,
    #[command(flatten)]
    name: NewName,
}

#[derive(Args)]
pub(crate) struct Delete {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    organisation: Organisation,
}

#[derive(Args)]
pub(crate) struct Add {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    organisation: Organisation,
    #[command(flatten)]
    account: Member,
    /// Role: a viewer reads and lists, a member also uploads and deletes, an admin also manages buckets, an owner also
    /// manages members.
    #[arg(long, ignore_case = true, value_parser = value_parsers::of(value_parsers::MEMBER_ROLE))]
    role: MemberRole,
}

#[derive(Args)]
pub(crate) struct Remove {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    organisation: Organisation,
    #[command(flatten)]
    account: Member,
}

pub(crate) fn run(command: Command) -> Result<(), Failure> {
    let (store, request) = match command {
        Command::Create(Create { store, name, account }) => {
            (store, AdminRequest::CreateOrganisation { name: name.get(), account })
        }
        Command::List(List { store, account }) => {
            (store, AdminRequest::ListOrganisations { account })
        }
        Command::Rename(Rename { store, organisation, name }) => {
            let (organisation, name) = (organisation.get(), name.get());
            (store, AdminRequest::RenameOrganisation { organisation, name })
        }
        Command::Delete(Delete { store, organisation }) => {
            (store, AdminRequest::DeleteOrganisation { organisation: organisation.get() })
        }
        Command::Add(Add { store, organisation, account, role }) => {
            let (organisation, account) = (organisation.get(), account.get());
            (store, AdminRequest::SetMember { organisation, account, role })
        }
        Command::Remove(Remove { store, organisation, account }) => {
            let (organisation, account) = (organisation.get(), account.get());
            (store, AdminRequest::RemoveMember { organisation, account })
        }
    };
    perform(&store, request)
}
