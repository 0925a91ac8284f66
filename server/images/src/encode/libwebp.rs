//! libwebp bindings: encodes pixels into a WebP file; contains `unsafe` code.
//!
//! Guarantees: the C code gets sizes, numbers and pixels produced by this crate, never bytes of a file; what libwebp
//! allocates is freed on every path; no state is shared between calls, so any number of threads may call.
//! Non-goals: the choice of quality and effort, metadata, animations.

#![allow(
    unsafe_code,
    reason = "safe wrappers of libwebp's encoder change more often than libwebp; nothing else lives in this file"
)]

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

use libwebp_sys as ffi;

use crate::Stop;
use crate::error::Error;

/// Maximum width and height: 14 bits.
const SIDE_MAX: u32 = 16_383;
/// Quality of lossless encoding, where it is the effort: the default of libwebp.
const LOSSLESS_EFFORT: f32 = 75.0;

/// Encoder configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Config {
    /// Quality, 0 to 100; `None` for lossless.
    pub(super) quality: Option<u8>,
    /// Effort, 0 to 6.
    pub(super) method: u8,
}

/// Encodes RGBA pixels, row by row. `stop` is called from time to time.
///
/// # Errors
///
/// [`Error::Cancelled`], and [`Error::Failed`] if libwebp rejects the picture: sides above 16,383, or out of memory.
pub(super) fn encode(
    (width, height): (u32, u32),
    pixels: impl Iterator<Item = [u8; 4]>,
    config: Config,
    stop: Stop<'_>,
) -> Result<Vec<u8>, Error> {
    let config = config.to_libwebp()?;
    let mut picture = OwnedPicture::new(width, height)?;
    picture.fill(pixels)?;
    picture.encode(&config, stop)
}

impl Config {
    fn to_libwebp(self) -> Result<ffi::WebPConfig, Error> {
        let mut config = MaybeUninit::<ffi::WebPConfig>::zeroed();
        // SAFETY: it writes to the structure, whose every field is a number or, zeroed, the first variant of an
        // enum.
        let mut config = unsafe {
            let made = ffi::WebPConfigInitInternal(
                config.as_mut_ptr(),
                ffi::WebPPreset::WEBP_PRESET_DEFAULT,
                self.quality.map_or(LOSSLESS_EFFORT, f32::from),
                ffi::WEBP_ENCODER_ABI_VERSION as c_int,
            );
            check(made, "another version")?;
            config.assume_init()
        };
        config.lossless = c_int::from(self.quality.is_none());
        config.method = c_int::from(self.method);
        // SAFETY: it only reads the configuration.
        check(unsafe { ffi::WebPValidateConfig(&raw const config) }, "a setting out of its range")?;
        Ok(config)
    }
}

/// Pixels in libwebp's memory.
struct OwnedPicture {
    inner: ffi::WebPPicture,
}

impl OwnedPicture {
    fn new(width: u32, height: u32) -> Result<Self, Error> {
        let side = |side: u32| match side {
            1..=SIDE_MAX => Ok(side as c_int),
            _ => Err(Error::failed(format!("WebP: a side of {side} pixels"))),
        };
        let (width, height) = (side(width)?, side(height)?);
        let mut inner = MaybeUninit::<ffi::WebPPicture>::zeroed();
        // SAFETY: it writes to the structure, whose every field may be zero: numbers, pointers, optional functions,
        // and enums whose first variant is 0.
        let inner = unsafe {
            let version = ffi::WEBP_ENCODER_ABI_VERSION as c_int;
            check(ffi::WebPPictureInitInternal(inner.as_mut_ptr(), version), "another version")?;
            inner.assume_init()
        };
        let mut picture = Self { inner };
        picture.inner.use_argb = 1;
        (picture.inner.width, picture.inner.height) = (width, height);
        // SAFETY: the picture was initialized, and is freed on drop.
        check(unsafe { ffi::WebPPictureAlloc(&raw mut picture.inner) }, "no memory")?;
        Ok(picture)
    }

    /// Writes all pixels; missing ones are transparent.
    fn fill(&mut self, mut pixels: impl Iterator<Item = [u8; 4]>) -> Result<(), Error> {
        let stride = usize::try_from(self.inner.argb_stride).map_err(Error::failed)?;
        let (width, height) = (self.inner.width as usize, self.inner.height as usize);
        if self.inner.argb.is_null() || stride < width {
            return Err(Error::failed("WebP: a picture of another layout"));
        }
        for y in 0..height {
            for x in 0..width {
                let [red, green, blue, alpha] = pixels.next().unwrap_or_default();
                let pixel = u32::from_le_bytes([blue, green, red, alpha]);
                // SAFETY: libwebp has allocated `stride` pixels for each of `height` rows, and `x` is below
                // `stride`.
                unsafe { self.inner.argb.add(y * stride + x).write(pixel) };
            }
        }
        Ok(())
    }

