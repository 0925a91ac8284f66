//! Thumbnails: a small picture beside the file that it shows, made before that file is stored.
//!
//! A thumbnail is an object of its own, `{stem}_thumb.webp` in its file's folder, flagged as derived; its attributes
//! are the key of its file. So it is delivered and listed as any file is, and the store itself can tell the thumbnail
//! of this file from that of another one (`a.png` and `a.jpg` want the same name) and from somebody's own file of that
//! name.
//!
//! ```text
//! make     a picture out of a body that was received and is not stored yet
//! beside   names, and what a batch does with a thumbnail when it puts or deletes its file
//! ```
//!
//! Promises: a thumbnail is stored, replaced and deleted in one batch with its file; no file of somebody's own is ever
//! replaced by one; what stands in the way of one is told and stops no upload. Never here: requests and answers.

mod beside;
mod make;

use serde::Serialize;
use utoipa::ToSchema;

pub use self::beside::{
    delete_thumbnail, is_thumbnail_of, move_thumbnail, put_thumbnail, thumbnail_of,
};
pub use self::make::make;

/// Why a file has no thumbnail that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoThumbnail {
    /// It is none of the formats of pictures that are read.
    NotAPicture,
    /// By its name it is a thumbnail itself.
    IsThumbnail,
    /// It is a broken picture.
    Undecodable,
    /// It is over a bound of what is worked on: bytes, pixels, a side, memory.
    TooLarge,
    /// Too many pictures wait to be made, or the bucket's allowance for making them is used up.
    Busy,
    /// A file of somebody's own has the name, or the thumbnail of another file.
    NameTaken,
    /// The name would be too long.
    NameTooLong,
    /// A fault of ours; the log says which.
    Failed,
}
