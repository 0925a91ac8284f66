//! Every setting, said once: its name, its type, its default, what it means, and whether it may change while the server
//! runs (`=> reload`).
//!
//! What is documented, shown by `trug config` and read from files and variables is made of this list.
//! Never here: which values are allowed, which [`Config`](super::Config) checks.

use std::path::PathBuf;

use super::kind::{Kind, Texts};
use super::otlp::Ratio;
use super::secret::Secret;
use super::{ConfigError, Written};
use crate::limits;

/// A setting as its documentation tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name in a file; in the environment in capitals, behind `TRUG_`.
    pub name: &'static str,
    /// What it means, as Markdown.
    pub about: String,
    /// What is so where nothing is said.
    pub default: SettingDefault,
    /// What it takes to have another value.
    pub change: SettingChange,
}

/// What it takes until another value of a setting is so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingChange {
    /// That the server is told to read its settings again.
    Reload,
    /// That it is started again.
    Restart,
}

impl SettingChange {
    /// By the marks behind a default.
    fn of(marks: &[&str]) -> Self {
        if marks.is_empty() { Self::Restart } else { Self::Reload }
    }

    /// As documents call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reload => "reload",
            Self::Restart => "restart",
        }
    }
}

/// What is so where nothing is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingDefault {
    /// This value, as TOML.
    Value(String),
    /// No value: these words.
    Words(&'static str),
}

/// The default of a setting of a type.
enum Initial<T> {
    Value(T),
    Words(&'static str),
}

impl<T: Kind> Initial<T> {
    fn value(self) -> Option<T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Words(_) => None,
        }
    }

    fn told(self) -> SettingDefault {
        match self {
            Self::Value(value) => SettingDefault::Value(value.to_toml()),
            Self::Words(words) => SettingDefault::Words(words),
        }
    }
}

