//! `trug ls`: lists buckets or objects.

use server::management::{AdminRequest, AdminResponse, ObjectRequest, ObjectsView};

use crate::exit::{self, Failure};
use crate::management::{Connection, StoreArgs, perform};
use crate::output;
use crate::places::ObjectPath;

/// List buckets or objects.
///
/// Without a bucket, lists all buckets. PREFIX is the beginning of object names: "pics/2026/" lists a folder, "pics/20"
/// everything that begins so. Folders end with "/".
#[derive(clap::Args)]
#[command(after_help = exit::help("trug ls pics/2026/ --data data"))]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// Bucket, or bucket and beginning of object names.
    #[arg(value_name = "BUCKET[/PREFIX]")]
    prefix: Option<String>,
    /// List objects in folders too, instead of the folders.
    #[arg(short, long)]
    recursive: bool,
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let Args { store, prefix, recursive } = args;
    let Some(prefix) = prefix else {
        return perform(&store, AdminRequest::ListBuckets { account: None });
    };
    let ObjectPath { bucket, path: prefix } = ObjectPath::parse(&prefix);
    let mut connection = Connection::open(&store)?;
    let mut all = ObjectsView::default();
    let mut after = None;
    loop {
        let (bucket, prefix) = (bucket.clone(), prefix.clone());
        let limit = engine::limits::LIST_PAGE_MAX as u64;
        let list = ObjectRequest::List { bucket, prefix, recursive, after, limit };
        let AdminResponse::Objects(mut page) = connection.request(AdminRequest::Object(list))?
        else {
            return Err(output::unexpected());
        };
        after = page.next_after.take();
        // Folders come first, so the listing of a folder is printed when it is complete.
        if store.is_json() || !recursive {
            all.folders.append(&mut page.folders);
            all.objects.append(&mut page.objects);
        } else {
            output::result(&output::objects_text(&page))?;
        }
        if after.is_none() {
            break;
        }
    }
    let text = match store.is_json() {
        true => output::document(&all)?,
        false => output::objects_text(&all),
    };
    output::result(&text)
}
