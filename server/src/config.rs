//! What an operator may set: read from a file, the environment and the command line, checked once.
//!
//! ```text
//! settings   every setting, said once
//! acme       what they say of certificates that the server gets itself
//! otlp       what they say of traces
//! kind       how values are read and written
//! sources    where they come from, and who stands over whom
//! secret     what is used and never shown
//! ```
//!
//! A [`Layer`] holds what one source says, [`Sources`] what all of them say, a [`Config`] what is so, every value of it
//! allowed. Never here: reading files and flags; where the data lies.

mod acme;
mod kind;
mod otlp;
mod public_url;
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

use engine::{CompactionOptions, ScrubOptions};

use self::kind::Written;
use self::secret::Hidden;
use crate::address::Network;
use crate::destination::Origin;
use crate::limits;
use crate::roots::ExtraRoots;
use crate::tls::Identity;

pub use self::acme::AcmeSettings;
pub use self::kind::Texts;
pub use self::otlp::{OtlpSettings, Ratio};
pub use self::public_url::PublicUrl;
pub use self::secret::Secret;
pub use self::settings::{Layer, Setting, SettingChange, SettingDefault, settings};
pub use self::sources::{InForce, Reloaded, Running, Sources, VARIABLE_PREFIX};
pub use self::units::{SIZE_UNITS, parse_bytes, parse_seconds};
pub use crate::destination::Scheme;

/// Everything that the server is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Every setting with its value and source, for operators to look at; empty without sources.
    pub in_force: Vec<InForce>,
    /// Where the server listens.
    pub listen: SocketAddr,
    /// What stands before `/{bucket}/{key}` in the addresses that the server gives out. Without it: where it listens.
    pub public_url: Option<PublicUrl>,
    /// Where certificates and their key lie, in PEM, with which the server speaks TLS. Whoever reads them puts them
    /// into `tls`.
    pub tls_files: Option<TlsFiles>,
    /// This pair.
    pub tls: Option<Identity>,
    /// The names that the server gets certificates for itself. None: for none.
    pub acme: Option<AcmeSettings>,
    /// How long browsers are told to use TLS alone. None: they are not.
    pub hsts: Option<Duration>,
    /// Largest request body.
    pub body_bytes_max: u64,
    /// Where the premium endpoint listens. None: there is none.
    pub upload_listen: Option<SocketAddr>,
    /// Largest request body on the premium endpoint.
    pub upload_body_bytes_max: u64,
    /// Where it listens for whoever watches over it. None: nowhere.
    pub admin_listen: Option<SocketAddr>,
    /// What opens the metrics elsewhere. None: nothing does.
    pub metrics_token: Option<Secret>,
    /// Where that lies. [`Config::take_secrets`] takes it from there.
    pub metrics_token_file: Option<PathBuf>,
    /// Connections at once.
    pub connections_max: usize,
    /// Connections at once from one address.
    pub connections_per_address_max: usize,
    /// How long requests in flight get when the server stops.
    pub drain: Duration,
    /// Bytes of the disk that uploads may not take. Without it: what the store needs to go on deleting.
    pub reserve_bytes: Option<u64>,
    /// How long large files that are deleted or replaced can come back for sure, while there is room.
    pub undelete_window: Duration,
    /// How everything stored is read and checked, again and again. None: it is not.
    pub scrub: Option<ScrubOptions>,
    /// How the store gives back the space of what is dead. None: only when it is asked to.
    pub compaction: Option<CompactionOptions>,
    /// Whether accounts are held to the rates of their plans.
    pub plan_rates: bool,
    /// Uploads of an account of the plan Business in a minute.
    pub business_uploads_per_minute: u32,
    /// Wrong API keys that one address may present in a minute. 0: any number.
    pub failed_authentications_per_minute: u32,
    /// Requests of one address in a second. 0: any number.
    pub address_requests_per_second: u32,
    /// Requests of one address at once, after a pause. 0: any number.
    pub address_requests_burst: u32,
    /// To addresses in these, as to the machine itself, no bound for addresses applies.
    pub trusted_networks: Vec<Network>,
    /// Proxies in these are believed from whom a request comes.
    pub trusted_proxies: Vec<Network>,
    /// Hosts beside that of the public address under which people open the dashboard, in lower case.
    pub dashboard_hosts: Vec<String>,
    /// Whether the server looks once a day which accounts break fair use.
    pub fair_use_sweep: bool,
    /// Bytes of memory that the names of searched buckets may take. 0: none are kept.
    pub search_memory_bytes: u64,
    /// Bytes of memory that all work on pictures at once may take. Without it: a quarter of the machine's.
    pub image_memory_bytes: Option<u64>,
    /// Bytes that variants of pictures may take in the store. 0: none are kept.
    pub variants_bytes_max: u64,
    /// Milliseconds of a processor, for each second, that pictures may take that one address has made. 0: any number.
    pub image_ms_per_second_per_address: u32,
    /// The same for all pictures that are made of files of one bucket.
    pub image_ms_per_second_per_bucket: u32,
    /// Origins of private networks that webhooks may be sent to.
    pub webhook_allow: Vec<Origin>,
    /// Origins of private networks that files may be imported from.
    pub import_allow: Vec<Origin>,
    /// Where authorities lie, in PEM, that webhooks are sent to beside Mozilla's. Whoever reads it puts them into
    /// `webhook_roots`.
    pub webhook_ca_file: Option<PathBuf>,
    /// These authorities.
    pub webhook_roots: ExtraRoots,
    /// Where it is told what requests take their time for. None: nowhere.
    pub otlp: Option<OtlpSettings>,
}

