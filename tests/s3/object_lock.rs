//! Object lock: retention and legal holds, how they change, and what cannot delete a locked version.

use std::thread::sleep;
use std::time::Duration;

use crate::bucket::{Bucket, element, is, outcome, time_in, upload_parts, version_of};

const LOCKED: &[(&str, &str)] = &[("x-amz-bucket-object-lock-enabled", "true")];
const BYPASS: &[(&str, &str)] = &[("x-amz-bypass-governance-retention", "true")];

/// A server with the bucket `vault`, which has object lock.
fn vault() -> Bucket {
    let mut bucket = Bucket::new();
    bucket.put("/vault", LOCKED, "");
    bucket
}

fn retention(mode: &str, until: &str) -> String {
    format!("<Retention><Mode>{mode}</Mode><RetainUntilDate>{until}</RetainUntilDate></Retention>")
}

fn hold(status: &str) -> String {
    format!("<LegalHold><Status>{status}</Status></LegalHold>")
}

fn configuration(rule: &str) -> String {
    format!(
        "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule>\
         <DefaultRetention>{rule}</DefaultRetention></Rule></ObjectLockConfiguration>"
    )
}

#[test]
fn object_lock_requires_versioning_and_is_never_disabled() {
    let mut bucket = Bucket::new();
    let days = configuration("<Mode>GOVERNANCE</Mode><Days>1</Days>");
    let lock = "/photos?object-lock";
    assert_eq!(bucket.refusal("GET", lock, &[]), is(404, "ObjectLockConfigurationNotFoundError"));
    assert_eq!(outcome(&bucket.send("PUT", lock, &[], &days)), is(409, "InvalidBucketState"));
    let until = time_in(60);
    let headers = [("x-amz-object-lock-mode", "GOVERNANCE"), (UNTIL, &*until)];
    assert_eq!(bucket.refusal("PUT", "/photos/a", &headers), is(400, "InvalidRequest"));
    let versions = |state: &str| {
        format!("<VersioningConfiguration><Status>{state}</Status></VersioningConfiguration>")
    };
    bucket.put("/photos?versioning", &[], &versions("Enabled"));
    bucket.put(lock, &[], &days);
    let shown = bucket.get(lock, &[]);
    assert_eq!(element(&shown, "Days").as_deref(), Some("1"));
    assert_eq!(element(&shown, "Mode").as_deref(), Some("GOVERNANCE"));
    for bucket_name in ["photos", "vault"] {
        bucket.send("PUT", "/vault", LOCKED, "");
        let suspended =
            bucket.send("PUT", &format!("/{bucket_name}?versioning"), &[], &versions("Suspended"));
        assert_eq!(outcome(&suspended), is(409, "InvalidBucketState"), "{bucket_name}");
    }
    let disabled = days.replace("Enabled<", "Disabled<");
    assert_eq!(outcome(&bucket.send("PUT", lock, &[], &disabled)), is(400, "MalformedXML"));
}

const UNTIL: &str = "x-amz-object-lock-retain-until-date";

#[test]
fn compliance_retention_forbids_deletion_until_it_ends() {
    let mut bucket = vault();
    let until = time_in(6);
    let headers = [("x-amz-object-lock-mode", "COMPLIANCE"), (UNTIL, &*until)];
    let id = version_of(&bucket.put("/vault/a", &headers, "kept"));
    let version = format!("/vault/a?versionId={id}");
    let head = bucket.send("HEAD", "/vault/a", &[], "");
    assert_eq!(head.header("x-amz-object-lock-mode"), "COMPLIANCE");
    assert_eq!(head.header(UNTIL), until.replace('Z', ".000Z"));
    // A plain deletion only leaves a marker.
    assert_eq!(bucket.send("DELETE", "/vault/a", &[], "").status, 204);
    assert_eq!(bucket.refusal("DELETE", &version, &[]), is(403, "AccessDenied"));
    assert_eq!(bucket.refusal("DELETE", &version, BYPASS), is(403, "AccessDenied"));
    let change = format!("/vault/a?retention&versionId={id}");
    for wanted in [
        retention("COMPLIANCE", &time_in(3)),
        retention("GOVERNANCE", &time_in(60)),
        "<Retention></Retention>".to_owned(),
    ] {
        let refused = bucket.send("PUT", &change, BYPASS, &wanted);
        assert_eq!(outcome(&refused), is(403, "AccessDenied"), "{wanted}");
    }
    sleep(Duration::from_secs(7));
    assert_eq!(bucket.get(&version, &[]).text(), "kept");
    assert_eq!(bucket.send("DELETE", &version, &[], "").status, 204);
    assert_eq!(bucket.refusal("GET", &version, &[]), is(404, "NoSuchVersion"));
}

#[test]
fn governance_retention_is_bypassed_by_keys_that_manage() {
    let mut bucket = vault();
    let id = version_of(&bucket.put("/vault/a", &[], "1"));
    let change = "/vault/a?retention";
    let long = time_in(3_600);
    bucket.put(change, &[], &retention("GOVERNANCE", &long));
    assert_eq!(version_of(&bucket.get("/vault/a", &[])), id, "the version keeps its id");
    let shown = bucket.get(change, &[]);
    assert_eq!(element(&shown, "Mode").as_deref(), Some("GOVERNANCE"));
    let shorter = retention("GOVERNANCE", &time_in(60));
    assert_eq!(outcome(&bucket.send("PUT", change, &[], &shorter)), is(403, "AccessDenied"));
    bucket.put(change, &[], &retention("GOVERNANCE", &time_in(7_200)));
    bucket.put(change, BYPASS, &shorter);
    let version = format!("/vault/a?versionId={id}");
    let scopes = ["--scope", "read", "--scope", "upload", "--scope", "delete"];
    let mut limited = bucket.with_key(&scopes);
    let mut refused = |method: &str, address: &str, body: &str| {
        outcome(&limited.send(method, address, BYPASS, body.as_bytes()).unwrap())
    };
    assert_eq!(refused("DELETE", &version, ""), is(403, "AccessDenied"));
    assert_eq!(refused("PUT", change, "<Retention></Retention>"), is(403, "AccessDenied"));
    let delete =
        format!("<Delete><Object><Key>a</Key><VersionId>{id}</VersionId></Object></Delete>");
    let many = bucket.send("POST", "/vault?delete", &[], &delete);
    assert_eq!((many.status, element(&many, "Code").as_deref()), (200, Some("AccessDenied")));
    let many = bucket.send("POST", "/vault?delete", BYPASS, &delete);
    assert!(many.text().contains("<Deleted>"), "{}", many.text());
}

