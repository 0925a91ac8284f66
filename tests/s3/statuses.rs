//! Raw statuses and headers of the gateway, which SDKs hide: the interface for caches, proxies and other SDKs.

use crate::bucket::{Bucket, element, is, signed, upload_parts};

/// `hello`, as MD5.
const HELLO: &str = "\"5d41402abc4b2a76b9719d911017c592\"";

#[test]
fn conditional_and_range_reads_return_304_206_412_416() {
    let mut bucket = Bucket::new();
    bucket.put("/photos/a.txt", &[], "hello");
    for method in ["GET", "HEAD"] {
        for (headers, status, length) in [
            (&[][..], 200, "5"),
            (&[("if-none-match", HELLO)], 304, ""),
            (&[("if-none-match", &HELLO[1..33])], 304, ""),
            (&[("if-none-match", "\"other\"")], 200, "5"),
            (&[("if-match", HELLO)], 200, "5"),
            (&[("if-match", &HELLO[1..33])], 200, "5"),
            (&[("if-match", "other")], 412, ""),
            (&[("if-modified-since", "Fri, 01 Jan 2100 00:00:00 GMT")], 304, ""),
            (&[("range", "bytes=1-2")], 206, "2"),
            (&[("range", "bytes=-2")], 206, "2"),
            (&[("range", "bytes=9-")], 416, ""),
            (&[("range", "bytes=1-2"), ("if-range", "\"other\"")], 200, "5"),
        ] {
            let answer = bucket.send(method, "/photos/a.txt", headers, "");
            assert_eq!(answer.status, status, "{method} {headers:?}");
            if status < 300 {
                assert_eq!(answer.header("content-length"), length, "{method} {headers:?}");
            }
            if status < 400 {
                assert_eq!(answer.header("etag"), HELLO, "{method} {headers:?}");
            }
            if status == 304 {
                assert_eq!(answer.header("content-length"), "", "{method} {headers:?}");
            }
        }
    }
    let range = bucket.get("/photos/a.txt", &[("range", "bytes=1-2")]);
    assert_eq!((range.header("content-range"), range.text()), ("bytes 1-2/5", "el".to_owned()));
    assert_eq!(bucket.get("/photos/a.txt?versionId=null", &[]).status, 200);
}

#[test]
fn stored_headers_are_returned_by_s3_and_delivery() {
    let mut bucket = Bucket::new();
    let sent = [
        ("content-type", "application/x-thing"),
        ("cache-control", "max-age=60"),
        ("content-disposition", "attachment; filename=\"f.bin\""),
        ("content-encoding", "gzip"),
        ("content-language", "de"),
        ("expires", "Thu, 01 Jan 2099 00:00:00 GMT"),
        ("x-amz-meta-who", "ann"),
    ];
    bucket.put("/photos/a.bin", &sent, "\u{1f}\u{8b}");
    let copied = bucket.send("PUT", "/photos/b.bin", &[("x-amz-copy-source", "photos/a.bin")], "");
    assert_eq!(copied.status, 200, "{}", copied.text());
    for address in ["/photos/a.bin", "/photos/b.bin"] {
        let head = bucket.send("HEAD", address, &[], "");
        for (name, value) in sent {
            assert_eq!(head.header(name), value, "{address} {name}");
        }
    }
    // Replaced: metadata that is not sent again is removed.
    let replacing = [
        ("x-amz-copy-source", "photos/a.bin"),
        ("x-amz-metadata-directive", "REPLACE"),
        ("content-language", "fr"),
    ];
    bucket.send("PUT", "/photos/b.bin", &replacing, "");
    let head = bucket.send("HEAD", "/photos/b.bin", &[], "");
    assert_eq!((head.header("content-language"), head.header("cache-control")), ("fr", ""));
    // Public delivery of the same object.
    bucket.place.data.done(&["bucket", "edit", "--name", "photos", "--access", "public"]);
    let mut connection = tests::Connection::connect(bucket.place.server.address()).unwrap();
    let delivered = connection.get("/photos/a.bin").unwrap();
    for (name, value) in &sent[1..5] {
        assert_eq!(delivered.header(name), *value, "{name}");
    }
    assert_eq!(delivered.header("x-content-type-options"), "nosniff");
    assert_eq!(delivered.header("x-amz-meta-who"), "");
}

