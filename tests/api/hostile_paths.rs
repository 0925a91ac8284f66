//! Ambiguous paths, byte by byte and at every route that takes one: product 5.1 and 5.4.

use listener::options::ConnectionOptions;
use tests::wire::Listening;
use tests::{Client, World};

/// A service with the files `a/b`, `a%2Fb` and `é`, on a socket.
struct Town {
    world: World,
    client: Client,
    listening: Listening,
}

impl Town {
    async fn new() -> Self {
        let (world, client) = World::with_bucket(1);
        client.put("/photos/a/b", "x", b"slash").await;
        client.put("/photos/a%252Fb", "x", b"escaped").await;
        client.put("/photos/caf%C3%A9", "x", b"composed").await;
        let listening = world.listen(ConnectionOptions::new()).await;
        Self { world, client, listening }
    }

    /// Sends the target unchanged, without a client library.
    async fn request(&self, method: &str, target: &[u8]) -> tests::Reply {
        let key = self.client.key();
        let boundary = "multipart/form-data; boundary=x";
        let body =
            "--x\r\nContent-Disposition: form-data; filename=\"n.txt\"\r\n\r\n1\r\n--x--\r\n";
        let head = format!(
            " HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\nContent-Type: {boundary}\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let request = [method.as_bytes(), b" ", target, head.as_bytes()].concat();
        let mut wire = self.listening.send(request).await;
        if method == "HEAD" {
            wire.read_response_to_head().await
        } else {
            wire.read_response().await
        }
    }
}

const METHODS: [&str; 4] = ["GET", "HEAD", "POST", "DELETE"];

#[tokio::test]
async fn path_invalid_as_key_is_rejected_for_every_method() {
    let town = Town::new().await;
    let overlong = format!("/photos/{}", "k".repeat(9_000));
    let rows: Vec<&[u8]> = vec![
        b"/photos/../api/list-objects",
        b"/photos/%2e%2e/api/list-objects",
        b"/photos/.%2e/a/b",
        b"/photos/%2E%2E%2f%2e%2e%2fetc/passwd",
        b"/photos/a/./b",
        b"/photos/a/%2e/b",
        b"/photos/a/..",
        b"/photos/..",
        b"/photos/.",
        b"/photos/a//b",
        b"/photos//x",
        b"/photos/%2fx",
        b"/photos/a%2f%2fb",
        b"/photos/a%00b",
        b"/photos/a%0ab",
        b"/photos/a%0d%0aX-Evil:%201",
        b"/photos/a%09b",
        b"/photos/a%1bb",
        b"/photos/a%7fb",
        b"/photos/a%c2%85b",
        b"/photos/a%5cb",
        b"/photos/a%5c..%5cb",
        b"/photos/..%5c..%5cb",
        b"/photos/a\\b",
        b"/photos/%ff",
        b"/photos/%c0%ae%c0%ae/x",
        b"/photos/%e0%80%af",
        b"/photos/%ed%a0%80",
        b"/photos/%f4%90%80%80",
        b"/photos/%",
        b"/photos/a%2",
        b"/photos/a%zz",
        b"/photos/a%u0041",
        overlong.as_bytes(),
    ];
    for target in rows {
        for method in METHODS {
            let reply = town.request(method, target).await;
            let shown = String::from_utf8_lossy(&target[..target.len().min(60)]);
            assert!(
                [400, 414].contains(&reply.status.as_u16()),
                "{method} {shown}: {} {}",
                reply.status,
                reply.text()
            );
            assert_eq!(reply.header("content-type"), "application/json", "{method} {shown}");
            assert_eq!(reply.header("x-evil"), "", "{method} {shown}");
        }
        // The same target in the address of a presigned upload, and as the requested path.
        let tail = &target["/photos/".len()..];
        let presign = [b"/photos/presigned/", tail].concat();
        let reply = town.request("GET", &presign).await;
        assert!([400, 414].contains(&reply.status.as_u16()), "{}", reply.text());
        if is_malformed(tail) {
            continue;
        }
        let token = [b"/api/presigned-url?path=photos/", tail].concat();
        let reply = town.request("GET", &token).await;
        let shown = String::from_utf8_lossy(&token);
        assert!([400, 414].contains(&reply.status.as_u16()), "{shown}: {}", reply.text());
    }
    assert_eq!(town.world.object_count("photos"), 3);
}

/// Whether an escape is malformed: in a query, which forms write too, it is literal.
fn is_malformed(text: &[u8]) -> bool {
    let mut after = text.split(|byte| *byte == b'%').skip(1);
    after.any(|rest| !rest.get(..2).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit)))
}

#[tokio::test]
async fn path_resembling_a_bucket_is_rejected() {
    let town = Town::new().await;
    for target in [
        &b"//photos/a/b"[..],
        b"/%2e%2e/a/b",
        b"/../photos/a/b",
        b"/./photos/a/b",
        b"/photos%2Fa/b",
        b"/photos%2fa%2fb",
        b"/photos%00/a/b",
        b"/PHOTOS/a/b",
        b"/%61pi/list-objects",
        b"/API/list-objects",
        b"/Api/buckets",
        b"/%2d/health",
        b"/photos./a/b",
        b"/photos%20/a/b",
        b"/photos;x=1/a/b",
    ] {
        for method in METHODS {
            let reply = town.request(method, target).await;
            let shown = String::from_utf8_lossy(target);
            assert_eq!(reply.status, 404, "{method} {shown}: {}", reply.text());
        }
    }
    assert_eq!(town.world.object_count("photos"), 3);
}

#[tokio::test]
async fn path_is_percent_decoded_once() {
    let town = Town::new().await;
    for (target, content) in [
        (&b"/photos/a/b"[..], "slash"),
        (b"/photos/a%2Fb", "slash"),
        (b"/photos/%61%2f%62", "slash"),
        (b"/photos/a%252Fb", "escaped"),
        (b"/photos/caf%C3%A9", "composed"),
        (b"/photos/cafe%CC%81", "composed"),
        // Raw bytes in a target are UTF-8 or rejected; a plus is literal, a semicolon starts no parameter.
        (b"/photos/a/b?x=/../../etc", "slash"),
        (b"/photos/a/b?", "slash"),
        (b"http://a/photos/a/b", "slash"),
    ] {
        let reply = town.request("GET", target).await;
        assert_eq!(reply.text(), content, "{}", String::from_utf8_lossy(target));
    }
    for target in [&b"/photos/a+b"[..], b"/photos/a/b;v=1", b"/photos/A/b", b"/photos/a%25252Fb"] {
        town.request("GET", target).await.check_error(404, "file_not_found");
    }
}
