//! POST Object: forms of web pages with a signed policy, right and wrong.

use serde_json::{Value, json};
use tests::signed::{amz_date, policy_signed_by_v2, signed_policy};
use tests::{Connection, Response};

use crate::bucket::{Bucket, element, is};

const BOUNDARY: &str = "form-boundary";

/// A form for the bucket `photos`, before it is sent.
struct Form {
    conditions: Vec<Value>,
    expiration: String,
    fields: Vec<(String, String)>,
    file: Option<(String, String)>,
    secret: String,
    date: String,
    /// Whether it is signed by Signature Version 2.
    is_version_2: bool,
}

impl Form {
    /// A form of the owner that uploads `hello` to this key.
    fn new(bucket: &Bucket, key: &str) -> Self {
        let keys = &bucket.place.keys;
        let date = amz_date();
        let mut form = Self {
            conditions: vec![json!({"bucket": "photos"})],
            expiration: "2100-01-01T00:00:00.000Z".to_owned(),
            fields: Vec::new(),
            file: Some(("file.txt".to_owned(), "hello".to_owned())),
            secret: keys.secret.clone(),
            date: date.clone(),
            is_version_2: false,
        };
        let credential = format!("{}/{}/us-east-1/s3/aws4_request", keys.id, &date[..8]);
        form.field("key", key);
        form.field("x-amz-algorithm", "AWS4-HMAC-SHA256");
        form.field("x-amz-credential", &credential);
        form.field("x-amz-date", &date);
        form
    }

    /// Adds a field, and a condition that allows any value of it.
    fn field(&mut self, name: &str, value: &str) {
        self.conditions.push(json!(["starts-with", format!("${name}"), ""]));
        self.fields.push((name.to_owned(), value.to_owned()));
    }

    fn remove(&mut self, name: &str) {
        self.fields.retain(|(field, _)| field != name);
    }

    fn body(&self) -> String {
        let document = json!({"expiration": self.expiration, "conditions": self.conditions});
        let (document, date) = (document.to_string(), &self.date[..8]);
        let (name, (policy, signature)) = match self.is_version_2 {
            true => ("signature", policy_signed_by_v2(&self.secret, &document)),
            false => ("x-amz-signature", signed_policy(&self.secret, date, &document)),
        };
        let signed = [("policy", &*policy), (name, &*signature)];
        let fields = self.fields.iter().map(|(name, value)| (&**name, &**value)).chain(signed);
        let mut body = String::new();
        for (name, value) in fields {
            body += &format!(
                "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
            );
        }
        if let Some((name, content)) = &self.file {
            body += &format!(
                "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
                 Content-Type: text/plain\r\n\r\n{content}\r\n"
            );
        }
        body + &format!("--{BOUNDARY}--\r\n")
    }

    fn send(&self, bucket: &Bucket) -> Response {
        send(bucket, &self.body())
    }

    fn refusal(&self, bucket: &Bucket) -> (u16, String) {
        let answer = self.send(bucket);
        (answer.status, element(&answer, "Code").unwrap_or_else(|| answer.text()))
    }
}

fn send(bucket: &Bucket, body: &str) -> Response {
    let content_type = format!("multipart/form-data; boundary={BOUNDARY}");
    let mut connection = Connection::connect(bucket.place.server.address()).unwrap();
    connection.send("POST", "/photos", &[("content-type", &content_type)], body.as_bytes()).unwrap()
}

