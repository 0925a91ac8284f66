//! A bucket, or a folder of it, as a tar archive or a folder of files: out and in again. And in from other machines.
//!
//! Whoever has the store open reads and writes these files. Promises: what comes in is held to the same rules as an
//! upload; what is refused is named, and the rest goes on; nothing outside the place that was named is read or written.
//! Never here: who asks, and what is printed.

mod address_list;
mod arrivals;
mod bucket;
mod export;
mod files;
mod import;
mod object;
mod tar_entry;
mod tar_reader;
mod tries;
mod work;

use std::fmt;
use std::path::{Path, PathBuf};

use engine::{FolderKey, Store};
use serde::{Deserialize, Serialize};

use crate::catalog::{Bucket, Catalog};
use crate::destination::Origin;
use crate::limits;
use crate::outbound::Outbound;
use crate::roots::ExtraRoots;

pub use self::bucket::{BucketSource, Credentials};
pub use self::export::export;
pub use self::files::standard_stream;
pub use self::import::import;
pub use self::object::read_object;

/// Where an archive lies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Place {
    /// A file or a folder, by its absolute path.
    Path(PathBuf),
    /// A file or stream of the process that makes the request. A server receives a channel in its place.
    Stream(PathBuf),
}

/// Where an import comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Source {
    /// A tar archive, or a folder of files.
    Files(Place),
    /// One file.
    File {
        place: Place,
        /// Size in bytes, for the progress; 0 if unknown.
        bytes: u64,
        /// Key of the object, in the folder of the import.
        path: String,
        /// Declared content type.
        content_type: Option<String>,
    },
    /// What lies at the addresses of a list.
    Addresses { list: Place, reach: Reach },
    /// A bucket of a service that speaks S3.
    Bucket(BucketSource),
}

/// Which machines an import may ask beside those of the internet at large, and whom it trusts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reach {
    /// Origins of private networks.
    pub allow: Vec<String>,
    /// Certificates (PEM) of authorities beside Mozilla's.
    pub ca: Option<String>,
}

/// Which part of a store is exported or imported into.
pub struct Job<'a> {
    pub store: &'a Store,
    pub catalog: &'a Catalog,
    pub bucket: &'a Bucket,
    /// Only this folder, whose name stands in no name of the archive.
    pub folder: FolderKey,
}

/// How an import decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportRules {
    pub on_conflict: OnConflict,
    /// It stops before it takes more files,
    pub files_max: u64,
    /// or more bytes.
    pub bytes_max: Option<u64>,
}

/// What happens to a file whose key holds other content. The same content is left alone whatever is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OnConflict {
    /// The object stays as it is.
    #[default]
    Skip,
    /// The object is replaced.
    Replace,
    /// The file gets the first free ` (n)`, as an upload does.
    Rename,
    /// The import stops.
    Fail,
}

/// What an export did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportReport {
    pub bucket_name: String,
    pub exported_count: u64,
    pub exported_bytes: u64,
    /// Files of a folder that were there already.
    pub unchanged_count: u64,
    /// Objects whose bytes are not what was written; they are left out.
    pub damaged: NamedList,
    /// Objects that a folder cannot hold.
    pub not_written: NamedList,
}

/// What an import did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportReport {
    pub bucket_name: String,
    /// Files that are new.
    pub imported_count: u64,
    /// Bytes of the files that are new, replaced or renamed.
    pub imported_bytes: u64,
    pub replaced_count: u64,
    pub renamed_count: u64,
    /// Files whose content lies under their key already.
    pub unchanged_count: u64,
    /// Files whose keys hold other content, which stays.
    pub skipped: NamedList,
    /// Files that may not be imported.
    pub refused: NamedList,
    /// Why the rest was not looked at.
    pub stopped: Option<String>,
    pub duration_ms: u64,
}

/// Names with what there is to say of each: all are counted, the first ones listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NamedList {
    pub count: u64,
    pub listed: Vec<Named>,
}

/// A name and what there is to say of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Named {
    /// Shortened where it is very long.
    pub name: String,
    pub why: String,
}

/// Why an export or an import was not done.
#[derive(Debug)]
pub enum ArchiveError {
    /// The store failed, or the work was stopped.
    Store(engine::Error),
    /// The place cannot be read or written: a sentence.
    Place(String),
}

impl Reach {
    /// What asks within these bounds; a sentence where they make no sense.
    pub fn outbound(&self) -> Result<Outbound, String> {
        let mut allowed = Vec::new();
        for text in &self.allow {
            let origin = Origin::parse(text);
            allowed.push(origin.map_err(|why| format!("{text:?} is not an origin: it {why}"))?);
        }
        let roots = match &self.ca {
            Some(pem) => ExtraRoots::parse(pem.as_bytes()).map_err(|why| why.to_string())?,
            None => ExtraRoots::default(),
        };
        let tls = roots.client().map_err(|why| why.to_string())?;
        Ok(Outbound::new(&allowed, tls))
    }
}

impl NamedList {
    fn add(&mut self, name: &[u8], why: impl Into<String>) {
        self.count += 1;
        if self.listed.len() < limits::archives::LISTED_MAX {
            self.listed.push(Named { name: shown(name), why: why.into() });
        }
    }
}

/// A name as text: what is no UTF-8 is written out, and of a long one only the start.
fn shown(name: &[u8]) -> String {
    const BYTES_MAX: usize = 200;
    let mut text = String::new();
    for chunk in name.get(..BYTES_MAX).unwrap_or(name).utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    if name.len() > BYTES_MAX {
        text.push_str("...");
    }
    text
}

/// Only absolute paths mean the same to every process.
fn absolute(path: &Path) -> Result<&Path, ArchiveError> {
    match path.is_absolute() {
        true => Ok(path),
        false => Err(ArchiveError::Place(format!("{} is not an absolute path", path.display()))),
    }
}

fn place_error<'p>(doing: &'p str, path: &'p Path) -> impl Fn(std::io::Error) -> ArchiveError + 'p {
    move |error| ArchiveError::Place(format!("cannot {doing} {}: {error}", path.display()))
}

impl From<engine::Error> for ArchiveError {
    fn from(error: engine::Error) -> Self {
        Self::Store(error)
    }
}

impl fmt::Display for ArchiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Place(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for ArchiveError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_bounded_and_counts_what_it_leaves_out() {
        let mut list = NamedList::default();
        for _ in 0..=limits::archives::LISTED_MAX {
            list.add(&[b'x'; 5_000], "why");
        }
        assert_eq!(list.count, limits::archives::LISTED_MAX as u64 + 1);
        assert_eq!(list.listed.len(), limits::archives::LISTED_MAX);
        assert!(list.listed.iter().all(|it| it.name.len() < 300));
        assert_eq!(shown(b"a\xff\xc3"), "a\\xff\\xc3");
    }
}
