//! The peer Garage: one node with one copy, by S3; with and without syncs.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use benches::server::{Running, ServerKind};
use benches::trug::BUCKET;
use tests::free_address::free_address;

use super::contestant::{Contestant, Durability, Peer, output, wait_for};
use super::object_api::S3Api;

/// The peer with syncs of data and metadata.
pub(crate) const SYNCED: Peer = Peer {
    label: "Garage, fsync (S3)",
    install: INSTALL,
    is_installed,
    start: |folder| start(folder, Durability::Synced),
};
/// The peer with its default, which leaves syncs to the kernel.
pub(crate) const UNSYNCED: Peer = Peer {
    label: "Garage (S3)",
    install: INSTALL,
    is_installed,
    start: |folder| start(folder, Durability::PageCache),
};
const INSTALL: &str = "cargo install --locked garage@2.5.0";
const REGION: &str = "garage";
/// ID of a key, and its secret.
const CREDENTIALS: [&str; 2] = [
    "GK31313131313131313131313131",
    "3131313131313131313131313131313131313131313131313131313131313131",
];
/// Secret that nodes of a cluster share.
const RPC_SECRET: &str = "3232323232323232323232323232323232323232323232323232323232323232";

/// A node.
struct Garage {
    program: PathBuf,
    durability: Durability,
    rpc: SocketAddr,
}

/// Returns the program: in a folder of `PATH`, or where `cargo install` puts it.
fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let cargo = std::env::home_dir().map(|home| home.join(".cargo/bin"));
    std::env::split_paths(&path).chain(cargo).map(|it| it.join("garage")).find(|it| it.exists())
}

fn is_installed() -> bool {
    program().is_some()
}

fn start(folder: &Path, durability: Durability) -> Result<Contestant, String> {
    let program = program().ok_or("garage is not installed")?;
    let garage = Garage { program, durability, rpc: free_address() };
    let server = Running::start_empty(&garage, folder, "")?;
    let id = wait_for(|| garage.run(folder, &["node", "id", "-q"]))?;
    let id = id.split('@').next().unwrap_or_default();
    let [key, secret] = CREDENTIALS;
    wait_for(|| garage.run(folder, &["layout", "assign", id, "-z", "z", "-c", "100G"]))?;
    garage.run(folder, &["layout", "apply", "--version", "1"])?;
    garage.run(folder, &["key", "import", "--yes", key, secret])?;
    garage.run(folder, &["bucket", "create", BUCKET])?;
    let allow = ["bucket", "allow", "--read", "--write", "--owner", BUCKET, "--key", key];
    garage.run(folder, &allow)?;
    let address = server.address();
    Ok(Contestant {
        label: garage.label(),
        durability,
        server: Rc::new(server),
        api: Box::new(S3Api::new(address, CREDENTIALS.map(str::to_owned), REGION)),
        is_s3: true,
        // Settings of syncs do not change reads.
        is_read: matches!(durability, Durability::PageCache),
    })
}

impl ServerKind for Garage {
    fn label(&self) -> &'static str {
        match self.durability {
            Durability::Synced => SYNCED.label,
            Durability::PageCache => UNSYNCED.label,
        }
    }

    fn path(&self, name: &str) -> String {
        format!("/{BUCKET}/{name}")
    }

    fn command(&self, folder: &Path, address: SocketAddr) -> Result<Command, String> {
        let syncs = matches!(self.durability, Durability::Synced);
        let (data, rpc) = (folder.display(), self.rpc);
        let text = format!(
            "metadata_dir = \"{data}/meta\"\ndata_dir = \"{data}/data\"\ndb_engine = \"lmdb\"\n\
             metadata_fsync = {syncs}\ndata_fsync = {syncs}\nreplication_factor = 1\n\
             rpc_bind_addr = \"{rpc}\"\nrpc_public_addr = \"{rpc}\"\nrpc_secret = \"{RPC_SECRET}\"\n\
             [s3_api]\napi_bind_addr = \"{address}\"\ns3_region = \"{REGION}\"\n"
        );
        fs::write(config(folder), text).map_err(|error| error.to_string())?;
        let mut command = self.garage(folder);
        command.arg("server");
        Ok(command)
    }
}

impl Garage {
    fn garage(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("-c").arg(config(folder)).env("RUST_LOG", "garage=error");
        command
    }

    /// Runs a command on the node, and returns its output.
    fn run(&self, folder: &Path, words: &[&str]) -> Result<String, String> {
        output(self.garage(folder).args(words))
    }
}

fn config(folder: &Path) -> PathBuf {
    folder.join("garage.toml")
}
