//! Forms byte by byte, in any style: clients 2 and 12. The forms of real clients are in `clients`.

use http::Method;
use tests::fixtures::path_of;
use tests::{Client, Reply, World};

const WEBP: &[u8] = b"RIFF\x24\0\0\0WEBPVP8 \x18\0\0\0";

/// Inserts the content in place of `<content>`.
fn filled(text: &[u8], content: &[u8]) -> Vec<u8> {
    const MARK: &[u8] = b"<content>";
    let at = text.windows(MARK.len()).position(|window| window == MARK).unwrap();
    [&text[..at], content, &text[at + MARK.len()..]].concat()
}

async fn post(client: &Client, content_type: &str, body: Vec<u8>) -> Reply {
    client.send_typed(Method::POST, "/photos/in/", content_type, &body).await
}

/// Posts a form with one file, and checks its key and type, and its delivery.
async fn check(content_type: &str, form: &[u8], content: &[u8], key: &str, kind: &str) {
    let (world, client) = World::with_bucket(1);
    let reply = post(&client, content_type, filled(form, content)).await;
    let shown = String::from_utf8_lossy(form);
    assert_eq!(reply.status, 200, "{} {shown}", reply.text());
    let reply = reply.json();
    assert_eq!(reply["key"], format!("in/{key}"), "{shown}");
    assert_eq!(reply["files"][0]["contentType"], kind, "{shown}");
    assert_eq!(reply["files"].as_array().unwrap().len(), 1, "{shown}");
    let path = &path_of(&reply["url"]);
    assert_eq!(client.get(path).await.body, content, "{shown}");
    assert_eq!(world.object_count("photos"), 1);
}

