//! Versions of objects: what keeps them, what removes them, and where they count.

use serde_json::Value;
use tests::Connection;

use crate::bucket::{Bucket, element, is, upload_parts, version_of};

fn configure(bucket: &mut Bucket, state: &str) {
    let body =
        format!("<VersioningConfiguration><Status>{state}</Status></VersioningConfiguration>");
    bucket.put("/photos?versioning", &[], &body);
}

/// A private bucket with versions.
fn versioned() -> Bucket {
    let mut bucket = Bucket::new();
    configure(&mut bucket, "Enabled");
    bucket
}

/// Key, version, `latest` or `older`, and `marker` of a delete marker, in the order of the listing of each kind.
fn listed(bucket: &mut Bucket, query: &str) -> Vec<String> {
    let answer = bucket.get(&format!("/photos?{query}"), &[]);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let body = answer.text();
    let between = |text: &str, name: &str| {
        let rest = text.split_once(&format!("<{name}>")).unwrap().1;
        rest.split_once("</").unwrap().0.to_owned()
    };
    let mut items = Vec::new();
    for (element, kind) in [("<Version>", ""), ("<DeleteMarker>", " marker")] {
        for item in body.split(element).skip(1) {
            let latest = if between(item, "IsLatest") == "true" { "latest" } else { "older" };
            let (key, id) = (between(item, "Key"), between(item, "VersionId"));
            items.push(format!("{key} {id} {latest}{kind}"));
        }
    }
    items
}

fn read(bucket: &mut Bucket, address: &str) -> (u16, String) {
    let answer = bucket.get(address, &[]);
    (answer.status, answer.text())
}

#[test]
fn versioning_is_configured_and_reported() {
    let mut bucket = Bucket::new();
    let state = |bucket: &mut Bucket| element(&bucket.get("/photos?versioning", &[]), "Status");
    assert_eq!(state(&mut bucket), None);
    assert_eq!(bucket.put("/photos/a", &[], "1").header("x-amz-version-id"), "");
    for wanted in ["Enabled", "Suspended", "Enabled"] {
        configure(&mut bucket, wanted);
        assert_eq!(state(&mut bucket).as_deref(), Some(wanted));
    }
    let configuration =
        |inner: &str| format!("<VersioningConfiguration>{inner}</VersioningConfiguration>");
    for (inner, status, code) in [
        ("", 400, "IllegalVersioningConfigurationException"),
        ("<Status>On</Status>", 400, "IllegalVersioningConfigurationException"),
        ("<Status>Enabled</Status><MfaDelete>Enabled</MfaDelete>", 501, "NotImplemented"),
    ] {
        let refused = bucket.send("PUT", "/photos?versioning", &[], &configuration(inner));
        assert_eq!(
            (refused.status, element(&refused, "Code").unwrap()),
            is(status, code),
            "{inner}"
        );
    }
    assert_eq!(state(&mut bucket).as_deref(), Some("Enabled"));
}

#[test]
fn overwritten_versions_stay_readable_by_id() {
    let mut bucket = Bucket::new();
    bucket.put("/photos/a%20b!", &[], "null");
    configure(&mut bucket, "Enabled");
    let first = version_of(&bucket.put("/photos/a%20b!", &[("x-amz-meta-n", "1")], "first"));
    let second = version_of(&bucket.put("/photos/a%20b!", &[("x-amz-meta-n", "2")], "second"));
    assert_ne!(first, second);
    let answer = bucket.get("/photos/a%20b!", &[]);
    assert_eq!((answer.text(), version_of(&answer)), ("second".into(), second.clone()));
    let answer =
        bucket.get(&format!("/photos/a%20b!?versionId={first}"), &[("range", "bytes=1-2")]);
    assert_eq!((answer.status, answer.text()), (206, "ir".into()));
    assert_eq!((version_of(&answer), answer.header("x-amz-meta-n")), (first.clone(), "1"));
    let head = bucket.send("HEAD", &format!("/photos/a%20b!?versionId={second}"), &[], "");
    assert_eq!((head.status, version_of(&head)), (200, second.clone()));
    assert_eq!(read(&mut bucket, "/photos/a%20b!?versionId=null").0, 200);
    let items = listed(&mut bucket, "versions");
    let first_item = format!("a b! {first} older");
    assert_eq!(items, [&format!("a b! {second} latest"), &first_item, "a b! null older"]);
    let missing = "/photos/a%20b!?versionId=00000000000000ff";
    assert_eq!(bucket.refusal("GET", missing, &[]), is(404, "NoSuchVersion"));
    let malformed = "/photos/a%20b!?versionId=abc";
    assert_eq!(bucket.refusal("GET", malformed, &[]), is(400, "InvalidArgument"));
    assert_eq!(bucket.refusal("DELETE", malformed, &[]), is(400, "InvalidArgument"));
}

