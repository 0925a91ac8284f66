//! `trug undelete`: restores deleted objects and earlier versions.
//!
//! Non-goals: reading the log.

use server::management::{AdminRequest, UndeleteSelector};

use crate::exit::{self, Failure};
use crate::management::{StoreArgs, perform};
use crate::names::Objects;
use crate::units;

/// Restore deleted objects or an earlier version.
///
/// An object gets its newest intact version; a folder, all its deleted objects. Existing objects are overwritten only
/// by --version. `trug history` lists restorable versions. Create a deleted bucket again before restoring its objects.
/// Objects that cannot be restored are listed; the exit code is then 1 if the path names an object.
#[derive(clap::Args)]
#[command(
    after_help = exit::help("trug undelete pics/cats/tom.png --data data")
)]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    objects: Objects,
    /// Version that replaces the object, as shown by `trug history`.
    #[arg(long, value_name = "VERSION", conflicts_with = "since")]
    version: Option<u64>,
    /// Only objects deleted since a time, or a duration ago such as 24h; required for a whole bucket.
    #[arg(long, value_name = "TIME", value_parser = units::since)]
    since: Option<String>,
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let Args { store, objects, version, since } = args;
    let (bucket, path) = objects.get();
    if path.is_empty() && since.is_none() {
        return Err(Failure::wrong_usage("--since is required to restore a whole bucket"));
    }
    let is_folder = path.is_empty() || path.ends_with('/');
    let wanted = match (is_folder, version, since) {
        (true, None, since) => UndeleteSelector::Folder { path, since },
        (false, None, None) => UndeleteSelector::File { path },
        (false, Some(lsn), _) => UndeleteSelector::Version { path, lsn },
        (true, Some(_), _) => {
            return Err(Failure::wrong_usage("--version needs the path of an object"));
        }
        (false, None, Some(_)) => {
            return Err(Failure::wrong_usage(
                "--since needs a folder, which ends with \"/\", or a whole bucket",
            ));
        }
    };
    perform(&store, AdminRequest::Undelete { bucket, wanted })
}
