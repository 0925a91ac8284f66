//! Does the service keep its specification, section by section? Each file says which.
//!
//! Every test speaks to the real router over the real store on a simulated disk; without a socket, but for those of
//! connections.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod abuse;
mod auth;
mod connections;
mod damage;
mod delete;
mod deliver;
mod errors;
mod forms;
mod full_disk;
mod names;
mod ranges;
mod rates;
mod standing;
mod upload;
