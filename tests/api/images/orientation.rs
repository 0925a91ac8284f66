//! Exif orientation: clients 6.2.

use image::ImageFormat;
use tests::World;

use super::{decibels, encoded, picture, shown};

/// Returns Exif data with one tag, the orientation.
fn exif(orientation: u8) -> Vec<u8> {
    let mut exif = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0".to_vec();
    exif.extend([orientation, 0, 0, 0, 0, 0, 0, 0]);
    exif
}

/// Returns the stored picture that the tag turns into the given one.
pub(crate) fn stored(seen: &image::DynamicImage, orientation: u8) -> image::DynamicImage {
    match orientation {
        2 => seen.fliph(),
        3 => seen.rotate180(),
        4 => seen.flipv(),
        5 => seen.rotate90().fliph(),
        6 => seen.rotate270(),
        7 => seen.rotate270().fliph(),
        8 => seen.rotate90(),
        _ => seen.clone(),
    }
}

pub(crate) fn jpeg_with(picture: &image::DynamicImage, orientation: u8) -> Vec<u8> {
    let plain = encoded(picture, ImageFormat::Jpeg);
    let data = [b"Exif\0\0", &*exif(orientation)].concat();
    let length = (data.len() as u16 + 2).to_be_bytes();
    [&plain[..2], &[0xff, 0xe1], &length, &data, &plain[2..]].concat()
}

#[tokio::test]
async fn exif_orientation_is_applied_and_measured() {
    let (_world, client) = World::with_bucket(1);
    let seen = picture(96, 64);
    let small = seen.resize_exact(48, 32, image::imageops::FilterType::Lanczos3);
    for orientation in 1..=8 {
        let path = format!("/photos/{orientation}.jpg");
        let file = jpeg_with(&stored(&seen, orientation), orientation);
        client.put(&path, "x.jpg", &file).await;
        let whole = shown(&client.get(&format!("{path}?format=png")).await);
        let near = decibels(&whole, &seen);
        assert!(near > 30.0, "{orientation}: {near:.1} dB");
        let half = client.get(&format!("{path}?width=48&quality=90")).await;
        let near = decibels(&shown(&half), &small);
        assert!(near > 30.0, "{orientation} at half its size: {near:.1} dB");
        assert!(!half.body.windows(4).any(|it| it == b"Exif"), "the tag is gone");
        // The middle of what is seen.
        let cut = shown(&client.get(&format!("{path}?w=32&h=32&fit=cover&format=png")).await);
        let expected = seen.crop_imm(16, 0, 64, 64);
        let expected = expected.resize_exact(32, 32, image::imageops::FilterType::Lanczos3);
        let near = decibels(&cut, &expected);
        assert!(near > 30.0, "{orientation} cut: {near:.1} dB");
        assert_eq!(&client.get(&path).await.body[..], &file[..], "the original is untouched");
    }
}
