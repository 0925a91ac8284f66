//! The link of the first set-up: whoever holds it makes the first account.
//!
//! Promises: it is held in memory as a hash alone, for [`SET_UP_LINK_LIFE`]; a new one takes the place of the last.
//! Never here: whether there is an account already, after which it is worth nothing.

use std::sync::{Mutex, PoisonError};

use engine::Entropy;

use crate::catalog::{IssuedSecret, SecretHash};
use crate::limits::SET_UP_LINK_LIFE;

/// The link that is good now, if any.
#[derive(Default)]
pub struct SetUpLink(Mutex<Option<Good>>);

struct Good {
    hash: SecretHash,
    /// On the clock that never goes back.
    until_ms: u64,
}

/// What a text is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worth {
    Good,
    Expired,
    Nothing,
}

impl SetUpLink {
    /// Makes one; its secret is in the answer and nowhere else.
    pub fn issue(&self, entropy: &dyn Entropy, monotonic_ms: u64) -> String {
        let IssuedSecret { text, hash } = IssuedSecret::issue(entropy);
        let life_ms = u64::try_from(SET_UP_LINK_LIFE.as_millis()).unwrap_or(u64::MAX);
        let good = Good { hash, until_ms: monotonic_ms.saturating_add(life_ms) };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(good);
        text
    }

    /// What the secret of a link is worth.
    pub fn worth(&self, text: &str, monotonic_ms: u64) -> Worth {
        let good = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match (SecretHash::of(text), &*good) {
            (Some(presented), Some(good)) if presented.is(&good.hash) => {
                if monotonic_ms < good.until_ms { Worth::Good } else { Worth::Expired }
            }
            _ => Worth::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use engine::SeededEntropy;

    use super::*;

    #[test]
    fn a_link_is_good_for_half_an_hour_and_until_the_next() {
        let (link, entropy) = (SetUpLink::default(), SeededEntropy::new(1));
        assert_eq!(link.worth(&"a".repeat(52), 0), Worth::Nothing);
        let first = link.issue(&entropy, 1_000);
        let half_an_hour = 30 * 60 * 1_000;
        assert_eq!(link.worth(&first, 1_000 + half_an_hour - 1), Worth::Good);
        assert_eq!(link.worth(&first, 1_000 + half_an_hour), Worth::Expired);
        assert_eq!(link.worth(&first[1..], 1_000), Worth::Nothing);
        let second = link.issue(&entropy, 2_000);
        assert_eq!(link.worth(&first, 2_000), Worth::Nothing);
        assert_eq!(link.worth(&second, 2_000), Worth::Good);
    }
}
