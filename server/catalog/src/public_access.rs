//! Public access of a bucket and of single objects: as granted, and as an S3 public access block restricts it.
//!
//! Guarantees: while a block hides public access, nobody reads the bucket without a credential; the grants take effect
//! again when the block is removed. Non-goals: authorization of changes.

use engine::Object;
use serde::{Deserialize, Serialize};

use super::bucket::{Access, Bucket};
use crate::object_attributes::StoredAttributes;

/// Public access block of a bucket (S3 API, PutPublicAccessBlock).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PublicAccessBlock {
    /// Access control lists that grant public access are rejected.
    pub block_public_acls: bool,
    /// Public access granted by access control lists has no effect.
    pub ignore_public_acls: bool,
    /// Policies that grant public access are rejected.
    pub block_public_policy: bool,
    /// Public access granted by policies has no effect.
    pub restrict_public_buckets: bool,
}

impl PublicAccessBlock {
    /// Returns whether granted public access has no effect. A bucket has a single access setting, whether an ACL or a
    /// policy granted it.
    fn hides(self) -> bool {
        self.ignore_public_acls || self.restrict_public_buckets
    }

    /// Returns whether the bucket cannot be made public. A grant that would be hidden is rejected, unless
    /// `may_be_hidden`.
    pub(super) fn rejects_grants(self, may_be_hidden: bool) -> bool {
        let is_hidden = self.hides() && !may_be_hidden;
        self.block_public_acls || self.block_public_policy || is_hidden
    }
}

impl Bucket {
    /// Returns whether everyone may read an object: in a public bucket every object, in a private one those that an
    /// access control list makes public.
    pub fn is_public_object(&self, object: &Object) -> bool {
        match self.access {
            Access::Public => true,
            Access::Private => {
                !self.hides_public_access() && StoredAttributes::of(object).is_public
            }
        }
    }

    /// Returns whether granted public access, of the bucket and of its objects, has no effect.
    pub fn hides_public_access(&self) -> bool {
        self.public_access_block.is_some_and(PublicAccessBlock::hides)
    }

    /// Determines the effective access after a change.
    pub(super) fn settle_access(&mut self) {
        self.access =
            if self.hides_public_access() { Access::Private } else { self.granted_access };
        if self.granted_access == Access::Private {
            // Without granted public access there is no policy.
            self.policy = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_access_block_flags_hide_or_reject() {
        let none = PublicAccessBlock::default();
        assert!(!none.hides() && !none.rejects_grants(false));
        for (block, hides) in [
            (PublicAccessBlock { block_public_acls: true, ..none }, false),
            (PublicAccessBlock { ignore_public_acls: true, ..none }, true),
            (PublicAccessBlock { block_public_policy: true, ..none }, false),
            (PublicAccessBlock { restrict_public_buckets: true, ..none }, true),
        ] {
            assert_eq!((block.hides(), block.rejects_grants(true)), (hides, !hides), "{block:?}");
            assert!(block.rejects_grants(false), "{block:?}");
        }
    }
}
