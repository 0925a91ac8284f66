//! `trug mv`: moves or renames objects.

use server::management::{AdminRequest, Copying, ObjectRequest};

use crate::exit::{self, Failure};
use crate::management::{Connection, StoreArgs};
use crate::places::{Location, ObjectPath};
use crate::transfer::{self, Report};

/// Move or rename objects.
///
/// The destination is replaced. Thumbnails move with their images. Between buckets an object is copied, then deleted.
/// With -r a folder is moved with everything below it: as a folder of the same name, or, if SRC ends with "/" or is a
/// bucket, only its contents.
#[derive(clap::Args)]
#[command(after_help = exit::help("trug mv pics/draft.jpg pics/2026/final.jpg --data data"))]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// Objects or folders to move: BUCKET/PATH.
    #[arg(value_name = "SRC", required = true)]
    sources: Vec<String>,
    /// BUCKET/PATH of the object, or a bucket or folder, which ends with "/".
    #[arg(value_name = "DST", required = true)]
    destination: String,
    /// Move folders with everything below them.
    #[arg(short, long)]
    recursive: bool,
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let Args { store, sources, destination, recursive } = args;
    let destination = ObjectPath::parse(&destination);
    let place = Location::Object(destination.clone());
    let into_folder = transfer::is_folder(&place, sources.len() > 1)?;
    let mut connection = Connection::open(&store)?;
    let mut report = Report::default();
    let request = |it: Copying| AdminRequest::Object(ObjectRequest::Move(it));
    for source in &sources {
        let from = ObjectPath::parse(source);
        let (to, report) = (&destination, &mut report);
        transfer::within(&mut connection, &from, to, into_folder, recursive, request, report)?;
    }
    report.print("moved", &store)
}
