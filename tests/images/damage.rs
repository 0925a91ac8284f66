//! Truncated files, and files with damaged data.

use fuzz::synthetic_photo::{Encoding, SamplingFactor, SyntheticPhoto};
use scaled_jpeg::{DecodeStatus, Decoded, Error, Scale};

use super::{PLAIN, SAMPLINGS, decode};

/// Checks every truncation of a file: an error while there is no picture, then a picture that is marked as truncated,
/// with planes of the full size.
fn cut_off(file: &[u8], step: usize) {
    for scale in [Scale::Eighth, Scale::Half] {
        let whole = decode(file, scale).unwrap();
        assert_eq!(whole.condition, DecodeStatus::Complete);
        let mut has_begun = false;
        // The end marker is not part of the picture in a baseline file.
        for end in (0..file.len() - 2).step_by(step) {
            match decode(&file[..end], scale) {
                Ok(cut) => {
                    has_begun = true;
                    let sizes = |decoded: &Decoded| -> Vec<_> {
                        decoded
                            .planes
                            .iter()
                            .map(|p| (p.width, p.height, p.samples.len()))
                            .collect()
                    };
                    assert_eq!(sizes(&cut), sizes(&whole), "cut off at {end}");
                    let is_known = cut.condition == DecodeStatus::Truncated;
                    // Only the padding of the last byte may be missing without a trace.
                    assert!(is_known || cut.planes == whole.planes, "cut off at {end}");
                }
                Err(error) => {
                    assert!(!has_begun, "{error} at {end}, behind a picture");
                    assert!(
                        matches!(error, Error::UnexpectedEof | Error::NotJpeg),
                        "{error} at {end}"
                    );
                }
            }
        }
        assert!(has_begun);
    }
}

#[test]
fn small_file_truncated_at_every_byte_decodes_partially() {
    let photograph = SyntheticPhoto::new(5, 37, 21);
    for sampling in SAMPLINGS {
        for (progressive, restart_interval) in [(None, 0), (None, 2), (Some(3), 0), (Some(3), 2)] {
            let encoding =
                Encoding { sampling, progressive, restart_interval, quality: 60, ..PLAIN };
            cut_off(&photograph.jpeg(&encoding), 1);
        }
    }
    cut_off(include_bytes!("../fixtures/jpeg/420_progressive.jpg"), 7);
}

#[test]
fn large_file_truncated_every_64_bytes_decodes_partially() {
    let photograph = SyntheticPhoto::new(6, 320, 200);
    cut_off(&photograph.jpeg(&PLAIN), 64);
    cut_off(&photograph.jpeg(&Encoding { progressive: Some(6), ..PLAIN }), 64);
}

#[test]
fn truncated_file_matches_whole_file_before_the_cut() {
    let encoding = Encoding { sampling: SamplingFactor::R_4_4_4, ..PLAIN };
    let file = SyntheticPhoto::new(7, 256, 256).jpeg(&encoding);
    let whole = decode(&file, Scale::Half).unwrap();
    let cut = decode(&file[..file.len() / 2], Scale::Half).unwrap();
    assert_eq!(cut.condition, DecodeStatus::Truncated);
    for (cut, whole) in cut.planes.iter().zip(&whole.planes) {
        let (first, last) = (cut.rows().take(64), cut.rows().skip(112));
        assert!(whole.rows().zip(first).take(40).all(|(whole, cut)| whole == cut));
        assert!(last.flatten().all(|sample| *sample == 128), "mid-grey where nothing is known");
    }
}

#[test]
fn damage_is_confined_to_the_restart_interval() {
    // One row of blocks in each interval: damage in one row leaves the others as they are.
    let encoding = Encoding { sampling: SamplingFactor::R_4_4_4, restart_interval: 16, ..PLAIN };
    let file = SyntheticPhoto::new(8, 128, 128).jpeg(&encoding);
    let whole = decode(&file, Scale::Half).unwrap();
    let restarts: Vec<usize> = (0..file.len() - 1)
        .filter(|at| file[*at] == 0xff && (0xd0..=0xd7).contains(&file[*at + 1]))
        .collect();
    assert_eq!(restarts.len(), 15);
    let damaged = |bytes: &[u8]| {
        let decoded = decode(bytes, Scale::Half).unwrap();
        let rows = |decoded: &Decoded| -> Vec<Vec<u8>> {
            decoded.planes[0].rows().map(<[u8]>::to_vec).collect()
        };
        let (ours, whole) = (rows(&decoded), rows(&whole));
        let differing =
            (0..16).filter(|row| ours[4 * row..4 * row + 4] != whole[4 * row..4 * row + 4]);
        (decoded.condition, differing.collect::<Vec<_>>())
    };
    // A marker and its interval are missing.
    let without = [&file[..restarts[4]], &file[restarts[5]..]].concat();
    assert_eq!(damaged(&without), (DecodeStatus::Damaged, vec![5]));
    // Half of an interval is missing.
    let middle = restarts[7].midpoint(restarts[8]);
    let without = [&file[..middle], &file[restarts[8]..]].concat();
    assert_eq!(damaged(&without), (DecodeStatus::Damaged, vec![8]));
    // Bits in the middle are changed: wherever decoding fails, the rows below are right.
    for at in restarts[9] + 2..restarts[10] {
        let mut broken = file.clone();
        broken[at] ^= 0x55;
        if broken[at] == 0xff {
            // This may be a marker that ends the picture.
            continue;
        }
        let (_, differing) = damaged(&broken);
        assert!(differing.iter().all(|row| *row == 10), "{differing:?} from {at}");
    }
}
