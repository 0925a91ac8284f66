//! Access control lists: what buckets and objects can express is set and reported, everything else is rejected.

use crate::bucket::{Bucket, element, is};

const EVERYONE: &str = "http://acs.amazonaws.com/groups/global/AllUsers";

fn grant(grantee: &str, permission: &str) -> String {
    format!(
        "<Grant><Grantee xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" {grantee}</Grantee>\
         <Permission>{permission}</Permission></Grant>"
    )
}

fn policy(owner: &str, grants: &[String]) -> String {
    let grants = grants.concat();
    format!(
        "<AccessControlPolicy><Owner><ID>{owner}</ID></Owner><AccessControlList>{grants}</AccessControlList>\
         </AccessControlPolicy>"
    )
}

#[test]
fn bucket_acl_makes_a_bucket_public_and_private() {
    let mut bucket = Bucket::new();
    bucket.put("/photos/a.txt", &[], "hello");
    for (acl, status) in [("public-read", 200), ("private", 401)] {
        bucket.put("/photos?acl", &[("x-amz-acl", acl)], "");
        assert_eq!(bucket.anonymous("/photos/a.txt").status, status, "{acl}");
        let listed = bucket.get("/photos?acl", &[]).text();
        assert_eq!(listed.contains(EVERYONE), status == 200, "{listed}");
    }
    let owner = element(&bucket.get("/photos?acl", &[]), "ID").unwrap();
    let full = grant(&format!("xsi:type=\"CanonicalUser\"><ID>{owner}</ID>"), "FULL_CONTROL");
    let read = grant(&format!("xsi:type=\"Group\"><URI>{EVERYONE}</URI>"), "READ");
    bucket.put("/photos?acl", &[], &policy(&owner, &[full.clone(), read.clone()]));
    assert_eq!(bucket.anonymous("/photos/a.txt").status, 200);
    // Lists of objects of a public bucket are not stored.
    bucket.put("/photos/a.txt?acl", &[("x-amz-acl", "public-read")], "");
    bucket.put("/photos/a.txt?acl", &[], &policy(&owner, &[read, full.clone()]));
    bucket.put("/photos/b.txt", &[("x-amz-acl", "public-read")], "hello");
    bucket.put("/photos/b.txt?acl", &[("x-amz-acl", "bucket-owner-full-control")], "");
    let private = bucket.send("PUT", "/photos/b.txt?acl", &[("x-amz-acl", "private")], "");
    assert_eq!((private.status, element(&private, "Code").unwrap()), is(501, "NotImplemented"));
    bucket.put("/photos?acl", &[], &policy(&owner, &[full]));
    for address in ["/photos/a.txt", "/photos/b.txt"] {
        assert_eq!(bucket.anonymous(address).status, 401, "{address}");
    }
}

