//! The peer nginx with its WebDAV module: PUT writes a file and renames it, without any sync.

use std::path::Path;
use std::rc::Rc;

use benches::nginx::{self, Nginx};
use benches::server::{Running, ServerKind};
use benches::trug::BUCKET;

use super::contestant::{Contestant, Durability, FIRST, Peer};
use super::object_api::PlainApi;

/// The peer.
pub(crate) const PEER: Peer = Peer {
    label: "nginx WebDAV",
    install: "apt-get install nginx-light",
    is_installed: || Path::new(nginx::PROGRAM).exists(),
    start,
};

fn start(folder: &Path) -> Result<Contestant, String> {
    let nginx = Nginx { root: folder.join("files"), open_files: 100_000, takes_puts: true };
    let files = nginx.root.join(BUCKET);
    std::fs::create_dir_all(&files)
        .and_then(|()| std::fs::write(files.join(FIRST), FIRST))
        .map_err(|error| format!("{}: {error}", files.display()))?;
    let server = Running::start(&nginx, folder, FIRST)?;
    let path = nginx.path("").trim_end_matches('/').to_owned();
    let api = PlainApi { address: server.address(), path, credential: String::new(), lists: false };
    Ok(Contestant {
        label: PEER.label,
        durability: Durability::PageCache,
        server: Rc::new(server),
        api: Box::new(api),
        is_s3: false,
        is_read: true,
    })
}
