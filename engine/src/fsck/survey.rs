//! Survey of a store: STORE file, segment headers, foreign files.
//!
//! Guarantees: one intact copy of a header page suffices.
//! Non-goals: groups, records.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::ops::Range;
use std::sync::Arc;

use uuid::Uuid;

use super::check_state::Check;
use super::finding::{Remedy, Severity};
use crate::disk::{Disk, DiskFile};
use crate::error::{Error, Result};
use crate::format::{
    COMPACTED_FOLDER, LOG_FOLDER, LsnRanges, Malformed, Origin, SEGMENT_HEADER_BYTES, STORE_FILE,
    STORE_FILE_BYTES, SegmentClass, SegmentHeader, SegmentId, SegmentUsage, StoreFile,
};
use crate::limits;
use crate::recovery::CompactionState;
use crate::segment::is_zero;

/// Segment with records, as found on disk.
pub(super) struct SegmentSurvey {
    pub(super) class: SegmentClass,
    pub(super) path: String,
    pub(super) file_bytes: u64,
    /// Header; `None` if neither copy is usable, or if there are only zeros.
    pub(super) header: Option<SegmentHeader>,
    pub(super) origin: Origin,
    /// Whether one copy of the header page is damaged.
    pub(super) has_damaged_header_copy: bool,
    /// End of its groups, as far as its footer or its successor records it.
    pub(super) end: Option<u64>,
    /// Whether compacted segments replaced it, so that its records have no effect.
    pub(super) is_superseded: bool,
    /// Ranges of broken groups.
    pub(super) broken_ranges: Vec<Range<u64>>,
    /// Whether some of its records may be missing.
    pub(super) is_damaged: bool,
    pub(super) records: u64,
    /// Usage of its records that the index should contain.
    pub(super) usage: SegmentUsage,
}

/// All segments with records, and the identity of the store.
pub(super) struct StoreSurvey {
    pub(super) store: Uuid,
    pub(super) segments: BTreeMap<SegmentId, SegmentSurvey>,
    /// LSN ranges that compacted segments replace.
    pub(super) lsn_ranges: LsnRanges,
    /// Compacted segments whose inputs all exist.
    pub(super) redundant: BTreeSet<SegmentId>,
    /// Compacted segments that a record after the index position commits.
    pub(super) committed_later: BTreeSet<SegmentId>,
    /// Nonempty log segments with unreadable headers.
    pub(super) unreadable: BTreeSet<SegmentId>,
}

impl SegmentSurvey {
    /// Adds a broken range; beyond a limit the last one is extended.
    pub(super) fn add_fault(&mut self, stretch: Range<u64>) {
        self.is_damaged = true;
        let is_full = self.broken_ranges.len() == limits::FSCK_SUSPECTS_MAX;
        match self.broken_ranges.last_mut().filter(|_| is_full) {
            Some(last) => last.end = stretch.end,
            None => self.broken_ranges.push(stretch),
        }
    }

    /// Returns whether the offset may be in a broken range.
    pub(super) fn is_faulty_at(&self, offset: u64) -> bool {
        self.broken_ranges.iter().any(|stretch| stretch.contains(&offset))
    }

    /// Returns whether its records are in effect.
    pub(super) fn is_in_effect(&self) -> bool {
        self.header.is_some() && !self.is_superseded
    }
}

impl StoreSurvey {
    /// Returns whether no segment in effect has broken groups.
    pub(super) fn is_whole(&self) -> bool {
        self.segments.values().all(|held| !held.is_in_effect() || held.broken_ranges.is_empty())
    }

    /// Returns the compacted segments, by id.
    pub(super) fn compacted(&self) -> impl Iterator<Item = SegmentId> {
        let is_compacted = |held: &SegmentSurvey| held.class == SegmentClass::Compacted;
        self.segments.iter().filter(move |(_, held)| is_compacted(held)).map(|(id, _)| *id)
    }
}

/// Header page with its findings.
struct Page {
    header: Result<(SegmentHeader, Origin), Malformed>,
    /// Whether both copies are intact.
    is_whole: bool,
}

