//! Writes sorted entries into redb so that pages fill up.
//!
//! redb splits an overflowing page in half, and ascending inserts then fill only the second half. Keys that are
//! inserted in order between two existing keys, like the new files of a folder, would leave every page half full.
//! Runs of keys between two existing keys are therefore written by a cursor, which fills the pages. Scattered single
//! keys are inserted one by one: a cursor would cost more and gain nothing.
//!
//! Non-goals: the choice of entries, and the other tables.

use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdMap;
use redb::Table;

use super::tables::unusable;
use crate::error::Result;
use crate::format::Entry;

/// Inserts changed entries into the table and removes deleted ones.
pub(super) fn write_entries(
    table: &mut Table<'_, &'static [u8], &'static [u8]>,
    changed: &OrdMap<Arc<[u8]>, Option<Arc<Entry>>>,
) -> Result<()> {
    let mut changed = changed.iter().peekable();
    let mut run = Vec::new();
    while let Some((key, entry)) = changed.next() {
        let Some(entry) = entry else {
            table.remove(&**key).map_err(unusable)?;
            continue;
        };
        let mut gap = table.lower_bound_mut(Bound::Included(&**key)).map_err(unusable)?;
        let end = gap.peek_next().map_err(unusable)?.map(|(end, _)| end.value().to_vec());
        let is_in_gap = |key: &[u8]| end.as_deref().is_none_or(|end| key < end);
        run.push((key, entry));
        while let Some((key, Some(entry))) =
            changed.next_if(|(key, entry)| entry.is_some() && is_in_gap(key))
        {
            run.push((key, entry));
        }
        if run.len() >= RUN_MIN {
            for (key, entry) in run.drain(..) {
                gap.insert_before(&**key, entry.encode(key).as_slice()).map_err(unusable)?;
            }
            gap.close().map_err(unusable)?;
        } else {
            drop(gap);
            for (key, entry) in run.drain(..) {
                table.insert(&**key, entry.encode(key).as_slice()).map_err(unusable)?;
            }
        }
    }
    Ok(())
}

/// Minimum length of a run that is written by a cursor.
const RUN_MIN: usize = 4;

#[cfg(test)]
mod tests {
    use redb::{Database, ReadableDatabase, ReadableTable, ReadableTableMetadata};

    use super::*;
    use crate::format::{EntryContent, Location, ObjectMeta, SegmentId};
    use crate::index::tables::ENTRIES;

    type Changed = OrdMap<Arc<[u8]>, Option<Arc<Entry>>>;

    fn entry(lsn: u64) -> Option<Arc<Entry>> {
        let segment = SegmentId::new(1).unwrap();
        Some(Arc::new(Entry {
            lsn,
            record: Location { segment, offset: lsn * 4_000, head_bytes: 150 },
            meta: ObjectMeta {
                content_type: "image/jpeg".to_owned(),
                hash: [lsn as u8; 32],
                created_ms: 1_800_000_000_000 + lsn,
                modified_ms: 1_800_000_000_000 + lsn,
                flags: Default::default(),
                attributes: Vec::new(),
            },
            content: EntryContent::Inline { bytes: 4_096 },
        }))
    }

    /// Returns the key of the object with this number in a folder.
    fn key(folder: u64, number: u64) -> Arc<[u8]> {
        format!("bucket\0\x02folder {folder:03}\0\x03photograph {number:08}.jpg").as_bytes().into()
    }

    fn empty() -> Database {
        let backend = redb::backends::InMemoryBackend::new();
        redb::Builder::new().create_with_backend(backend).unwrap()
    }

    fn write(database: &Database, changed: &Changed) {
        let transaction = database.begin_write().unwrap();
        write_entries(&mut transaction.open_table(ENTRIES).unwrap(), changed).unwrap();
        transaction.commit().unwrap();
    }

    /// Returns all keys with the LSNs of their entries.
    fn contents(database: &Database) -> Vec<(Vec<u8>, u64)> {
        let table = database.begin_read().unwrap().open_table(ENTRIES).unwrap();
        let found = table.iter().unwrap().map(|item| {
            let (key, value) = item.unwrap();
            (key.value().to_vec(), Entry::decode(key.value(), value.value()).unwrap().lsn)
        });
        found.collect()
    }

    /// Returns the fill ratio of the entry pages, from 0 to 1.
    fn fill(database: &Database) -> f64 {
        let table = database.begin_read().unwrap().open_table(ENTRIES).unwrap();
        let stats = table.stats().unwrap();
        stats.stored_bytes() as f64 / (stats.leaf_pages() * 4_096) as f64
    }

    #[test]
    fn sequential_inserts_fill_pages() {
        let database = empty();
        let mut lsn = 0;
        for checkpoint in 0..6 {
            let mut changed = Changed::new();
            for number in 0..40 {
                for folder in 0..20 {
                    lsn += 1;
                    changed.insert(key(folder, checkpoint * 40 + number), entry(lsn));
                }
            }
            write(&database, &changed);
        }
        assert_eq!(contents(&database).len(), 6 * 40 * 20);
        // Nearly the maximum: each pair needs 8 bytes more, and the last page of a folder is not full.
        assert!(fill(&database) > 0.75, "{}", fill(&database));
    }

    #[test]
    fn random_inserts_fill_pages_like_a_btree() {
        let database = empty();
        let mut lsn = 0_u64;
        for _ in 0..6 {
            let mut changed = Changed::new();
            for _ in 0..800 {
                lsn += 1;
                let number = lsn.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 34;
                changed.insert(key(number % 1_000, number / 1_000), entry(lsn));
            }
            write(&database, &changed);
        }
        assert_eq!(contents(&database).len(), 6 * 800);
        assert!(fill(&database) > 0.6, "{}", fill(&database));
    }

    #[test]
    fn entry_writer_matches_btreemap_model() {
        let database = empty();
        let mut model = std::collections::BTreeMap::new();
        let mut seed = 7_u64;
        let mut next = |bound: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % bound
        };
        for round in 0..60 {
            let mut changed = Changed::new();
            for _ in 0..next(60) {
                // Long runs between two keys, single keys, existing keys, and removals of any of these.
                let (folder, first, count) = (next(6), next(400), 1 + next(30) * next(2));
                for number in first..first + count {
                    let gone = next(5) == 0;
                    changed.insert(key(folder, number), if gone { None } else { entry(round) });
                }
            }
            write(&database, &changed);
            for (key, entry) in &changed {
                match entry {
                    Some(entry) => model.insert(key.to_vec(), entry.lsn),
                    None => model.remove(&key.to_vec()),
                };
            }
            let expected: Vec<_> = model.iter().map(|(key, lsn)| (key.clone(), *lsn)).collect();
            assert!(contents(&database) == expected, "round {round}");
        }
        assert!(model.len() > 500, "{} keys", model.len());
    }
}