#[test]
fn legal_holds_forbid_deletion_until_they_are_removed() {
    let mut bucket = vault();
    let id = version_of(&bucket.put("/vault/a", &[("x-amz-object-lock-legal-hold", "ON")], "1"));
    let version = format!("/vault/a?versionId={id}");
    assert_eq!(bucket.refusal("DELETE", &version, BYPASS), is(403, "AccessDenied"));
    let shown = bucket.get("/vault/a?legal-hold", &[]);
    assert_eq!(element(&shown, "Status").as_deref(), Some("ON"));
    let refused = bucket.send("PUT", "/vault/a?legal-hold", &[], &hold("MAYBE"));
    assert_eq!(outcome(&refused), is(400, "MalformedXML"));
    // Other changes of the version keep the hold.
    let tags = "<Tagging><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tagging>";
    bucket.put("/vault/a?tagging", &[], tags);
    assert_eq!(bucket.refusal("DELETE", &version, &[]), is(403, "AccessDenied"));
    bucket.put("/vault/a?legal-hold", &[], &hold("OFF"));
    assert_eq!(bucket.send("DELETE", &version, &[], "").status, 204);
}

#[test]
fn default_retention_applies_to_all_kinds_of_uploads() {
    let mut bucket = vault();
    let years = configuration("<Mode>COMPLIANCE</Mode><Years>1</Years>");
    bucket.put("/vault?object-lock", &[], &years);
    bucket.put("/vault/put", &[], "1");
    let copied = bucket.put("/vault/copy", &[("x-amz-copy-source", "vault/put")], "");
    assert_eq!(copied.status, 200);
    let (complete, parts) = upload_parts(&mut bucket, "/vault/parts", &["1"], &[]);
    assert_eq!(bucket.send("POST", &complete, &[], &parts).status, 200);
    let file = bucket.place.temp_path("native.txt");
    std::fs::write(&file, "1").unwrap();
    bucket.place.data.done(&["cp", file.to_str().unwrap(), "vault/native"]);
    for key in ["put", "copy", "parts", "native"] {
        let head = bucket.send("HEAD", &format!("/vault/{key}"), &[], "");
        assert_eq!(head.header("x-amz-object-lock-mode"), "COMPLIANCE", "{key}");
        let version = format!("/vault/{key}?versionId={}", version_of(&head));
        assert_eq!(bucket.refusal("DELETE", &version, BYPASS), is(403, "AccessDenied"), "{key}");
    }
    // A version that brings its own retention keeps that.
    let until = time_in(60);
    let headers = [("x-amz-object-lock-mode", "GOVERNANCE"), (UNTIL, &*until)];
    let head = bucket.put("/vault/own", &headers, "1");
    let version = format!("/vault/own?versionId={}", version_of(&head));
    assert_eq!(bucket.send("DELETE", &version, BYPASS, "").status, 204);
}

#[test]
fn buckets_with_object_lock_are_deleted_only_when_empty() {
    let mut bucket = vault();
    let id = version_of(&bucket.put("/vault/a", &[], "1"));
    bucket.send("DELETE", "/vault/a", &[], "");
    let forced = bucket.place.data.run(&["bucket", "delete", "vault", "--force"]);
    assert_eq!(forced.code, 1, "{forced:?}");
    assert!(forced.stderr.contains("is not empty"), "{forced:?}");
    let forced = bucket.place.data.run(&["account", "delete", "ann", "--force"]);
    assert!(forced.code != 0 && forced.stderr.contains("is not empty"), "{forced:?}");
    assert_eq!(bucket.send("HEAD", "/photos", &[], "").status, 200, "other buckets are deleted");
    assert_eq!(bucket.get(&format!("/vault/a?versionId={id}"), &[]).text(), "1");
}

#[test]
fn invalid_locks_of_new_objects_are_rejected() {
    let mut bucket = vault();
    let (until, past) = (time_in(60), "2020-01-01T00:00:00Z");
    for headers in [
        &[("x-amz-object-lock-mode", "GOVERNANCE")][..],
        &[(UNTIL, &*until)],
        &[("x-amz-object-lock-mode", "governance"), (UNTIL, &*until)],
        &[("x-amz-object-lock-mode", "GOVERNANCE"), (UNTIL, past)],
        &[("x-amz-object-lock-legal-hold", "on")],
    ] {
        let refused = bucket.refusal("PUT", "/vault/a", headers);
        assert_eq!(refused, is(400, "InvalidArgument"), "{headers:?}");
    }
    assert_eq!(bucket.refusal("GET", "/vault/a", &[]), is(404, "NoSuchKey"));
    bucket.put("/vault/a", &[], "1");
    let missing = bucket.refusal("GET", "/vault/a?retention", &[]);
    assert_eq!(missing, is(404, "NoSuchObjectLockConfiguration"));
}
