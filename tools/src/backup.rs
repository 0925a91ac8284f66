//! `trug backup`: backs up a store.
//!
//! Non-goals: copying.

use std::path::PathBuf;

use server::management::AdminRequest;

use crate::archive_location;
use crate::exit::{self, Failure};
use crate::management::{StoreArgs, perform};

/// Back up the store incrementally.
///
/// The backup is a consistent snapshot and itself a data folder: to restore, copy it back or serve it. While a server
/// runs, the server writes it, as its user. All copied data is verified; damaged data is copied as it is and listed,
/// and the exit code is 3. An interrupted run leaves the previous backup intact, and the next run continues it.
#[derive(clap::Args)]
#[command(after_help = exit::help("trug backup --data data --to /backup/trug"))]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// Folder of the backup: new, empty, or an earlier backup of the same store.
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let Args { store, to } = args;
    let to = archive_location::outside(&to, store.data())?;
    perform(&store, AdminRequest::Backup { to })
}
