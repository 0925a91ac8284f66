//! The peer ipx: libvips in a thread pool under Node, from npm.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use benches::server::ServerKind;

/// Serves variants of the files of a folder.
pub(crate) struct Ipx {
    program: PathBuf,
    files: PathBuf,
}

impl Ipx {
    /// Installs the program, as the lock file has it, if it is missing.
    pub(crate) fn of(files: PathBuf) -> Result<Self, String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
        let program = folder.join("node_modules/.bin/ipx");
        if !program.exists() {
            let arguments = ["ci", "--no-audit", "--no-fund"];
            let installed = Command::new("npm").args(arguments).current_dir(&folder).status();
            let installed = installed
                .map_err(|error| format!("npm: {error}: install Node 20 or later, with npm"))?;
            if !installed.success() {
                return Err(format!("npm ci: {installed}"));
            }
        }
        Ok(Self { program, files })
    }
}

/// Returns the path of the WebP variant of a file.
pub(crate) fn webp(name: &str) -> String {
    format!("/w_400,f_webp,q_80/{name}")
}

impl ServerKind for Ipx {
    fn label(&self) -> &'static str {
        "ipx 3.1.1"
    }

    fn path(&self, name: &str) -> String {
        format!("/_/{name}")
    }

    fn start(&self, _folder: &Path, address: SocketAddr) -> Result<Child, String> {
        Command::new(&self.program)
            .args(["serve", "--dir"])
            .arg(&self.files)
            .args(["--host", &address.ip().to_string(), "--port", &address.port().to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("starting {}: {error}", self.program.display()))
    }
}
