//! Index key of an object, ordered so that folders precede files.
//!
//! | part           | bytes            | when                                   |
//! | -------------- | ---------------- | -------------------------------------- |
//! | bucket         | name, 0x00       | always                                 |
//! | folder segment | 0x02, name, 0x00 | for each folder in the path of the key |
//! | marker         | 0x01             | the key ends in `/` (folder marker)    |
//! | file           | 0x03, name       | the key does not end in `/`            |
//!
//! Within a folder the order is: its marker, its subfolders by name with their content, its files by name.
//! Everything below a folder is one contiguous range. Names contain no control characters and therefore none of
//! these bytes. The common prefix of that range is itself a key: that of the usage counters of a bucket or
//! top-level folder.
//!
//! Guarantees: encoded keys sort in this order; a key decodes if and only if `encode` can produce it.
//! Non-goals: plain byte order of whole keys (`index/byte_order_iter.rs` derives it from this order), values.

use std::cmp::Ordering;
use std::ops::Range;

use memchr::memchr;

use super::malformed::Malformed;
use crate::name::{BucketName, FolderKey, NameError, ObjectKey, ObjectName};

/// Terminator of a bucket name and of a folder segment.
pub const KEY_END: u8 = 0x00;
/// Tag of the marker of the folder itself.
pub const KEY_MARKER: u8 = 0x01;
/// Tag of a folder segment.
pub const KEY_FOLDER: u8 = 0x02;
/// Tag of a file name.
pub const KEY_FILE: u8 = 0x03;
/// First byte after every key of a folder: one more than the terminator of its folder segment.
pub const KEY_AFTER: u8 = 0x01;

const _: () = assert!(KEY_END < KEY_MARKER && KEY_MARKER < KEY_FOLDER && KEY_FOLDER < KEY_FILE);
const _: () = assert!(KEY_AFTER == KEY_END + 1);

/// Encodes the index key of an object.
pub fn encode(name: &ObjectName) -> Vec<u8> {
    let (mut key, file) = encode_folders(&name.bucket, name.key.as_str());
    if file.is_empty() {
        key.push(KEY_MARKER);
    } else {
        key.push(KEY_FILE);
        key.extend_from_slice(file);
    }
    key
}

/// Decodes an index key to the object name.
pub fn decode(bytes: &[u8]) -> Result<ObjectName, Malformed> {
    let (bucket, mut key, rest) = folders(bytes)?;
    let (tag, after) = rest.split_first().ok_or(Malformed::Short)?;
    match *tag {
        KEY_MARKER if after.is_empty() => {}
        KEY_MARKER => return Err(Malformed::Trailing),
        KEY_FILE => key.push_str(file(after)?),
        other => return Err(Malformed::Kind(other)),
    }
    Ok(ObjectName::new(bucket, ObjectKey::parse(&key)?))
}

/// Decodes a key produced by [`folder_prefix`] to bucket and folder.
pub fn decode_prefix(bytes: &[u8]) -> Result<(BucketName, FolderKey), Malformed> {
    let (bucket, folder, rest) = folders(bytes)?;
    if !rest.is_empty() {
        return Err(Malformed::Trailing);
    }
    Ok((bucket, FolderKey::parse(&folder)?))
}

/// Returns the keys of the usage counters that include the object with this key: that of its bucket and, if it
/// has one, of its top-level folder.
pub fn counted_in(key: &[u8]) -> impl Iterator<Item = &[u8]> {
    let component_end = |from: usize| {
        let length = key.get(from..)?.iter().position(|byte| *byte == KEY_END)?;
        Some(from + length + 1)
    };
    let bucket = component_end(0);
    let folder = bucket.filter(|end| key.get(*end) == Some(&KEY_FOLDER)).and_then(component_end);
    [bucket, folder].into_iter().flatten().filter_map(|end| key.get(..end))
}

/// Returns the key range of a bucket.
pub fn bucket_range(bucket: &BucketName) -> Range<Vec<u8>> {
    folder_range(bucket, &FolderKey::root())
}

