//! Tables that segments define and later ones replace: quantisation, Huffman codes, the restart interval (T.81,
//! B.2.4).

use std::borrow::Cow;

use super::error::Error;
use super::markers::{Segment, code};
use super::standard;

/// Tables in effect at a position of the file.
#[derive(Clone, Debug, Default)]
pub(super) struct Tables {
    quantisers: [Option<[u16; 64]>; 4],
    constant_codes: [Option<Box<Code>>; 4],
    varying_codes: [Option<Box<Code>>; 4],
    /// MCUs between restart markers; 0 for none.
    pub(super) restart_interval: usize,
}

/// Huffman code as stored in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Code {
    /// Number of codes of 1 to 16 bits. Their sum is at most 256, and there are at most as many codes of a length as
    /// fit after the shorter ones.
    pub(super) counts: [u8; 16],
    /// Symbols, in code order.
    pub(super) values: Vec<u8>,
}

/// Class of the coefficients of a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// DC term, as a difference to the previous block.
    Constant,
    /// The 63 AC coefficients.
    Varying,
}

impl Tables {
    /// Parses a segment. Those that define no table are skipped.
    pub(super) fn read(&mut self, segment: &Segment<'_>) -> Result<(), Error> {
        match segment.marker {
            code::DQT => self.read_quantisers(segment),
            code::DHT => self.read_codes(segment),
            code::DRI => match *segment.payload {
                [high, low] => {
                    self.restart_interval = usize::from(u16::from_be_bytes([high, low]));
                    Ok(())
                }
                _ => Err(segment.malformed("a restart interval of another length")),
            },
            _ => Ok(()),
        }
    }

    /// Returns a quantisation table, by zigzag position.
    pub(super) fn quantiser(&self, number: usize) -> Option<&[u16; 64]> {
        self.quantisers.get(number)?.as_ref()
    }

    /// Returns a Huffman code.
    pub(super) fn code(&self, class: Class, number: usize) -> Option<&Code> {
        let codes = match class {
            Class::Constant => &self.constant_codes,
            Class::Varying => &self.varying_codes,
        };
        codes.get(number)?.as_deref()
    }

    /// Returns a Huffman code, or the standard one of that class and number (T.81, K.3.3) if the file defines none:
    /// frames of Motion JPEG omit these.
    pub(super) fn code_or_standard(&self, class: Class, number: usize) -> Option<Cow<'_, Code>> {
        let own = self.code(class, number).map(Cow::Borrowed);
        own.or_else(|| standard::code(class, number).map(Cow::Owned))
    }

    fn read_quantisers(&mut self, segment: &Segment<'_>) -> Result<(), Error> {
        let short = segment.malformed("a quantisation table that is too short");
        let mut rest = segment.payload;
        while let [kind, steps @ ..] = rest {
            let (wide, number) = (kind >> 4, usize::from(kind & 15));
            let place = self.quantisers.get_mut(number).filter(|_| wide <= 1);
            let place = place.ok_or(segment.malformed("a quantisation table of no kind"))?;
            let mut table = [0; 64];
            if wide == 0 {
                let (given, behind) = steps.split_at_checked(64).ok_or(short)?;
                table.iter_mut().zip(given).for_each(|(step, byte)| *step = u16::from(*byte));
                rest = behind;
            } else {
                let (given, behind) = steps.split_at_checked(128).ok_or(short)?;
                let given = given.as_chunks().0;
                table
                    .iter_mut()
                    .zip(given)
                    .for_each(|(step, two)| *step = u16::from_be_bytes(*two));
                rest = behind;
            }
            *place = Some(table);
        }
        Ok(())
    }

    fn read_codes(&mut self, segment: &Segment<'_>) -> Result<(), Error> {
        let short = segment.malformed("a Huffman table that is too short");
        let mut rest = segment.payload;
        while let [kind, behind @ ..] = rest {
            let codes = match kind >> 4 {
                0 => &mut self.constant_codes,
                1 => &mut self.varying_codes,
                _ => return Err(segment.malformed("a Huffman table of no kind")),
            };
            let place = codes.get_mut(usize::from(kind & 15));
            let place = place.ok_or(segment.malformed("a Huffman table of no kind"))?;
            let (counts, behind) = behind.split_first_chunk::<16>().ok_or(short)?;
            let count = counts.iter().map(|count| usize::from(*count)).sum();
            let (values, behind) = behind.split_at_checked(count).ok_or(short)?;
            if !fits(counts) || count > 256 {
                return Err(segment.malformed("a Huffman table with more codes than there are"));
            }
            *place = Some(Box::new(Code { counts: *counts, values: values.to_vec() }));
            rest = behind;
        }
        Ok(())
    }
}

/// Returns whether each code fits after the shorter ones.
fn fits(counts: &[u8; 16]) -> bool {
    let mut free = 1_u32;
    counts.iter().all(|count| {
        free *= 2;
        let fits = u32::from(*count) <= free;
        free = free.saturating_sub(u32::from(*count));
        fits
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(marker: u8, payload: &[u8]) -> Result<Tables, Error> {
        let mut tables = Tables::default();
        tables.read(&Segment { marker, at: 7, payload, payload_at: 11 }).map(|()| tables)
    }

    fn is_malformed(marker: u8, payload: &[u8]) -> bool {
        matches!(read(marker, payload), Err(Error::Malformed { at: 7, .. }))
    }

    #[test]
    fn quantization_tables_have_8_or_16_bit_entries() {
        let narrow: Vec<u8> = [2].into_iter().chain(1..=64).collect();
        let tables = read(code::DQT, &narrow).unwrap();
        assert_eq!(tables.quantiser(2).unwrap()[..3], [1, 2, 3]);
        assert!(tables.quantiser(0).is_none() && tables.quantiser(4).is_none());
        let wide: Vec<u8> = [0x11].into_iter().chain([1, 2].repeat(64)).collect();
        let both = [narrow.clone(), wide.clone()].concat();
        let tables = read(code::DQT, &both).unwrap();
        assert_eq!(tables.quantiser(1).unwrap()[63], 0x102);
        assert!(is_malformed(code::DQT, &both[..both.len() - 1]));
        assert!(is_malformed(code::DQT, &[4; 65]) && is_malformed(code::DQT, &[0x20; 65]));
    }

    #[test]
    fn oversubscribed_huffman_code_is_rejected() {
        let code = |kind: u8, counts: &[u8], values: usize| {
            let mut payload = vec![kind];
            payload.extend(counts);
            payload.resize(17, 0);
            payload.resize(17 + values, 5);
            payload
        };
        assert!(
            read(code::DHT, &code(0x13, &[1, 2], 3)).unwrap().code(Class::Varying, 3).is_some()
        );
        assert!(read(code::DHT, &code(0, &[2], 2)).is_ok(), "no code is left");
        assert!(is_malformed(code::DHT, &code(0, &[2, 1], 3)));
        assert!(is_malformed(code::DHT, &code(0, &[0, 5], 5)));
        assert!(is_malformed(code::DHT, &code(0, &[1], 0)), "no values");
        assert!(is_malformed(code::DHT, &code(0x20, &[1], 1)));
        assert!(is_malformed(code::DHT, &code(0x04, &[1], 1)));
        assert!(is_malformed(code::DHT, &[0; 16]));
        assert!(is_malformed(code::DRI, &[1]) && read(code::DRI, &[1, 2]).is_ok());
    }
}
