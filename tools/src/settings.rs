//! Sources of settings: options override the environment, which overrides a file, which overrides the defaults.
//!
//! Non-goals: which settings there are, and their valid values.

use std::env;
use std::fmt::Display;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use listener::tls::{CertificateError, TlsIdentity};
use outbound::trust_anchors::TrustAnchors;
use service::Config;
use service::config::{ENV_PREFIX, Layer, RemoteSettings, Sources, StringList, TlsFiles};
use service::limits::SECRET_FILE_BYTES_MAX;

use crate::exit::Failure;

/// Options for settings, and the configuration file.
#[derive(Clone, clap::Args)]
pub(crate) struct Flags {
    /// Configuration file (TOML).
    #[arg(long, value_name = "FILE", env = "TRUG_CONFIG")]
    config: Option<PathBuf>,
    /// Listen address; port 0 picks a free port. [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Listen address of the large-upload endpoint, for accounts on the plan Pro or Business. [default: off]
    #[arg(long, value_name = "ADDR")]
    upload_listen: Option<String>,
    /// Base URL of generated links. [default: the listen address]
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// Private origins that webhooks may reach, such as http://127.0.0.1:9000, comma-separated. [default: none]
    #[arg(long, value_name = "ORIGIN", value_delimiter = ',')]
    webhook_allow: Option<Vec<String>>,
    /// Override any setting, such as drain_seconds=5 or body_bytes_max=512MiB; can be repeated.
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
}

impl Flags {
    /// Returns all sources.
    pub(crate) fn sources(&self) -> Result<Sources, Failure> {
        let Self { config, listen, upload_listen, public_url, webhook_allow, set } = self.clone();
        let set = Layer::from_assignments(set.iter().map(String::as_str), "--set")?;
        let webhook_allow = webhook_allow.map(StringList);
        let flags = Layer { listen, upload_listen, public_url, webhook_allow, ..Layer::default() };
        let sources = sources_of(config.as_deref())?;
        Ok(sources.overlay("command line", flags.over(set)))
    }
}

/// Returns the sources other than options.
pub(crate) fn sources_of(config: Option<&Path>) -> Result<Sources, Failure> {
    let mut sources = Sources::new();
    if let Some(path) = config {
        let name = path.display().to_string();
        sources = sources.overlay(&name, read_file(path, &name)?);
    }
    Ok(sources.overlay("environment", environment()?))
}

/// Returns the effective configuration, with the files that it names read.
pub(crate) fn config(sources: &Sources) -> Result<Config, Failure> {
    let mut config = sources.config()?;
    if let Some(path) = &config.webhook_ca_file {
        config.webhook_roots = read_roots("webhook_ca_file", path)?;
    }
    if let Some(acme) = &mut config.acme
        && let Some(path) = &acme.ca_file
    {
        acme.roots = read_roots("acme_ca_file", path)?;
    }
    config.tls = config.tls_files.as_ref().map(read_identity).transpose()?;
    config.load_secret_files(&|path| read_text(path, SECRET_FILE_BYTES_MAX))?;
    config.remote.as_ref().map_or(Ok(()), check_remote)?;
    config.otlp.as_ref().map_or(Ok(()), |_| check_otlp(otlp::IS_AVAILABLE))?;
    Ok(config)
}

/// Checks the location of the remote store.
#[cfg(feature = "remote")]
fn check_remote(remote: &RemoteSettings) -> Result<(), Failure> {
    crate::remote::configured(remote).map(drop)
}

#[cfg(not(feature = "remote"))]
fn check_remote(_: &RemoteSettings) -> Result<(), Failure> {
    let why = "remote_url: this build has no remote stores: build with `--features remote`";
    Err(Failure::wrong_usage(why.to_owned()))
}

/// Checks that this build exports traces.
fn check_otlp(is_available: bool) -> Result<(), Failure> {
    if is_available {
        return Ok(());
    }
    let why = "otlp_endpoint: this build has no OpenTelemetry: build with `--features otel`";
    Err(Failure::wrong_usage(why.to_owned()))
}

