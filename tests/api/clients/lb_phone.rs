//! lb-phone and lb-tablet, their templates of `shared/upload.lua`: clients 4.2. A page of the game uploads; the key or
//! the token comes from the game's server.

use serde_json::Value;
use tests::fixtures::path_of;

use super::browser::{END, FORM, nui, one_file, part};
use super::fxserver::get;
use super::{Service, WEBM, WEBP, field};

/// Picture, video and audio, as a phone records them.
const MEDIA: [(&str, &str, &[u8], &str); 3] = [
    ("photo.webp", "image/webp", WEBP, "image/webp"),
    ("video.webm", "video/webm", WEBM, "video/webm"),
    ("audio.weba", "audio/webm;codecs=opus", WEBM, "audio/webm"),
];

/// Whether the template counts the response as success: `error.path` does not hold `error.value`, and `success.path`
/// leads to a link.
fn succeeded(answer: &Value, read: &str) -> bool {
    answer["success"] != Value::Bool(false) && field(answer, read).is_string()
}

#[tokio::test]
async fn lb_phone_custom_template_sends_key_in_header_and_url() {
    let service = Service::start().await;
    let key = service.client.key().to_owned();
    for (name, kind, content, stored) in MEDIA {
        let line = format!("POST /phone/upload/?api={key}");
        let request = nui(&line, "Authorization: Key <key>\n", FORM, &one_file("file", name, kind));
        let stored = service.upload(&request, content, "url", stored).await;
        assert_eq!(stored, format!("upload/{name}"));
    }
    // A URL pasted without the last `/` is a folder in a phone's bucket.
    let form = one_file("file", "photo.webp", "image/webp");
    let request = nui("POST /phone/images", "Authorization: Key <key>\n", FORM, &form);
    assert_eq!(service.upload(&request, WEBP, "url", "image/webp").await, "images/photo.webp");
}

#[tokio::test]
async fn lb_phone_failure_is_reported_in_the_body() {
    let service = Service::start().await;
    let form = one_file("file", "photo.webp", "image/webp");
    for (own, line) in
        [("Authorization: Key API_KEY\n", "/phone/"), ("Authorization: Key <key>\n", "/nowhere/")]
    {
        let reply = service.request(&nui(&format!("POST {line}"), own, FORM, &form), WEBP).await;
        assert!(reply.status.is_client_error());
        // A page may only read this across origins because errors carry the header, too.
        assert_eq!(reply.header("access-control-allow-origin"), "*");
        assert!(!succeeded(&reply.json(), "url"), "{}", reply.text());
    }
}

#[tokio::test]
async fn lb_phone_lb_upload_template_sends_bare_key() {
    let service = Service::start().await;
    let form = one_file("file", "photo.webp", "image/webp");
    let request = nui("POST /phone/", "Authorization: <key>\n", FORM, &form);
    service.upload(&request, WEBP, "link", "image/webp").await;
}

#[tokio::test]
async fn lb_phone_older_versions_name_field_after_content() {
    let service = Service::start().await;
    for (field, read, at) in [
        ("image", "url", 0),
        ("video", "url", 1),
        ("recording", "url", 2),
        ("files[]", "urls.0", 0),
    ] {
        let (name, kind, content, stored) = MEDIA[at];
        let form = one_file(field, name, kind);
        let request = nui("POST /phone/older/", "Authorization: Bearer <key>\n", FORM, &form);
        service.upload(&request, content, read, stored).await;
    }
    // Fivemanage's v1 took the key from the address, too.
    let line = format!("POST /phone/?apiKey={}", service.client.key());
    let form = one_file("image", "photo.webp", "image/webp");
    service.upload(&nui(&line, "", FORM, &form), WEBP, "url", "image/webp").await;
}

#[tokio::test]
async fn lb_phone_fivemanage_and_qbox_templates_fetch_url_and_post() {
    let service = Service::start().await;
    for credential in ["<key>", "Bearer <key>"] {
        let line = "/api/presigned-url?path=phone/calls/&fileType=image";
        let reply = service.request(&get(line, credential), b"").await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        let reply = reply.json();
        let path = &path_of(field(&reply, "data.presignedUrl"));
        // Fivemanage's gets a field with metadata of the picture, before or after the file.
        let metadata = part("name=\"metadata\"", "", "{\"name\":\"photo\",\"description\":\"x\"}");
        let file = part("name=\"file\"; filename=\"photo.webp\"", "image/webp", "<content>");
        let form =
            if credential == "<key>" { file + &metadata + END } else { metadata + &file + END };
        let request = nui(&format!("POST {path}"), "", FORM, &form);
        let reply = service.request(&request, WEBP).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        let reply = reply.json();
        assert!(succeeded(&reply, "data.url"));
        service.check_link(field(&reply, "data.url"), WEBP, "image/webp").await;
        for read in ["data.id", "data.path"] {
            assert!(field(&reply, read).as_str().unwrap().starts_with("calls/photo"), "{reply}");
        }
        assert_eq!(reply["status"], "ok");
    }
}

#[tokio::test]
async fn lb_phone_presigned_template_puts_bytes() {
    let service = Service::start().await;
    for (name, kind, content, stored) in MEDIA {
        let line = format!("/phone/presigned/calls/{name}?expiresIn=60");
        let reply = service.request(&get(&line, "<key>"), b"").await.json();
        let address = field(&reply, "presignedUrl");
        let path = path_of(address);
        let put = nui(&format!("PUT {path}"), "", kind, "<content>");
        let reply = service.request(&put, content).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert!(reply.header("etag").starts_with('"'));
        let (public, _) = address.as_str().unwrap().split_once('?').unwrap();
        service.check_link(&public.into(), content, stored).await;
    }
}

#[tokio::test]
async fn lb_phone_put_preflight_is_allowed() {
    let service = Service::start().await;
    let request = "OPTIONS /phone/calls/a.webp?token=x HTTP/1.1\n\
         Host: cdn.example.com\n\
         Access-Control-Request-Method: PUT\n\
         Access-Control-Request-Headers: content-type\n\
         Origin: https://cfx-nui-lb-phone\n\
         \n";
    let reply = service.request(request, b"").await;
    assert_eq!(reply.status, 204);
    assert!(reply.header("access-control-allow-methods").contains("PUT"));
    assert_eq!(reply.header("access-control-allow-headers"), "content-type");
}