#[test]
fn post_object_stores_a_file_with_its_fields() {
    let mut bucket = Bucket::new();
    let mut form = Form::new(&bucket, "up/${filename}");
    form.file = Some(("C:\\photos\\a.txt".to_owned(), "hello".to_owned()));
    for (name, value) in [
        ("Content-Type", "text/x-thing"),
        ("Cache-Control", "max-age=9"),
        ("x-amz-meta-who", "ann"),
        ("acl", "private"),
        ("x-trug-expires-at", "2030-01-31T12:00:00Z"),
        ("tagging", "<Tagging><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tagging>"),
        ("x-amz-checksum-crc32", "NhCmhg=="),
    ] {
        form.field(name, value);
    }
    form.fields.push(("x-ignore-this".to_owned(), "anything".to_owned()));
    let stored = form.send(&bucket);
    assert_eq!((stored.status, stored.text()), (204, String::new()));
    assert_eq!(stored.header("etag"), "\"5d41402abc4b2a76b9719d911017c592\"");
    assert!(stored.header("location").ends_with("/photos/up/a.txt"));
    let read = bucket.get("/photos/up/a.txt", &[("x-amz-checksum-mode", "ENABLED")]);
    assert_eq!((read.status, read.text()), (200, "hello".to_owned()));
    for (name, value) in [
        ("content-type", "text/x-thing"),
        ("cache-control", "max-age=9"),
        ("x-amz-meta-who", "ann"),
        ("x-amz-tagging-count", "1"),
        ("x-amz-expiration", "expiry-date=\"Thu, 31 Jan 2030 12:00:00 GMT\", rule-id=\"\""),
        ("x-amz-checksum-crc32", "NhCmhg=="),
        ("etag", stored.header("etag")),
    ] {
        assert_eq!(read.header(name), value, "{name}");
    }
}

#[test]
fn post_object_streams_a_large_file() {
    let mut bucket = Bucket::new();
    let mut form = Form::new(&bucket, "large");
    form.file = Some(("large".to_owned(), "0123456789abcdef".repeat(300_000)));
    form.conditions.push(json!(["content-length-range", 4_800_000, 4_800_000]));
    assert_eq!(form.send(&bucket).status, 204);
    let head = bucket.send("HEAD", "/photos/large", &[], "");
    assert_eq!(head.header("content-length"), "4800000");
}

#[test]
fn post_object_success_action_decides_the_response() {
    let bucket = Bucket::new();
    for (status, expected) in [("200", 200), ("201", 201), ("204", 204), ("404", 204)] {
        let mut form = Form::new(&bucket, "a b.txt");
        form.field("success_action_status", status);
        let stored = form.send(&bucket);
        assert_eq!(stored.status, expected, "{status}: {}", stored.text());
        if expected == 201 {
            assert_eq!(element(&stored, "Bucket").as_deref(), Some("photos"));
            assert_eq!(element(&stored, "Key").as_deref(), Some("a b.txt"));
            assert_eq!(stored.header("content-type"), "application/xml");
        }
    }
    let mut form = Form::new(&bucket, "a b.txt");
    form.field("success_action_redirect", "https://app.example/done?x=1");
    let stored = form.send(&bucket);
    let query = "bucket=photos&key=a%20b%2Etxt&etag=%225d41402abc4b2a76b9719d911017c592%22";
    let address = format!("https://app.example/done?x=1&{query}");
    assert_eq!((stored.status, stored.header("location")), (303, &*address));
}

#[test]
fn post_object_policy_violations_are_rejected_and_store_nothing() {
    let mut bucket = Bucket::new();
    type Change = fn(&mut Form);
    let cases: [(Change, (u16, String)); 16] = [
        (|form| form.conditions.push(json!({"key": "other"})), is(403, "AccessDenied")),
        (|form| form.conditions.push(json!({"bucket": "other"})), is(403, "AccessDenied")),
        (
            |form| form.conditions.push(json!(["starts-with", "$key", "up/"])),
            is(403, "AccessDenied"),
        ),
        (|form| form.fields.push(("x-amz-meta-a".into(), "b".into())), is(403, "AccessDenied")),
        (|form| form.expiration = "2020-01-01T00:00:00Z".into(), is(403, "AccessDenied")),
        (|form| form.expiration = "tomorrow".into(), is(400, "InvalidPolicyDocument")),
        (
            |form| form.conditions.push(json!(["content-length-range", 0, 4])),
            is(400, "EntityTooLarge"),
        ),
        (
            |form| form.conditions.push(json!(["content-length-range", 6, 9])),
            is(400, "EntityTooSmall"),
        ),
        (|form| form.secret.push('x'), is(403, "SignatureDoesNotMatch")),
        (|form| form.remove("key"), is(400, "InvalidArgument")),
        (|form| form.remove("x-amz-date"), is(400, "InvalidArgument")),
        (|form| form.file = None, is(400, "InvalidArgument")),
        (|form| form.field("x-amz-security-token", "a"), is(400, "InvalidToken")),
        (|form| form.field("acl", "public-read-write"), is(501, "NotImplemented")),
        (|form| form.field("x-amz-server-side-encryption", "aws:kms"), is(501, "NotImplemented")),
        (
            |form| form.field("x-amz-meta-a", &"x".repeat(21 << 10)),
            is(400, "MaxPostPreDataLengthExceededError"),
        ),
    ];
    for (at, (change, refusal)) in cases.into_iter().enumerate() {
        let mut form = Form::new(&bucket, "a.txt");
        change(&mut form);
        assert_eq!(form.refusal(&bucket), refusal, "case {at}");
    }
    let mut form = Form::new(&bucket, "a.txt");
    form.field("x-amz-checksum-crc32", "AAAAAA==");
    assert_eq!(form.refusal(&bucket), is(400, "BadDigest"));
    // Without its last boundary a form may be cut off.
    let whole = Form::new(&bucket, "a.txt").body();
    let cut = send(&bucket, whole.strip_suffix(&format!("--{BOUNDARY}--\r\n")).unwrap());
    assert_eq!((cut.status, element(&cut, "Code").unwrap()), is(400, "IncompleteBody"));
    let key = Form::new(&bucket, "../a.txt");
    assert_eq!(key.refusal(&bucket), is(400, "InvalidArgument"));
    assert_eq!(element(&bucket.get("/photos?list-type=2", &[]), "KeyCount").as_deref(), Some("0"));
}

