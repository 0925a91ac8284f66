//! Names that uploads on their way have chosen and not stored yet.
//!
//! Many phones upload `screenshot.webp` at the same moment. Without claims all of them would choose the same free
//! number, one would get it and the rest would choose again, together. Promises: a name is claimed by one at a time,
//! and free again when its claim is dropped, whatever became of the upload. That no name is given twice does not rest
//! on this: the batch requires it.
//! Never here: which names exist.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::ObjectName;

/// All names that are claimed. No more than the files of the requests in flight.
#[derive(Clone, Default)]
pub struct Claims(Arc<Mutex<HashSet<ObjectName>>>);

/// A name that nobody else chooses while this lives.
pub struct Claim {
    claims: Claims,
    name: ObjectName,
}

impl Claims {
    /// Claims a name; `None` when it is claimed already.
    pub fn claim(&self, name: ObjectName) -> Option<Claim> {
        let is_new = self.names().insert(name.clone());
        is_new.then(|| Claim { claims: self.clone(), name })
    }

    /// Whether somebody has claimed a name.
    pub fn contain(&self, name: &ObjectName) -> bool {
        self.names().contains(name)
    }

    fn names(&self) -> MutexGuard<'_, HashSet<ObjectName>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.claims.names().remove(&self.name);
    }
}

#[cfg(test)]
mod tests {
    use engine::{BucketName, ObjectKey};

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
