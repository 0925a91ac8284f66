//! `trug cp`: copies objects in, out or within the store.
//!
//! Non-goals: transferring content, which `transfer` does.

use std::path::{Path, PathBuf};

use jobs::archive::{ArchiveLocation as ArchivePlace, ImportSource};
use server::management::{AdminRequest, AdminResponse, Copying, ObjectRequest};

use crate::exit::{self, Failure};
use crate::management::{Connection, StoreArgs};
use crate::places::{Location, ObjectPath, resolve};
use crate::transfer::{self, Report};
use crate::{archive_location, local_file, output};

/// Copy objects in, out or within the store.
///
/// Objects are written BUCKET/PATH; every other path is a local file, and "-" is standard input or output. A local path
/// that looks like an object is written ./BUCKET/PATH. The destination is replaced. Webhooks receive the events of
/// copies within the store, not of files that are copied in.
///
/// With -r a folder is copied with everything below it: as a folder of the same name, or, if SRC ends with "/" or is a
/// bucket, only its contents. While a server runs, folders are read and written by the server, as its user; single
/// files as yours.
#[derive(clap::Args)]
#[command(after_help = exit::help("trug cp photo.jpg pics/2026/ --data data"))]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// Files, folders or objects to copy.
    #[arg(value_name = "SRC", required = true)]
    sources: Vec<String>,
    /// Bucket, object, local file, or folder with "/" at its end.
    #[arg(value_name = "DST", required = true)]
    destination: String,
    /// Copy folders with everything below them.
    #[arg(short, long)]
    recursive: bool,
    /// Content type of files that are copied in, unless content or name have one.
    #[arg(long = "type", value_name = "TYPE")]
    content_type: Option<String>,
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let Args { store, sources, destination, recursive, content_type } = args;
    let mut connection = Connection::open(&store)?;
    let mut places = resolve(&mut connection, &[sources, vec![destination]].concat())?;
    let destination = places.pop().ok_or_else(|| Failure::wrong_usage("DST is missing"))?;
    let into_folder = transfer::is_folder(&destination, places.len() > 1)?;
    let data = store.data().to_owned();
    let mut copier = Copier { connection, data, content_type, report: Report::default() };
    for source in &places {
        copier.copy(source, &destination, into_folder, recursive)?;
    }
    match destination {
        // Standard output has the content.
        Location::Stream => Ok(()),
        Location::Object(_) | Location::Local(_) => copier.report.print("copied", &store),
    }
}

struct Copier {
    connection: Connection,
    data: PathBuf,
    content_type: Option<String>,
    report: Report,
}

impl Copier {
    fn copy(
        &mut self,
        source: &Location,
        destination: &Location,
        into_folder: bool,
        recursive: bool,
    ) -> Result<(), Failure> {
        match (source, destination) {
            (Location::Local(file), Location::Object(to)) if file.is_dir() => {
                transfer::require_recursive(recursive, &file.display())?;
                self.import(file, to)
            }
            (Location::Local(file), Location::Object(to)) => {
                let to = if into_folder { to.join(&local_file::name(file)?) } else { to.clone() };
                self.upload(local_file::readable(file)?, to)
            }
            (Location::Stream, Location::Object(to)) if !to.is_folder() => {
                self.upload((transfer::STDIN.into(), 0), to.clone())
            }
            (Location::Stream, Location::Object(_)) => {
                Err(Failure::wrong_usage("an object from standard input needs a name: BUCKET/PATH"))
            }
            (Location::Object(from), Location::Object(to)) => {
                let (connection, report) = (&mut self.connection, &mut self.report);
                let request = |it: Copying| AdminRequest::Object(ObjectRequest::Copy(it));
                transfer::within(connection, from, to, into_folder, recursive, request, report)
            }
            (Location::Object(from), Location::Local(to)) => {
                if transfer::is_folder_of_objects(&mut self.connection, from)? {
                    transfer::require_recursive(recursive, from)?;
                    return self.export(from, to);
                }
                let to = if into_folder { to.join(from.name()) } else { to.clone() };
                self.report.add(transfer::download(&mut self.connection, from, &to)?);
                Ok(())
            }
            (Location::Object(from), Location::Stream) => {
                let object = ObjectPath::parse_object(&from.to_string())?;
                transfer::read_to(&mut self.connection, &object, transfer::STDOUT.into()).map(drop)
            }
            (Location::Local(_) | Location::Stream, _) => {
                Err(Failure::wrong_usage("neither SRC nor DST begins with the name of a bucket"))
            }
        }
    }

    /// Stores a file, or a stream of unknown size (0).
    fn upload(&mut self, (file, bytes): (PathBuf, u64), to: ObjectPath) -> Result<(), Failure> {
        let from = ImportSource::File {
            place: ArchivePlace::Stream(file),
            bytes,
            path: to.path.clone(),
            content_type: self.content_type.clone(),
        };
        let report = transfer::import(&mut self.connection, &to.bucket, None, from)?;
        if let Some(refused) = report.refused.listed.first() {
            return Err(Failure::failed(format!("{to}: {}", refused.why)));
        }
        self.report.add((1, report.imported_bytes));
        Ok(())
    }

    fn import(&mut self, folder: &Path, to: &ObjectPath) -> Result<(), Failure> {
        let place = archive_location::outside(folder, &self.data)?;
        let ends_with_slash = folder.as_os_str().as_encoded_bytes().ends_with(b"/");
        let to = match folder.file_name().filter(|_| !ends_with_slash) {
            Some(_) => to.join(&local_file::name(folder)?),
            None => to.clone(),
        };
        let from = ImportSource::Files(ArchivePlace::Path(place));
        let report = transfer::import(&mut self.connection, &to.bucket, Some(to.folder()), from)?;
        self.report.add((
            report.imported_count + report.replaced_count + report.unchanged_count,
            report.imported_bytes,
        ));
        let refused = &report.refused;
        for file in &refused.listed {
            output::print_note(&format!("{}: {}", file.name, file.why));
        }
        match refused.count {
            0 => Ok(()),
            count => Err(Failure::failed(format!("{count} files were not copied"))),
        }
    }

    /// Writes the objects of a folder to a local folder.
    fn export(&mut self, from: &ObjectPath, to: &Path) -> Result<(), Failure> {
        let to = if from.is_folder() { to.to_owned() } else { to.join(from.name()) };
        // A path with "/" at its end is a folder to be created.
        let place = archive_location::outside(&to.join(""), &self.data)?;
        let reply = self.connection.request(AdminRequest::Export {
            bucket: from.bucket.clone(),
            folder: Some(from.folder()),
            to: ArchivePlace::Path(place),
        })?;
        let AdminResponse::Exported(report) = &reply else { return Err(output::unexpected()) };
        self.report.add((report.exported_count + report.unchanged_count, report.exported_bytes));
        for object in report.damaged.listed.iter().chain(&report.not_written.listed) {
            output::print_note(&format!("{}: {}", object.name, object.why));
        }
        exit::verdict(&reply)
    }
}
