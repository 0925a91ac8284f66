//! Configuration: read from a file, the environment and the command line, validated once.
//!
//! ```text
//! settings   every setting, declared once
//! acme       settings of certificates that the server obtains itself
//! otlp       settings of traces
//! remote     settings of the remote store
//! kind       value types: parsing and formatting
//! sources    where values come from, and their precedence
//! secret     values that are used and never shown
//! ```
//!
//! A [`Layer`] holds the values of one source, [`Sources`] those of all sources, a [`Config`] the effective values, all
//! of them valid. Non-goals: reading files and flags; the location of the data folder.

mod acme;
mod kind;
mod otlp;
mod remote;
mod secret;
mod settings;
mod sources;
mod units;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use engine::compaction::CompactionOptions;
use engine::scrub::ScrubOptions;
use listener::acme::AcmeSettings;
use listener::ip_network::Network;
use listener::tls::TlsIdentity;
use outbound::trust_anchors::TrustAnchors;
use protocol::destination::Origin;
pub use protocol::destination::Scheme;
use protocol::public_url::PublicUrl;

use self::kind::RawValue;
use self::secret::SecretSetting;

use crate::limits;

pub use self::kind::StringList;
pub use self::otlp::{OtlpSettings, Ratio};
pub use self::remote::{RemoteCredentials, RemoteSettings};
pub use self::secret::Secret;
pub use self::settings::{Layer, Setting, SettingChange, SettingDefault, settings};
pub use self::sources::{ActiveConfig, ENV_PREFIX, EffectiveSetting, Reloaded, Sources};
pub use self::units::{SIZE_UNITS, parse_bytes, parse_seconds};

/// Server configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Every setting with its value and source, for operators; empty without sources.
    pub in_force: Vec<EffectiveSetting>,
    /// Listen address.
    pub listen: SocketAddr,
    /// Base URL of generated links, before `/{bucket}/{key}`. Default: the listen address.
    pub public_url: Option<PublicUrl>,
    /// PEM files of the TLS certificates and their key. The caller loads them into `tls`.
    pub tls_files: Option<TlsFiles>,
    /// Loaded certificates and key.
    pub tls: Option<TlsIdentity>,
    /// Domains for which the server obtains certificates by ACME. `None`: disabled.
    pub acme: Option<AcmeSettings>,
    /// `Strict-Transport-Security` max-age. `None`: the header is not sent.
    pub hsts: Option<Duration>,
    /// Largest request body.
    pub body_bytes_max: u64,
    /// Listen address of the premium endpoint. `None`: disabled.
    pub upload_listen: Option<SocketAddr>,
    /// Largest request body on the premium endpoint.
    pub upload_body_bytes_max: u64,
    /// Listen address for health checks and metrics. `None`: disabled.
    pub admin_listen: Option<SocketAddr>,
    /// Token that allows metrics on the main listener. `None`: disabled.
    pub metrics_token: Option<Secret>,
    /// File of the metrics token. [`Config::load_secret_files`] reads it.
    pub metrics_token_file: Option<PathBuf>,
    /// Maximum number of connections.
    pub connections_max: usize,
    /// Maximum number of connections from one address.
    pub connections_per_address_max: usize,
    /// Time that requests in flight get during graceful shutdown.
    pub drain: Duration,
    /// Disk space in bytes that uploads may not use. Default: what the store needs to be able to delete.
    pub reserve_bytes: Option<u64>,
    /// Minimum time for which deleted or replaced large files are retained, while there is space.
    pub undelete_window: Duration,
    /// Continuous verification of all stored data. `None`: disabled.
    pub scrub: Option<ScrubOptions>,
    /// Automatic compaction of dead space. `None`: only on request.
    pub compaction: Option<CompactionOptions>,
    /// Whether the rate limits of plans are enforced.
    pub plan_rates: bool,
    /// Uploads per minute of an account on the plan Business.
    pub business_uploads_per_minute: u32,
    /// Invalid API keys per minute from one address. 0: unlimited.
    pub failed_authentications_per_minute: u32,
    /// Requests per second from one address. 0: unlimited.
    pub address_requests_per_second: u32,
    /// Burst size of the per-address request limit. 0: unlimited.
    pub address_requests_burst: u32,
    /// Networks exempt from per-address limits, as loopback is.
    pub trusted_networks: Vec<Network>,
    /// Networks of trusted proxies, whose `X-Forwarded-For` is honored.
    pub trusted_proxies: Vec<Network>,
    /// Further hosts of the dashboard besides that of the public URL, in lower case.
    pub dashboard_hosts: Vec<String>,
    /// Maximum lifetime of shared links in days. 0: no maximum.
    pub link_days_max: u64,
    /// Whether the server checks the fair use of all accounts daily.
    pub fair_use_sweep: bool,
    /// Memory in bytes for the search indexes of buckets. 0: no indexes.
    pub search_memory_bytes: u64,
    /// Memory in bytes for all image processing at once. Default: a quarter of the machine's memory.
    pub image_memory_bytes: Option<u64>,
    /// Size of the variant cache in the store, in bytes. 0: no cache.
    pub variants_bytes_max: u64,
    /// Image processing time per address: milliseconds of CPU per second. 0: unlimited.
    pub image_ms_per_second_per_address: u32,
    /// Image processing time per bucket: milliseconds of CPU per second. 0: unlimited.
    pub image_ms_per_second_per_bucket: u32,
    /// Private-network origins that webhooks may be sent to.
    pub webhook_allow: Vec<Origin>,
    /// Private-network origins that files may be imported from.
    pub import_allow: Vec<Origin>,
    /// PEM file of certification authorities for webhooks, in addition to Mozilla's. The caller loads it into
    /// `webhook_roots`.
    pub webhook_ca_file: Option<PathBuf>,
    /// Loaded additional certification authorities.
    pub webhook_roots: TrustAnchors,
    /// Export of request traces. `None`: disabled.
    pub otlp: Option<OtlpSettings>,
    /// Remote store. `None`: disabled.
    pub remote: Option<RemoteSettings>,
}

