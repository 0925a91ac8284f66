//! screenshot-basic: clients 4.3. Bytes after its `ui/src/main.ts`: a page of the game posts a form, with the headers
//! that the caller gives, and returns the response as text.

use super::browser::{FORM, nui, one_file};
use super::{PNG, Service, WEBP};

const FORCED: &str = "multipart/form-data";

#[tokio::test]
async fn screenshot_basic_accepts_any_field_name() {
    let service = Service::start().await;
    for field in ["file", "files[]", "image", "gks_image"] {
        let form = one_file(field, "screenshot.webp", "image/webp");
        let request = nui("POST /photos/", "authorization: <key>\n", FORM, &form);
        service.upload(&request, WEBP, "url", "image/webp").await;
    }
    let form = one_file("file", "screenshot.jpg", "image/jpeg");
    let request = nui("POST /photos/", "authorization: <key>\n", FORM, &form);
    let jpeg = b"\xff\xd8\xff\xe0\0\x10JFIF\0";
    assert_eq!(service.upload(&request, jpeg, "url", "image/jpeg").await, "screenshot.jpg");
}

#[tokio::test]
async fn screenshot_basic_custom_type_loses_the_boundary() {
    let service = Service::start().await;
    for kind in [FORCED, "multipart/form-data;", "Multipart/Form-Data", "multipart/form-data; "] {
        let form = one_file("files[]", "screenshot.png", "image/png");
        let request = nui("POST /photos/", "authorization: Bearer <key>\n", kind, &form);
        service.upload(&request, PNG, "url", "image/png").await;
    }
}

#[tokio::test]
async fn screenshot_basic_base64_image_is_rejected_in_json() {
    let service = Service::start().await;
    for (kind, body) in [
        ("text/plain;charset=UTF-8", "{\"data\":\"data:image/webp;base64,UklGRg==\",\"id\":\"1\"}"),
        ("application/json", "{\"data\":\"data:image/webp;base64,UklGRg==\",\"id\":\"1\"}"),
        ("text/plain;charset=UTF-8", "UklGRg=="),
        ("application/x-www-form-urlencoded", "image=UklGRg%3D%3D"),
    ] {
        let request = nui("POST /photos/", "authorization: <key>\n", kind, body);
        let reply = service.request(&request, b"").await;
        reply.check_error(415, "unsupported_media_type");
    }
    assert_eq!(service.world.object_count("photos"), 0);
}