#[test]
fn large_versions_survive_compaction() {
    let mut bucket = versioned();
    let large = "x".repeat(3 << 20);
    let first = version_of(&bucket.put("/photos/large", &[], &large));
    bucket.put("/photos/large", &[], "small");
    bucket.send("DELETE", "/photos/large", &[], "");
    bucket.place.data.done(&["compact"]);
    let (status, body) = read(&mut bucket, &format!("/photos/large?versionId={first}"));
    assert_eq!((status, body.len()), (200, large.len()));
}

#[test]
fn delete_markers_are_created_and_their_removal_restores() {
    let mut bucket = versioned();
    let first = version_of(&bucket.put("/photos/a", &[], "first"));
    let deleted = bucket.send("DELETE", "/photos/a", &[], "");
    assert_eq!((deleted.status, deleted.header("x-amz-delete-marker")), (204, "true"));
    let marker = version_of(&deleted);
    let gone = bucket.get("/photos/a", &[]);
    assert_eq!((gone.status, gone.header("x-amz-delete-marker")), (404, "true"));
    assert_eq!(version_of(&gone), marker);
    let of_marker = bucket.get(&format!("/photos/a?versionId={marker}"), &[]);
    assert_eq!((of_marker.status, of_marker.header("allow")), (405, "DELETE"));
    assert_eq!(read(&mut bucket, &format!("/photos/a?versionId={first}")).1, "first");
    // One that is deleted twice has two markers.
    let second = version_of(&bucket.send("DELETE", "/photos/a", &[], ""));
    assert_ne!(marker, second);
    let items = listed(&mut bucket, "versions");
    let older = format!("a {marker} older marker");
    let expected = [format!("a {first} older"), format!("a {second} latest marker"), older];
    assert_eq!(items, expected);
    for (id, status) in [(&second, 404), (&marker, 200)] {
        let removed = bucket.send("DELETE", &format!("/photos/a?versionId={id}"), &[], "");
        assert_eq!((removed.status, removed.header("x-amz-delete-marker")), (204, "true"));
        assert_eq!(bucket.get("/photos/a", &[]).status, status);
    }
    let back = bucket.get("/photos/a", &[]);
    assert_eq!((version_of(&back), back.text()), (first, "first".into()));
    let never = bucket.send("DELETE", "/photos/never", &[], "");
    assert_eq!(never.header("x-amz-delete-marker"), "true");
}

#[test]
fn removing_the_current_version_promotes_the_next() {
    let mut bucket = versioned();
    let ids: Vec<_> =
        ["1", "2", "3"].map(|body| version_of(&bucket.put("/photos/a", &[], body))).into();
    let modified = bucket
        .get(&format!("/photos/a?versionId={}", ids[1]), &[])
        .header("last-modified")
        .to_owned();
    let removed = bucket.send("DELETE", &format!("/photos/a?versionId={}", ids[2]), &[], "");
    assert_eq!((removed.status, removed.header("x-amz-delete-marker")), (204, ""));
    assert_eq!(version_of(&removed), ids[2]);
    let now = bucket.get("/photos/a", &[]);
    assert_eq!((now.text(), version_of(&now)), ("2".into(), ids[1].clone()));
    assert_eq!(now.header("last-modified"), modified);
    // One of the middle goes without an effect on the others, and one that is gone goes again.
    for _ in 0..2 {
        let removed = bucket.send("DELETE", &format!("/photos/a?versionId={}", ids[0]), &[], "");
        assert_eq!(removed.status, 204);
    }
    assert_eq!(listed(&mut bucket, "versions"), [format!("a {} latest", ids[1])]);
    bucket.send("DELETE", &format!("/photos/a?versionId={}", ids[1]), &[], "");
    assert_eq!(listed(&mut bucket, "versions"), [""; 0]);
}

