//! screencapture: clients 4.3. Bytes after its `game/server/process-upload.ts`: form-data over node-fetch, a field
//! `filename` without an extension behind the file.

use super::{Service, WEBM, WEBP};

fn upload(file_name: &str, kind: &str) -> String {
    format!(
        "POST /photos/ HTTP/1.1\n\
         accept: */*\n\
         accept-encoding: gzip, deflate, br\n\
         authorization: <key>\n\
         content-length: <length>\n\
         content-type: multipart/form-data; boundary=--------------------------a2bf5630d47dbe9d78d8c483\n\
         user-agent: screencapture/0.9.0\n\
         x-screencapture-resource: screencapture\n\
         x-screencapture-server-name: My ^1server^7\n\
         x-screencapture-upload-host: cdn.example.com\n\
         Host: cdn.example.com\n\
         Connection: keep-alive\n\
         \n\
         ----------------------------a2bf5630d47dbe9d78d8c483\n\
         Content-Disposition: form-data; name=\"file\"; filename=\"{file_name}\"\n\
         Content-Type: {kind}\n\
         \n\
         <content>\n\
         ----------------------------a2bf5630d47dbe9d78d8c483\n\
         Content-Disposition: form-data; name=\"filename\"\n\
         \n\
         my recording\n\
         ----------------------------a2bf5630d47dbe9d78d8c483--\n"
    )
}

#[tokio::test]
async fn screencapture_filename_field_is_ignored() {
    let service = Service::start().await;
    for (name, kind, content) in
        [("recording.webm", "video/webm", WEBM), ("my recording.webp", "image/webp", WEBP)]
    {
        let key = service.upload(&upload(name, kind), content, "url", kind).await;
        assert_eq!(key, name);
    }
}

#[tokio::test]
async fn screencapture_base64_image_is_rejected_in_json() {
    let service = Service::start().await;
    let request = "POST /photos/ HTTP/1.1\n\
         accept: */*\n\
         accept-encoding: gzip, deflate, br\n\
         authorization: <key>\n\
         content-length: <length>\n\
         content-type: text/plain;charset=UTF-8\n\
         user-agent: screencapture/0.9.0\n\
         Host: cdn.example.com\n\
         Connection: keep-alive\n\
         \n\
         data:image/webp;base64,UklGRg==";
    service.request(request, b"").await.check_error(415, "unsupported_media_type");
}