/// Files of the certificates and their key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    pub certificates: PathBuf,
    pub key: PathBuf,
}

/// Invalid setting: its source and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    source: Option<String>,
    setting: Option<&'static str>,
    why: String,
}

impl Config {
    /// Validates the values of one source, with defaults for the rest.
    pub fn new(layer: Layer) -> Result<Self, ConfigError> {
        Self::checked(layer.over(Layer::defaults()))
    }

    /// Validates the combined values of all sources.
    fn checked(layer: Layer) -> Result<Self, ConfigError> {
        let numbers = 1..=1_000_000;
        let rates = 0..=limits::CONFIGURED_RATE_MAX;
        let asked = acme::RawAcmeSettings {
            domains: layer.acme_domains,
            contacts: layer.acme_contact,
            directory: layer.acme_directory,
            ca_file: layer.acme_ca_file,
        };
        let acme = asked.checked()?;
        if acme.is_some() && layer.tls_certificate_file.is_some() {
            let why = "acme_domains is set too: use certificate files or ACME, not both";
            return Err(ConfigError::for_setting("tls_certificate_file", why));
        }
        let mut config = Self {
            in_force: Vec::new(),
            listen: needed("listen", address("listen", layer.listen)?)?,
            public_url: layer
                .public_url
                .as_deref()
                .map(PublicUrl::parse)
                .transpose()
                .map_err(|why| ConfigError::for_setting("public_url", why))?,
            tls_files: tls_files(layer.tls_certificate_file, layer.tls_key_file)?,
            tls: None,
            acme,
            hsts: Some(seconds("tls_hsts_seconds", layer.tls_hsts_seconds, limits::HSTS_MAX)?)
                .filter(|hsts| !hsts.is_zero()),
            body_bytes_max: within(
                "body_bytes_max",
                layer.body_bytes_max,
                1..=limits::CONFIGURED_BODY_BYTES_MAX,
            )?,
            upload_listen: address("upload_listen", layer.upload_listen)?,
            upload_body_bytes_max: within(
                "upload_body_bytes_max",
                layer.upload_body_bytes_max,
                1..=engine::limits::OBJECT_BYTES_MAX,
            )?,
            admin_listen: address("admin_listen", layer.admin_listen)?,
            metrics_token: layer.metrics_token,
            metrics_token_file: layer.metrics_token_file,
            connections_max: within("connections_max", layer.connections_max, numbers.clone())?,
            connections_per_address_max: within(
                "connections_per_address_max",
                layer.connections_per_address_max,
                numbers,
            )?,
            drain: seconds("drain_seconds", layer.drain_seconds, limits::DRAIN_TIMEOUT_MAX)?,
            reserve_bytes: layer.reserve_bytes,
            undelete_window: seconds(
                "undelete_window_seconds",
                layer.undelete_window_seconds,
                limits::UNDELETE_WINDOW_MAX,
            )?,
            scrub: scrub(layer.scrub_days, layer.scrub_bytes_per_second_max)?,
            compaction: compaction(needed(
                "compaction_bytes_per_second_max",
                layer.compaction_bytes_per_second_max,
            )?),
            plan_rates: needed("plan_rates", layer.plan_rates)?,
            business_uploads_per_minute: within(
                "business_uploads_per_minute",
                layer.business_uploads_per_minute,
                1..=limits::CONFIGURED_RATE_MAX,
            )?,
            failed_authentications_per_minute: within(
                "failed_authentications_per_minute",
                layer.failed_authentications_per_minute,
                rates.clone(),
            )?,
            address_requests_per_second: within(
                "address_requests_per_second",
                layer.address_requests_per_second,
                rates.clone(),
            )?,
            address_requests_burst: within(
                "address_requests_burst",
                layer.address_requests_burst,
                rates.clone(),
            )?,
            trusted_networks: networks("trusted_networks", layer.trusted_networks)?,
            trusted_proxies: networks("trusted_proxies", layer.trusted_proxies)?,
            dashboard_hosts: hosts(layer.dashboard_hosts)?,
            link_days_max: within("link_days_max", layer.link_days_max, 0..=limits::LINK_DAYS_MAX)?,
            fair_use_sweep: needed("fair_use_sweep", layer.fair_use_sweep)?,
            search_memory_bytes: needed("search_memory_bytes", layer.search_memory_bytes)?,
            image_memory_bytes: layer.image_memory_bytes,
            variants_bytes_max: needed("variants_bytes_max", layer.variants_bytes_max)?,
            image_ms_per_second_per_address: within(
                "image_ms_per_second_per_address",
                layer.image_ms_per_second_per_address,
                rates.clone(),
            )?,
            image_ms_per_second_per_bucket: within(
                "image_ms_per_second_per_bucket",
                layer.image_ms_per_second_per_bucket,
                rates,
            )?,
            webhook_allow: origins("webhook_allow", layer.webhook_allow)?,
            import_allow: origins("import_allow", layer.import_allow)?,
            webhook_ca_file: layer.webhook_ca_file,
            webhook_roots: TrustAnchors::default(),
            otlp: otlp::otlp(
                layer.otlp_endpoint,
                layer.otlp_sample_ratio,
                layer.otlp_service_name,
            )?,
            remote: remote::RawRemoteSettings {
                url: layer.remote_url,
                endpoint: layer.remote_endpoint,
                region: layer.remote_region,
                credentials_file: layer.remote_credentials_file,
                ack: layer.remote_ack,
                ship_ms: layer.remote_ship_ms,
                lease_seconds: layer.remote_lease_seconds,
                retention_days: layer.remote_retention_days,
                local_cache_bytes: layer.local_cache_bytes,
            }
            .checked()?,
        };
        config.hidden().iter().try_for_each(SecretSetting::check)?;
        Ok(config)
    }

