//! Ranges: specification 4.1, clients 7.

use tests::{Client, World};

async fn with_file() -> Client {
    let (_world, client) = World::with_bucket(1);
    client.put("/photos/", "abc.txt", b"abcdefghij").await;
    client.without_key()
}

#[tokio::test]
async fn single_range_returns_206() {
    let client = with_file().await;
    for (range, content_range, body) in [
        ("bytes=0-", "bytes 0-9/10", "abcdefghij"),
        ("bytes=0-0", "bytes 0-0/10", "a"),
        ("bytes=2-4", "bytes 2-4/10", "cde"),
        ("bytes=8-99", "bytes 8-9/10", "ij"),
        ("bytes=-3", "bytes 7-9/10", "hij"),
        ("bytes=-99", "bytes 0-9/10", "abcdefghij"),
        ("bytes=0-1,2-3", "bytes 0-3/10", "abcd"),
    ] {
        let reply = client.get_with("/photos/abc.txt", &[("range", range)]).await;
        assert_eq!(reply.status, 206, "{range}");
        assert_eq!(reply.header("content-range"), content_range, "{range}");
        assert_eq!(reply.header("content-length"), body.len().to_string());
        assert_eq!(reply.text(), body, "{range}");
    }
}

#[tokio::test]
async fn invalid_range_returns_the_whole_file() {
    let client = with_file().await;
    for range in ["bytes=", "bytes=b-a", "bytes=4-2", "lines=0-1", "0-1", "bytes=0-9,0-9"] {
        let reply = client.get_with("/photos/abc.txt", &[("range", range)]).await;
        assert_eq!(reply.status, 200, "{range}");
        assert_eq!(reply.text(), "abcdefghij");
        assert_eq!(reply.header("content-range"), "");
    }
}

#[tokio::test]
async fn unsatisfiable_range_returns_416_with_size() {
    let (_world, client) = World::with_bucket(1);
    client.put("/photos/", "abc.txt", b"abcdefghij").await;
    client.put("/photos/", "empty.txt", b"").await;
    for (file, range, content_range) in [
        ("abc.txt", "bytes=10-", "bytes */10"),
        ("abc.txt", "bytes=-0", "bytes */10"),
        ("abc.txt", "bytes=99-100, 50-", "bytes */10"),
        ("empty.txt", "bytes=0-", "bytes */0"),
        ("empty.txt", "bytes=-1", "bytes */0"),
    ] {
        let reply = client.get_with(&format!("/photos/{file}"), &[("range", range)]).await;
        reply.check_error(416, "range_not_satisfiable");
        assert_eq!(reply.header("content-range"), content_range, "{file} {range}");
    }
}

#[tokio::test]
async fn multiple_ranges_return_multipart_byteranges() {
    let client = with_file().await;
    let reply = client.get_with("/photos/abc.txt", &[("range", "bytes=8-, 0-1")]).await;
    assert_eq!(reply.status, 206);
    assert_eq!(reply.header("content-range"), "");
    let boundary = reply.header("content-type").strip_prefix("multipart/byteranges; boundary=");
    let boundary = boundary.expect("the boundary is named");
    let part = "Content-Type: text/plain; charset=utf-8\r\nContent-Range: bytes";
    let expected = format!(
        "--{boundary}\r\n{part} 0-1/10\r\n\r\nab\r\n--{boundary}\r\n{part} 8-9/10\r\n\r\nij\r\n--{boundary}--\r\n"
    );
    assert_eq!(reply.text(), expected);
    assert_eq!(reply.header("content-length"), expected.len().to_string());
}

#[tokio::test]
async fn if_range_decides_whether_range_applies() {
    let client = with_file().await;
    let etag = client.get("/photos/abc.txt").await.header("etag").to_owned();
    let weak = format!("W/{etag}");
    for (if_range, status) in [
        (&*etag, 206),
        (&*weak, 200),
        ("\"other\"", 200),
        ("Sat, 31 Jan 2026 12:00:00 GMT", 206),
        ("Sat, 31 Jan 2026 12:00:01 GMT", 200),
    ] {
        let headers = [("range", "bytes=0-1"), ("if-range", if_range)];
        let reply = client.get_with("/photos/abc.txt", &headers).await;
        assert_eq!(reply.status, status, "{if_range}");
    }
}

#[tokio::test]
async fn if_range_date_does_not_mix_two_versions() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "abc.txt", b"aaaaaaaaaa").await;
    let date = client.get("/photos/abc.txt").await.header("last-modified").to_owned();
    world.clock.advance(400);
    client.put("/photos/?overwrite=true", "abc.txt", b"bbbbbbbbbb").await;
    let headers = [("range", "bytes=5-"), ("if-range", &*date)];
    let reply = client.get_with("/photos/abc.txt", &headers).await;
    assert_eq!(reply.header("last-modified"), date, "both have the same date");
    assert_eq!((reply.status.as_u16(), reply.text()), (200, "bbbbbbbbbb".into()));
}

#[tokio::test]
async fn ranges_of_large_file_are_exact() {
    let (_world, client) = World::with_bucket(1);
    let body: Vec<u8> = (0..2_000_000_u32).map(|at| (at % 253) as u8).collect();
    client.put("/photos/", "big.bin", &body).await;
    for (start, end) in [(0, 262_144), (1, 262_145), (262_143, 262_146), (1_048_000, 1_900_001)] {
        let range = format!("bytes={start}-{}", end - 1);
        let reply = client.get_with("/photos/big.bin", &[("range", &range)]).await;
        assert_eq!(reply.status, 206);
        assert!(reply.body == body[start..end], "{range}");
    }
    let reply = client.get_with("/photos/big.bin", &[("range", "bytes=5-9,500000-1100000")]).await;
    assert_eq!(reply.header("content-length"), reply.body.len().to_string());
    let inside = reply.body.windows(600_001).any(|window| window == &body[500_000..=1_100_000]);
    assert!(inside, "the second piece came back changed");
}
