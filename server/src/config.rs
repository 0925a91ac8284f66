//! What an operator may set: read from a file, the environment and the command line, checked once.
//!
//! A [`Layer`] holds what one of these sources says; the layers are laid over each other and the result becomes a
//! [`Config`], in which every field has a value and every value is allowed.
//! Promises: a field or a variable that is not known is an error that names it, never ignored.
//! Never here: reading files and flags; where the data lies.

mod public_url;

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use engine::{CompactionOptions, ScrubOptions};
use serde::Deserialize;

use crate::address::Network;
use crate::destination::Origin;
use crate::limits;
use crate::roots::ExtraRoots;

pub use self::public_url::PublicUrl;

/// The start of every environment variable that is ours.
pub const VARIABLE_PREFIX: &str = "TRUG_";
/// Variables that the command line reads itself.
const VARIABLES_ELSEWHERE: &[&str] = &["TRUG_CONFIG", "TRUG_DATA", "TRUG_LOG"];

/// Everything that the server is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where the server listens.
    pub listen: SocketAddr,
    /// What stands before `/{bucket}/{key}` in the addresses that the server gives out. Without it: where it listens.
    pub public_url: Option<PublicUrl>,
    /// Largest request body.
    pub body_bytes_max: u64,
    /// Where the premium endpoint listens. None: there is none.
    pub upload_listen: Option<SocketAddr>,
    /// Largest request body on the premium endpoint.
    pub upload_body_bytes_max: u64,
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
}

/// What one source says. Every field is optional.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Layer {
    pub listen: Option<String>,
    pub public_url: Option<String>,
    pub body_bytes_max: Option<u64>,
    pub upload_listen: Option<String>,
    pub upload_body_bytes_max: Option<u64>,
    pub connections_max: Option<usize>,
    pub connections_per_address_max: Option<usize>,
    pub drain_seconds: Option<u64>,
    pub reserve_bytes: Option<u64>,
    pub undelete_window_seconds: Option<u64>,
    pub scrub_days: Option<u64>,
    pub scrub_bytes_per_second_max: Option<u64>,
    pub compaction_bytes_per_second_max: Option<u64>,
    pub plan_rates: Option<bool>,
    pub business_uploads_per_minute: Option<u32>,
    pub failed_authentications_per_minute: Option<u32>,
    pub address_requests_per_second: Option<u32>,
    pub address_requests_burst: Option<u32>,
    pub trusted_networks: Option<Texts>,
    pub dashboard_hosts: Option<Texts>,
    pub fair_use_sweep: Option<bool>,
    pub search_memory_bytes: Option<u64>,
    pub image_memory_bytes: Option<u64>,
    pub variants_bytes_max: Option<u64>,
    pub image_ms_per_second_per_address: Option<u32>,
    pub image_ms_per_second_per_bucket: Option<u32>,
    pub webhook_allow: Option<Texts>,
    pub import_allow: Option<Texts>,
    pub webhook_ca_file: Option<PathBuf>,
}

/// Several texts as a source writes them: a list, or one text with commas, as the environment has only texts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Texts {
    List(Vec<String>),
    Text(String),
}

/// A setting that cannot be used: where it stands and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError(String);

impl Layer {
    /// Reads a configuration file; `source` is what the file is called in an error.
    pub fn from_toml(text: &str, source: &str) -> Result<Self, ConfigError> {
        toml::from_str(text).map_err(|error| ConfigError(format!("{source}: {error}")))
    }

    /// Reads the environment: `TRUG_LISTEN` is `listen`, and so on. Other variables are left alone.
    pub fn from_variables(
        variables: impl Iterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let mut table = toml::Table::new();
        for (name, value) in variables {
            let is_ours = !VARIABLES_ELSEWHERE.contains(&name.as_str());
            if let Some(field) = name.strip_prefix(VARIABLE_PREFIX).filter(|_| is_ours) {
                let number = value.parse().map(toml::Value::Integer);
                let word = value.parse().map(toml::Value::Boolean);
                let value = number.or(word).unwrap_or(toml::Value::String(value));
                table.insert(field.to_ascii_lowercase(), value);
            }
        }
        table.try_into().map_err(|error: toml::de::Error| {
            let message = error.message();
            ConfigError(format!(
                "environment ({VARIABLE_PREFIX} and the field in capitals): {message}"
            ))
        })
    }