/// The files of a certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    pub certificates: PathBuf,
    pub key: PathBuf,
}

/// A setting that cannot be used: where it stands and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    source: Option<String>,
    setting: Option<&'static str>,
    why: String,
}

impl Config {
    /// Checks what a source says; where it is silent the defaults hold.
    pub fn new(layer: Layer) -> Result<Self, ConfigError> {
        Self::checked(layer.over(Layer::defaults()))
    }

    /// Checks what all sources say together.
    fn checked(layer: Layer) -> Result<Self, ConfigError> {
        let numbers = 1..=1_000_000;
        let rates = 0..=limits::CONFIGURED_RATE_MAX;
        let asked = acme::Asked {
            domains: layer.acme_domains,
            contacts: layer.acme_contact,
            directory: layer.acme_directory,
            ca_file: layer.acme_ca_file,
        };
        let acme = asked.checked()?;
        if acme.is_some() && layer.tls_certificate_file.is_some() {
            let why = "acme_domains is set too: use certificate files or ACME, not both";
            return Err(ConfigError::of("tls_certificate_file", why));
        }
        let mut config = Self {
            in_force: Vec::new(),
            listen: needed("listen", address("listen", layer.listen)?)?,
            public_url: layer.public_url.as_deref().map(PublicUrl::parse).transpose()?,
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
            drain: seconds("drain_seconds", layer.drain_seconds, limits::DRAIN_WAIT_MAX)?,
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
            webhook_roots: ExtraRoots::default(),
            otlp: otlp::otlp(
                layer.otlp_endpoint,
                layer.otlp_sample_ratio,
                layer.otlp_service_name,
            )?,
        };
        config.hidden().iter().try_for_each(Hidden::check)?;
        Ok(config)
    }

    /// Takes the secrets that lie in files of their own from there. `read` gives what is in a file.
    pub fn take_secrets(
        &mut self,
        read: &dyn Fn(&Path) -> io::Result<String>,
    ) -> Result<(), ConfigError> {
        self.hidden().into_iter().try_for_each(|hidden| hidden.take(read))
    }

    /// Every setting that is a secret.
    fn hidden(&mut self) -> [Hidden<'_>; 1] {
        [Hidden {
            setting: "metrics_token",
            secret: &mut self.metrics_token,
            file_setting: "metrics_token_file",
            file: &self.metrics_token_file,
        }]
    }
}

