//! Tags of objects: set by uploads, copies and requests of their own, limited as S3 limits them.

use tests::Response;

use crate::bucket::{Bucket, is, outcome, upload_parts};

const ADDRESS: &str = "/photos/a.txt?tagging";

fn body_of(tags: &[(&str, &str)]) -> String {
    let tag =
        |(key, value): &(&str, &str)| format!("<Tag><Key>{key}</Key><Value>{value}</Value></Tag>");
    let tags: String = tags.iter().map(tag).collect();
    format!("<Tagging><TagSet>{tags}</TagSet></Tagging>")
}

/// `key=value` of each tag of a response.
fn tags_in(answer: &Response) -> Vec<String> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let body = answer.text();
    let between = |text: &str, name: &str| {
        let rest = text.split_once(&format!("<{name}>")).unwrap().1;
        rest.split_once("</").unwrap().0.to_owned()
    };
    let tags = body.split("<Tag>").skip(1);
    tags.map(|tag| format!("{}={}", between(tag, "Key"), between(tag, "Value"))).collect()
}

#[test]
fn object_tags_are_replaced_without_changing_the_object() {
    let mut bucket = Bucket::new();
    let meta = [("x-amz-meta-a", "b"), ("content-type", "application/x-thing")];
    let put = bucket.put("/photos/a.txt", &meta, "hello");
    assert_eq!(tags_in(&bucket.get(ADDRESS, &[])), [""; 0]);
    bucket.put(ADDRESS, &[], &body_of(&[("who", "ann"), ("at", "sea")]));
    assert_eq!(tags_in(&bucket.get(ADDRESS, &[])), ["at=sea", "who=ann"]);
    let read = bucket.get("/photos/a.txt", &[]);
    assert_eq!((read.header("x-amz-tagging-count"), read.text()), ("2", "hello".to_owned()));
    assert_eq!(read.header("etag"), put.header("etag"));
    assert_eq!(read.header("x-amz-meta-a"), "b");
    assert_eq!(read.header("content-type"), "application/x-thing");
    bucket.put(ADDRESS, &[], &body_of(&[("only", "")]));
    assert_eq!(tags_in(&bucket.get(ADDRESS, &[])), ["only="]);
    assert_eq!(bucket.send("HEAD", "/photos/a.txt", &[], "").header("x-amz-tagging-count"), "1");
    assert_eq!(bucket.send("DELETE", ADDRESS, &[], "").status, 204);
    assert_eq!(tags_in(&bucket.get(ADDRESS, &[])), [""; 0]);
    assert_eq!(bucket.get("/photos/a.txt", &[]).header("x-amz-tagging-count"), "");
    for method in ["GET", "DELETE"] {
        let missing = bucket.refusal(method, "/photos/none?tagging", &[]);
        assert_eq!(missing, is(404, "NoSuchKey"), "{method}");
    }
    let missing = bucket.send("PUT", "/photos/none?tagging", &[], &body_of(&[("a", "b")]));
    assert_eq!(outcome(&missing), is(404, "NoSuchKey"));
}

#[test]
fn invalid_tag_sets_are_rejected_and_change_nothing() {
    let mut bucket = Bucket::new();
    bucket.put("/photos/a.txt", &[("x-amz-tagging", "a=1")], "hello");
    let long = "k".repeat(129);
    let many: Vec<_> = (0..11).map(|at| (at.to_string(), "")).collect();
    let many: Vec<_> = many.iter().map(|(key, value)| (&**key, *value)).collect();
    for tags in
        [&many[..], &[(&long, "")], &[("a", "1"), ("a", "2")], &[("aws:a", "1")], &[("", "a")]]
    {
        let refused = bucket.send("PUT", ADDRESS, &[], &body_of(tags));
        assert_eq!(outcome(&refused), is(400, "InvalidTag"), "{tags:?}");
    }
    let longest = "v".repeat(256);
    let keys: Vec<_> = (0..10).map(|at| format!("{at:0>128}")).collect();
    let most: Vec<_> = keys.iter().map(|key| (&**key, &*longest)).collect();
    for (header, code) in [("a=1&a=2", "InvalidTag"), ("a=%ff", "InvalidArgument")] {
        let refused = bucket.send("PUT", "/photos/a.txt", &[("x-amz-tagging", header)], "other");
        assert_eq!(outcome(&refused), is(400, code), "{header}");
    }
    assert_eq!(tags_in(&bucket.get(ADDRESS, &[])), ["a=1"]);
    assert_eq!(bucket.get("/photos/a.txt", &[]).text(), "hello");
    bucket.put(ADDRESS, &[], &body_of(&most));
    assert_eq!(tags_in(&bucket.get(ADDRESS, &[])).len(), 10);
}

