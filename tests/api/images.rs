//! Image transforms: specification 4.1, clients 3.1 and 6.

#![allow(clippy::big_endian_bytes, reason = "PNG and JPEG are big-endian")]

mod allowances;
mod formats;
pub(super) mod limits;
pub(super) mod orientation;
mod parameters;
mod placeholders;
mod variants;
mod waiting;

use std::io::Cursor;

use image::{DynamicImage, ImageFormat, Rgb, RgbImage};
use tests::{Client, Reply};

/// Returns a picture in which each corner has a colour of its own, and nothing is flat.
pub(super) fn picture(width: u32, height: u32) -> DynamicImage {
    let wave = |at: u32, of: u32| (f64::from(at) / f64::from(of) * 6.0).sin() * 20.0;
    RgbImage::from_fn(width, height, |x, y| {
        let (right, low) = (f64::from(x) / f64::from(width), f64::from(y) / f64::from(height));
        let shade = wave(x, width) + wave(y, height);
        Rgb([30.0 + 180.0 * right, 40.0 + 170.0 * low, 200.0 - 120.0 * right * low]
            .map(|value| (value + shade).clamp(0.0, 255.0) as u8))
    })
    .into()
}

pub(super) fn encoded(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

pub(super) fn png(width: u32, height: u32) -> Vec<u8> {
    encoded(&picture(width, height), ImageFormat::Png)
}

pub(super) fn jpeg(width: u32, height: u32) -> Vec<u8> {
    encoded(&picture(width, height), ImageFormat::Jpeg)
}

/// Decodes the picture in a reply, and checks its type.
pub(super) fn shown(reply: &Reply) -> DynamicImage {
    assert_eq!(reply.status, 200, "{}", reply.text());
    let format = ImageFormat::from_mime_type(reply.header("content-type")).unwrap();
    image::load_from_memory_with_format(&reply.body, format).unwrap()
}

async fn sides(client: &Client, path: &str) -> (u32, u32) {
    let picture = shown(&client.get(path).await);
    (picture.width(), picture.height())
}

/// Returns the peak signal-to-noise ratio of two pictures of the same size in decibels.
pub(super) fn decibels(a: &DynamicImage, b: &DynamicImage) -> f64 {
    assert_eq!((a.width(), a.height()), (b.width(), b.height()));
    let (a, b) = (a.to_rgb8(), b.to_rgb8());
    let squares = a.iter().zip(b.iter()).map(|(a, b)| f64::from(a.abs_diff(*b)).powi(2));
    let mean = squares.sum::<f64>() / a.len() as f64;
    10.0 * (255.0 * 255.0 / mean.max(1e-9)).log10()
}
