//! Power-cut semantics of the simulated disk.
//!
//! Guarantees: synced data survives; policy and seed decide about the rest, within what a device can leave: a sector
//! is whole and has the content of the file at one moment.
//! Non-goals: faults while the machine is running.

use std::collections::BTreeSet;

use super::sim::LossPolicy;
use super::sim_image::{PAGE_BYTES, pages, sectors};
use super::sim_journal::{Change, Pending, take_renames_along};
use super::sim_state::{File, State};
use crate::rng::{Rng, SeededRng};

impl State {
    /// Cuts power, possibly in the middle of a change.
    pub(super) fn lose_power(&mut self, change: Option<&Change>) {
        self.off = true;
        if let Some(change) = change {
            if let Change::Name { file, .. } = change {
                self.files.entry(*file).or_default();
                self.next_id = self.next_id.max(file + 1);
            }
            self.journal.push(Pending::new(change.clone(), true));
        }
    }

    /// Turns power on: the surviving part of the journal becomes durable, and only the durable state remains.
    pub(super) fn power_on(&mut self, policy: LossPolicy, seed: u64) {
        let journal = std::mem::take(&mut self.journal);
        self.lose(&journal, policy, &SeededRng::new(seed));
        self.durable.forget_unreachable();
        self.live = self.durable.clone();
        let named: BTreeSet<u64> = self.live.files.values().copied().collect();
        self.files.retain(|id, _| named.contains(id));
        for file in self.files.values_mut() {
            let live = file.durable.clone();
            let reserved_pages = file.reserved_pages.min(live.bytes_len().div_ceil(PAGE_BYTES));
            let (durable, punched) = (live.clone(), std::mem::take(&mut file.punched));
            *file = File { live, durable, reserved_pages, punched, ..File::default() };
            file.count_pages();
        }
        self.generation += 1;
        self.off = false;
        self.cut_after = None;
        self.locked = false;
    }

    /// Simulates a process crash: operations in progress end; the page cache of the machine remains.
    pub(super) fn restart_process(&mut self) {
        self.journal.retain(|pending| !pending.in_flight);
        for file in self.files.values_mut() {
            file.handle_count = 0;
        }
        self.generation += 1;
        self.off = false;
        self.cut_after = None;
        self.locked = false;
    }

    /// Makes durable what the policy preserves.
    fn lose(&mut self, journal: &[Pending], policy: LossPolicy, rng: &SeededRng) {
        let done = journal.iter().filter(|pending| !pending.in_flight);
        match policy {
            LossPolicy::KeepSynced => {}
            LossPolicy::KeepAll => done.for_each(|pending| self.persist(&pending.change)),
            LossPolicy::NamesLost => done
                .filter(|pending| pending.change.file().is_some())
                .for_each(|pending| self.persist(&pending.change)),
            LossPolicy::NamesKept => done
                .filter(|pending| pending.change.file().is_none())
                .for_each(|pending| self.persist(&pending.change)),
            LossPolicy::Prefix => {
                let kept = rng.below(journal.len() as u64 + 1);
                let (kept, lost) = journal.split_at(usize::try_from(kept).unwrap_or_default());
                kept.iter().for_each(|pending| self.persist(&pending.change));
                if let Some(Pending { change: change @ Change::Write { .. }, .. }) = lost.first() {
                    self.persist_sectors(&[change], rng);
                }
            }
            LossPolicy::Sectors => {
                let changes: Vec<&Change> = journal.iter().map(|pending| &pending.change).collect();
                self.persist_sectors(&changes, rng);
            }
        }
    }

    fn persist(&mut self, change: &Change) {
        match change {
            Change::Write { file, offset, bytes } => self.file(*file).durable.write(*offset, bytes),
            Change::Len { file, bytes_len } => self.file(*file).durable.set_len(*bytes_len),
            Change::Punch { file, offset, bytes_len } => {
                self.file(*file).durable.punch(*offset, *bytes_len);
            }
            names => self.durable.apply(names),
        }
    }

    /// Makes a random part durable: some sectors of each write, some names, and any one of the lengths of each file.
    ///
    /// A surviving sector has the content of the file at that moment, including earlier writes.
    fn persist_sectors(&mut self, changes: &[&Change], rng: &SeededRng) {
        // Survival probability of a sector, drawn once: sometimes most survive, sometimes hardly any.
        let eighths = 1 + rng.below(7);
        let survives = || rng.below(8) < eighths;
        let ids: BTreeSet<u64> = changes.iter().filter_map(|change| change.file()).collect();
        for id in ids {
            let of_file = || changes.iter().filter(|change| change.file() == Some(id));
            let lengths_kept = rng.below(of_file().count() as u64 + 1);
            let durable = &mut self.file(id).durable;
            let mut replayed = durable.clone();
            let mut bytes_len = durable.bytes_len();
            for (at, change) in (0..).zip(of_file()) {
                if let Change::Write { offset, bytes, .. } = change {
                    replayed.write(*offset, bytes);
                    sectors(*offset, bytes.len() as u64)
                        .filter(|_| survives())
                        .for_each(|sector| durable.take_sector(sector, &replayed));
                }
                if let Change::Punch { offset, bytes_len, .. } = change {
                    replayed.punch(*offset, *bytes_len);
                    let range = *offset..offset + bytes_len;
                    for page in pages(*offset, *bytes_len).filter(|_| survives()) {
                        let start = range.start.max(page * PAGE_BYTES);
                        let end = range.end.min((page + 1) * PAGE_BYTES);
                        durable.punch(start, end - start);
                    }
                }
                if let Change::Len { bytes_len, .. } = change {
                    replayed.set_len(*bytes_len);
                    if at < lengths_kept {
                        durable.trim(*bytes_len);
                    }
                }
                if at < lengths_kept {
                    bytes_len = replayed.bytes_len();
                }
            }
            durable.trim(bytes_len);
        }
        let names: Vec<&Change> =
            changes.iter().copied().filter(|change| change.file().is_none()).collect();
        let mut kept: Vec<bool> = names.iter().map(|_| survives()).collect();
        take_renames_along(&names, &mut kept);
        for (change, _) in names.into_iter().zip(kept).filter(|(_, kept)| *kept) {
            self.durable.apply(change);
        }
    }
}
