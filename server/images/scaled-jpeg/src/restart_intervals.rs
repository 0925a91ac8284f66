//! Iterates over the blocks of a scan in order, across restart intervals (T.81, E.2.4), and recovers from damage.
//!
//! After damage the data is skipped until the next restart marker. Its number, modulo eight, determines how many
//! intervals are missing before it: up to four are skipped; five to seven mean that the marker is late, and it is
//! ignored. Invalid markers, which damaged data may contain, are ignored too.

use super::Stop;
use super::bit_reader::{BitError, BitReader, restart_number};
use super::error::Error;
use super::markers::code;
use super::planes::DecodeStatus;
use super::scan::Grid;

/// Decoder of the MCUs of a scan.
pub(super) trait McuReader {
    /// Starts an interval by resetting the predictors.
    fn restart(&mut self);

    /// Decodes the MCU in a column and row of the grid.
    fn read(&mut self, bits: &mut BitReader<'_>, x: usize, y: usize) -> Result<(), BitError>;
}

/// Entropy-coded data of one scan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entropy<'a> {
    pub(super) bytes: &'a [u8],
    /// Offset of its first byte.
    pub(super) at: usize,
    pub(super) grid: Grid,
    /// MCUs between restart markers; 0 for none.
    pub(super) restart_interval: usize,
}

impl Entropy<'_> {
    /// Decodes the scan and returns its condition, and an offset at or before the next marker.
    pub(super) fn read(
        &self,
        mcus: &mut impl McuReader,
        stop: Stop<'_>,
    ) -> Result<(DecodeStatus, usize), Error> {
        let Grid { across, down } = self.grid;
        let total = across * down;
        let interval = if self.restart_interval == 0 { total } else { self.restart_interval };
        let mut bits = BitReader::new(self.bytes, self.at);
        let mut condition = DecodeStatus::Complete;
        let mut start = 0;
        while start < total {
            let end = (start + interval).min(total);
            mcus.restart();
            let read = read_interval(&mut bits, mcus, across, start..end, stop)?;
            if read.is_err() {
                condition = DecodeStatus::Damaged;
            }
            if end == total {
                break;
            }
            let Some(left_out) = find_restart(&mut bits, start / interval) else {
                condition = if bits.at() < self.bytes.len() {
                    DecodeStatus::Damaged
                } else {
                    DecodeStatus::Truncated
                };
                break;
            };
            if left_out > 0 {
                condition = DecodeStatus::Damaged;
            }
            start = end + left_out * interval;
        }
        if condition == DecodeStatus::Damaged && bits.find_marker().is_none() {
            condition = DecodeStatus::Truncated;
        }
        Ok((condition, bits.at()))
    }
}

fn read_interval(
    bits: &mut BitReader<'_>,
    mcus: &mut impl McuReader,
    across: usize,
    interval: std::ops::Range<usize>,
    stop: Stop<'_>,
) -> Result<Result<(), BitError>, Error> {
    let (mut x, mut y) = (interval.start % across, interval.start / across);
    // A copy, whose address is never taken.
    let mut own = *bits;
    let mut read = Ok(());
    for _ in interval {
        if x == 0 && stop() {
            return Err(Error::Cancelled);
        }
        read = mcus.read(&mut own, x, y);
        if read.is_err() {
            break;
        }
        x += 1;
        if x == across {
            (x, y) = (0, y + 1);
        }
    }
    *bits = own;
    Ok(read)
}

/// Advances past the restart marker that ends an interval and returns the number of missing intervals; `None` if
/// another marker or the end of the file comes first.
fn find_restart(bits: &mut BitReader<'_>, interval: usize) -> Option<usize> {
    loop {
        let marker = bits.find_marker()?;
        match restart_number(marker) {
            Some(number) => {
                bits.skip_marker();
                let ahead = (usize::from(number) + 8 - interval % 8) % 8;
                if ahead <= 4 {
                    return Some(ahead);
                }
            }
            None if marker < code::SOF0 => bits.skip_marker(),
            None => return None,
        }
    }
}
