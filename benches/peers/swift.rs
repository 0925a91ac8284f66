//! The peer OpenStack Swift: proxy, account, container and object servers with one copy on one device, memcached, and
//! accounts of `tempauth`.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use benches::server::{Running, ServerKind};
use benches::trug::BUCKET;
use tests::Connection;
use tests::free_address::free_address;

use super::contestant::{Contestant, Durability, Peer, output, wait_for};
use super::object_api::PlainApi;

/// The peer.
pub(crate) const PEER: Peer = Peer {
    label: "Swift",
    install: "apt-get install --no-install-recommends swift-proxy swift-account swift-container swift-object memcached",
    is_installed: || PROGRAMS.iter().all(|program| Path::new(program).exists()),
    start,
};
const PROXY: &str = "/usr/bin/swift-proxy-server";
const MEMCACHED: &str = "/usr/bin/memcached";
const RING_BUILDER: &str = "/usr/bin/swift-ring-builder";
/// Package-wide settings with the hash suffix of the paths.
const SETTINGS: &str = "/etc/swift/swift.conf";
const PROGRAMS: [&str; 7] = [
    PROXY,
    MEMCACHED,
    RING_BUILDER,
    SETTINGS,
    "/usr/bin/swift-account-server",
    "/usr/bin/swift-container-server",
    "/usr/bin/swift-object-server",
];
/// Kinds of storage servers.
const STORAGE: [&str; 3] = ["object", "container", "account"];
/// Worker processes of each server.
const WORKERS: usize = 2;

/// Filters of the proxy, after which it adds those that it requires.
const PIPELINE: [&str; 6] =
    ["catch_errors", "gatekeeper", "healthcheck", "cache", "listing_formats", "tempauth"];

/// The proxy, and addresses of the servers behind it.
struct Swift {
    user: String,
    memcached: SocketAddr,
    storage: [SocketAddr; 3],
}

fn start(folder: &Path) -> Result<Contestant, String> {
    let swift = Swift {
        user: output(Command::new("id").arg("-un"))?,
        memcached: free_address(),
        storage: STORAGE.map(|_| free_address()),
    };
    let server = Running::start_empty(&swift, folder, "")?;
    let address = server.address();
    let token = wait_for(|| token(address))?;
    let path = swift.path("");
    let headers = [("X-Auth-Token", &*token), ("X-Container-Read", ".r:*")];
    wait_for(|| {
        let made = Connection::connect(address)
            .and_then(|mut it| it.send("PUT", &path, &headers, b""))
            .map_err(|error| error.to_string())?;
        match made.status {
            200..300 => Ok(()),
            _ => Err(format!("PUT {path}: {made:?}")),
        }
    })?;
    let credential = format!("X-Auth-Token: {token}\r\n");
    Ok(Contestant {
        label: PEER.label,
        durability: Durability::Synced,
        server: Rc::new(server),
        api: Box::new(PlainApi { address, path, credential, lists: true }),
        is_s3: false,
        is_read: true,
    })
}

/// Requests a token of the account.
fn token(address: SocketAddr) -> Result<String, String> {
    let headers = [("X-Auth-User", "test:tester"), ("X-Auth-Key", "testing")];
    let reply = Connection::connect(address)
        .and_then(|mut it| it.send("GET", "/auth/v1.0", &headers, b""))
        .map_err(|error| error.to_string())?;
    match reply.header("x-auth-token") {
        "" => Err(format!("/auth/v1.0: {reply:?}")),
        token => Ok(token.to_owned()),
    }
}

impl ServerKind for Swift {
    fn label(&self) -> &'static str {
        PEER.label
    }

    fn path(&self, _name: &str) -> String {
        format!("/v1/AUTH_test/{BUCKET}")
    }

    fn backends(&self, folder: &Path) -> Result<Vec<Command>, String> {
        fs::create_dir_all(folder.join("devices/d1")).map_err(|error| error.to_string())?;
        let mut memcached = Command::new(MEMCACHED);
        let port = self.memcached.port().to_string();
        memcached.args(["-l", "127.0.0.1", "-p", &port, "-u", &self.user]);
        let mut commands = vec![memcached];
        for (kind, address) in STORAGE.into_iter().zip(self.storage) {
            self.make_ring(folder, kind, address)?;
            let more = format!("devices = {}/devices\nmount_check = false\n", folder.display());
            let pipeline = format!(
                "[pipeline:main]\npipeline = {kind}-server\n\
                 [app:{kind}-server]\nuse = egg:swift#{kind}\n"
            );
            let config = self.write(folder, kind, address, &(more + &pipeline))?;
            let mut command = Command::new(format!("/usr/bin/swift-{kind}-server"));
            command.arg(config);
            commands.push(command);
        }
        Ok(commands)
    }

    fn command(&self, folder: &Path, address: SocketAddr) -> Result<Command, String> {
        let mut text = format!(
            "[pipeline:main]\npipeline = {} proxy-server\n\
             [app:proxy-server]\nuse = egg:swift#proxy\naccount_autocreate = true\n",
            PIPELINE.join(" ")
        );
        for filter in PIPELINE {
            let (egg, more) = match filter {
                "cache" => ("memcache", format!("memcache_servers = {}\n", self.memcached)),
                "tempauth" => (filter, "user_test_tester = testing .admin\n".to_owned()),
                _ => (filter, String::new()),
            };
            text.push_str(&format!("[filter:{filter}]\nuse = egg:swift#{egg}\n{more}"));
        }
        let mut command = Command::new(PROXY);
        command.arg(self.write(folder, "proxy", address, &text)?);
        Ok(command)
    }
}

impl Swift {
    /// Writes the configuration of a server, and returns its path.
    fn write(
        &self,
        folder: &Path,
        kind: &str,
        address: SocketAddr,
        more: &str,
    ) -> Result<PathBuf, String> {
        let text = format!(
            "[DEFAULT]\nbind_ip = {}\nbind_port = {}\nuser = {}\nswift_dir = {}\n\
             workers = {WORKERS}\nlog_level = ERROR\n{more}",
            address.ip(),
            address.port(),
            self.user,
            folder.display()
        );
        let path = folder.join(format!("{kind}.conf"));
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }

    /// Makes the ring of a kind of storage servers: one copy, on one device.
    fn make_ring(&self, folder: &Path, kind: &str, address: SocketAddr) -> Result<(), String> {
        let device = format!("r1z1-{}:{}/d1", address.ip(), address.port());
        let steps: [&[&str]; 3] =
            [&["create", "6", "1", "1"], &["add", &device, "1"], &["rebalance"]];
        for step in steps {
            let builder = folder.join(format!("{kind}.builder"));
            output(Command::new(RING_BUILDER).arg(builder).args(step))?;
        }
        Ok(())
    }
}
