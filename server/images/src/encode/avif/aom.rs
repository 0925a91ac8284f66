//! libaom bindings: encodes planes into an AV1 frame; contains `unsafe` code.
//!
//! Guarantees: libaom is called only with planes of sufficient length; what it allocates is freed on every path; no
//! state is shared between calls, so any number of threads may call. The C code gets sizes, numbers and samples
//! produced by this crate, never untrusted bytes.
//! Non-goals: colours, containers.

#![allow(
    unsafe_code,
    reason = "nothing wraps libaom's encoder alone; nothing else lives in this file"
)]

use std::ffi::CStr;
use std::fmt;
use std::mem::MaybeUninit;
use std::os::raw::{c_int, c_uint};
use std::ptr::{self, NonNull};

use kernels::{Chroma, Planes};
use libaom_sys as ffi;

/// Maximum quantiser, the coarsest.
pub(super) const QUANTISER_MAX: u8 = 63;
/// Maximum speed of still pictures.
const SPEED_MAX: u8 = 9;
/// Alignment of rows in libaom's memory.
const ALIGNMENT: c_uint = 32;

/// Error of libaom.
#[derive(Debug)]
pub(super) struct Failed(String);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "libaom: {}", self.0)
    }
}

/// Encodes a still picture on one thread: sequence header and frame, without temporal delimiter. The quantiser is 0
/// to 63, the speed 0 to 9.
pub(super) fn encode(planes: &Planes<'_>, quantiser: u8, speed: u8) -> Result<Vec<u8>, Failed> {
    let image = Image::new(planes)?;
    let mut encoder = Encoder::new(planes, quantiser.min(QUANTISER_MAX), speed.min(SPEED_MAX))?;
    let mut code = Vec::new();
    encoder.encode_frame(Some(&image), &mut code)?;
    encoder.encode_frame(None, &mut code)?;
    // A container does not need the temporal delimiter, an empty OBU, that begins a stream.
    match code.strip_prefix(&[0x12, 0x00]) {
        Some(behind) => Ok(behind.to_vec()),
        None => Ok(code),
    }
}

/// Samples in libaom's memory.
struct Image(NonNull<ffi::aom_image_t>);

impl Image {
    fn new(planes: &Planes<'_>) -> Result<Self, Failed> {
        let (width, height) = planes.sides;
        let side = |side: usize| match c_uint::try_from(side) {
            Ok(length @ 1..=65_536) => Ok(length),
            _ => Err(Failed(format!("a side of {side} pixels"))),
        };
        let (across, down) = (side(width)?, side(height)?);
        let format = match planes.chroma {
            Chroma::Full(..) => ffi::AOM_IMG_FMT_I444,
            Chroma::None | Chroma::Half(..) => ffi::AOM_IMG_FMT_I420,
        };
        // SAFETY: with a null image it allocates one, with room for all rows of all planes, or returns null.
        let image = unsafe { ffi::aom_img_alloc(ptr::null_mut(), format, across, down, ALIGNMENT) };
        let mut image = Self(NonNull::new(image).ok_or_else(|| Failed("no memory".into()))?);
        for (plane, (sides, samples)) in planes.sized().into_iter().enumerate() {
            image.fill(plane, sides, samples)?;
        }
        // SAFETY: the image is exclusively owned, and these are plain fields.
        unsafe {
            let image = image.0.as_mut();
            image.range = ffi::AOM_CR_FULL_RANGE;
            image.monochrome = c_int::from(matches!(planes.chroma, Chroma::None));
        }
        Ok(image)
    }

    /// Copies samples to a plane of that many columns and rows; fills it with mid-grey without samples.
    fn fill(
        &mut self,
        plane: usize,
        (columns, rows): (usize, usize),
        samples: Option<&[u8]>,
    ) -> Result<(), Failed> {
        if samples.is_some_and(|samples| samples.len() != columns * rows) {
            return Err(Failed("a plane of another length".into()));
        }
        // SAFETY: the image is owned.
        let image = unsafe { self.0.as_ref() };
        let (start, stride) = (image.planes[plane], image.stride[plane]);
        let stride = usize::try_from(stride).ok().filter(|stride| *stride >= columns);
        let (Some(stride), false) = (stride, start.is_null()) else {
            return Err(Failed("an image of another layout".into()));
        };
        for row in 0..rows {
            // SAFETY: libaom allocated the plane for as many rows as the picture has in it, each one stride apart
            // and at least as long as there are columns; `self` is borrowed exclusively.
            let place = unsafe { std::slice::from_raw_parts_mut(start.add(row * stride), columns) };
            match samples {
                Some(samples) => place.copy_from_slice(&samples[row * columns..][..columns]),
                None => place.fill(128),
            }
        }
        Ok(())
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        // SAFETY: it was allocated by `aom_img_alloc`, and no other reference exists.
        unsafe { ffi::aom_img_free(self.0.as_ptr()) }
    }
}

/// Encoder of one picture. Boxed, because libaom stores its address.
struct Encoder(Box<ffi::aom_codec_ctx_t>);

