//! Maps quality 1-100 to quantisers.
//!
//! A requested quality has the meaning of libvips, and therefore of sharp: the same similarity to the original, by
//! SSIMULACRA2, as the output of libvips at this quality. Faster encoders need more bytes for it.

/// Returns the quantiser of a requested quality, interpolated between two entries of a measured table. The table
/// begins at 1 and ends at 100.
pub(super) fn by_table(table: &[(u8, u8)], asked: u8) -> u8 {
    let asked = asked.clamp(1, 100);
    let pair = table.windows(2).find_map(|pair| match pair {
        [low, high] if asked <= high.0 => Some((*low, *high)),
        _ => None,
    });
    let ((from, low), (to, high)) = pair.unwrap_or(((0, 0), (100, 100)));
    let part = f32::from(asked - from) / f32::from(to - from);
    (f32::from(low) + part * (f32::from(high) - f32::from(low))).round() as u8
}

#[cfg(test)]
mod tests {
    use super::by_table;

    #[test]
    fn quality_table_interpolates_linearly() {
        let table = [(1, 63), (50, 40), (60, 30), (100, 0)];
        let found = [0, 1, 50, 55, 60, 80, 100, 101].map(|asked| by_table(&table, asked));
        assert_eq!(found, [63, 63, 40, 35, 30, 15, 0, 0]);
    }
}
