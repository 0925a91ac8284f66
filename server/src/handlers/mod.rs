//! One file per resource: who is asking, what is meant, one call of the engine, one reply.

pub mod delete;
pub mod deliver;
pub mod health;
pub mod integrations;
pub mod list;
pub mod presign;
pub mod presigned_put;
pub mod search;
pub mod tus;
pub mod upload;
