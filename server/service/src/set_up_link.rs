//! Set-up link, which authorizes the creation of the first operator.
//!
//! Guarantees: only a hash of its secret is in memory, for [`SETUP_LINK_LIFETIME`]; a new link invalidates the
//! previous. Non-goals: whether the server still needs a set-up.

use std::sync::{Mutex, PoisonError};

use catalog::{IssuedSecret, SecretHash};
use engine::rng::Rng;

use crate::limits::SETUP_LINK_LIFETIME;

/// Newest link, if any.
#[derive(Default)]
pub struct SetupLink(Mutex<Option<Issued>>);

struct Issued {
    hash: SecretHash,
    /// Expiry in monotonic time.
    expires_ms: u64,
}

/// State of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    Valid,
    Expired,
    Unknown,
}

impl SetupLink {
    /// Issues a link and returns its secret.
    pub fn issue(&self, rng: &dyn Rng, monotonic_ms: u64) -> String {
        let IssuedSecret { text, hash } = IssuedSecret::issue(rng);
        let life_ms = u64::try_from(SETUP_LINK_LIFETIME.as_millis()).unwrap_or(u64::MAX);
        let issued = Issued { hash, expires_ms: monotonic_ms.saturating_add(life_ms) };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(issued);
        text
    }

    /// Returns the state of the link with this secret.
    pub fn check(&self, secret: &str, monotonic_ms: u64) -> LinkState {
        let issued = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match (SecretHash::from_text(secret), &*issued) {
            (Some(presented), Some(issued)) if presented.matches(&issued.hash) => {
                if monotonic_ms < issued.expires_ms { LinkState::Valid } else { LinkState::Expired }
            }
            _ => LinkState::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use engine::rng::SeededRng;

    use super::*;

    #[test]
    fn setup_link_expires_in_30_minutes_or_on_renewal() {
        let (link, rng) = (SetupLink::default(), SeededRng::new(1));
        assert_eq!(link.check(&"a".repeat(52), 0), LinkState::Unknown);
        let first = link.issue(&rng, 1_000);
        let half_an_hour = 30 * 60 * 1_000;
        assert_eq!(link.check(&first, 1_000 + half_an_hour - 1), LinkState::Valid);
        assert_eq!(link.check(&first, 1_000 + half_an_hour), LinkState::Expired);
        assert_eq!(link.check(&first[1..], 1_000), LinkState::Unknown);
        let second = link.issue(&rng, 2_000);
        assert_eq!(link.check(&first, 2_000), LinkState::Unknown);
        assert_eq!(link.check(&second, 2_000), LinkState::Valid);
    }
}