#[test]
fn response_parameters_override_headers() {
    let mut bucket = Bucket::new();
    bucket.put("/photos/a.html", &[("content-type", "text/html")], "<p>");
    let plain = bucket.get("/photos/a.html", &[]);
    assert_eq!(plain.header("content-type"), "text/html");
    assert!(plain.header("content-security-policy").contains("sandbox"));
    let replaced = bucket.get(
        "/photos/a.html?response-cache-control=no-cache&response-content-disposition=attachment\
         &response-content-language=de&response-content-type=text%2Fx",
        &[],
    );
    for (name, value) in [
        ("content-type", "text/x"),
        ("cache-control", "no-cache"),
        ("content-disposition", "attachment"),
        ("content-language", "de"),
    ] {
        assert_eq!(replaced.header(name), value, "{name}");
    }
}

#[test]
fn unsupported_parameters_are_rejected_and_store_nothing() {
    let mut bucket = Bucket::new();
    bucket.put("/photos/a.txt", &[], "hello");
    let lock = [
        ("x-amz-object-lock-mode", "COMPLIANCE"),
        ("x-amz-object-lock-retain-until-date", "2099-01-01T00:00:00Z"),
    ];
    let customer_key = [
        ("x-amz-server-side-encryption-customer-algorithm", "AES256"),
        (
            "x-amz-server-side-encryption-customer-key",
            "pO3upElrwuEXSoFwCfnZPdSsmt/xWeFa0N9KgDijwVs=",
        ),
        ("x-amz-server-side-encryption-customer-key-md5", "DWygnHRtgiJ77HCm+1rvHw=="),
    ];
    for (method, address, headers, refusal) in [
        ("PUT", "/photos/b.txt", &customer_key[..], is(501, "NotImplemented")),
        ("PUT", "/photos/b.txt", &customer_key[..1], is(400, "InvalidArgument")),
        (
            "PUT",
            "/photos/b.txt",
            &[("x-amz-server-side-encryption", "aws:kms")],
            is(501, "NotImplemented"),
        ),
        ("PUT", "/photos/b.txt", &lock, is(400, "InvalidRequest")),
        ("PUT", "/photos/b.txt", &[("x-amz-acl", "aws-exec-read")], is(501, "NotImplemented")),
        (
            "PUT",
            "/photos/b.txt",
            &[("x-amz-expected-bucket-owner", "111122223333")],
            is(403, "AccessDenied"),
        ),
        ("GET", "/photos/a.txt?versionId=abc", &[], is(400, "InvalidArgument")),
        ("DELETE", "/photos/a.txt?versionId=abc", &[], is(400, "InvalidArgument")),
        ("DELETE", "/photos/a.txt", &[("if-match", "\"other\"")], is(412, "PreconditionFailed")),
        ("PUT", "/photos/a.txt", &[("if-none-match", "*")], is(412, "PreconditionFailed")),
        ("PUT", "/photos/b.txt", &[("if-match", HELLO)], is(404, "NoSuchKey")),
        ("GET", "/photos?list-type=2&max-keys=-1", &[], is(400, "InvalidArgument")),
        ("GET", "/photos?policy", &[], is(404, "NoSuchBucketPolicy")),
        ("GET", "/photos?cors", &[], is(404, "NoSuchCORSConfiguration")),
        ("GET", "/photos/a.txt?torrent", &[], is(501, "NotImplemented")),
    ] {
        assert_eq!(
            bucket.refusal(method, address, headers),
            refusal,
            "{method} {address} {headers:?}"
        );
    }
    assert_eq!(bucket.get("/photos/a.txt", &[]).text(), "hello");
    assert_eq!(bucket.send("HEAD", "/photos/b.txt", &[], "").status, 404);
}

