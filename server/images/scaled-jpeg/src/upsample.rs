//! Upsamples planes decoded at full size, and converts them to pixels.
//!
//! A component with half of the samples in a direction is interpolated with weights of three to one; with any other
//! ratio, or half across and less down, its samples are repeated. This is the default of libjpeg, and therefore the
//! behaviour of browsers.
//!
//! Guarantees: allocates the pixels and one row per component.
//! Non-goals: resizing.

use super::Stop;
use super::error::Error;
use super::header::Header;
use super::pixels;
use super::planes::{Decoded, Plane};

/// Returns the interleaved pixels of a picture decoded at [`super::Scale::Full`], as [`super::to_pixels`]. `stop` is
/// called once per row.
///
/// # Errors
///
/// [`Error::Cancelled`].
pub fn full_size_pixels(decoded: &Decoded, stop: Stop<'_>) -> Result<Vec<u8>, Error> {
    let Header { width, height, colour, .. } = decoded.header;
    let (width, channels) = (width as usize, decoded.planes.len());
    let components = components(decoded);
    let mut rows = vec![vec![0; width]; channels];
    let mut sums = Vec::new();
    let mut samples = vec![0; width * height as usize * channels];
    for (y, row) in samples.chunks_exact_mut((width * channels).max(1)).enumerate() {
        if stop() {
            return Err(Error::Cancelled);
        }
        for (component, row) in components.iter().zip(&mut rows) {
            component.write_row(y, row, &mut sums);
        }
        match &*rows {
            [a] => pixels::interleave(colour, &[a], row),
            [a, b, c] => pixels::interleave(colour, &[a, b, c], row),
            [a, b, c, d] => pixels::interleave(colour, &[a, b, c, d], row),
            _ => {}
        }
    }
    Ok(samples)
}

/// Component to be upsampled.
struct Component<'a> {
    plane: &'a Plane,
    /// Sampling factors of the component, and the largest ones: across, down.
    factors: (usize, usize),
    factors_max: (usize, usize),
}

fn components(decoded: &Decoded) -> Vec<Component<'_>> {
    let sampling = &decoded.header.sampling;
    let max = |of: fn(&(u8, u8)) -> u8| sampling.iter().map(of).max().unwrap_or(1).max(1);
    let factors_max = (max(|it| it.0).into(), max(|it| it.1).into());
    let components = decoded.planes.iter().zip(sampling);
    components
        .map(|(plane, (across, down))| Component {
            plane,
            factors: ((*across).into(), (*down).into()),
            factors_max,
        })
        .collect()
}

impl Component<'_> {
    fn write_row(&self, y: usize, into: &mut [u8], sums: &mut Vec<u16>) {
        let is_half = |(factor, max): (usize, usize)| max == 2 * factor;
        let across = (self.factors.0, self.factors_max.0);
        let down = (self.factors.1, self.factors_max.1);
        let (is_whole_across, is_whole_down) = (across.0 == across.1, down.0 == down.1);
        match (is_half(across), is_half(down)) {
            _ if is_whole_across && is_whole_down => copy(self.row(y), into),
            (true, true) => {
                self.sum_rows(y, sums);
                interpolate(sums, into, 8, 7);
            }
            (true, false) if is_whole_down => {
                sums.clear();
                sums.extend(self.row(y).iter().map(|sample| 4 * u16::from(*sample)));
                interpolate(sums, into, 4, 8);
            }
            (false, true) if is_whole_across => {
                self.sum_rows(y, sums);
                let round = 1 + (y as u16 & 1);
                for (into, sum) in into.iter_mut().zip(&*sums) {
                    *into = ((sum + round) >> 2) as u8;
                }
            }
            _ => repeat(self.row(nearest(y, down)), into, across),
        }
    }

    /// Returns a row of the plane; the last one for rows below it.
    fn row(&self, y: usize) -> &[u8] {
        let plane = self.plane;
        let start = y.min(plane.height.saturating_sub(1)) * plane.stride;
        plane.samples.get(start..start + plane.width).unwrap_or_default()
    }

    /// Computes three times the nearer row plus the further one, for output rows of doubled height.
    fn sum_rows(&self, y: usize, sums: &mut Vec<u16>) {
        let near = y / 2;
        let far = if y % 2 == 1 { near + 1 } else { near.saturating_sub(1) };
        let pairs = self.row(near).iter().zip(self.row(far));
        sums.clear();
        sums.extend(pairs.map(|(near, far)| 3 * u16::from(*near) + u16::from(*far)));
    }
}

