//! Compresses the files that `src/embedded.rs` embeds: a quarter of their length, almost a megabyte less of the binary.
//!
//! Non-goals: which of them are embedded.

#![allow(clippy::disallowed_methods, reason = "a build script has no store")]

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::{env, fs};

use flate2::Compression;
use flate2::write::GzEncoder;

/// Files, and folders without subfolders.
const SOURCES: [&str; 3] = ["assets/dashboard", "client/dist", "openapi.json"];

fn main() -> io::Result<()> {
    let folder = env::var_os("OUT_DIR").map(PathBuf::from).ok_or(io::ErrorKind::NotFound)?;
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
        if Path::new(source).is_file() {
            compress(Path::new(source), &folder)?;
            continue;
        }
        for entry in fs::read_dir(source)? {
            compress(&entry?.path(), &folder)?;
        }
    }
    Ok(())
}

fn compress(path: &Path, folder: &Path) -> io::Result<()> {
    let target = folder.join(format!("{}.gz", path.display()));
    if let Some(parent) = target.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&fs::read(path)?)?;
    fs::write(target, encoder.finish()?)
}
