//! Every format into every other, and what colours and alpha become.

use image::{DynamicImage, ImageFormat, Rgba, RgbaImage};
use tests::World;

use super::{decibels, encoded, picture, shown};

const FORMATS: [(&str, ImageFormat); 3] =
    [("jpg", ImageFormat::Jpeg), ("png", ImageFormat::Png), ("webp", ImageFormat::WebP)];

#[tokio::test]
async fn every_format_becomes_every_other() {
    let (_world, client) = World::with_bucket(1);
    let original = picture(96, 64);
    let small = original.resize_exact(48, 32, image::imageops::FilterType::Lanczos3);
    for (from, format) in FORMATS {
        // The name says nothing about the content.
        let path = format!("/photos/{from}.dat");
        client.put(&path, "x.dat", &encoded(&original, format)).await;
        for (to, format) in FORMATS {
            let whole = client.get(&format!("{path}?format={to}&quality=90")).await;
            assert_eq!(whole.header("content-type"), format.to_mime_type(), "{from} to {to}");
            assert!(decibels(&shown(&whole), &original) > 35.0, "{from} to {to}");
            let half = client.get(&format!("{path}?format={to}&quality=90&width=48")).await;
            let near = decibels(&shown(&half), &small);
            assert!(near > 33.0, "{from} to {to} at half its size: {near:.1} dB");
        }
    }
}

#[tokio::test]
async fn a_download_has_the_extension_of_its_format() {
    let (_world, client) = World::with_bucket(1);
    client.put("/photos/", "my.cat.png", &super::png(40, 30)).await;
    let reply = client.get("/photos/my.cat.png?format=webp&download").await;
    assert_eq!(reply.header("content-disposition"), "attachment; filename=\"my.cat.webp\"");
    let named = client.get("/photos/my.cat.png?format=webp&download=tom.webp").await;
    assert_eq!(named.header("content-disposition"), "attachment; filename=\"tom.webp\"");
}

#[tokio::test]
async fn what_is_clear_stays_clear_and_is_white_where_there_is_no_alpha() {
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
async fn grey_and_sixteen_bits_are_read() {
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
