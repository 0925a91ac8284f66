//! Public access by policies, and its restriction by a public access block.

use crate::bucket::{Bucket, is, outcome};

const PUBLIC_READ: &str = r#"{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": "*",
    "Action": "s3:GetObject", "Resource": "arn:aws:s3:::photos/*"}]}"#;

fn block(bucket: &mut Bucket, flags: &[&str]) {
    let flags: String = flags.iter().map(|flag| format!("<{flag}>true</{flag}>")).collect();
    let body = format!("<PublicAccessBlockConfiguration>{flags}</PublicAccessBlockConfiguration>");
    bucket.put("/photos?publicAccessBlock", &[], &body);
}

#[test]
fn public_read_policy_makes_the_bucket_public_until_deleted() {
    let mut bucket = Bucket::new();
    bucket.put("/photos/a.txt", &[], "hello");
    let missing = bucket.refusal("GET", "/photos?policy", &[]);
    assert_eq!(
        (missing, bucket.anonymous("/photos/a.txt").status),
        (is(404, "NoSuchBucketPolicy"), 401)
    );
    let other = PUBLIC_READ.replace("photos/*", "photos/a/*");
    for (policy, status, code) in [("{", 400, "MalformedPolicy"), (&*other, 501, "NotImplemented")]
    {
        let refused = bucket.send("PUT", "/photos?policy", &[], policy);
        assert_eq!(outcome(&refused), is(status, code), "{policy}");
    }
    assert_eq!(bucket.anonymous("/photos/a.txt").status, 401);
    let put = bucket.send("PUT", "/photos?policy", &[], PUBLIC_READ);
    assert!(put.status < 300, "{}", put.text());
    assert_eq!(bucket.get("/photos?policy", &[]).text(), PUBLIC_READ);
    assert_eq!(bucket.anonymous("/photos/a.txt").status, 200);
    assert_eq!(bucket.send("DELETE", "/photos?policy", &[], "").status, 204);
    assert_eq!(bucket.anonymous("/photos/a.txt").status, 401);
    // An access control list that makes it private removes the policy.
    bucket.send("PUT", "/photos?policy", &[], PUBLIC_READ);
    bucket.put("/photos?acl", &[("x-amz-acl", "private")], "");
    assert_eq!(bucket.refusal("GET", "/photos?policy", &[]), is(404, "NoSuchBucketPolicy"));
}

#[test]
fn public_access_block_hides_and_rejects_public_access() {
    let mut bucket = Bucket::new();
    bucket.put("/photos/a.txt", &[], "hello");
    let address = "/photos?publicAccessBlock";
    let none = is(404, "NoSuchPublicAccessBlockConfiguration");
    assert_eq!(bucket.refusal("GET", address, &[]), none);
    bucket.send("PUT", "/photos?policy", &[], PUBLIC_READ);
    for flag in ["RestrictPublicBuckets", "IgnorePublicAcls"] {
        block(&mut bucket, &[flag]);
        assert_eq!(bucket.anonymous("/photos/a.txt").status, 401, "{flag}");
        let shown = bucket.get(address, &[]).text();
        assert!(shown.contains(&format!("<{flag}>true</{flag}>")), "{shown}");
        assert_eq!(bucket.send("DELETE", address, &[], "").status, 204);
        assert_eq!(bucket.anonymous("/photos/a.txt").status, 200, "{flag}");
    }
    bucket.put("/photos?acl", &[("x-amz-acl", "private")], "");
    let public = [("x-amz-acl", "public-read")];
    bucket.put("/photos/a.txt?acl", &public, "");
    for flag in ["RestrictPublicBuckets", "IgnorePublicAcls"] {
        block(&mut bucket, &[flag]);
        assert_eq!(bucket.anonymous("/photos/a.txt").status, 401, "{flag}");
        // Who may not read may not publish by removing the block.
        let mut connection = bucket.with_key(&["--scope", "manage"]);
        assert_eq!(connection.send("DELETE", address, &[], b"").unwrap().status, 403);
        assert_eq!(bucket.send("DELETE", address, &[], "").status, 204);
        assert_eq!(bucket.anonymous("/photos/a.txt").status, 200, "{flag}");
    }
    bucket.put("/photos/a.txt?acl", &[("x-amz-acl", "private")], "");
    block(&mut bucket, &["BlockPublicAcls", "BlockPublicPolicy"]);
    for address in ["/photos?acl", "/photos/b.txt", "/photos/a.txt?acl"] {
        let refused = bucket.send("PUT", address, &public, "");
        assert_eq!(outcome(&refused), is(403, "AccessDenied"), "{address}");
    }
    let policy = bucket.send("PUT", "/photos?policy", &[], PUBLIC_READ);
    assert_eq!(outcome(&policy), is(403, "AccessDenied"));
    let edit = ["bucket", "edit", "--name", "photos", "--access", "public"];
    assert_ne!(bucket.place.data.run(&edit).code, 0);
    assert_eq!(bucket.anonymous("/photos/a.txt").status, 401);
    bucket.put("/photos/b.txt", &[("x-amz-acl", "private")], "hello");
}

#[test]
fn creating_an_own_bucket_again_succeeds_with_the_same_access() {
    let mut bucket = Bucket::new();
    bucket.put("/photos/a.txt", &[], "hello");
    assert_eq!(bucket.send("PUT", "/photos", &[], "").status, 200);
    let public = [("x-amz-acl", "public-read")];
    let refused = bucket.send("PUT", "/photos", &public, "");
    assert_eq!(outcome(&refused), is(409, "BucketAlreadyOwnedByYou"));
    assert_eq!(bucket.get("/photos/a.txt", &[]).text(), "hello");
}
