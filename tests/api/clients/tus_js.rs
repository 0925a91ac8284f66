//! tus-js-client 4: recorded from it, under Node. The real one runs in `tests/process/tus_js.rs`.

use super::Service;

const CREATION: &str = "POST /api/tus/ HTTP/1.1\n\
    Tus-Resumable: 1.0.0\n\
    Authorization: Bearer <key>\n\
    Upload-Length: 22\n\
    Upload-Metadata: bucketName cGhvdG9z,filename VG9tICYgSS50eHQ=,filetype dGV4dC9wbGFpbg==\n\
    Host: cdn.example.com\n\
    Connection: keep-alive\n\
    Content-Length: 0\n\
    \n";

fn piece(method: &str, location: &str, offset: usize, more: &str, bytes: &str) -> String {
    format!(
        "{method} /api/tus/{location} HTTP/1.1\n\
         Tus-Resumable: 1.0.0\n\
         Authorization: Bearer <key>\n\
         {more}\
         Upload-Offset: {offset}\n\
         Content-Type: application/offset+octet-stream\n\
         Content-Length: <length>\n\
         Host: cdn.example.com\n\
         Connection: keep-alive\n\
         \n\
         {bytes}"
    )
}

/// Builds a request without a body about an upload.
fn about(method: &str, location: &str) -> String {
    format!(
        "{method} /api/tus/{location} HTTP/1.1\n\
         Tus-Resumable: 1.0.0\n\
         Authorization: Bearer <key>\n\
         Host: cdn.example.com\n\
         Connection: keep-alive\n\
         \n"
    )
}

#[tokio::test]
async fn tus_js_upload_in_chunks_over_one_connection() {
    let service = Service::start().await;
    let mut wire = service.listening.send("").await;
    let created = service.request_on(&mut wire, CREATION, b"").await;
    assert_eq!(created.status, 201);
    // It resolves the location against the address of the endpoint.
    let location = created.header("location").to_owned();
    for (offset, bytes) in [(0, "hello worl"), (10, "d, hello t"), (20, "us")] {
        let request = piece("PATCH", &location, offset, "", bytes);
        let reply = service.request_on(&mut wire, &request, b"").await;
        assert_eq!(reply.status, 204, "{}", reply.text());
        assert_eq!(reply.header("upload-offset"), (offset + bytes.len()).to_string());
        // A resumed client first queries the offset.
        let info = service.request_on(&mut wire, &about("HEAD", &location), b"").await;
        assert_eq!(info.status, 200);
        assert_eq!(info.header("upload-offset"), reply.header("upload-offset"));
        assert_eq!(info.header("upload-length"), "22");
    }
    let info = service.request_on(&mut wire, &about("HEAD", &location), b"").await;
    let link = info.header("x-object-url").into();
    service.check_link(&link, b"hello world, hello tus", "text/plain; charset=utf-8").await;
}

#[tokio::test]
async fn tus_js_checksum_creation_data_and_method_override() {
    let service = Service::start().await;
    let mut wire = service.listening.send("").await;
    let sum = "Upload-Checksum: sha256 Nuyb2u6Afyrgf59DyFGs5AutHmWfBPgxcEq+nS788t8=\n";
    let creation =
        CREATION.replace("Content-Length: 0\n\n", "Content-Length: <length>\n\nhello worl");
    let creation = creation
        .replace("Host:", &format!("{sum}Content-Type: application/offset+octet-stream\nHost:"));
    let created = service.request_on(&mut wire, &creation, b"").await;
    assert_eq!((created.status.as_u16(), created.header("upload-offset")), (201, "10"));
    let location = created.header("location").to_owned();
    let sum = "Upload-Checksum: sha256 UvyKH4pqc0DfYc9VtBo5UFbYs14cZaoA+WFZa2wyr6A=\n";
    let overridden = format!("X-HTTP-Method-Override: PATCH\n{sum}");
    let second = piece("POST", &location, 10, &overridden, "d, hello t");
    assert_eq!(service.request_on(&mut wire, &second, b"").await.status, 204);
    let wrong = piece("PATCH", &location, 20, sum, "us");
    service.request_on(&mut wire, &wrong, b"").await.check_error(460, "checksum_mismatch");
    let info = service.request_on(&mut wire, &about("HEAD", &location), b"").await;
    assert_eq!(info.header("upload-offset"), "20");
}

#[tokio::test]
async fn tus_js_upload_is_terminated() {
    let service = Service::start().await;
    let mut wire = service.listening.send("").await;
    let created = service.request_on(&mut wire, CREATION, b"").await;
    let location = created.header("location").to_owned();
    service.request_on(&mut wire, &piece("PATCH", &location, 0, "", "hello worl"), b"").await;
    assert_eq!(service.request_on(&mut wire, &about("DELETE", &location), b"").await.status, 204);
    assert_eq!(service.request_on(&mut wire, &about("HEAD", &location), b"").await.status, 404);
    assert_eq!(service.world.object_count("photos"), 0);
}

#[tokio::test]
async fn tus_js_bytes_before_client_stop_are_kept() {
    let service = Service::start().await;
    let created = service.request(CREATION, b"").await;
    let location = created.header("location").to_owned();
    let whole = piece("PATCH", &location, 0, "", "hello world, hello tus");
    let whole = service.filled(&whole, b"");
    let stopped = service.listening.send(&whole[..whole.len() - 8]).await;
    drop(stopped);
    // The server may not have read all received bytes at the time of the query; it then responds with a conflict, and
    // the client queries again.
    let reply = loop {
        let info = service.request(&about("HEAD", &location), b"").await;
        let offset: usize = info.header("upload-offset").parse().unwrap();
        assert!(offset <= 14, "{offset}");
        let rest = &"hello world, hello tus"[offset..];
        let reply = service.request(&piece("PATCH", &location, offset, "", rest), b"").await;
        if reply.status == 204 {
            break reply;
        }
        assert!([409, 423].contains(&reply.status.as_u16()), "{}", reply.text());
    };
    let link = reply.header("x-object-url").into();
    service.check_link(&link, b"hello world, hello tus", "text/plain; charset=utf-8").await;
}
