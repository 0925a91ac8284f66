//! Tests of the AVIF decoder with encoded, hand-made and broken files.

use proptest::prelude::*;

use super::container::Container;
use super::{decode, read_source};
use crate::encode;
use crate::error::{Error, LimitKind};
use crate::format::Format;
use crate::limits::PROFILE_BYTES_MAX;
use crate::orientation::Orientation;
use crate::picture::{PixelBuffer, PixelLayout};
use crate::plan::Quality;

/// Item of a file, with boxes as its properties.
#[derive(Clone)]
struct Item {
    kind: [u8; 4],
    data: Vec<u8>,
    properties: Vec<Vec<u8>>,
    refers: Vec<([u8; 4], Vec<u16>)>,
}

fn boxed(kind: &[u8; 4], parts: &[&[u8]]) -> Vec<u8> {
    let body = parts.concat();
    let length = body.len() as u32 + 8;
    [&length.to_be_bytes()[..], kind, &body].concat()
}

fn sides_box(width: u32, height: u32) -> Vec<u8> {
    boxed(b"ispe", &[&[0; 4], &width.to_be_bytes(), &height.to_be_bytes()])
}

/// Builds a file whose items are numbered from one, of which the first is the primary one.
fn file(items: &[Item]) -> Vec<u8> {
    let (mut infos, mut places, mut references) = (Vec::new(), Vec::new(), Vec::new());
    let (mut data, mut properties, mut associations) = (Vec::new(), Vec::new(), Vec::new());
    let mut count = 0_u16;
    for (number, item) in (1_u16..).zip(items) {
        let number = number.to_be_bytes();
        infos.extend(boxed(b"infe", &[&[2, 0, 0, 0], &number, &[0, 0], &item.kind, &[0]]));
        let (offset, length) = (data.len() as u32, item.data.len() as u32);
        places.extend([&number[..], &[0, 1], &[0, 0], &[0, 1]].concat());
        places.extend([offset.to_be_bytes(), length.to_be_bytes()].concat());
        data.extend_from_slice(&item.data);
        associations.extend([&number[..], &[item.properties.len() as u8]].concat());
        for property in &item.properties {
            count += 1;
            associations.extend((count | 0x8000).to_be_bytes());
            properties.extend_from_slice(property);
        }
        for (kind, to) in &item.refers {
            let to: Vec<u8> = to.iter().flat_map(|to| to.to_be_bytes()).collect();
            let length = ((to.len() / 2) as u16).to_be_bytes();
            references.extend(boxed(kind, &[&number, &length, &to]));
        }
    }
    let all = (items.len() as u16).to_be_bytes();
    let associations = [&(items.len() as u32).to_be_bytes()[..], &associations].concat();
    let meta = boxed(
        b"meta",
        &[
            &[0; 4],
            &boxed(b"pitm", &[&[0; 4], &[0, 1]]),
            &boxed(b"iinf", &[&[0; 4], &all, &infos]),
            &boxed(b"iloc", &[&[1, 0, 0, 0], &[0x44, 0], &all, &places]),
            &boxed(b"iref", &[&[0; 4], &references]),
            &boxed(
                b"iprp",
                &[
                    &boxed(b"ipco", &[&properties]),
                    &boxed(b"ipma", &[&[0, 0, 0, 1], &associations]),
                ],
            ),
            &boxed(b"idat", &[&data]),
        ],
    );
    [boxed(b"ftyp", &[b"avif\0\0\0\0mif1avif"]), meta].concat()
}

fn flat(layout: PixelLayout, sides: (u32, u32), pixel: &[u8]) -> PixelBuffer {
    let pixels = (sides.0 * sides.1) as usize;
    PixelBuffer::new(sides, layout, pixel.repeat(pixels), None).unwrap()
}

fn written(picture: &PixelBuffer, quality: u8) -> Vec<u8> {
    encode::encode(picture.clone(), Format::Avif, Quality::Lossy(quality), &|| false).unwrap()
}

fn read(bytes: &[u8]) -> Result<PixelBuffer, Error> {
    decode(bytes, &read_source(bytes)?, &|| false)
}