#[test]
fn suspended_versioning_replaces_only_the_null_version() {
    let mut bucket = versioned();
    let kept = version_of(&bucket.put("/photos/a", &[], "kept"));
    configure(&mut bucket, "Suspended");
    for body in ["null 1", "null 2"] {
        assert_eq!(bucket.put("/photos/a", &[], body).header("x-amz-version-id"), "");
        assert_eq!(version_of(&bucket.get("/photos/a", &[])), "null");
    }
    let older = format!("a {kept} older");
    assert_eq!(listed(&mut bucket, "versions"), ["a null latest", &older]);
    assert_eq!(version_of(&bucket.send("DELETE", "/photos/a", &[], "")), "null");
    assert_eq!(listed(&mut bucket, "versions"), [&older, "a null latest marker"]);
    bucket.put("/photos/a", &[], "null 3");
    configure(&mut bucket, "Enabled");
    let new = version_of(&bucket.put("/photos/a", &[], "new"));
    let latest = format!("a {new} latest");
    assert_eq!(listed(&mut bucket, "versions"), [&latest, "a null older", &older]);
    assert_eq!(read(&mut bucket, "/photos/a?versionId=null").1, "null 3");
    configure(&mut bucket, "Suspended");
    // The null version that is not current makes room for the new one.
    bucket.put("/photos/a", &[], "null 4");
    let middle = format!("a {new} older");
    assert_eq!(listed(&mut bucket, "versions"), ["a null latest", &middle, &older]);
}

#[test]
fn multi_delete_marks_and_removes_versions() {
    let mut bucket = versioned();
    let a = version_of(&bucket.put("/photos/a", &[], "a"));
    bucket.put("/photos/b", &[], "b");
    let body = format!(
        "<Delete><Object><Key>a</Key><VersionId>{a}</VersionId></Object>\
         <Object><Key>b</Key></Object><Object><Key>c</Key></Object></Delete>"
    );
    let answer = bucket.send("POST", "/photos?delete", &[], &body);
    let xml = answer.text();
    assert_eq!(answer.status, 200, "{xml}");
    assert_eq!(xml.matches("<DeleteMarker>true</DeleteMarker>").count(), 2, "{xml}");
    assert_eq!(xml.matches("<DeleteMarkerVersionId>").count(), 2, "{xml}");
    let items = listed(&mut bucket, "versions");
    assert_eq!(items.len(), 3, "{items:?}");
    assert!(items.iter().all(|item| !item.starts_with("a ")), "{items:?}");
}

