//! Tests of small hand-made files: supported, rejected, bounded and skipped parts.

use std::sync::atomic::{AtomicI32, Ordering};

use super::*;

/// Grey file of one colour: every block has the difference 0 and nothing else, two bits `00`.
struct Small {
    sof: u8,
    precision: u8,
    size: (u16, u16),
    /// Name and sampling factors of each component.
    components: Vec<(u8, u8)>,
    /// Segments before the frame header.
    before: Vec<u8>,
    restart_interval: u16,
    scans: Vec<Vec<u8>>,
}

impl Small {
    fn new(size: (u16, u16)) -> Self {
        Self {
            sof: 0xc0,
            precision: 8,
            size,
            components: vec![(1, 0x11)],
            before: Vec::new(),
            restart_interval: 0,
            scans: vec![scan(&[1], (0, 63, 0), &[0; 64])],
        }
    }

    fn progressive(size: (u16, u16), scans: &[(u8, u8, u8)]) -> Self {
        let scans = scans.iter().map(|band| scan(&[1], *band, &[0; 64])).collect();
        Self { sof: 0xc2, scans, ..Self::new(size) }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0xff, 0xd8];
        bytes.extend(&self.before);
        bytes.extend(segment(0xdb, &[vec![0], vec![8; 64]].concat()));
        let [h1, h0] = self.size.1.to_be_bytes();
        let [w1, w0] = self.size.0.to_be_bytes();
        let mut frame = vec![self.precision, h1, h0, w1, w0, self.components.len() as u8];
        self.components.iter().for_each(|(id, factors)| frame.extend([*id, *factors, 0]));
        bytes.extend(segment(self.sof, &frame));
        // One code of one bit, for the difference 0 and for the end of the block.
        let mut codes = vec![0];
        codes.extend([1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        codes.extend([0x10, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend(segment(0xc4, &codes));
        if self.restart_interval > 0 {
            bytes.extend(segment(0xdd, &self.restart_interval.to_be_bytes()));
        }
        bytes.extend(self.scans.concat());
        bytes.extend([0xff, 0xd9]);
        bytes
    }

    fn decode(&self, scale: Scale) -> Result<Decoded, Error> {
        decode(&self.bytes(), scale, &Limits::PHOTOGRAPH, &|| false)
    }
}

fn segment(marker: u8, payload: &[u8]) -> Vec<u8> {
    let [high, low] = (payload.len() as u16 + 2).to_be_bytes();
    [&[0xff, marker, high, low], payload].concat()
}

fn scan(ids: &[u8], (first, last, bits): (u8, u8, u8), data: &[u8]) -> Vec<u8> {
    let mut header = vec![ids.len() as u8];
    ids.iter().for_each(|id| header.extend([*id, 0]));
    header.extend([first, last, bits]);
    [segment(0xda, &header), data.to_vec()].concat()
}

fn refused(file: &Small) -> Error {
    file.decode(Scale::Eighth).unwrap_err()
}

#[test]
fn planes_have_the_scaled_dimensions() {
    for size in [(1, 1), (8, 8), (9, 17), (100, 75), (31, 64)] {
        for scale in Scale::ALL {
            let decoded = Small::new(size).decode(scale).unwrap();
            let [plane] = &*decoded.planes else { panic!("one plane") };
            let wanted = (
                scale.scaled_len(size.0.into()) as usize,
                scale.scaled_len(size.1.into()) as usize,
            );
            assert_eq!((plane.width, plane.height), wanted, "{size:?} at {scale:?}");
            assert_eq!(plane.rows().map(<[u8]>::len).collect::<Vec<_>>(), vec![wanted.0; wanted.1]);
            assert!(plane.rows().flatten().all(|sample| *sample == 128));
            assert_eq!(decoded.condition, DecodeStatus::Complete, "{size:?} at {scale:?}");
            assert_eq!(decoded.header.colour, ColorModel::Grey);
        }
    }
}

#[test]
fn chroma_with_fewer_samples_is_scaled_down_less() {
    // Factors of the first component; size of it, and of the others, at an eighth, a quarter, three eighths and
    // half.
    let table = [
        (
            0x22,
            [((9, 5), (9, 5)), ((17, 10), (17, 10)), ((25, 15), (17, 10)), ((33, 20), (17, 10))],
        ),
        (
            0x21,
            [((9, 5), (9, 5)), ((17, 10), (17, 10)), ((25, 15), (17, 15)), ((33, 20), (17, 20))],
        ),
        (
            0x12,
            [((9, 5), (9, 5)), ((17, 10), (17, 10)), ((25, 15), (25, 10)), ((33, 20), (33, 10))],
        ),
        (
            0x11,
            [((9, 5), (9, 5)), ((17, 10), (17, 10)), ((25, 15), (25, 15)), ((33, 20), (33, 20))],
        ),
        (0x41, [((9, 5), (9, 5)), ((17, 10), (9, 10)), ((25, 15), (9, 15)), ((33, 20), (9, 20))]),
    ];
    for (factors, sizes) in table {
        let components = vec![(1, factors), (2, 0x11), (3, 0x11)];
        let scans = vec![scan(&[1, 2, 3], (0, 63, 0), &[0; 200])];
        let file = Small { components, scans, ..Small::new((66, 39)) };
        for (scale, (first, others)) in Scale::REDUCED.into_iter().zip(sizes) {
            let decoded = file.decode(scale).unwrap();
            let sizes: Vec<_> = decoded.planes.iter().map(|p| (p.width, p.height)).collect();
            assert_eq!(sizes, [first, others, others], "{factors:02x} at {scale:?}");
            let first = decoded.planes[0].covered;
            let exact = f64::from(scale.eighths()) / 8.0;
            assert_eq!(first, (66.0 * exact, 39.0 * exact), "the picture in the plane");
        }
    }
}

#[test]
fn unsupported_jpeg_variants_are_reported() {
    let with = |sof, precision, components: &[u8]| {
        let components = components.iter().map(|id| (*id, 0x11)).collect();
        refused(&Small { sof, precision, components, ..Small::new((8, 8)) })
    };
    let unsupported = Error::Unsupported;
    assert_eq!(with(0xc0, 8, &[1, 2, 3, 4, 5]), unsupported(Unsupported::Components(5)));
    assert_eq!(with(0xc0, 8, &[1, 2]), unsupported(Unsupported::Components(2)));
    assert_eq!(with(0xc1, 12, &[1]), unsupported(Unsupported::Precision(12)));
    assert_eq!(with(0xc3, 8, &[1]), unsupported(Unsupported::Lossless));
    for sof in [0xc5, 0xc6, 0xc7] {
        assert_eq!(with(sof, 8, &[1]), unsupported(Unsupported::Hierarchical));
    }
    for sof in [0xc9, 0xca, 0xcb, 0xcd, 0xce, 0xcf] {
        assert_eq!(with(sof, 8, &[1]), unsupported(Unsupported::Arithmetic));
    }
    let before = |before| refused(&Small { before, ..Small::new((8, 8)) });
    assert_eq!(before(segment(0xcc, &[0, 0])), unsupported(Unsupported::Arithmetic));
    assert_eq!(before(segment(0xde, &[8])), unsupported(Unsupported::Hierarchical));
    assert_eq!(refused(&Small::new((8, 0))), unsupported(Unsupported::Dnl));
    assert!(Small { sof: 0xc1, ..Small::new((8, 8)) }.decode(Scale::Half).is_ok());
}

#[test]
fn malformed_header_is_rejected() {
    let malformed = |file: Small| {
        let error = refused(&file);
        assert!(matches!(error, Error::Malformed { .. }), "{error}");
    };
    let components =
        |components: &[(u8, u8)]| Small { components: components.to_vec(), ..Small::new((8, 8)) };
    malformed(Small::new((0, 8)));
    malformed(components(&[]));
    malformed(components(&[(1, 0x01)]));
    malformed(components(&[(1, 0x51)]));
    malformed(components(&[(1, 0x11), (1, 0x11), (2, 0x11)]));
    malformed(Small { scans: Vec::new(), ..Small::new((8, 8)) });
    let scans = |scans: Vec<u8>| Small { scans: vec![scans], ..Small::new((8, 8)) };
    malformed(scans(scan(&[9], (0, 63, 0), &[0; 9])));
    malformed(scans(scan(&[], (0, 63, 0), &[0; 9])));
    malformed(scans(segment(0xda, &[1, 1])));
    malformed(scans(segment(0xda, &[1, 1, 0x30, 0, 63, 0])));
    let many = vec![(1, 0x44), (2, 0x11), (3, 0x11)];
    let of_three = vec![scan(&[1, 2, 3], (0, 63, 0), &[0; 9])];
    malformed(Small { components: many, scans: of_three, ..Small::new((8, 8)) });
    for band in [(0, 63, 0), (1, 64, 0), (5, 4, 0), (0, 0, 14), (0, 0, 0x20), (1, 5, 0x31)] {
        malformed(Small::progressive((8, 8), &[band]));
    }
    assert_eq!(
        decode(b"\xff\xd8", Scale::Half, &Limits::PHOTOGRAPH, &|| false),
        Err(Error::NotJpeg)
    );
    assert_eq!(decode(b"GIF89a", Scale::Half, &Limits::PHOTOGRAPH, &|| false), Err(Error::NotJpeg));
}

#[test]
fn limits_are_checked_before_decoding() {
    let over = |file: &Small, limits: Limits| {
        decode(&file.bytes(), Scale::Eighth, &limits, &|| false).map(|decoded| decoded.condition)
    };
    let usual = Limits::PHOTOGRAPH;
    let file = Small::new((64, 16));
    let allowed = Limits { pixels_max: 1_024, side_max: 64, blocks_max: 16, scans_max: 0, ..usual };
    assert_eq!(
        over(&file, allowed),
        Ok(DecodeStatus::Complete),
        "scans are counted in progressive files"
    );
    for (limits, limit) in [
        (Limits { pixels_max: 1_023, ..allowed }, Limit::Pixels),
        (Limits { side_max: 63, ..allowed }, Limit::Side),
        (Limits { blocks_max: 15, ..allowed }, Limit::Blocks),
    ] {
        assert_eq!(over(&file, limits), Err(Error::OverLimit(limit)));
    }
    // A DC scan, and a hundred times one that this scale needs, or does not.
    let constant = [(0, 0, 0)].repeat(100);
    let file = Small::progressive((64, 16), &constant);
    let of_scans = Limits { scans_max: 100, blocks_max: 1_600, ..usual };
    assert_eq!(over(&file, of_scans), Ok(DecodeStatus::Complete));
    let fewer = Limits { scans_max: 99, ..of_scans };
    assert_eq!(over(&file, fewer), Err(Error::OverLimit(Limit::Scans)));
    let fewer = Limits { blocks_max: 1_599, ..of_scans };
    assert_eq!(over(&file, fewer), Err(Error::OverLimit(Limit::Blocks)));
    let others = [vec![(0, 0, 0)], [(1, 63, 0)].repeat(99)].concat();
    let skipped = Small::progressive((64, 16), &others);
    assert_eq!(over(&skipped, Limits { blocks_max: 16, ..of_scans }), Ok(DecodeStatus::Complete));
}

#[test]
fn memory_use_matches_the_estimate() {
    for progressive in [false, true] {
        for factors in [0x11, 0x22, 0x21, 0x42] {
            let components = vec![(1, factors), (2, 0x11), (3, 0x11)];
            let sof = if progressive { 0xc2 } else { 0xc0 };
            let file = Small { sof, components, ..Small::new((1_001, 77)) };
            let bytes = file.bytes();
            let header = read_header(&bytes, &Limits::PHOTOGRAPH).unwrap();
            for scale in Scale::ALL {
                let layout = Layout::new(&header.frame, scale);
                let planes = layout.parts.iter().map(|part| part.plane().samples.capacity());
                let mut taken = planes.sum::<usize>();
                if progressive {
                    taken += progressive::bytes_of_coefficients(&layout);
                }
                let predicted = memory_bytes(&header, scale) as usize - huffman::BYTES_MAX;
                assert_eq!(taken, predicted, "{factors:02x} at {scale:?}");
                if scale == Scale::Full {
                    continue;
                }
                // Planes at 1/2 in both directions are a quarter of the pixels, for at most three components, and
                // their blocks are complete.
                let whole = (1_001 + 31) * (77 + 31) * 3;
                assert!(predicted <= if progressive { whole } else { whole / 4 });
            }
        }
    }
}

#[test]
fn scaled_decode_is_cancellable() {
    for file in [Small::new((64, 64)), Small::progressive((64, 64), &[(0, 0, 0), (1, 63, 0)])] {
        let bytes = file.bytes();
        let asked = AtomicI32::new(0);
        let count = || {
            asked.fetch_add(1, Ordering::Relaxed);
            false
        };
        decode(&bytes, Scale::Half, &Limits::PHOTOGRAPH, &count).unwrap();
        let asked = asked.into_inner();
        assert!(asked >= 8, "once for each row of blocks");
        for end in 0..asked {
            let left = AtomicI32::new(end);
            let stop = || left.fetch_sub(1, Ordering::Relaxed) == 0;
            let ended = decode(&bytes, Scale::Half, &Limits::PHOTOGRAPH, &stop);
            assert_eq!(ended, Err(Error::Cancelled), "asked {end} times before");
        }
    }
}

#[test]
fn color_model_follows_jfif_adobe_then_component_ids() {
    let jfif = segment(0xe0, b"JFIF\0\x01\x02\0\0\x01\0\x01\0\0");
    let adobe =
        |transform| segment(0xee, &[b"Adobe\0\x64\0\0\0\0" as &[u8], &[transform]].concat());
    let colour = |names: &[u8], before: &[Vec<u8>]| {
        let components = names.iter().map(|name| (*name, 0x11)).collect();
        let scans = vec![scan(names, (0, 63, 0), &[0; 9])];
        let file = Small { components, scans, before: before.concat(), ..Small::new((8, 8)) };
        file.decode(Scale::Eighth).unwrap().header.colour
    };
    assert_eq!(colour(&[1, 2, 3], &[]), ColorModel::YCbCr);
    assert_eq!(colour(b"RGB", &[]), ColorModel::Rgb);
    assert_eq!(colour(&[1, 2, 3], &[adobe(0)]), ColorModel::Rgb);
    assert_eq!(colour(b"RGB", &[adobe(1)]), ColorModel::YCbCr);
    assert_eq!(colour(b"RGB", std::slice::from_ref(&jfif)), ColorModel::YCbCr);
    assert_eq!(colour(&[1, 2, 3], &[jfif.clone(), adobe(0)]), ColorModel::YCbCr);
    assert_eq!(colour(&[1, 2, 3], &[adobe(2)]), ColorModel::YCbCr);
    assert_eq!(colour(&[1, 2, 3], &[adobe(255)]), ColorModel::YCbCr);
    assert_eq!(colour(&[1, 2, 3], &[segment(0xee, b"Adobe\0\x64\0\0")]), ColorModel::YCbCr);
    assert_eq!(colour(&[1, 2, 3, 4], &[]), ColorModel::Cmyk);
    assert_eq!(colour(&[1, 2, 3, 4], &[jfif]), ColorModel::Cmyk);
    assert_eq!(colour(&[1, 2, 3, 4], &[adobe(0)]), ColorModel::Cmyk);
    assert_eq!(colour(&[1, 2, 3, 4], &[adobe(2)]), ColorModel::Ycck);
}

#[test]
fn missing_huffman_tables_use_the_standard_ones() {
    // In the standard tables 00 is the difference 0 of luminance, and 1010 the end of its block.
    let without_tables = |table: u8| {
        let data = [0b0010_1000, 0xff, 0xd9];
        let sos = segment(0xda, &[1, 1, table << 4 | table, 0, 63, 0]);
        let file = Small { scans: vec![[sos, data.to_vec()].concat()], ..Small::new((8, 8)) };
        let bytes = file.bytes();
        let dht = bytes.windows(2).position(|pair| pair == [0xff, 0xc4]).unwrap();
        let bytes = [&bytes[..dht], &bytes[dht + 2 + 2 + 36..]].concat();
        decode(&bytes, Scale::Full, &Limits::PHOTOGRAPH, &|| false)
    };
    let decoded = without_tables(0).unwrap();
    assert_eq!(decoded.condition, DecodeStatus::Complete);
    assert_eq!(decoded.planes[0].samples, [128; 64]);
    assert!(
        matches!(without_tables(2), Err(Error::Malformed { .. })),
        "there are two of each kind"
    );
}

#[test]
fn metadata_is_reported_and_bounded() {
    let exif = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
    let profile = |number, count, part: &[u8]| {
        segment(0xe2, &[b"ICC_PROFILE\0", &[number, count][..], part].concat())
    };
    let comment = segment(0xfe, b"\xff\xda anything");
    let before =
        [segment(0xe1, exif), profile(2, 2, b"file"), comment, profile(1, 2, b"pro")].concat();
    let bytes = Small { before, ..Small::new((8, 8)) }.bytes();
    let header = read_header(&bytes, &Limits::PHOTOGRAPH).unwrap();
    assert_eq!(header.orientation, 6);
    assert_eq!(&bytes[header.exif.unwrap()], &exif[6..]);
    assert_eq!(header.profile.as_deref(), Some(&b"profile"[..]));
    let limits = Limits { profile_bytes_max: 6, ..Limits::PHOTOGRAPH };
    assert_eq!(read_header(&bytes, &limits).unwrap().profile, None);
}

#[test]
fn restart_markers_put_decoding_right_after_damage() {
    // Eight blocks across, two in an interval. A code of eight ones is invalid, and a byte of ones is stuffed.
    let decoded = |intervals: [&[u8]; 4]| {
        let [first, second, third, fourth] = intervals;
        let file = Small {
            restart_interval: 2,
            scans: vec![scan(&[1], (0, 63, 0), &[first, second, third, fourth].concat())],
            ..Small::new((64, 8))
        };
        file.decode(Scale::Eighth).unwrap().condition
    };
    let whole: [&[u8]; 4] = [&[0, 0xff, 0xd0], &[0, 0xff, 0xd1], &[0, 0xff, 0xd2], &[0]];
    assert_eq!(decoded(whole), DecodeStatus::Complete);
    let [first, second, third, fourth] = whole;
    let broken: &[u8] = &[0xff, 0, 0xff, 0xd1];
    assert_eq!(decoded([first, broken, third, fourth]), DecodeStatus::Damaged);
    assert_eq!(decoded([first, &[], third, fourth]), DecodeStatus::Damaged, "one is missing");
    assert_eq!(decoded([first, second, &[], &[]]), DecodeStatus::Damaged, "the last are missing");
    assert_eq!(
        decoded([first, &[0, 0xff, 0xd7], second, third]),
        DecodeStatus::Damaged,
        "a late one"
    );
}

#[test]
fn invalid_later_scans_keep_earlier_data() {
    let mut file = Small::progressive((16, 16), &[(0, 0, 0), (1, 63, 0)]);
    file.scans.insert(1, segment(0xda, &[7]));
    assert_eq!(file.decode(Scale::Eighth).unwrap().condition, DecodeStatus::Damaged);
    let mut file = Small::progressive((16, 16), &[(0, 0, 0), (1, 63, 0)]);
    file.scans.insert(1, segment(0xc4, &[0x77]));
    assert_eq!(file.decode(Scale::Half).unwrap().condition, DecodeStatus::Damaged);
    // Three components, of which two have no scan.
    let components = vec![(1, 0x11), (2, 0x11), (3, 0x11)];
    let file = Small { components, ..Small::new((8, 8)) };
    assert_eq!(file.decode(Scale::Half).unwrap().condition, DecodeStatus::Damaged);
}
