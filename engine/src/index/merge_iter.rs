//! Merging iterator over the overlays and redb, in key order.
//!
//! Guarantees: each key appears once, with the value of the newest layer; deleted keys are omitted. The cost is
//! proportional to the items read, plus the deletions between them.

use std::iter::Peekable;
use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdMap;

use super::fact::Fact;
use super::overlay::Overlay;
use super::tables::{ByBytes, Checkpointed, damaged, unusable};
use super::view::View;
use crate::error::{Error, Result};
use crate::format::{Entry, Malformed, Usage};
use crate::name::FactName;

/// Item of a layer: a key and its value, or `None` if it is deleted.
type LayerItem<K, V> = Result<(K, Option<V>)>;
type Layer<'a, K, V> = Box<dyn Iterator<Item = LayerItem<K, V>> + 'a>;

/// Accessors of the rows of one table in each layer.
struct Rows<S, V> {
    in_overlay: fn(&Overlay) -> &OrdMap<Arc<[u8]>, S>,
    said: fn(&S) -> Option<V>,
    in_redb: fn(&Checkpointed) -> &ByBytes,
    decode: fn(&[u8], &[u8]) -> Result<V, Malformed>,
}

/// Merged layers, newest first.
pub(super) struct Merge<'a, K, V> {
    layers: Vec<Peekable<Layer<'a, K, V>>>,
}

impl<K: Ord + Clone, V> Iterator for Merge<'_, K, V> {
    type Item = Result<(K, V)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (key, value) = match self.newest()? {
                Ok(said) => said,
                Err(error) => return Some(Err(error)),
            };
            if let Some(value) = value {
                return Some(Ok((key, value)));
            }
        }
    }
}

impl<'a, K: Ord + Clone, V> Merge<'a, K, V> {
    fn new(layers: Vec<Layer<'a, K, V>>) -> Self {
        Self { layers: layers.into_iter().map(Iterator::peekable).collect() }
    }

    /// Advances all layers past the smallest key and returns it with the value of the newest layer.
    fn newest(&mut self) -> Option<LayerItem<K, V>> {
        let mut least: Option<K> = None;
        let mut failed = None;
        for (index, layer) in self.layers.iter_mut().enumerate() {
            match layer.peek() {
                Some(Ok((key, _))) if least.as_ref().is_none_or(|least| key < least) => {
                    least = Some(key.clone());
                }
                Some(Err(_)) => failed = Some(index),
                _ => {}
            }
        }
        if let Some(layer) = failed.and_then(|index| self.layers.get_mut(index)) {
            return layer.next();
        }
        let least = least?;
        let mut newest = None;
        for layer in &mut self.layers {
            if let Some(said) =
                layer.next_if(|said| said.as_ref().is_ok_and(|(key, _)| *key == least))
            {
                newest = newest.or(Some(said));
            }
        }
        newest
    }
}

impl View {
    /// Iterates over the entries with keys from a bound up to `to`, exclusive.
    pub(super) fn entries(
        &self,
        from: Bound<&[u8]>,
        to: &[u8],
    ) -> Result<Merge<'_, Arc<[u8]>, Arc<Entry>>> {
        let rows = Rows {
            in_overlay: |overlay| &overlay.entries,
            said: Option::clone,
            in_redb: |checkpointed| &checkpointed.entries,
            decode: |key, value| Entry::decode(key, value).map(Arc::new),
        };
        self.merged(from, to, rows)
    }

    /// Iterates over the keys of the same entries without decoding values, for fast scans of all names.
    pub(crate) fn entry_keys(
        &self,
        from: Bound<&[u8]>,
        to: &[u8],
    ) -> Result<impl Iterator<Item = Result<Arc<[u8]>>>> {
        let rows = Rows {
            in_overlay: |overlay| &overlay.entries,
            said: |entry| entry.as_ref().map(|_| ()),
            in_redb: |checkpointed| &checkpointed.entries,
            decode: |_, _| Ok(()),
        };
        Ok(self.merged(from, to, rows)?.map(|item| item.map(|(key, ())| key)))
    }

    /// Iterates over the usage counters with keys from a bound up to `to`, exclusive.
    pub(super) fn usages(
        &self,
        from: Bound<&[u8]>,
        to: &[u8],
    ) -> Result<Merge<'_, Arc<[u8]>, Usage>> {
        let rows = Rows {
            in_overlay: |overlay| &overlay.usage,
            said: |usage| (!usage.is_empty()).then_some(*usage),
            in_redb: |checkpointed| &checkpointed.usage,
            decode: |_, value| Usage::decode(value),
        };
        self.merged(from, to, rows)
    }

    fn merged<S: 'static, V: 'static>(
        &self,
        from: Bound<&[u8]>,
        to: &[u8],
        rows: Rows<S, V>,
    ) -> Result<Merge<'_, Arc<[u8]>, V>> {
        if !is_range(from, to) {
            return Ok(Merge { layers: Vec::new() });
        }
        let mut layers: Vec<Layer<'_, _, _>> = Vec::new();
        for overlay in self.overlays() {
            let rows_of = (rows.in_overlay)(overlay);
            let range = rows_of.range::<_, [u8]>((from, Bound::Excluded(to)));
            layers.push(Box::new(
                range.map(move |(key, row)| Ok((Arc::clone(key), (rows.said)(row)))),
            ));
        }
        let table = (rows.in_redb)(&self.checkpointed);
        let range = table.range::<&[u8]>((from, Bound::Excluded(to))).map_err(unusable)?;
        layers.push(Box::new(range.map(move |item| {
            let (key, value) = item.map_err(unusable)?;
            let value = (rows.decode)(key.value(), value.value()).map_err(damaged)?;
            Ok::<_, Error>((Arc::from(key.value()), Some(value)))
        })));
        Ok(Merge::new(layers))
    }

    /// Iterates over the facts whose names begin with `prefix`, after a name.
    pub(crate) fn facts(
        &self,
        prefix: &str,
        after: Option<&FactName>,
        limit: usize,
    ) -> Result<Vec<(FactName, Arc<Fact>)>> {
        let from = match after {
            Some(name) if name.as_str() >= prefix => Bound::Excluded(name.as_str()),
            _ => Bound::Included(prefix),
        };
        let mut layers: Vec<Layer<'_, _, _>> = Vec::new();
        for overlay in self.overlays() {
            let range = overlay.facts.range::<_, str>((from, Bound::Unbounded));
            layers.push(Box::new(range.map(|(name, fact)| Ok((name.clone(), fact.clone())))));
        }
        let range = self.checkpointed.facts_from(from.map(str::as_bytes))?;
        layers.push(Box::new(range.map(|item| item.map(|(name, fact)| (name, Some(fact))))));
        Merge::new(layers)
            .take_while(|item| {
                item.as_ref().map_or(true, |(name, _)| name.as_str().starts_with(prefix))
            })
            .take(limit)
            .collect()
    }
}

/// Returns whether the range is not inverted; the maps panic on an inverted range.
fn is_range(from: Bound<&[u8]>, to: &[u8]) -> bool {
    match from {
        Bound::Included(from) | Bound::Excluded(from) => from < to,
        Bound::Unbounded => true,
    }
}
