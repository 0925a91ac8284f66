//! Secret setting: used but never shown, neither in a log, nor in an error, nor by `trug config show`.
//!
//! Guarantees: it is compared in constant time; the mask shown in its place is not accepted as a secret. Non-goals:
//! reading its file.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use toml::Value;

use super::ConfigError;
use super::kind::SettingValue;
use crate::limits::{SECRET_CHARS_MAX, SECRET_CHARS_MIN};

/// Displayed in place of a secret.
const MASK: &str = "***";

/// Secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Compares the secret with a presented one, in time that depends only on the length.
    pub fn matches(&self, presented: &[u8]) -> bool {
        let hash = |bytes: &[u8]| Sha256::digest(bytes);
        hash(self.0.as_bytes()).as_slice().ct_eq(hash(presented).as_slice()).into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl SettingValue for Secret {
    const NAME: &'static str = "a secret (a string); the redacted form cannot be used";
    const IS_SHOWN: bool = false;

    fn of_text(text: &str) -> Option<Self> {
        (text != MASK).then(|| Self(text.to_owned()))
    }

    fn of_toml(value: &Value) -> Option<Self> {
        value.as_str().and_then(Self::of_text)
    }

    fn to_toml(&self) -> String {
        Value::from(MASK).to_string()
    }
}

/// Pair of a secret setting and the setting that names its file.
pub(super) struct SecretSetting<'a> {
    pub(super) setting: &'static str,
    pub(super) secret: &'a mut Option<Secret>,
    pub(super) file_setting: &'static str,
    pub(super) file: &'a Option<PathBuf>,
}

impl SecretSetting<'_> {
    /// Validates the pair.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        match (&self.secret, self.file) {
            (Some(_), Some(_)) => {
                let why = format!("{} is set too: use one of them", self.setting);
                Err(ConfigError::for_setting(self.file_setting, why))
            }
            (Some(secret), None) => check(self.setting, &secret.0),
            (None, _) => Ok(()),
        }
    }

    /// Reads the secret from its file, if one is set, without the line end.
    pub(super) fn load(
        self,
        read: &dyn Fn(&Path) -> io::Result<String>,
    ) -> Result<(), ConfigError> {
        let Some(path) = self.file else { return Ok(()) };
        let setting = self.file_setting;
        let refuse = |why: io::Error| {
            ConfigError::for_setting(setting, format!("{}: {why}", path.display()))
        };
        let text = read(path).map_err(refuse)?;
        let text = text.trim_end_matches(['\r', '\n']);
        check(setting, text)?;
        *self.secret = Some(Secret(text.to_owned()));
        Ok(())
    }
}

/// Requires a valid header value that cannot be guessed.
fn check(setting: &'static str, text: &str) -> Result<(), ConfigError> {
    let lengths = SECRET_CHARS_MIN..=SECRET_CHARS_MAX;
    if lengths.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(());
    }
    let why = format!(
        "the secret must be {SECRET_CHARS_MIN} to {SECRET_CHARS_MAX} visible characters without \
        spaces: create one with openssl rand -hex 32"
    );
    Err(ConfigError::for_setting(setting, why))
}

#[cfg(test)]
mod tests {
    use super::super::{Config, Layer, Sources};
    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    fn layer(pairs: &[(&str, &str)]) -> Result<Layer, ConfigError> {
        let owned = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Layer::from_env(owned.collect::<Vec<_>>().into_iter())
    }

    fn config(pairs: &[(&str, &str)]) -> Result<Config, ConfigError> {
        layer(pairs).and_then(Config::new)
    }

    #[test]
    fn secret_matches_itself_and_is_never_printed() {
        let layer = layer(&[("TRUG_METRICS_TOKEN", TOKEN)]).unwrap();
        let config = Config::new(layer.clone()).unwrap();
        let secret = config.metrics_token.clone().unwrap();
        assert!(secret.matches(TOKEN.as_bytes()));
        for other in ["", "0", &TOKEN[1..], "0123456789abcdef0123456789abcdeF"] {
            assert!(!secret.matches(other.as_bytes()), "{other}");
        }
        let sources = Sources::new().overlay("environment", layer.clone());
        for shown in [
            format!("{config:?}"),
            format!("{layer:?}"),
            format!("{:?}", sources.effective()),
            format!("{sources:?}"),
        ] {
            assert!(shown.contains(MASK) && !shown.contains(&TOKEN[..8]), "{shown}");
        }
    }

    #[test]
    fn invalid_secret_is_rejected_without_echo() {
        let long = "x".repeat(SECRET_CHARS_MAX + 1);
        for bad in
            ["short-hunter2", "hunter2 with some spaces", "hunter2hunter2\u{e9}", &long, MASK]
        {
            let error = config(&[("TRUG_METRICS_TOKEN", bad)]).unwrap_err().to_string();
            assert!(error.contains("metrics_token: ") && !error.contains("hunter2"), "{error}");
        }
        let error = Layer::from_toml("metrics_token = 1234567890123456", "file").unwrap_err();
        assert!(!error.to_string().contains("1234"), "{error}");
        // The output of `trug config show` is not a secret.
        let shown = Layer::from_toml("metrics_token = \"***\"", "file").unwrap_err().to_string();
        assert!(shown.contains("line 1: metrics_token: "), "{shown}");
    }

    #[test]
    fn secret_is_read_from_a_file() {
        let read = |path: &Path| match path.to_str() {
            Some("/good") => Ok(format!("{TOKEN}\n")),
            Some("/empty") => Ok("\n".to_owned()),
            _ => Err(io::ErrorKind::NotFound.into()),
        };
        let mut found = config(&[("TRUG_METRICS_TOKEN_FILE", "/good")]).unwrap();
        assert_eq!(found.metrics_token, None);
        found.load_secret_files(&read).unwrap();
        assert!(found.metrics_token.unwrap().matches(TOKEN.as_bytes()));
        for path in ["/empty", "/none"] {
            let mut found = config(&[("TRUG_METRICS_TOKEN_FILE", path)]).unwrap();
            let error = found.load_secret_files(&read).unwrap_err().to_string();
            assert!(error.starts_with("metrics_token_file: "), "{error}");
        }
        let both = [("TRUG_METRICS_TOKEN_FILE", "/good"), ("TRUG_METRICS_TOKEN", TOKEN)];
        let error = config(&both).unwrap_err().to_string();
        assert!(error.starts_with("metrics_token_file: ") && !error.contains(TOKEN), "{error}");
    }
}
