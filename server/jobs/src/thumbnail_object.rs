//! Thumbnail of a file, as an object of the same folder: its name, and its part in batches that put or delete its file.
//!
//! A thumbnail is an object of its own, `{stem}_thumb.webp` in its file's folder, flagged as derived; its attributes
//! are the key of its file. It is therefore delivered and listed like any file, and the store can tell the thumbnail of
//! this file from that of another one (`a.png` and `a.jpg` have the same thumbnail name) and from an uploaded file of
//! that name.
//!
//! Guarantees: a thumbnail is stored, replaced and deleted in one batch with its file; it never replaces an uploaded
//! file. Non-goals: rendering.

use engine::{Batch, Object, ObjectKey, ObjectName, Precondition, PutOptions, StagedBody};
use protocol::file_name::thumbnail_name;
use serde::Serialize;
use utoipa::ToSchema;

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

/// Media type of thumbnails.
const THUMBNAIL_TYPE: &str = "image/webp";

/// Returns the name of a file's thumbnail.
///
/// # Errors
///
/// [`ThumbnailSkip::IsThumbnail`]; [`ThumbnailSkip::NameTooLong`]; [`ThumbnailSkip::NotAnImage`] for a marker.
pub fn thumbnail_object_name(file: &ObjectName) -> Result<ObjectName, ThumbnailSkip> {
    if file.key.is_folder_marker() {
        return Err(ThumbnailSkip::NotAnImage);
    }
    let name = thumbnail_name(file.key.file_name()).ok_or(ThumbnailSkip::IsThumbnail)?;
    let key = file.key.folder().key(&name).map_err(|_| ThumbnailSkip::NameTooLong)?;
    Ok(ObjectName::new(file.bucket.clone(), key))
}

/// Returns whether an object with the thumbnail's name is the thumbnail of this file.
pub fn is_thumbnail_of(object: &Object, file: &ObjectKey) -> bool {
    object.is_derived() && object.attributes() == mark(file)
}

/// Adds the thumbnail of a file to a batch, on condition that the name is free or has an earlier thumbnail of the file.
pub fn put_thumbnail(
    batch: Batch,
    file: &ObjectKey,
    name: ObjectName,
    picture: StagedBody,
) -> Batch {
    let attributes = mark(file).to_vec();
    let replaceable = Precondition::KeyAbsentOrDerived(name.clone(), attributes.clone());
    let options = PutOptions {
        content_type: THUMBNAIL_TYPE.to_owned(),
        attributes,
        derived: true,
        created_ms: None,
    };
    batch.put(name, picture, options).require(replaceable)
}

/// Adds the move of a file's thumbnail to a batch: stores the image under the new name, if that is free, and deletes
/// the old one. `old` is the version that `picture` is a copy of.
pub fn move_thumbnail(
    batch: Batch,
    old: &Object,
    to: &ObjectKey,
    name: ObjectName,
    picture: StagedBody,
) -> Batch {
    if name != *old.name() {
        let batch = put_thumbnail(batch, to, name, picture);
        return batch.delete_derived(old.name().clone(), old.attributes().to_vec());
    }
    // When `a.png` becomes `a.jpg`, the thumbnail has the same name but belongs to another file.
    let options = PutOptions {
        content_type: old.content_type().to_owned(),
        attributes: mark(to).to_vec(),
        derived: true,
        created_ms: None,
    };
    let unchanged = Precondition::KeyHasLsn(name.clone(), old.lsn());
    batch.put(name, picture, options).require(unchanged)
}

/// Adds the deletion of a file's thumbnail, if there is one, to a batch.
pub fn delete_thumbnail(batch: Batch, file: &ObjectName) -> Batch {
    match thumbnail_object_name(file) {
        Ok(name) => batch.delete_derived(name, mark(&file.key).to_vec()),
        Err(_) => batch,
    }
}

/// Returns the attributes of a file's thumbnail.
fn mark(file: &ObjectKey) -> &[u8] {
    file.as_str().as_bytes()
}

const _: () = assert!(engine::limits::KEY_BYTES_MAX <= engine::limits::ATTRIBUTES_BYTES_MAX);

#[cfg(test)]
mod tests {
    use engine::BucketName;

    use super::*;

    fn name(key: &str) -> ObjectName {
        let bucket = BucketName::parse("photos").unwrap();
        ObjectName::new(bucket, ObjectKey::parse(key).unwrap())
    }

    #[test]
    fn thumbnail_is_stored_next_to_its_file() {
        for (file, thumbnail) in [
            ("a.png", "a_thumb.webp"),
            ("dir.d/a", "dir.d/a_thumb.webp"),
            ("dir/a.tar.gz", "dir/a.tar_thumb.webp"),
            ("dir/a (1).png", "dir/a (1)_thumb.webp"),
            (".env", ".env_thumb.webp"),
        ] {
            assert_eq!(thumbnail_object_name(&name(file)), Ok(name(thumbnail)), "{file}");
        }
    }

    #[test]
    fn some_files_can_have_none() {
        let most = engine::limits::KEY_BYTES_MAX;
        let fitting = "k".repeat(most - "_thumb.webp".len());
        assert!(thumbnail_object_name(&name(&fitting)).is_ok());
        assert!(thumbnail_object_name(&name(&format!("{fitting}.png"))).is_ok());
        for (file, why) in [
            ("a_thumb.webp", ThumbnailSkip::IsThumbnail),
            ("dir/", ThumbnailSkip::NotAnImage),
            (&format!("{fitting}k"), ThumbnailSkip::NameTooLong),
        ] {
            assert_eq!(thumbnail_object_name(&name(file)), Err(why), "{file}");
        }
    }
}
