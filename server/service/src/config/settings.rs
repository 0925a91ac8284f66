//! All settings: name, type, default, description, and whether a reload applies changes (`=> reload`).
//!
//! The documentation, `trug config` and the reading of files and variables are generated from this list. Non-goals:
//! which values are valid, which [`Config`](super::Config) checks.

use std::path::PathBuf;

use engine::replication::RemoteAck;

use super::kind::{SettingValue, StringList};
use super::otlp::Ratio;
use super::secret::Secret;
use super::{ConfigError, RawValue};
use crate::limits;

/// Documentation of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Name in a file; in the environment in capitals with the prefix `TRUG_`.
    pub name: &'static str,
    /// Description, as Markdown.
    pub description: String,
    pub default: SettingDefault,
    /// Effect of changes.
    pub change: SettingChange,
}

/// Effect of changes of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingChange {
    /// By SIGHUP.
    Reload,
    /// By a restart.
    Restart,
}

impl SettingChange {
    /// Interprets the marks behind a default.
    fn from_marks(marks: &[&str]) -> Self {
        if marks.is_empty() { Self::Restart } else { Self::Reload }
    }

    /// Returns the name in the documentation.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reload => "reload",
            Self::Restart => "restart",
        }
    }
}

/// Default of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingDefault {
    /// A value, as TOML.
    Value(String),
    /// A description of a value that depends on the machine or other settings.
    Description(&'static str),
}

/// Default of a setting, typed.
enum DefaultValue<T> {
    Value(T),
    Description(&'static str),
}

impl<T: SettingValue> DefaultValue<T> {
    fn value(self) -> Option<T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Description(_) => None,
        }
    }

    fn documented(self) -> SettingDefault {
        match self {
            Self::Value(value) => SettingDefault::Value(value.to_toml()),
            Self::Description(words) => SettingDefault::Description(words),
        }
    }
}