    /// Loads the secrets that are stored in files of their own. `read` returns the content of a file.
    pub fn load_secret_files(
        &mut self,
        read: &dyn Fn(&Path) -> io::Result<String>,
    ) -> Result<(), ConfigError> {
        self.hidden().into_iter().try_for_each(|hidden| hidden.load(read))?;
        self.remote.as_mut().map_or(Ok(()), |remote| remote.load(read))
    }

    /// Returns every setting that is a secret.
    fn hidden(&mut self) -> [SecretSetting<'_>; 1] {
        [SecretSetting {
            setting: "metrics_token",
            secret: &mut self.metrics_token,
            file_setting: "metrics_token_file",
            file: &self.metrics_token_file,
        }]
    }
}

impl Config {
    /// Returns the URL scheme of the main listener.
    pub fn scheme(&self) -> Scheme {
        if self.tls.is_some() || self.acme.is_some() { Scheme::Https } else { Scheme::Http }
    }
}

impl Default for Config {
    #[allow(clippy::expect_used, reason = "the defaults are constants, which a test checks")]
    fn default() -> Self {
        Self::new(Layer::default()).expect("the defaults are allowed")
    }
}

/// Returns the value of a setting that has a default.
fn needed<T>(name: &'static str, given: Option<T>) -> Result<T, ConfigError> {
    given.ok_or_else(|| ConfigError::for_setting(name, "it is required"))
}

