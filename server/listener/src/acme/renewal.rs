//! Order and renewal of the certificate.
//!
//! Guarantees: a stored certificate is used immediately, and renewed after two thirds of its lifetime; failures are
//! logged and retried with increasing delays, honoring `Retry-After`, while the current certificate stays in use.
//! Without a certificate no connection is accepted. Non-goals: protocols over TLS.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use engine::clock::Clock;
use instant_acme::{Account, NewAccount};
use outbound::OutboundClient;
use usage::registry::CertificateMetrics;
use usage::task::blocking;

use super::error::AcmeError;
use super::http_client::AcmeHttpClient;
use super::order::order;
use super::storage::{CertificateStorage, StoredAcmeAccount, StoredCertificate};
use super::{AcmeSettings, limits};
use crate::tls::{AlpnChallenges, TlsConfigCell, TlsIdentity};

/// ACME client.
pub struct AcmeRenewer {
    settings: AcmeSettings,
    storage: CertificateStorage,
    client: AcmeHttpClient,
    clock: Arc<dyn Clock>,
    tls: Arc<TlsConfigCell>,
    current: Option<CurrentCertificate>,
}

/// Certificate in use.
struct CurrentCertificate {
    identity: TlsIdentity,
    /// Whether it has the configured names and directory.
    is_wanted: bool,
}

impl AcmeRenewer {
    /// Starts with the stored certificate, if any.
    pub fn open(
        data: &Path,
        settings: AcmeSettings,
        clock: Arc<dyn Clock>,
    ) -> io::Result<(Arc<TlsConfigCell>, Self)> {
        let client = settings.roots.client().map_err(|why| io::Error::other(why.to_string()))?;
        let outbound =
            OutboundClient::new(std::slice::from_ref(settings.directory.origin()), client);
        let asking = AcmeHttpClient::new(outbound, clock.clone());
        let tls = Arc::new(TlsConfigCell::without_identity().map_err(io::Error::other)?);
        let kept = CertificateStorage::open(data)?;
        let current = current(&kept, &settings);
        match &current {
            Some(current) => tls.replace(&current.identity),
            None => tracing::warn!(
                domains = settings.domains.join(", "),
                "no certificate yet; TLS connections are refused until one is issued"
            ),
        }
        Ok((tls.clone(), Self { settings, storage: kept, client: asking, clock, tls, current }))
    }

    /// Obtains and renews certificates, forever, and reports them to the metrics.
    pub async fn run(mut self, measures: Arc<CertificateMetrics>) {
        let mut retry_wait = limits::BACKOFF_MIN;
        let current = self.current.as_ref();
        measures.set_expiry(current.and_then(|current| current.identity.not_after_ms()));
        loop {
            if let Some(wait) = self.wait() {
                // The clock may be set, and the machine may sleep, so long waits are split.
                tokio::time::sleep(wait.min(limits::RENEWAL_CHECK_INTERVAL)).await;
                continue;
            }
            let failure = match self.renew(&measures).await {
                Ok(()) if self.wait().is_some() => {
                    retry_wait = limits::BACKOFF_MIN;
                    continue;
                }
                // Renewing again immediately would never end.
                Ok(()) => AcmeError::new(
                    "the issued certificate is due for renewal already: check the clock of this \
                    machine",
                ),
                Err(failure) => failure,
            };
            measures.failures.add(1);
            let wait = retry_wait.max(self.client.take_retry_after());
            tracing::error!(
                domains = self.settings.domains.join(", "),
                directory = self.settings.directory.as_str(),
                again_after_seconds = wait.as_secs(),
                "certificate order failed: {failure}"
            );
            tokio::time::sleep(wait).await;
            retry_wait = retry_wait.saturating_mul(5).min(limits::BACKOFF_MAX);
        }
    }

    /// Returns the time until the renewal.
    fn wait(&self) -> Option<Duration> {
        let current = self.current.as_ref().filter(|current| current.is_wanted)?;
        let wait_ms = current.identity.renewal_ms().checked_sub(self.clock.unix_ms())?;
        (wait_ms > 0).then(|| Duration::from_millis(wait_ms))
    }

