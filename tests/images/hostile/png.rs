//! PNG files, chunk by chunk.

use super::bits::zlib_of_zeros;

/// A chunk with its sum.
pub(super) fn chunk(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let named = [name, data].concat();
    let length = (data.len() as u32).to_be_bytes();
    [&length[..], &named, &crc32(&named).to_be_bytes()].concat()
}

/// A file of one colour, black or clear: its sides, the depth and type of its colours, whether it is interlaced, the
/// chunks before its pixels, and how many bytes of pixels there are.
pub(super) fn file(
    (width, height): (u32, u32),
    [depth, colour, interlaced]: [u8; 3],
    chunks: &[Vec<u8>],
    pixel_bytes: usize,
) -> Vec<u8> {
    let sides = [width.to_be_bytes(), height.to_be_bytes()].concat();
    let head = [&sides[..], &[depth, colour, 0, 0, interlaced]].concat();
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    file.extend(chunk(b"IHDR", &head));
    file.extend(chunks.concat());
    file.extend(chunk(b"IDAT", &zlib_of_zeros(pixel_bytes)));
    file.extend(chunk(b"IEND", b""));
    file
}

fn crc32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 }
        })
    }) ^ u32::MAX
}
