//! Debian's nginx as a peer: files by sendfile, with its cache of open files, no log, two workers.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Resource, getrlimit};

use super::server::ServerKind;

/// Path of the program in Debian.
pub const PROGRAM: &str = "/usr/sbin/nginx";
const WORKERS: u32 = 2;
/// Files that it keeps open at most, if it may have as many descriptors.
const OPEN_FILES_MAX: u64 = 100_000;
/// Descriptors for connections and other purposes.
const OTHER_DESCRIPTORS: u64 = 2_048;

/// Serves a folder of files.
pub struct Nginx {
    /// Document root.
    pub root: PathBuf,
    /// Maximum number of files that it keeps open.
    pub open_files: u64,
    /// Whether it stores what clients PUT, by its WebDAV module.
    pub takes_puts: bool,
}

impl ServerKind for Nginx {
    fn label(&self) -> &'static str {
        "nginx"
    }

    fn path(&self, name: &str) -> String {
        format!("/bench/{name}")
    }

    fn command(&self, folder: &Path, address: SocketAddr) -> Result<Command, String> {
        let config = folder.join("nginx.conf");
        fs::write(&config, self.configuration(folder, address))
            .map_err(|error| format!("{}: {error}", config.display()))?;
        let mut command = Command::new(PROGRAM);
        command.arg("-p").arg(folder).arg("-c").arg(&config);
        Ok(command)
    }
}

impl Nginx {
    fn configuration(&self, folder: &Path, address: SocketAddr) -> String {
        let (folder, root) = (folder.display(), self.root.display());
        let permitted = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        let open_files =
            self.open_files.min(OPEN_FILES_MAX).min(permitted.saturating_sub(OTHER_DESCRIPTORS));
        let descriptors = permitted.min(open_files + OTHER_DESCRIPTORS);
        let dav = match self.takes_puts {
            true => "dav_methods PUT DELETE; create_full_put_path on; client_max_body_size 0;",
            false => "",
        };
        // Started by root, nginx would run the workers as a user without access to the data folder.
        let user = if rustix::process::geteuid().is_root() { "user root;" } else { "" };
        format!(
            "{user}
daemon off;
worker_processes {WORKERS};
worker_rlimit_nofile {descriptors};
pid {folder}/nginx.pid;
error_log stderr error;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    tcp_nodelay on;
    keepalive_timeout 65;
    keepalive_requests 1000000000;
    open_file_cache max={open_files} inactive=60s;
    open_file_cache_valid 60s;
    default_type application/octet-stream;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen {address} reuseport;
        root {root};
        {dav}
    }}
}}
"
        )
    }
}
