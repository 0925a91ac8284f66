//! The types that settings have: how each is read from a text or from TOML, and how it is written.
//!
//! Never here: which settings there are.

use std::path::PathBuf;

use toml::Value;

/// A value as a source wrote it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Written<'a> {
    /// On the command line or in the environment.
    Text(&'a str),
    /// In a file.
    Toml(&'a Value),
}

/// A type of settings.
pub(super) trait Kind: Sized {
    /// What such a value is called.
    const NAME: &'static str;
    /// Whether a value may be told to whoever wrote it.
    const IS_SHOWN: bool = true;

    fn of_text(text: &str) -> Option<Self>;

    fn of_toml(value: &Value) -> Option<Self>;

    /// As it may stand in a file.
    fn to_toml(&self) -> String;

    /// Reads a value, or says what is wrong with it.
    fn read(written: Written<'_>) -> Result<Self, String> {
        let (value, shown) = match written {
            Written::Text(text) => (Self::of_text(text.trim()), format!("{text:?}")),
            Written::Toml(value) => (Self::of_toml(value), value.to_string()),
        };
        let shown = if Self::IS_SHOWN { &*shown } else { "this" };
        value.ok_or_else(|| format!("{shown} is not {}", Self::NAME))
    }
}

/// Several texts: a list, or one text with commas, as the environment has only texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts(pub Vec<String>);

macro_rules! whole_numbers {
    ($($kind:ty),+) => {
        $(impl Kind for $kind {
            const NAME: &'static str = "a whole number that is not negative";

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

impl Kind for bool {
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

impl Kind for String {
    const NAME: &'static str = "a text";

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

impl Kind for PathBuf {
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

impl Kind for Texts {
    const NAME: &'static str = "a list of texts, or one with commas";

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