impl Config {
    /// What is spoken where it listens.
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

/// What has a default has a value.
fn needed<T>(name: &'static str, given: Option<T>) -> Result<T, ConfigError> {
    given.ok_or_else(|| ConfigError::of(name, "it is required"))
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
    Err(ConfigError::of(name, format!("{number} is out of range: {least} to {most}")))
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
    text.parse().map(Some).map_err(|_| ConfigError::of(name, why()))
}

/// Both or neither.
fn tls_files(
    certificates: Option<PathBuf>,
    key: Option<PathBuf>,
) -> Result<Option<TlsFiles>, ConfigError> {
    let missing = |setting, other| ConfigError::of(setting, format!("{other} is required with it"));
    match (certificates, key) {
        (Some(certificates), Some(key)) => Ok(Some(TlsFiles { certificates, key })),
        (None, None) => Ok(None),
        (Some(_), None) => Err(missing("tls_certificate_file", "tls_key_file")),
        (None, Some(_)) => Err(missing("tls_key_file", "tls_certificate_file")),
    }
}

/// 0 is none.
fn compaction(bytes_per_second_max: u64) -> Option<CompactionOptions> {
    let look_ms = engine::limits::COMPACTION_LOOK_MS;
    (bytes_per_second_max > 0).then_some(CompactionOptions { bytes_per_second_max, look_ms })
}

/// Zero days: nothing is scrubbed.
fn scrub(days: Option<u64>, rate: Option<u64>) -> Result<Option<ScrubOptions>, ConfigError> {
    let bytes_per_second_max = within("scrub_bytes_per_second_max", rate, 1..=1 << 40)?;
    let days = within("scrub_days", days, 0..=3_650)?;
    let period = Duration::from_secs(days * 24 * 60 * 60);
    Ok((days > 0).then_some(ScrubOptions { period, bytes_per_second_max }))
}

fn networks(name: &'static str, texts: Option<Texts>) -> Result<Vec<Network>, ConfigError> {
    let read = |text: &String| {
        let why = format!("{text:?} is not a network such as 10.0.0.0/8");
        Network::parse(text).ok_or(ConfigError::of(name, why))
    };
    texts.unwrap_or_default().0.iter().map(read).collect()
}

fn hosts(texts: Option<Texts>) -> Result<Vec<String>, ConfigError> {
    let refuse = |why| ConfigError::of("dashboard_hosts", why);
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

fn origins(name: &'static str, texts: Option<Texts>) -> Result<Vec<Origin>, ConfigError> {
    let read = |text: &String| {
        let refuse = |why| {
            let example = "http://127.0.0.1:9000";
            ConfigError::of(name, format!("{text:?} is not an origin such as {example}: it {why}"))
        };
        Origin::parse(text).map_err(refuse)
    };
    texts.unwrap_or_default().0.iter().map(read).collect()
}

impl ConfigError {
    /// What is wrong with no setting in particular.
    fn new(why: impl Into<String>) -> Self {
        Self { source: None, setting: None, why: why.into() }
    }

    /// What is wrong with a setting.
    pub(crate) fn of(setting: &'static str, why: impl Into<String>) -> Self {
        Self { source: None, setting: Some(setting), why: why.into() }
    }

    /// The setting that cannot be used, if it is one that is known.
    pub fn setting(&self) -> Option<&'static str> {
        self.setting
    }

    /// The same, of what stands there.
    #[must_use]
    pub fn in_source(self, source: &str) -> Self {
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
        Layer::from_variables(owned.collect::<Vec<_>>().into_iter())
    }

    #[test]
    fn the_upper_layer_wins_and_silence_means_the_default() {
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
    fn values_that_make_no_sense_are_refused() {
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
    fn a_scrub_takes_so_many_days_and_none_at_all_when_they_are_zero() {
        let scrub = |pairs| variables(pairs).and_then(Config::new).map(|config| config.scrub);
        let week = scrub(&[("TRUG_SCRUB_DAYS", "7")]).unwrap().unwrap();
        assert_eq!(week.period, Duration::from_secs(7 * 86_400));
        assert_eq!(scrub(&[("TRUG_SCRUB_DAYS", "0")]).unwrap(), None);
        assert!(scrub(&[("TRUG_SCRUB_DAYS", "4000")]).is_err());
        assert!(scrub(&[("TRUG_SCRUB_BYTES_PER_SECOND_MAX", "0")]).is_err());
    }

    #[test]
    fn rates_may_be_none_and_networks_are_a_list_or_a_text() {
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
    fn a_certificate_and_its_key_go_together() {
        let config = |pairs: &[(&str, &str)]| variables(pairs).and_then(Config::new);
        let certificate = ("TRUG_TLS_CERTIFICATE_FILE", "/a");
        let key = ("TRUG_TLS_KEY_FILE", "/b");
        let files = config(&[certificate, key]).unwrap().tls_files.unwrap();
        assert_eq!((files.certificates, files.key), ("/a".into(), "/b".into()));
        let error = config(&[certificate]).unwrap_err().to_string();
        assert_eq!(error, "tls_certificate_file: tls_key_file goes with it");
        assert_eq!(config(&[key]).unwrap_err().setting(), Some("tls_key_file"));
        assert_eq!(config(&[]).unwrap().tls_files, None);
        let hsts =
            |text: &str| config(&[("TRUG_TLS_HSTS_SECONDS", text)]).map(|config| config.hsts);
        assert_eq!(hsts("0").unwrap(), None);
        assert_eq!(hsts("300").unwrap(), Some(Duration::from_secs(300)));
        assert!(hsts("9000000000").is_err());
    }

    #[test]
    fn hosts_of_the_dashboard_are_names_alone() {
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
