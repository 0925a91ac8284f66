//! The peer Ceph: a cluster of one OSD with a gateway for S3.

use std::path::Path;
use std::rc::Rc;

use benches::server::Running;
use benches::trug::BUCKET;
use tests::SignedConnection;
use tests::ceph::{self, ACCESS_KEY, Ceph, SECRET_KEY};

use super::contestant::{Contestant, Durability, Peer};
use super::object_api::S3Api;

/// The peer.
pub(crate) const PEER: Peer = Peer {
    label: "Ceph radosgw (S3)",
    install: "apt-get install --no-install-recommends ceph-mon ceph-mgr ceph-osd radosgw ceph-common",
    is_installed: || ceph::missing_program().is_none(),
    start,
};
const REGION: &str = "us-east-1";

fn start(folder: &Path) -> Result<Contestant, String> {
    let cluster = Ceph::start_in(folder);
    let address = cluster.gateways()[0];
    let made = SignedConnection::connect(address, ACCESS_KEY, SECRET_KEY)
        .and_then(|mut it| it.send("PUT", &format!("/{BUCKET}"), &[("content-length", "0")], b""))
        .map_err(|error| format!("creating a bucket: {error}"))?;
    if made.status != 200 {
        return Err(format!("creating a bucket: {made:?}"));
    }
    let api = S3Api::new(address, [ACCESS_KEY, SECRET_KEY].map(str::to_owned), REGION);
    Ok(Contestant {
        label: PEER.label,
        durability: Durability::Synced,
        server: Rc::new(Running::owned(address, cluster.process_ids(), Box::new(cluster))),
        api: Box::new(api),
        is_s3: true,
        is_read: true,
    })
}
