//! Transfers of objects and folders, for `cp`, `mv` and `cat`.
//!
//! Non-goals: which transfers a command line means.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use jobs::archive::limits::IMPORT_FILES_MAX;
use jobs::archive::{
    ArchiveLocation as ArchivePlace, ImportConflictRule, ImportReport, ImportRules, ImportSource,
};
use serde_json::json;
use server::management::{
    AdminRequest, AdminResponse, Copying, ListedObjectView, ObjectRequest, ObjectsView,
};

use crate::exit::Failure;
use crate::local_file::UnfinishedFile;
use crate::management::{Connection, StoreArgs};
use crate::output;
use crate::places::{Location, ObjectPath};
use crate::units::bytes_text;

pub(crate) const STDIN: &str = "/proc/self/fd/0";
pub(crate) const STDOUT: &str = "/proc/self/fd/1";

/// Objects that a command transferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    count: u64,
    bytes: u64,
}

impl Report {
    pub(crate) fn add(&mut self, (count, bytes): (u64, u64)) {
        self.count += count;
        self.bytes += bytes;
    }

    /// Prints the report. `done` is a past participle such as `copied`.
    pub(crate) fn print(self, done: &str, store: &StoreArgs) -> Result<(), Failure> {
        let Self { count, bytes } = self;
        output::result(&match store.is_json() {
            true => output::document(
                &json!({ format!("{done}Count"): count, format!("{done}Bytes"): bytes }),
            )?,
            false => {
                let objects = if count == 1 { "object" } else { "objects" };
                format!("{done} {} {objects}, {}\n", output::count_text(count), bytes_text(bytes))
            }
        })
    }
}

/// Returns whether a destination is a folder, in which sources keep their names.
///
/// # Errors
///
/// [`Exit::WrongUsage`](crate::exit::Exit::WrongUsage) if there are several sources and it is not.
pub(crate) fn is_folder(destination: &Location, several: bool) -> Result<bool, Failure> {
    let is_folder = match destination {
        Location::Object(object) => object.is_folder(),
        Location::Local(path) => {
            path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/")
        }
        Location::Stream => false,
    };
    match several && !is_folder {
        true => Err(Failure::wrong_usage("DST must be a bucket or folder for several SRC")),
        false => Ok(is_folder),
    }
}

pub(crate) fn require_recursive(recursive: bool, source: &dyn Display) -> Result<(), Failure> {
    match recursive {
        true => Ok(()),
        false => Err(Failure::wrong_usage(format!("{source} is a folder; use -r"))),
    }
}

/// Returns whether a path is a folder: it has no object of its own, but objects below it.
///
/// # Errors
///
/// [`Exit::Failed`](crate::exit::Exit::Failed) if there is neither.
pub(crate) fn is_folder_of_objects(
    connection: &mut Connection,
    object: &ObjectPath,
) -> Result<bool, Failure> {
    if object.is_folder() {
        return Ok(true);
    }
    let ObjectPath { bucket, path } = object.clone();
    match connection.request(AdminRequest::Object(ObjectRequest::Stat { bucket, path })) {
        Ok(_) => Ok(false),
        Err(missing) => {
            let page = list(connection, object, None, 1)?;
            if page.objects.is_empty() { Err(missing) } else { Ok(true) }
        }
    }
}

/// Returns the size of an object in bytes.
pub(crate) fn bytes_of(connection: &mut Connection, object: &ObjectPath) -> Result<u64, Failure> {
    let ObjectPath { bucket, path } = object.clone();
    match connection.request(AdminRequest::Object(ObjectRequest::Stat { bucket, path }))? {
        AdminResponse::Object(object) => Ok(object.bytes),
        _ => Err(output::unexpected()),
    }
}

/// Returns a page of the objects in a folder and below it.
pub(crate) fn list(
    connection: &mut Connection,
    folder: &ObjectPath,
    after: Option<String>,
    limit: u64,
) -> Result<ObjectsView, Failure> {
    let (bucket, prefix) = (folder.bucket.clone(), folder.folder());
    let request = ObjectRequest::List { bucket, prefix, recursive: true, after, limit };
    match connection.request(AdminRequest::Object(request))? {
        AdminResponse::Objects(objects) => Ok(objects),
        _ => Err(output::unexpected()),
    }
}

