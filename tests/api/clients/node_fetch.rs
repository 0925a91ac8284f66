//! node-fetch 3: clients 4.6. Names of headers in small letters, and no line break at the end of a form.

use super::{OGG, Service};

#[tokio::test]
async fn node_fetch_form_without_final_crlf_is_accepted() {
    let service = Service::start().await;
    let request = "POST /photos/ HTTP/1.1\n\
        accept: */*\n\
        accept-encoding: gzip, deflate, br\n\
        authorization: <key>\n\
        content-length: <length>\n\
        content-type: multipart/form-data; boundary=----2213260825703584313860314041\n\
        user-agent: node-fetch\n\
        Host: cdn.example.com\n\
        Connection: keep-alive\n\
        \n\
        ------2213260825703584313860314041\n\
        Content-Disposition: form-data; name=\"recording\"; filename=\"recording-1f2e.ogg\"\n\
        Content-Type: audio/ogg\n\
        \n\
        <content>\n\
        ------2213260825703584313860314041--";
    let key = service.upload(request, OGG, "url", "audio/ogg").await;
    assert_eq!(key, "recording-1f2e.ogg");
}
