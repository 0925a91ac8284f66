//! Shared support of the benches: seeded data, a folder on a real disk, interleaved rounds, CPU time, and a table.
//!
//! Guarantees: the same seed gives the same data on any machine; folders are removed when their value is dropped.
//! Non-goals: what is measured.

pub mod arguments;
pub mod baseline_process;
#[cfg(feature = "peers")]
pub mod batched_fjall;
pub mod data;
pub mod epoll_baseline;
pub mod folder;
pub mod get_latency;
pub mod hot_gets;
pub mod http_connection;
pub mod hyper_baseline;
pub mod hyper_put_baseline;
pub mod name_generator;
pub mod nginx;
pub mod npm;
pub mod process;
pub mod process_group;
pub mod put_load;
pub mod raw_log_baseline;
pub mod rounds;
pub mod server;
pub mod sharp;
pub mod stores;
pub mod table;
pub mod trug;
