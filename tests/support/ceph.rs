//! A Ceph cluster with S3 gateways: monitor, manager, one OSD and `radosgw` from the packages of the system, in a
//! temporary folder.
//!
//! Guarantees: no process outlives its value. Non-goals: authentication inside the cluster, and more than one copy.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::commands::{done, missing};
use crate::free_address::free_address;
use crate::moto::wait_for_server;

/// A running cluster.
pub struct Ceph {
    /// Ended in the reverse order of their start.
    processes: Vec<Child>,
    gateways: Vec<SocketAddr>,
    folder: TempDir,
}

/// Access key of the user of the gateways.
pub const ACCESS_KEY: &str = "accesskey0";
/// Secret key of the user of the gateways.
pub const SECRET_KEY: &str = "secretsecret0";

const CLUSTER: &str = "11111111-2222-3333-4444-555555555555";
const OSD: &str = "22222222-2222-3333-4444-555555555555";
/// Time for the first gateway to create its pools.
const PATIENCE: Duration = Duration::from_secs(120);
/// Programs of a cluster.
const PROGRAMS: [&str; 5] = ["ceph-mon", "ceph-mgr", "ceph-osd", "radosgw", "ceph"];
/// Names of the gateways.
const GATEWAYS: [&str; 2] = ["a", "b"];

/// Returns a program of a cluster that is not installed; `None` if a cluster can be started.
pub fn missing_program() -> Option<&'static str> {
    let is_missing = |program: &&str| Command::new(program).arg("--version").output().is_err();
    PROGRAMS.into_iter().find(is_missing)
}

impl Ceph {
    /// Starts a cluster with two gateways, and waits until they accept requests.
    pub fn start() -> Self {
        Self::start_in(&std::env::temp_dir())
    }

    /// Starts a cluster as [`Ceph::start`] does, with its data in a temporary folder in `parent`.
    pub fn start_in(parent: &Path) -> Self {
        if let Some(program) = missing_program() {
            missing(program);
        }
        let folder = tempfile::tempdir_in(parent).expect("a temporary folder can be made");
        let gateways = GATEWAYS.map(|_| free_address()).to_vec();
        let mut ceph = Self { processes: Vec::new(), gateways, folder };
        let monitors = [free_address(), free_address()];
        for name in ["mon", "osd", "mgr", "rgw", "run"] {
            fs::create_dir(ceph.path(name)).expect("the folder is new");
        }
        fs::write(ceph.path("keyring"), "").expect("it can be written");
        fs::write(ceph.path("ceph.conf"), ceph.configuration(monitors)).expect("it can be written");
        ceph.start_cluster(monitors);
        for name in GATEWAYS {
            ceph.spawn("radosgw", &["-n", &format!("client.rgw.{name}"), "-f"]);
            wait_for_server(ceph.gateways[ceph.processes.len() - 4], PATIENCE);
        }
        ceph.run(
            "radosgw-admin",
            &[
                &["-n", "client.rgw.a", "user", "create", "--uid=t", "--display-name=t"][..],
                &["--access-key", ACCESS_KEY, "--secret", SECRET_KEY],
            ]
            .concat(),
        );
        ceph
    }

    fn start_cluster(&mut self, [v2, v1]: [SocketAddr; 2]) {
        let map = self.path("monmap");
        let map = map.to_str().expect("the path is UTF-8");
        let monitor = format!("[v2:{v2},v1:{v1}]");
        done(
            Command::new("monmaptool")
                .args(["--create", "--clobber", "--fsid", CLUSTER, "--addv", "a", &monitor])
                .arg(map),
        );
        self.run("ceph-mon", &["--mkfs", "-i", "a", "--monmap", map]);
        self.spawn("ceph-mon", &["-i", "a", "-f"]);
        self.spawn("ceph-mgr", &["-i", "x", "-f"]);
        self.run("ceph", &["--connect-timeout", "60", "osd", "new", OSD]);
        self.run("ceph-osd", &["-i", "0", "--mkfs", "--osd-uuid", OSD, "--monmap", map]);
        self.spawn("ceph-osd", &["-i", "0", "-f"]);
    }

    /// Returns the addresses of the gateways. Both serve the same buckets.
    pub fn gateways(&self) -> &[SocketAddr] {
        &self.gateways
    }

    /// Returns the ids of all processes.
    pub fn process_ids(&self) -> Vec<u32> {
        self.processes.iter().map(Child::id).collect()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, program: &str, words: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.arg("-c").arg(self.path("ceph.conf")).args(words);
        command.env("CEPH_CONF", self.path("ceph.conf")).stdin(Stdio::null());
        command
    }

    fn run(&self, program: &str, words: &[&str]) {
        done(&mut self.command(program, words));
    }

    fn spawn(&mut self, program: &str, words: &[&str]) {
        let mut command = self.command(program, words);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        self.processes.push(child.expect("the program starts"));
    }

    fn configuration(&self, [v2, v1]: [SocketAddr; 2]) -> String {
        let folder: &Path = self.folder.path();
        let mut text = format!(
            "[global]\nfsid = {CLUSTER}\nmon_host = [v2:{v2},v1:{v1}]\n{SETTINGS}\
             run_dir = {0}/run\nadmin_socket = {0}/run/$name.asok\nlog_file = {0}/$name.log\n\
             crash_dir = {0}/run\nmon_data = {0}/mon\nosd_data = {0}/osd\nmgr_data = {0}/mgr\n\
             rgw_data = {0}/rgw\nkeyring = {0}/keyring\n",
            folder.display()
        );
        for (name, gateway) in GATEWAYS.iter().zip(&self.gateways) {
            text.push_str(&format!(
                "[client.rgw.{name}]\nrgw_frontends = beast endpoint={gateway} tcp_nodelay=1\n"
            ));
        }
        text
    }
}

/// Settings of a cluster with one copy, without authentication, on a nearly full disk.
const SETTINGS: &str = "\
public_addr = 127.0.0.1
cluster_addr = 127.0.0.1
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
ms_mon_client_mode = crc secure
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 8
osd_pool_default_pg_autoscale_mode = off
mon_allow_pool_size_one = true
mon_allow_pool_delete = true
osd_crush_chooseleaf_type = 0
osd_objectstore = bluestore
bluestore_block_size = 6442450944
osd_memory_target = 1073741824
mon_data_avail_crit = 1
mon_data_avail_warn = 2
mgr_initial_modules =
debug_ms = 0
rgw_enable_usage_log = false
rgw_enable_ops_log = false
";

impl Drop for Ceph {
    fn drop(&mut self) {
        while let Some(mut process) = self.processes.pop() {
            // The process may have exited already.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