#[test]
fn uploads_set_tags_and_copies_follow_the_tagging_directive() {
    let mut bucket = Bucket::new();
    bucket.put("/photos/a.txt", &[("x-amz-tagging", "foo=bar&bar")], "hello");
    assert_eq!(tags_in(&bucket.get(ADDRESS, &[])), ["bar=", "foo=bar"]);
    let source = ("x-amz-copy-source", "photos/a.txt");
    bucket.put("/photos/copy", &[source], "");
    assert_eq!(tags_in(&bucket.get("/photos/copy?tagging", &[])), ["bar=", "foo=bar"]);
    let tags = ("x-amz-tagging", "new=1");
    let refused = bucket.send("PUT", "/photos/copy", &[source, tags], "");
    assert_eq!(outcome(&refused), is(400, "InvalidArgument"));
    let replace = ("x-amz-tagging-directive", "REPLACE");
    bucket.put("/photos/copy", &[source, tags, replace], "");
    assert_eq!(tags_in(&bucket.get("/photos/copy?tagging", &[])), ["new=1"]);
    bucket.put("/photos/copy", &[source, replace], "");
    assert_eq!(tags_in(&bucket.get("/photos/copy?tagging", &[])), [""; 0]);
    let (complete, body) =
        upload_parts(&mut bucket, "/photos/mp", &["whole"], &[("x-amz-tagging", "in=parts")]);
    assert_eq!(bucket.send("POST", &complete, &[], &body).status, 200);
    assert_eq!(tags_in(&bucket.get("/photos/mp?tagging", &[])), ["in=parts"]);
    // An upload over it has tags of its own.
    bucket.put("/photos/a.txt", &[], "hello");
    assert_eq!(tags_in(&bucket.get(ADDRESS, &[])), [""; 0]);
}

#[test]
fn tag_changes_require_upload_scope_and_reads_read_scope() {
    let mut bucket = Bucket::new();
    bucket.put("/photos/a.txt", &[("x-amz-tagging", "a=1")], "hello");
    for (scope, read, write) in [("read", 200, 403), ("upload", 403, 200), ("delete", 403, 403)] {
        let mut connection = bucket.with_key(&["--scope", scope]);
        let mut status = |method: &str, body: &str| {
            connection.send(method, ADDRESS, &[], body.as_bytes()).unwrap().status
        };
        assert_eq!(status("GET", ""), read, "{scope}");
        assert_eq!(status("PUT", &body_of(&[("b", "2")])), write, "{scope}");
    }
}

#[test]
fn bucket_tags_are_set_read_and_deleted() {
    let mut bucket = Bucket::new();
    let address = "/photos?tagging";
    assert_eq!(bucket.refusal("GET", address, &[]), is(404, "NoSuchTagSet"));
    let tags = body_of(&[("team", "web"), ("cost", "7")]);
    assert!(bucket.send("PUT", address, &[], &tags).status < 300);
    assert_eq!(tags_in(&bucket.get(address, &[])), ["cost=7", "team=web"]);
    let refused = bucket.send("PUT", address, &[], &body_of(&[("a", "1"), ("a", "2")]));
    assert_eq!(outcome(&refused), is(400, "InvalidTag"));
    let mut reader = bucket.with_key(&["--scope", "read"]);
    assert_eq!(reader.send("GET", address, &[], b"").unwrap().status, 200);
    assert_eq!(reader.send("PUT", address, &[], tags.as_bytes()).unwrap().status, 403);
    assert_eq!(reader.send("DELETE", address, &[], b"").unwrap().status, 403);
    assert_eq!(tags_in(&bucket.get(address, &[])), ["cost=7", "team=web"]);
    assert_eq!(bucket.send("DELETE", address, &[], "").status, 204);
    assert_eq!(bucket.refusal("GET", address, &[]), is(404, "NoSuchTagSet"));
}
