//! Work on many objects: export and import of archives, and thumbnails as objects.
//!
//! ```text
//! archive             export and import of a bucket or a folder
//! thumbnail_object    names and batches of thumbnails
//! ```
//!
//! Non-goals: authorization, requests and responses.

pub mod archive;
pub mod thumbnail_object;
