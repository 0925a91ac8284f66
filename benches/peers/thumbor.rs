//! The peer thumbor: Pillow under Python, from PyPI, a process for each processor.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use benches::server::ServerKind;
use tests::pypi::from_pypi;

const PACKAGE: &str = "thumbor==7.8.0";

/// Serves variants of the files of a folder, and stores them as files.
pub(crate) struct Thumbor {
    program: PathBuf,
    files: PathBuf,
}

impl Thumbor {
    /// Installs the program in the target folder, unless it is there.
    pub(crate) fn of(files: PathBuf) -> Self {
        Self { program: from_pypi("thumbor", PACKAGE, ["thumbor", "--version"]), files }
    }
}

/// Returns the path of the WebP variant of a file.
pub(crate) fn webp(name: &str) -> String {
    format!("/unsafe/400x0/filters:format(webp):quality(80)/{name}")
}

impl ServerKind for Thumbor {
    fn label(&self) -> &'static str {
        "thumbor 7.8.0"
    }

    fn path(&self, name: &str) -> String {
        format!("/unsafe/{name}")
    }

    fn command(&self, folder: &Path, address: SocketAddr) -> Result<Command, String> {
        let config = folder.join("thumbor.conf");
        let text = format!(
            "LOADER = 'thumbor.loaders.file_loader'\n\
             FILE_LOADER_ROOT_PATH = '{}'\n\
             STORAGE = 'thumbor.storages.no_storage'\n\
             RESULT_STORAGE = 'thumbor.result_storages.file_storage'\n\
             RESULT_STORAGE_FILE_STORAGE_ROOT_PATH = '{}/thumbor'\n\
             RESULT_STORAGE_STORES_UNSAFE = True\n\
             ALLOW_UNSAFE_URL = True\n",
            self.files.display(),
            folder.display()
        );
        fs::write(&config, text).map_err(|error| format!("{}: {error}", config.display()))?;
        let processes = thread::available_parallelism().map_or(1, usize::from);
        let mut command = Command::new(&self.program);
        command.args(["--ip", &address.ip().to_string(), "--port", &address.port().to_string()]);
        command.args(["--processes", &processes.to_string(), "--log-level", "error", "--conf"]);
        command.arg(&config).stderr(Stdio::null());
        Ok(command)
    }
}
