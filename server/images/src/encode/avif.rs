//! AVIF encoder, 8 bits, with alpha. The container is written by `avif-serialize`.
//!
//! ```text
//! colours   pixels -> luma and chroma
//! quality   requested quality -> quantiser
//! rav1e     rav1e in pure Rust, without its assembler: the default, slower
//! fast      libaom (C), with the feature `fast-codecs`: smaller files in less time
//!   aom       libaom bindings, the only `unsafe` code
//! ```
//!
//! Neither encoder can be cancelled inside a picture: the plan bounds its pixels instead.

#[cfg(feature = "fast-codecs")]
mod aom;
mod colours;
#[cfg(feature = "fast-codecs")]
mod fast;
mod quality;
#[cfg(not(feature = "fast-codecs"))]
mod rav1e;

use avif_serialize::Aviffy;
use avif_serialize::constants::MatrixCoefficients;
use kernels::{Chroma, PixelLayout, Planes};

use self::colours::{Colours, visible_colours};
#[cfg(feature = "fast-codecs")]
use self::fast::{QUANTISERS, encode_planes};
use self::quality::by_table;
#[cfg(not(feature = "fast-codecs"))]
use self::rav1e::{QUANTISERS, encode_planes};
use crate::Stop;
use crate::error::Error;
use crate::picture::PixelBuffer;

/// Minimum quality with full chroma resolution.
const FULL_CHROMA_QUALITY: u8 = 90;

/// Encodes a colour picture.
pub(super) fn encode(picture: &PixelBuffer, quality: u8, stop: Stop<'_>) -> Result<Vec<u8>, Error> {
    let sides = (picture.width as usize, picture.height as usize);
    let is_full = quality >= FULL_CHROMA_QUALITY;
    let quantiser = by_table(&QUANTISERS, quality);
    let encode = |luma: &[u8], chroma: Chroma<'_>| {
        if stop() {
            return Err(Error::Cancelled);
        }
        encode_planes(&Planes { sides, luma, chroma }, quantiser)
    };
    let (colours, alpha) = match picture.layout {
        PixelLayout::Rgb => (Colours::of(picture.samples.as_chunks().0, sides, is_full), None),
        PixelLayout::Rgba => {
            let pixels = picture.samples.as_chunks::<4>().0;
            let alpha: Vec<u8> = pixels.iter().map(|[.., alpha]| *alpha).collect();
            let alpha = encode(&alpha, Chroma::None)?;
            (Colours::of(&visible_colours(pixels), sides, is_full), Some(alpha))
        }
        PixelLayout::Grey | PixelLayout::GreyAlpha | PixelLayout::Cmyk => {
            return Err(Error::failed("AVIF requires colour"));
        }
    };
    let (blue, red) = (&*colours.blue, &*colours.red);
    let chroma = if is_full { Chroma::Full(blue, red) } else { Chroma::Half(blue, red) };
    let coded = encode(&colours.luma, chroma)?;
    let mut container = Aviffy::new();
    container
        .set_matrix_coefficients(MatrixCoefficients::Bt601)
        .set_full_color_range(true)
        .set_chroma_subsampling((!is_full, !is_full))
        .set_seq_profile(u8::from(is_full));
    Ok(container.to_vec(&coded, alpha.as_deref(), picture.width, picture.height, 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiser_falls_as_quality_rises() {
        let all: Vec<u8> = (1..=100).map(|quality| by_table(&QUANTISERS, quality)).collect();
        assert!(all.is_sorted_by(|coarser, finer| coarser >= finer), "{all:?}");
        assert_eq!((all[0], all[99]), (QUANTISERS[0].1, QUANTISERS[9].1));
    }

    #[test]
    fn avif_encoding_is_cancellable() {
        let picture = PixelBuffer::new((1, 1), PixelLayout::Rgb, vec![0; 3], None).unwrap();
        assert_eq!(encode(&picture, 60, &|| true).unwrap_err(), Error::Cancelled);
    }
}