#[test]
fn version_listing_pages_by_key_and_version_markers() {
    let mut bucket = versioned();
    for key in ["a", "a%20b", "a/x", "a/y", "b"] {
        for body in ["1", "2", "3"] {
            bucket.put(&format!("/photos/{key}"), &[], body);
        }
    }
    bucket.send("DELETE", "/photos/a", &[], "");
    let all = listed(&mut bucket, "versions");
    assert_eq!(all.len(), 16);
    for page in [1, 2, 7] {
        let (mut paged, mut marker) = (Vec::new(), String::new());
        loop {
            let (before, after) = marker.split_once('|').unwrap_or_default();
            let query = match before {
                "" => format!("max-keys={page}&versions"),
                key => {
                    format!("key-marker={key}&max-keys={page}&version-id-marker={after}&versions")
                }
            };
            paged.extend(listed(&mut bucket, &query));
            let answer = bucket.get(&format!("/photos?{query}"), &[]);
            if element(&answer, "IsTruncated").as_deref() != Some("true") {
                break;
            }
            let key =
                element(&answer, "NextKeyMarker").unwrap().replace(' ', "%20").replace('/', "%2F");
            marker = format!("{key}|{}", element(&answer, "NextVersionIdMarker").unwrap());
        }
        let (mut all, mut paged) = (all.clone(), paged);
        all.sort_unstable();
        paged.sort_unstable();
        assert_eq!(paged, all, "pages of {page}");
    }
    let groups = bucket.get("/photos?delimiter=%2F&versions", &[]);
    assert!(groups.text().contains("<CommonPrefixes><Prefix>a/</Prefix></CommonPrefixes>"));
    assert_eq!(listed(&mut bucket, "delimiter=%2F&versions").len(), 10);
    assert_eq!(listed(&mut bucket, "prefix=a%2F&versions").len(), 6);
    assert_eq!(listed(&mut bucket, "key-marker=a%2Fx&versions").len(), 6);
    let refused = bucket.refusal("GET", "/photos?version-id-marker=null&versions", &[]);
    assert_eq!(refused, is(400, "InvalidArgument"));
}

#[test]
fn copies_tags_and_parts_know_versions() {
    let mut bucket = versioned();
    let first = version_of(&bucket.put("/photos/a", &[], "first"));
    bucket.put("/photos/a", &[], "second");
    let source = format!("photos/a?versionId={first}");
    let copy = bucket.put("/photos/copy", &[("x-amz-copy-source", &source)], "");
    assert_eq!(copy.header("x-amz-copy-source-version-id"), first);
    assert_eq!(read(&mut bucket, "/photos/copy"), (200, "first".into()));
    assert_eq!(version_of(&bucket.get("/photos/copy", &[])), version_of(&copy));
    // Back to an earlier version: it is current, with an id of its own.
    let restored = bucket.put("/photos/a", &[("x-amz-copy-source", &source)], "");
    assert_ne!(version_of(&restored), first);
    assert_eq!(listed(&mut bucket, "prefix=a&versions").len(), 3);
    let tags = "<Tagging><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tagging>";
    let current = version_of(&bucket.get("/photos/a", &[]));
    for id in [&first, &current] {
        let address = format!("/photos/a?tagging&versionId={id}");
        assert_eq!(version_of(&bucket.put(&address, &[], tags)), *id);
        assert!(bucket.get(&address, &[]).text().contains("<Value>v</Value>"));
    }
    assert_eq!(version_of(&bucket.get("/photos/a", &[])), current, "tags make no version");
    assert_eq!(listed(&mut bucket, "prefix=a&versions").len(), 3);
    let (complete, body) = upload_parts(&mut bucket, "/photos/a", &["whole"], &[]);
    let joined = bucket.send("POST", &complete, &[], &body);
    assert_eq!(version_of(&joined), version_of(&bucket.get("/photos/a", &[])));
    assert_eq!(listed(&mut bucket, "prefix=a&versions").len(), 4);
}