#[test]
fn copy_conditions_apply_to_source_and_target() {
    let mut bucket = Bucket::new();
    bucket.put("/photos/a.txt", &[], "hello");
    bucket.put("/photos/b.txt", &[], "there");
    for condition in [
        ("x-amz-copy-source-if-match", "\"other\""),
        ("x-amz-copy-source-if-none-match", HELLO),
        ("x-amz-copy-source-if-unmodified-since", "Mon, 01 Jan 2001 00:00:00 GMT"),
        ("if-none-match", "*"),
        ("if-match", HELLO),
    ] {
        let headers = [("x-amz-copy-source", "photos/a.txt"), condition];
        let answer = bucket.send("PUT", "/photos/b.txt", &headers, "");
        assert_eq!(answer.status, 412, "{condition:?}: {}", answer.text());
    }
    assert_eq!(bucket.get("/photos/b.txt", &[]).text(), "there");
    let headers =
        [("x-amz-copy-source", "photos/a.txt"), ("x-amz-copy-source-if-match", &HELLO[1..33])];
    assert_eq!(bucket.send("PUT", "/photos/b.txt", &headers, "").status, 200);
}

#[test]
fn multipart_conditions_part_reads_and_part_sizes() {
    let mut bucket = Bucket::new();
    let first = "x".repeat(5 << 20);
    let sent = [("x-amz-checksum-algorithm", "CRC32"), ("content-language", "de")];
    let (complete, body) = upload_parts(&mut bucket, "/photos/mp", &[&first, "tail"], &sent);
    let done = bucket.send("POST", &complete, &[("if-none-match", "*")], &body);
    assert_eq!(done.status, 200, "{}", done.text());
    assert!(element(&done, "ChecksumCRC32").unwrap().ends_with("-2"), "{}", done.text());
    let part = bucket.get("/photos/mp?partNumber=2", &[]);
    assert_eq!((part.status, part.text()), (206, "tail".to_owned()));
    assert_eq!(part.header("x-amz-mp-parts-count"), "2");
    assert_eq!(part.header("content-range"), "bytes 5242880-5242883/5242884");
    assert_eq!(part.header("content-language"), "de");
    assert_eq!(bucket.refusal("GET", "/photos/mp?partNumber=3", &[]), is(400, "InvalidPart"));
    let wanted = [("x-amz-object-attributes", "ETag,ObjectParts,ObjectSize,Checksum")];
    let attributes = bucket.get("/photos/mp?attributes", &wanted);
    assert_eq!(
        element(&attributes, "ObjectSize").as_deref(),
        Some("5242884"),
        "{}",
        attributes.text()
    );
    assert_eq!(element(&attributes, "ETag").unwrap(), part.header("etag").trim_matches('"'));
    assert_eq!(element(&attributes, "PartsCount").as_deref(), Some("2"), "{}", attributes.text());
    // Over an existing object, and with a part that is too small.
    let (complete, body) = upload_parts(&mut bucket, "/photos/mp", &["tail"], &[]);
    let refused = bucket.send("POST", &complete, &[("if-none-match", "*")], &body);
    assert_eq!((refused.status, element(&refused, "Code").unwrap()), is(412, "PreconditionFailed"));
    let (complete, body) = upload_parts(&mut bucket, "/photos/small", &["a", "b"], &[]);
    let refused = bucket.send("POST", &complete, &[], &body);
    assert_eq!((refused.status, element(&refused, "Code").unwrap()), is(400, "EntityTooSmall"));
    // A range must be within its source.
    let id = complete.split_once("uploadId=").unwrap().1;
    bucket.put("/photos/ten", &[], "0123456789");
    for (range, refusal) in
        [("bytes=0-21", is(416, "InvalidRange")), ("bytes=3-", is(400, "InvalidArgument"))]
    {
        let headers = [("x-amz-copy-source", "photos/ten"), ("x-amz-copy-source-range", range)];
        let answer =
            bucket.send("PUT", &format!("/photos/small?partNumber=1&uploadId={id}"), &headers, "");
        assert_eq!((answer.status, element(&answer, "Code").unwrap()), refusal, "{range}");
    }
}

