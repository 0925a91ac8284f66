//! Appearance of thumbnails, and files without one.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;

use image::codecs::gif::GifEncoder;
use image::imageops::FilterType;
use image::{Frame, Rgba, RgbaImage};
use service::limits::IMAGE_JOBS_QUEUED_MAX;
use service::variants::RenderCost;
use tests::World;
use tests::store::body;

use super::{check_none, path};
use crate::images::limits::png_head;
use crate::images::orientation::{jpeg_with, stored};
use crate::images::{decibels, jpeg, picture, png, shown};

#[tokio::test]
async fn thumbnail_url_in_the_response_works_at_once() {
    let (world, client) = World::with_bucket(1);
    let reply = client.put("/photos/img/?thumbnail", "cat.jpg", &jpeg(1_200, 800)).await;
    let url = "https://cdn.example.com/photos/img/cat_thumb.webp";
    for place in
        ["/thumbnailUrl", "/thumbnailUrls/0", "/files/0/thumbnailUrl", "/data/thumbnailUrl"]
    {
        assert_eq!(reply.pointer(place).unwrap(), url, "{place}");
    }
    assert!(reply["files"][0].get("thumbnailSkipped").is_none());
    assert_eq!(reply["message"], "Successfully uploaded 1 file(s)");
    let anonymous = world.anonymous();
    let thumbnail = anonymous.get(&path(&reply)).await;
    assert_eq!(thumbnail.header("content-type"), "image/webp");
    let small = picture(1_200, 800).resize_exact(400, 267, FilterType::Lanczos3);
    let near = decibels(&shown(&thumbnail), &small);
    assert!(near > 30.0, "{near:.1} dB");
    let etag = thumbnail.header("etag").to_owned();
    let known = anonymous.get_with(&path(&reply), &[("if-none-match", &etag)]).await;
    assert_eq!(known.status, 304);
    let range = anonymous.get_with(&path(&reply), &[("range", "bytes=3-9")]).await;
    assert_eq!((range.status.as_u16(), &range.body[..]), (206, &thumbnail.body[3..10]));
    assert_eq!((world.object_count("photos"), world.derived_count()), (1, 1));
}

#[tokio::test]
async fn thumbnail_longer_side_is_400_pixels_without_enlarging() {
    let (_world, client) = World::with_bucket(1);
    for (sides, expected) in [
        ((900, 300), (400, 133)),
        ((300, 900), (133, 400)),
        ((400, 400), (400, 400)),
        ((60, 40), (60, 40)),
        ((1, 900), (1, 400)),
        ((1, 1), (1, 1)),
    ] {
        let reply = client.put("/photos/?thumbnail", "a.png", &png(sides.0, sides.1)).await;
        let seen = shown(&client.get(&path(&reply)).await);
        assert_eq!((seen.width(), seen.height()), expected, "{sides:?}");
    }
}

#[tokio::test]
async fn thumbnail_applies_exif_orientation() {
    let (_world, client) = World::with_bucket(1);
    let seen = picture(600, 450);
    let small = seen.resize_exact(400, 300, FilterType::Lanczos3);
    for orientation in [1, 3, 6, 7] {
        let file = jpeg_with(&stored(&seen, orientation), orientation);
        let reply = client.put("/photos/?thumb", "a.jpg", &file).await;
        let near = decibels(&shown(&client.get(&path(&reply)).await), &small);
        assert!(near > 30.0, "{orientation}: {near:.1} dB");
    }
}

#[tokio::test]
async fn thumbnail_of_animation_is_the_first_frame() {
    let (_world, client) = World::with_bucket(1);
    let mut file = Vec::new();
    {
        let mut encoder = GifEncoder::new(&mut file);
        for colour in [[200, 20, 20, 255], [20, 20, 200, 255]] {
            let frame = RgbaImage::from_pixel(500, 250, Rgba(colour));
            encoder.encode_frame(Frame::new(frame)).unwrap();
        }
    }
    let moving = client.put("/photos/?thumbnail", "a.gif", &file).await;
    let webp = client.get("/photos/a.gif?format=webp").await.body;
    let again = client.put("/photos/?thumbnail", "b.webp", &webp).await;
    for reply in [moving, again] {
        let thumbnail = client.get(&path(&reply)).await;
        assert!(!thumbnail.body.windows(4).any(|it| it == b"ANIM"), "{reply}");
        let seen = shown(&thumbnail).to_rgb8();
        assert_eq!((seen.width(), seen.height()), (400, 200));
        let middle = seen.get_pixel(200, 100);
        assert!(middle[0] > 150 && middle[2] < 80, "{middle:?}");
    }
}