impl Encoder {
    fn new(planes: &Planes<'_>, quantiser: u8, speed: u8) -> Result<Self, Failed> {
        // SAFETY: it returns the address of a constant.
        let interface = unsafe { ffi::aom_codec_av1_cx() };
        let mut settings = MaybeUninit::<ffi::aom_codec_enc_cfg_t>::zeroed();
        // SAFETY: both addresses are valid; a zeroed value is valid for a structure of numbers and pointers, and
        // libaom overwrites it.
        let mut settings = unsafe {
            let usage = ffi::AOM_USAGE_ALL_INTRA;
            checked(ffi::aom_codec_enc_config_default(interface, settings.as_mut_ptr(), usage))?;
            settings.assume_init()
        };
        (settings.g_w, settings.g_h) = (planes.sides.0 as c_uint, planes.sides.1 as c_uint);
        settings.g_threads = 1;
        settings.g_limit = 1;
        settings.g_lag_in_frames = 0;
        settings.g_profile = c_uint::from(matches!(planes.chroma, Chroma::Full(..)));
        settings.monochrome = c_uint::from(matches!(planes.chroma, Chroma::None));
        settings.rc_end_usage = ffi::AOM_Q;
        settings.rc_min_quantizer = quantiser.into();
        settings.rc_max_quantizer = quantiser.into();
        let mut context = Box::new(MaybeUninit::<ffi::aom_codec_ctx_t>::zeroed());
        // SAFETY: all addresses are valid, and libaom copies the settings. A zeroed value is valid for a structure
        // of numbers and pointers, which it remains if this fails.
        let mut encoder = unsafe {
            let version = ffi::AOM_ENCODER_ABI_VERSION as c_int;
            let context_at = context.as_mut_ptr();
            checked(ffi::aom_codec_enc_init_ver(
                context_at,
                interface,
                &raw const settings,
                0,
                version,
            ))?;
            Self(context.assume_init())
        };
        let quantiser = c_int::from(quantiser);
        for (control, value) in [
            (ffi::AOME_SET_CQ_LEVEL, quantiser),
            (ffi::AOME_SET_CPUUSED, speed.into()),
            (ffi::AOME_SET_TUNING, ffi::AOM_TUNE_SSIM as c_int),
            (ffi::AV1E_SET_COLOR_RANGE, ffi::AOM_CR_FULL_RANGE as c_int),
            (ffi::AV1E_SET_COLOR_PRIMARIES, ffi::AOM_CICP_CP_BT_709 as c_int),
            (ffi::AV1E_SET_TRANSFER_CHARACTERISTICS, ffi::AOM_CICP_TC_SRGB as c_int),
            (ffi::AV1E_SET_MATRIX_COEFFICIENTS, ffi::AOM_CICP_MC_BT_601 as c_int),
        ] {
            // SAFETY: the encoder was initialized; each of these controls takes one number of 32 bits, signed or
            // unsigned in C.
            checked(unsafe {
                ffi::aom_codec_control(&raw mut *encoder.0, control as c_int, value)
            })?;
        }
        Ok(encoder)
    }

    /// Encodes a picture, or flushes the encoder without one, and appends the output.
    fn encode_frame(&mut self, image: Option<&Image>, code: &mut Vec<u8>) -> Result<(), Failed> {
        let image = image.map_or(ptr::null(), |image| image.0.as_ptr().cast_const());
        // SAFETY: the encoder was initialized, and the image is alive: libaom reads it in this call, or copies it.
        checked(unsafe { ffi::aom_codec_encode(&raw mut *self.0, image, 0, 1, 0) })?;
        let mut place = ptr::null();
        loop {
            // SAFETY: the encoder was initialized, and the iterator is that of this loop. A packet is valid until
            // the next call.
            let packet = unsafe { ffi::aom_codec_get_cx_data(&raw mut *self.0, &raw mut place) };
            // SAFETY: it is null, or valid until the next call.
            let Some(packet) = (unsafe { packet.as_ref() }) else { return Ok(()) };
            if packet.kind == ffi::AOM_CODEC_CX_FRAME_PKT {
                // SAFETY: by its kind it is a frame, whose bytes are valid as long as the packet and not written
                // concurrently.
                code.extend_from_slice(unsafe {
                    let frame = packet.data.frame;
                    std::slice::from_raw_parts(frame.buf.cast_const().cast::<u8>(), frame.sz)
                });
            }
        }
    }
}

impl Drop for Encoder {
    fn drop(&mut self) {
        // SAFETY: it was initialized, and no other reference exists.
        unsafe { ffi::aom_codec_destroy(&raw mut *self.0) };
    }
}

fn checked(result: ffi::aom_codec_err_t) -> Result<(), Failed> {
    if result == ffi::AOM_CODEC_OK {
        return Ok(());
    }
    // SAFETY: it returns a constant string for every number.
    let text = unsafe { CStr::from_ptr(ffi::aom_codec_err_to_string(result)) };
    Err(Failed(text.to_string_lossy().into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planes(sides: (usize, usize), luma: &[u8]) -> Planes<'_> {
        Planes { sides, luma, chroma: Chroma::None }
    }

    #[test]
    fn planes_of_another_length_are_refused() {
        assert!(encode(&planes((2, 2), &[0; 4]), 30, 9).is_ok());
        for (sides, length) in [((2, 2), 3), ((2, 2), 5), ((0, 4), 0), ((65_537, 1), 65_537)] {
            assert!(encode(&planes(sides, &vec![0; length]), 30, 9).is_err(), "{sides:?}");
        }
        let chroma = Chroma::Half(&[0; 4], &[0; 3]);
        assert!(encode(&Planes { chroma, ..planes((3, 3), &[0; 9]) }, 30, 9).is_err());
    }

    #[test]
    fn avif_encoding_is_deterministic() {
        let samples: Vec<u8> = (0..64 * 48_u32).map(|at| (at * at / 7) as u8).collect();
        let code = |quantiser| encode(&planes((64, 48), &samples), quantiser, 8).unwrap();
        assert_eq!(code(20), code(20));
        assert!(code(20).len() > code(60).len());
    }
}
