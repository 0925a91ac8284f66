//! The real binary, run on temporary data folders.
//!
//! Cargo builds it for the suites that run it, because they are targets of its package. Non-goals: the output of
//! commands.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use memchr::memmem;
use serde_json::Value;
use tempfile::TempDir;

use crate::ServerProcess;

/// A data folder, and the commands on it.
pub struct DataFolder {
    folder: TempDir,
}

/// Exit status and output of a command.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Returns the binary as a command without arguments.
pub fn trug() -> Command {
    without_settings(trug_binary())
}

/// Returns a program as a command without arguments, without the environment settings of the user who runs the tests.
pub fn without_settings(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let is_setting = |name: &str| name.starts_with("TRUG_") || name == "RUST_LOG";
        if name.to_str().is_some_and(is_setting) {
            command.env_remove(name);
        }
    }
    command
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> Ran {
    let output = command.output().expect("the binary runs");
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
    }
}

/// Runs a command, which must succeed.
pub fn done(command: &mut Command) -> Ran {
    let ran = run(command);
    assert_eq!(ran.code, 0, "{command:?}: {ran:?}");
    ran
}

/// Fails the test when a program that it needs in addition to trug is not installed.
pub fn require_program(program: &str, version: &str) {
    if Command::new(program).arg(version).output().is_err() {
        missing(program);
    }
}

/// Fails the test because this is not installed: a test without its tool proves nothing.
pub fn missing(what: &str) -> ! {
    panic!("{what} is not installed; tests/README.md names what the tests need");
}

/// Returns the binary of the profile that these tests were built with, from the parent of their folder.
pub fn trug_binary() -> PathBuf {
    let this = std::env::current_exe().expect("a process knows its file");
    let folder = this.parent().and_then(Path::parent).expect("tests lie in target/PROFILE/deps");
    let binary = folder.join("trug");
    assert!(binary.exists(), "{} is missing: `cargo test -p tools` builds it", binary.display());
    binary
}

impl DataFolder {
    /// Creates a path to a folder that does not exist yet.
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder can be made") }
    }

    /// Creates a store with the account `ann` and her bucket `photos`, and a key with full access.
    pub fn with_bucket() -> (Self, String) {
        let folder = Self::new();
        let key = folder.make_bucket();
        (folder, key)
    }

    /// Creates a store in the folder, as [`DataFolder::with_bucket`] does, and returns the key.
    pub fn make_bucket(&self) -> String {
        self.done(&["account", "create", "--name", "ann", "--role", "user"]);
        self.done(&["bucket", "create", "--account", "ann", "--name", "photos"]);
        let key = self.done(&["apikey", "create", "--account", "ann"]).stdout;
        key.trim_end().to_owned()
    }

    /// Returns the path of the data.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Returns the parent folder of the data, which may hold other files.
    pub fn parent(&self) -> &Path {
        self.folder.path()
    }

    /// Flips a bit of these bytes in the one file that contains them.
    pub fn damage(&self, bytes: &[u8]) {
        let mut folders = vec![self.path()];
        let mut found = 0;
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("a folder").flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                // A killed server leaves its socket.
                let Ok(mut file) = fs::read(&path) else { continue };
                let Some(at) = memmem::find(&file, bytes) else { continue };
                file[at + bytes.len() / 2] ^= 1;
                fs::write(&path, file).expect("a file can be written");
                found += 1;
            }
        }
        assert_eq!(found, 1, "files contain the bytes");
    }

    /// Builds the command on this folder without running it.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = trug();
        command.args(words).arg("--data").arg(self.path());
        command
    }

    /// Runs a command on this folder.
    pub fn run(&self, words: &[&str]) -> Ran {
        run(&mut self.command(words))
    }

    /// Runs a command, which must succeed.
    pub fn done(&self, words: &[&str]) -> Ran {
        done(&mut self.command(words))
    }

    /// Runs a command, which must succeed, and parses its `--json` output.
    pub fn json(&self, words: &[&str]) -> Value {
        let mut words = words.to_vec();
        words.push("--json");
        let ran = self.done(&words);
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
    }

    /// Starts a server on this folder, on a free port.
    pub fn serve(&self) -> ServerProcess {
        self.serve_with(&["--listen", "127.0.0.1:0"])
    }

    /// Starts a server on this folder with these arguments. No rate limit applies: tests upload at full speed.
    pub fn serve_with(&self, words: &[&str]) -> ServerProcess {
        let mut command = self.command(&["serve"]);
        command.env("TRUG_PLAN_RATES", "false");
        command.args(words);
        ServerProcess::start(&mut command)
    }
}

impl Default for DataFolder {
    fn default() -> Self {
        Self::new()
    }
}

impl Ran {
    /// Checks the exit code, and that stderr contains this text.
    pub fn check_failure(&self, code: i32, says: &str) {
        assert_eq!(self.code, code, "{self:?}");
        assert!(self.stderr.contains(says), "{says:?} is not in {self:?}");
        assert_eq!(self.stdout, "");
    }
}
