//! Thumbnails: small images stored next to their files, rendered before the file is stored.
//!
//! A thumbnail is an object of its own, `{stem}_thumb.webp` in its file's folder, flagged as derived; its attributes
//! are the key of its file. It is therefore delivered and listed like any file, and the store can tell the thumbnail of
//! this file from that of another one (`a.png` and `a.jpg` have the same thumbnail name) and from an uploaded file of
//! that name.
//!
//! ```text
//! make     rendering from a staged body
//! beside   names, and the thumbnail's part in batches that put or delete its file
//! ```
//!
//! Guarantees: a thumbnail is stored, replaced and deleted in one batch with its file; it never replaces an uploaded
//! file; a failure is reported and does not fail the upload. Non-goals: requests and responses.

mod beside;
mod make;

use serde::Serialize;
use utoipa::ToSchema;

pub use self::beside::{
    delete_thumbnail, is_thumbnail_of, move_thumbnail, put_thumbnail, thumbnail_object_name,
};
pub use self::make::render_thumbnail;

/// Reason why no thumbnail was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThumbnailSkip {
    /// Not an image format that can be decoded.
    #[serde(rename = "not_a_picture")]
    NotAnImage,
    /// By its name it is a thumbnail itself.
    IsThumbnail,
    /// Corrupt image.
    Undecodable,
    /// Image above a limit of bytes, pixels, side length or memory.
    TooLarge,
    /// Too many renders are queued, or the bucket's rate limit for renders is exhausted.
    Busy,
    /// An uploaded file, or the thumbnail of another file, has the name.
    NameTaken,
    /// The name would be too long.
    NameTooLong,
    /// Internal error, which is logged.
    Failed,
}
