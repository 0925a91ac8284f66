//! FXServer's `PerformHttpRequest`: clients 4.5. libcurl, with a body of no bytes where a script gives none.

use super::{PNG, Service};

/// Builds a GET of a script, with this `Authorization`.
pub(super) fn get(target: &str, credential: &str) -> String {
    request("GET", target, credential, "")
}

/// Builds a DELETE of a script.
pub(super) fn delete(target: &str, credential: &str) -> String {
    let body = "Content-Length: 0\nContent-Type: application/x-www-form-urlencoded\n";
    request("DELETE", target, credential, body)
}

fn request(method: &str, target: &str, credential: &str, body: &str) -> String {
    format!(
        "{method} {target} HTTP/1.1\n\
         Host: cdn.example.com\n\
         User-Agent: FXServer/PerformHttpRequest\n\
         Accept: */*\n\
         Accept-Encoding: deflate, gzip\n\
         Authorization: {credential}\n\
         {body}\n"
    )
}

#[tokio::test]
async fn fxserver_delete_with_empty_body_is_accepted() {
    let service = Service::start().await;
    for (name, credential) in [("a.png", "<key>"), ("b.png", "Bearer <key>")] {
        service.client.put("/photos/", name, PNG).await;
        let target = format!("/photos/{name}");
        let reply = service.request(&delete(&target, credential), b"").await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert_eq!(reply.json()["message"], format!("Deleted photos/{name}"));
        // A script gets the body of a failure as text, after `HTTP 404: `: short, and JSON.
        let again = service.request(&delete(&target, credential), b"").await;
        again.check_error(404, "file_not_found");
        assert!(again.body.len() < 300, "{}", again.text());
    }
}

#[tokio::test]
async fn fxserver_delete_with_empty_chunked_body_is_accepted() {
    let service = Service::start().await;
    service.client.put("/photos/", "a.png", PNG).await;
    let request = delete("/photos/a.png", "<key>")
        .replace("Content-Length: 0", "Transfer-Encoding: chunked")
        + "0\n\n";
    assert_eq!(service.request(&request, b"").await.status, 200);
    assert_eq!(service.world.object_count("photos"), 0);
}
