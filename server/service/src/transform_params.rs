//! Transform options of an image request: the query parameters, under all names that clients use.
//!
//! Names and rules: clients 3.1. Guarantees: an empty value counts as absent; an invalid one is a 400 that names the
//! parameter; sizes larger than the image are accepted. Non-goals: the transformation.

use http::header::{ACCEPT, HeaderMap};
use images::{Fit, Format, OutputFormat, TransformOptions};
use protocol::error::ApiError;
use protocol::preferences::names;
use protocol::query::Query;

const FORMAT: &[&str] = &["format", "fm", "f", "output"];
const WIDTH: &[&str] = &["width", "w"];
const HEIGHT: &[&str] = &["height", "h"];
const QUALITY: &[&str] = &["quality", "q"];
const FIT: &[&str] = &["fit", "resize"];
const DENSITY: &[&str] = &["dpr"];

/// Maximum device pixel ratio.
const DENSITY_MAX: f64 = 10.0;

/// Returns whether a query string has one of the parameters.
pub fn has_transform_params(query: &str) -> bool {
    let all = [FORMAT, WIDTH, HEIGHT, QUALITY, FIT, DENSITY];
    let mut names = query.split('&').map(|pair| pair.split('=').next().unwrap_or(""));
    names.any(|name| all.iter().any(|some| some.contains(&name)))
}

/// Parses the transform options of a request; the default without parameters.
pub fn transform_params(query: &Query, headers: &HeaderMap) -> Result<TransformOptions, ApiError> {
    let density = match query.string(DENSITY)? {
        Some(text) => density(&text)?,
        None => 1.0,
    };
    Ok(TransformOptions {
        format: match query.string(FORMAT)? {
            Some(text) => format(&text, headers)?,
            None => OutputFormat::Original,
        },
        width: side(query, WIDTH, density)?,
        height: side(query, HEIGHT, density)?,
        quality: quality(query)?,
        fit: match query.string(FIT)? {
            Some(text) => fit(&text)?,
            None => Fit::default(),
        },
    })
}

fn format(text: &str, headers: &HeaderMap) -> Result<OutputFormat, ApiError> {
    if text.eq_ignore_ascii_case("auto") {
        return Ok(OutputFormat::Auto {
            avif: shows(headers, Format::Avif),
            webp: shows(headers, Format::WebP),
        });
    }
    let must = "must be webp, jpg, png, avif, gif or auto";
    Format::from_name(text)
        .map(OutputFormat::Format)
        .ok_or_else(|| ApiError::bad_parameter("format", must))
}

/// Returns whether a client accepts a format by name. `image/*` says nothing about the client's age.
fn shows(headers: &HeaderMap, format: Format) -> bool {
    names(headers, ACCEPT, format.content_type())
}

fn side(query: &Query, names: &[&str], density: f64) -> Result<Option<u32>, ApiError> {
    let Some(number) = query.number(names)? else { return Ok(None) };
    if number == 0 {
        let name = names.first().copied().unwrap_or("width");
        return Err(ApiError::bad_parameter(name, "must be at least 1"));
    }
    let pixels = (number as f64 * density).round().clamp(1.0, f64::from(u32::MAX));
    Ok(Some(pixels as u32))
}

fn quality(query: &Query) -> Result<Option<u8>, ApiError> {
    match query.number(QUALITY)? {
        None => Ok(None),
        Some(number @ 1..=100) => Ok(u8::try_from(number).ok()),
        Some(_) => Err(ApiError::bad_parameter("quality", "must be between 1 and 100")),
    }
}

fn fit(text: &str) -> Result<Fit, ApiError> {
    match &*text.to_ascii_lowercase() {
        // Images are never enlarged, so these are equivalent.
        "contain" | "scale-down" => Ok(Fit::Contain),
        "cover" => Ok(Fit::Cover),
        "fill" => Ok(Fit::Fill),
        _ => Err(ApiError::bad_parameter("fit", "must be contain, cover, fill or scale-down")),
    }
}

fn density(text: &str) -> Result<f64, ApiError> {
    let density = text.parse::<f64>().ok().filter(|it| *it > 0.0 && *it <= DENSITY_MAX);
    density.ok_or_else(|| ApiError::bad_parameter("dpr", "must be above 0 and at most 10"))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn transform_params_are_recognized() {
        for query in ["w=3", "v=3&format=webp", "dpr"] {
            assert!(has_transform_params(query), "{query}");
        }
        for query in ["", "v=3", "download", "xwidth=3&token=w"] {
            assert!(!has_transform_params(query), "{query}");
        }
    }

    fn asked(raw: &str, accept: &'static str) -> Result<TransformOptions, ApiError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        transform_params(&Query::from_uri(&format!("/b/x?{raw}").parse().unwrap()), &headers)
    }

    #[test]
    fn transform_params_have_documented_names() {
        let wish = TransformOptions {
            format: OutputFormat::Format(Format::WebP),
            width: Some(400),
            height: Some(300),
            quality: Some(75),
            fit: Fit::Cover,
        };
        for raw in [
            "format=webp&width=400&height=300&quality=75&fit=cover",
            "fm=WEBP&w=400&h=300&q=75&resize=Cover",
            "f=webp&width=200&height=150&dpr=2&q=75&fit=cover",
            "output=webp&w=800&h=600&dpr=.5&q=75&fit=cover&v=7&t=1",
        ] {
            assert_eq!(asked(raw, "").unwrap(), wish, "{raw}");
        }
        let jpeg = asked("format=JPEG", "").unwrap();
        assert_eq!(jpeg.format, OutputFormat::Format(Format::Jpeg));
    }

    #[test]
    fn unknown_transform_params_are_ignored() {
        for raw in ["", "width=&height=&quality=&format=&fit=&dpr=", "v=1", "fit=cover", "dpr=2"] {
            assert!(asked(raw, "").unwrap().is_identity(), "{raw}");
        }
        assert_eq!(asked("width=99999999999999999999", "").unwrap().width, Some(u32::MAX));
    }

    #[test]
    fn wrong_values_are_refused_by_name() {
        for (raw, name) in [
            ("width=0", "width"),
            ("w=-1", "width"),
            ("height=1.5", "height"),
            ("h=abc", "height"),
            ("quality=0", "quality"),
            ("q=101", "quality"),
            ("format=bmp", "format"),
            ("fit=inside-out", "fit"),
            ("dpr=0", "dpr"),
            ("dpr=NaN", "dpr"),
            ("dpr=11", "dpr"),
        ] {
            let refusal = asked(raw, "").unwrap_err();
            assert_eq!(
                (refusal.status().as_u16(), refusal.code()),
                (400, "bad_parameter"),
                "{raw}"
            );
            assert!(refusal.message().contains(name), "{raw}: {}", refusal.message());
        }
    }

    #[test]
    fn auto_format_follows_accept() {
        let auto = |accept| match asked("format=auto", accept).unwrap().format {
            OutputFormat::Auto { avif, webp } => (avif, webp),
            other => panic!("{other:?}"),
        };
        assert_eq!(auto("image/avif,image/webp,image/*,*/*;q=0.8"), (true, true));
        assert_eq!(auto("text/html, image/webp;q=0.5"), (false, true));
        assert_eq!(auto("image/avif;q=0, IMAGE/WEBP"), (false, true));
        assert_eq!(auto("image/avif;Q=0, image/webp"), (false, true));
        assert_eq!(auto("image/*,*/*"), (false, false));
        assert_eq!(auto(""), (false, false));
    }
}
