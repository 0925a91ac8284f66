//! What one request at a time may hold: names that uploads on their way have chosen, tokens that are being used.
//!
//! Many phones upload `screenshot.webp` at the same moment. Without claims all of them would choose the same free
//! number, one would get it and the rest would choose again, together. A token is claimed so that two uploads do not
//! both come to their end, one of them in vain. Promises: a thing is claimed by one at a time, and free again when its
//! claim is dropped, whatever became of the upload. That no name is given and no token used twice does not rest on
//! this: the batch requires it.
//! Never here: which names exist, and which tokens are used up.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// All that is claimed of one kind. No more than the requests in flight hold.
#[derive(Clone)]
pub struct Claims<T: Eq + Hash>(Arc<Mutex<HashSet<T>>>);

/// A thing that nobody else takes while this lives.
pub struct Claim<T: Eq + Hash> {
    claims: Claims<T>,
    name: T,
}

impl<T: Clone + Eq + Hash> Claims<T> {
    /// Claims a thing; `None` when it is claimed already.
    pub fn claim(&self, name: T) -> Option<Claim<T>> {
        let is_new = self.names().insert(name.clone());
        is_new.then(|| Claim { claims: self.clone(), name })
    }

    /// Whether somebody has claimed a thing.
    pub fn contain(&self, name: &T) -> bool {
        self.names().contains(name)
    }
}

impl<T: Eq + Hash> Claims<T> {
    fn names(&self) -> MutexGuard<'_, HashSet<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Eq + Hash> Default for Claims<T> {
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
    fn a_name_has_one_claim_at_a_time() {
        let claims = Claims::default();
        let bucket = BucketName::parse("photos").unwrap();
        let name = ObjectName::new(bucket, ObjectKey::parse("a.png").unwrap());
        let claim = claims.claim(name.clone()).unwrap();
        assert!(claims.claim(name.clone()).is_none());
        assert!(claims.contain(&name));
        drop(claim);
        assert!(!claims.contain(&name));
        assert!(claims.claim(name).is_some());
    }
}