/// Returns the data of an encoded picture, and of its alpha if it has one.
fn coded(picture: &PixelBuffer) -> (Vec<u8>, Vec<u8>) {
    let bytes = written(picture, 95);
    let container = Container::read(&bytes).unwrap();
    let shown = super::PrimaryImage::from_container(&container).unwrap();
    let data = |coded: &super::CodedImage| container.data(coded.tiles[0]).unwrap().into_owned();
    (data(&shown.colour), shown.alpha.as_ref().map(data).unwrap_or_default())
}

/// Builds an item that has only its size as property.
fn item(data: Vec<u8>, (width, height): (u32, u32)) -> Item {
    Item { kind: *b"av01", data, properties: vec![sides_box(width, height)], refers: Vec::new() }
}

fn assert_near(found: &PixelBuffer, expected: &PixelBuffer, most: u8) {
    assert_eq!((found.dimensions(), found.layout), (expected.dimensions(), expected.layout));
    for (at, (is, was)) in found.samples.iter().zip(&expected.samples).enumerate() {
        assert!(is.abs_diff(*was) <= most, "sample {at}: {is} instead of {was}");
    }
}

#[test]
fn avif_round_trips() {
    for sides in [(1, 1), (2, 3), (7, 65), (16, 16), (97, 61)] {
        for layout in
            [PixelLayout::Rgb, PixelLayout::Rgba, PixelLayout::Grey, PixelLayout::GreyAlpha]
        {
            let smooth = |at: u32, channel: u32| {
                let (x, y) = (at % sides.0, at / sides.0);
                (40 + channel * 30 + (x + y) * 80 / (sides.0 + sides.1)) as u8
            };
            let channels = layout.channels() as u32;
            let pixels = 0..sides.0 * sides.1;
            let samples =
                pixels.flat_map(|at| (0..channels).map(move |channel| smooth(at, channel)));
            let picture = PixelBuffer::new(sides, layout, samples.collect(), None).unwrap();
            let bytes = written(&picture, 95);
            assert_eq!(Format::detect(&bytes), Some(Format::Avif));
            assert_eq!(read_source(&bytes).unwrap().sides, sides);
            assert_near(&read(&bytes).unwrap(), &picture.into_rgb(), 12);
        }
    }
}

#[test]
fn avif_round_trips_at_any_quality() {
    for sides in [(1, 1), (2, 3), (7, 5), (16, 16), (65, 33)] {
        for picture in [
            flat(PixelLayout::Rgb, sides, &[200, 90, 30]),
            flat(PixelLayout::Rgba, sides, &[200, 90, 30, 130]),
        ] {
            for (quality, most) in [(1, 40), (60, 3), (89, 3), (90, 3), (100, 3)] {
                let bytes = written(&picture, quality);
                assert_near(&read(&bytes).unwrap(), &picture, most);
            }
        }
    }
}

#[test]
fn ten_bits_and_brightness_alone_are_read() {
    let bytes = include_bytes!("../../../../../tests/fixtures/avif/ten_bits.avif");
    assert_near(&read(bytes).unwrap(), &flat(PixelLayout::Rgb, (20, 9), &[200, 100, 50]), 3);

    let (_, alpha) = coded(&flat(PixelLayout::Rgba, (20, 9), &[0, 0, 0, 77]));
    let bytes = file(&[item(alpha, (20, 9))]);
    assert_near(&read(&bytes).unwrap(), &flat(PixelLayout::Grey, (20, 9), &[77]), 2);
}

#[test]
fn avif_rotation_is_reported() {
    let (data, _) = coded(&flat(PixelLayout::Rgb, (8, 5), &[1, 2, 3]));
    let cases = [
        (None, None, 1),
        (None, Some(1), 2),
        (Some(2), None, 3),
        (None, Some(0), 4),
        (Some(1), Some(0), 5),
        (Some(3), None, 6),
        (Some(3), Some(0), 7),
        (Some(1), None, 8),
    ];
    for (quarters, mirror, tag) in cases {
        let mut item = item(data.clone(), (8, 5));
        item.properties.extend(quarters.map(|quarters| boxed(b"irot", &[&[quarters]])));
        item.properties.extend(mirror.map(|mirror| boxed(b"imir", &[&[mirror]])));
        let bytes = file(&[item]);
        let source = read_source(&bytes).unwrap();
        assert_eq!((source.sides, source.orientation), ((8, 5), Orientation::from_exif_tag(tag)));
        assert_eq!(read(&bytes).unwrap().dimensions(), (8, 5));
    }
}

