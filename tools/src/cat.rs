//! `trug cat`: writes an object to stdout.

use crate::exit::{self, Failure};
use crate::management::{Connection, StoreArgs};
use crate::places::ObjectPath;
use crate::transfer;

/// Write an object to stdout.
///
/// Every byte is verified before it is written. If the object is damaged, the output ends early and the exit code is 3.
#[derive(clap::Args)]
#[command(after_help = exit::help("trug cat pics/2026/notes.txt --data data"))]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// Object.
    #[arg(value_name = "BUCKET/PATH")]
    path: String,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let object = ObjectPath::parse_object(&args.path)?;
    let mut connection = Connection::open(&args.store)?;
    transfer::read_to(&mut connection, &object, transfer::STDOUT.into()).map(drop)
}
