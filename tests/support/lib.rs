//! What the suites share: a store on a simulated disk, the whole service in memory over one, and a client for it.

pub mod client;
pub mod form;
pub mod store;
pub mod wire;
pub mod world;

pub use client::{Client, Reply};
pub use form::Form;
pub use world::World;
