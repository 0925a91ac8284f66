//! Types of settings: parsing from text and TOML, and formatting.
//!
//! Non-goals: which settings there are.

use std::path::PathBuf;

use toml::Value;

use super::units::Unit;

/// Unparsed value.
#[derive(Clone, Copy, Debug)]
pub(super) enum RawValue<'a> {
    /// From the command line or the environment.
    Text(&'a str),
    /// From a file.
    Toml(&'a Value),
}

/// Type of settings.
pub(super) trait SettingValue: Sized {
    /// Description of valid values, for errors.
    const NAME: &'static str;
    /// Whether errors may contain the value.
    const IS_SHOWN: bool = true;

    fn of_text(text: &str) -> Option<Self>;

    fn of_toml(value: &Value) -> Option<Self>;

    /// Formats a value for a file.
    fn to_toml(&self) -> String;

    /// Reads the value of a setting, which may have a unit if the name of the setting does.
    fn read(setting: &str, written: RawValue<'_>) -> Result<Self, String> {
        let unit = Unit::of(setting);
        let with_unit = |text: &str| Self::of_text(&unit?.parse(text)?.to_string());
        let (value, shown) = match written {
            RawValue::Text(text) => {
                let value = with_unit(text.trim()).or_else(|| Self::of_text(text.trim()));
                (value, format!("{text:?}"))
            }
            RawValue::Toml(value) => {
                let value_with_unit = value.as_str().and_then(with_unit);
                (value_with_unit.or_else(|| Self::of_toml(value)), value.to_string())
            }
        };
        let shown = if Self::IS_SHOWN { &*shown } else { "this" };
        let expected = unit.map_or(Self::NAME, Unit::expected);
        value.ok_or_else(|| format!("{shown} is not {expected}"))
    }
}

/// List of texts, or one text with commas, since the environment has only texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StringList(pub Vec<String>);

macro_rules! whole_numbers {
    ($($kind:ty),+) => {
        $(impl SettingValue for $kind {
            const NAME: &'static str = "a non-negative integer";

            fn of_text(text: &str) -> Option<Self> {
                text.parse().ok()
            }

            fn of_toml(value: &Value) -> Option<Self> {
                value.as_integer()?.try_into().ok()
            }

            fn to_toml(&self) -> String {
                self.to_string()
            }
        })+
    };
}

whole_numbers!(u32, u64, usize);

impl SettingValue for bool {
    const NAME: &'static str = "true or false";

    fn of_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn of_toml(value: &Value) -> Option<Self> {
        value.as_bool()
    }

    fn to_toml(&self) -> String {
        self.to_string()
    }
}

impl SettingValue for String {
    const NAME: &'static str = "text";

    fn of_text(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }

    fn of_toml(value: &Value) -> Option<Self> {
        value.as_str().map(str::to_owned)
    }

    fn to_toml(&self) -> String {
        Value::from(self.as_str()).to_string()
    }
}

impl SettingValue for PathBuf {
    const NAME: &'static str = "a path";

    fn of_text(text: &str) -> Option<Self> {
        Some(Self::from(text))
    }

    fn of_toml(value: &Value) -> Option<Self> {
        value.as_str().map(Self::from)
    }

    fn to_toml(&self) -> String {
        Value::from(&*self.to_string_lossy()).to_string()
    }
}

impl SettingValue for StringList {
    const NAME: &'static str = "a list of strings, or a string with commas";

    fn of_text(text: &str) -> Option<Self> {
        let texts = text.split(',').map(str::trim).filter(|text| !text.is_empty());
        Some(Self(texts.map(str::to_owned).collect()))
    }

    fn of_toml(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Self::of_text(text),
            Value::Array(values) => {
                values.iter().map(String::of_toml).collect::<Option<_>>().map(Self)
            }
            _ => None,
        }
    }

    fn to_toml(&self) -> String {
        let texts = self.0.iter().map(|text| Value::from(text.as_str()));
        Value::Array(texts.collect()).to_string()
    }
}
