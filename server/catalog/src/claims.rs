//! Exclusive claims on names and tokens by requests in flight.
//!
//! Many phones upload `screenshot.webp` at the same moment. Without claims all of them would choose the same free
//! number, one would win and the rest would retry together. A token is claimed so that two uploads do not both run to
//! completion, one of them in vain. Guarantees: an item has at most one claim, which ends when it is dropped, whatever
//! the outcome of the upload. Correctness does not depend on claims: batch preconditions ensure that no name is
//! assigned twice and no token used twice. Non-goals: which tokens are used up.

use std::collections::{BTreeSet, HashSet};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::{BucketName, Error, ObjectKey, ObjectName, Store};
use protocol::error::ApiError;
use protocol::file_name::{ConflictRule, NameProposal};

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

/// Proposed keys in the order of the files, and the claims on those that are to be free.
pub type ClaimedKeys = (Vec<NameProposal>, Vec<Claim<ObjectName>>);

impl NameClaims<ObjectName> {
    /// Claims the wanted keys unchanged, by one index lookup each, or none with overwrite. `None` if one of them is
    /// taken or claimed, or occurs twice: [`NameClaims::claim_keys`] then finds others.
    pub fn claim_wanted(
        &self,
        store: &Store,
        bucket: &BucketName,
        rule: ConflictRule,
        wanted: &[ObjectKey],
    ) -> Result<Option<ClaimedKeys>, Error> {
        let mut proposals: Vec<NameProposal> = Vec::with_capacity(wanted.len());
        let mut claims = Vec::new();
        for key in wanted {
            if proposals.iter().any(|other| other.key == *key) {
                return Ok(None);
            }
            if rule == ConflictRule::Rename {
                let claim = self.claim(ObjectName::new(bucket.clone(), key.clone()));
                let Some(claim) = claim else { return Ok(None) };
                if store.get(&claim.name)?.is_some() {
                    return Ok(None);
                }
                claims.push(claim);
            }
            proposals.push(NameProposal { key: key.clone(), rule, renamed: false });
        }
        Ok(Some((proposals, claims)))
    }

    /// Proposes a key for each wanted key, in their order, and claims the keys that are to be free. Blocks on the
    /// index.
    ///
    /// # Errors
    ///
    /// `conflict` if no numbered variant of a key is free.
    pub fn claim_keys(
        &self,
        store: &Store,
        bucket: &BucketName,
        rule: ConflictRule,
        wanted: &[ObjectKey],
    ) -> Result<ClaimedKeys, ApiError> {
        let mut chosen = BTreeSet::new();
        let mut proposals = Vec::with_capacity(wanted.len());
        let mut claims = Vec::new();
        for key in wanted {
            // A file of the same request is never replaced, even with overwrite.
            let rule = if chosen.contains(key) { ConflictRule::Rename } else { rule };
            let proposal = loop {
                let proposal = rule.proposal(key, |key| {
                    let name = ObjectName::new(bucket.clone(), key.clone());
                    let is_claimed = chosen.contains(key) || self.is_claimed(&name);
                    Ok::<_, Error>(is_claimed || store.get(&name)?.is_some())
                })?;
                let proposal = proposal.ok_or_else(|| {
                    ApiError::conflict(
                        "Too many files with this name: no free number up to 1,000,000",
                    )
                })?;
                if proposal.rule == ConflictRule::Overwrite {
                    break proposal;
                }
                // Another request may have claimed it since the lookup.
                if let Some(claim) =
                    self.claim(ObjectName::new(bucket.clone(), proposal.key.clone()))
                {
                    claims.push(claim);
                    break proposal;
                }
            };
            chosen.insert(proposal.key.clone());
            proposals.push(proposal);
        }
        Ok((proposals, claims))
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
    use crate::tests::World;

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

    #[test]
    fn wanted_keys_are_claimed_only_if_all_are_free_and_distinct() {
        let (world, claims) = (World::new(), NameClaims::default());
        world.put("photos", "stored");
        let bucket = BucketName::parse("photos").unwrap();
        let claim = |rule, keys: &[&str]| {
            let keys: Vec<_> = keys.iter().map(|key| ObjectKey::parse(key).unwrap()).collect();
            let claimed = claims.claim_wanted(&world.store, &bucket, rule, &keys).unwrap();
            claimed.map(|(proposals, held)| {
                assert!(proposals.iter().map(|it| &it.key).eq(&keys));
                assert!(proposals.iter().all(|it| it.rule == rule && !it.renamed));
                held
            })
        };
        use ConflictRule::{Overwrite, Rename};
        assert!(claim(Rename, &["stored"]).is_none());
        assert!(claim(Rename, &["a", "stored"]).is_none());
        for rule in [Rename, Overwrite] {
            assert!(claim(rule, &["a", "b", "a"]).is_none());
        }
        let held = claim(Rename, &["a", "b"]).unwrap();
        assert_eq!(held.len(), 2);
        assert!(claim(Rename, &["b"]).is_none());
        assert!(claim(Overwrite, &["b", "stored"]).unwrap().is_empty());
        drop(held);
        assert!(claim(Rename, &["b"]).is_some());
    }
}