/// Builds two rows of two tiles, for a picture of this size.
fn grid(sides: (u32, u32)) -> Vec<Item> {
    let colours = [[200, 20, 20], [20, 200, 20], [20, 20, 200], [200, 200, 20]];
    let body =
        [&[0, 0, 1, 1][..], &(sides.0 as u16).to_be_bytes(), &(sides.1 as u16).to_be_bytes()];
    let mut items = vec![Item {
        kind: *b"grid",
        refers: vec![(*b"dimg", vec![2, 3, 4, 5])],
        ..item(body.concat(), sides)
    }];
    let tile =
        |colour: [u8; 3]| item(coded(&flat(PixelLayout::Rgb, (16, 16), &colour)).0, (16, 16));
    items.extend(colours.map(tile));
    items
}

#[test]
fn grid_tiles_are_assembled() {
    let picture = read(&file(&grid((30, 19)))).unwrap();
    assert_eq!((picture.dimensions(), picture.layout), ((30, 19), PixelLayout::Rgb));
    let corners = [
        ((0, 0), [200, 20, 20]),
        ((15, 15), [200, 20, 20]),
        ((16, 0), [20, 200, 20]),
        ((29, 15), [20, 200, 20]),
        ((0, 18), [20, 20, 200]),
        ((29, 18), [200, 200, 20]),
    ];
    for ((x, y), colour) in corners {
        let found = &picture.samples[(y * 30 + x) * 3..][..3];
        assert!(
            found.iter().zip(colour).all(|(is, was)| is.abs_diff(was) < 8),
            "{x} {y} {found:?}"
        );
    }
    for sides in [(33, 19), (16, 19), (30, 33), (30, 16)] {
        assert!(matches!(read(&file(&grid(sides))), Err(Error::Undecodable(_))), "{sides:?}");
    }
    let mut items = grid((30, 19));
    items[0].refers[0].1.pop();
    assert!(read_source(&file(&items)).is_err());
}

#[test]
fn premultiplied_alpha_is_undone() {
    let sides = (16, 16);
    let (_, alpha) = coded(&flat(PixelLayout::Rgba, sides, &[0, 0, 0, 128]));
    let (colour, _) = coded(&flat(PixelLayout::Rgb, sides, &[100, 50, 25]));
    let name = b"urn:mpeg:mpegB:cicp:systems:auxiliary:alpha\0";
    let mut items = [item(colour, sides), item(alpha, sides)];
    items[1].properties.push(boxed(b"auxC", &[&[0; 4], name]));
    items[1].refers = vec![(*b"auxl", vec![1])];
    let straight = flat(PixelLayout::Rgba, sides, &[100, 50, 25, 128]);
    assert_near(&read(&file(&items)).unwrap(), &straight, 4);
    items[0].refers = vec![(*b"prem", vec![2])];
    let divided = flat(PixelLayout::Rgba, sides, &[199, 100, 50, 128]);
    assert_near(&read(&file(&items)).unwrap(), &divided, 6);
    items[1].properties[0] = sides_box(16, 15);
    assert!(matches!(read_source(&file(&items)), Err(Error::Undecodable(_))));
}

#[test]
fn profile_is_passed_on_and_wide_gamut_gets_one() {
    let (data, _) = coded(&flat(PixelLayout::Rgb, (4, 4), &[9, 9, 9]));
    let with = |colour: &[u8]| {
        let mut item = item(data.clone(), (4, 4));
        item.properties.push(boxed(b"colr", &[colour]));
        read(&file(&[item])).unwrap().profile
    };
    assert_eq!(with(b"profabc"), Some(b"abc".to_vec()));
    assert_eq!(with(b"rICCabc"), Some(b"abc".to_vec()));
    assert_eq!(with(&[&b"prof"[..], &vec![0; PROFILE_BYTES_MAX + 1]].concat()), None);
    assert_eq!(with(b"nclx\0\x01\0\x0d\0\x06\x80"), None);
    let wide = with(b"nclx\0\x0c\0\x0d\0\x06\x80").unwrap();
    assert!(moxcms::ColorProfile::new_from_slice(&wide).is_ok());
}

