//! Does the service keep its specification, section by section? Each file says which.
//!
//! Every test speaks to the real router over the real store on a simulated disk; without a socket, but for those of
//! connections.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod abuse;
mod accounts;
mod auth;
mod buckets;
mod clients;
mod connections;
mod content_safety;
mod damage;
mod delete;
mod deliver;
mod errors;
mod forms;
mod full_disk;
mod hostile_paths;
mod images;
mod integrations;
mod keys;
mod list;
mod mass_assignment;
mod names;
mod openapi;
mod organisations;
mod premium;
mod presign;
mod presign_once;
mod presigned_urls;
mod quotas;
mod ranges;
mod rates;
mod search;
mod standing;
mod tenants;
mod thumbnails;
mod tus;
mod tus_turns;
mod tus_waits;
mod upload;
mod ways_in;
mod webhooks;