/// Returns warnings about a valid configuration.
pub(crate) fn warnings(config: &Config, now_ms: u64) -> Vec<String> {
    let mut found = Vec::new();
    if let (Some(files), Some(identity)) = (&config.tls_files, &config.tls) {
        let named = |why: String| format!("{}: {why}", files.certificates.display());
        found.extend(identity.warning(now_ms).map(named));
        found.extend(readable_by_all(&files.key, "key"));
    }
    let credentials = config.remote.as_ref().and_then(|remote| remote.credentials_file.as_ref());
    found.extend(credentials.and_then(|path| readable_by_all(path, "credentials")));
    found
}

/// Returns a warning if every user can read a secret file.
#[allow(clippy::disallowed_methods, reason = "secrets are no files of the store")]
fn readable_by_all(path: &Path, what: &str) -> Option<String> {
    let mode = std::fs::metadata(path).ok()?.permissions().mode();
    let is_open = mode & OPEN_TO_OTHERS != 0;
    is_open.then(|| format!("{}: the {what} file is world-readable", path.display()))
}

/// Bits of a file's mode.
const OPEN_TO_OTHERS: u32 = 0o007;

/// Reads a certificate and its key.
#[allow(clippy::disallowed_methods, reason = "certificates are no files of the store")]
pub(crate) fn read_identity(files: &TlsFiles) -> Result<TlsIdentity, Failure> {
    let refuse = |setting: &str, path: &Path, why: &dyn Display| {
        Failure::wrong_usage(format!("{setting}: {}: {why}", path.display()))
    };
    let bad_chain = |why: &dyn Display| refuse("tls_certificate_file", &files.certificates, why);
    let bad_key = |why: &dyn Display| refuse("tls_key_file", &files.key, why);
    let certificates = std::fs::read(&files.certificates).map_err(|why| bad_chain(&why))?;
    let key = std::fs::read(&files.key).map_err(|why| bad_key(&why))?;
    TlsIdentity::parse(&certificates, &key).map_err(|bad| match bad {
        CertificateError::Certificates(why) => bad_chain(&why),
        CertificateError::Key(why) => bad_key(&why),
    })
}

/// Returns the settings from the environment; values must be UTF-8.
fn environment() -> Result<Layer, Failure> {
    let mut variables = Vec::new();
    for (name, value) in env::vars_os() {
        let Some(name) = name.to_str().filter(|name| name.starts_with(ENV_PREFIX)) else {
            continue;
        };
        let not_text = || Failure::wrong_usage(format!("{name} is not UTF-8"));
        variables.push((name.to_owned(), value.into_string().map_err(|_| not_text())?));
    }
    Ok(Layer::from_env(variables.into_iter())?)
}

#[allow(clippy::disallowed_methods, reason = "the configuration is no file of the store")]
fn read_file(path: &Path, name: &str) -> Result<Layer, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::wrong_usage(format!("cannot read {name}: {error}")))?;
    Ok(Layer::from_toml(&text, name)?)
}

/// Reads a short file of the operator.
#[allow(clippy::disallowed_types, reason = "a secret of the configuration is no file of the store")]
pub(crate) fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path)?;
    if file.take(bytes_max + 1).read_to_string(&mut text)? as u64 > bytes_max {
        return Err(io::Error::other(format!("it is longer than {bytes_max} bytes")));
    }
    Ok(text)
}

/// Reads certificates of authorities from a file that a setting or a flag names.
#[allow(clippy::disallowed_methods, reason = "the certificates are no file of the store")]
pub(crate) fn read_roots(named_by: &str, path: &Path) -> Result<TrustAnchors, Failure> {
    let refuse =
        |why: &dyn Display| Failure::wrong_usage(format!("{named_by}: {}: {why}", path.display()));
    let pem = std::fs::read(path).map_err(|error| refuse(&error))?;
    TrustAnchors::parse(&pem).map_err(|why| refuse(&why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn otlp_endpoint_requires_the_build_feature() {
        assert!(check_otlp(true).is_ok());
        assert!(check_otlp(false).unwrap_err().to_string().contains("--features otel"));
    }
}
