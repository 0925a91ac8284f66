//! Real S3 clients against a real server: aws-cli, rclone and restic, each with a job of its own.
//!
//! aws-cli and moto come from PyPI, into virtual environments next to the build; rclone and restic are packages of the
//! system. Non-goals: the gateway without such a client, which the tests next to its code cover.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the rules of the package are for the binary, not for those who look at it from outside"
)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod acl;
mod aws;
mod bucket;
mod cors;
mod form_upload;
mod guide;
mod https;
mod import;
mod lifecycle;
mod memory;
mod moving;
mod object_lock;
mod place;
mod public_access;
mod rclone;
mod restic;
mod statuses;
mod tagging;
mod versioning;