/// Calls `each` with the objects in a folder and below it.
pub(crate) fn for_each_object(
    connection: &mut Connection,
    folder: &ObjectPath,
    mut each: impl FnMut(&mut Connection, Vec<ListedObjectView>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut after = None;
    loop {
        let page = list(connection, folder, after, engine::limits::LIST_PAGE_MAX as u64)?;
        after = page.next_after;
        each(connection, page.objects)?;
        if after.is_none() {
            return Ok(());
        }
    }
}

/// Copies or moves an object or folder within the store.
pub(crate) fn within(
    connection: &mut Connection,
    from: &ObjectPath,
    to: &ObjectPath,
    into_folder: bool,
    recursive: bool,
    request: impl Fn(Copying) -> AdminRequest,
    report: &mut Report,
) -> Result<(), Failure> {
    if !is_folder_of_objects(connection, from)? {
        let to = if into_folder { to.join(from.name()) } else { to.clone() };
        report.add(within_one(connection, from, &to, &request)?);
        return Ok(());
    }
    require_recursive(recursive, from)?;
    let to = folder_target(from, to);
    if from.bucket == to.bucket && to.folder().starts_with(&from.folder()) {
        return Err(Failure::wrong_usage(format!("{to} is inside {from}")));
    }
    for_each_object(connection, from, |connection, objects| {
        // Thumbnails go with their images.
        for object in objects.into_iter().filter(|object| !object.is_thumbnail) {
            let below = object.path.strip_prefix(&from.folder()).unwrap_or(&object.path);
            let to = to.join(below);
            let from = ObjectPath { bucket: from.bucket.clone(), path: object.path.clone() };
            report.add(within_one(connection, &from, &to, &request)?);
        }
        Ok(())
    })
}

/// Returns where a folder goes: its contents if it was written with `/` at its end, else a folder of its name.
fn folder_target(from: &ObjectPath, to: &ObjectPath) -> ObjectPath {
    match from.is_folder() {
        true => ObjectPath { bucket: to.bucket.clone(), path: to.folder() },
        false => ObjectPath { path: format!("{}/", to.join(from.name()).path), ..to.clone() },
    }
}

fn within_one(
    connection: &mut Connection,
    from: &ObjectPath,
    to: &ObjectPath,
    request: &impl Fn(Copying) -> AdminRequest,
) -> Result<(u64, u64), Failure> {
    let copying = Copying {
        bucket: from.bucket.clone(),
        path: from.path.clone(),
        to_bucket: to.bucket.clone(),
        to_path: to.path.clone(),
    };
    match connection.request(request(copying))? {
        AdminResponse::ObjectCopied(written) | AdminResponse::ObjectMoved(written) => {
            Ok((1, written.bytes))
        }
        _ => Err(output::unexpected()),
    }
}

/// Imports into a bucket, replacing what is there.
pub(crate) fn import(
    connection: &mut Connection,
    bucket: &str,
    folder: Option<String>,
    from: ImportSource,
) -> Result<ImportReport, Failure> {
    let rules = ImportRules {
        on_conflict: ImportConflictRule::Replace,
        files_max: IMPORT_FILES_MAX,
        bytes_max: None,
    };
    let request = AdminRequest::Import { bucket: bucket.to_owned(), folder, from, rules };
    match connection.request(request)? {
        AdminResponse::Imported(report) => match &report.stopped {
            Some(why) => Err(Failure::failed(why.clone())),
            None => Ok(report),
        },
        _ => Err(output::unexpected()),
    }
}

/// Writes an object to an open file or stream of this process. Returns its bytes.
pub(crate) fn read_to(
    connection: &mut Connection,
    object: &ObjectPath,
    to: PathBuf,
) -> Result<u64, Failure> {
    let ObjectPath { bucket, path } = object.clone();
    let request = ObjectRequest::Read { bucket, path, to: ArchivePlace::Stream(to) };
    match connection.request(AdminRequest::Object(request))? {
        AdminResponse::ObjectRead(read) => Ok(read.bytes),
        _ => Err(output::unexpected()),
    }
}

/// Writes an object to a file, replacing it. Returns the count and bytes for the report.
pub(crate) fn download(
    connection: &mut Connection,
    object: &ObjectPath,
    file: &Path,
) -> Result<(u64, u64), Failure> {
    let unfinished = UnfinishedFile::create(file)?;
    let bytes = read_to(connection, object, unfinished.path().to_owned())?;
    unfinished.complete()?;
    Ok((1, bytes))
}