#[test]
fn object_acl_makes_single_objects_of_a_private_bucket_public() {
    let mut bucket = Bucket::new();
    let public = [("x-amz-acl", "public-read")];
    bucket.put("/photos/a.txt", &[], "hello");
    bucket.put("/photos/b.txt", &public, "hello");
    let served = bucket.anonymous("/photos/b.txt");
    assert_eq!((served.status, served.text()), (200, "hello".to_owned()));
    assert!(served.header("cache-control").starts_with("public"), "{served:?}");
    for address in ["/photos/a.txt", "/photos/none.txt", "/photos/", "/photos?list-type=2"] {
        assert_eq!(bucket.anonymous(address).status, 401, "{address}");
    }
    let listed = bucket.get("/photos/b.txt?acl", &[]).text();
    assert!(listed.contains(EVERYONE), "{listed}");
    let etag = bucket.get("/photos/b.txt", &[]).header("etag").to_owned();
    for (acl, status) in [("private", 401), ("public-read", 200), ("bucket-owner-read", 401)] {
        bucket.put("/photos/b.txt?acl", &[("x-amz-acl", acl)], "");
        assert_eq!(bucket.anonymous("/photos/b.txt").status, status, "{acl}");
        let listed = bucket.get("/photos/b.txt?acl", &[]).text();
        assert_eq!(listed.contains(EVERYONE), status == 200, "{listed}");
    }
    assert_eq!(bucket.get("/photos/b.txt", &[]).header("etag"), etag);
    let owner = element(&bucket.get("/photos?acl", &[]), "ID").unwrap();
    let full = grant(&format!("xsi:type=\"CanonicalUser\"><ID>{owner}</ID>"), "FULL_CONTROL");
    let read = grant(&format!("xsi:type=\"Group\"><URI>{EVERYONE}</URI>"), "READ");
    bucket.put("/photos/b.txt?acl", &[], &policy(&owner, &[full, read]));
    assert_eq!(bucket.anonymous("/photos/b.txt").status, 200);
    // A list belongs to the object that it was sent for.
    bucket.put("/photos/c.txt", &[("x-amz-copy-source", "photos/b.txt")], "");
    bucket.put("/photos/b.txt", &[], "hello");
    for address in ["/photos/b.txt", "/photos/c.txt"] {
        assert_eq!(bucket.anonymous(address).status, 401, "{address}");
    }
    let copy = [("x-amz-copy-source", "photos/b.txt"), public[0]];
    bucket.put("/photos/c.txt", &copy, "");
    assert_eq!(bucket.anonymous("/photos/c.txt").status, 200);
}

#[test]
fn multipart_upload_with_public_read_is_public() {
    let mut bucket = Bucket::new();
    let public = [("x-amz-acl", "public-read")];
    let begun = bucket.send("POST", "/photos/a.bin?uploads", &public, "");
    let id = element(&begun, "UploadId").unwrap();
    let part = bucket.put(&format!("/photos/a.bin?partNumber=1&uploadId={id}"), &[], "hello");
    let etag = part.header("etag");
    let list = format!(
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part>\
         </CompleteMultipartUpload>"
    );
    let joined = bucket.send("POST", &format!("/photos/a.bin?uploadId={id}"), &[], &list);
    assert_eq!(joined.status, 200, "{}", joined.text());
    assert_eq!(bucket.anonymous("/photos/a.bin").status, 200);
}

#[test]
fn unsupported_acls_are_rejected_and_change_nothing() {
    let mut bucket = Bucket::new();
    bucket.put("/photos/a.txt", &[], "hello");
    let owner = element(&bucket.get("/photos?acl", &[]), "ID").unwrap();
    let full = grant(&format!("xsi:type=\"CanonicalUser\"><ID>{owner}</ID>"), "FULL_CONTROL");
    let group =
        |permission| grant(&format!("xsi:type=\"Group\"><URI>{EVERYONE}</URI>"), permission);
    let account = |id: &str| grant(&format!("xsi:type=\"CanonicalUser\"><ID>{id}</ID>"), "READ");
    let mail = "xsi:type=\"AmazonCustomerByEmail\"><EmailAddress>a@b.example</EmailAddress>";
    for (grants, refusal) in [
        (vec![], is(501, "NotImplemented")),
        (vec![group("READ")], is(501, "NotImplemented")),
        (vec![full.clone(), group("WRITE")], is(501, "NotImplemented")),
        (vec![full.clone(), account("aaaaaaaaaaaaaaaa")], is(501, "NotImplemented")),
        (vec![full.clone(), account("_foo")], is(400, "InvalidArgument")),
        (vec![full.clone(), grant(mail, "READ")], is(400, "UnresolvableGrantByEmailAddress")),
        (vec![full.clone(), group("EVERYTHING")], is(400, "MalformedACLError")),
    ] {
        let answer = bucket.send("PUT", "/photos?acl", &[], &policy(&owner, &grants));
        let refused = (answer.status, element(&answer, "Code").unwrap_or_default());
        assert_eq!(refused, refusal, "{grants:?}: {}", answer.text());
    }
    let other = bucket.send("PUT", "/photos?acl", &[], &policy("aaaaaaaaaaaaaaaa", &[full]));
    assert_eq!((other.status, element(&other, "Code").unwrap()), is(403, "AccessDenied"));
    for (address, acl, refusal) in [
        ("/photos?acl", "public-read-write", is(501, "NotImplemented")),
        ("/photos?acl", "public", is(400, "InvalidArgument")),
        ("/photos/b.txt", "authenticated-read", is(501, "NotImplemented")),
        ("/photos/a.txt?acl", "public-read-write", is(501, "NotImplemented")),
        ("/photos/a.txt?acl", "public", is(400, "InvalidArgument")),
        ("/acl-bucket", "public-read-write", is(501, "NotImplemented")),
    ] {
        let answer = bucket.send("PUT", address, &[("x-amz-acl", acl)], "");
        let refused = (answer.status, element(&answer, "Code").unwrap_or_default());
        assert_eq!(refused, refusal, "{address} {acl}: {}", answer.text());
    }
    let none = bucket.send("PUT", "/photos?acl", &[], "");
    assert_eq!((none.status, element(&none, "Code").unwrap()), is(400, "MissingSecurityHeader"));
    assert_eq!(bucket.anonymous("/photos/a.txt").status, 401);
    assert_eq!(bucket.send("HEAD", "/photos/b.txt", &[], "").status, 404);
    assert_eq!(bucket.send("HEAD", "/acl-bucket", &[], "").status, 404);
}

