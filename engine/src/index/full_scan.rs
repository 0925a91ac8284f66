//! Full iteration over the checkpointed index, for comparison with the segments.
//!
//! Guarantees: one item is in memory at a time.
//! Non-goals: the overlays over the checkpoint.

use std::ops::Bound;
use std::sync::Arc;

use super::background_verify::END_OF_KEYS;
use super::fact::Fact;
use super::tables::{damaged, unusable};
use super::{Index, View};
use crate::error::Result;
use crate::format::{Entry, SegmentId, SegmentUsage, entry_key};
use crate::name::{FactName, ObjectName};

impl Index {
    /// Iterates over the keys and encoded entries in key order.
    pub(crate) fn each_entry(
        &self,
        mut each: impl FnMut(&[u8], &[u8]) -> Result<()>,
    ) -> Result<()> {
        self.read_all(|view| {
            for item in view.checkpointed.entries_from(Bound::Unbounded, &END_OF_KEYS)? {
                let (key, value) = item.map_err(unusable)?;
                each(key.value(), value.value())?;
            }
            Ok(())
        })
    }

    /// Decodes an entry.
    pub(crate) fn entry_of(key: &[u8], value: &[u8]) -> Result<Entry> {
        Entry::decode(key, value).map_err(damaged)
    }

    /// Decodes the key of an entry.
    pub(crate) fn name_of(key: &[u8]) -> Result<ObjectName> {
        entry_key::decode(key).map_err(damaged)
    }

    /// Iterates over all facts by name.
    pub(crate) fn each_fact(
        &self,
        mut each: impl FnMut(FactName, Arc<Fact>) -> Result<()>,
    ) -> Result<()> {
        self.read_all(|view| {
            for item in view.checkpointed.facts_from(Bound::Unbounded)? {
                let (name, fact) = item?;
                each(name, fact)?;
            }
            Ok(())
        })
    }

    /// Iterates over all segments with usage, by id.
    pub(crate) fn each_segment(
        &self,
        mut each: impl FnMut(SegmentId, SegmentUsage) -> Result<()>,
    ) -> Result<()> {
        self.read_all(|view| {
            for item in view.checkpointed.segments_in_order()? {
                let (id, usage) = item?;
                each(id, usage)?;
            }
            Ok(())
        })
    }

    fn read_all(&self, read: impl FnOnce(&View) -> Result<()>) -> Result<()> {
        let view = self.view();
        Self::guard(|| read(&view))
    }
}
