//! Lifecycle configuration: rules by prefix, age and date, and what is not supported.

use crate::bucket::{Bucket, is, outcome};

const ADDRESS: &str = "/photos?lifecycle";

fn rule(inner: &str) -> String {
    format!(
        "<LifecycleConfiguration><Rule><ID>tmp</ID><Status>Enabled</Status>{inner}</Rule></LifecycleConfiguration>"
    )
}

#[test]
fn lifecycle_configuration_is_stored_and_reported() {
    let mut bucket = Bucket::new();
    let missing = bucket.refusal("GET", ADDRESS, &[]);
    assert_eq!(missing, is(404, "NoSuchLifecycleConfiguration"));
    let days = "<Filter><Prefix>tmp/</Prefix></Filter><Expiration><Days>7</Days></Expiration>";
    bucket.put(ADDRESS, &[], &rule(days));
    let read = bucket.get(ADDRESS, &[]).text();
    for part in
        ["<ID>tmp</ID>", "<Prefix>tmp/</Prefix>", "<Days>7</Days>", "<Status>Enabled</Status>"]
    {
        assert!(read.contains(part), "{read}");
    }
    bucket.put("/photos/tmp/a.txt", &[], "a");
    bucket.put("/photos/b.txt", &[], "b");
    let expiration = bucket.get("/photos/tmp/a.txt", &[]).header("x-amz-expiration").to_owned();
    assert!(
        expiration.starts_with("expiry-date=\"") && expiration.ends_with("GMT\", rule-id=\"tmp\""),
        "{expiration}"
    );
    assert_eq!(bucket.send("HEAD", "/photos/b.txt", &[], "").header("x-amz-expiration"), "");
    let date = "<Prefix></Prefix><Expiration><Date>2020-01-01T00:00:00Z</Date></Expiration>";
    bucket.put(ADDRESS, &[], &rule(date));
    assert_eq!(bucket.refusal("GET", "/photos/tmp/a.txt", &[]), is(404, "NoSuchKey"));
    assert!(!bucket.get("/photos", &[]).text().contains("<Key>"));
    assert_eq!(bucket.send("DELETE", ADDRESS, &[], "").status, 204);
    assert_eq!(bucket.refusal("GET", ADDRESS, &[]), is(404, "NoSuchLifecycleConfiguration"));
}

#[test]
fn unsupported_lifecycle_rules_are_not_accepted() {
    let mut bucket = Bucket::new();
    let days = "<Expiration><Days>7</Days></Expiration>";
    for (inner, status, code) in [
        (
            format!("<Filter><Tag><Key>a</Key><Value>b</Value></Tag></Filter>{days}"),
            501,
            "NotImplemented",
        ),
        (
            format!("<Filter><ObjectSizeGreaterThan>5</ObjectSizeGreaterThan></Filter>{days}"),
            501,
            "NotImplemented",
        ),
        (
            "<Filter/><AbortIncompleteMultipartUpload><DaysAfterInitiation>1</DaysAfterInitiation>\
             </AbortIncompleteMultipartUpload>"
                .to_owned(),
            501,
            "NotImplemented",
        ),
        ("<Filter/>".to_owned(), 400, "MalformedXML"),
        ("<Filter/><Expiration><Days>0</Days></Expiration>".to_owned(), 400, "InvalidArgument"),
        ("<Filter/><Expiration><Days>3651</Days></Expiration>".to_owned(), 400, "InvalidArgument"),
    ] {
        let sent = bucket.send("PUT", ADDRESS, &[], &rule(&inner));
        assert_eq!(outcome(&sent), is(status, code), "{inner}");
    }
    assert_eq!(bucket.refusal("GET", ADDRESS, &[]), is(404, "NoSuchLifecycleConfiguration"));
}

#[test]
fn headers_of_an_upload_set_the_expiry_of_the_object() {
    let mut bucket = Bucket::new();
    let expiry = |bucket: &mut Bucket, path: &str| {
        let headers = bucket.get(path, &[]).headers;
        let found = headers.into_iter().find(|(name, _)| name == "x-amz-expiration");
        found.map(|(_, value)| value)
    };
    bucket.put("/photos/a.txt", &[("x-trug-expires-in", "86400")], "a");
    let date = expiry(&mut bucket, "/photos/a.txt").unwrap();
    assert!(date.starts_with("expiry-date=\"") && date.ends_with("rule-id=\"\""), "{date}");
    let at = [("x-trug-expires-at", "2030-01-31T12:00:00Z")];
    let copied = [at[0], ("x-amz-copy-source", "/photos/a.txt")];
    bucket.put("/photos/b.txt", &copied, "");
    let expected = "expiry-date=\"Thu, 31 Jan 2030 12:00:00 GMT\", rule-id=\"\"";
    assert_eq!(expiry(&mut bucket, "/photos/b.txt").as_deref(), Some(expected));
    bucket.put("/photos/c.txt", &[("x-amz-copy-source", "/photos/a.txt")], "");
    assert_eq!(expiry(&mut bucket, "/photos/c.txt"), None);
    for (name, value) in [
        ("x-trug-expires-in", "59"),
        ("x-trug-expires-in", "soon"),
        ("x-trug-expires-at", "2000-01-01T00:00:00Z"),
    ] {
        let sent = bucket.send("PUT", "/photos/d.txt", &[(name, value)], "d");
        assert_eq!(outcome(&sent), is(400, "InvalidArgument"), "{name}: {value}");
    }
}

#[test]
fn tags_do_not_change_the_last_modified_time() {
    let mut bucket = Bucket::new();
    bucket.put("/photos/a.txt", &[], "a");
    let before = bucket.get("/photos/a.txt", &[]).header("last-modified").to_owned();
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    bucket.put(
        "/photos/a.txt?tagging",
        &[],
        "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>",
    );
    assert_eq!(bucket.get("/photos/a.txt", &[]).header("last-modified"), before);
}
