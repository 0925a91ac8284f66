//! axios 1 with form-data 4: clients 4.6. A form of streams comes in chunks, one for each write.

use super::{PNG, Service};

const HEAD: &str = "POST /photos/ HTTP/1.1\n\
    Accept: application/json, text/plain, */*\n\
    Content-Type: multipart/form-data; boundary=--------------------------88c3bc5f2d37e455cf7668ba\n\
    Authorization: <key>\n\
    User-Agent: axios/1.21.1\n";

const REST: &str = "Accept-Encoding: gzip, compress, deflate, br\n\
    Host: cdn.example.com\n\
    Connection: keep-alive\n";

const PART: &str = "----------------------------88c3bc5f2d37e455cf7668ba\n\
    Content-Disposition: form-data; name=\"file\"; filename=\"a.png\"\n\
    Content-Type: image/png\n\
    \n";

#[tokio::test]
async fn axios_buffer_form_has_content_length() {
    let service = Service::start().await;
    let request = format!(
        "{HEAD}Content-Length: <length>\n{REST}\n{PART}<content>\n\
         ----------------------------88c3bc5f2d37e455cf7668ba\n\
         Content-Disposition: form-data; name=\"filename\"\n\
         \n\
         my shot\n\
         ----------------------------88c3bc5f2d37e455cf7668ba--\n"
    );
    assert_eq!(service.upload(&request, PNG, "url", "image/png").await, "a.png");
}

#[tokio::test]
async fn axios_stream_form_is_chunked() {
    let service = Service::start().await;
    let (head, tail) = PNG.split_at(5);
    let after = "\r\n----------------------------88c3bc5f2d37e455cf7668ba--\r\n";
    let chunks = [super::lines(PART), head.to_vec(), tail.to_vec(), after.into()];
    let mut body = Vec::new();
    for chunk in chunks {
        body.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        body.extend_from_slice(&chunk);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"0\r\n\r\n");
    let request = format!("{HEAD}{REST}Transfer-Encoding: chunked\n\n<content>");
    let reply = service.request(&request, &body).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    service.check_link(&reply.json()["url"], PNG, "image/png").await;
}
