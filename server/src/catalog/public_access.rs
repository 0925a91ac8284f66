//! Public access of a bucket: as it was granted, and as a public access block of S3 leaves it.
//!
//! Guarantees: while a block hides public access nobody reads the bucket without a key, by whatever way; the grant is
//! in effect again when the block is removed. Non-goals: who may change it.

use serde::{Deserialize, Serialize};

use super::bucket::{Access, Bucket};

/// The public access block of a bucket (S3 API, PutPublicAccessBlock).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PublicAccessBlock {
    /// Access control lists that grant public access are rejected.
    pub block_public_acls: bool,
    /// Public access that lists granted has no effect.
    pub ignore_public_acls: bool,
    /// Policies that grant public access are rejected.
    pub block_public_policy: bool,
    /// Public access that policies granted has no effect.
    pub restrict_public_buckets: bool,
}

impl PublicAccessBlock {
    /// Whether public access that was granted has no effect. A bucket has one access, whether a list or a policy
    /// granted it.
    fn hides(self) -> bool {
        self.ignore_public_acls || self.restrict_public_buckets
    }

    /// Whether the bucket cannot be made public. A grant that would be hidden is rejected unless that is expected.
    pub(super) fn rejects_grants(self, may_be_hidden: bool) -> bool {
        let is_hidden = self.hides() && !may_be_hidden;
        self.block_public_acls || self.block_public_policy || is_hidden
    }
}

impl Bucket {
    /// Decides the access in effect after a change.
    pub(super) fn settle_access(&mut self) {
        let is_hidden = self.public_access_block.is_some_and(PublicAccessBlock::hides);
        self.access = if is_hidden { Access::Private } else { self.granted_access };
        if self.granted_access == Access::Private {
            // A policy grants public access, or there is none.
            self.policy = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_flag_of_a_block_hides_or_rejects() {
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
