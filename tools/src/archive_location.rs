//! Archive locations on the command line: a file, a folder, or `-` for a stream of this process.
//!
//! Files and folders are accessed by the process that has the store open, which may be a server with another working
//! directory, so paths are made absolute. Streams are read and written by this process.
//!
//! Non-goals: reading and writing.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use jobs::archive::ArchiveLocation;

use crate::exit::Failure;

/// Argument for standard input or output.
const STREAM: &str = "-";

/// Returns whether a typed path is a stream.
pub(crate) fn is_stream(typed: &Path) -> bool {
    typed == Path::new(STREAM)
}

/// Returns the destination of an export.
pub(crate) fn to(typed: &Path, data: &Path) -> Result<ArchiveLocation, Failure> {
    if is_stream(typed) {
        if io::stdout().is_terminal() {
            let advice =
                "refusing to write an archive to a terminal: redirect it to a file or a pipe";
            return Err(Failure::wrong_usage(advice));
        }
        return Ok(stream(1));
    }
    outside(typed, data).map(ArchiveLocation::Path)
}

/// Returns the source of an import.
pub(crate) fn from(typed: &Path, data: &Path) -> Result<ArchiveLocation, Failure> {
    if is_stream(typed) {
        if io::stdin().is_terminal() {
            return Err(Failure::wrong_usage(
                "refusing to read an archive from a terminal: name a file",
            ));
        }
        return Ok(stream(0));
    }
    outside(typed, data).map(ArchiveLocation::Path)
}

fn stream(number: u8) -> ArchiveLocation {
    ArchiveLocation::Stream(PathBuf::from(format!("/proc/self/fd/{number}")))
}

/// Returns the absolute path, which must be outside of the data folder.
pub(crate) fn outside(typed: &Path, data: &Path) -> Result<PathBuf, Failure> {
    let shown = typed.display();
    let wrong = |why: String| Failure::wrong_usage(format!("{shown}: {why}"));
    if typed.to_str().is_none() {
        return Err(wrong("the path is not UTF-8".to_owned()));
    }
    let absolute = std::path::absolute(typed).map_err(|error| wrong(error.to_string()))?;
    // A path that does not exist yet is resolved by its nearest existing parent.
    let there = absolute.ancestors().find_map(|it| it.canonicalize().ok());
    let data = data.canonicalize().ok();
    if let (Some(there), Some(data)) = (there, data)
        && there.starts_with(data)
    {
        return Err(wrong(
            "it is inside the data folder, which only the store may write to".to_owned(),
        ));
    }
    Ok(absolute)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archive_path_must_be_outside_the_data_directory() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let data = folder.join("src");
        let path = outside(Path::new("x/y.tar"), &data).unwrap();
        assert!(path.is_absolute() && path.ends_with("x/y.tar"), "{path:?}");
        let path = outside(Path::new("new/"), &data).unwrap();
        assert!(path.as_os_str().as_encoded_bytes().ends_with(b"/new/"), "{path:?}");
        for inside in ["a.tar", "new/folder/a.tar", "../src/a.tar", ""] {
            assert!(outside(&data.join(inside), &data).is_err(), "{inside}");
        }
    }
}
