//! Camera data of a photograph, from its Exif block.
//!
//! Guarantees: texts are short and have no control characters; the location itself is not read. Non-goals: orientation,
//! which the decoders read.

use std::io::Cursor;

use exif::{Exif, In, Reader, Tag, Value};

/// Maximum characters of a text.
const TEXT_CHARS_MAX: usize = 100;

/// Camera data of a photograph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CameraInfo {
    pub make: Option<String>,
    pub model: Option<String>,
    pub lens: Option<String>,
    /// Local time of the camera, as `2026-01-31T12:00:00`.
    pub taken_at: Option<String>,
    /// Exposure time and aperture, as `1/250 s, f/2.8`.
    pub exposure: Option<String>,
    pub iso: Option<u32>,
    /// Focal length, as `35 mm`.
    pub focal_length: Option<String>,
    /// Whether the file contains the location at which it was taken.
    pub has_location: bool,
}

/// Reads the camera data in the first bytes of a file; `None` if there are none.
pub fn read_camera(start: &[u8]) -> Option<CameraInfo> {
    let exif = Reader::new().read_from_container(&mut Cursor::new(start)).ok()?;
    let shown = |tag| {
        let field = exif.get_field(tag, In::PRIMARY)?;
        short(&field.display_value().with_unit(&exif).to_string())
    };
    let exposure: Vec<_> =
        [shown(Tag::ExposureTime), shown(Tag::FNumber)].into_iter().flatten().collect();
    let camera = CameraInfo {
        make: text(&exif, Tag::Make),
        model: text(&exif, Tag::Model),
        lens: text(&exif, Tag::LensModel),
        taken_at: text(&exif, Tag::DateTimeOriginal).and_then(|it| time(&it)),
        exposure: (!exposure.is_empty()).then(|| exposure.join(", ")),
        iso: exif
            .get_field(Tag::PhotographicSensitivity, In::PRIMARY)
            .and_then(|field| field.value.get_uint(0)),
        focal_length: shown(Tag::FocalLength),
        has_location: exif.get_field(Tag::GPSLatitude, In::PRIMARY).is_some(),
    };
    (camera != CameraInfo::default()).then_some(camera)
}

fn text(exif: &Exif, tag: Tag) -> Option<String> {
    match &exif.get_field(tag, In::PRIMARY)?.value {
        Value::Ascii(texts) => short(&String::from_utf8_lossy(texts.first()?)),
        _ => None,
    }
}

/// Returns a text without control characters and outer spaces, cut; `None` if nothing is left.
fn short(text: &str) -> Option<String> {
    let text: String = text.chars().filter(|c| !c.is_control()).take(TEXT_CHARS_MAX).collect();
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Converts `2026:01:31 12:00:00`; `None` for another form, such as spaces for an unknown time.
fn time(text: &str) -> Option<String> {
    let (date, time) = text.split_once(' ')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let is_valid = date.len() == 10
        && time.len() == 8
        && date.split(':').chain(time.split(':')).all(is_number);
    is_valid.then(|| format!("{}T{time}", date.replace(':', "-")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a TIFF file, the form of an Exif block, with these ASCII fields.
    fn tiff(fields: &[(u16, &str)]) -> Vec<u8> {
        let mut file = b"II*\0\x08\0\0\0".to_vec();
        file.extend((fields.len() as u16).to_le_bytes());
        let mut at = 8 + 2 + 12 * fields.len() + 4;
        let mut values = Vec::new();
        for (tag, value) in fields {
            file.extend(tag.to_le_bytes());
            file.extend(2_u16.to_le_bytes());
            file.extend((value.len() as u32 + 1).to_le_bytes());
            file.extend((at as u32).to_le_bytes());
            values.extend(value.as_bytes());
            values.push(0);
            at += value.len() + 1;
        }
        file.extend([0; 4]);
        file.extend(values);
        file
    }

    #[test]
    fn camera_of_a_photograph_is_read() {
        let camera = read_camera(&tiff(&[(0x10f, "Fuji\u{1}film "), (0x110, "X100VI model")]));
        let camera = camera.unwrap();
        assert_eq!(camera.make.as_deref(), Some("Fujifilm"));
        assert_eq!(camera.model.as_deref(), Some("X100VI model"));
        assert!(!camera.has_location && camera.iso.is_none());
    }

    #[test]
    fn damaged_exif_yields_nothing() {
        let file = tiff(&[(0x10f, "Fujifilm camera"), (0x110, "X100VI model")]);
        for length in 0..file.len() {
            let _ = read_camera(&file[..length]);
        }
        for at in 0..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 0xff;
            let _ = read_camera(&damaged);
        }
        assert_eq!(read_camera(b""), None);
        assert_eq!(read_camera(&tiff(&[(0x10f, "                ")])), None);
    }

    #[test]
    fn exif_time_is_converted() {
        assert_eq!(time("2026:01:31 12:00:00").as_deref(), Some("2026-01-31T12:00:00"));
        for wrong in ["", "    :  :     :  :  ", "2026:01:31", "2026-01-31 12:00:00"] {
            assert_eq!(time(wrong), None, "{wrong}");
        }
    }
}
