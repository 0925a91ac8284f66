//! JPEG files, modified segment by segment.

use fuzz::synthetic_photo::{Encoding, SyntheticPhoto};

use crate::PLAIN;

/// Returns a small valid file.
pub(super) fn small(progressive: Option<u8>) -> Vec<u8> {
    SyntheticPhoto::new(31, 96, 64).jpeg(&Encoding { progressive, ..PLAIN })
}

/// Returns the file with another size in its frame header.
pub(super) fn with_sides(file: &[u8], width: u16, height: u16) -> Vec<u8> {
    let mut changed = file.to_vec();
    let at = frame_at(file);
    changed[at + 5..at + 7].copy_from_slice(&height.to_be_bytes());
    changed[at + 7..at + 9].copy_from_slice(&width.to_be_bytes());
    changed
}

/// Returns the offset of the frame marker.
pub(super) fn frame_at(file: &[u8]) -> usize {
    let is_frame = |pair: &[u8]| matches!(pair, [0xff, 0xc0..=0xc2]);
    file.windows(2).position(is_frame).expect("there is a frame")
}

/// Returns the file with its last scan repeated so many times.
pub(super) fn with_scans(file: &[u8], count: usize) -> Vec<u8> {
    let last = file.windows(2).rposition(|pair| pair == [0xff, 0xda]).expect("there is a scan");
    let end = file.len() - 2;
    [&file[..end], &file[last..end].repeat(count), &file[end..]].concat()
}

/// Returns the file with segments after its first marker.
pub(super) fn with_segments(file: &[u8], marker: u8, segments: &[Vec<u8>]) -> Vec<u8> {
    let segment = |data: &Vec<u8>| {
        let length = (data.len() as u16 + 2).to_be_bytes();
        [&[0xff, marker][..], &length, data].concat()
    };
    let segments: Vec<u8> = segments.iter().flat_map(segment).collect();
    [&file[..2], &segments, &file[2..]].concat()
}

/// Returns the file without the segments of a marker.
pub(super) fn without(file: &[u8], marker: u8) -> Vec<u8> {
    let (mut kept, mut at) = (file[..2].to_vec(), 2);
    while file[at + 1] != 0xda {
        let length = 2 + usize::from(u16::from_be_bytes([file[at + 2], file[at + 3]]));
        if file[at + 1] != marker {
            kept.extend(&file[at..at + length]);
        }
        at += length;
    }
    kept.extend(&file[at..]);
    kept
}