#[test]
fn declared_size_mismatch_is_rejected() {
    let (data, _) = coded(&flat(PixelLayout::Rgb, (16, 16), &[9, 9, 9]));
    for sides in [(16, 15), (15, 16), (17, 16), (32, 8), (8_000, 6_000)] {
        let bytes = file(&[item(data.clone(), sides)]);
        assert_eq!(read_source(&bytes).unwrap().sides, sides);
        assert!(matches!(read(&bytes), Err(Error::Undecodable(_))), "{sides:?}");
    }
    let bytes = file(&[item(data.clone(), (65_535, 65_535))]);
    assert_eq!(read(&bytes), Err(Error::TooLarge(LimitKind::Pixels)));
    assert!(read_source(&file(&[Item { properties: Vec::new(), ..item(data, (1, 1)) }])).is_err());
}

#[test]
fn excess_layers_are_rejected() {
    let (data, _) = coded(&flat(PixelLayout::Rgb, (16, 16), &[9, 9, 9]));
    let bytes = file(&[item(data.repeat(2), (16, 16))]);
    assert_near(&read(&bytes).unwrap(), &flat(PixelLayout::Rgb, (16, 16), &[9, 9, 9]), 3);
    let bytes = file(&[item(data.repeat(5), (16, 16))]);
    assert!(matches!(read(&bytes), Err(Error::Undecodable(_))));
}

#[test]
fn unknown_essential_property_is_rejected() {
    let (data, _) = coded(&flat(PixelLayout::Rgb, (16, 16), &[9, 9, 9]));
    let mut cut = item(data.clone(), (16, 16));
    cut.properties.push(boxed(b"clap", &[&[0; 32]]));
    let Err(Error::Undecodable(why)) = read_source(&file(&[cut])) else { panic!("it was read") };
    assert!(why.contains("clap"), "{why}");
    let other = Item { kind: *b"hvc1", ..item(data.clone(), (16, 16)) };
    let Err(Error::Undecodable(why)) = read_source(&file(&[other])) else { panic!("it was read") };
    assert!(why.contains("hvc1"), "{why}");
    let mut long = item(data, (16, 16));
    long.properties.push(boxed(b"pasp", &[&vec![0; 2 * PROFILE_BYTES_MAX]]));
    assert!(read_source(&file(&[long])).is_err());
}

#[test]
fn abandoned_avif_decode_does_not_start() {
    let bytes = written(&flat(PixelLayout::Rgb, (4, 4), &[9, 9, 9]), 95);
    let source = read_source(&bytes).unwrap();
    assert_eq!(decode(&bytes, &source, &|| true), Err(Error::Cancelled));
}

/// Builds a small file with all features.
fn rich() -> Vec<u8> {
    let samples = (0..12 * 10 * 4).map(|at: u32| (at * at % 251) as u8).collect();
    written(&PixelBuffer::new((12, 10), PixelLayout::Rgba, samples, None).unwrap(), 95)
}

#[test]
fn truncated_avif_does_not_panic() {
    let (whole, tiled) = (rich(), file(&grid((30, 19))));
    for bytes in [&whole, &tiled] {
        for length in 0..bytes.len() {
            if let Ok(picture) = read(&bytes[..length]) {
                assert_eq!(picture.dimensions(), read_source(bytes).unwrap().sides);
            }
        }
    }
    assert!(read(&whole[..whole.len() / 2]).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn corrupt_avif_does_not_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        is_tiled in any::<bool>(),
    ) {
        let mut bytes = if is_tiled { TILED.clone() } else { RICH.clone() };
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(source) = read_source(&bytes)
            && source.pixels() < 1_000_000
            && let Ok(picture) = decode(&bytes, &source, &|| false)
        {
            prop_assert_eq!(picture.dimensions(), source.sides);
        }
    }
}

static RICH: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(rich);
static TILED: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(|| file(&grid((30, 19))));
