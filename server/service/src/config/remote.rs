//! Settings of the remote store.
//!
//! Non-goals: connecting to it; the syntax of URLs, endpoints, regions and credentials beyond what every kind of store
//! has in common, which the client of the store checks.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use engine::replication::RemoteAck;
use toml::Value;

use super::kind::SettingValue;
use super::{ConfigError, within};
use crate::limits;

/// Remote store that the log is shipped to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteSettings {
    /// URL: `s3://bucket/prefix`, `gs://bucket/prefix`, `az://container/prefix` or `file:///folder`.
    pub url: String,
    /// URL of the service. `None`: that of the provider.
    pub endpoint: Option<String>,
    /// Region. `None`: the default of the client.
    pub region: Option<String>,
    /// File with the credentials. [`Config::load_secret_files`](super::Config::load_secret_files) reads it.
    pub credentials_file: Option<PathBuf>,
    /// Content of the file. `None`: the credentials of the machine.
    pub credentials: Option<RemoteCredentials>,
    /// When an upload is acknowledged.
    pub ack: RemoteAck,
    /// Pause between two chunks with [`RemoteAck::Local`].
    pub ship_interval: Duration,
    /// Time without a created chunk after which writes are rejected; 0: they are not.
    pub lease_seconds: u16,
    /// Time for which the store can be restored to an earlier state.
    pub retention: Duration,
    /// Maximum size of segments on this machine; 0: all are.
    pub local_cache_bytes: u64,
}

/// Credentials of a remote store, as in their file. `Debug` does not show them.
#[derive(Clone, PartialEq, Eq)]
pub struct RemoteCredentials(String);

