//! Pebble in a process of its own, with settings of its own.
//!
//! Guarantees: it listens on the loopback address only, and does not outlive its value. Non-goals: requests to it.

use std::fs::{self, File};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;
use tests::free_address::free_port;
use tests::secure::{Authority, Holds};

/// The authority.
pub(crate) struct Pebble {
    child: Child,
    folder: TempDir,
    listen: u16,
    management: u16,
    validity_seconds: u64,
}

impl Pebble {
    /// Starts it; it validates every name at `port`.
    pub(crate) fn start(port: u16, validity_seconds: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new();
        let at = |name: &str| folder.path().join(name);
        authority.pair(Holds::Now).write(&at("pebble.pem"), &at("pebble.key"));
        fs::write(at("ca.pem"), authority.pem()).unwrap();
        let (listen, management) = (free_port(), free_port());
        let child = spawn(&folder, listen, management, port, validity_seconds);
        Self { child, folder, listen, management, validity_seconds }.ready()
    }

    /// Restarts it at the same address with empty state, and with another validation port.
    pub(crate) fn restart(mut self, port: u16) -> Self {
        self.end();
        self.child = spawn(&self.folder, self.listen, self.management, port, self.validity_seconds);
        self.ready()
    }

    /// Waits until it responds, and reads the certificate of its authority.
    fn ready(self) -> Self {
        let deadline = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect(("127.0.0.1", self.listen)).is_err() {
            assert!(Instant::now() < deadline, "pebble does not start: {}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
        let url = format!("https://localhost:{}/roots/0", self.management);
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--fail", "--retry", "20", "--retry-connrefused"]);
        curl.arg("--cacert").arg(self.ca_file()).arg("--output").arg(self.root()).arg(url);
        assert!(curl.status().unwrap().success(), "{}", self.log());
        self
    }

    pub(crate) fn directory(&self) -> String {
        format!("https://localhost:{}/dir", self.listen)
    }

    /// Returns the CA file of pebble's own HTTPS certificate.
    pub(crate) fn ca_file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// Returns the root of the issued certificates.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("root.pem")
    }

    /// Returns its log.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    /// Returns the number of issued certificates.
    pub(crate) fn orders(&self) -> usize {
        self.log().matches("Issued certificate serial").count()
    }

    /// Stops it.
    pub(crate) fn end(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(folder: &TempDir, listen: u16, management: u16, port: u16, validity: u64) -> Child {
    let at = |name: &str| folder.path().join(name);
    let settings = json!({ "pebble": {
        "listenAddress": format!("127.0.0.1:{listen}"),
        "managementListenAddress": format!("127.0.0.1:{management}"),
        "certificate": at("pebble.pem"),
        "privateKey": at("pebble.key"),
        "httpPort": 1,
        "tlsPort": port,
        "ocspResponderURL": "",
        "externalAccountBindingRequired": false,
        "domainBlocklist": ["refused.example"],
        "certificateValidityPeriod": validity,
    }});
    fs::write(at("pebble.json"), settings.to_string()).unwrap();
    let log = File::create(at("log")).unwrap();
    let mut pebble = Command::new("pebble");
    pebble.arg("-config").arg(at("pebble.json")).env("PEBBLE_VA_NOSLEEP", "1");
    // At the default, 5 %, the three attempts of a request fail in 1 of 8,000 requests; at this, in 1 of 1,000,000.
    pebble.env("PEBBLE_WFE_NONCEREJECT", "1");
    pebble.stdin(Stdio::null()).stderr(log.try_clone().unwrap()).stdout(log);
    pebble.spawn().unwrap()
}

impl Drop for Pebble {
    fn drop(&mut self) {
        self.end();
    }
}
