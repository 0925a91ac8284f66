//! PNG files, chunk by chunk.

pub(super) use tests::png::chunk;
use tests::png::head;

use super::bits::zlib_of_zeros;

/// Returns a file of one colour, black or clear: its size, the depth and type of its colours, whether it is interlaced,
/// the chunks before its pixels, and the number of bytes of pixels.
pub(super) fn file(
    (width, height): (u32, u32),
    [depth, colour, interlaced]: [u8; 3],
    chunks: &[Vec<u8>],
    pixel_bytes: usize,
) -> Vec<u8> {
    let mut file = head((width, height), [depth, colour, interlaced]);
    file.extend(chunks.concat());
    file.extend(chunk(b"IDAT", &zlib_of_zeros(pixel_bytes)));
    file.extend(chunk(b"IEND", b""));
    file
}