#[test]
fn native_writes_keep_versions_and_never_show_them() {
    let mut bucket = versioned();
    let key = bucket.place.data.done(&["apikey", "create", "--account", "ann"]).stdout;
    let key = format!("Bearer {}", key.trim_end());
    let auth = [("authorization", &*key)];
    let mut native = Connection::connect(bucket.place.server.address()).unwrap();
    let first = version_of(&bucket.put("/photos/a.txt", &[], "first"));
    bucket.put("/photos/a.txt", &[], "second");
    let deleted = native.send("DELETE", "/photos/a.txt", &auth, b"").unwrap();
    assert_eq!(deleted.status, 200, "{}", deleted.text());
    assert_eq!(native.send("GET", "/photos/a.txt", &auth, b"").unwrap().status, 404);
    assert_eq!(read(&mut bucket, &format!("/photos/a.txt?versionId={first}")).1, "first");
    assert_eq!(listed(&mut bucket, "versions").len(), 3);
    bucket.put("/photos/m.txt", &[], "moved");
    let body = br#"{"from":"m.txt","to":"n.txt"}"#;
    let json = [auth[0], ("content-type", "application/json")];
    let moved = native.send("POST", "/api/buckets/photos/move", &json, body).unwrap();
    assert_eq!(moved.status, 200, "{}", moved.text());
    assert_eq!(listed(&mut bucket, "prefix=m&versions").len(), 2, "the object and a marker");
    assert_eq!(listed(&mut bucket, "prefix=n&versions").len(), 1);
    let listing = native.send("GET", "/api/list-objects?bucketName=photos", &auth, b"").unwrap();
    let listing = listing.text();
    assert!(listing.contains("n.txt") && !listing.contains("m.txt") && !listing.contains("a.txt"));
    for address in ["/trug.versions/photos/a.txt", "/api/list-objects?bucketName=trug.versions"] {
        assert_eq!(native.send("GET", address, &auth, b"").unwrap().status, 404, "{address}");
    }
}

#[test]
fn versions_count_to_usage_and_quota_and_keep_their_bucket() {
    let mut bucket = versioned();
    for body in ["12345", "67890"] {
        bucket.put("/photos/a", &[], body);
    }
    bucket.send("DELETE", "/photos/a", &[], "");
    let shown: Value = bucket.place.data.json(&["bucket", "list"]);
    let shown = &shown[0];
    assert_eq!((&shown["totalBytes"], &shown["objectCount"]), (&10.into(), &3.into()));
    bucket.place.data.done(&["bucket", "edit", "--name", "photos", "--quota", "12"]);
    assert_eq!(bucket.refusal("PUT", "/photos/b", &[]), is(507, "QuotaExceeded"));
    assert_eq!(bucket.refusal("DELETE", "/photos", &[]), is(409, "BucketNotEmpty"));
    for item in listed(&mut bucket, "versions") {
        let id = item.split(' ').nth(1).unwrap();
        bucket.send("DELETE", &format!("/photos/a?versionId={id}"), &[], "");
    }
    assert_eq!(listed(&mut bucket, "versions"), [""; 0]);
    assert_eq!(bucket.send("DELETE", "/photos", &[], "").status, 204);
}

#[test]
fn versions_are_deleted_with_a_forced_bucket_delete() {
    let mut bucket = versioned();
    for body in ["1", "2"] {
        bucket.put("/photos/a", &[], body);
    }
    bucket.place.data.done(&["bucket", "delete", "--name", "photos", "--force"]);
    assert_eq!(bucket.send("PUT", "/photos", &[], "").status, 200);
    configure(&mut bucket, "Enabled");
    assert_eq!(listed(&mut bucket, "versions"), [""; 0]);
}

#[test]
fn conditional_deletions_look_at_the_named_version() {
    let mut bucket = versioned();
    let first = bucket.put("/photos/a", &[], "first");
    let (id, etag) = (version_of(&first), first.header("etag").to_owned());
    bucket.put("/photos/a", &[], "second");
    let address = format!("/photos/a?versionId={id}");
    let wrong = [("if-match", "\"0f\"")];
    assert_eq!(bucket.refusal("DELETE", &address, &wrong), is(412, "PreconditionFailed"));
    assert_eq!(bucket.refusal("DELETE", "/photos/a", &wrong), is(412, "PreconditionFailed"));
    assert_eq!(bucket.send("DELETE", &address, &[("if-match", &etag)], "").status, 204);
    assert_eq!(listed(&mut bucket, "versions").len(), 1);
    assert_eq!(
        bucket.refusal("PUT", "/photos/a", &[("if-none-match", "*")]),
        is(412, "PreconditionFailed")
    );
    bucket.send("DELETE", "/photos/a", &[], "");
    assert_eq!(bucket.put("/photos/a", &[("if-none-match", "*")], "third").status, 200);
}
