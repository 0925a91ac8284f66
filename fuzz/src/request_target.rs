//! Object addresses: a path and its public address name the same object, and no other.
//!
//! Three properties. A path is rejected, or parsed as by a second parser in this file: escapes decoded once, in
//! composed form. The public address of the result is plain ASCII and parses to the same name. The result is a fixed
//! point: parsed again as text it is the same place, and no address escapes its folder.

use engine::{BucketName, FolderKey, ObjectName};
use protocol::object_path::{ObjectPath, PathInBucket, check_writable, key_in_folder, normalize};
use protocol::public_url::public_url;

use crate::query::form_decoded;

/// Base URL of public addresses.
const BASE: &str = "https://cdn.example.com";

/// Checks the properties.
pub fn run(input: &[u8]) {
    let Ok(path) = std::str::from_utf8(input) else { return };
    match ObjectPath::from_path(path) {
        Ok(target) => {
            agrees(path, &target);
            addresses(&target);
        }
        Err(refusal) => {
            let known = [(400, "bad_path"), (404, "bucket_not_found")];
            let reported = (refusal.status().as_u16(), refusal.code());
            assert!(known.contains(&reported), "{path:?} is refused as {reported:?}");
        }
    }
    assert_eq!(normalize(&normalize(path)), normalize(path));
    let folder = FolderKey::parse("in/a/").expect("this is a folder");
    if let Ok(key) = key_in_folder(&folder, path) {
        assert_eq!(key.as_str(), format!("in/a/{}", normalize(path)));
        assert_eq!(check_writable(&key).is_ok(), !key.as_str().starts_with("presigned/"));
    }
}

/// Checks the result against the second parser.
fn agrees(path: &str, target: &ObjectPath) {
    let path = path.strip_prefix('/').expect("it was read");
    let (bucket, rest) = path.split_once('/').unwrap_or((path, ""));
    // In a path, a plus sign is literal.
    let decoded = |raw: &str| String::from_utf8(form_decoded(raw.replace('+', "%2b").as_bytes()));
    assert_eq!(decoded(bucket).as_deref(), Ok(target.bucket.as_str()));
    let rest = decoded(rest).expect("it was read");
    assert_eq!(normalize(&rest), target.place.as_str());
    let is_folder = rest.is_empty() || rest.ends_with('/');
    assert_eq!(is_folder, matches!(target.place, PathInBucket::Folder(_)));
    assert!(BucketName::parse(target.bucket.as_str()).is_ok());
    let components = target.place.as_str().split('/');
    assert!(!components.clone().any(|it| it == "." || it == ".."), "it leads out of its folder");
    assert!(!target.place.as_str().contains(['\\', '\0', '\r', '\n']));
}

fn addresses(target: &ObjectPath) {
    assert_eq!(PathInBucket::parse(target.place.as_str()).ok().as_ref(), Some(&target.place));
    let Some(name) = target.object() else { return };
    assert_eq!(name, ObjectName::new(target.bucket.clone(), name.key.clone()));
    let url = public_url(BASE, &name);
    assert!(
        url.bytes().all(|byte| byte.is_ascii_graphic()) && !url.contains(['?', '#', '"']),
        "{url}"
    );
    let path = url.strip_prefix(BASE).expect("it begins with the base");
    assert_eq!(ObjectPath::from_path(path).ok().as_ref(), Some(target), "{url}");
}
