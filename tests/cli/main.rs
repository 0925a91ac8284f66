//! Command tests: output and exit codes match the help, each with the store free, and with a server on it. The examples
//! of the documents work as documented.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the rules of the package are for the binary, not for those who look at it from outside"
)]

mod account;
mod api_examples;
mod apikey;
mod archive_attacks;
mod archives;
mod audit;
mod backup;
mod bucket;
mod compact;
mod completions;
mod config;
mod deploy;
mod drill;
mod export;
mod fsck;
mod guide_examples;
mod health;
mod import;
mod import_report;
mod import_s3;
mod import_urls;
mod link;
mod metrics;
mod objects;
mod organisation;
mod proxy;
mod proxy_cache;
mod python_reader;
mod readme;
#[cfg(feature = "remote")]
mod remote;
mod remote_on_demand;
mod scrub;
mod secrets;
mod serve;
mod stats;
mod usage;
mod versions;
mod webhook;

use tests::DataFolder;

/// Runs a test twice: on a store without a server, and on one that a server has open.
fn with_and_without_server(test: impl Fn(&DataFolder)) {
    let (folder, _) = DataFolder::with_bucket();
    test(&folder);
    let (folder, _) = DataFolder::with_bucket();
    let server = folder.serve();
    test(&folder);
    server.stop();
}
