//! GIF files, block by block.

use super::bits::{lzw_of_noise, lzw_of_zeros};

/// Returns a file with a canvas of this size, and these frames.
pub(super) fn file((width, height): (u16, u16), frames: &[Vec<u8>]) -> Vec<u8> {
    let head = [&b"GIF89a"[..], &width.to_le_bytes(), &height.to_le_bytes(), &[0x80, 0, 0]];
    // Black and white.
    let palette = [0, 0, 0, 255, 255, 255];
    [&head.concat()[..], &palette, &frames.concat(), b";"].concat()
}

/// Returns a black frame: left, top, width, height, its disposal, and the number of pixels.
pub(super) fn frame(place: [u16; 4], removed: u8, pixels: usize) -> Vec<u8> {
    frame_of(place, removed, &lzw_of_zeros(pixels))
}

/// Returns a frame of black and white noise, which is not disposed: left, top, width, height.
pub(super) fn noise(place: [u16; 4]) -> Vec<u8> {
    frame_of(place, 1, &lzw_of_noise(usize::from(place[2]) * usize::from(place[3])))
}

fn frame_of(place: [u16; 4], removed: u8, codes: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x21, 0xf9, 4, removed << 2, 4, 0, 0, 0, b','];
    frame.extend(place.iter().flat_map(|value| value.to_le_bytes()));
    // No palette of its own; indices of two bits.
    frame.extend([0, 2]);
    frame.extend(blocks(codes));
    frame
}

/// Returns data in sub-blocks.
pub(super) fn blocks(data: &[u8]) -> Vec<u8> {
    let blocks = data.chunks(255).flat_map(|block| [&[block.len() as u8], block].concat());
    blocks.chain([0]).collect()
}