    /// This layer, and below it what `lower` says where this one is silent.
    #[must_use]
    pub fn over(self, lower: Self) -> Self {
        Self {
            listen: self.listen.or(lower.listen),
            public_url: self.public_url.or(lower.public_url),
            body_bytes_max: self.body_bytes_max.or(lower.body_bytes_max),
            upload_listen: self.upload_listen.or(lower.upload_listen),
            upload_body_bytes_max: self.upload_body_bytes_max.or(lower.upload_body_bytes_max),
            connections_max: self.connections_max.or(lower.connections_max),
            connections_per_address_max: self
                .connections_per_address_max
                .or(lower.connections_per_address_max),
            drain_seconds: self.drain_seconds.or(lower.drain_seconds),
            reserve_bytes: self.reserve_bytes.or(lower.reserve_bytes),
            undelete_window_seconds: self.undelete_window_seconds.or(lower.undelete_window_seconds),
            scrub_days: self.scrub_days.or(lower.scrub_days),
            scrub_bytes_per_second_max: self
                .scrub_bytes_per_second_max
                .or(lower.scrub_bytes_per_second_max),
            compaction_bytes_per_second_max: self
                .compaction_bytes_per_second_max
                .or(lower.compaction_bytes_per_second_max),
            plan_rates: self.plan_rates.or(lower.plan_rates),
            business_uploads_per_minute: self
                .business_uploads_per_minute
                .or(lower.business_uploads_per_minute),
            failed_authentications_per_minute: self
                .failed_authentications_per_minute
                .or(lower.failed_authentications_per_minute),
            address_requests_per_second: self
                .address_requests_per_second
                .or(lower.address_requests_per_second),
            address_requests_burst: self.address_requests_burst.or(lower.address_requests_burst),
            trusted_networks: self.trusted_networks.or(lower.trusted_networks),
            dashboard_hosts: self.dashboard_hosts.or(lower.dashboard_hosts),
            fair_use_sweep: self.fair_use_sweep.or(lower.fair_use_sweep),
            search_memory_bytes: self.search_memory_bytes.or(lower.search_memory_bytes),
            image_memory_bytes: self.image_memory_bytes.or(lower.image_memory_bytes),
            variants_bytes_max: self.variants_bytes_max.or(lower.variants_bytes_max),
            image_ms_per_second_per_address: self
                .image_ms_per_second_per_address
                .or(lower.image_ms_per_second_per_address),
            image_ms_per_second_per_bucket: self
                .image_ms_per_second_per_bucket
                .or(lower.image_ms_per_second_per_bucket),
            webhook_allow: self.webhook_allow.or(lower.webhook_allow),
            import_allow: self.import_allow.or(lower.import_allow),
            webhook_ca_file: self.webhook_ca_file.or(lower.webhook_ca_file),
        }
    }
}

impl Texts {
    fn each<T>(
        &self,
        read: impl Fn(&str) -> Result<T, ConfigError>,
    ) -> Result<Vec<T>, ConfigError> {
        let texts: Vec<&str> = match self {
            Self::List(texts) => texts.iter().map(String::as_str).collect(),
            Self::Text(text) => text.split(',').collect(),
        };
        let texts = texts.into_iter().map(str::trim).filter(|text| !text.is_empty());
        texts.map(read).collect()
    }
}

