//! Commands: literals to insert, then bytes to copy from before (RFC 7932 sections 4 and 5).

use super::bit_writer::BitWriter;

/// Number of symbols of commands, and of distances.
pub(super) const COMMAND_SYMBOLS: usize = 704;
pub(super) const DISTANCE_SYMBOLS: usize = 64;

/// Distances at the start of a stream, the last one first.
pub(super) const RECENT_DISTANCES: [usize; 4] = [4, 11, 15, 16];

/// Smallest insert length of each code, and its extra bits.
const INSERT: [(u32, u32); 24] = [
    (0, 0),
    (1, 0),
    (2, 0),
    (3, 0),
    (4, 0),
    (5, 0),
    (6, 1),
    (8, 1),
    (10, 2),
    (14, 2),
    (18, 3),
    (26, 3),
    (34, 4),
    (50, 4),
    (66, 5),
    (98, 5),
    (130, 6),
    (194, 7),
    (322, 8),
    (578, 9),
    (1_090, 10),
    (2_114, 12),
    (6_210, 14),
    (22_594, 24),
];
/// Smallest copy length of each code, and its extra bits.
const COPY: [(u32, u32); 24] = [
    (2, 0),
    (3, 0),
    (4, 0),
    (5, 0),
    (6, 0),
    (7, 0),
    (8, 0),
    (9, 0),
    (10, 1),
    (12, 1),
    (14, 2),
    (18, 2),
    (22, 3),
    (30, 3),
    (38, 4),
    (54, 4),
    (70, 5),
    (102, 5),
    (134, 6),
    (198, 7),
    (326, 8),
    (582, 9),
    (1_094, 10),
    (2_118, 24),
];
/// First symbol for each eight codes of insert lengths, and each eight of copy lengths.
const CELLS: [[u16; 3]; 3] = [[128, 192, 384], [256, 320, 512], [448, 576, 640]];

/// Command in the form in which it is written.
pub(super) struct Command {
    pub(super) insert: u32,
    /// Bytes to copy; 0 at the end of a meta-block.
    pub(super) copy: u32,
    pub(super) symbol: u16,
    /// Symbol of the distance, its extra bits and their number; `None` for the last distance, implied by the symbol.
    pub(super) distance: Option<(u8, u32, u32)>,
}

impl Command {
    /// Creates a command. `recent` has the last four distances, and is updated.
    pub(super) fn new(
        insert: usize,
        copy: usize,
        distance: usize,
        recent: &mut [usize; 4],
    ) -> Self {
        let short = recent.iter().position(|of| *of == distance);
        if short != Some(0) {
            *recent = [distance, recent[0], recent[1], recent[2]];
        }
        let (insert, copy) = (insert as u32, copy as u32);
        let (insert_code, copy_code) = (code_of(&INSERT, insert), code_of(&COPY, copy));
        let low = ((insert_code & 7) << 3 | copy_code & 7) as u16;
        if short == Some(0) && insert_code < 8 && copy_code < 16 {
            let symbol = low + if copy_code < 8 { 0 } else { 64 };
            return Self { insert, copy, symbol, distance: None };
        }
        let symbol = CELLS[insert_code >> 3][copy_code >> 3] + low;
        let distance = Some(short.map_or_else(|| distance_code(distance), |at| (at as u8, 0, 0)));
        Self { insert, copy, symbol, distance }
    }

    /// Creates the command for the literals at the end of a meta-block.
    pub(super) fn literals(insert: usize) -> Self {
        let insert = insert as u32;
        let code = code_of(&INSERT, insert);
        let symbol = CELLS[code >> 3][0] + ((code & 7) << 3) as u16;
        Self { insert, copy: 0, symbol, distance: None }
    }

    /// Writes the extra bits of the lengths.
    pub(super) fn write_lengths(&self, writer: &mut BitWriter) {
        for (table, length) in [(&INSERT, self.insert), (&COPY, self.copy.max(2))] {
            let (first, bits) = table[code_of(table, length)];
            writer.write(length - first, bits);
        }
    }
}

/// Returns the code of a length that is not below that of the first code.
fn code_of(table: &[(u32, u32); 24], length: u32) -> usize {
    table.partition_point(|(first, _)| *first <= length).saturating_sub(1)
}

/// Returns the symbol of a distance, its extra bits and their number.
fn distance_code(distance: usize) -> (u8, u32, u32) {
    let biased = distance as u32 + 3;
    let bits = biased.ilog2() - 1;
    let half = biased >> bits & 1;
    ((16 + 2 * (bits - 1) + half) as u8, biased - ((2 + half) << bits), bits)
}
