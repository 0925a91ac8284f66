//! Exclusive claims on names and tokens by requests in flight.
//!
//! Many phones upload `screenshot.webp` at the same moment. Without claims all of them would choose the same free
//! number, one would win and the rest would retry together. A token is claimed so that two uploads do not both run to
//! completion, one of them in vain. Guarantees: an item has at most one claim, which ends when it is dropped, whatever
//! the outcome of the upload. Correctness does not depend on claims: batch preconditions ensure that no name is
//! assigned twice and no token used twice. Non-goals: which names exist, and which tokens are used up.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Set of claimed items of one kind, bounded by the requests in flight.
#[derive(Clone)]
pub struct NameClaims<T: Eq + Hash>(Arc<Mutex<HashSet<T>>>);

/// Exclusive claim on an item, released when dropped.
pub struct Claim<T: Eq + Hash> {
    claims: NameClaims<T>,
    name: T,
}

impl<T: Clone + Eq + Hash> NameClaims<T> {
    /// Claims an item; `None` if it is already claimed.
    pub fn claim(&self, name: T) -> Option<Claim<T>> {
        let is_new = self.names().insert(name.clone());
        is_new.then(|| Claim { claims: self.clone(), name })
    }

    /// Returns whether an item is claimed.
    pub fn is_claimed(&self, name: &T) -> bool {
        self.names().contains(name)
    }
}

impl<T: Eq + Hash> NameClaims<T> {
    fn names(&self) -> MutexGuard<'_, HashSet<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Eq + Hash> Default for NameClaims<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Eq + Hash> Drop for Claim<T> {
    fn drop(&mut self) {
        self.claims.names().remove(&self.name);
    }
}

#[cfg(test)]
mod tests {
    use engine::{BucketName, ObjectKey, ObjectName};

    use super::*;

    #[test]
    fn name_claim_is_exclusive() {
        let claims = NameClaims::default();
        let bucket = BucketName::parse("photos").unwrap();
        let name = ObjectName::new(bucket, ObjectKey::parse("a.png").unwrap());
        let claim = claims.claim(name.clone()).unwrap();
        assert!(claims.claim(name.clone()).is_none());
        assert!(claims.is_claimed(&name));
        drop(claim);
        assert!(!claims.is_claimed(&name));
        assert!(claims.claim(name).is_some());
    }
}