macro_rules! settings {
    ($($(#[doc = $about:literal])+ $name:ident: $kind:ty = $default:expr $(=> $change:ident)?,)+) => {
        /// Settings of one source. All fields are optional.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Layer {
            $($(#[doc = $about])+ pub $name: Option<$kind>,)+
        }

        /// Returns all settings in the order of the documentation.
        pub fn settings() -> Vec<Setting> {
            vec![$(Setting {
                name: stringify!($name),
                description: [$($about),+].map(str::trim).join(" "),
                default: DefaultValue::<$kind>::documented($default),
                change: SettingChange::from_marks(&[$(stringify!($change))?]),
            }),+]
        }

        impl Layer {
            /// Returns the defaults.
            pub fn defaults() -> Self {
                Self { $($name: DefaultValue::<$kind>::value($default)),+ }
            }

            /// Returns this layer, with missing settings taken from `lower`.
            #[must_use]
            pub fn over(self, lower: Self) -> Self {
                Self { $($name: self.$name.or(lower.$name)),+ }
            }

            /// Returns the settings in force after a reload: those of `new` that a reload applies.
            pub(super) fn changed_to(self, new: Self) -> Self {
                Self {
                    $($name: match SettingChange::from_marks(&[$(stringify!($change))?]) {
                        SettingChange::Reload => new.$name,
                        SettingChange::Restart => self.$name,
                    }),+
                }
            }

            /// Returns the settings of this layer, as TOML.
            pub fn said(&self) -> Vec<(&'static str, String)> {
                let mut said = Vec::new();
                $(said.extend(self.$name.as_ref().map(|it| (stringify!($name), it.to_toml())));)+
                said
            }

            /// Sets a setting. Returns `None` if there is no setting of this name.
            pub(super) fn set(
                &mut self,
                name: &str,
                written: RawValue<'_>,
            ) -> Option<Result<(), ConfigError>> {
                match name {
                    $(stringify!($name) => Some(SettingValue::read(stringify!($name), written).map_or_else(
                        |why| Err(ConfigError::for_setting(stringify!($name), why)),
                        |value| {
                            self.$name = Some(value);
                            Ok(())
                        },
                    )),)+
                    _ => None,
                }
            }
        }
    };
}

use DefaultValue::{Description, Value};

settings! {
    /// Listen address and port; port 0 picks a free port.
    listen: String = Value("127.0.0.1:8080".to_owned()),
    /// Base URL of generated links, `http` or `https`.
    public_url: String = Description("the listen address"),
    /// TLS certificate chain (PEM), leaf first. Read again when the file changes, and on SIGHUP.
    tls_certificate_file: PathBuf = Description("none") => reload,
    /// Private key of the TLS certificate (PEM). It should be readable by the server only.
    tls_key_file: PathBuf = Description("none") => reload,
    /// Host names, such as `cdn.example.com`, that TLS certificates are obtained for by ACME, as a list or separated by
    /// commas. Setting this accepts the terms of service of the certificate authority. Cannot be combined with
    /// `tls_certificate_file`. Requires the `acme` build feature.
    acme_domains: StringList = Value(StringList::default()),
    /// Mail addresses for notices of the certificate authority, as a list or separated by commas.
    acme_contact: StringList = Value(StringList::default()),
    /// URL of the ACME directory of the certificate authority.
    acme_directory: String = Value(listener::acme::limits::DIRECTORY.to_owned()),
    /// Root certificates (PEM) trusted for connections to the ACME directory, in addition to Mozilla's.
    acme_ca_file: PathBuf = Description("none"),
    /// `max-age` in seconds of the `Strict-Transport-Security` header of dashboard and API responses over TLS. Browsers
    /// then use only HTTPS for this host, on all ports. 0: the header is not sent.
    tls_hsts_seconds: u64 = Value(0) => reload,
    /// Maximum request body size in bytes on `listen`.
    body_bytes_max: u64 = Value(limits::BODY_BYTES_MAX) => reload,
    /// Listen address and port of the premium endpoint: large uploads by accounts on the plans Pro and Business.
    upload_listen: String = Description("none"),
    /// Maximum request body size on the premium endpoint in bytes.
    upload_body_bytes_max: u64 = Value(limits::UPLOAD_BODY_BYTES_MAX) => reload,
    /// Listen address and port for `/-/metrics`, `/-/health` and `/-/ready` without a token. Use an address that only
    /// this machine or your own network reaches.
    admin_listen: String = Description("none"),
    /// Bearer token for `/-/metrics` on `listen` and `upload_listen`, at least 16 characters. Prefer
    /// `metrics_token_file`: other processes of the user can read the environment.
    metrics_token: Secret = Description("none"),
    /// File with the token for `/-/metrics` on `listen` and `upload_listen`.
    metrics_token_file: PathBuf = Description("none"),
    /// OTLP/HTTP collector for traces, such as `http://127.0.0.1:4318`. Requires the `otel` build feature.
    otlp_endpoint: String = Description("none"),
    /// Fraction of traces to sample, from 0 to 1. Requires the `otel` build feature.
    otlp_sample_ratio: Ratio = Value(Ratio::ONE),
    /// Service name in traces. Requires the `otel` build feature.
    otlp_service_name: String = Value("trug".to_owned()),
    /// Maximum number of connections per listen address.
    connections_max: usize = Value(listener::limits::CONNECTIONS_MAX),
    /// Maximum number of connections per client address and listen address.
    connections_per_address_max: usize = Value(listener::limits::CONNECTIONS_PER_ADDRESS_MAX),
    /// Maximum copy rate of background compaction in bytes per second. 0: compaction runs on request only.
    compaction_bytes_per_second_max: u64 = Value(engine::limits::COMPACTION_BYTES_PER_SECOND),
    /// Period in days of background verification (scrub): all stored data is verified once per period. 0: off.
    scrub_days: u64 = Value(engine::limits::SCRUB_PERIOD_SECONDS / 86_400),
    /// Maximum read rate of background verification in bytes per second.
    scrub_bytes_per_second_max: u64 = Value(engine::limits::SCRUB_BYTES_PER_SECOND_MAX),
    /// Whether the rate limits of plans apply to accounts.
    plan_rates: bool = Value(true) => reload,
    /// Maximum uploads per minute of an account on the plan Business.
    business_uploads_per_minute: u32 = Value(limits::UPLOADS_PER_MINUTE_BUSINESS) => reload,
    /// Maximum requests with an invalid API key per minute and client address (IPv6: /64). 0: no limit.
    failed_authentications_per_minute: u32 = Value(limits::FAILED_AUTHENTICATIONS_PER_MINUTE) => reload,
    /// Maximum requests per second of a client address (IPv6: of a /64 network). 0: no limit.
    address_requests_per_second: u32 = Value(limits::ADDRESS_REQUESTS_PER_SECOND) => reload,
    /// Burst size, in requests, of `address_requests_per_second`.
    address_requests_burst: u32 = Value(limits::ADDRESS_REQUESTS_BURST) => reload,
    /// Networks, such as `10.0.0.0/8`, that are exempt from limits per client address, as a list or separated by
    /// commas. Loopback addresses are always exempt.
    trusted_networks: StringList = Value(StringList::default()) => reload,
    /// Networks of reverse proxies whose `X-Forwarded-For` is trusted, as a list or separated by commas. The connection
    /// limit per address does not apply to the proxies.
    trusted_proxies: StringList = Value(StringList::default()) => reload,
    /// Host names of the dashboard in addition to that of `public_url`, such as `files.internal`, as a list or
    /// separated by commas. IP addresses and `localhost` are always allowed.
    dashboard_hosts: StringList = Value(StringList::default()) => reload,
    /// Maximum lifetime of shared links in days, at most 3650, for new links and changed expiry times. 0: no maximum.
    link_days_max: u64 = Value(0) => reload,
    /// Whether the fair-use policy is applied to accounts on the plan Free at the start and once a day.
    fair_use_sweep: bool = Value(false),
    /// Private origins that webhooks may reach, such as `http://127.0.0.1:9000`, as a list or separated by commas.
    webhook_allow: StringList = Value(StringList::default()) => reload,
    /// Private origins that import jobs may read from, such as `http://127.0.0.1:9000`, as a list or separated by
    /// commas. Any client with upload permission can read from these origins.
    import_allow: StringList = Value(StringList::default()) => reload,
    /// Root certificates (PEM) trusted for webhooks and import jobs, in addition to Mozilla's.
    webhook_ca_file: PathBuf = Description("none"),
    /// Memory limit of the name cache for searches, in bytes: about 50 bytes per name, so ten million names need about
    /// 500000000. The least recently searched buckets are evicted. A bucket that does not fit is searched in the index,
    /// up to its first 4,000,000 names. 0: no cache.
    search_memory_bytes: u64 = Value(search::limits::NAME_CACHE_BYTES_MAX),
    /// Memory for all image processing in bytes.
    image_memory_bytes: u64 = Description("a quarter of physical memory"),
    /// Maximum size of the cache of image variants and compressed files in bytes. The least recently used ones are
    /// evicted. 0: nothing is cached.
    variants_bytes_max: u64 = Value(limits::VARIANTS_BYTES_MAX),
    /// CPU time for images requested by a client address (IPv6: a /64 network), in milliseconds per second; the burst
    /// is five minutes of this rate. 0: no limit.
    image_ms_per_second_per_address: u32 = Value(limits::IMAGE_MS_PER_SECOND_PER_ADDRESS) => reload,
    /// CPU time for images of a bucket, in milliseconds per second; the burst is five minutes of this rate. 0: no
    /// limit.
    image_ms_per_second_per_bucket: u32 = Value(limits::IMAGE_MS_PER_SECOND_PER_BUCKET) => reload,
    /// Maximum time in seconds that a graceful shutdown waits for requests in flight.
    drain_seconds: u64 = Value(listener::limits::DRAIN_TIMEOUT.as_secs()) => reload,
    /// Retention window in seconds, at most 30 days, of deleted and replaced objects over 1 MiB: they can be restored
    /// until it ends or space is short. 0: their space is reclaimed immediately.
    undelete_window_seconds: u64 = Value(limits::UNDELETE_WINDOW.as_secs()),
    /// Free space in bytes that uploads may not use. 0: no reserve.
    reserve_bytes: u64 = Description("576 MiB or 1 % of the disk, whichever is more"),
    /// Remote store that the store is replicated to: `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX`,
    /// `az://CONTAINER/PREFIX` or `file:///FOLDER`. Requires the `remote` build feature.
    remote_url: String = Description("none"),
    /// URL of the service of the remote store, `http` or `https`, for other services than those of the provider, such
    /// as `https://rgw.example.com`.
    remote_endpoint: String = Description("none"),
    /// Region of an S3 remote store.
    remote_region: String = Description("`us-east-1`"),
    /// File with the credentials of the remote store: access key and secret key (S3) or account and key (Azure), a line
    /// each; the JSON of a service account (Google Cloud). It should be readable by the server only.
    remote_credentials_file: PathBuf = Description("the role or environment of the machine"),
    /// When a write is acknowledged: `local`, when it is durable in the data folder; `remote`, when the remote store
    /// has it too.
    remote_ack: RemoteAck = Value(RemoteAck::Local),
    /// Pause in milliseconds, 10 to 60000, between two chunks that are shipped to the remote store: about the writes
    /// that are lost with the machine. Not used with `remote_ack = "remote"`, which ships at once.
    remote_ship_ms: u64 = Value(engine::limits::SHIP_INTERVAL_MS),
    /// Time in seconds, 5 to 3600, without contact to the remote store after which writes are rejected, so that another
    /// server can take over. 0: they are not.
    remote_lease_seconds: u64 = Value(0),
    /// Time in days, 1 to 3650, for which the remote store can restore earlier states.
    remote_retention_days: u64 = Value(engine::limits::REMOTE_RETENTION_MS / 86_400_000),
    /// Maximum size in bytes, at least 1073741824, of stored files on this machine: above it, the least recently read
    /// ones are only in the remote store, and fetched when they are read. 0: all are on this machine.
    local_cache_bytes: u64 = Value(0),
}