#[test]
fn multipart_parts_count_against_quota_before_completion() {
    let mut bucket = Bucket::new();
    let edit = ["bucket", "edit", "--name", "photos"];
    let part = "x".repeat(5 << 20);
    bucket.place.data.done(&[&edit[..], &["--file-bytes-max", "8000000"]].concat());
    let begun = bucket.send("POST", "/photos/mp?uploads", &[], "");
    let id = element(&begun, "UploadId").unwrap();
    let address = |number: u32| format!("/photos/mp?partNumber={number}&uploadId={id}");
    bucket.put(&address(1), &[], &part);
    let refused = bucket.send("PUT", &address(2), &[], &part);
    assert_eq!((refused.status, element(&refused, "Code").unwrap()), is(400, "EntityTooLarge"));
    // The same part again, and one that fits in addition.
    bucket.put(&address(1), &[], &part);
    bucket.put(&address(2), &[], "tail");
    // The quota applies as well; the upload counts against it until it is aborted.
    let quota = ["--file-bytes-max", "none", "--quota-bytes", "8000000"];
    bucket.place.data.done(&[&edit[..], &quota].concat());
    let refused = bucket.send("PUT", &address(3), &[], &part);
    assert_eq!((refused.status, element(&refused, "Code").unwrap()), is(507, "QuotaExceeded"));
    let refused = bucket.send("PUT", "/photos/whole", &[], &part);
    assert_eq!((refused.status, element(&refused, "Code").unwrap()), is(507, "QuotaExceeded"));
    assert_eq!(bucket.send("DELETE", &format!("/photos/mp?uploadId={id}"), &[], "").status, 204);
    bucket.put("/photos/whole", &[], &part);
}

#[test]
fn copy_source_outside_the_scope_of_the_key_is_rejected() {
    let mut bucket = Bucket::new();
    let data = &bucket.place.data;
    data.done(&["account", "create", "--name", "bob"]);
    data.done(&["bucket", "create", "--account", "bob", "--name", "bobs", "--access", "private"]);
    let begun = bucket.send("POST", "/photos/mp?uploads", &[], "");
    let id = element(&begun, "UploadId").unwrap();
    for address in ["/photos/copy".to_owned(), format!("/photos/mp?partNumber=1&uploadId={id}")] {
        for (source, status) in [
            ("bobs/secret", 404),
            ("photos/../bobs/secret", 400),
            ("photos/%2e%2e/bobs/secret", 400),
            ("/bobs/../photos/none", 404),
        ] {
            let copied = bucket.send("PUT", &address, &[("x-amz-copy-source", source)], "");
            assert_eq!(copied.status, status, "{address} {source}: {}", copied.text());
        }
    }
}

#[test]
fn checksums_are_returned_on_put_and_head() {
    let mut bucket = Bucket::new();
    let put = bucket.put("/photos/a.txt", &[("x-amz-checksum-crc32", "NhCmhg==")], "hello");
    assert_eq!(put.header("x-amz-checksum-crc32"), "NhCmhg==");
    assert_eq!(put.header("x-amz-checksum-type"), "FULL_OBJECT");
    let mode = [("x-amz-checksum-mode", "ENABLED")];
    let head = bucket.send("HEAD", "/photos/a.txt", &mode, "");
    assert_eq!(head.header("x-amz-checksum-crc32"), "NhCmhg==");
    assert_eq!(bucket.send("HEAD", "/photos/a.txt", &[], "").header("x-amz-checksum-crc32"), "");
    // Of a range there is none.
    let range = bucket.get("/photos/a.txt", &[mode[0], ("range", "bytes=0-1")]);
    assert_eq!((range.status, range.header("x-amz-checksum-crc32")), (206, ""));
}

#[test]
fn nfc_and_nfd_keys_are_distinct() {
    let mut bucket = Bucket::new();
    let (composed, decomposed) = ("/photos/%C3%A9.txt", "/photos/e%CC%81.txt");
    bucket.put(decomposed, &[], "hello");
    bucket.put(decomposed, &[], "hello");
    assert_eq!(bucket.refusal("PUT", composed, &[]), is(400, "InvalidArgument"));
    assert_eq!(bucket.send("HEAD", composed, &[], "").status, 404);
    assert_eq!(bucket.send("DELETE", composed, &[], "").status, 204);
    assert_eq!(bucket.get(decomposed, &[]).text(), "hello");
    let listed = bucket.get("/photos?list-type=2", &[]);
    assert_eq!(element(&listed, "Key").as_deref(), Some("e\u{301}.txt"));
    assert_eq!(bucket.send("DELETE", decomposed, &[], "").status, 204);
    bucket.put(composed, &[], "there");
    assert_eq!(bucket.get(composed, &[]).text(), "there");
}