#[test]
fn create_bucket_with_public_read_is_public() {
    let mut bucket = Bucket::new();
    bucket.put("/open", &[("x-amz-acl", "public-read")], "");
    bucket.put("/open/a.txt", &[], "hello");
    assert_eq!(bucket.anonymous("/open/a.txt").status, 200);
    bucket.put("/closed", &[], "");
    bucket.put("/closed/a.txt", &[], "hello");
    assert_eq!(bucket.anonymous("/closed/a.txt").status, 401);
}

#[test]
fn publishing_a_bucket_requires_manage_and_read_scopes() {
    let mut bucket = Bucket::new();
    bucket.put("/photos/a.txt", &[], "hello");
    for (scopes, status) in [("manage", 403), ("read,upload,list", 403), ("manage,read", 200)] {
        let mut connection = bucket.with_key(&["--scope", scopes]);
        let acl = [("x-amz-acl", "public-read")];
        let answer = connection.send("PUT", "/photos?acl", &acl, b"").unwrap();
        assert_eq!(answer.status, status, "{scopes}: {}", answer.text());
        assert_eq!(bucket.anonymous("/photos/a.txt").status == 200, status == 200, "{scopes}");
    }
}

#[test]
fn publishing_an_object_requires_upload_and_read_scopes() {
    let mut bucket = Bucket::new();
    let public = [("x-amz-acl", "public-read")];
    for (at, (scopes, status)) in
        [("upload", 403), ("read,manage", 403), ("upload,read", 200)].into_iter().enumerate()
    {
        let address = format!("/photos/{at}.txt");
        let mut connection = bucket.with_key(&["--scope", scopes]);
        let put = connection.send("PUT", &address, &public, b"hello").unwrap();
        assert_eq!(put.status, status, "{scopes}: {}", put.text());
        bucket.put(&address, &[], "hello");
        let put = connection.send("PUT", &format!("{address}?acl"), &public, b"").unwrap();
        assert_eq!(put.status, status, "{scopes}: {}", put.text());
        assert_eq!(bucket.anonymous(&address).status == 200, status == 200, "{scopes}");
    }
}

#[test]
fn expected_owner_and_acls_do_not_reveal_buckets_of_others() {
    let mut bucket = Bucket::new();
    let data = &bucket.place.data;
    data.done(&["account", "create", "--name", "bob"]);
    data.done(&["bucket", "create", "--account", "bob", "--name", "bobs", "--access", "private"]);
    for header in [("x-amz-acl", "public-read"), ("x-amz-expected-bucket-owner", "ann")] {
        for address in ["/bobs/a.txt", "/nobodys/a.txt"] {
            let refused = bucket.refusal("PUT", address, &[header]);
            assert_eq!(refused, is(404, "NoSuchBucket"), "{address} {header:?}");
        }
    }
}
