//! qbx_properties: clients 4.5. It keeps `data.path` of an upload, and later deletes that path, with all of it escaped.

use super::fxserver::delete;
use super::{Service, WEBP, field};

/// Upload through screencapture, with a bare key.
const UPLOAD: &str = "POST /photos/ HTTP/1.1\n\
    accept: */*\n\
    accept-encoding: gzip, deflate, br\n\
    authorization: <key>\n\
    content-length: <length>\n\
    content-type: multipart/form-data; boundary=--------------------------a2bf5630d47dbe9d78d8c483\n\
    user-agent: screencapture/0.9.0\n\
    Host: cdn.example.com\n\
    Connection: keep-alive\n\
    \n\
    ----------------------------a2bf5630d47dbe9d78d8c483\n\
    Content-Disposition: form-data; name=\"file\"; filename=\"screenshot.webp\"\n\
    Content-Type: image/webp\n\
    \n\
    <content>\n\
    ----------------------------a2bf5630d47dbe9d78d8c483--\n";

/// Escapes like JavaScript's `encodeURIComponent`, for the characters that occur here.
fn escaped(path: &str) -> String {
    path.replace('%', "%25").replace('/', "%2F").replace(' ', "%20")
}

#[tokio::test]
async fn qbx_properties_stored_id_deletes_the_upload() {
    let service = Service::start().await;
    for target in ["/photos/", "/photos/houses/12/", "/photos/100%25%20mine/"] {
        let request = UPLOAD.replace("/photos/", target);
        for _ in 0..2 {
            assert_eq!(service.request(&request, WEBP).await.status, 200);
        }
        let reply = service.request(&request, WEBP).await.json();
        let path = field(&reply, "data.path").as_str().unwrap();
        assert!(path.ends_with("screenshot (2).webp"), "{path}");
        let delete = delete(&format!("/photos/{}", escaped(path)), "<key>");
        let reply = service.request(&delete, b"").await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert_eq!(service.request(&delete, b"").await.status, 404);
    }
    assert_eq!(service.world.object_count("photos"), 6);
}
