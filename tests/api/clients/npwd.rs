//! NPWD, the phone of project-error: clients 4.4. node-fetch 3, with an empty prefix before the key, a header that is
//! called `false` where there is none, no boundary, and no line break at the end of the form.

use super::{OGG, Service, WEBP};

fn upload(credential: &str, kind: &str, part: &str) -> String {
    format!(
        "POST /photos/ HTTP/1.1\n\
         accept: */*\n\
         accept-encoding: gzip, deflate, br\n\
         {credential}\
         content-length: <length>\n\
         content-type: {kind}\n\
         user-agent: node-fetch\n\
         Host: cdn.example.com\n\
         Connection: keep-alive\n\
         \n\
         ------9806202738405588740836269925\n\
         Content-Disposition: form-data; {part}\n\
         \n\
         <content>\n\
         ------9806202738405588740836269925--"
    )
}

const FORCED: &str = "multipart/form-data";
const NAMED: &str = "multipart/form-data; boundary=----9806202738405588740836269925";
const IMAGE: &str = "name=\"image\"; filename=\"screenshot.webp\"\nContent-Type: image/webp";
const VOICE: &str = "name=\"recording\"; filename=\"recording-1f2e.ogg\"\nContent-Type: audio/ogg";

#[tokio::test]
async fn npwd_images_are_found_by_configured_indexes() {
    let service = Service::start().await;
    // `returnedDataIndexes`, one after another.
    for (credential, kind, indexes) in [
        ("authorization:  <key>\n", FORCED, &["url"][..]),
        ("authorization: <key>\n", NAMED, &["data", "url"]),
        ("authorization: Bearer <key>\n", FORCED, &["link"]),
    ] {
        let request = upload(credential, kind, IMAGE);
        service.upload(&request, WEBP, &indexes.join("."), "image/webp").await;
    }
}

#[tokio::test]
async fn npwd_sends_authorization_false_without_a_key() {
    let service = Service::start().await;
    let address = service.client.get("/api/presigned-url?path=photos/").await.json();
    let token = address["token"].as_str().unwrap();
    let request = upload("false:  undefined\n", FORCED, IMAGE);
    let request = request.replace("/photos/", &format!("/api/presigned-url/{token}"));
    service.upload(&request, WEBP, "url", "image/webp").await;
}

#[tokio::test]
async fn npwd_voice_messages_need_status_200_and_url() {
    let service = Service::start().await;
    let request = upload("authorization:  <key>\n", FORCED, VOICE);
    let key = service.upload(&request, OGG, "url", "audio/ogg").await;
    assert_eq!(key, "recording-1f2e.ogg");
}
