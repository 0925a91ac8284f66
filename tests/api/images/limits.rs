//! Damaged and huge pictures.

use tests::World;
use tests::png::{chunk, head};

use super::{jpeg, png};

/// Returns a PNG whose header has this size, without pixels.
pub(crate) fn png_head(width: u32, height: u32) -> Vec<u8> {
    [head((width, height), [8, 0, 0]), chunk(b"IDAT", b"")].concat()
}

#[tokio::test]
async fn corrupt_image_is_reported_and_original_is_served() {
    let (_world, client) = World::with_bucket(1);
    let whole = png(60, 40);
    for (name, bytes) in [
        ("cut.png", &whole[..whole.len() / 2]),
        ("head.png", &whole[..20]),
        ("noise.jpg", b"\xff\xd8\xff\xe0\0\x10JFIF and then nothing"),
        ("noise.webp", b"RIFF\x20\0\0\0WEBPVP8 \x10\0\0\0................"),
    ] {
        client.put(&format!("/photos/{name}"), name, bytes).await;
        let path = format!("/photos/{name}?width=10");
        for _ in 0..2 {
            client.get(&path).await.check_error(422, "undecodable");
        }
        assert_eq!(&client.get(&format!("/photos/{name}")).await.body[..], bytes, "{name}");
    }
}

#[tokio::test]
async fn truncated_jpeg_is_rendered_partially() {
    let (_world, client) = World::with_bucket(1);
    let whole = jpeg(200, 160);
    for keep in [3, 5, 8] {
        let path = format!("/photos/{keep}.jpg");
        client.put(&path, "x.jpg", &whole[..whole.len() * keep / 10]).await;
        for width in [20, 100, 200] {
            let reply = client.get(&format!("{path}?width={width}&format=png")).await;
            assert_eq!(reply.status, 200, "{keep} tenths at {width}: {}", reply.text());
        }
    }
}

#[tokio::test]
async fn oversized_image_is_served_unchanged_with_reason() {
    let (_world, client) = World::with_bucket(1);
    for (width, height, query, reason) in [
        (30_000, 30_000, "width=10", "side"),
        (9_000, 9_000, "width=10", "pixels"),
        (9_000, 10, "format=webp", "output"),
        (7_000, 7_000, "width=10", "memory"),
        (u32::MAX >> 1, 1, "width=10", "memory"),
    ] {
        let file = png_head(width, height);
        let path = format!("/photos/{width}x{height}.png");
        client.put(&path, "x.png", &file).await;
        let reply = client.get(&format!("{path}?{query}")).await;
        assert_eq!((reply.status.as_u16(), &reply.body[..]), (200, &file[..]), "{path}");
        let expected = format!("skipped; reason={reason}");
        assert_eq!(reply.header("x-image-transform"), expected, "{path}");
        assert_eq!(reply.header("etag"), client.get(&path).await.header("etag"));
    }
}