impl Check<'_, '_> {
    /// Surveys the store; `None` if it cannot be checked at all, with the reason in the report.
    pub(super) fn survey(&mut self) -> Result<Option<StoreSurvey>> {
        let mut held = BTreeMap::new();
        for (folder, class) in
            [(LOG_FOLDER, SegmentClass::Log), (COMPACTED_FOLDER, SegmentClass::Compacted)]
        {
            self.list_segments(folder, class, &mut held)?;
        }
        let mut pages = BTreeMap::new();
        for (id, held) in &held {
            pages.insert(*id, self.read_page(*id, held)?);
        }
        let known = pages.values().filter_map(|page| page.header.as_ref().ok());
        let headers: Vec<_> = known.map(|(header, _)| *header).collect();
        let Some(store) = self.check_store_file(&headers, held.is_empty())? else {
            return Ok(None);
        };
        let mut ground = StoreSurvey {
            store,
            segments: held,
            lsn_ranges: LsnRanges::default(),
            redundant: BTreeSet::new(),
            committed_later: BTreeSet::new(),
            unreadable: BTreeSet::new(),
        };
        for (id, page) in pages {
            self.check_page(&mut ground, id, page);
        }
        let compacted = ground.segments.values().filter(|it| it.class == SegmentClass::Compacted);
        let found = compacted.filter_map(|it| Some((it.header?, it.origin.clone()))).collect();
        let mut compacted = CompactionState::of(found, ground.segments.keys().copied().collect());
        let all: BTreeSet<_> = compacted.ids_found().collect();
        ground.lsn_ranges = compacted.lsn_ranges();
        let superseded = compacted.retain_effective();
        let counting: BTreeSet<_> = compacted.ids_found().collect();
        ground.redundant = all.difference(&counting).copied().collect();
        for id in superseded {
            if let Some(held) = ground.segments.get_mut(&id) {
                held.is_superseded = true;
            }
        }
        Ok(Some(ground))
    }

    fn list_segments(
        &mut self,
        folder: &str,
        class: SegmentClass,
        held: &mut BTreeMap<SegmentId, SegmentSurvey>,
    ) -> Result<()> {
        let names = self.disk.list(folder);
        for name in names.map_err(|source| Error::io(format!("listing {folder}"), source))? {
            let path = format!("{folder}/{name}");
            let Some(id) = SegmentId::from_file_name(&name).filter(|id| !held.contains_key(id))
            else {
                let what = "a file here is not a segment of this store";
                self.found(Severity::Note, &path, 0, what, Remedy::None);
                continue;
            };
            // A file that cannot be opened is reported when it is read.
            let file = self.disk.open(&path).and_then(|file| file.bytes_len());
            let file_bytes = file.unwrap_or(0);
            let usage = SegmentUsage::empty(class);
            held.insert(
                id,
                SegmentSurvey {
                    class,
                    path,
                    file_bytes,
                    header: None,
                    origin: Origin::default(),
                    has_damaged_header_copy: false,
                    end: None,
                    is_superseded: false,
                    broken_ranges: Vec::new(),
                    is_damaged: false,
                    records: 0,
                    usage,
                },
            );
        }
        Ok(())
    }

    fn read_page(&mut self, id: SegmentId, held: &SegmentSurvey) -> Result<Page> {
        let file = self.disk.open(&held.path);
        let bytes = file.and_then(|file| read_up_to(file.as_ref(), 0, SEGMENT_HEADER_BYTES));
        let Ok(bytes) = bytes else {
            return Ok(Page { header: Err(Malformed::Unreadable), is_whole: false });
        };
        self.read_on(bytes.len() as u64)?;
        let header = SegmentHeader::decode_page(&bytes).and_then(|header| {
            if (header.segment, header.class) != (id, held.class) {
                return Err(Malformed::Misplaced);
            }
            let origin = match header.class {
                SegmentClass::Compacted => Origin::decode_page(&bytes, &header)?,
                SegmentClass::Log | SegmentClass::Big => Origin::default(),
            };
            Ok((header, origin))
        });
        let is_whole =
            header.as_ref().is_ok_and(|(header, origin)| bytes == page_of(header, origin));
        Ok(Page { header, is_whole })
    }

