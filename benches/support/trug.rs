//! The trug server as a contestant: the release build, with files uploaded into one public bucket.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tests::commands::without_settings;

use super::arguments::Arguments;
use super::server::{ServerKind, post_file};

/// Bucket of all files.
pub const BUCKET: &str = "bench";

/// Request body of a form with one file: the bytes before and after its content.
pub const FORM: (&str, &str) = (
    "------bench-7d1f20c3\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.jpg\"\r\n\
     Content-Type: image/jpeg\r\n\r\n",
    "\r\n------bench-7d1f20c3--\r\n",
);

/// Returns the head of the request that uploads such a form to a path.
pub fn form_head(address: SocketAddr, path: &str, api_key: &str, body_bytes: usize) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {api_key}\r\n\
         Content-Length: {body_bytes}\r\n\
         Content-Type: multipart/form-data; boundary=----bench-7d1f20c3\r\n\r\n"
    )
}

/// The server, and the content of its store.
pub struct Trug {
    /// The binary.
    pub program: PathBuf,
    /// Folder of the files.
    pub files: PathBuf,
    /// Names of the files.
    pub names: Vec<String>,
    /// Settings, as environment variables.
    pub settings: Vec<(&'static str, String)>,
}

impl ServerKind for Trug {
    fn label(&self) -> &'static str {
        "trug"
    }

    fn path(&self, name: &str) -> String {
        format!("/{BUCKET}/{name}")
    }

    fn command(&self, folder: &Path, address: SocketAddr) -> Result<Command, String> {
        let store = self.store(folder)?;
        let mut command = without_settings(&self.program);
        command.args(["serve", "--data"]).arg(&store).args(["--listen", &address.to_string()]);
        // The form around the largest file does not fit in the default.
        command.env("TRUG_BODY_BYTES_MAX", (1_u64 << 30).to_string());
        command.envs(self.settings.iter().map(|(name, value)| (name, value)));
        command.stderr(Stdio::null());
        Ok(command)
    }

    /// Closing seals the segment that took the files; a sealed one is mapped.
    fn restarts_when_full(&self) -> bool {
        true
    }

    fn fill(&self, folder: &Path, address: SocketAddr) -> Result<(), String> {
        let key = fs::read_to_string(folder.join("api-key")).map_err(text)?;
        for name in &self.names {
            post_file(address, &self.path(name), &key, &self.files.join(name))?;
        }
        Ok(())
    }
}

impl Trug {
    /// Returns the store in this folder; creates it, with the bucket of all files and a key for it, when it does not
    /// exist.
    ///
    /// # Errors
    ///
    /// When it cannot be created.
    pub fn store(&self, folder: &Path) -> Result<PathBuf, String> {
        let store = folder.join("store");
        if !store.exists() {
            self.command(&["account", "create"], &store, &["--name", BUCKET])?;
            self.command(&["bucket", "create"], &store, &["--account", BUCKET, "--name", BUCKET])?;
            let key = self.command(&["apikey", "create"], &store, &["--account", BUCKET])?;
            fs::write(folder.join("api-key"), key).map_err(text)?;
        }
        Ok(store)
    }

    /// Creates an API key of the store in this folder, and returns its ID and its S3 secret.
    ///
    /// # Errors
    ///
    /// When it cannot be created.
    pub fn s3_credentials(&self, folder: &Path) -> Result<[String; 2], String> {
        let rest = ["--account", BUCKET, "--s3", "--format", "env"];
        let printed = self.command(&["apikey", "create"], &self.store(folder)?, &rest)?;
        let value = |name: &str| {
            let found = printed.lines().find_map(|line| line.split_once(name)?.1.strip_prefix('='));
            found.map(str::to_owned).ok_or_else(|| format!("{name} is not in: {printed}"))
        };
        Ok([value("AWS_ACCESS_KEY_ID")?, value("AWS_SECRET_ACCESS_KEY")?])
    }

    /// Returns the binary given by `--trug`, or else that of the release build.
    ///
    /// # Errors
    ///
    /// When it does not exist.
    pub fn chosen(arguments: &Arguments) -> Result<PathBuf, String> {
        let program = arguments.value("--trug").map_or_else(Self::program, PathBuf::from);
        match program.exists() {
            true => Ok(program),
            false => Err(format!("{} is missing (cargo build --release)", program.display())),
        }
    }

    /// Returns the release build in the same target folder as this bench.
    pub fn program() -> PathBuf {
        let exe = std::env::current_exe().unwrap_or_default();
        let target = exe.ancestors().find(|folder| folder.ends_with("release"));
        target.unwrap_or(Path::new("target/release")).join("trug")
    }

    /// Runs one command of the command line to its end, and returns its output.
    fn command(&self, words: &[&str], store: &Path, rest: &[&str]) -> Result<String, String> {
        let mut command = without_settings(&self.program);
        command.args(words).arg("--data").arg(store).args(rest);
        let output = command.output().map_err(text)?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{words:?}: {}: {}", output.status, why.trim()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

fn text(error: std::io::Error) -> String {
    error.to_string()
}
