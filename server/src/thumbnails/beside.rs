//! The thumbnail of a file, among the objects of its folder.
//!
//! Never here: what it looks like.

use engine::{Batch, Object, ObjectKey, ObjectName, Precondition, PutOptions, Staged};
use images::Format;

use super::NoThumbnail;
use crate::object_name::thumbnail_name;

/// The name that the thumbnail of a file has.
///
/// # Errors
///
/// [`NoThumbnail::IsThumbnail`] and [`NoThumbnail::NameTooLong`]; [`NoThumbnail::NotAPicture`] of what marks a folder.
pub fn thumbnail_of(file: &ObjectName) -> Result<ObjectName, NoThumbnail> {
    if file.key.is_folder_marker() {
        return Err(NoThumbnail::NotAPicture);
    }
    let name = thumbnail_name(file.key.file_name()).ok_or(NoThumbnail::IsThumbnail)?;
    let key = file.key.folder().key(&name).map_err(|_| NoThumbnail::NameTooLong)?;
    Ok(ObjectName::new(file.bucket.clone(), key))
}

/// Whether an object that has the name for it is the thumbnail of this file.
pub fn is_thumbnail_of(object: &Object, file: &ObjectKey) -> bool {
    object.is_derived() && object.attributes() == mark(file)
}

/// Puts the thumbnail of a file with it, on condition that nothing but an earlier one of it has the name.
pub fn put_thumbnail(batch: Batch, file: &ObjectKey, name: ObjectName, picture: Staged) -> Batch {
    let attributes = mark(file).to_vec();
    let replaceable = Precondition::KeyAbsentOrDerived(name.clone(), attributes.clone());
    let options = PutOptions {
        content_type: Format::WebP.content_type().to_owned(),
        attributes,
        derived: true,
        created_ms: None,
    };
    batch.put(name, picture, options).require(replaceable)
}

/// Moves the thumbnail of a file with it, where its new name is free: the picture is put there, and goes where it was.
/// `old` is the version that `picture` is a copy of.
pub fn move_thumbnail(
    batch: Batch,
    old: &Object,
    to: &ObjectKey,
    name: ObjectName,
    picture: Staged,
) -> Batch {
    if name != *old.name() {
        let batch = put_thumbnail(batch, to, name, picture);
        return batch.delete_derived(old.name().clone(), old.attributes().to_vec());
    }
    // As of `a.png` that becomes `a.jpg`: it stays where it is, and is another file's from now on.
    let options = PutOptions {
        content_type: old.content_type().to_owned(),
        attributes: mark(to).to_vec(),
        derived: true,
        created_ms: None,
    };
    let unchanged = Precondition::KeyVersion(name.clone(), old.lsn());
    batch.put(name, picture, options).require(unchanged)
}

/// Deletes the thumbnail of a file with it, if there is one.
pub fn delete_thumbnail(batch: Batch, file: &ObjectName) -> Batch {
    match thumbnail_of(file) {
        Ok(name) => batch.delete_derived(name, mark(&file.key).to_vec()),
        Err(_) => batch,
    }
}

/// What the thumbnail of a file has for attributes.
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
    fn a_thumbnail_stands_beside_its_file() {
        for (file, thumbnail) in [
            ("a.png", "a_thumb.webp"),
            ("dir.d/a", "dir.d/a_thumb.webp"),
            ("dir/a.tar.gz", "dir/a.tar_thumb.webp"),
            ("dir/a (1).png", "dir/a (1)_thumb.webp"),
            (".env", ".env_thumb.webp"),
        ] {
            assert_eq!(thumbnail_of(&name(file)), Ok(name(thumbnail)), "{file}");
        }
    }

    #[test]
    fn some_files_can_have_none() {
        let most = engine::limits::KEY_BYTES_MAX;
        let fitting = "k".repeat(most - "_thumb.webp".len());
        assert!(thumbnail_of(&name(&fitting)).is_ok());
        assert!(thumbnail_of(&name(&format!("{fitting}.png"))).is_ok());
        for (file, why) in [
            ("a_thumb.webp", NoThumbnail::IsThumbnail),
            ("dir/", NoThumbnail::NotAPicture),
            (&format!("{fitting}k"), NoThumbnail::NameTooLong),
        ] {
            assert_eq!(thumbnail_of(&name(file)), Err(why), "{file}");
        }
    }
}