macro_rules! settings {
    ($($(#[doc = $about:literal])+ $name:ident: $kind:ty = $default:expr $(=> $change:ident)?,)+) => {
        /// What one source says. Every field is optional.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Layer {
            $($(#[doc = $about])+ pub $name: Option<$kind>,)+
        }

        /// All settings, in the order in which they are documented.
        pub fn settings() -> Vec<Setting> {
            vec![$(Setting {
                name: stringify!($name),
                about: [$($about),+].map(str::trim).join(" "),
                default: Initial::<$kind>::told($default),
                change: SettingChange::of(&[$(stringify!($change))?]),
            }),+]
        }

        impl Layer {
            /// What is so where no source says anything.
            pub fn defaults() -> Self {
                Self { $($name: Initial::<$kind>::value($default)),+ }
            }

            /// This layer, and below it what `lower` says where this one is silent.
            #[must_use]
            pub fn over(self, lower: Self) -> Self {
                Self { $($name: self.$name.or(lower.$name)),+ }
            }

            /// What is so once `new` is said while the server runs.
            pub(super) fn changed_to(self, new: Self) -> Self {
                Self {
                    $($name: match SettingChange::of(&[$(stringify!($change))?]) {
                        SettingChange::Reload => new.$name,
                        SettingChange::Restart => self.$name,
                    }),+
                }
            }

            /// What it says, as TOML.
            pub fn said(&self) -> Vec<(&'static str, String)> {
                let mut said = Vec::new();
                $(said.extend(self.$name.as_ref().map(|it| (stringify!($name), it.to_toml())));)+
                said
            }

            /// Sets what a source wrote. None: no setting has this name.
            pub(super) fn set(
                &mut self,
                name: &str,
                written: Written<'_>,
            ) -> Option<Result<(), ConfigError>> {
                match name {
                    $(stringify!($name) => Some(Kind::read(written).map_or_else(
                        |why| Err(ConfigError::of(stringify!($name), why)),
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

use Initial::{Value, Words};

settings! {
    /// where it listens
    listen: String = Value("127.0.0.1:8080".to_owned()),
    /// what stands before the addresses that it gives out, with `http` or `https`
    public_url: String = Words("where it listens"),
    /// certificates (PEM) with which it speaks TLS itself, its own first; read again when they change, and on SIGHUP
    tls_certificate_file: PathBuf = Words("none: without TLS") => reload,
    /// the key of the first of them (PEM), which nobody else should be able to read
    tls_key_file: PathBuf = Words("none") => reload,
    /// host names, such as `cdn.example.com`, as a list or separated by commas, to obtain certificates for by ACME, and
    /// to serve TLS with; agrees to the terms of the certificate authority; excludes the two settings above
    acme_domains: Texts = Value(Texts::default()),
    /// mail addresses for notices of the certificate authority
    acme_contact: Texts = Value(Texts::default()),
    /// URL of the ACME directory of the certificate authority
    acme_directory: String = Value(limits::acme::DIRECTORY.to_owned()),
    /// root certificates (PEM) trusted for connections to the ACME directory, in addition to Mozilla's
    acme_ca_file: PathBuf = Words("none"),
    /// for how long browsers shall use TLS alone for this host and all its ports (`Strict-Transport-Security`), said by
    /// the dashboard and the API where it speaks TLS itself; 0: nothing is said
    tls_hsts_seconds: u64 = Value(0) => reload,
    /// largest upload request
    body_bytes_max: u64 = Value(limits::BODY_BYTES_MAX) => reload,
    /// where the premium endpoint listens
    upload_listen: String = Words("none"),
    /// largest upload request there
    upload_body_bytes_max: u64 = Value(limits::UPLOAD_BODY_BYTES_MAX) => reload,
    /// where it listens for whoever watches over it, without a token: `/-/metrics`, `/-/health` and `/-/ready` alone;
    /// an address that only this machine or your own network reaches
    admin_listen: String = Words("none"),
    /// the secret that opens `/-/metrics` on the other addresses, 16 characters or more; better in a file
    metrics_token: Secret = Words("none"),
    /// the file that this secret lies in
    metrics_token_file: PathBuf = Words("none"),
    /// the collector that is told what requests take their time for (traces by OTLP over HTTP), like
    /// `http://127.0.0.1:4318`; takes a build with the feature `otel`
    otlp_endpoint: String = Words("none"),
    /// the part of all traces that it is told of, from 0 to 1; feature `otel`
    otlp_sample_ratio: Ratio = Value(Ratio::WHOLE),
    /// what the server is called there; feature `otel`
    otlp_service_name: String = Value("trug".to_owned()),
    /// connections at once, on each of these
    connections_max: usize = Value(limits::CONNECTIONS_MAX),
    /// the same, from one address
    connections_per_address_max: usize = Value(limits::CONNECTIONS_PER_ADDRESS_MAX),
    /// the fastest that it copies to give back dead space; 0: only when asked
    compaction_bytes_per_second_max: u64 = Value(engine::limits::COMPACTION_BYTES_PER_SECOND),
    /// every stored byte is read and checked again once in so many days; 0: never
    scrub_days: u64 = Value(engine::limits::SCRUB_PERIOD_SECONDS / 86_400),
    /// the fastest that it reads for that
    scrub_bytes_per_second_max: u64 = Value(engine::limits::SCRUB_BYTES_PER_SECOND_MAX),
    /// whether accounts are held to the rates of their plans
    plan_rates: bool = Value(true) => reload,
    /// uploads of an account of the plan Business
    business_uploads_per_minute: u32 = Value(limits::UPLOADS_PER_MINUTE_BUSINESS) => reload,
    /// invalid API keys that one address may present in a minute; 0: any number
    failed_authentications_per_minute: u32 = Value(limits::FAILED_AUTHENTICATIONS_PER_MINUTE) => reload,
    /// requests of one address, or one /64 of IPv6; 0: any number
    address_requests_per_second: u32 = Value(limits::ADDRESS_REQUESTS_PER_SECOND) => reload,
    /// the same at once, after a pause
    address_requests_burst: u32 = Value(limits::ADDRESS_REQUESTS_BURST) => reload,
    /// networks like `10.0.0.0/8`, a list or with commas, to which no limit for addresses applies; the machine itself
    /// needs none
    trusted_networks: Texts = Value(Texts::default()) => reload,
    /// networks like `10.0.0.0/8`, a list or with commas, of proxies that are believed whom they ask for
    /// (`X-Forwarded-For`); to the proxies themselves the limit of connections does not apply
    trusted_proxies: Texts = Value(Texts::default()) => reload,
    /// hosts beside that of `public_url` under which people open the dashboard, like `files.internal`, a list or with
    /// commas; addresses and `localhost` need none
    dashboard_hosts: Texts = Value(Texts::default()) => reload,
    /// whether the server looks once a day which accounts break fair use
    fair_use_sweep: bool = Value(false),
    /// origins of private networks that webhooks may be sent to, like `http://127.0.0.1:9000`, a list or with commas
    webhook_allow: Texts = Value(Texts::default()) => reload,
    /// origins of private networks that jobs may take files from, like `http://127.0.0.1:9000`, a list or with commas;
    /// whoever may upload can read there
    import_allow: Texts = Value(Texts::default()) => reload,
    /// certificates (PEM) of authorities that webhooks are sent to and files imported from, beside Mozilla's
    webhook_ca_file: PathBuf = Words("none"),
    /// memory that the names of searched buckets may take, about 55 bytes for a name, so ten million need 600000000;
    /// those searched least lately are dropped; a bucket that does not fit is searched in the index, by its first
    /// 4,000,000 names; 0: none are kept
    search_memory_bytes: u64 = Value(engine::limits::SEARCH_NAMES_BYTES_MAX),
    /// memory that all work on pictures at once may take
    image_memory_bytes: u64 = Words("a quarter of the machine's"),
    /// what pictures at other sizes and formats may take in the store; those not asked for longest go first; 0: none
    /// are kept
    variants_bytes_max: u64 = Value(limits::VARIANTS_BYTES_MAX),
    /// milliseconds of a processor, for each second, that go into pictures for one address, or one /64 of IPv6; saved
    /// up for five minutes; 0: any number
    image_ms_per_second_per_address: u32 = Value(limits::IMAGE_MS_PER_SECOND_PER_ADDRESS) => reload,
    /// the same for all pictures that are made of files of one bucket
    image_ms_per_second_per_bucket: u32 = Value(limits::IMAGE_MS_PER_SECOND_PER_BUCKET) => reload,
    /// how long requests in flight get when the server stops
    drain_seconds: u64 = Value(limits::DRAIN_WAIT.as_secs()) => reload,
    /// how long large files (over 1 MiB) that are deleted or replaced can come back, while the disk has room; at most
    /// 30 days; 0: their space is given back at once
    undelete_window_seconds: u64 = Value(limits::UNDELETE_WINDOW.as_secs()),
    /// free space that uploads may not take; 0 for none
    reserve_bytes: u64 = Words("576 MiB, or 1 % of the disk if that is more"),
}