/// Returns the sample that covers the middle of an output position.
fn nearest(place: usize, (factor, max): (usize, usize)) -> usize {
    (2 * place + 1) * factor / (2 * max.max(1))
}

fn copy(row: &[u8], into: &mut [u8]) {
    into.iter_mut().zip(row).for_each(|(into, sample)| *into = *sample);
}

fn repeat(row: &[u8], into: &mut [u8], factors: (usize, usize)) {
    let last = row.last().copied().unwrap_or(0);
    for (x, into) in into.iter_mut().enumerate() {
        *into = row.get(nearest(x, factors)).copied().unwrap_or(last);
    }
}

/// Doubles the samples horizontally from four times their values: rounded in different directions to the left and
/// right, so that the mean is preserved.
fn interpolate(sums: &[u16], into: &mut [u8], round_left: u16, round_right: u16) {
    let Some((first, last)) = sums.first().zip(sums.last()) else { return };
    let before = std::iter::once(first).chain(sums);
    let after = sums.iter().skip(1).chain(std::iter::once(last));
    for ((pair, sum), (before, after)) in into.chunks_mut(2).zip(sums).zip(before.zip(after)) {
        let (left, right) =
            ((3 * sum + before + round_left) >> 4, (3 * sum + after + round_right) >> 4);
        pair.iter_mut().zip([left, right]).for_each(|(into, sample)| *into = sample as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(factors: (usize, usize), size: (usize, usize), samples: &[u8]) -> Vec<Vec<u8>> {
        let plane = Plane {
            width: size.0,
            height: size.1,
            covered: (size.0 as f64, size.1 as f64),
            stride: size.0,
            samples: samples.to_vec(),
        };
        let component = Component { plane: &plane, factors: (1, 1), factors_max: factors };
        let mut sums = Vec::new();
        let row = |y| {
            let mut row = vec![0; size.0 * factors.0];
            component.write_row(y, &mut row, &mut sums);
            row
        };
        (0..size.1 * factors.1).map(row).collect()
    }

    #[test]
    fn half_resolution_chroma_is_interpolated() {
        assert_eq!(rows((2, 1), (3, 1), &[0, 100, 200]), [[0, 25, 75, 125, 175, 200]]);
        assert_eq!(rows((1, 2), (1, 2), &[0, 100]), [[0], [25], [75], [100]]);
        let both = rows((2, 2), (2, 2), &[0, 80, 160, 240]);
        assert_eq!(both[0], [0, 20, 60, 80]);
        assert_eq!(both[1], [40, 60, 100, 120]);
        assert_eq!(both[3], [160, 180, 220, 240]);
    }

    #[test]
    fn other_sampling_ratios_are_replicated() {
        assert_eq!(rows((1, 1), (2, 1), &[5, 9]), [[5, 9]]);
        assert_eq!(rows((3, 1), (2, 1), &[5, 9]), [[5, 5, 5, 9, 9, 9]]);
        assert_eq!(rows((2, 4), (1, 1), &[7]), [[7, 7], [7, 7], [7, 7], [7, 7]]);
        let mut row = [0; 3];
        repeat(&[5, 9], &mut row, (2, 3));
        assert_eq!(row, [5, 9, 9], "the sample that covers the middle");
    }
}
