//! The S3 service of moto, from PyPI, in a process of its own.
//!
//! Guarantees: no process outlives its value.

use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::commands::without_settings;
use crate::free_address::free_address;
use crate::pypi::from_pypi;

/// A server of moto on a free port. It accepts any credentials.
pub struct Moto {
    child: Child,
    socket: SocketAddr,
    address: String,
}

/// Returns the program, installed once.
pub fn moto_server() -> PathBuf {
    static MOTO: OnceLock<PathBuf> = OnceLock::new();
    MOTO.get_or_init(|| from_pypi("moto", "moto[server]==5.2.5", ["moto_server", "--help"])).clone()
}

/// Waits until a server accepts connections.
pub fn wait_for_server(socket: SocketAddr, patience: Duration) {
    let deadline = Instant::now() + patience;
    while TcpStream::connect(socket).is_err() {
        assert!(Instant::now() < deadline, "no server at {socket}");
        sleep(Duration::from_millis(100));
    }
}

impl Moto {
    /// Starts a server and waits until it accepts requests.
    pub fn start() -> Self {
        let socket = free_address();
        let mut command = without_settings(moto_server());
        command.args(["-H", "127.0.0.1", "-p", &socket.port().to_string()]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = child.expect("the program starts");
        let moto = Self { child, socket, address: format!("http://{socket}") };
        wait_for_server(socket, Duration::from_secs(60));
        moto
    }

    /// Returns the URL of the server.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the socket address of the server.
    pub fn socket(&self) -> SocketAddr {
        self.socket
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
