//! Engine tests against the contract of `lib.rs`. Every test drives a real [`engine::Store`] over the simulated disk.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod backup;
mod batches;
mod compaction;
mod counters;
mod deleted_versions;
mod facts;
mod fsck;
mod fsck_compacted;
mod fsck_index;
mod fsck_remade;
mod golden;
mod history;
mod life;
mod listing;
mod measures;
mod objects;
mod python_reader;
mod ranking;
mod reads;
mod resumable;
mod retained;
mod scrub;
mod search;
mod unreadable;
mod uploads;
