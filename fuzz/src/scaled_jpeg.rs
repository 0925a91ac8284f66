//! The scaled JPEG decoder: any bytes, and pictures on which a second decoder agrees.
//!
//! Input that starts like a JPEG is a file. No panic; the same result twice; planes of the size that the scale gives,
//! within the estimated memory; limits hold; the header equals the one read alone; in a sequential file, where every
//! bit is read at any scale, the same error at each. A second decoder that reads the headers of such a file sees the
//! same width and height: nothing more holds for damaged files, which each decoder repairs in its own way, the second
//! with panics.
//!
//! Other input chooses a picture and an encoding. The file is valid, and each plane, at half size, is near that of the
//! second decoder.

use ::scaled_jpeg::{
    DecodeStatus, Decoded, Error, Header, Limits, Scale, decode, full_size_pixels, memory_bytes,
    read_header,
};

use crate::choice_sequence::ChoiceSequence;
use crate::synthetic_photo::{Encoding, Full, SamplingFactor, SyntheticPhoto, Tables};

const LIMITS: Limits = Limits {
    pixels_max: 1 << 18,
    side_max: 1 << 12,
    scans_max: 30,
    blocks_max: 1 << 15,
    profile_bytes_max: 256,
};

/// Returns the maximum mean difference of two planes of the same picture, in steps of 255. Half-size samples of strong
/// textures differ by as much as two ways of downscaling do; the mean of a few samples has no significance.
fn difference_max(samples: usize) -> f64 {
    if samples < 64 { 24.0 } else { 8.0 }
}

/// Checks the properties.
pub fn run(input: &[u8]) {
    if input.starts_with(&[0xff, 0xd8]) {
        any_file(input);
    } else {
        whole_file(&mut ChoiceSequence::new(input));
    }
}

fn any_file(file: &[u8]) {
    let header = read_header(file, &LIMITS);
    let mut conditions = Vec::new();
    for scale in Scale::ALL {
        let decoded = decode(file, scale, &LIMITS, &|| false);
        assert_eq!(decoded, decode(file, scale, &LIMITS, &|| false), "twice the same");
        let Ok(header) = &header else {
            assert_eq!(decoded.err(), header.as_ref().err().copied(), "as the header alone");
            continue;
        };
        match decoded {
            Ok(decoded) => {
                assert_eq!(decoded.header, *header);
                fits(&decoded);
                conditions.push(Some(decoded.condition));
            }
            Err(Error::Cancelled) => panic!("nobody cancelled"),
            Err(_) => conditions.push(None),
        }
    }
    let Ok(header) = header else { return };
    assert!(header.width.max(header.height) <= LIMITS.side_max);
    assert!(u64::from(header.width) * u64::from(header.height) <= LIMITS.pixels_max);
    assert!(header.profile.as_ref().is_none_or(|bytes| bytes.len() <= LIMITS.profile_bytes_max));
    assert!((1..=8).contains(&header.orientation));
    assert!(header.exif.as_ref().is_none_or(|range| range.end <= file.len()));
    if !header.progressive {
        assert!(conditions.windows(2).all(|pair| pair[0] == pair[1]), "{conditions:?}");
    }
    if let Some(sides) = Full::sides(file) {
        assert_eq!(sides, (header.width as usize, header.height as usize));
    }
    assert!(decode(file, Scale::Eighth, &LIMITS, &|| true).is_err(), "nothing behind a stop");
}

fn fits(decoded: &Decoded) {
    let Header { width, height, sampling, .. } = &decoded.header;
    assert_eq!(decoded.planes.len(), sampling.len());
    let mut bytes = 0;
    for (plane, factors) in decoded.planes.iter().zip(sampling) {
        assert_eq!(plane.rows().count(), plane.height);
        assert!(plane.width <= plane.stride && plane.width > 0 && plane.height > 0);
        if sampling.iter().all(|other| other.0 <= factors.0 && other.1 <= factors.1) {
            let sides = (
                decoded.scale.scaled_len(*width) as usize,
                decoded.scale.scaled_len(*height) as usize,
            );
            assert_eq!((plane.width, plane.height), sides);
        }
        bytes += plane.samples.capacity() as u64;
    }
    assert!(bytes <= memory_bytes(&decoded.header, decoded.scale));
    if decoded.scale == Scale::Full {
        let pixels = full_size_pixels(decoded, &|| false).expect("nobody cancelled");
        assert_eq!(pixels.len(), *width as usize * *height as usize * sampling.len());
    }
}

fn whole_file(choices: &mut ChoiceSequence<'_>) {
    let sides = (1 + choices.below(70) as u16, 1 + choices.below(70) as u16);
    let mut photograph = SyntheticPhoto::new(choices.number() >> 8, sides.0, sides.1);
    let encoding = Encoding {
        sampling: choices.one_of(&[
            SamplingFactor::R_4_4_4,
            SamplingFactor::R_4_2_0,
            SamplingFactor::R_4_2_2,
            SamplingFactor::R_4_4_0,
        ]),
        is_grey: choices.below(5) == 0,
        progressive: choices.one_of(&[None, Some(2), Some(4), Some(9)]),
        restart_interval: choices.one_of(&[0, 0, 1, 2, 7]),
        quality: 30 + choices.below(70) as u8,
        tables: choices.one_of(&[Tables::Usual, Tables::Own]),
    };
    // Pieces of the input are painted over the picture, to cover codes and coefficients of all kinds.
    while !choices.is_exhausted() {
        let at = choices.below(photograph.rgb.len());
        for (sample, byte) in photograph.rgb.iter_mut().skip(at).zip(choices.short_bytes()) {
            *sample = (*sample / 8 * 7).saturating_add(byte / 8);
        }
    }
    let file = photograph.jpeg(&encoding);
    // The other decoder gets the same coefficients in one scan, which it reads best.
    let plain =
        Encoding { progressive: None, restart_interval: 0, tables: Tables::Usual, ..encoding };
    let Some(full) = Full::decode(&photograph.jpeg(&plain)) else {
        panic!("{encoding:?} {sides:?}: refused")
    };
    let decoded = decode(&file, Scale::Half, &LIMITS, &|| false).expect("a whole file");
    assert_eq!(decoded.condition, DecodeStatus::Complete, "{encoding:?}");
    for (component, plane) in decoded.planes.iter().enumerate() {
        let reduced = full.reduced(component, plane.covered);
        let pairs = plane.rows().flatten().zip(reduced.iter().flatten());
        let sum: f64 = pairs.map(|(ours, theirs)| (f64::from(*ours) - theirs).abs()).sum();
        let samples = plane.width * plane.height;
        let mean = sum / samples as f64;
        assert!(mean <= difference_max(samples), "{mean} in {component} of {encoding:?} {sides:?}");
    }
}
