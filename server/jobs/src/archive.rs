//! Export and import of a bucket or a folder, as a tar archive or a folder of files; and import from remote hosts.
//!
//! The process that has the store open reads and writes these files. Guarantees: imported files are validated like
//! uploads; rejected files are reported, and the rest continues; nothing outside the given path is read or written.
//! Non-goals: authorization, and output to the user.

mod downloads;
mod export;
mod import;
pub mod limits;
mod local_files;
mod object;
mod progress;
mod retry;
mod s3_source;
mod tar_entry;
mod tar_reader;
mod url_list;

use std::fmt;
use std::path::{Path, PathBuf};

use catalog::{Bucket, Catalog, CatalogError};
use engine::{FolderKey, Store};
use outbound::OutboundClient;
use outbound::trust_anchors::TrustAnchors;
use protocol::destination::Origin;
use serde::{Deserialize, Serialize};

pub use self::export::export;
pub use self::import::import;
pub use self::local_files::standard_stream;
pub use self::object::read_object;
pub use self::s3_source::{BucketSource, Credentials};

/// Location of an archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ArchiveLocation {
    /// File or folder, by its absolute path.
    Path(PathBuf),
    /// File or stream of the requesting process. A server receives a channel in its place.
    Stream(PathBuf),
}

/// Source of an import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ImportSource {
    /// Tar archive, or folder of files.
    Files(ArchiveLocation),
    /// Single file.
    File {
        place: ArchiveLocation,
        /// Size in bytes, for the progress; 0 if unknown.
        bytes: u64,
        /// Key of the object, relative to the folder of the import.
        path: String,
        /// Declared content type.
        content_type: Option<String>,
    },
    /// URLs of a list.
    Addresses { list: ArchiveLocation, reach: ImportNetworkPolicy },
    /// Bucket of an S3 service.
    Bucket(BucketSource),
}

/// Private networks and additional authorities of an import's requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportNetworkPolicy {
    /// Allowed origins in private networks.
    pub allow: Vec<String>,
    /// Certificates (PEM) of authorities in addition to Mozilla's.
    pub ca: Option<String>,
}

/// Part of a store that is exported or imported into.
pub struct ArchiveScope<'a> {
    pub store: &'a Store,
    pub catalog: &'a Catalog,
    pub bucket: &'a Bucket,
    /// Restricts the job to this folder, whose name is not part of the archived names.
    pub folder: FolderKey,
}

/// Rules of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportRules {
    pub on_conflict: ImportConflictRule,
    /// Maximum number of files, at which the import stops.
    pub files_max: u64,
    /// Maximum bytes, at which the import stops.
    pub bytes_max: Option<u64>,
}

/// Handling of a file whose key holds other content. Identical content is skipped in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ImportConflictRule {
    /// The object is not changed.
    #[default]
    Skip,
    /// The object is replaced.
    Replace,
    /// The file gets the first free ` (n)`, as an upload does.
    Rename,
    /// The import stops.
    Fail,
}

/// Result of an export.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportReport {
    pub bucket_name: String,
    pub exported_count: u64,
    pub exported_bytes: u64,
    /// Files of a folder that were already up to date.
    pub unchanged_count: u64,
    /// Corrupt objects, which are left out.
    pub damaged: TruncatedList,
    /// Objects that cannot be files in a folder.
    pub not_written: TruncatedList,
}

/// Result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportReport {
    pub bucket_name: String,
    /// New files.
    pub imported_count: u64,
    /// Bytes of new, replaced and renamed files.
    pub imported_bytes: u64,
    pub replaced_count: u64,
    pub renamed_count: u64,
    /// Files whose content already exists under their key.
    pub unchanged_count: u64,
    /// Files whose keys hold other content, which is not replaced.
    pub skipped: TruncatedList,
    /// Rejected files.
    pub refused: TruncatedList,
    /// Reason for ending early.
    pub stopped: Option<String>,
    pub duration_ms: u64,
}

/// Names with reasons: all are counted, the first ones listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TruncatedList {
    pub count: u64,
    pub listed: Vec<NamedIssue>,
}

/// Name and reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NamedIssue {
    /// Name, truncated if very long.
    pub name: String,
    pub why: String,
}

/// Error of an export or import.
#[derive(Debug)]
pub enum ArchiveError {
    /// The store failed, or the work was cancelled.
    Store(engine::Error),
    /// The location cannot be read or written: a sentence.
    Location(String),
}

impl ImportNetworkPolicy {
    /// Creates the HTTP client with these restrictions; the error is a sentence.
    pub fn outbound(&self) -> Result<OutboundClient, String> {
        let mut allowed = Vec::new();
        for text in &self.allow {
            let origin = Origin::parse(text);
            allowed.push(origin.map_err(|why| format!("{text:?} is not an origin: it {why}"))?);
        }
        let roots = match &self.ca {
            Some(pem) => TrustAnchors::parse(pem.as_bytes()).map_err(|why| why.to_string())?,
            None => TrustAnchors::default(),
        };
        let tls = roots.client().map_err(|why| why.to_string())?;
        Ok(OutboundClient::new(&allowed, tls))
    }
}

impl TruncatedList {
    fn add(&mut self, name: &[u8], why: impl Into<String>) {
        self.count += 1;
        if self.listed.len() < limits::LISTED_MAX {
            self.listed.push(NamedIssue { name: display_name(name), why: why.into() });
        }
    }
}

/// Formats a name as text: escapes invalid UTF-8, and truncates a long one.
fn display_name(name: &[u8]) -> String {
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

/// Requires an absolute path, which means the same to every process.
fn absolute(path: &Path) -> Result<&Path, ArchiveError> {
    match path.is_absolute() {
        true => Ok(path),
        false => Err(ArchiveError::Location(format!("{} is not an absolute path", path.display()))),
    }
}

fn location_error<'p>(
    doing: &'p str,
    path: &'p Path,
) -> impl Fn(std::io::Error) -> ArchiveError + 'p {
    move |error| ArchiveError::Location(format!("cannot {doing} {}: {error}", path.display()))
}

impl From<engine::Error> for ArchiveError {
    fn from(error: engine::Error) -> Self {
        Self::Store(error)
    }
}

impl From<ArchiveError> for CatalogError {
    fn from(error: ArchiveError) -> Self {
        match error {
            ArchiveError::Store(error) => Self::Store(error),
            ArchiveError::Location(why) => Self::InvalidRequest(why),
        }
    }
}

impl fmt::Display for ArchiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Location(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for ArchiveError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_list_is_truncated_and_counted() {
        let mut list = TruncatedList::default();
        for _ in 0..=limits::LISTED_MAX {
            list.add(&[b'x'; 5_000], "why");
        }
        assert_eq!(list.count, limits::LISTED_MAX as u64 + 1);
        assert_eq!(list.listed.len(), limits::LISTED_MAX);
        assert!(list.listed.iter().all(|it| it.name.len() < 300));
        assert_eq!(display_name(b"a\xff\xc3"), "a\\xff\\xc3");
    }
}
