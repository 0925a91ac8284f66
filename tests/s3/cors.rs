//! CORS rules of a bucket: set by S3 clients, honoured by preflights, delivery and S3 responses.

use tests::{Connection, Response};

use crate::bucket::{Bucket, element, is};

const RULES: &str = "<CORSConfiguration>\
    <CORSRule><ID>read</ID><AllowedOrigin>https://*.example</AllowedOrigin><AllowedMethod>GET</AllowedMethod>\
    <ExposeHeader>x-amz-meta-a</ExposeHeader><MaxAgeSeconds>60</MaxAgeSeconds></CORSRule>\
    <CORSRule><AllowedOrigin>https://app.example</AllowedOrigin><AllowedMethod>PUT</AllowedMethod>\
    <AllowedMethod>POST</AllowedMethod><AllowedHeader>x-amz-*</AllowedHeader></CORSRule>\
    </CORSConfiguration>";

fn unsigned(bucket: &Bucket, method: &str, headers: &[(&str, &str)]) -> Response {
    let mut connection = Connection::connect(bucket.place.server.address()).unwrap();
    connection.send(method, "/photos/a.txt", headers, b"").unwrap()
}

#[test]
fn cors_rules_decide_preflights_and_responses() {
    let mut bucket = Bucket::new();
    bucket.put("/photos/a.txt", &[], "hello");
    bucket.put("/photos?acl", &[("x-amz-acl", "public-read")], "");
    let origin = ("origin", "https://app.example");
    assert_eq!(unsigned(&bucket, "GET", &[origin]).header("access-control-allow-origin"), "*");
    bucket.put("/photos?cors", &[], RULES);
    for (origin, allowed) in [
        ("https://app.example", "https://app.example"),
        ("https://other.example", "https://other.example"),
        ("https://evil.invalid", ""),
    ] {
        let read = unsigned(&bucket, "GET", &[("origin", origin)]);
        assert_eq!((read.status, read.header("access-control-allow-origin")), (200, allowed));
        let methods = if allowed.is_empty() { "" } else { "GET" };
        assert_eq!(read.header("access-control-allow-methods"), methods, "{origin}");
        let signed = bucket.get("/photos/a.txt", &[("origin", origin)]);
        assert_eq!(signed.header("access-control-allow-origin"), allowed, "{origin}");
    }
    let without = unsigned(&bucket, "GET", &[]);
    assert_eq!(without.header("access-control-allow-origin"), "");
    assert!(without.header("vary").contains("origin"), "{}", without.header("vary"));
    let method = |method| ("access-control-request-method", method);
    let header = ("access-control-request-headers", "X-Amz-Date, x-amz-meta-a");
    for (headers, status, allowed) in [
        (&[origin, method("GET")][..], 200, "https://app.example"),
        (&[origin, method("PUT"), header], 200, "https://app.example"),
        (&[origin, method("GET"), header], 403, ""),
        (&[origin, method("DELETE")], 403, ""),
        (&[("origin", "https://evil.invalid"), method("GET")], 403, ""),
        (&[origin], 400, ""),
        (&[method("GET")], 400, ""),
    ] {
        let preflight = unsigned(&bucket, "OPTIONS", headers);
        assert_eq!(preflight.status, status, "{headers:?}: {}", preflight.text());
        assert_eq!(preflight.header("access-control-allow-origin"), allowed, "{headers:?}");
    }
    let preflight = unsigned(&bucket, "OPTIONS", &[origin, method("GET")]);
    assert_eq!(preflight.header("access-control-max-age"), "60");
    assert_eq!(preflight.header("access-control-expose-headers"), "x-amz-meta-a");
    let preflight = unsigned(&bucket, "OPTIONS", &[origin, method("PUT"), header]);
    assert_eq!(preflight.header("access-control-allow-methods"), "PUT, POST");
    assert_eq!(preflight.header("access-control-allow-headers"), header.1);
    assert_eq!(preflight.header("access-control-allow-credentials"), "");
    assert_eq!(bucket.send("DELETE", "/photos?cors", &[], "").status, 204);
    assert_eq!(unsigned(&bucket, "GET", &[origin]).header("access-control-allow-origin"), "*");
    assert_eq!(unsigned(&bucket, "OPTIONS", &[]).status, 204);
}

#[test]
fn cors_rules_are_returned_and_invalid_ones_rejected() {
    let mut bucket = Bucket::new();
    assert_eq!(bucket.refusal("GET", "/photos?cors", &[]), is(404, "NoSuchCORSConfiguration"));
    bucket.put("/photos?cors", &[], RULES);
    let rule = |origin: &str, method: &str| {
        format!(
            "<CORSConfiguration><CORSRule><AllowedOrigin>{origin}</AllowedOrigin>\
             <AllowedMethod>{method}</AllowedMethod></CORSRule></CORSConfiguration>"
        )
    };
    for (rules, code) in [
        (rule("*", "OPTIONS"), "InvalidRequest"),
        (rule("https://*.*", "GET"), "InvalidRequest"),
        (rule(&"x".repeat(9_000), "GET"), "InvalidRequest"),
        (rule("*", "GET").replace("CORSRule", "Rule"), "MalformedXML"),
    ] {
        let refused = bucket.send("PUT", "/photos?cors", &[], &rules);
        let refused = (refused.status, element(&refused, "Code").unwrap_or_default());
        assert_eq!(refused, is(400, code), "{rules:.100}");
    }
    let mut reader = bucket.with_key(&["--scope", "read,upload"]);
    let refused = reader.send("PUT", "/photos?cors", &[], RULES.as_bytes()).unwrap();
    assert_eq!((refused.status, element(&refused, "Code").unwrap()), is(403, "AccessDenied"));
    let rules = bucket.get("/photos?cors", &[]).text();
    for part in ["<ID>read</ID>", "https://*.example", "<MaxAgeSeconds>60<", "x-amz-*", ">POST<"] {
        assert!(rules.contains(part), "{part} in {rules}");
    }
}

#[test]
fn preflight_of_presigned_url_without_origin_is_rejected() {
    let bucket = Bucket::new();
    let mut connection = Connection::connect(bucket.place.server.address()).unwrap();
    let address = "/photos/a.txt?X-Amz-Signature=abc";
    assert_eq!(connection.send("OPTIONS", address, &[], b"").unwrap().status, 400);
    let origin = [("origin", "https://app.example")];
    assert_eq!(connection.send("OPTIONS", address, &origin, b"").unwrap().status, 204);
}