#[tokio::test]
async fn thumbnail_is_created_for_spilled_upload() {
    let (world, client) = World::with_bucket(1);
    // Trailing bytes after the picture make its file large.
    let file = [png(500, 500), body(1, 3_000_000)].concat();
    let reply = client.put("/photos/?thumbnail", "a.png", &file).await;
    assert!(world.disk.paths().iter().any(|path| path.starts_with("big/")));
    assert_eq!(shown(&client.get(&path(&reply)).await).width(), 400);
    assert_eq!(&client.get("/photos/a.png").await.body[..], &file[..]);
    let too_large = [png(8, 8), vec![0; 50 << 20]].concat();
    check_none(&client.put("/photos/?thumbnail", "b.png", &too_large).await, "too_large");
}

#[tokio::test]
async fn upload_succeeds_when_thumbnail_cannot_be_rendered() {
    let (world, client) = World::with_bucket(1);
    let whole = png(60, 40);
    for (name, file, why) in [
        ("a.txt", b"hello".to_vec(), "not_a_picture"),
        ("a.png", b"hello".to_vec(), "not_a_picture"),
        ("a.svg", b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>".to_vec(), "not_a_picture"),
        ("empty.png", Vec::new(), "not_a_picture"),
        ("cut.png", whole[..whole.len() / 2].to_vec(), "undecodable"),
        ("head.png", whole[..20].to_vec(), "undecodable"),
        ("noise.jpg", b"\xff\xd8\xff\xe0\0\x10JFIF and then nothing".to_vec(), "undecodable"),
        ("side.png", png_head(30_000, 30_000), "too_large"),
        ("pixels.png", png_head(9_000, 9_000), "too_large"),
        ("memory.png", png_head(7_000, 7_000), "too_large"),
        ("dog_thumb.webp", whole.clone(), "is_thumbnail"),
    ] {
        let reply = client.put("/photos/?thumbnail", name, &file).await;
        check_none(&reply, why);
        assert_eq!(&client.get(&format!("/photos/{name}")).await.body[..], &file[..], "{name}");
    }
    assert_eq!(world.derived_count(), 0);
}

/// Polls work once; returns whether it is pending.
async fn is_pending(work: &mut (impl Future + Unpin)) -> bool {
    poll_fn(|context| Poll::Ready(Pin::new(&mut *work).poll(context).is_pending())).await
}

#[tokio::test]
async fn upload_succeeds_without_thumbnail_when_queue_is_full() {
    let (world, client) = World::with_bucket(1);
    let (let_go, held) = std::sync::mpsc::channel::<()>();
    let variants = &world.state.variants;
    let mut all_memory =
        pin!(variants.run(RenderCost { ms: 1, bytes: u64::MAX }, move || held.recv().is_ok()));
    assert!(is_pending(&mut all_memory).await);
    let waiting =
        (0..IMAGE_JOBS_QUEUED_MAX).map(|_| variants.run(RenderCost { ms: 1, bytes: 1 }, || 7));
    let mut waiting: Vec<_> = waiting.map(Box::pin).collect();
    for one in &mut waiting {
        assert!(is_pending(one).await);
    }
    let reply = client.put("/photos/?thumbnail", "a.png", &png(60, 40)).await;
    check_none(&reply, "busy");
    drop(let_go);
    assert_eq!(all_memory.await, Ok(false));
    for one in waiting {
        assert_eq!(one.await, Ok(7));
    }
    path(&client.put("/photos/?thumbnail", "a.png", &png(60, 40)).await);
}
