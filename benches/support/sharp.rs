//! sharp as a peer: libvips under Node, from npm, in a process for each picture.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs `render.mjs` with its parameters as JSON, and returns its output.
///
/// # Errors
///
/// When Node is missing, or sharp fails.
pub fn render(params: &str) -> Result<String, String> {
    run(Command::new("node").arg("render.mjs").arg(params))
}

/// Installs sharp, as the lock file has it, when it is missing, and returns the versions of it and of libvips.
///
/// # Errors
///
/// When Node or npm is missing, or sharp cannot be installed.
pub fn ready() -> Result<String, String> {
    if !folder().join("node_modules").exists() {
        run(Command::new("npm").args(["ci", "--no-audit", "--no-fund"]))?;
    }
    let script = "import('sharp').then(({ default: { versions } }) => \
                  console.log(`sharp ${versions.sharp}, libvips ${versions.vips}`))";
    Ok(run(Command::new("node").args(["-e", script]))?.trim().to_owned())
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("sharp")
}

fn run(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.current_dir(folder()).output();
    let output = output
        .map_err(|error| format!("{program}: {error}: install Node 20 or later, with npm"))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{program}: {}: {}", output.status, why.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
