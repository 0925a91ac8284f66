//! `trug rm`: deletes objects.

use server::management::{AdminRequest, AdminResponse, ObjectRequest};

use crate::exit::{self, Failure};
use crate::management::{Connection, StoreArgs};
use crate::output;
use crate::places::ObjectPath;
use crate::transfer::{self, Report};

/// Delete objects.
///
/// Thumbnails are deleted with their images. `trug undelete` restores objects until their space is reclaimed. With -r a
/// folder is deleted with everything below it; BUCKET/ empties a bucket.
#[derive(clap::Args)]
#[command(after_help = exit::help("trug rm pics/2026/draft.jpg --data data"))]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// Objects or folders to delete.
    #[arg(value_name = "BUCKET/PATH", required = true)]
    paths: Vec<String>,
    /// Delete folders with everything below them.
    #[arg(short, long)]
    recursive: bool,
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let Args { store, paths, recursive } = args;
    if let Some(bucket) = paths.iter().find(|path| !path.contains('/')) {
        let message = format!(
            "{bucket:?} is not BUCKET/PATH; `trug rm -r {bucket}/` deletes all its objects, `trug bucket delete {bucket}` the bucket"
        );
        return Err(Failure::wrong_usage(message));
    }
    let mut connection = Connection::open(&store)?;
    let mut report = Report::default();
    for path in &paths {
        let path = ObjectPath::parse(path);
        if transfer::is_folder_of_objects(&mut connection, &path)? {
            transfer::require_recursive(recursive, &path)?;
            transfer::for_each_object(&mut connection, &path, |connection, objects| {
                let bytes = objects.iter().filter(|it| !it.is_thumbnail).map(|it| it.bytes).sum();
                let paths = objects.into_iter().map(|object| object.path).collect();
                report.add((delete(connection, &path.bucket, paths)?, bytes));
                Ok(())
            })?;
        } else {
            let bytes = transfer::bytes_of(&mut connection, &path)?;
            report.add((delete(&mut connection, &path.bucket, vec![path.path])?, bytes));
        }
    }
    report.print("deleted", &store)
}

/// Deletes objects of a bucket. Returns their number.
fn delete(connection: &mut Connection, bucket: &str, paths: Vec<String>) -> Result<u64, Failure> {
    let request = ObjectRequest::Delete { bucket: bucket.to_owned(), paths };
    match connection.request(AdminRequest::Object(request))? {
        AdminResponse::ObjectsDeleted(deleted) => Ok(deleted.deleted_count),
        _ => Err(output::unexpected()),
    }
}
