//! Packages from npm, as a lock file has them.

use std::path::Path;
use std::process::Command;

/// Installs the packages of a folder with a lock file, unless they are installed.
///
/// # Errors
///
/// npm is missing, or it failed.
pub fn install(folder: &Path) -> Result<(), String> {
    if folder.join("node_modules").exists() {
        return Ok(());
    }
    run(folder, Command::new("npm").args(["ci", "--no-audit", "--no-fund"])).map(drop)
}

/// Runs a program of Node in a folder, and returns its output.
///
/// # Errors
///
/// The program is missing, or it failed; the error contains what it wrote to stderr.
pub fn run(folder: &Path, command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.current_dir(folder).output();
    let output = output
        .map_err(|error| format!("{program}: {error}: install Node 20 or later, with npm"))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{program}: {}: {}", output.status, why.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
