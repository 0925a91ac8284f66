//! python-requests 2: clients 4.6. Text fields first, parts without a type, and no boundary where the type is forced.

use super::{Service, WEBP};

const UPLOAD: &str = "POST /photos/ HTTP/1.1\n\
    Host: cdn.example.com\n\
    User-Agent: python-requests/2.34.2\n\
    Accept-Encoding: gzip, deflate\n\
    Accept: */*\n\
    Connection: keep-alive\n\
    Authorization: Bearer <key>\n\
    Content-Length: <length>\n\
    Content-Type: multipart/form-data; boundary=a4c96c318f12692fc7d07f45d6caa464\n\
    \n\
    --a4c96c318f12692fc7d07f45d6caa464\n\
    Content-Disposition: form-data; name=\"note\"\n\
    \n\
    hello\n\
    --a4c96c318f12692fc7d07f45d6caa464\n\
    Content-Disposition: form-data; name=\"file\"; filename=\"shot \u{e4}.webp\"\n\
    \n\
    <content>\n\
    --a4c96c318f12692fc7d07f45d6caa464--\n";

#[tokio::test]
async fn python_requests_part_without_type_is_sniffed() {
    let service = Service::start().await;
    let key = service.upload(UPLOAD, WEBP, "url", "image/webp").await;
    assert_eq!(key, "shot \u{e4}.webp");
    let key = service.upload(UPLOAD, b"\0\x01", "url", "image/webp").await;
    assert_eq!(key, "shot \u{e4} (1).webp", "or of its name");
}

#[tokio::test]
async fn python_requests_forced_type_loses_the_boundary() {
    let service = Service::start().await;
    let forced = UPLOAD.replace("; boundary=a4c96c318f12692fc7d07f45d6caa464", "");
    service.upload(&forced, WEBP, "url", "image/webp").await;
}

#[tokio::test]
async fn python_requests_delete_has_content_length_zero() {
    let service = Service::start().await;
    service.client.put("/photos/", "a.txt", b"1").await;
    let request = "DELETE /photos/a.txt HTTP/1.1\n\
        Host: cdn.example.com\n\
        User-Agent: python-requests/2.34.2\n\
        Accept-Encoding: gzip, deflate\n\
        Accept: */*\n\
        Connection: keep-alive\n\
        Authorization: Bearer <key>\n\
        Content-Length: 0\n\
        \n";
    assert_eq!(service.request(request, b"").await.status, 200);
}