impl Config {
    /// Checks what the layers say; what none of them says has its default.
    pub fn new(layer: Layer) -> Result<Self, ConfigError> {
        let default = Self::default();
        let listen = match layer.listen {
            Some(text) => address("listen", &text)?,
            None => default.listen,
        };
        let public_url = match layer.public_url {
            Some(text) => Some(PublicUrl::parse(&text)?),
            None => None,
        };
        Ok(Self {
            listen,
            public_url,
            body_bytes_max: within(
                "body_bytes_max",
                layer.body_bytes_max,
                default.body_bytes_max,
                limits::CONFIGURED_BODY_BYTES_MAX,
            )?,
            upload_listen: match layer.upload_listen {
                Some(text) => Some(address("upload_listen", &text)?),
                None => None,
            },
            upload_body_bytes_max: within(
                "upload_body_bytes_max",
                layer.upload_body_bytes_max,
                default.upload_body_bytes_max,
                engine::limits::OBJECT_BYTES_MAX,
            )?,
            connections_max: within(
                "connections_max",
                layer.connections_max,
                default.connections_max,
                1_000_000,
            )?,
            connections_per_address_max: within(
                "connections_per_address_max",
                layer.connections_per_address_max,
                default.connections_per_address_max,
                1_000_000,
            )?,
            drain: layer.drain_seconds.map_or(default.drain, Duration::from_secs),
            reserve_bytes: layer.reserve_bytes,
            undelete_window: undelete_window(layer.undelete_window_seconds)?,
            scrub: scrub(layer.scrub_days, layer.scrub_bytes_per_second_max)?,
            compaction: layer
                .compaction_bytes_per_second_max
                .map_or(default.compaction, compaction),
            plan_rates: layer.plan_rates.unwrap_or(default.plan_rates),
            business_uploads_per_minute: within(
                "business_uploads_per_minute",
                layer.business_uploads_per_minute,
                default.business_uploads_per_minute,
                limits::CONFIGURED_RATE_MAX,
            )?,
            failed_authentications_per_minute: rate(
                "failed_authentications_per_minute",
                layer.failed_authentications_per_minute,
                default.failed_authentications_per_minute,
            )?,
            address_requests_per_second: rate(
                "address_requests_per_second",
                layer.address_requests_per_second,
                default.address_requests_per_second,
            )?,
            address_requests_burst: rate(
                "address_requests_burst",
                layer.address_requests_burst,
                default.address_requests_burst,
            )?,
            trusted_networks: layer.trusted_networks.map_or(Ok(Vec::new()), networks)?,
            dashboard_hosts: layer.dashboard_hosts.map_or(Ok(Vec::new()), hosts)?,
            fair_use_sweep: layer.fair_use_sweep.unwrap_or(default.fair_use_sweep),
            search_memory_bytes: layer.search_memory_bytes.unwrap_or(default.search_memory_bytes),
            image_memory_bytes: layer.image_memory_bytes,
            variants_bytes_max: layer.variants_bytes_max.unwrap_or(default.variants_bytes_max),
            image_ms_per_second_per_address: rate(
                "image_ms_per_second_per_address",
                layer.image_ms_per_second_per_address,
                default.image_ms_per_second_per_address,
            )?,
            image_ms_per_second_per_bucket: rate(
                "image_ms_per_second_per_bucket",
                layer.image_ms_per_second_per_bucket,
                default.image_ms_per_second_per_bucket,
            )?,
            webhook_allow: origins("webhook_allow", layer.webhook_allow)?,
            import_allow: origins("import_allow", layer.import_allow)?,
            webhook_ca_file: layer.webhook_ca_file,
            webhook_roots: ExtraRoots::default(),
        })
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            public_url: None,
            body_bytes_max: limits::BODY_BYTES_MAX,
            upload_listen: None,
            upload_body_bytes_max: limits::UPLOAD_BODY_BYTES_MAX,
            connections_max: limits::CONNECTIONS_MAX,
            connections_per_address_max: limits::CONNECTIONS_PER_ADDRESS_MAX,
            drain: limits::DRAIN_WAIT,
            reserve_bytes: None,
            undelete_window: limits::UNDELETE_WINDOW,
            scrub: Some(ScrubOptions::default()),
            compaction: compaction(engine::limits::COMPACTION_BYTES_PER_SECOND),
            plan_rates: true,
            business_uploads_per_minute: limits::UPLOADS_PER_MINUTE_BUSINESS,
            failed_authentications_per_minute: limits::FAILED_AUTHENTICATIONS_PER_MINUTE,
            address_requests_per_second: limits::ADDRESS_REQUESTS_PER_SECOND,
            address_requests_burst: limits::ADDRESS_REQUESTS_BURST,
            trusted_networks: Vec::new(),
            dashboard_hosts: Vec::new(),
            fair_use_sweep: false,
            search_memory_bytes: engine::limits::SEARCH_NAMES_BYTES_MAX,
            image_memory_bytes: None,
            variants_bytes_max: limits::VARIANTS_BYTES_MAX,
            image_ms_per_second_per_address: limits::IMAGE_MS_PER_SECOND_PER_ADDRESS,
            image_ms_per_second_per_bucket: limits::IMAGE_MS_PER_SECOND_PER_BUCKET,
            webhook_allow: Vec::new(),
            import_allow: Vec::new(),
            webhook_ca_file: None,
            webhook_roots: ExtraRoots::default(),
        }
    }
}

fn address(name: &str, text: &str) -> Result<SocketAddr, ConfigError> {
    text.parse()
        .map_err(|_| ConfigError(format!("{name}: {text:?} is not an address like 127.0.0.1:8080")))
}

/// 0 is none.
fn compaction(bytes_per_second_max: u64) -> Option<CompactionOptions> {
    let look_ms = engine::limits::COMPACTION_LOOK_MS;
    (bytes_per_second_max > 0).then_some(CompactionOptions { bytes_per_second_max, look_ms })
}

