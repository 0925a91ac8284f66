//! Sources and destinations of `cp` and `mv`: objects, local files, and streams.
//!
//! Non-goals: transferring content.

use std::path::{Path, PathBuf};

use server::management::{AdminRequest, AdminResponse};

use crate::exit::Failure;
use crate::management::Connection;

/// A source or destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    Object(ObjectPath),
    Local(PathBuf),
    /// `-`: standard input or output.
    Stream,
}

/// A path in a bucket: empty for the bucket, with `/` at its end for a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectPath {
    pub(crate) bucket: String,
    pub(crate) path: String,
}

impl ObjectPath {
    /// Splits `BUCKET[/PATH]`.
    pub(crate) fn parse(typed: &str) -> Self {
        let (bucket, path) = typed.split_once('/').unwrap_or((typed, ""));
        Self { bucket: bucket.to_owned(), path: path.to_owned() }
    }

    /// Splits `BUCKET/PATH`.
    ///
    /// # Errors
    ///
    /// [`Exit::WrongUsage`](crate::exit::Exit::WrongUsage) for a bucket or folder.
    pub(crate) fn parse_object(typed: &str) -> Result<Self, Failure> {
        let parsed = Self::parse(typed);
        match parsed.is_folder() {
            true => Err(Failure::wrong_usage(format!("{typed:?} is not BUCKET/PATH of an object"))),
            false => Ok(parsed),
        }
    }

    pub(crate) fn is_folder(&self) -> bool {
        self.path.is_empty() || self.path.ends_with('/')
    }

    /// Returns the path as a folder: empty, or with `/` at its end.
    pub(crate) fn folder(&self) -> String {
        match self.is_folder() {
            true => self.path.clone(),
            false => format!("{}/", self.path),
        }
    }

    /// Returns the last path segment, or the bucket.
    pub(crate) fn name(&self) -> &str {
        let path = self.path.trim_end_matches('/');
        match path.rsplit('/').next() {
            Some(name) if !name.is_empty() => name,
            _ => &self.bucket,
        }
    }

    /// Returns the path of `name` in this folder.
    pub(crate) fn join(&self, name: &str) -> Self {
        Self { bucket: self.bucket.clone(), path: format!("{}{name}", self.folder()) }
    }
}

impl std::fmt::Display for ObjectPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.bucket, self.path)
    }
}

/// Resolves a path to an object or a local file: a path that begins with the name of an existing bucket is an
/// object; one that begins with `/`, `./` or `../` never is.
pub(crate) fn resolve(
    connection: &mut Connection,
    typed: &[String],
) -> Result<Vec<Location>, Failure> {
    let AdminResponse::Buckets(buckets) =
        connection.request(AdminRequest::ListBuckets { account: None })?
    else {
        return Err(Failure::failed("unexpected reply"));
    };
    let is_bucket = |name: &str| buckets.iter().any(|bucket| bucket.bucket_name == name);
    Ok(typed.iter().map(|typed| parse_location(typed, is_bucket)).collect())
}

fn parse_location(typed: &str, is_bucket: impl Fn(&str) -> bool) -> Location {
    if typed == "-" {
        return Location::Stream;
    }
    let object = ObjectPath::parse(typed);
    match is_bucket(&object.bucket) {
        true => Location::Object(object),
        false => Location::Local(Path::new(typed).to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_paths_are_objects_and_others_are_local() {
        let of = |typed: &str| parse_location(typed, |name| name == "pics");
        let object =
            |path: &str| Location::Object(ObjectPath { bucket: "pics".into(), path: path.into() });
        assert_eq!(of("pics"), object(""));
        assert_eq!(of("pics/a/b.jpg"), object("a/b.jpg"));
        assert_eq!(of("pics/a/"), object("a/"));
        assert_eq!(of("-"), Location::Stream);
        for local in ["./pics/a.jpg", "/pics/a.jpg", "../pics", "picz/a.jpg", "a.jpg"] {
            assert_eq!(of(local), Location::Local(local.into()), "{local}");
        }
    }

    #[test]
    fn object_paths_have_folders_and_names() {
        for (typed, folder, name) in [
            ("pics", "", "pics"),
            ("pics/", "", "pics"),
            ("pics/2026", "2026/", "2026"),
            ("pics/a/2026/", "a/2026/", "2026"),
            ("pics/a/b.jpg", "a/b.jpg/", "b.jpg"),
        ] {
            let parsed = ObjectPath::parse(typed);
            assert_eq!((parsed.folder().as_str(), parsed.name()), (folder, name), "{typed}");
        }
        assert!(ObjectPath::parse_object("pics/a.jpg").is_ok());
        for typed in ["pics", "pics/", "pics/a/"] {
            assert!(ObjectPath::parse_object(typed).is_err(), "{typed}");
        }
    }
}
