//! Remote store in moto.

use tests::moto::Moto;

use crate::endpoint::{connect_to, create_bucket};
use crate::{cold_reads, promises};

const KEYS: [&str; 2] = ["AKID", "secret"];

#[test]
#[ignore = "needs moto from PyPI"]
fn moto_keeps_the_promises_of_a_remote_store() {
    let moto = Moto::start();
    create_bucket(moto.socket(), KEYS);
    let remote = connect_to("s3://pics/a/b.c", moto.address(), &KEYS.join("\n"));
    promises::check_all(&remote);
    // Without `promises::check_races`: moto looks for an object and stores it in two steps.
    cold_reads::check(&connect_to("s3://pics/cold", moto.address(), &KEYS.join("\n")));
}
