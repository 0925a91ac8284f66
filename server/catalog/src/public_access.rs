//! Public access of a bucket: as granted, and as an S3 public access block restricts it.
//!
//! Guarantees: while a block hides public access, nobody reads the bucket without a credential; the grant takes effect
//! again when the block is removed. Non-goals: authorization of changes.

use serde::{Deserialize, Serialize};

use super::bucket::{Access, Bucket};

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
    /// Determines the effective access after a change.
    pub(super) fn settle_access(&mut self) {
        let is_hidden = self.public_access_block.is_some_and(PublicAccessBlock::hides);
        self.access = if is_hidden { Access::Private } else { self.granted_access };
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