/// Returns the key range below a folder, including its marker.
pub fn folder_range(bucket: &BucketName, folder: &FolderKey) -> Range<Vec<u8>> {
    folder_prefix(bucket, folder)..after_folder(bucket, folder)
}

/// Returns the common prefix of all keys below a folder, including its marker.
pub fn folder_prefix(bucket: &BucketName, folder: &FolderKey) -> Vec<u8> {
    encode_folders(bucket, folder.as_str()).0
}

/// Encodes a bucket and the folders of a path. Also returns the rest of the path: the name of a file, or nothing.
fn encode_folders<'p>(bucket: &BucketName, path: &'p str) -> (Vec<u8>, &'p [u8]) {
    let (bucket, mut rest) = (bucket.as_str().as_bytes(), path.as_bytes());
    // Room for the tag and the name of the file: each folder segment is one byte longer than in the path.
    let mut key = Vec::with_capacity(bucket.len() + 2 + 2 * path.len());
    key.extend_from_slice(bucket);
    key.push(KEY_END);
    while let Some(end) = memchr(b'/', rest) {
        let (segment, after) = rest.split_at(end);
        key.push(KEY_FOLDER);
        key.extend_from_slice(segment);
        key.push(KEY_END);
        rest = after.get(1..).unwrap_or_default();
    }
    (key, rest)
}

/// Returns the first possible key after everything below a folder.
pub fn after_folder(bucket: &BucketName, folder: &FolderKey) -> Vec<u8> {
    let mut key = folder_prefix(bucket, folder);
    if let Some(last) = key.last_mut() {
        *last = KEY_AFTER;
    }
    key
}

/// Returns the key range of the direct subfolders of a folder, with their content: after its marker, before its
/// files.
pub fn subfolders_range(bucket: &BucketName, folder: &FolderKey) -> Range<Vec<u8>> {
    let prefix = folder_prefix(bucket, folder);
    tagged(prefix.clone(), KEY_FOLDER)..tagged(prefix, KEY_FILE)
}

/// Returns the key range of the files directly in a folder.
pub fn files_range(bucket: &BucketName, folder: &FolderKey) -> Range<Vec<u8>> {
    tagged(folder_prefix(bucket, folder), KEY_FILE)..after_folder(bucket, folder)
}

/// Compares two keys of one bucket in the order of their encoded forms ([`encode`]).
pub fn order(left: &str, right: &str) -> Ordering {
    let common = left.bytes().zip(right.bytes()).take_while(|(left, right)| left == right).count();
    let same = left.as_bytes().get(..common).unwrap_or_default();
    let component = same.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    let parts = |key: &[u8]| match key.iter().position(|byte| *byte == b'/') {
        Some(end) => (KEY_FOLDER, end),
        None if key.is_empty() => (KEY_MARKER, 0),
        None => (KEY_FILE, key.len()),
    };
    let rest = |key| str::as_bytes(key).get(component..).unwrap_or_default();
    let (left, right) = (rest(left), rest(right));
    let ((left_tag, left_end), (right_tag, right_end)) = (parts(left), parts(right));
    left_tag.cmp(&right_tag).then_with(|| left.get(..left_end).cmp(&right.get(..right_end)))
}

fn tagged(mut prefix: Vec<u8>, tag: u8) -> Vec<u8> {
    prefix.push(tag);
    prefix
}

/// Splits an encoded key into bucket, folder path and remaining bytes.
fn folders(bytes: &[u8]) -> Result<(BucketName, String, &[u8]), Malformed> {
    let (bucket, mut rest) = segment_of_path(bytes)?;
    let bucket = BucketName::parse(bucket)?;
    let mut path = String::with_capacity(bytes.len());
    while let Some((&KEY_FOLDER, after)) = rest.split_first() {
        let (folder, after) = segment_of_path(after)?;
        path.push_str(folder);
        path.push('/');
        rest = after;
    }
    Ok((bucket, path, rest))
}

