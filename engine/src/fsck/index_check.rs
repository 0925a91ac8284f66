//! Checks the index file: opening, facts, usage of segments.
//!
//! The index is opened through a copy-on-write view, so that writes of redb stay in memory.
//!
//! Non-goals: the correctness of entries.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::check_state::{Check, IndexFaults};
use super::finding::{Remedy, Severity};
use super::name_state::segment_offset;
use super::survey::StoreSurvey;
use crate::error::{Corruption, Error, Result};
use crate::format::{Entry, EntryContent, Malformed, SegmentClass, SegmentId, SegmentUsage};
use crate::index::{Fact, INDEX_FILE, Index, IndexLocation};
use crate::limits;
use crate::store::Environment;

/// Maximum number of bytes of the index to read ahead.
const BEGUN_BYTES_MAX: u64 = 256 << 20;

/// Bytes and count of the records that the index refers to, for each segment.
#[derive(Default)]
pub(super) struct Pointed {
    live: BTreeMap<SegmentId, (u64, u64)>,
    big: u64,
}

impl Pointed {
    /// Adds the record that an entry refers to.
    pub(super) fn add_entry(&mut self, entry: &Entry) {
        let body = match entry.content {
            EntryContent::Inline { bytes } => bytes,
            EntryContent::Big { .. } => {
                self.big += 1;
                0
            }
            EntryContent::Lost { .. } => 0,
        };
        self.add(segment_offset(&entry.record).0, u64::from(entry.record.head_bytes) + body);
    }

    /// Adds the record that a fact refers to.
    pub(super) fn add_fact(&mut self, fact: &Fact) {
        let bytes = u64::from(fact.record.head_bytes) + fact.value.len() as u64;
        self.add(fact.record.segment, bytes);
    }

    fn add(&mut self, segment: SegmentId, bytes: u64) {
        let live = self.live.entry(segment).or_default();
        live.0 += bytes;
        live.1 += 1;
    }
}

impl Check<'_, '_> {
    /// Opens the index. If it is unusable, the other checks run without it. Its entries are verified later, when they
    /// are compared with the records.
    pub(super) fn open_index(&mut self, ground: &StoreSurvey, view: &Environment) -> Result<()> {
        match self.disk.open(INDEX_FILE) {
            Ok(file) => {
                let bytes = file.bytes_len();
                let bytes = bytes.map_err(|source| Error::io("reading the index", source))?;
                // The index is read in random order, page by page.
                file.prefetch(0..bytes.min(BEGUN_BYTES_MAX));
                self.read_on(bytes)?;
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                if !ground.segments.is_empty() {
                    let what = "the index is missing; opening the store rebuilds it from the \
                        segments";
                    self.found(Severity::Note, INDEX_FILE, 0, what, Remedy::RebuildIndex);
                }
                return Ok(());
            }
            Err(source) => return Err(Error::io(format!("opening {INDEX_FILE}"), source)),
        }
        let place = IndexLocation {
            disk: Arc::clone(&self.disk),
            clock: Arc::clone(&view.clock),
            store: ground.store,
            cache_bytes: limits::INDEX_CACHE_BYTES,
        };
        let mut retained = BTreeSet::new();
        let opened = Index::open(place, u64::MAX).and_then(|index| {
            let position = index.checkpointed();
            let (mut segments, mut names) = (0_u64, 0_u64);
            index.each_segment(|_, usage| {
                segments += 1;
                names = names.saturating_add(usage.live_count);
                Ok(())
            })?;
            index.each_fact(|_, _| Ok(()))?;
            retained = index.view().retained()?.into_iter().map(|(id, _)| id).collect();
            Ok((index, position, segments, names))
        });
        match opened {
            Ok((index, None, segments, _)) if segments > 0 => {
                index.close();
                let what = "the index is incomplete; opening the store rebuilds it";
                self.found(Severity::Note, INDEX_FILE, 0, what, Remedy::SkipDamage);
            }
            Ok((index, position, _, names)) => {
                self.names.expect(names);
                self.retained = retained;
                self.applied_lsn = position.map_or(0, |position| position.lsn);
                self.index = Some(Arc::new(index));
                self.report.has_index = true;
            }
            Err(Error::Corrupt(Corruption { reason: Malformed::Version(_), .. })) => {
                let what = "the index has another version; opening the store rebuilds it";
                self.found(Severity::Note, INDEX_FILE, 0, what, Remedy::RebuildIndex);
            }
            Err(error) => self.report_unusable_index(ground, &error),
        }
        Ok(())
    }

