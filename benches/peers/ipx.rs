//! The peer ipx: libvips in a thread pool under Node, from npm.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use benches::npm;
use benches::server::ServerKind;

/// Serves variants of the files of a folder.
pub(crate) struct Ipx {
    program: PathBuf,
    files: PathBuf,
}

impl Ipx {
    /// Installs the program, as the lock file has it, unless it is installed.
    pub(crate) fn of(files: PathBuf) -> Result<Self, String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
        npm::install(&folder)?;
        Ok(Self { program: folder.join("node_modules/.bin/ipx"), files })
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

    fn command(&self, _folder: &Path, address: SocketAddr) -> Result<Command, String> {
        let mut command = Command::new(&self.program);
        command.args(["serve", "--dir"]).arg(&self.files).stderr(Stdio::null());
        command.args(["--host", &address.ip().to_string(), "--port", &address.port().to_string()]);
        Ok(command)
    }
}
