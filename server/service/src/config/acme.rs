//! ACME settings.
//!
//! Non-goals: the ACME client.

use std::fmt::Display;
use std::path::PathBuf;

use listener::acme::{self, AcmeSettings};
use outbound::trust_anchors::TrustAnchors;
use protocol::destination::{OutboundUrl, Scheme};
use rustls::pki_types::DnsName;

use super::{ConfigError, StringList};

/// Unvalidated ACME settings.
pub(super) struct RawAcmeSettings {
    pub(super) domains: Option<StringList>,
    pub(super) contacts: Option<StringList>,
    pub(super) directory: Option<String>,
    pub(super) ca_file: Option<PathBuf>,
}

impl RawAcmeSettings {
    /// Validates the settings. `None` without domains.
    pub(super) fn checked(self) -> Result<Option<AcmeSettings>, ConfigError> {
        if self.domains.as_ref().is_none_or(|StringList(domains)| domains.is_empty()) {
            return Ok(None);
        }
        if !acme::IS_AVAILABLE {
            let why = "this build has no ACME client: build with `--features acme`";
            return Err(ConfigError::for_setting("acme_domains", why));
        }
        self.validated().map(Some)
    }

    fn validated(self) -> Result<AcmeSettings, ConfigError> {
        let StringList(domains) = self.domains.unwrap_or_default();
        if domains.len() > acme::limits::DOMAINS_MAX {
            let why = format!("{} domains exceed the limit of a certificate", domains.len());
            return Err(ConfigError::for_setting("acme_domains", why));
        }
        let StringList(contacts) = self.contacts.unwrap_or_default();
        let mut names: Vec<String> = Vec::new();
        for name in &domains {
            let name = domain(name)?;
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Ok(AcmeSettings {
            domains: names,
            contacts: contacts.iter().map(|mail| contact(mail)).collect::<Result<_, _>>()?,
            directory: directory(&super::needed("acme_directory", self.directory)?)?,
            ca_file: self.ca_file,
            roots: TrustAnchors::default(),
        })
    }
}

/// Validates a domain for TLS-ALPN-01, which excludes wildcards such as `*.example.com`.
fn domain(name: &str) -> Result<String, ConfigError> {
    let lower = name.to_ascii_lowercase();
    match DnsName::try_from(&*lower) {
        Ok(_) if !lower.ends_with('.') => Ok(lower),
        _ => {
            let why = format!("{name:?} is not a domain such as cdn.example.com");
            Err(ConfigError::for_setting("acme_domains", why))
        }
    }
}

fn contact(mail: &str) -> Result<String, ConfigError> {
    let is_mail = |text: &str| match text.split_once('@') {
        Some((who, place)) => !who.is_empty() && DnsName::try_from(place).is_ok(),
        None => false,
    };
    if mail.bytes().all(|byte| byte.is_ascii_graphic()) && is_mail(mail) {
        return Ok(format!("mailto:{mail}"));
    }
    let why = format!("{mail:?} is not an email address such as ann@example.com");
    Err(ConfigError::for_setting("acme_contact", why))
}

fn directory(text: &str) -> Result<OutboundUrl, ConfigError> {
    let refuse = |why: &dyn Display| {
        let why = format!("{text:?} is not a URL such as {}: it {why}", acme::limits::DIRECTORY);
        ConfigError::for_setting("acme_directory", why)
    };
    let found = OutboundUrl::parse(text).map_err(|why| refuse(&why))?;
    match found.origin().scheme() {
        Scheme::Https => Ok(found),
        Scheme::Http => Err(refuse(&"must start with https://")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(domains: &str, contacts: &str, directory: &str) -> RawAcmeSettings {
        let texts = |text: &str| {
            let texts = text.split(' ').filter(|text| !text.is_empty());
            Some(StringList(texts.map(str::to_owned).collect()))
        };
        RawAcmeSettings {
            domains: texts(domains),
            contacts: texts(contacts),
            directory: Some(directory.to_owned()),
            ca_file: None,
        }
    }

    fn parse(domains: &str, contacts: &str, directory: &str) -> Result<AcmeSettings, String> {
        raw(domains, contacts, directory).validated().map_err(|error| error.to_string())
    }

    #[test]
    fn acme_is_disabled_without_domains() {
        assert_eq!(raw("", "nobody", "nowhere").checked(), Ok(None));
    }

    #[test]
    fn acme_domains_require_the_build_feature() {
        match raw("cdn.example.com", "", acme::limits::DIRECTORY).checked() {
            Ok(found) => assert!(acme::IS_AVAILABLE && found.is_some()),
            Err(error) => {
                let error = error.to_string();
                assert!(!acme::IS_AVAILABLE && error.contains("--features acme"), "{error}");
            }
        }
    }

    #[test]
    fn acme_domains_contacts_and_directory_are_validated() {
        let found = parse(
            "CDN.example.com b.example cdn.example.com",
            "ann@example.com",
            acme::limits::DIRECTORY,
        );
        let found = found.unwrap();
        assert_eq!(found.domains, ["cdn.example.com", "b.example"]);
        assert_eq!(found.contacts, ["mailto:ann@example.com"]);
        for bad in ["*.example.com", "127.0.0.1:80", "https://a.example", "a..b", "a."] {
            let error = parse(bad, "", acme::limits::DIRECTORY).unwrap_err();
            assert!(error.starts_with("acme_domains: "), "{bad}: {error}");
        }
        for bad in ["ann", "@example.com", "ann@", "ann@a,b", "mailto:ann"] {
            let error = parse("a.example", bad, acme::limits::DIRECTORY).unwrap_err();
            assert!(error.starts_with("acme_contact: "), "{bad}: {error}");
        }
        for bad in ["", "example.com", "http://example.com/directory", "https://u@example.com"] {
            let error = parse("a.example", "", bad).unwrap_err();
            assert!(error.starts_with("acme_directory: "), "{bad}: {error}");
        }
        let many = vec!["a.example"; acme::limits::DOMAINS_MAX + 1].join(" ");
        let error = parse(&many, "", acme::limits::DIRECTORY).unwrap_err();
        assert!(error.contains("exceed the limit"), "{error}");
    }
}
