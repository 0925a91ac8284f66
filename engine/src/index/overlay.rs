//! Committed changes that redb does not hold yet, in key order.
//!
//! Promises: cloning one is O(1) and shares everything, so the one in a [`View`](super::View) never changes. Values are
//! final, not differences: what the newest layer says of a key is the truth.

use std::sync::Arc;

use imbl::OrdMap;

use super::view::Fact;
use crate::format::{AppliedPosition, Entry, Retained, SegmentId, SegmentUsage, Usage};
use crate::name::FactName;

/// Changes over the index. None stands for what was removed.
#[derive(Clone, Default)]
pub(crate) struct Overlay {
    /// Objects by encoded key.
    pub(crate) entries: OrdMap<Arc<[u8]>, Option<Arc<Entry>>>,
    /// Facts by name.
    pub(crate) facts: OrdMap<FactName, Option<Arc<Fact>>>,
    /// Counters of buckets and top-level folders by encoded key. Where nothing is left they are zeros.
    pub(crate) usage: OrdMap<Arc<[u8]>, Usage>,
    /// Live and dead bytes of segments.
    pub(crate) segments: OrdMap<SegmentId, Option<SegmentUsage>>,
    /// Big segments whose objects are gone and whose files stay for a while.
    pub(crate) retained: OrdMap<SegmentId, Option<Retained>>,
    /// What the log holds up to here is in this overlay or below it.
    pub(crate) position: Option<AppliedPosition>,
}

impl Overlay {
    /// How many entries and facts are changed.
    pub(crate) fn len(&self) -> usize {
        self.entries.len() + self.facts.len()
    }
}