/// 0 is none.
fn undelete_window(seconds: Option<u64>) -> Result<Duration, ConfigError> {
    let most = limits::UNDELETE_WINDOW_MAX.as_secs();
    let default = limits::UNDELETE_WINDOW.as_secs();
    match seconds {
        Some(0) => Ok(Duration::ZERO),
        given => Ok(Duration::from_secs(within("undelete_window_seconds", given, default, most)?)),
    }
}

/// Zero days: nothing is scrubbed.
fn scrub(days: Option<u64>, rate: Option<u64>) -> Result<Option<ScrubOptions>, ConfigError> {
    let default = ScrubOptions::default();
    let name = "scrub_bytes_per_second_max";
    let bytes_per_second_max = within(name, rate, default.bytes_per_second_max, 1 << 40)?;
    let period = match days.filter(|days| *days > 0) {
        None => default.period,
        given => Duration::from_secs(within("scrub_days", given, 1, 3_650)? * 24 * 60 * 60),
    };
    Ok((days != Some(0)).then_some(ScrubOptions { period, bytes_per_second_max }))
}

/// 0 is none.
fn rate(name: &str, given: Option<u32>, default: u32) -> Result<u32, ConfigError> {
    if given == Some(0) { Ok(0) } else { within(name, given, default, limits::CONFIGURED_RATE_MAX) }
}

fn networks(texts: Texts) -> Result<Vec<Network>, ConfigError> {
    texts.each(|text| {
        let why = format!("trusted_networks: {text:?} is not a network like 10.0.0.0/8");
        Network::parse(text).ok_or(ConfigError(why))
    })
}

fn hosts(texts: Texts) -> Result<Vec<String>, ConfigError> {
    let hosts = texts.each(|text| match text.parse::<http::uri::Authority>() {
        Ok(host) if host.host() == text => Ok(text.to_ascii_lowercase()),
        _ => Err(ConfigError(format!("dashboard_hosts: {text:?} is no host like files.internal"))),
    })?;
    match hosts.len() {
        0..=limits::DASHBOARD_HOSTS_MAX => Ok(hosts),
        more => Err(ConfigError(format!("dashboard_hosts: {more} hosts are too many"))),
    }
}

fn origins(name: &str, texts: Option<Texts>) -> Result<Vec<Origin>, ConfigError> {
    let Some(texts) = texts else { return Ok(Vec::new()) };
    texts.each(|text| {
        let refuse = |why| {
            let example = "http://127.0.0.1:9000";
            ConfigError(format!("{name}: {text:?} is no origin like {example}: it {why}"))
        };
        Origin::parse(text).map_err(refuse)
    })
}

fn within<N>(name: &str, given: Option<N>, default: N, max: N) -> Result<N, ConfigError>
where
    N: PartialOrd + From<u8> + fmt::Display,
{
    match given {
        None => Ok(default),
        Some(number) if number >= N::from(1) && number <= max => Ok(number),
        Some(number) => Err(ConfigError(format!("{name}: {number} is not between 1 and {max}"))),
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
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
    fn what_is_not_known_is_named() {
        let error = Layer::from_toml("listn = \"x\"", "trug.toml").unwrap_err().to_string();
        assert!(error.contains("trug.toml") && error.contains("listn"), "{error}");
        let error = variables(&[("TRUG_LISTN", "x")]).unwrap_err().to_string();
        assert!(error.contains("listn"), "{error}");
    }

    #[test]
    fn values_that_make_no_sense_are_refused() {
        for (field, value) in [
            ("TRUG_LISTEN", "8080"),
            ("TRUG_UPLOAD_LISTEN", "8081"),
            ("TRUG_UPLOAD_BODY_BYTES_MAX", "0"),
            ("TRUG_PUBLIC_URL", "cdn.example.com"),
            ("TRUG_PUBLIC_URL", "ftp://cdn.example.com"),
            ("TRUG_PUBLIC_URL", "https://cdn.example.com/?a=b"),
            ("TRUG_PUBLIC_URL", "https://user@cdn.example.com/"),
            ("TRUG_BODY_BYTES_MAX", "0"),
            ("TRUG_CONNECTIONS_MAX", "many"),
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
        let config = |pairs| variables(pairs).and_then(Config::new);
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
        let error = config(&[("TRUG_TRUSTED_NETWORKS", "10.0.0.0/33")]).unwrap_err().to_string();
        assert!(error.contains("10.0.0.0/33"), "{error}");
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
