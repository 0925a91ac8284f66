//! Remote stores, and replication to them. One suite of promises over every kind of remote store: a folder, moto, Ceph
//! and Azurite; requests to Google Cloud Storage and Azure, and errors of S3, against a server of the tests.
//! Replication on simulated disks and a simulated remote store is in `sim`.
//!
//! moto comes from PyPI into a virtual environment next to the build, Ceph from packages of the system, Azurite from
//! npm.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod azurite;
mod ceph;
mod cold_reads;
mod endpoint;
mod errors;
mod folder;
mod moto;
mod promises;
mod requests;
mod sim;
mod tls;