#[tokio::test]
async fn multipart_forms_of_every_client_style_are_parsed() {
    const NAMED: &str = "multipart/form-data; boundary=xyz";
    const KIND: &str = "image/webp";
    type Case = (&'static str, &'static [u8], &'static str);
    let cases: &[Case] = &[
        (
            "Multipart/Form-Data; charset=utf-8; BOUNDARY=\"x y\"",
            b"--x y\r\nContent-Disposition: form-data; filename=\"quoted.webp\"\r\n\r\n<content>\r\n\
                --x y--\r\n",
            "quoted.webp",
        ),
        (
            NAMED,
            b"a preamble\r\n--xyz\r\nCONTENT-DISPOSITION: form-data; filename=\"loud.webp\"\r\n\r\n\
                <content>\r\n--xyz--\r\nan epilogue",
            "loud.webp",
        ),
        (
            NAMED,
            b"--xyz\r\nContent-Disposition: form-data; name=\"f\"; filename=\"caf\xe9.webp\"\r\n\r\n\
                <content>\r\n--xyz--",
            "caf\u{e9}.webp",
        ),
        (
            NAMED,
            b"--xyz\r\nContent-Disposition: form-data; filename=\"x\"; filename*=UTF-8''caf%C3%A9.webp\r\n\r\n<content>\r\n--xyz--",
            "caf\u{e9}.webp",
        ),
        (
            NAMED,
            b"--xyz\r\nContent-Disposition: form-data; filename=\"a\\\"b.webp\"\r\n\r\n<content>\r\n--xyz--",
            "a\"b.webp",
        ),
        (
            NAMED,
            b"--xyz\r\nContent-Disposition: form-data; name=\"gks_image\"\r\n\
                Content-Type: image/webp\r\n\r\n<content>\r\n--xyz--",
            "",
        ),
        (
            NAMED,
            b"--xyz\r\nContent-Disposition: form-data; name=\"payload_json\"\r\n\
                Content-Type: application/json\r\n\r\n{}\r\n\
            --xyz\r\nContent-Disposition: form-data; name=\"file\"; filename=\"none.txt\"; filename=\"\"\r\n\r\n<content>\r\n--xyz--",
            "none.txt",
        ),
    ];
    for (content_type, form, key) in cases {
        if key.is_empty() {
            let (_world, client) = World::with_bucket(1);
            let reply = post(&client, content_type, filled(form, WEBP)).await.json();
            let key = reply["key"].as_str().unwrap();
            assert!(key.len() == "in/.webp".len() + 36 && key.ends_with(".webp"), "{key}");
        } else {
            check(content_type, form, WEBP, key, KIND).await;
        }
    }
}

#[tokio::test]
async fn multipart_accepts_every_field_name() {
    let fields = [
        "file",
        "files",
        "files[]",
        "file[]",
        "file0",
        "image",
        "video",
        "audio",
        "recording",
        "data",
        "gks_image",
        "",
    ];
    for field in fields {
        let form = format!(
            "--xyz\r\nContent-Disposition: form-data; name=\"{field}\"; filename=\"a.webp\"\r\n\r\n\
             <content>\r\n--xyz--\r\n"
        );
        let content_type = "multipart/form-data; boundary=xyz";
        check(content_type, form.as_bytes(), WEBP, "a.webp", "image/webp").await;
    }
}

#[tokio::test]
async fn multipart_empty_file_is_stored_and_empty_input_skipped() {
    let named = |name: &str| {
        format!(
            "--xyz\r\nContent-Disposition: form-data; name=\"f\"; filename=\"{name}\"\r\n\r\n\
            <content>\r\n--xyz--"
        )
    };
    let content_type = "multipart/form-data; boundary=xyz";
    check(content_type, named("empty.txt").as_bytes(), b"", "empty.txt", "text/plain").await;
    let (_world, client) = World::with_bucket(1);
    let reply = post(&client, content_type, filled(named("").as_bytes(), b"")).await;
    reply.check_error(400, "no_file");
}

#[tokio::test]
async fn invalid_multipart_is_rejected_and_stores_nothing() {
    let (world, client) = World::with_bucket(1);
    const NAMED: &str = "multipart/form-data; boundary=xyz";
    let cases: &[(&str, &[u8], u16, &str)] = &[
        (NAMED, b"", 400, "incomplete_body"),
        (NAMED, b"--xyz--\r\n", 400, "no_file"),
        (
            NAMED,
            b"--abc\r\nContent-Disposition: form-data; filename=\"a\"\r\n\r\n1\r\n\
            --abc--",
            400,
            "incomplete_body",
        ),
        (
            NAMED,
            b"--xyz\nContent-Disposition: form-data; filename=\"a\"\n\n1\n--xyz--\n",
            400,
            "incomplete_body",
        ),
        (
            NAMED,
            b"--xyz\r\nContent-Disposition: form-data; filename=\"a\"\r\n\r\n1",
            400,
            "incomplete_body",
        ),
        (NAMED, b"--xyz\r\nno colon here\r\n\r\n1\r\n--xyz--", 400, "bad_form"),
        ("multipart/form-data", b"", 400, "no_file"),
        ("multipart/form-data", b"no boundary at all", 400, "bad_form"),
        (
            "text/plain;charset=UTF-8",
            b"data:image/webp;base64,UklGRg==",
            415,
            "unsupported_media_type",
        ),
        (
            "application/json",
            b"{\"data\":\"data:image/webp;base64,\"}",
            415,
            "unsupported_media_type",
        ),
        ("application/x-www-form-urlencoded", b"image=UklGRg%3D%3D", 415, "unsupported_media_type"),
        ("image/webp", b"RIFF", 415, "unsupported_media_type"),
        ("multipart/mixed; boundary=xyz", b"--xyz--", 415, "unsupported_media_type"),
    ];
    for (content_type, body, status, code) in cases {
        let reply = post(&client, content_type, body.to_vec()).await;
        assert_eq!(
            (reply.status.as_u16(), &reply.json()["code"]),
            (*status, &(*code).into()),
            "{content_type} {}",
            String::from_utf8_lossy(body)
        );
        reply.check_error(*status, code);
    }
    assert_eq!(world.object_count("photos"), 0);
}
