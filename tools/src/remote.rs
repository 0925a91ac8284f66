//! `trug remote`: remote stores, which have a copy of a store outside its folder.
//!
//! Non-goals: replication and restore, which the engine does.

mod attach;
mod check;
mod gc;
mod location;
mod restore;
mod status;

use clap::Subcommand;

pub(crate) use self::location::{configured, replication, runtime};
use crate::exit::Failure;

#[derive(Subcommand)]
pub(crate) enum Command {
    Check(check::Args),
    Attach(attach::Args),
    Detach(attach::DetachArgs),
    Status(status::Args),
    Points(restore::PointsArgs),
    Restore(restore::Args),
    Gc(gc::Args),
}

pub(crate) fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Check(args) => check::run(args),
        Command::Attach(args) => attach::run(args),
        Command::Detach(args) => attach::detach(args),
        Command::Status(args) => status::run(args),
        Command::Points(args) => restore::points(args),
        Command::Restore(args) => restore::run(args),
        Command::Gc(args) => gc::run(args),
    }
}
