//! PNG writer, chunk by chunk (PNG 3, 5).

#![allow(clippy::big_endian_bytes, reason = "PNG is big-endian")]

/// Returns a chunk with its checksum.
pub fn chunk(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let named = [name, data].concat();
    let length = (data.len() as u32).to_be_bytes();
    [&length[..], &named, &crc32(&named).to_be_bytes()].concat()
}

/// Returns the start of a file: its width and height, the depth and type of its colours, whether it is interlaced.
pub fn head((width, height): (u32, u32), [depth, colour, interlaced]: [u8; 3]) -> Vec<u8> {
    let sides = [width.to_be_bytes(), height.to_be_bytes()].concat();
    let head = [&sides[..], &[depth, colour, 0, 0, interlaced]].concat();
    [&b"\x89PNG\r\n\x1a\n"[..], &chunk(b"IHDR", &head)].concat()
}

fn crc32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 }
        })
    }) ^ u32::MAX
}