fn within<N>(
    name: &'static str,
    given: Option<N>,
    allowed: RangeInclusive<N>,
) -> Result<N, ConfigError>
where
    N: PartialOrd + fmt::Display,
{
    let number = needed(name, given)?;
    if allowed.contains(&number) {
        return Ok(number);
    }
    let (least, most) = allowed.into_inner();
    Err(ConfigError::for_setting(name, format!("{number} is out of range: {least} to {most}")))
}

fn seconds(
    name: &'static str,
    given: Option<u64>,
    most: Duration,
) -> Result<Duration, ConfigError> {
    within(name, given, 0..=most.as_secs()).map(Duration::from_secs)
}

fn address(name: &'static str, text: Option<String>) -> Result<Option<SocketAddr>, ConfigError> {
    let Some(text) = text else { return Ok(None) };
    let why = || format!("{text:?} is not an address such as 127.0.0.1:8080");
    text.parse().map(Some).map_err(|_| ConfigError::for_setting(name, why()))
}

/// Requires both files or neither.
fn tls_files(
    certificates: Option<PathBuf>,
    key: Option<PathBuf>,
) -> Result<Option<TlsFiles>, ConfigError> {
    let missing =
        |setting, other| ConfigError::for_setting(setting, format!("{other} is required with it"));
    match (certificates, key) {
        (Some(certificates), Some(key)) => Ok(Some(TlsFiles { certificates, key })),
        (None, None) => Ok(None),
        (Some(_), None) => Err(missing("tls_certificate_file", "tls_key_file")),
        (None, Some(_)) => Err(missing("tls_key_file", "tls_certificate_file")),
    }
}

/// Converts the copy rate of background compaction; 0 disables it.
fn compaction(bytes_per_second_max: u64) -> Option<CompactionOptions> {
    let look_ms = engine::limits::COMPACTION_POLL_MS;
    (bytes_per_second_max > 0)
        .then_some(CompactionOptions { bytes_per_second_max, poll_ms: look_ms })
}

/// Converts the period and rate of background verification; zero days disable it.
fn scrub(days: Option<u64>, rate: Option<u64>) -> Result<Option<ScrubOptions>, ConfigError> {
    let bytes_per_second_max = within("scrub_bytes_per_second_max", rate, 1..=1 << 40)?;
    let days = within("scrub_days", days, 0..=3_650)?;
    let period = Duration::from_secs(days * 24 * 60 * 60);
    Ok((days > 0).then_some(ScrubOptions { period, bytes_per_second_max }))
}

fn networks(name: &'static str, texts: Option<StringList>) -> Result<Vec<Network>, ConfigError> {
    let read = |text: &String| {
        let why = format!("{text:?} is not a network such as 10.0.0.0/8");
        Network::parse(text).ok_or(ConfigError::for_setting(name, why))
    };
    texts.unwrap_or_default().0.iter().map(read).collect()
}

fn hosts(texts: Option<StringList>) -> Result<Vec<String>, ConfigError> {
    let refuse = |why| ConfigError::for_setting("dashboard_hosts", why);
    let read = |text: &String| match text.parse::<http::uri::Authority>() {
        Ok(host) if host.host() == text => Ok(text.to_ascii_lowercase()),
        _ => Err(refuse(format!("{text:?} is not a host name such as files.internal"))),
    };
    let hosts: Vec<_> = texts.unwrap_or_default().0.iter().map(read).collect::<Result<_, _>>()?;
    match hosts.len() {
        0..=limits::DASHBOARD_HOSTS_MAX => Ok(hosts),
        more => Err(refuse(format!("{more} hosts exceed the limit"))),
    }
}

fn origins(name: &'static str, texts: Option<StringList>) -> Result<Vec<Origin>, ConfigError> {
    let read = |text: &String| {
        let refuse = |why| {
            let example = "http://127.0.0.1:9000";
            ConfigError::for_setting(
                name,
                format!("{text:?} is not an origin such as {example}: it {why}"),
            )
        };
        Origin::parse(text).map_err(refuse)
    };
    texts.unwrap_or_default().0.iter().map(read).collect()
}

