//! Requests to Google Cloud Storage and Azure Blob Storage: method, path, condition and signature.

use bytes::Bytes;
use engine::remote::{Created, Part};
use tests::{File, FileHost};

use crate::endpoint::connect_to;

/// Type of the response to removals of Azure, which come in batches.
const MIXED: &str = "multipart/mixed; boundary=x";
/// Response to a batch of one removal.
const REMOVED: &str = "--x\r\nContent-Type: application/http\r\nContent-ID: 0\r\n\r\n\
                       HTTP/1.1 202 Accepted\r\nx-ms-version: 1\r\n\r\n--x--\r\n";

/// Responds to the requests of one creation, reads, and a removal.
fn service() -> FileHost {
    FileHost::start(|request| {
        let modified = "Sun, 06 Nov 1994 08:49:37 GMT";
        let file = match (&*request.method, request.header("range")) {
            _ if request.target.ends_with("missing") => File::of("").with_status(404),
            ("PUT", _) if request.time == 1 => File::of("").with_status(201),
            ("PUT", _) if request.header("x-ms-version").is_empty() => File::status(412),
            ("PUT", _) => File::status(409),
            ("DELETE", _) => File::of("").with_status(204),
            ("POST", _) => File::of(REMOVED).with_status(202).with("content-type", MIXED),
            ("HEAD", _) => File::of("").with("Content-Length", "10"),
            (_, "") => File::of("0123456789"),
            (_, range) => {
                let content_range = format!("{}/10", range.replace('=', " "));
                File::of("56").with_status(206).with("content-range", &content_range)
            }
        };
        file.with("etag", "\"1\"").with("last-modified", modified)
    })
}

#[test]
fn google_cloud_requests_are_conditional_and_below_the_prefix() {
    let host = service();
    // `disable_oauth` is the option of emulators: no token is requested.
    let account = r#"{"private_key": "k", "private_key_id": "i", "client_email": "e", "disable_oauth": true}"#;
    let remote = connect_to("gs://pics/a", &host.origin(), account);
    let body = [Bytes::from_static(b"one")];
    assert_eq!(remote.create("log/1", &body).unwrap(), Created::New);
    assert_eq!(remote.create("log/1", &body).unwrap(), Created::Exists);
    let read = remote.read("log/1", Part::Range(5..7)).unwrap().unwrap();
    assert_eq!((&*read.bytes, read.object_bytes), (&b"56"[..], 10));
    remote.remove("log/1").unwrap();
    let requests = host.take_requests();
    let lines: Vec<_> = requests.iter().map(|it| format!("{} {}", it.method, it.target)).collect();
    let path = "/pics/a%2Flog%2F1";
    assert_eq!(lines, ["PUT", "PUT", "GET", "DELETE"].map(|method| format!("{method} {path}")));
    assert_eq!(requests[0].header("x-goog-if-generation-match"), "0");
    assert_eq!((&*requests[0].body, requests[2].header("range")), (&b"one"[..], "bytes=5-6"));
}

#[test]
fn azure_requests_are_signed_conditional_and_below_the_prefix() {
    let host = service();
    let remote = connect_to("az://pics/a", &host.origin(), "account1\nc2VjcmV0LTE=");
    let body = [Bytes::from_static(b"one")];
    assert_eq!(remote.create("log/1", &body).unwrap(), Created::New);
    assert_eq!(remote.create("log/1", &body).unwrap(), Created::Exists);
    // Azure has no suffix ranges: the length comes first.
    let read = remote.read("log/1", Part::Suffix(2)).unwrap().unwrap();
    assert_eq!((&*read.bytes, read.object_bytes), (&b"56"[..], 10));
    remote.remove("log/1").unwrap();
    let requests = host.take_requests();
    assert_eq!(remote.read("log/missing", Part::Suffix(2)).unwrap(), None);
    let lines: Vec<_> = requests.iter().map(|it| format!("{} {}", it.method, it.target)).collect();
    let path = "/pics/a/log/1";
    let mut expected =
        ["PUT", "PUT", "HEAD", "GET"].map(|method| format!("{method} {path}")).to_vec();
    expected.push("POST /pics?restype=container&comp=batch".to_owned());
    assert_eq!(lines, expected);
    let batch = String::from_utf8_lossy(&requests[4].body).into_owned();
    assert!(batch.contains(&format!("DELETE {path} ")), "{batch}");
    assert_eq!(requests[0].header("if-none-match"), "*");
    assert_eq!(requests[0].header("x-ms-blob-type"), "BlockBlob");
    assert_eq!((&*requests[0].body, requests[3].header("x-ms-range")), (&b"one"[..], ""));
    for request in &requests {
        let signature = request.header("authorization");
        assert!(signature.starts_with("SharedKey account1:"), "{signature}");
        assert!(!signature.contains("c2VjcmV0LTE="));
    }
}
