//! ShareX, a custom uploader: clients 4.1. Bytes after `ShareX.UploadersLib/Helpers/RequestHelpers.cs`.

use super::{PNG, Service, WEBM, field};

/// Builds an upload of the file, after an argument, as in all of them.
fn upload(file_name: &str, kind: &str) -> String {
    format!(
        "POST /photos/ HTTP/1.1\n\
         Host: cdn.example.com\n\
         User-Agent: ShareX/17.0.0\n\
         Authorization: Bearer <key>\n\
         Content-Type: multipart/form-data; boundary=--------------------8dd3f2a1b4c5e6f\n\
         Content-Length: <length>\n\
         \n\
         ----------------------8dd3f2a1b4c5e6f\n\
         Content-Disposition: form-data; name=\"album\"\n\
         \n\
         holiday\n\
         ----------------------8dd3f2a1b4c5e6f\n\
         Content-Disposition: form-data; name=\"file\"; filename=\"{file_name}\"\n\
         Content-Type: {kind}\n\
         \n\
         <content>\n\
         ----------------------8dd3f2a1b4c5e6f--\n"
    )
}

#[tokio::test]
async fn sharex_screenshot_gets_link_and_optional_thumbnail() {
    let service = Service::start().await;
    let request = upload("Bild \u{e4}\u{65e5}.png", "image/png");
    for read in ["url", "files[0].url", "urls[0]"] {
        service.upload(&request, PNG, read, "image/png").await;
    }
    // It retries when a response is lost: the existing file stays.
    let reply = service.request(&request, PNG).await.json();
    assert_eq!(reply["key"], "Bild \u{e4}\u{65e5} (3).png");
    // `{json:thumbnailUrl}` takes null for an empty value.
    let thumbnail = field(&reply, "thumbnailUrl");
    assert!(thumbnail.is_null() || thumbnail.is_string(), "{thumbnail}");
}

#[tokio::test]
async fn sharex_unknown_type_is_sniffed_from_bytes() {
    let service = Service::start().await;
    let avif = b"\0\0\0\x1cftypavif\0\0\0\0avifmif1miaf";
    for (name, declared, content, kind) in [
        ("a.avif", "application/octet-stream", &avif[..], "image/avif"),
        ("a.webm", "video/webm", WEBM, "video/webm"),
        ("note.txt", "text/plain", b"hello", "text/plain; charset=utf-8"),
    ] {
        let key = service.upload(&upload(name, declared), content, "url", kind).await;
        assert_eq!(key, name);
    }
}

#[tokio::test]
async fn sharex_rejection_has_status_and_message() {
    let service = Service::start().await;
    let request = upload("a.png", "image/png");
    let wrong = [
        (request.replace("<key>", "wrong"), 401),
        (request.replace("Authorization: Bearer <key>\n", ""), 401),
        (request.replace("/photos/", "/nowhere/"), 404),
        (request.replace("/photos/", "/photos/a/../b"), 400),
        (request.replace("POST", "PATCH"), 405),
        (request.replace("multipart/form-data; boundary", "application/json; x"), 415),
    ];
    for (request, status) in wrong {
        let reply = service.request(&request, PNG).await;
        assert_eq!(reply.status, status, "{request}: {}", reply.text());
        // It casts the value of `{json:error}` to a string.
        let json = reply.json();
        assert!(field(&json, "error").is_string() && json["success"] == false, "{json}");
    }
    assert_eq!(service.world.object_count("photos"), 0);
}

#[tokio::test]
async fn sharex_deletion_link_opened_by_get_deletes_nothing() {
    let service = Service::start().await;
    let request = upload("a.png", "image/png");
    service.upload(&request, PNG, "url", "image/png").await;
    for address in ["/photos/a.png?delete=true", "/photos/a.png?_method=DELETE"] {
        let request = format!("GET {address} HTTP/1.1\nHost: a\nConnection: close\n\n");
        assert_eq!(service.request(&request, b"").await.status, 200);
    }
    assert_eq!(service.world.object_count("photos"), 1);
}