#[test]
fn post_object_requires_upload_scope_and_key_folder() {
    let bucket = Bucket::new();
    for (arguments, key, status) in [
        (&["--scope", "read"][..], "a.txt", 403),
        (&["--scope", "upload"], "a.txt", 204),
        (&["--prefix", "up/"], "a.txt", 403),
        (&["--prefix", "up/"], "up/${filename}", 204),
        (&["--prefix", "up/"], "up/../a.txt", 400),
    ] {
        let keys = crate::place::Keys::make(&bucket.place.data, arguments);
        let mut form = Form::new(&bucket, key);
        form.secret = keys.secret;
        let credential = format!("{}/{}/us-east-1/s3/aws4_request", keys.id, &form.date[..8]);
        form.remove("x-amz-credential");
        form.field("x-amz-credential", &credential);
        let answer = form.send(&bucket);
        assert_eq!(answer.status, status, "{arguments:?} {key}: {}", answer.text());
    }
}

#[test]
fn post_object_accepts_policies_signed_by_version_2() {
    let mut bucket = Bucket::new();
    let mut form = Form::new(&bucket, "a.txt");
    form.is_version_2 = true;
    form.fields.retain(|(name, _)| name == "key");
    let key_id = bucket.place.keys.id.clone();
    form.fields.push(("AWSAccessKeyId".to_owned(), key_id));
    assert_eq!(form.send(&bucket).status, 204);
    assert_eq!(bucket.get("/photos/a.txt", &[]).text(), "hello");
    form.secret.push('x');
    assert_eq!(form.refusal(&bucket), is(403, "SignatureDoesNotMatch"));
    form.fields.retain(|(name, _)| name == "key");
    form.fields.push(("AWSAccessKeyId".to_owned(), "abc".to_owned()));
    assert_eq!(form.refusal(&bucket), is(403, "InvalidAccessKeyId"));
}

#[test]
fn forms_without_a_policy_get_the_reply_of_the_native_api() {
    let bucket = Bucket::new();
    let file = "Content-Disposition: form-data; name=\"file\"; filename=\"a.txt\"";
    let field = "Content-Disposition: form-data; name=\"key\"";
    for body in [
        format!("--{BOUNDARY}\r\n{file}\r\n\r\nhello\r\n--{BOUNDARY}--\r\n"),
        format!(
            "--{BOUNDARY}\r\n{field}\r\n\r\na\r\n--{BOUNDARY}\r\n{file}\r\n\r\nhello\r\n--{BOUNDARY}--\r\n"
        ),
        format!(
            "--{BOUNDARY}\r\n{}\r\n\r\nhello\r\n--{BOUNDARY}--\r\n",
            file.replace("file\"", "photo\"")
        ),
    ] {
        let answer = send(&bucket, &body);
        assert_eq!(answer.status, 401, "{}", answer.text());
        assert!(answer.text().contains("missing_api_key"), "{}", answer.text());
    }
}
