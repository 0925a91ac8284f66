//! API tests against the specification, section by section; each file names its section.
//!
//! Every test calls the real router over the real store on a simulated disk, without a socket, except for those of
//! connections.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod abuse;
mod accounts;
mod audit;
mod auth;
mod buckets;
mod client_module;
mod clients;
mod compression;
mod connections;
mod content_safety;
mod damage;
mod dashboard;
mod delete;
mod deleted_versions;
mod deliver;
mod download_links;
mod errors;
mod forms;
mod full_disk;
mod hostile_paths;
mod http2;
mod http2_floods;
mod images;
mod imports;
mod integrations;
mod jobs;
mod keys;
mod links;
mod list;
mod mass_assignment;
mod metrics;
mod moves;
mod names;
mod openapi;
mod organisations;
mod premium;
mod presign;
mod presign_once;
mod presigned_urls;
mod proxies;
mod quotas;
mod ranges;
mod rates;
mod reload;
mod search;
mod sessions;
mod set_up;
mod sign_in;
mod standing;
mod storage;
mod tenants;
mod thumbnails;
mod tls;
mod tus;
mod tus_turns;
mod tus_waits;
mod upload;
mod usage_history;
mod ways_in;
mod webhooks;
mod zip;
