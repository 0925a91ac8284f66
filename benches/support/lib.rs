//! Shared support of the benches: seeded data, a folder on a real disk, interleaved rounds, CPU time, and a table.
//!
//! Guarantees: the same seed gives the same data on any machine; folders are removed when their value is dropped.
//! Non-goals: what is measured.

pub mod arguments;
pub mod bare_log;
pub mod bare_loop;
#[cfg(feature = "peers")]
pub mod batched_fjall;
pub mod beside;
pub mod data;
pub mod folder;
pub mod hot_gets;
pub mod names;
pub mod nginx;
pub mod process;
pub mod rounds;
pub mod server;
pub mod sharp;
pub mod stores;
pub mod table;
pub mod trug;
pub mod wire;
