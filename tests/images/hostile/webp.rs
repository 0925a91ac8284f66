//! WebP files, chunk by chunk.

use super::bits::Bits;

/// Returns a chunk, padded to an even length.
pub(super) fn chunk(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let padding = vec![0; data.len() % 2];
    [&name[..], &(data.len() as u32).to_le_bytes(), data, &padding].concat()
}

/// Returns a file of chunks.
pub(super) fn file(chunks: &[Vec<u8>]) -> Vec<u8> {
    chunk(b"RIFF", &[&b"WEBP"[..], &chunks.concat()].concat())
}

/// Returns a lossless picture of one colour, which takes no bits for its pixels.
pub(super) fn lossless(width: u32, height: u32) -> Vec<u8> {
    let mut bits = Bits::default();
    bits.put(0x2f, 8);
    bits.put(width - 1, 14);
    bits.put(height - 1, 14);
    // Alpha; version 0; no transform, no cache of colours, one group of codes.
    bits.put(1, 1);
    bits.put(0, 3 + 3);
    for _ in 0..5 {
        // A code of one symbol, 0.
        bits.put(1, 4);
    }
    chunk(b"VP8L", &bits.finish())
}

/// Returns a lossy picture that ends after its header.
pub(super) fn lossy_head(width: u16, height: u16) -> Vec<u8> {
    let sides = [width.to_le_bytes(), height.to_le_bytes()].concat();
    chunk(b"VP8 ", &[&[0x10, 1, 0, 0x9d, 1, 0x2a][..], &sides, &[0; 16]].concat())
}

/// Returns the head of an extended file: its features, and the size of its canvas.
pub(super) fn extended(flags: u8, width: u32, height: u32) -> Vec<u8> {
    chunk(b"VP8X", &[&[flags, 0, 0, 0][..], &three(width - 1), &three(height - 1)].concat())
}

/// Feature flag of animation.
pub(super) const MOVES: u8 = 0x02;
pub(super) const HAS_EXIF: u8 = 0x08;
pub(super) const HAS_PROFILE: u8 = 0x20;

/// Returns the chunk that every animation has.
pub(super) fn plays() -> Vec<u8> {
    chunk(b"ANIM", &[0; 6])
}

/// Returns a frame: left, top, width, height, and its picture.
pub(super) fn frame([left, top, width, height]: [u32; 4], picture: &[u8]) -> Vec<u8> {
    let place = [left / 2, top / 2, width - 1, height - 1].map(three).concat();
    chunk(b"ANMF", &[&place[..], &[40, 0, 0, 0], picture].concat())
}

fn three(value: u32) -> [u8; 3] {
    let [a, b, c, _] = value.to_le_bytes();
    [a, b, c]
}
