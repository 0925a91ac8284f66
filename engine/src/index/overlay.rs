//! Overlay: committed changes that are not yet in redb, in key order.
//!
//! Guarantees: cloning is O(1) with structural sharing, so the overlay in a [`View`](super::View) never changes.
//! Values are absolute, not deltas: the newest layer that contains a key determines its value.

use std::sync::Arc;

use imbl::OrdMap;

use super::fact::Fact;
use crate::format::{AppliedPosition, Entry, RetainedSegment, SegmentId, SegmentUsage, Usage};
use crate::name::FactName;

/// Changes over the index. `None` marks a removal.
#[derive(Clone, Default)]
pub(crate) struct Overlay {
    /// Objects by encoded key.
    pub(crate) entries: OrdMap<Arc<[u8]>, Option<Arc<Entry>>>,
    /// Facts by name.
    pub(crate) facts: OrdMap<FactName, Option<Arc<Fact>>>,
    /// Counters of buckets and top-level folders by encoded key; zeros if empty.
    pub(crate) usage: OrdMap<Arc<[u8]>, Usage>,
    /// Usage of segments.
    pub(crate) segments: OrdMap<SegmentId, Option<SegmentUsage>>,
    /// Retained big segments, whose objects were deleted or replaced.
    pub(crate) retained: OrdMap<SegmentId, Option<RetainedSegment>>,
    /// Log position up to which this overlay and the layers below are complete.
    pub(crate) position: Option<AppliedPosition>,
}

impl Overlay {
    /// Returns the number of changed entries and facts.
    pub(crate) fn len(&self) -> usize {
        self.entries.len() + self.facts.len()
    }
}
