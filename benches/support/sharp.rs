//! sharp as a peer: libvips under Node, from npm, in a process for each picture.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::npm;

/// Runs `render.mjs` with its parameters as JSON, and returns its output.
///
/// # Errors
///
/// Node is missing, or sharp failed.
pub fn render(params: &str) -> Result<String, String> {
    npm::run(&folder(), Command::new("node").arg("render.mjs").arg(params))
}

/// Installs sharp, as the lock file has it, unless it is installed, and returns the versions of it and of libvips.
///
/// # Errors
///
/// Node or npm is missing, or sharp cannot be installed.
pub fn ready() -> Result<String, String> {
    npm::install(&folder())?;
    let script = "import('sharp').then(({ default: { versions } }) => \
                  console.log(`sharp ${versions.sharp}, libvips ${versions.vips}`))";
    Ok(npm::run(&folder(), Command::new("node").args(["-e", script]))?.trim().to_owned())
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("sharp")
}