    /// Reports that the other checks run without the index.
    pub(super) fn report_unusable_index(&mut self, ground: &StoreSurvey, error: &Error) {
        let what = format!("the index is unusable: {error}");
        // If nothing was ever written, the creation of the store was interrupted.
        let is_new = ground.segments.values().all(|held| held.header.is_none());
        let severity = if is_new { Severity::Note } else { Severity::Repairable };
        self.found(severity, INDEX_FILE, 0, what, Remedy::RebuildIndex);
    }

    /// Marks the segments that the index does not count and that others replaced.
    pub(super) fn settle_superseded(&self, ground: &mut StoreSurvey) {
        if self.index.is_none() {
            return;
        }
        let mut replaced: Vec<SegmentId> = Vec::new();
        for id in ground.compacted() {
            if self.counted(id).is_some()
                && let Some(held) = ground.segments.get(&id)
            {
                replaced.extend(&held.origin.inputs);
            }
        }
        for (id, held) in &mut ground.segments {
            let is_known = held.header.is_some_and(|header| header.base_lsn <= self.applied_lsn);
            held.is_superseded = is_known && replaced.contains(id) && self.counted(*id).is_none();
        }
    }

    /// Compares the usage of each segment in the index with the segment.
    pub(super) fn check_usage(
        &mut self,
        ground: &StoreSurvey,
        pointed: &Pointed,
        faults: &mut IndexFaults,
    ) -> Result<()> {
        let Some(index) = self.index.clone() else { return Ok(()) };
        let mut big = 0_u64;
        let mut missing = Vec::new();
        let mut counted = BTreeMap::new();
        index.each_segment(|id, usage| {
            if usage.class == SegmentClass::Big {
                big += 1;
            } else {
                counted.insert(id, usage);
            }
            Ok(())
        })?;
        for (id, usage) in &counted {
            let live = pointed.live.get(id).copied().unwrap_or_default();
            if (usage.live_bytes, usage.live_count) != live {
                faults.add(|| format!("wrong live record count of segment {id}"));
            }
            let punched: u64 = self.punched.get(id).map_or(0, |records| records.values().sum());
            // If the log has a gap, a punch record may be missing.
            if usage.punched_bytes != punched && !self.gaps.touch(0, u64::MAX) {
                faults.add(|| format!("wrong reclaimed byte count of segment {id}"));
            }
            match ground.segments.get(id) {
                None => missing.push((*id, *usage)),
                Some(held) if held.header.is_some() && !held.is_damaged => {
                    let is_same = (usage.record_bytes, usage.record_count, usage.tombstone_count)
                        == (
                            held.usage.record_bytes,
                            held.usage.record_count,
                            held.usage.tombstone_count,
                        );
                    if !is_same || usage.class != held.class {
                        faults.add(|| format!("wrong record count of segment {id}"));
                    }
                }
                Some(_) => {}
            }
        }
        for (id, usage) in missing {
            self.missing_segment(id, usage);
        }
        for (id, live) in &pointed.live {
            if !counted.contains_key(id) {
                faults.add(|| format!("{} references to segment {id} are not counted", live.1));
            }
        }
        let unknown = ground.segments.iter().find(|(id, held)| {
            held.usage.record_count > 0 && held.is_in_effect() && !counted.contains_key(id)
        });
        if let Some((id, _)) = unknown {
            faults.add(|| format!("segment {id} is missing"));
        }
        if big != pointed.big {
            faults.add(|| "it counts big segments without an object".to_owned());
        }
        Ok(())
    }

    fn missing_segment(&mut self, id: SegmentId, usage: SegmentUsage) {
        let path = id.path(usage.class);
        let what = format!("the file is missing; {} of its records are live", usage.live_count);
        self.found(Severity::Note, &path, 0, what, Remedy::None);
    }

    /// Reports the faults of the index as a whole.
    pub(super) fn report_index_faults(&mut self, faults: IndexFaults) {
        if let Some(first) = faults.first {
            let more = match faults.count {
                1 => String::new(),
                count => format!("; {} more contradictions", count - 1),
            };
            let what = format!("the index contradicts the segments: {first}{more}");
            self.found(Severity::Repairable, INDEX_FILE, 0, what, Remedy::RebuildIndex);
        }
    }
}
