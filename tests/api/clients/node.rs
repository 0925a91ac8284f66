//! Node's own `fetch` (undici): clients 4.6.

use super::{PNG, Service, WEBM, WEBP};
use tests::fixtures::path_of;

fn head(line: &str, kind: &str) -> String {
    format!(
        "{line} HTTP/1.1\n\
         host: cdn.example.com\n\
         connection: keep-alive\n\
         Authorization: <key>\n\
         content-type: {kind}\n\
         accept: */*\n\
         accept-language: *\n\
         sec-fetch-mode: cors\n\
         user-agent: node\n\
         accept-encoding: gzip, deflate\n\
         content-length: <length>\n\
         \n"
    )
}

fn form(part: &str) -> String {
    format!(
        "------formdata-undici-017882473105\n\
         Content-Disposition: form-data; {part}\n\
         \n\
         <content>\n\
         ------formdata-undici-017882473105--\n"
    )
}

const NAMED: &str = "multipart/form-data; boundary=----formdata-undici-017882473105";

#[tokio::test]
async fn node_forms_with_escaped_names_and_forced_types() {
    let service = Service::start().await;
    for (kind, part, content, stored, key) in [
        (
            NAMED,
            "name=\"file\"; filename=\"a%22b \u{e4}.png\"\nContent-Type: image/png",
            PNG,
            "image/png",
            "a\"b \u{e4}.png",
        ),
        (
            NAMED,
            "name=\"video\"; filename=\"blob\"\nContent-Type: video/webm;codecs=vp8,opus",
            WEBM,
            "video/webm",
            "blob.webm",
        ),
        (
            "multipart/form-data",
            "name=\"files[]\"; filename=\"screenshot.webp\"\nContent-Type: image/webp",
            WEBP,
            "image/webp",
            "screenshot.webp",
        ),
    ] {
        let request = head("POST /photos/", kind) + &form(part);
        assert_eq!(service.upload(&request, content, "url", stored).await, key);
    }
}

#[tokio::test]
async fn node_text_body_is_not_a_form() {
    let service = Service::start().await;
    let request = head("POST /photos/", "text/plain;charset=UTF-8") + "data:image/webp;base64,Uk==";
    service.request(&request, b"").await.check_error(415, "unsupported_media_type");
}

#[tokio::test]
async fn node_bytes_are_put_to_presigned_url() {
    let service = Service::start().await;
    let reply = service.client.get("/photos/presigned/a.png").await.json();
    let line = format!("PUT {}", path_of(&reply["presignedUrl"]));
    let request = head(&line, "image/png") + "<content>";
    assert_eq!(service.upload(&request, PNG, "url", "image/png").await, "a.png");
}