    /// Obtains another certificate and installs it.
    async fn renew(&mut self, measures: &CertificateMetrics) -> Result<(), AcmeError> {
        self.client.take_retry_after();
        let asked = tokio::time::timeout(limits::ORDER_TIMEOUT, self.order_certificate()).await;
        // Removes the challenge certificates, whatever the outcome.
        let own = self.current.as_ref().map(|current| &current.identity);
        match own {
            Some(own) => self.tls.replace(own),
            None => self
                .tls
                .with_challenges(None, &AlpnChallenges::default())
                .map_err(AcmeError::new)?,
        }
        let made = asked.map_err(|_| AcmeError::new("timed out"))??;
        let identity = TlsIdentity::parse(made.certificates.as_bytes(), made.key.as_bytes());
        let identity = identity
            .map_err(|why| AcmeError::new(format!("the issued certificate is invalid: {why}")))?;
        measures.set_expiry(identity.not_after_ms());
        // Installed even if it cannot be stored: the current one may expire before there is space.
        self.tls.replace(&identity);
        let ends = identity.not_after_text().unwrap_or_default();
        tracing::info!(domains = made.domains.join(", "), ends, "certificate issued");
        self.current = Some(CurrentCertificate { identity, is_wanted: true });
        let kept = self.storage.clone();
        if let Err(error) = blocking(move || kept.write_certificate(&made)).await {
            tracing::error!(
                %error,
                "failed to save the certificate; it is requested again after a restart"
            );
        }
        Ok(())
    }

    async fn order_certificate(&self) -> Result<StoredCertificate, AcmeError> {
        match self.order(&self.account().await?).await {
            Err(failure) if failure.is_unknown_account => {
                tracing::warn!("stored ACME account unknown to the server; registering a new one");
                let kept = self.storage.clone();
                blocking(move || kept.forget_account()).await.map_err(AcmeError::new)?;
                self.order(&self.account().await?).await
            }
            asked => asked,
        }
    }

    async fn order(&self, account: &Account) -> Result<StoredCertificate, AcmeError> {
        let own = self.current.as_ref().map(|current| &current.identity);
        let domains = &self.settings.domains;
        let (certificates, key) = order(account, domains, own, &self.tls).await?;
        let directory = self.settings.directory.as_str().to_owned();
        Ok(StoredCertificate { directory, domains: domains.clone(), certificates, key })
    }

    /// Returns the stored account, or registers a new one, which is stored before it is used.
    async fn account(&self) -> Result<Account, AcmeError> {
        let directory = self.settings.directory.as_str();
        let contacts = &self.settings.contacts;
        let builder = Account::builder_with_http(Box::new(self.client.clone()));
        let kept = self.storage.clone();
        let found = blocking(move || kept.account()).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "stored ACME account unreadable; registering a new one");
            None
        });
        let named: Vec<&str> = contacts.iter().map(String::as_str).collect();
        let (account, credentials) = match found.filter(|found| found.directory == directory) {
            Some(found) => {
                let had = found.contacts == *contacts;
                let again = found.clone_credentials().map_err(AcmeError::new)?;
                let account = builder.from_credentials(found.credentials).await?;
                if had {
                    return Ok(account);
                }
                account.update_contacts(&named).await?;
                (account, again)
            }
            None => {
                let wish = NewAccount {
                    contact: &named,
                    terms_of_service_agreed: true,
                    only_return_existing: false,
                };
                builder.create(&wish, directory.to_owned(), None).await?
            }
        };
        let (kept, contacts) = (self.storage.clone(), contacts.clone());
        let account_file =
            StoredAcmeAccount { directory: directory.to_owned(), contacts, credentials };
        let written = blocking(move || kept.write_account(&account_file)).await;
        written.map_err(|why| AcmeError::new(format!("cannot save the ACME account: {why}")))?;
        Ok(account)
    }
}

/// Loads the stored certificate, if it is valid.
fn current(kept: &CertificateStorage, settings: &AcmeSettings) -> Option<CurrentCertificate> {
    let found = match kept.certificate() {
        Ok(found) => found?,
        Err(error) => {
            tracing::warn!(%error, "stored certificate unreadable; requesting a new one");
            return None;
        }
    };
    match TlsIdentity::parse(found.certificates.as_bytes(), found.key.as_bytes()) {
        Ok(identity) => {
            let is_wanted =
                found.domains == settings.domains && found.directory == settings.directory.as_str();
            Some(CurrentCertificate { identity, is_wanted })
        }
        Err(why) => {
            tracing::warn!(%why, "stored certificate invalid; requesting a new one");
            None
        }
    }
}
