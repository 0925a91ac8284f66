//! Do the commands print, and exit, as their help says? Each with the store free, and with a server on it.

mod account;
mod apikey;
mod archive_attacks;
mod archives;
mod backup;
mod bucket;
mod compact;
mod export;
mod fsck;
mod import;
mod organisation;
mod scrub;
mod serve;
mod stats;
mod usage;
mod versions;
mod webhook;

use tests::DataFolder;

/// Runs a test twice: on a store that nobody has open, and on one that a server has.
fn with_and_without_a_server(test: impl Fn(&DataFolder)) {
    let (folder, _) = DataFolder::with_bucket();
    test(&folder);
    let (folder, _) = DataFolder::with_bucket();
    let server = folder.serve();
    test(&folder);
    server.stop();
}
