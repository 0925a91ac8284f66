//! Browsers: `fetch` with a form, with a text, and across origins. The browser inside a game (NUI) is a Chromium, too.

use super::{PNG, Service, WEBM, field};

const AGENT: &str = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) CitizenFX/1.0.0.12913 Chrome/103.0.5060.141 Safari/537.36";

/// Builds a request of a page inside a game, with its own headers before those of the browser.
pub(super) fn nui(line: &str, own: &str, kind: &str, body: &str) -> String {
    format!(
        "{line} HTTP/1.1\n\
         Host: cdn.example.com\n\
         Connection: keep-alive\n\
         Content-Length: <length>\n\
         sec-ch-ua: \" Not;A Brand\";v=\"99\", \"Chromium\";v=\"103\"\n\
         {own}\
         Content-Type: {kind}\n\
         sec-ch-ua-mobile: ?0\n\
         User-Agent: {AGENT}\n\
         sec-ch-ua-platform: \"Windows\"\n\
         Accept: */*\n\
         Origin: https://cfx-nui-phone\n\
         Sec-Fetch-Site: cross-site\n\
         Sec-Fetch-Mode: cors\n\
         Sec-Fetch-Dest: empty\n\
         Referer: https://cfx-nui-phone/\n\
         Accept-Encoding: gzip, deflate, br\n\
         Accept-Language: en-US,en;q=0.9\n\
         \n\
         {body}"
    )
}

/// Content type of a form of Chromium.
pub(super) const FORM: &str = "multipart/form-data; boundary=----WebKitFormBoundary7MA4YWxkTrZu0gW";

/// Builds a part of such a form.
pub(super) fn part(disposition: &str, kind: &str, value: &str) -> String {
    let kind = if kind.is_empty() { String::new() } else { format!("Content-Type: {kind}\n") };
    format!(
        "------WebKitFormBoundary7MA4YWxkTrZu0gW\n\
         Content-Disposition: form-data; {disposition}\n\
         {kind}\n\
         {value}\n"
    )
}

/// End of such a form.
pub(super) const END: &str = "------WebKitFormBoundary7MA4YWxkTrZu0gW--\n";

/// Builds a form with one file.
pub(super) fn one_file(field: &str, file_name: &str, kind: &str) -> String {
    let disposition = format!("name=\"{field}\"; filename=\"{file_name}\"");
    part(&disposition, kind, "<content>") + END
}

const KEY: &str = "Authorization: Bearer <key>\n";

#[tokio::test]
async fn browser_form_with_special_names_is_accepted() {
    let service = Service::start().await;
    let form = one_file("file", "a%22b\u{65e5}%0D%0A.png", "image/png");
    let request = nui("POST /photos/", KEY, FORM, &form);
    assert_eq!(service.upload(&request, PNG, "url", "image/png").await, "a\"b\u{65e5}.png");
    // Firefox has another boundary.
    let boundary = "---------------------------735323031399963166993862150";
    let form = form.replace("----WebKitFormBoundary7MA4YWxkTrZu0gW", boundary);
    let kind = format!("multipart/form-data; boundary={boundary}");
    let request = nui("POST /photos/x/", KEY, &kind, &form);
    service.upload(&request, PNG, "url", "image/png").await;
}

#[tokio::test]
async fn browser_multiple_files_keep_their_order() {
    let service = Service::start().await;
    let parts = [
        part("name=\"files[]\"; filename=\"b.png\"", "image/png", "<content>"),
        part("name=\"files[]\"; filename=\"a.txt\"", "text/plain", "two"),
        part("name=\"note\"", "", "three"),
    ];
    let form = parts.concat() + END;
    let reply = service.request(&nui("POST /photos/", KEY, FORM, &form), PNG).await.json();
    assert_eq!(reply["message"], "Successfully uploaded 2 file(s)");
    service.check_link(field(&reply, "urls.0"), PNG, "image/png").await;
    service.check_link(field(&reply, "urls.1"), b"two", "text/plain; charset=utf-8").await;
    assert_eq!(reply["urls"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn browser_media_recorder_blob_without_name_is_accepted() {
    let service = Service::start().await;
    for (kind, key, stored) in [
        ("video/webm;codecs=vp8,opus", "blob.webm", "video/webm"),
        ("audio/webm;codecs=opus", "blob.weba", "audio/webm"),
    ] {
        let request = nui("POST /photos/", KEY, FORM, &one_file("file", "blob", kind));
        assert_eq!(service.upload(&request, WEBM, "url", stored).await, key);
    }
}

#[tokio::test]
async fn browser_text_body_is_not_a_form() {
    let service = Service::start().await;
    let kind = "text/plain;charset=UTF-8";
    let request = nui("POST /photos/", KEY, kind, "data:image/webp;base64,UklGRg==");
    service.request(&request, b"").await.check_error(415, "unsupported_media_type");
}

#[tokio::test]
async fn browser_preflight_precedes_api_key_header() {
    let service = Service::start().await;
    let preflight = "OPTIONS /photos/ HTTP/1.1\n\
         Host: cdn.example.com\n\
         Connection: keep-alive\n\
         Accept: */*\n\
         Access-Control-Request-Method: POST\n\
         Access-Control-Request-Headers: authorization,content-type\n\
         Origin: https://cfx-nui-phone\n\
         User-Agent: Mozilla/5.0\n\
         Sec-Fetch-Mode: cors\n\
         Sec-Fetch-Site: cross-site\n\
         Sec-Fetch-Dest: empty\n\
         Referer: https://cfx-nui-phone/\n\
         Accept-Encoding: gzip, deflate, br\n\
         Accept-Language: en-US,en;q=0.9\n\
         \n";
    let reply = service.request(preflight, b"").await;
    assert_eq!(reply.status, 204);
    assert_eq!(reply.header("access-control-allow-origin"), "*");
    // `*` would not cover `authorization`.
    assert_eq!(reply.header("access-control-allow-headers"), "authorization,content-type");
    assert!(reply.header("access-control-allow-methods").contains("POST"));
}
