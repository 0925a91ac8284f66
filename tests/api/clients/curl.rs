//! curl: clients 4.6. The real one runs in the examples of `server/API.md`.

use super::{Service, WEBP};
use tests::fixtures::path_of;

#[tokio::test]
async fn curl_form_with_escaped_names_is_accepted() {
    let service = Service::start().await;
    let request = "POST /photos/ HTTP/1.1\n\
        Host: cdn.example.com\n\
        User-Agent: curl/7.88.1\n\
        Accept: */*\n\
        Authorization: Bearer <key>\n\
        Content-Length: <length>\n\
        Content-Type: multipart/form-data; boundary=------------------------ee62057a703afafc\n\
        \n\
        --------------------------ee62057a703afafc\n\
        Content-Disposition: form-data; name=\"file\"; filename=\"a%22b.webp\"\n\
        Content-Type: application/octet-stream\n\
        \n\
        <content>\n\
        --------------------------ee62057a703afafc--\n";
    assert_eq!(service.upload(request, WEBP, "url", "image/webp").await, "a\"b.webp");
    // With `-H 'Content-Type: multipart/form-data'` the boundary is still there, and other parts have other places.
    let forced = request
        .replace("Content-Type: multipart/form-data; boundary=------------------------ee62057a703afafc\n", "")
        .replace("Accept: */*\n", "Accept: */*\nContent-Type: multipart/form-data; boundary=------------------------ee62057a703afafc\n");
    service.upload(&forced, WEBP, "url", "image/webp").await;
}

/// Sends a head, waits for `100 Continue`, and sends the body.
async fn put(framing: &str, body: &[u8]) {
    let service = Service::start().await;
    let reply = service.client.get("/photos/presigned/a.webp").await.json();
    let target = &path_of(&reply["presignedUrl"]);
    let request = format!(
        "PUT {target} HTTP/1.1\n\
         Host: cdn.example.com\n\
         User-Agent: curl/7.88.1\n\
         Accept: */*\n\
         {framing}\n\
         Expect: 100-continue\n\
         \n"
    );
    let mut wire = service.listening.send(super::lines(&request)).await;
    assert_eq!(wire.read_to("\r\n\r\n").await, "HTTP/1.1 100 Continue\r\n\r\n");
    wire.write(body).await;
    let reply = wire.read_response().await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    service.check_link(&reply.json()["url"], WEBP, "image/webp").await;
}

#[tokio::test]
async fn curl_put_waits_for_100_continue() {
    put(&format!("Content-Length: {}", WEBP.len()), WEBP).await;
}

#[tokio::test]
async fn curl_piped_put_is_chunked() {
    let body = [format!("{:x}\r\n", WEBP.len()).as_bytes(), WEBP, b"\r\n0\r\n\r\n"].concat();
    put("Transfer-Encoding: chunked", &body).await;
}
