//! Servers that take the same requests for objects.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use benches::arguments::Arguments;
use benches::server::Running;
use benches::trug::Trug;

use super::object_api::{ObjectApi, S3Api, TrugApi};

/// State of an object when its put is acknowledged.
#[derive(Clone, Copy)]
pub(crate) enum Durability {
    /// Written and synced: it survives a power cut.
    Synced,
    /// In the page cache: lost in a power cut.
    PageCache,
}

/// A running server, and its protocol.
pub(crate) struct Contestant {
    /// Label in tables.
    pub(crate) label: &'static str,
    /// State of acknowledged puts.
    pub(crate) durability: Durability,
    /// The server, shared by its protocols.
    pub(crate) server: Rc<Running>,
    /// The protocol.
    pub(crate) api: Box<dyn ObjectApi>,
    /// Whether it is compared with trug's S3 rather than its HTTP API.
    pub(crate) is_s3: bool,
    /// Whether its reads are measured, too.
    pub(crate) is_read: bool,
}

/// A server other than trug.
pub(crate) struct Peer {
    /// Label in tables.
    pub(crate) label: &'static str,
    /// Command that installs it.
    pub(crate) install: &'static str,
    /// Returns whether it is installed.
    pub(crate) is_installed: fn() -> bool,
    /// Starts it with its data in a folder, and prepares a bucket.
    pub(crate) start: fn(&Path) -> Result<Contestant, String>,
}

impl Durability {
    /// Returns the label in tables.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Synced => "synced",
            Self::PageCache => "page cache",
        }
    }
}

/// Time for a started server to respond with success.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(200);
/// Name and content of the file that is requested when a server starts.
pub(crate) const FIRST: &str = "first.bin";

/// Starts trug; returns it with its HTTP API, and with S3.
pub(crate) fn trug(arguments: &Arguments, folder: &Path) -> Result<[Contestant; 2], String> {
    let files: PathBuf = folder.join("files");
    std::fs::create_dir(&files)
        .and_then(|()| std::fs::write(files.join(FIRST), FIRST))
        .map_err(|error| format!("{}: {error}", files.display()))?;
    let kind = Trug {
        program: Trug::chosen(arguments)?,
        files,
        names: vec![FIRST.to_owned()],
        settings: vec![("TRUG_PLAN_RATES", "false".to_owned())],
    };
    let credentials = kind.s3_credentials(folder)?;
    let server = Rc::new(Running::start(&kind, folder, FIRST)?);
    let address = server.address();
    let key = std::fs::read_to_string(folder.join("api-key")).map_err(|error| error.to_string())?;
    let contestant = |label, api: Box<dyn ObjectApi>, is_s3| Contestant {
        label,
        durability: Durability::Synced,
        server: server.clone(),
        api,
        is_s3,
        is_read: true,
    };
    Ok([
        contestant("trug", Box::new(TrugApi { address, key }), false),
        contestant("trug (S3)", Box::new(S3Api::new(address, credentials, "us-east-1")), true),
    ])
}

/// Repeats a request until it succeeds, for at most a minute: servers start at different times.
pub(crate) fn wait_for<T>(request: impl Fn() -> Result<T, String>) -> Result<T, String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match request() {
            Err(_) if Instant::now() < deadline => thread::sleep(POLL),
            result => return result,
        }
    }
}

/// Runs a program to its end, and returns its output.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?}: {}: {}", output.status, why.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
