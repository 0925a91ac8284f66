//! Transform parameters, one by one: clients 3.1.

use tests::World;

use super::{jpeg, png, shown, sides};

#[tokio::test]
async fn resize_keeps_aspect_ratio_and_never_enlarges() {
    let (_world, client) = World::with_bucket(1);
    client.put("/photos/", "a.png", &png(400, 300)).await;
    for (query, expected) in [
        ("width=200", (200, 150)),
        ("w=200", (200, 150)),
        ("height=60", (80, 60)),
        ("h=60", (80, 60)),
        ("width=100&height=100", (100, 75)),
        ("width=1000&height=100", (133, 100)),
        ("width=9999", (400, 300)),
        ("width=99999999999999", (400, 300)),
        ("width=100&height=100&fit=contain", (100, 75)),
        ("width=100&height=100&fit=scale-down", (100, 75)),
        ("width=100&height=100&fit=cover", (100, 100)),
        ("width=100&height=100&resize=cover", (100, 100)),
        ("width=900&height=900&fit=cover", (300, 300)),
        ("width=100&height=20&fit=fill", (100, 20)),
        ("width=50&dpr=2", (100, 75)),
        ("width=1", (1, 1)),
        ("quality=50", (400, 300)),
        ("width=&height=150&quality=", (200, 150)),
        ("width=10&width=20", (20, 15)),
    ] {
        assert_eq!(sides(&client, &format!("/photos/a.png?{query}")).await, expected, "{query}");
    }
}

#[tokio::test]
async fn invalid_transform_values_are_rejected_unknown_ignored() {
    let (_world, client) = World::with_bucket(1);
    let original = png(40, 30);
    client.put("/photos/", "a.png", &original).await;
    for (query, name) in [
        ("width=0", "width"),
        ("width=-5", "width"),
        ("width=1.5", "width"),
        ("height=x", "height"),
        ("quality=0", "quality"),
        ("quality=101", "quality"),
        ("q=best", "quality"),
        ("format=bmp", "format"),
        ("fit=stretch", "fit"),
        ("dpr=0", "dpr"),
    ] {
        let reply = client.get(&format!("/photos/a.png?{query}")).await;
        reply.check_error(400, "bad_parameter");
        assert_eq!(reply.json()["parameter"], name, "{query}");
    }
    for query in ["v=1", "t=170", "bust", "width=", "crop=1", "download"] {
        let reply = client.get(&format!("/photos/a.png?{query}")).await;
        assert_eq!((reply.status.as_u16(), &reply.body[..]), (200, &original[..]), "{query}");
    }
    let etag_of = async |query: &str| {
        let reply = client.get(&format!("/photos/a.png?{query}")).await;
        reply.header("etag").to_owned()
    };
    assert_eq!(etag_of("width=20").await, etag_of("width=20&v=7").await);
    assert_ne!(etag_of("width=20").await, etag_of("width=21").await);
    assert_ne!(etag_of("width=20").await, etag_of("v=7").await);
}

#[tokio::test]
async fn non_image_is_served_unchanged_despite_transforms() {
    let (_world, client) = World::with_bucket(1);
    let svg = b"<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>";
    for (name, bytes) in [
        ("a.txt", &b"meow"[..]),
        ("a.svg", svg),
        ("a.mp4", b"\0\0\0\x18ftypisom\0\0\0\0isommp42"),
        ("a.bmp", b"BM\0\0\0\0\0\0\0\0\0\0\0\0"),
        ("a.ico", b"\0\0\x01\0\x01\0"),
        ("empty.png", b""),
    ] {
        client.put(&format!("/photos/{name}"), name, bytes).await;
        let plain = client.get(&format!("/photos/{name}")).await;
        for query in ["width=10", "width=0&format=bmp&q=text", "format=webp"] {
            if name == "a.bmp" && query.contains("width=0")
                || name == "a.ico" && query.contains("width=0")
            {
                // These are declared as pictures.
                continue;
            }
            let reply = client.get(&format!("/photos/{name}?{query}")).await;
            if name == "empty.png" && query.contains("width=0") {
                reply.check_error(400, "bad_parameter");
                continue;
            }
            assert_eq!((reply.status.as_u16(), &reply.body[..]), (200, bytes), "{name}?{query}");
            assert_eq!(reply.header("etag"), plain.header("etag"), "{name}?{query}");
            assert_eq!(reply.header("content-type"), plain.header("content-type"));
        }
    }
}

#[tokio::test]
async fn same_format_is_not_reencoded() {
    let (_world, client) = World::with_bucket(1);
    let original = jpeg(40, 30);
    client.put("/photos/", "a.jpg", &original).await;
    for query in ["format=jpg", "format=JPEG", "fm=jpg", "fit=cover", "format=auto"] {
        let reply = client.get(&format!("/photos/a.jpg?{query}")).await;
        assert_eq!(&reply.body[..], &original[..], "{query}");
    }
    let smaller = client.get("/photos/a.jpg?format=jpg&quality=30").await;
    assert!(smaller.body.len() < original.len());
}

#[tokio::test]
async fn quality_changes_size_of_lossy_output() {
    let (_world, client) = World::with_bucket(1);
    client.put("/photos/", "a.png", &png(200, 150)).await;
    for format in ["jpg", "webp"] {
        let mut before = 0;
        for quality in [1, 20, 50, 80, 95] {
            let path = format!("/photos/a.png?format={format}&quality={quality}");
            let bytes = client.get(&path).await.body.len();
            assert!(bytes > before, "{format} at {quality}: {bytes} after {before}");
            before = bytes;
        }
        let path = format!("/photos/a.png?format={format}");
        let (usual, eighty) = (client.get(&path).await, client.get(&format!("{path}&q=80")).await);
        assert_eq!(usual.header("etag"), eighty.header("etag"), "80 is the default of {format}");
    }
    let best = client.get("/photos/a.png?format=webp&quality=100").await;
    let original = image::load_from_memory(&png(200, 150)).unwrap();
    assert_eq!(
        shown(&best).to_rgb8(),
        original.to_rgb8(),
        "100 of what lost nothing loses nothing"
    );
}

#[tokio::test]
async fn format_auto_follows_the_accept_header() {
    let (_world, client) = World::with_bucket(1);
    client.put("/photos/", "a.png", &png(40, 30)).await;
    for (accept, content_type) in [
        ("image/avif,image/webp,*/*", "image/avif"),
        ("image/avif;q=0,image/webp,*/*", "image/webp"),
        ("image/webp;q=0,*/*", "image/png"),
        ("*/*", "image/png"),
        ("", "image/png"),
    ] {
        let reply = client.get_with("/photos/a.png?format=auto", &[("accept", accept)]).await;
        assert_eq!(reply.header("content-type"), content_type, "{accept}");
        assert_eq!(reply.header("vary"), "accept", "{accept}");
    }
    let reply = client.get_with("/photos/a.png?width=10", &[("accept", "image/webp")]).await;
    assert_eq!((reply.header("content-type"), reply.header("vary")), ("image/png", ""));
}