impl ConfigError {
    /// Creates an error that concerns no single setting.
    fn new(why: impl Into<String>) -> Self {
        Self { source: None, setting: None, why: why.into() }
    }

    /// Creates an error of a setting.
    pub fn for_setting(setting: &'static str, why: impl Into<String>) -> Self {
        Self { source: None, setting: Some(setting), why: why.into() }
    }

    /// Returns the setting that is invalid, if known.
    pub fn setting(&self) -> Option<&'static str> {
        self.setting
    }

    /// Adds the source of the value to the error.
    #[must_use]
    pub fn with_source(self, source: &str) -> Self {
        Self { source: Some(source.to_owned()), ..self }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source, setting, why } = self;
        source.iter().try_for_each(|source| write!(f, "{source}: "))?;
        setting.iter().try_for_each(|setting| write!(f, "{setting}: "))?;
        f.write_str(why)
    }
}

impl std::error::Error for ConfigError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Result<Layer, ConfigError> {
        let owned = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Layer::from_env(owned.collect::<Vec<_>>().into_iter())
    }

    #[test]
    fn config_layers_override_in_order() {
        let file = Layer::from_toml("listen = \"0.0.0.0:80\"\nbody_bytes_max = 7", "file").unwrap();
        let environment =
            variables(&[("TRUG_LISTEN", "[::1]:81"), ("TRUG_DATA", "/x"), ("PATH", "/")]).unwrap();
        let config = Config::new(environment.over(file)).unwrap();
        assert_eq!(config.listen, "[::1]:81".parse().unwrap());
        assert_eq!(config.body_bytes_max, 7);
        assert_eq!(config.drain, Config::default().drain);
        assert_eq!(config.reserve_bytes, None);
        let none = Config::new(variables(&[("TRUG_RESERVE_BYTES", "0")]).unwrap()).unwrap();
        assert_eq!(none.reserve_bytes, Some(0));
        for (rate, found) in [("0", None), ("7", Some(7))] {
            let layer = variables(&[("TRUG_COMPACTION_BYTES_PER_SECOND_MAX", rate)]).unwrap();
            let compaction = Config::new(layer).unwrap().compaction;
            assert_eq!(compaction.map(|options| options.bytes_per_second_max), found);
        }
        assert_eq!(Config::new(Layer::default()).unwrap(), Config::default());
    }

    #[test]
    fn invalid_setting_values_are_rejected() {
        for (field, value) in [
            ("TRUG_LISTEN", "8080"),
            ("TRUG_UPLOAD_LISTEN", "8081"),
            ("TRUG_ADMIN_LISTEN", "localhost:9090"),
            ("TRUG_UPLOAD_BODY_BYTES_MAX", "0"),
            ("TRUG_PUBLIC_URL", "cdn.example.com"),
            ("TRUG_PUBLIC_URL", "ftp://cdn.example.com"),
            ("TRUG_PUBLIC_URL", "https://cdn.example.com/?a=b"),
            ("TRUG_PUBLIC_URL", "https://user@cdn.example.com/"),
            ("TRUG_BODY_BYTES_MAX", "0"),
            ("TRUG_CONNECTIONS_MAX", "many"),
            ("TRUG_DRAIN_SECONDS", "86401"),
        ] {
            let config = variables(&[(field, value)]).and_then(Config::new);
            assert!(config.is_err(), "{field}={value}");
        }
        let layer = variables(&[("TRUG_PUBLIC_URL", "https://cdn.example.com/files/")]).unwrap();
        let url = Config::new(layer).unwrap().public_url.unwrap();
        assert_eq!(url.as_str(), "https://cdn.example.com/files");
    }

    #[test]
    fn zero_scrub_days_disable_scrubbing() {
        let scrub = |pairs| variables(pairs).and_then(Config::new).map(|config| config.scrub);
        let week = scrub(&[("TRUG_SCRUB_DAYS", "7")]).unwrap().unwrap();
        assert_eq!(week.period, Duration::from_secs(7 * 86_400));
        assert_eq!(scrub(&[("TRUG_SCRUB_DAYS", "0")]).unwrap(), None);
        assert!(scrub(&[("TRUG_SCRUB_DAYS", "4000")]).is_err());
        assert!(scrub(&[("TRUG_SCRUB_BYTES_PER_SECOND_MAX", "0")]).is_err());
    }

    #[test]
    fn zero_rate_is_unlimited_and_networks_parse() {
        let config = |pairs: &[(&str, &str)]| variables(pairs).and_then(Config::new);
        let none = config(&[("TRUG_ADDRESS_REQUESTS_PER_SECOND", "0")]).unwrap();
        assert_eq!(none.address_requests_per_second, 0);
        assert!(config(&[("TRUG_ADDRESS_REQUESTS_BURST", "1000001")]).is_err());
        assert!(config(&[("TRUG_BUSINESS_UPLOADS_PER_MINUTE", "0")]).is_err());
        assert!(config(&[("TRUG_FAIR_USE_SWEEP", "true")]).unwrap().fair_use_sweep);
        assert!(config(&[("TRUG_FAIR_USE_SWEEP", "maybe")]).is_err());
        let text = config(&[("TRUG_TRUSTED_NETWORKS", "10.0.0.0/8, ::1")]).unwrap();
        let list = "trusted_networks = [\"10.0.0.0/8\", \"::1\"]";
        let list = Config::new(Layer::from_toml(list, "file").unwrap()).unwrap();
        assert_eq!((text.trusted_networks.len(), &text), (2, &list));
        for name in ["TRUG_TRUSTED_NETWORKS", "TRUG_TRUSTED_PROXIES"] {
            let error = config(&[(name, "10.0.0.0/33")]).unwrap_err().to_string();
            let setting = name.trim_start_matches("TRUG_").to_ascii_lowercase();
            assert!(error.contains(&format!("{setting}: \"10.0.0.0/33\"")), "{error}");
        }
    }

    #[test]
    fn tls_certificate_and_key_are_set_together() {
        let config = |pairs: &[(&str, &str)]| variables(pairs).and_then(Config::new);
        let certificate = ("TRUG_TLS_CERTIFICATE_FILE", "/a");
        let key = ("TRUG_TLS_KEY_FILE", "/b");
        let files = config(&[certificate, key]).unwrap().tls_files.unwrap();
        assert_eq!((files.certificates, files.key), ("/a".into(), "/b".into()));
        let error = config(&[certificate]).unwrap_err().to_string();
        assert_eq!(error, "tls_certificate_file: tls_key_file is required with it");
        assert_eq!(config(&[key]).unwrap_err().setting(), Some("tls_key_file"));
        assert_eq!(config(&[]).unwrap().tls_files, None);
        let hsts =
            |text: &str| config(&[("TRUG_TLS_HSTS_SECONDS", text)]).map(|config| config.hsts);
        assert_eq!(hsts("0").unwrap(), None);
        assert_eq!(hsts("300").unwrap(), Some(Duration::from_secs(300)));
        assert!(hsts("9000000000").is_err());
    }

    #[test]
    fn dashboard_hosts_are_host_names_only() {
        let config = |text| variables(&[("TRUG_DASHBOARD_HOSTS", text)]).and_then(Config::new);
        let found = config("Files.internal, nas").unwrap().dashboard_hosts;
        assert_eq!(found, ["files.internal", "nas"]);
        for bad in ["http://nas", "nas:8080", "nas/", "a@nas", "n as"] {
            let error = config(bad).unwrap_err().to_string();
            assert!(error.contains("dashboard_hosts") && error.contains(bad), "{error}");
        }
    }

    #[test]
    fn origins_for_webhooks_are_exact() {
        let config = |text: &str| variables(&[("TRUG_WEBHOOK_ALLOW", text)]).and_then(Config::new);
        let allowed = config("http://127.0.0.1:9000, https://ci.internal").unwrap().webhook_allow;
        assert_eq!(allowed.len(), 2);
        assert_eq!(allowed[1].port(), 443);
        let list = "webhook_allow = [\"http://[::1]:9000\"]";
        let list = Config::new(Layer::from_toml(list, "file").unwrap()).unwrap();
        assert_eq!(list.webhook_allow[0].host(), "::1");
        for bad in ["127.0.0.1:9000", "http://a/hook", "*", "http://*/x", "10.0.0.0/8"] {
            let error = config(bad).unwrap_err().to_string();
            assert!(error.contains("webhook_allow") && error.contains(bad), "{error}");
        }
    }
}
