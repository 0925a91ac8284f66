//! Conversion of every format into every other, and the handling of colours and alpha.

use std::io::Cursor;

use image::codecs::gif::{GifDecoder, GifEncoder, Repeat};
use image::codecs::webp::WebPDecoder;
use image::{AnimationDecoder, Delay, DynamicImage, Frame, ImageFormat, Rgba, RgbaImage};
use tests::World;

use super::{decibels, encoded, picture, shown};

/// Formats, and their minimum similarity to the source in decibels: GIF has few colours.
const FORMATS: [(&str, ImageFormat, f64); 4] = [
    ("jpg", ImageFormat::Jpeg, 33.0),
    ("png", ImageFormat::Png, 33.0),
    ("webp", ImageFormat::WebP, 33.0),
    ("gif", ImageFormat::Gif, 27.0),
];

#[tokio::test]
async fn every_image_format_converts_to_every_other() {
    let (_world, client) = World::with_bucket(1);
    let original = picture(96, 64);
    let small = original.resize_exact(48, 32, image::imageops::FilterType::Lanczos3);
    for (from, format, least_from) in FORMATS {
        // The name says nothing about the content.
        let path = format!("/photos/{from}.dat");
        client.put(&path, "x.dat", &encoded(&original, format)).await;
        for (to, format, least_to) in FORMATS {
            let least = f64::min(least_from, least_to);
            let whole = client.get(&format!("{path}?format={to}&quality=90")).await;
            assert_eq!(whole.header("content-type"), format.to_mime_type(), "{from} to {to}");
            let near = decibels(&shown(&whole), &original);
            assert!(near > least, "{from} to {to}: {near:.1} dB");
            let half = client.get(&format!("{path}?format={to}&quality=90&width=48")).await;
            let near = decibels(&shown(&half), &small);
            assert!(near > least, "{from} to {to} at half its size: {near:.1} dB");
        }
        // No other AVIF decoder is available here, so the server reads its own output.
        let avif = client.get(&format!("{path}?format=avif&quality=80")).await;
        assert_eq!(avif.header("content-type"), "image/avif", "{from}");
        let path = format!("/photos/{from}.avif");
        client.put(&path, "x.avif", &avif.body).await;
        assert_eq!(client.get(&path).await.header("content-type"), "image/avif");
        for (to, _, least_to) in FORMATS {
            let least = f64::min(least_from, least_to).min(30.0);
            let back = shown(&client.get(&format!("{path}?format={to}&quality=90")).await);
            let near = decibels(&back, &original);
            assert!(near > least, "{from} to avif to {to}: {near:.1} dB");
        }
    }
}

#[tokio::test]
async fn decode_only_formats_are_transformed() {
    let (_world, client) = World::with_bucket(1);
    let original = picture(96, 64);
    let small = original.resize_exact(48, 32, image::imageops::FilterType::Lanczos3);
    for format in [ImageFormat::Bmp, ImageFormat::Ico] {
        let stored = encoded(&original, format);
        let name = format.extensions_str()[0];
        let reply = client.put("/photos/?thumbnail", &format!("a.{name}"), &stored).await;
        assert_eq!(reply["files"][0]["thumbnailSkipped"], serde_json::Value::Null, "{name}");
        let thumbnail = shown(&client.get("/photos/a_thumb.webp").await);
        assert!(decibels(&thumbnail, &original) > 30.0, "{name}");
        let path = format!("/photos/a.{name}");
        assert!(client.get(&path).await.body == stored, "{name} as it is stored");
        let kept = client.get(&format!("{path}?width=48")).await;
        assert_eq!(kept.header("content-type"), "image/png", "{name}");
        assert!(decibels(&shown(&kept), &small) > 33.0, "{name}");
        for (to, format, least) in FORMATS {
            let made = client.get(&format!("{path}?format={to}&quality=90")).await;
            assert_eq!(made.header("content-type"), format.to_mime_type(), "{name} to {to}");
            assert!(decibels(&shown(&made), &original) > least, "{name} to {to}");
        }
        client.delete(&path).await;
    }
}