impl RemoteCredentials {
    /// Returns the text of the file.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for RemoteCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Unvalidated settings.
pub(super) struct RawRemoteSettings {
    pub(super) url: Option<String>,
    pub(super) endpoint: Option<String>,
    pub(super) region: Option<String>,
    pub(super) credentials_file: Option<PathBuf>,
    pub(super) ack: Option<RemoteAck>,
    pub(super) ship_ms: Option<u64>,
    pub(super) lease_seconds: Option<u64>,
    pub(super) retention_days: Option<u64>,
    pub(super) local_cache_bytes: Option<u64>,
}

impl RawRemoteSettings {
    /// Validates the settings. `None` without a URL.
    pub(super) fn checked(self) -> Result<Option<RemoteSettings>, ConfigError> {
        let ack = super::needed("remote_ack", self.ack)?;
        let ship_ms = within("remote_ship_ms", self.ship_ms, limits::REMOTE_SHIP_MS)?;
        let lease_seconds = lease(self.lease_seconds)?;
        let days = within("remote_retention_days", self.retention_days, 1..=3_650)?;
        let local_cache_bytes = local_cache(self.local_cache_bytes)?;
        let Some(url) = self.url else {
            let others = [
                ("remote_endpoint", self.endpoint.is_some()),
                ("remote_region", self.region.is_some()),
                ("remote_credentials_file", self.credentials_file.is_some()),
                ("remote_ack", ack == RemoteAck::Remote),
                ("remote_lease_seconds", lease_seconds > 0),
                ("local_cache_bytes", local_cache_bytes > 0),
            ];
            return match others.into_iter().find(|(_, is_set)| *is_set) {
                Some((setting, _)) => {
                    Err(ConfigError::for_setting(setting, "remote_url is required with it"))
                }
                None => Ok(None),
            };
        };
        Ok(Some(RemoteSettings {
            url: checked_url(url)?,
            endpoint: self.endpoint,
            region: self.region,
            credentials_file: self.credentials_file,
            credentials: None,
            ack,
            ship_interval: Duration::from_millis(ship_ms),
            lease_seconds,
            retention: Duration::from_secs(days * 24 * 60 * 60),
            local_cache_bytes,
        }))
    }
}

impl RemoteSettings {
    /// Reads the credentials from their file, if one is set.
    pub(super) fn load(
        &mut self,
        read: &dyn Fn(&Path) -> io::Result<String>,
    ) -> Result<(), ConfigError> {
        let Some(path) = &self.credentials_file else { return Ok(()) };
        let refuse = |why: &dyn fmt::Display| {
            let why = format!("{}: {why}", path.display());
            ConfigError::for_setting("remote_credentials_file", why)
        };
        let text = read(path).map_err(|why| refuse(&why))?;
        if text.trim().is_empty() {
            return Err(refuse(
                &"the file is empty: it has the access key and the secret key, a line each",
            ));
        }
        self.credentials = Some(RemoteCredentials(text));
        Ok(())
    }
}

/// Requires a scheme and a name after it.
fn checked_url(url: String) -> Result<String, ConfigError> {
    const SCHEMES: [&str; 4] = ["s3://", "gs://", "az://", "file:///"];
    let rest = SCHEMES.iter().find_map(|scheme| url.strip_prefix(scheme));
    if rest.is_some_and(|rest| !rest.is_empty() && !rest.contains('@')) {
        return Ok(url);
    }
    // A URL with credentials must not be shown.
    let shown = if url.contains('@') { "the URL".to_owned() } else { format!("{url:?}") };
    let why = format!(
        "{shown} is not a remote store: use s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, \
        az://CONTAINER/PREFIX or file:///FOLDER, without credentials"
    );
    Err(ConfigError::for_setting("remote_url", why))
}

/// Converts the size of the local cache. A small one could not even have the newest segments.
fn local_cache(bytes: Option<u64>) -> Result<u64, ConfigError> {
    let name = "local_cache_bytes";
    match super::needed(name, bytes)? {
        bytes if bytes == 0 || bytes >= limits::LOCAL_CACHE_BYTES_MIN => Ok(bytes),
        bytes => {
            let least = limits::LOCAL_CACHE_BYTES_MIN;
            let why = format!("{bytes} is out of range: 0, or at least {least}");
            Err(ConfigError::for_setting(name, why))
        }
    }
}

/// Converts the lease. A short one would expire between two signs of life of an idle server.
fn lease(seconds: Option<u64>) -> Result<u16, ConfigError> {
    let name = "remote_lease_seconds";
    let seconds = super::needed(name, seconds)?;
    match u16::try_from(seconds) {
        Ok(seconds) if seconds == 0 || limits::REMOTE_LEASE_SECONDS.contains(&seconds) => {
            Ok(seconds)
        }
        _ => {
            let (least, most) = limits::REMOTE_LEASE_SECONDS.into_inner();
            let why = format!("{seconds} is out of range: 0, or {least} to {most}");
            Err(ConfigError::for_setting(name, why))
        }
    }
}

impl SettingValue for RemoteAck {
    const NAME: &'static str = "\"local\" or \"remote\"";

    fn of_text(text: &str) -> Option<Self> {
        match text {
            "local" => Some(Self::Local),
            "remote" => Some(Self::Remote),
            _ => None,
        }
    }

    fn of_toml(value: &Value) -> Option<Self> {
        value.as_str().and_then(Self::of_text)
    }

    fn to_toml(&self) -> String {
        let name = match self {
            Self::Local => "local",
            Self::Remote => "remote",
        };
        Value::from(name).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Config, Layer};
    use super::*;

    const URL: (&str, &str) = ("remote_url", "s3://trug-replica/main");

    fn config(assignments: &[(&str, &str)]) -> Result<Config, String> {
        let texts = assignments.iter().map(|(name, value)| format!("{name}={value}"));
        let texts = texts.collect::<Vec<_>>();
        let layer = Layer::from_assignments(texts.iter().map(String::as_str), "--set");
        layer.and_then(Config::new).map_err(|error| error.to_string())
    }