#[test]
fn folder_marker_put_succeeds_and_stores_nothing() {
    let mut bucket = Bucket::new();
    let made = bucket.send("PUT", "/photos/folder/", &[], "");
    assert_eq!((made.status, made.header("etag")), (200, "\"d41d8cd98f00b204e9800998ecf8427e\""));
    assert_eq!(bucket.send("HEAD", "/photos/folder/", &[], "").status, 404);
    assert_eq!(bucket.refusal("PUT", "/photos/folder/", &[]), is(400, "InvalidArgument"));
    bucket.put("/photos/folder/a.txt", &[], "hello");
    let head = bucket.send("HEAD", "/photos/folder/", &[], "");
    assert_eq!((head.status, head.header("content-length")), (200, "0"));
    assert_eq!(bucket.send("DELETE", "/photos/folder/", &[], "").status, 204);
    assert_eq!(bucket.send("HEAD", "/photos/folder/a.txt", &[], "").status, 200);
}

#[test]
fn delete_bucket_requires_an_empty_bucket() {
    let mut bucket = Bucket::new();
    bucket.put("/one-more", &[], "");
    bucket.put("/one-more/a.txt", &[], "hello");
    assert_eq!(bucket.refusal("DELETE", "/one-more", &[]), is(409, "BucketNotEmpty"));
    assert_eq!(bucket.send("DELETE", "/one-more/a.txt", &[], "").status, 204);
    assert_eq!(bucket.send("DELETE", "/one-more", &[], "").status, 204);
    assert_eq!(bucket.refusal("DELETE", "/one-more", &[]), is(404, "NoSuchBucket"));
    assert_eq!(bucket.send("HEAD", "/photos", &[], "").header("x-amz-bucket-region"), "us-east-1");
}

#[test]
fn list_buckets_is_paginated() {
    let mut bucket = Bucket::new();
    for name in ["/page-b", "/page-a", "/page-c"] {
        bucket.put(name, &[], "");
    }
    let first = bucket.get("/?max-buckets=2&prefix=page-", &[]);
    assert!(first.text().contains("page-a") && first.text().contains("page-b"), "{}", first.text());
    let token = element(&first, "ContinuationToken").unwrap();
    let last = bucket.get(&format!("/?continuation-token={token}&prefix=page-"), &[]);
    assert_eq!(element(&last, "Name").as_deref(), Some("page-c"));
    assert_eq!(element(&last, "ContinuationToken"), None);
    assert_eq!(bucket.refusal("GET", "/?max-buckets=0", &[]), is(400, "InvalidArgument"));
}

#[test]
fn error_body_has_resource_and_request_id() {
    let mut bucket = Bucket::new();
    let refused = bucket.get("/photos/none.txt", &[]);
    assert_eq!(refused.status, 404);
    assert_eq!(element(&refused, "Resource").as_deref(), Some("/photos/none.txt"));
    let id = element(&refused, "RequestId").unwrap();
    assert_eq!(id, refused.header("x-amz-request-id"));
    assert_eq!(id, refused.header("x-request-id"));
}

#[test]
fn virtual_hosted_style_requests_are_served() {
    let mut bucket = Bucket::new();
    bucket.put("/photos/a.txt", &[], "hello");
    let mut connection = signed(&bucket.place).with_host("photos.localhost");
    let read = connection.send("GET", "/a.txt", &[], b"").unwrap();
    assert_eq!((read.status, read.text()), (200, "hello".to_owned()));
    let listed = connection.send("GET", "/?list-type=2", &[], b"").unwrap();
    assert_eq!(element(&listed, "Key").as_deref(), Some("a.txt"));
    let missing = connection.send("GET", "/none", &[], b"").unwrap();
    assert_eq!(element(&missing, "Resource").as_deref(), Some("/photos/none"));
}

#[test]
fn invalid_region_returns_the_expected_region() {
    let bucket = Bucket::new();
    let refused = signed(&bucket.place).with_region("US").send("GET", "/", &[], b"").unwrap();
    assert_eq!(
        (refused.status, element(&refused, "Code").unwrap()),
        is(400, "AuthorizationHeaderMalformed")
    );
    assert_eq!(element(&refused, "Region").as_deref(), Some("us-east-1"));
    assert_eq!(
        signed(&bucket.place).with_region("eu-west-3").send("GET", "/", &[], b"").unwrap().status,
        200
    );
}

