//! Automatic certificates by ACME (RFC 8555), for the configured names; feature `acme`.
//!
//! ```text
//! renewal        when a certificate is ordered          order      one certificate: validation by TLS-ALPN-01
//! http_client    HTTP client of the library             storage    account and certificate in the data folder
//! error          errors, with advice                    limits
//! disabled       without the feature
//! ```

#[cfg(not(feature = "acme"))]
mod disabled;
#[cfg(feature = "acme")]
mod error;
#[cfg(feature = "acme")]
mod http_client;
pub mod limits;
#[cfg(feature = "acme")]
mod order;
#[cfg(feature = "acme")]
mod renewal;
#[cfg(feature = "acme")]
mod storage;

use std::path::PathBuf;

use outbound::trust_anchors::TrustAnchors;
use protocol::destination::OutboundUrl;

#[cfg(not(feature = "acme"))]
pub use self::disabled::AcmeRenewer;
#[cfg(feature = "acme")]
pub use self::renewal::AcmeRenewer;

/// Whether this build has the feature `acme`.
pub const IS_AVAILABLE: bool = cfg!(feature = "acme");

/// Validated ACME settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeSettings {
    /// Domains: at least one, in lower case, without duplicates.
    pub domains: Vec<String>,
    /// Contacts in ACME form: `mailto:` and an address.
    pub contacts: Vec<String>,
    pub directory: OutboundUrl,
    /// PEM file of certification authorities trusted for the ACME directory, in addition to Mozilla's. The caller loads
    /// it into `roots`.
    pub ca_file: Option<PathBuf>,
    /// Loaded additional certification authorities.
    pub roots: TrustAnchors,
}
