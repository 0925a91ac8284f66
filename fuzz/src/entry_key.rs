//! Index keys: they decode to the names that they were encoded from, nothing else decodes, and their byte order is the
//! documented listing order: a folder's marker, then its folders, then its files, each by name.

use std::cmp::Ordering;

use engine::format::entry_key;
use engine::name::{BucketName, ObjectKey, ObjectName};

/// Checks the property. The input is an encoded key, and also two names separated by a zero byte.
pub fn run(input: &[u8]) {
    if let Ok(name) = entry_key::decode(input) {
        assert_eq!(entry_key::encode(&name), input, "another key for {name}");
    }
    let mut halves = input.splitn(2, |byte| *byte == 0);
    let (left, right) = (halves.next().and_then(name), halves.next().and_then(name));
    for name in [&left, &right].into_iter().flatten() {
        let key = entry_key::encode(name);
        assert_eq!(entry_key::decode(&key).as_ref(), Ok(name));
        let folder = name.key.folder();
        let below = entry_key::folder_range(&name.bucket, &folder);
        assert!(below.contains(&key), "{name} is in its folder");
        assert!(entry_key::bucket_range(&name.bucket).contains(&key));
        let files = entry_key::files_range(&name.bucket, &folder).contains(&key);
        assert_eq!(files, !name.key.is_folder_marker(), "{name} is a file or a marker");
    }
    if let (Some(left), Some(right)) = (left, right) {
        let keys = entry_key::encode(&left).cmp(&entry_key::encode(&right));
        assert_eq!(keys, stated(left.key.as_str(), right.key.as_str()), "{left} and {right}");
        let folder = left.key.folder();
        let below = entry_key::folder_range(&left.bucket, &folder);
        let stated = right.key.as_str().starts_with(folder.as_str());
        assert_eq!(below.contains(&entry_key::encode(&right)), stated, "{right} in {folder}");
    }
}

fn name(bytes: &[u8]) -> Option<ObjectName> {
    let bucket = BucketName::parse("any").ok()?;
    let key = ObjectKey::parse(std::str::from_utf8(bytes).ok()?).ok()?;
    Some(ObjectName::new(bucket, key))
}

/// Compares two keys by the documented order, from the first path segment at which they differ.
fn stated(left: &str, right: &str) -> Ordering {
    match (left.split_once('/'), right.split_once('/')) {
        (Some((l, left)), Some((r, right))) => l.cmp(r).then_with(|| stated(left, right)),
        // An empty remainder is the marker of the parent folder.
        (Some(_), None) if right.is_empty() => Ordering::Greater,
        (None, Some(_)) if left.is_empty() => Ordering::Less,
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => left.cmp(right),
    }
}