#[test]
fn signature_v2_is_rejected_in_xml() {
    let bucket = Bucket::new();
    let mut connection = tests::Connection::connect(bucket.place.server.address()).unwrap();
    let refused = connection.get("/photos/a?AWSAccessKeyId=a&Expires=9&Signature=b").unwrap();
    assert_eq!((refused.status, element(&refused, "Code").unwrap()), is(400, "InvalidRequest"));
    assert!(element(&refused, "Message").unwrap().contains("Version 4"), "{}", refused.text());
}

#[test]
fn part_checksums_are_returned_by_listings_and_reads() {
    let mut bucket = Bucket::new();
    let sent = [("x-amz-checksum-algorithm", "CRC32")];
    let (complete, body) = upload_parts(&mut bucket, "/photos/mp", &["hello"], &sent);
    let listed = bucket.get(&complete.replace("?", "?max-parts=9&"), &[]);
    assert_eq!(element(&listed, "ChecksumAlgorithm").as_deref(), Some("CRC32"));
    assert_eq!(element(&listed, "ChecksumType").as_deref(), Some("COMPOSITE"));
    assert_eq!(element(&listed, "ChecksumCRC32").as_deref(), Some("NhCmhg=="), "{}", listed.text());
    let done = bucket.send("POST", &complete, &[], &body);
    let checksum = element(&done, "ChecksumCRC32").unwrap();
    assert!(checksum.ends_with("-1"), "{checksum}");
    // Once more, as after a lost response.
    let again = bucket.send("POST", &complete, &[], &body);
    assert_eq!(element(&again, "ChecksumCRC32"), Some(checksum));
    let mode = [("x-amz-checksum-mode", "ENABLED")];
    let part = bucket.get("/photos/mp?partNumber=1", &mode);
    assert_eq!((part.status, part.header("x-amz-checksum-crc32")), (206, "NhCmhg=="));
    assert_eq!(part.header("x-amz-checksum-type"), "COMPOSITE");
    let wanted = [("x-amz-object-attributes", "ObjectParts")];
    let attributes = bucket.get("/photos/mp?attributes", &wanted);
    assert_eq!(element(&attributes, "ChecksumCRC32").as_deref(), Some("NhCmhg=="));
}

#[test]
fn object_locks_are_rejected_as_for_buckets_without_them() {
    let mut bucket = Bucket::new();
    bucket.put("/photos/a.txt", &[], "hello");
    let hold = "<LegalHold><Status>ON</Status></LegalHold>";
    for (method, address, body, refusal) in [
        ("GET", "/photos/a.txt?retention", "", is(400, "InvalidRequest")),
        ("GET", "/photos/a.txt?legal-hold", "", is(400, "InvalidRequest")),
        ("PUT", "/photos/a.txt?legal-hold", hold, is(400, "InvalidRequest")),
        ("GET", "/none/a.txt?retention", "", is(404, "NoSuchBucket")),
    ] {
        let answer = bucket.send(method, address, &[], body);
        let refused = (answer.status, element(&answer, "Code").unwrap_or_default());
        assert_eq!(refused, refusal, "{method} {address}");
    }
}

#[test]
fn configuration_that_is_in_effect_can_be_set_and_no_other() {
    let mut bucket = Bucket::new();
    let ownership = |rule: &str| {
        format!(
            "<OwnershipControls><Rule><ObjectOwnership>{rule}</ObjectOwnership></Rule></OwnershipControls>"
        )
    };
    let payer = |payer: &str| {
        format!("<RequestPaymentConfiguration><Payer>{payer}</Payer></RequestPaymentConfiguration>")
    };
    for (address, body, status) in [
        ("/photos?ownershipControls", ownership("BucketOwnerEnforced"), 200),
        ("/photos?ownershipControls", ownership("ObjectWriter"), 501),
        ("/photos?requestPayment", payer("BucketOwner"), 200),
        ("/photos?requestPayment", payer("Requester"), 501),
    ] {
        let answer = bucket.send("PUT", address, &[], &body);
        assert_eq!(answer.status, status, "{address} {body}: {}", answer.text());
        let mut reader = bucket.with_key(&["--scope", "read"]);
        assert_eq!(reader.send("PUT", address, &[], body.as_bytes()).unwrap().status, 403);
    }
}