    /// Determines the id of the store; `None` if it is unknown.
    fn check_store_file(
        &mut self,
        headers: &[SegmentHeader],
        is_empty: bool,
    ) -> Result<Option<Uuid>> {
        let found = match self.disk.open(STORE_FILE) {
            Ok(file) => {
                let bytes = read_up_to(file.as_ref(), 0, STORE_FILE_BYTES + 1)
                    .map_err(|source| Error::io("reading STORE", source))?;
                self.read_on(bytes.len() as u64)?;
                StoreFile::decode(&bytes)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Err(Malformed::Missing),
            Err(source) => return Err(Error::io("reading STORE", source)),
        };
        let mut named: Vec<_> = headers.iter().map(|header| header.store).collect();
        named.sort_unstable();
        named.dedup();
        let found_uuid = match found {
            Ok(store) if named.is_empty() || named.contains(&store.store) => {
                return Ok(Some(store.store));
            }
            Err(reason @ (Malformed::Version(_) | Malformed::Features(_))) => {
                return Err(Error::NotAStore(format!("STORE cannot be read: {reason}")));
            }
            Ok(store) => Some(store.store),
            Err(_) => None,
        };
        let reason = found.err().unwrap_or(Malformed::Misplaced);
        if let [store] = named.as_slice() {
            let created_ms = headers.iter().map(|header| header.created_ms).min().unwrap_or(0);
            let remedy = Remedy::RewriteStoreFile { store: *store, created_ms };
            let what = format!("{reason}; the segments identify the store");
            self.found(Severity::Repairable, STORE_FILE, 0, what, remedy);
            return Ok(Some(*store));
        }
        if is_empty {
            let what = format!("{reason}: creation of the store was interrupted; it is empty");
            self.found(Severity::Note, STORE_FILE, 0, what, Remedy::None);
        } else {
            let what = format!("{reason}, and the segments have different store ids");
            self.found(Severity::Loss, STORE_FILE, 0, what, Remedy::None);
        }
        Ok(found_uuid)
    }

    fn check_page(&mut self, ground: &mut StoreSurvey, id: SegmentId, page: Page) {
        let store = ground.store;
        let Some(held) = ground.segments.get_mut(&id) else { return };
        let (class, path) = (held.class, held.path.clone());
        let header = page.header.and_then(|(header, origin)| {
            if header.store == store { Ok((header, origin)) } else { Err(Malformed::Misplaced) }
        });
        // If the file is unreadable, it may have groups.
        let file = self.disk.open(&path);
        let has_groups = || file.and_then(|file| has_groups(file.as_ref())).unwrap_or(true);
        match header {
            Ok((header, origin)) => {
                held.has_damaged_header_copy = !page.is_whole;
                // Whether a compacted segment is in use is not known yet.
                if held.has_damaged_header_copy && class == SegmentClass::Log {
                    let what = "one of the two header copies is corrupt";
                    // A crash can tear the page before anything is written after it.
                    let severity = if has_groups() { Severity::Repairable } else { Severity::Note };
                    let remedy = Remedy::RewriteHeader { segment: id, class };
                    self.found(severity, &path, 0, what, remedy);
                }
                (held.header, held.origin) = (Some(header), origin);
            }
            Err(_) if class == SegmentClass::Log && !has_groups() => {}
            Err(reason) => {
                held.is_damaged = true;
                if class == SegmentClass::Log {
                    ground.unreadable.insert(id);
                    let what = match reason {
                        Malformed::Unreadable => {
                            format!("{reason}: header unreadable, so the segment is unreadable")
                        }
                        _ => format!("{reason}, in both header copies: the segment is unreadable"),
                    };
                    self.found(Severity::Note, &path, 0, what, Remedy::None);
                }
            }
        }
    }

    /// Opens a listed file.
    pub(super) fn open(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        open(self.disk.as_ref(), path)
    }
}

/// Opens a listed file.
pub(super) fn open(disk: &dyn Disk, path: &str) -> Result<Arc<dyn DiskFile>> {
    disk.open(path).map_err(|source| Error::io(format!("opening {path}"), source))
}

/// Encodes the expected header page.
pub(super) fn page_of(header: &SegmentHeader, origin: &Origin) -> Vec<u8> {
    match header.class {
        SegmentClass::Compacted => origin.encode_page(header),
        SegmentClass::Log | SegmentClass::Big => header.encode_page(),
    }
}

fn has_groups(file: &dyn DiskFile) -> std::io::Result<bool> {
    Ok(!is_zero(file, SEGMENT_HEADER_BYTES as u64)?)
}

/// Reads a file from an offset on, up to a maximum length.
pub(super) fn read_up_to(
    file: &dyn DiskFile,
    offset: u64,
    bytes: usize,
) -> std::io::Result<Vec<u8>> {
    let there = file.bytes_len()?.saturating_sub(offset).min(bytes as u64);
    let mut buffer = vec![0; usize::try_from(there).unwrap_or(0)];
    if !buffer.is_empty() {
        file.read_at(offset, &mut buffer)?;
    }
    Ok(buffer)
}