#[tokio::test]
async fn animation_is_kept_where_the_format_supports_it() {
    let (_world, client) = World::with_bucket(1);
    let mut file = Vec::new();
    {
        let mut encoder = GifEncoder::new(&mut file);
        encoder.set_repeat(Repeat::Infinite).unwrap();
        for (at, delay) in [(0, 100), (1, 250), (2, 40)] {
            let frame = picture(60 + at, 40).crop_imm(at, 0, 60, 40).to_rgba8();
            let delay = Delay::from_numer_denom_ms(delay, 1);
            encoder.encode_frame(Frame::from_parts(frame, 0, 0, delay)).unwrap();
        }
    }
    client.put("/photos/", "a.gif", &file).await;
    let delays = |frames: Vec<Frame>| -> Vec<(u32, u32)> {
        frames.iter().map(|frame| frame.delay().numer_denom_ms()).collect()
    };
    let gif = client.get("/photos/a.gif?width=30").await;
    let gif = GifDecoder::new(Cursor::new(gif.body)).unwrap().into_frames();
    let webp = client.get("/photos/a.gif?width=30&format=webp").await.body;
    let moving = WebPDecoder::new(Cursor::new(webp.clone())).unwrap().into_frames();
    let expected = [(100, 1), (250, 1), (40, 1)];
    assert_eq!(delays(gif.collect_frames().unwrap()), expected);
    assert_eq!(delays(moving.collect_frames().unwrap()), expected);
    client.put("/photos/", "b.webp", &webp).await;
    let back = client.get("/photos/b.webp?format=gif").await;
    let back = GifDecoder::new(Cursor::new(back.body)).unwrap().into_frames();
    assert_eq!(delays(back.collect_frames().unwrap()), expected);
    let first = picture(60, 40).resize_exact(30, 20, image::imageops::FilterType::Lanczos3);
    for path in ["/photos/a.gif?width=30&format=png", "/photos/b.webp?format=png"] {
        let near = decibels(&shown(&client.get(path).await), &first);
        assert!(near > 24.0, "{path}: {near:.1} dB");
    }
}

#[tokio::test]
async fn download_extension_matches_output_format() {
    let (_world, client) = World::with_bucket(1);
    client.put("/photos/", "my.cat.png", &super::png(40, 30)).await;
    let reply = client.get("/photos/my.cat.png?format=webp&download").await;
    assert_eq!(reply.header("content-disposition"), "attachment; filename=\"my.cat.webp\"");
    let named = client.get("/photos/my.cat.png?format=webp&download=tom.webp").await;
    assert_eq!(named.header("content-disposition"), "attachment; filename=\"tom.webp\"");
}

#[tokio::test]
async fn transparency_is_kept_or_flattened_to_white() {
    let (_world, client) = World::with_bucket(1);
    let half = RgbaImage::from_fn(40, 40, |x, _| Rgba([200, 30, 40, if x < 20 { 255 } else { 0 }]));
    client.put("/photos/", "a.png", &encoded(&half.into(), ImageFormat::Png)).await;
    for format in ["png", "webp"] {
        let seen = shown(&client.get(&format!("/photos/a.png?format={format}&width=20")).await);
        let seen = seen.to_rgba8();
        assert_eq!(seen.get_pixel(2, 2)[3], 255, "{format}");
        assert_eq!(seen.get_pixel(17, 2)[3], 0, "{format}");
    }
    let seen = shown(&client.get("/photos/a.png?format=jpg").await).to_rgb8();
    assert!(
        seen.get_pixel(30, 20).0.iter().all(|value| *value > 250),
        "{:?}",
        seen.get_pixel(30, 20)
    );
    assert!(seen.get_pixel(10, 20)[0] > 180 && seen.get_pixel(10, 20)[1] < 60);
}

#[tokio::test]
async fn greyscale_and_16_bit_images_are_decoded() {
    let (_world, client) = World::with_bucket(1);
    let colour = picture(60, 40);
    for (name, source) in [
        ("grey.png", DynamicImage::from(colour.to_luma8())),
        ("grey-alpha.png", DynamicImage::from(colour.to_luma_alpha8())),
        ("deep.png", DynamicImage::from(colour.to_rgb16())),
        ("deep-grey.png", DynamicImage::from(colour.to_luma16())),
        ("deep-alpha.png", DynamicImage::from(colour.to_rgba16())),
    ] {
        client.put(&format!("/photos/{name}"), name, &encoded(&source, ImageFormat::Png)).await;
        for format in ["jpg", "png", "webp"] {
            let reply =
                client.get(&format!("/photos/{name}?format={format}&quality=92&w=60")).await;
            let near = decibels(&shown(&reply), &source);
            assert!(near > 35.0, "{name} to {format}: {near:.1} dB");
        }
    }
    let grey = encoded(&DynamicImage::from(colour.to_luma8()), ImageFormat::Jpeg);
    client.put("/photos/", "grey.jpg", &grey).await;
    let seen = shown(&client.get("/photos/grey.jpg?quality=90").await);
    assert!(matches!(seen, DynamicImage::ImageLuma8(_)), "grey stays one channel");
}