    fn encode(&mut self, config: &ffi::WebPConfig, stop: Stop<'_>) -> Result<Vec<u8>, Error> {
        let mut file: Vec<u8> = Vec::new();
        self.inner.writer = Some(append);
        self.inner.custom_ptr = (&raw mut file).cast();
        self.inner.progress_hook = Some(go_on);
        self.inner.user_data = (&raw const stop).cast_mut().cast();
        // SAFETY: the picture is complete; the pointers of its callbacks outlive the call, and are not used
        // elsewhere during it.
        let written = unsafe { ffi::WebPEncode(config, &raw mut self.inner) };
        (self.inner.writer, self.inner.progress_hook) = (None, None);
        match (written, self.inner.error_code) {
            (0, ffi::WebPEncodingError::VP8_ENC_ERROR_USER_ABORT) => Err(Error::Cancelled),
            (0, error) => Err(Error::failed(format!("WebP: {error:?}"))),
            _ => Ok(file),
        }
    }
}

impl Drop for OwnedPicture {
    fn drop(&mut self) {
        // SAFETY: it was initialized, and its memory is freed nowhere else.
        unsafe { ffi::WebPPictureFree(&raw mut self.inner) }
    }
}

fn check(is_fine: c_int, what: &str) -> Result<(), Error> {
    if is_fine == 0 { Err(Error::failed(format!("WebP: {what}"))) } else { Ok(()) }
}

/// Appends bytes to the file; returns 0 if out of memory.
unsafe extern "C" fn append(
    data: *const u8,
    length: usize,
    picture: *const ffi::WebPPicture,
) -> c_int {
    // SAFETY: libwebp passes the picture that it encodes, whose pointer is that of the file, and valid bytes.
    let (file, data) = unsafe {
        let file = (*picture).custom_ptr.cast::<Vec<u8>>();
        let data = if length == 0 { &[] } else { std::slice::from_raw_parts(data, length) };
        (&mut *file, data)
    };
    if file.try_reserve(length).is_err() {
        return 0;
    }
    file.extend_from_slice(data);
    1
}

/// Returns 0 to cancel the encoding.
unsafe extern "C" fn go_on(_: c_int, picture: *const ffi::WebPPicture) -> c_int {
    // SAFETY: libwebp passes the picture that it encodes, whose pointer is that of the stop function.
    let stop = unsafe { *(*picture).user_data.cast_const().cast::<Stop<'_>>() };
    // A panic must not unwind into C.
    c_int::from(!catch_unwind(AssertUnwindSafe(stop)).unwrap_or(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pixels(count: u32) -> impl Iterator<Item = [u8; 4]> {
        (0..count).map(|at| [at, at / 3, at * 7, 255_u32.wrapping_sub(at / 5)].map(|it| it as u8))
    }

    fn encoded(config: Config, sides: (u32, u32)) -> Result<Vec<u8>, Error> {
        encode(sides, pixels(sides.0 * sides.1), config, &|| false)
    }

    /// Compares with `webpx`, which wraps the same libwebp and was the encoder used before.
    #[test]
    fn webp_bytes_equal_reference_wrapper() {
        let (width, height) = (61, 37);
        let rgba: Vec<u8> = pixels(width * height).flatten().collect();
        let rgb: Vec<u8> = pixels(width * height).flat_map(|[r, g, b, _]| [r, g, b]).collect();
        let opaque = || pixels(width * height).map(|[r, g, b, _]| [r, g, b, 255]);
        for (quality, method) in [(Some(1), 4), (Some(80), 4), (Some(100), 4), (None, 2)] {
            let theirs = |encoder: webpx::Encoder<'_>| {
                let encoder = match quality {
                    Some(quality) => encoder.quality(f32::from(quality)),
                    None => encoder.lossless(true),
                };
                encoder.method(method).encode(enough::Unstoppable).unwrap()
            };
            let config = Config { quality, method };
            let ours = encoded(config, (width, height)).unwrap();
            assert!(ours == theirs(webpx::Encoder::new_rgba(&rgba, width, height)), "{config:?}");
            let ours = encode((width, height), opaque(), config, &|| false).unwrap();
            assert!(ours == theirs(webpx::Encoder::new_rgb(&rgb, width, height)), "{config:?}");
        }
    }

    #[test]
    fn webp_encoding_is_cancelled_by_stop_or_panic() {
        let config = Config { quality: Some(80), method: 4 };
        let stopped = encode((64, 64), pixels(4_096), config, &|| true);
        assert_eq!(stopped, Err(Error::Cancelled));
        let panicking = || panic!("in a progress hook");
        assert_eq!(encode((64, 64), pixels(4_096), config, &panicking), Err(Error::Cancelled));
    }

    #[test]
    fn webp_sides_and_settings_out_of_range_are_refused() {
        let config = Config { quality: Some(80), method: 4 };
        for sides in [(0, 1), (1, 0), (16_384, 1), (1, u32::MAX)] {
            let refused = encode(sides, std::iter::empty(), config, &|| false);
            assert!(matches!(refused, Err(Error::Failed(_))), "{sides:?}");
        }
        let refused = encoded(Config { quality: Some(101), method: 4 }, (1, 1));
        assert!(matches!(refused, Err(Error::Failed(_))));
        assert!(encode((3, 3), std::iter::empty(), config, &|| false).is_ok());
    }
}
