//! `trug backup`: a copy of the store that can be opened.
//!
//! Never here: copying.

use std::path::PathBuf;

use server::management::Request;

use crate::archive_place;
use crate::exit::{self, Failure};
use crate::management::{StoreArgs, perform};

/// Copy the whole store to another folder, and the next time only what is new.
///
/// Works while a server runs: then the server writes the folder, as the user that it runs as. The folder is the store
/// as it was at one moment: to restore, copy it to where the data was, or serve it. Every byte that is copied is
/// verified; what is damaged is copied as it is and named, and the exit code is 3. Stopped early, the folder is still
/// the backup that it was, and the next run goes on.
#[derive(clap::Args)]
#[command(after_help = exit::help("trug backup --data data --to /backup/trug"))]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// The folder: a new one, an empty one, or an earlier backup of the same store.
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let Args { store, to } = args;
    let to = archive_place::outside(&to, store.data())?;
    perform(&store, Request::Backup { to })
}
