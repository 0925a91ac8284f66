//! Stub without the build feature `acme`: settings that enable ACME are refused.

use std::io;
use std::path::Path;
use std::sync::Arc;

use engine::clock::Clock;
use usage::registry::CertificateMetrics;

use super::AcmeSettings;
use crate::tls::TlsConfigCell;

/// Renewer that cannot be opened.
pub enum AcmeRenewer {}

impl AcmeRenewer {
    /// # Errors
    ///
    /// Always [`io::ErrorKind::Unsupported`].
    pub fn open(
        _: &Path,
        _: AcmeSettings,
        _: Arc<dyn Clock>,
    ) -> io::Result<(Arc<TlsConfigCell>, Self)> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub async fn run(self, _: Arc<CertificateMetrics>) {
        match self {}
    }
}
