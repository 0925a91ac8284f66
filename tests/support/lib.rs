//! Shared support of the test suites: a store on a simulated disk, the whole service in memory over one, and a client
//! for it.

pub mod browser;
pub mod ceph;
pub mod client;
pub mod commands;
pub mod connection;
pub mod file_host;
pub mod fixtures;
pub mod form;
pub mod free_address;
pub mod guides;
pub mod held_body;
pub mod memory_s3;
pub mod moto;
pub mod network;
pub mod open_metrics;
pub mod pictures;
pub mod png;
pub mod pypi;
pub mod python_reader;
pub mod receiver;
pub mod searched_store;
pub mod secure;
pub mod server_process;
pub mod signed;
pub mod spans;
pub mod wire;
pub mod world;

pub use browser::{Browser, PASSWORD};
pub use client::{Client, Reply};
pub use commands::{DataFolder, Ran};
pub use connection::{Connection, Response};
pub use file_host::{File, FileHost, RequestedFile};
pub use form::Form;
pub use fuzz::model as store;
pub use fuzz::model_batch;
pub use held_body::{Held, held_body};
pub use open_metrics::OpenMetrics;
pub use receiver::{Receiver, Scripted, Seen};
pub use secure::Authority;
pub use server_process::ServerProcess;
pub use signed::SignedConnection;
pub use world::World;
