//! Settings of trace export: collector and sampling.
//!
//! Non-goals: export.

use protocol::destination::OutboundUrl;
use toml::Value;

use super::kind::SettingValue;
use super::{ConfigError, needed};

/// Path below the base URL of a collector (OTLP, Protocol Details).
const TRACES: &str = "/v1/traces";

/// Collector and sampling of spans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtlpSettings {
    pub traces: OutboundUrl,
    pub sample_ratio: Ratio,
    pub service_name: String,
}

/// Ratio from 0 to 1, with a precision of one millionth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio(u32);

const PARTS_PER_ONE: u32 = 1_000_000;

impl Ratio {
    /// Ratio 1.
    pub const ONE: Self = Self(PARTS_PER_ONE);

    /// Creates a ratio. `None` outside 0 to 1.
    fn from_f64(part: f64) -> Option<Self> {
        (0.0..=1.0).contains(&part).then(|| Self((part * f64::from(PARTS_PER_ONE)).round() as u32))
    }

    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / f64::from(PARTS_PER_ONE)
    }
}

/// Validates the settings. `None` disables the export.
pub(super) fn otlp(
    endpoint: Option<String>,
    sample_ratio: Option<Ratio>,
    service_name: Option<String>,
) -> Result<Option<OtlpSettings>, ConfigError> {
    let Some(endpoint) = endpoint else { return Ok(None) };
    let refuse = |why: String| Err(ConfigError::for_setting("otlp_endpoint", why));
    if endpoint.contains('?') {
        return refuse(format!("{endpoint:?} must have no query"));
    }
    let traces = match OutboundUrl::parse(&(endpoint.trim_end_matches('/').to_owned() + TRACES)) {
        Ok(traces) => traces,
        Err(why) => {
            let example = "http://127.0.0.1:4318";
            return refuse(format!("{endpoint:?} is not a URL such as {example}: it {why}"));
        }
    };
    let sample_ratio = needed("otlp_sample_ratio", sample_ratio)?;
    let service_name = needed("otlp_service_name", service_name)?;
    Ok(Some(OtlpSettings { traces, sample_ratio, service_name }))
}

impl SettingValue for Ratio {
    const NAME: &'static str = "a number from 0 to 1";

    fn of_text(text: &str) -> Option<Self> {
        Self::from_f64(text.parse().ok()?)
    }

    fn of_toml(value: &Value) -> Option<Self> {
        match value {
            Value::Float(part) => Self::from_f64(*part),
            Value::Integer(part) => Self::of_text(&part.to_string()),
            _ => None,
        }
    }

    fn to_toml(&self) -> String {
        Value::Float(self.as_f64()).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampling_ratio_round_trips_and_is_bounded() {
        for text in ["0", "1", "0.25", "1e-3"] {
            let ratio = Ratio::of_text(text).unwrap();
            assert_eq!(ratio.as_f64(), text.parse::<f64>().unwrap());
            assert_eq!(Ratio::of_text(&ratio.to_toml()), Some(ratio));
        }
        assert_eq!(Ratio::of_toml(&Value::Integer(1)), Some(Ratio::ONE));
        for bad in ["-0.1", "1.1", "NaN", "inf", "half", ""] {
            assert_eq!(Ratio::of_text(bad), None, "{bad}");
        }
    }

    #[test]
    fn otlp_endpoint_is_a_url_without_query_or_password() {
        let parse = |text: &str| {
            otlp(Some(text.to_owned()), Some(Ratio::ONE), Some("trug".to_owned()))
                .map(|found| found.map(|found| found.traces.as_str().to_owned()))
                .map_err(|error| error.to_string())
        };
        assert_eq!(otlp(None, None, None), Ok(None));
        for text in ["http://127.0.0.1:4318", "http://127.0.0.1:4318/"] {
            assert_eq!(parse(text), Ok(Some("http://127.0.0.1:4318/v1/traces".to_owned())));
        }
        assert!(parse("https://a.example/x").unwrap().unwrap().ends_with("/x/v1/traces"));
        for bad in ["", "127.0.0.1:4318", "http://a/?key=1", "http://u:p@a", "grpc://a"] {
            assert!(parse(bad).unwrap_err().starts_with("otlp_endpoint: "), "{bad}");
        }
    }
}
