//! One file per resource: who is asking, what is meant, one call of the engine, one reply.

pub mod delete;
pub mod deliver;
pub mod health;
pub mod list;
pub mod search;
pub mod upload;
