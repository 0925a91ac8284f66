//! Session of a user who signed in with a password.
//!
//! A session has an id, which names it in the API, and a secret, which the browser holds as a cookie. It ends after
//! [`SESSION_IDLE_TIMEOUT`] without use, and [`SESSION_LIFETIME`] after its start in any case. Guarantees: only a hash
//! of the secret is stored; the last use is recorded to the hour, rounded down, so that a session never outlives its
//! stated end. Non-goals: cookies, and authentication.

use serde::{Deserialize, Serialize};

use super::id::{AccountId, SessionId};
use super::last_used::LastUsed;
use super::record::Record;
use super::secret::SecretHash;
use crate::limits::{CATALOG_TEXT_BYTES_MAX, SESSION_IDLE_TIMEOUT, SESSION_LIFETIME, millis};

/// Session of a signed-in user.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    #[serde(skip, default = "SessionId::unnamed")]
    pub id: SessionId,
    pub account: AccountId,
    /// SHA-256 of the secret, hexadecimal.
    #[serde(rename = "secret_sha256")]
    pub(super) hash: SecretHash,
    pub created_ms: u64,
    /// Last use, in hours since 1970.
    #[serde(rename = "seen_hour")]
    pub(super) last_use: LastUsed,
    pub visitor: ClientInfo,
}

/// Client of a sign-in, as displayed to the account's owner.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientInfo {
    /// Client address; empty if unknown.
    pub address: String,
    /// User agent; may be empty.
    pub agent: String,
}

/// Newly started session; its secret is returned only once.
pub struct StartedSession {
    pub session: Session,
    pub secret: String,
}

/// Session and its current state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    pub session: std::sync::Arc<Session>,
    pub last_seen_ms: u64,
    pub ends_ms: u64,
}

impl Record for Session {
    fn named(self, name: &str) -> Result<Self, String> {
        Ok(Self { id: SessionId::read(name)?, ..self })
    }
}

impl ClientInfo {
    /// Creates the client data of a request. A long user agent is truncated.
    pub fn new(address: Option<std::net::IpAddr>, agent: &str) -> Self {
        let address = address.map(|address| address.to_canonical().to_string());
        let mut agent: String = agent.chars().filter(|c| !c.is_control()).collect();
        agent.truncate(agent.floor_char_boundary(CATALOG_TEXT_BYTES_MAX));
        Self { address: address.unwrap_or_default(), agent }
    }
}

impl Session {
    /// Returns when the session ends unless it is used again.
    pub(super) fn ends_ms(&self, seen_ms: u64) -> u64 {
        let seen_ms = seen_ms.max(self.created_ms);
        let idle_ms = seen_ms.saturating_add(millis(SESSION_IDLE_TIMEOUT));
        idle_ms.min(self.created_ms.saturating_add(millis(SESSION_LIFETIME)))
    }
}