    #[test]
    fn remote_store_is_off_without_a_url() {
        assert_eq!(config(&[]).unwrap().remote, None);
        for (setting, value) in [
            ("remote_endpoint", "https://rgw.example.com"),
            ("remote_region", "eu-central-1"),
            ("remote_credentials_file", "/etc/trug/remote.key"),
            ("remote_ack", "remote"),
            ("remote_lease_seconds", "15"),
        ] {
            let error = config(&[(setting, value)]).unwrap_err();
            assert_eq!(error, format!("{setting}: remote_url is required with it"));
        }
    }

    #[test]
    fn remote_settings_have_defaults_and_units() {
        let remote = config(&[URL]).unwrap().remote.unwrap();
        assert_eq!((&*remote.url, remote.ack), (URL.1, RemoteAck::Local));
        assert_eq!(remote.ship_interval, Duration::from_secs(1));
        assert_eq!((remote.lease_seconds, remote.retention), (0, Duration::from_secs(604_800)));
        let remote = config(&[
            URL,
            ("remote_ack", "remote"),
            ("remote_ship_ms", "250"),
            ("remote_lease_seconds", "2m"),
            ("remote_retention_days", "30d"),
        ]);
        let remote = remote.unwrap().remote.unwrap();
        assert_eq!((remote.ack, remote.lease_seconds), (RemoteAck::Remote, 120));
        assert_eq!(remote.ship_interval, Duration::from_millis(250));
        assert_eq!(remote.retention, Duration::from_secs(30 * 86_400));
    }

    #[test]
    fn invalid_remote_settings_are_rejected() {
        for (setting, value, says) in [
            (
                "remote_url",
                "trug-replica/main",
                "\"trug-replica/main\" is not a remote store: use s3://",
            ),
            ("remote_url", "https://rgw.example.com/b", "use s3://BUCKET/PREFIX"),
            ("remote_url", "s3://", "is not a remote store"),
            ("remote_url", "file://relative", "file:///FOLDER"),
            ("remote_ack", "both", "\"both\" is not \"local\" or \"remote\""),
            ("remote_ship_ms", "9", "9 is out of range: 10 to 60000"),
            ("remote_ship_ms", "60001", "60001 is out of range: 10 to 60000"),
            ("remote_lease_seconds", "4", "4 is out of range: 0, or 5 to 3600"),
            ("remote_lease_seconds", "70000", "70000 is out of range: 0, or 5 to 3600"),
            ("remote_retention_days", "0", "0 is out of range: 1 to 3650"),
            ("local_cache_bytes", "7", "7 is out of range: 0, or at least 1073741824"),
        ] {
            let error = config(&[URL, (setting, value)]).unwrap_err();
            assert!(error.contains(&format!("{setting}: ")) && error.contains(says), "{error}");
        }
        let error = config(&[("remote_url", "s3://key:hunter2@b/x")]).unwrap_err();
        assert!(error.contains("without credentials") && !error.contains("hunter2"), "{error}");
    }

    #[test]
    fn remote_credentials_are_read_and_never_printed() {
        let read = |path: &Path| match path.to_str() {
            Some("/good") => Ok("key\nhunter2\n".to_owned()),
            Some("/empty") => Ok("\n".to_owned()),
            _ => Err(io::ErrorKind::NotFound.into()),
        };
        let load = |path: &str| {
            let mut config = config(&[URL, ("remote_credentials_file", path)]).unwrap();
            config.load_secret_files(&read).map(|()| config).map_err(|error| error.to_string())
        };
        let config = load("/good").unwrap();
        assert!(!format!("{config:?}").contains("hunter2"));
        let credentials = config.remote.unwrap().credentials.unwrap();
        assert_eq!(credentials.text(), "key\nhunter2\n");
        for (path, says) in [("/empty", "the file is empty"), ("/none", "not found")] {
            let error = load(path).unwrap_err();
            assert!(error.starts_with(&format!("remote_credentials_file: {path}: ")), "{error}");
            assert!(error.contains(says), "{error}");
        }
    }
}
