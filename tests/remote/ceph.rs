//! Remote store in Ceph, over two gateways.

use tests::ceph::{ACCESS_KEY, Ceph, SECRET_KEY};

use crate::endpoint::{connect_to, create_bucket};
use crate::{cold_reads, promises};

/// Lengths of the objects that are created concurrently.
const LENGTHS: [usize; 4] = [1, 2_000, 70_000, 5 << 20];

#[test]
#[ignore = "needs Ceph"]
fn ceph_keeps_the_promises_of_a_remote_store() {
    let ceph = Ceph::start();
    let keys = [ACCESS_KEY, SECRET_KEY];
    create_bucket(ceph.gateways()[0], keys);
    let stores = ceph.gateways().iter().map(|gateway| {
        connect_to("s3://pics/trug", &format!("http://{gateway}"), &keys.join("\n"))
    });
    let stores: Vec<_> = stores.collect();
    promises::check_all(&stores[0]);
    promises::check_races(&stores[..1], 60, &LENGTHS);
    promises::check_races(&stores, 92, &LENGTHS);
    promises::check_reads_across(&stores);
    let gateway = format!("http://{}", ceph.gateways()[0]);
    cold_reads::check(&connect_to("s3://pics/cold", &gateway, &keys.join("\n")));
}
