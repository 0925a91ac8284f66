//! `trug organisation`: accounts that share buckets.
//!
//! Never here: how it is done; `management` does it.

use clap::{Args, Subcommand};
use server::catalog::MemberRole;
use server::management::Request;

use crate::choice;
use crate::exit::{self, Failure};
use crate::management::{StoreArgs, perform};

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Make an organisation. Its buckets count to the account that owns it.
    #[command(
        after_help = exit::help("trug organisation create --data data --account me --name Crew")
    )]
    Create(Create),
    /// List the organisations that an account belongs to, or all.
    #[command(after_help = exit::help("trug organisation list --data data --account me"))]
    List(List),
    /// Give an organisation another name.
    #[command(
        after_help = exit::help("trug organisation rename --data data --organisation Crew --name Team")
    )]
    Rename(Rename),
    /// Delete an organisation that has no buckets.
    #[command(after_help = exit::help("trug organisation delete --data data --organisation Crew"))]
    Delete(Delete),
    /// Make an account a member, or give a member another role.
    #[command(
        after_help = exit::help(
            "trug organisation add --data data --organisation Crew --account bob --role member"
        )
    )]
    Add(Add),
    /// Take a member out: the account reaches no bucket of the organisation from now on.
    #[command(
        after_help = exit::help("trug organisation remove --data data --organisation Crew --account bob")
    )]
    Remove(Remove),
}

#[derive(Args)]
pub(crate) struct Create {
    #[command(flatten)]
    store: StoreArgs,
    /// Name or id of the account that owns it.
    #[arg(long)]
    account: String,
    /// What it is called.
    #[arg(long)]
    name: String,
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
pub(crate) struct Rename {
    #[command(flatten)]
    which: Which,
    /// Its new name.
    #[arg(long)]
    name: String,
}

#[derive(Args)]
pub(crate) struct Delete {
    #[command(flatten)]
    which: Which,
}

#[derive(Args)]
pub(crate) struct Add {
    #[command(flatten)]
    which: Which,
    /// Name or id of the account.
    #[arg(long)]
    account: String,
    /// What it may do: a viewer reads and lists, a member uploads and deletes too, an admin manages buckets too, an
    /// owner decides on members too.
    #[arg(long, ignore_case = true, value_parser = choice::of(choice::MEMBER_ROLE))]
    role: MemberRole,
}

#[derive(Args)]
pub(crate) struct Remove {
    #[command(flatten)]
    which: Which,
    /// Name or id of the account.
    #[arg(long)]
    account: String,
}

#[derive(Args)]
struct Which {
    #[command(flatten)]
    store: StoreArgs,
    /// Name or id of the organisation.
    #[arg(long)]
    organisation: String,
}

pub(crate) fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Create(Create { store, account, name }) => {
            perform(&store, Request::CreateOrganisation { name, account })
        }
        Command::List(List { store, account }) => {
            perform(&store, Request::ListOrganisations { account })
        }
        Command::Rename(Rename { which: Which { store, organisation }, name }) => {
            perform(&store, Request::RenameOrganisation { organisation, name })
        }
        Command::Delete(Delete { which: Which { store, organisation } }) => {
            perform(&store, Request::DeleteOrganisation { organisation })
        }
        Command::Add(Add { which: Which { store, organisation }, account, role }) => {
            perform(&store, Request::SetMember { organisation, account, role })
        }
        Command::Remove(Remove { which: Which { store, organisation }, account }) => {
            perform(&store, Request::RemoveMember { organisation, account })
        }
    }
}
