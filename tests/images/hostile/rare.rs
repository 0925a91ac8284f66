//! BMP, ICO and QOI files with arbitrary sizes in their headers.

/// Returns a BMP with the header of 40 bytes, of so many bits a pixel.
pub(super) fn bmp(width: u32, height: u32, bits: u16, rows: &[u8]) -> Vec<u8> {
    let mut file = b"BM".to_vec();
    for number in [54 + rows.len() as u32, 0, 54, 40, width, height] {
        file.extend(number.to_le_bytes());
    }
    file.extend([1, 0]);
    file.extend(bits.to_le_bytes());
    file.extend([0; 24]);
    file.extend(rows);
    file
}

/// Returns a QOI of red, green, blue and alpha.
pub(super) fn qoi(width: u32, height: u32, codes: &[u8]) -> Vec<u8> {
    let sides = [width.to_be_bytes(), height.to_be_bytes()].concat();
    [b"qoif", &sides[..], &[4, 0], codes, &[0, 0, 0, 0, 0, 0, 0, 1]].concat()
}

/// Returns an icon of one picture.
pub(super) fn icon(picture: &[u8]) -> Vec<u8> {
    let mut file = vec![0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 32, 0];
    file.extend([(picture.len() as u32).to_le_bytes(), 22_u32.to_le_bytes()].concat());
    file.extend(picture);
    file
}

/// Returns an icon of many pictures, none of which is present.
pub(super) fn icons(count: u16) -> Vec<u8> {
    let mut file = vec![0, 0, 1, 0];
    file.extend(count.to_le_bytes());
    for _ in 0..count {
        file.extend([16, 16, 0, 0, 1, 0, 32, 0, 1, 0, 0, 0]);
        file.extend((6 + 16 * u32::from(count)).to_le_bytes());
    }
    file
}