fn segment_of_path(bytes: &[u8]) -> Result<(&str, &[u8]), Malformed> {
    let end = memchr(KEY_END, bytes).ok_or(Malformed::Short)?;
    let (name, rest) = bytes.split_at_checked(end).ok_or(Malformed::Short)?;
    Ok((file(name)?, rest.get(1..).unwrap_or_default()))
}

/// Decodes a file name, which contains no slash.
fn file(bytes: &[u8]) -> Result<&str, Malformed> {
    let name = std::str::from_utf8(bytes).map_err(|_| Malformed::Text)?;
    if name.is_empty() || name.contains('/') {
        return Err(Malformed::Name(NameError::EmptySegment));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bucket(name: &str) -> BucketName {
        BucketName::parse(name).unwrap()
    }

    fn key(key: &str) -> Vec<u8> {
        encode(&ObjectName::new(bucket("abc"), ObjectKey::parse(key).unwrap()))
    }

    /// States the order independently: at the first differing path segment the folder marker precedes folders,
    /// which precede files; equal kinds sort by name.
    fn stated(key: &str) -> Vec<(u8, &str)> {
        let mut components: Vec<_> = key.split('/').map(|name| (2, name)).collect();
        if let Some(last) = components.last_mut() {
            last.0 = if last.1.is_empty() { 1 } else { 3 };
        }
        components
    }

    #[test]
    fn entry_key_bytes_match_the_documented_table() {
        assert_eq!(key("a"), b"abc\0\x03a");
        assert_eq!(key("dir/sub/a.png"), b"abc\0\x02dir\0\x02sub\0\x03a.png");
        assert_eq!(key("dir/"), b"abc\0\x02dir\0\x01");
    }

    proptest! {
        #[test]
        fn plain_keys_are_ordered_by_bytes(
            left in "[ab!é]{1,3}(/[ab!é]{1,3}){0,3}/?", right in "[ab!é]{1,3}(/[ab!é]{1,3}){0,3}/?"
        ) {
            prop_assert_eq!(order(&left, &right), key(&left).cmp(&key(&right)));
            prop_assert_eq!(order(&left, &right), stated(&left).cmp(&stated(&right)));
        }
    }

    #[test]
    fn folders_sort_before_files_at_every_level() {
        let sorted = ["a/", "a/b/", "a/b/z", "a/b-c/z", "a/a", "a/z", "a!/x", "é/x", "a", "b"];
        let keys: Vec<_> = sorted.iter().map(|name| key(name)).collect();
        assert!(keys.is_sorted(), "{keys:?}");
    }

    #[test]
    fn folder_is_one_contiguous_key_range() {
        let folder = FolderKey::parse("a/").unwrap();
        let range = folder_range(&bucket("abc"), &folder);
        let folders = subfolders_range(&bucket("abc"), &folder);
        let files = files_range(&bucket("abc"), &folder);
        assert_eq!(range.end, after_folder(&bucket("abc"), &folder));
        for (name, in_range, in_folders, in_files) in [
            ("a/", true, false, false),
            ("a/b/", true, true, false),
            ("a/b/c/d", true, true, false),
            ("a/\u{10ffff}/x", true, true, false),
            ("a/a", true, false, true),
            ("a/\u{10ffff}", true, false, true),
            ("a", false, false, false),
            ("a!/b", false, false, false),
            ("aa/b", false, false, false),
            ("b", false, false, false),
        ] {
            let key = key(name);
            assert_eq!(range.contains(&key), in_range, "{name}");
            assert_eq!(folders.contains(&key), in_folders, "{name}");
            assert_eq!(files.contains(&key), in_files, "{name}");
        }
    }

    #[test]
    fn bucket_is_one_contiguous_key_range() {
        let range = bucket_range(&bucket("abc"));
        assert!(range.contains(&key("a")) && range.contains(&key("\u{10ffff}")));
        for other in ["abb", "abcd", "abc-", "abd"] {
            let name = ObjectName::new(bucket(other), ObjectKey::parse("a").unwrap());
            assert!(!range.contains(&encode(&name)), "{other}");
        }
    }

    #[test]
    fn usage_counts_bucket_and_top_level_folder() {
        for (name, counted) in [
            ("a", [b"abc\0".as_slice()].as_slice()),
            ("dir/", &[b"abc\0", b"abc\0\x02dir\0"]),
            ("dir/a", &[b"abc\0", b"abc\0\x02dir\0"]),
            ("dir/sub/a", &[b"abc\0", b"abc\0\x02dir\0"]),
        ] {
            assert_eq!(counted_in(&key(name)).collect::<Vec<_>>(), counted, "{name}");
        }
        for folder in ["", "dir/", "dir/sub/"] {
            let folder = FolderKey::parse(folder).unwrap();
            let prefix = folder_prefix(&bucket("abc"), &folder);
            assert_eq!(decode_prefix(&prefix), Ok((bucket("abc"), folder)));
        }
        assert_eq!(decode_prefix(&key("dir/a")), Err(Malformed::Trailing));
    }

    #[test]
    fn non_canonical_entry_keys_are_rejected() {
        let empty = Malformed::Name(NameError::EmptySegment);
        for (bytes, why) in [
            (b"".as_slice(), Malformed::Short),
            (b"abc", Malformed::Short),
            (b"abc\0", Malformed::Short),
            (b"ab\0\x03a", Malformed::Name(NameError::TooShort(3))),
            (b"abc\0\x01", Malformed::Name(NameError::Empty)),
            (b"abc\0\x03", empty),
            (b"abc\0\x03a/b", empty),
            (b"abc\0\x02a/b\0\x03c", empty),
            (b"abc\0\x02\0\x03c", empty),
            (b"abc\0\x02a", Malformed::Short),
            (b"abc\0\x02a\0", Malformed::Short),
            (b"abc\0\x02a\0\x01b", Malformed::Trailing),
            (b"abc\0\x04a", Malformed::Kind(4)),
            (b"abc\0\x03a\0", Malformed::Name(NameError::Control)),
            (b"abc\0\x03..", Malformed::Name(NameError::DotSegment)),
            (b"abc\0\x03\xff", Malformed::Text),
        ] {
            assert_eq!(decode(bytes), Err(why), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn entry_keys_round_trip_and_keep_order(
            left in "([a-c!é]{1,3}/){0,3}[a-c!é]{0,3}",
            right in "([a-c!é]{1,3}/){0,3}[a-c!é]{0,3}",
        ) {
            let parse = |key: &str| ObjectKey::parse(key).ok();
            if let (Some(l), Some(r)) = (parse(&left), parse(&right)) {
                let l = ObjectName::new(bucket("abc"), l);
                let r = ObjectName::new(bucket("abc"), r);
                prop_assert_eq!(decode(&encode(&l)), Ok(l.clone()));
                let order = encode(&l).cmp(&encode(&r));
                prop_assert_eq!(order, stated(&left).cmp(&stated(&right)));
                let folder = l.key.folder();
                let inside = folder_range(&l.bucket, &folder).contains(&encode(&r));
                prop_assert_eq!(inside, right.starts_with(folder.as_str()));
            }
        }

        #[test]
        fn arbitrary_bytes_decode_as_entry_key_or_are_rejected(bytes: Vec<u8>, tail in "[a-c/\0\u{1}\u{2}\u{3}]{0,20}") {
            let _ = decode(&bytes);
            if let Ok((bucket, folder)) = decode_prefix(&bytes) {
                prop_assert_eq!(folder_prefix(&bucket, &folder), bytes.clone());
            }
            let bytes = [b"abc\0".as_slice(), tail.as_bytes()].concat();
            if let Ok(name) = decode(&bytes) {
                prop_assert_eq!(encode(&name), bytes);
            }
        }
    }
}
