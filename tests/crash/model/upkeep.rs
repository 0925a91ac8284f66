//! Background work concurrent with the batches: checkpoints, rolls, watermarks, compactions, backups.

use std::sync::Arc;

use engine::compaction::CompactionRules;
use engine::disk::Disk;
use engine::disk::sim::LossPolicy;
use engine::rng::Rng;
use engine::{Error, Store};
use tests::store::{Contents, World, idle, roll_over};

use super::run::Run;

impl Run {
    pub(super) fn checkpoint(&mut self, store: &Store) -> Result<(), String> {
        match store.checkpoint() {
            Ok(written) => {
                self.tally.count_many("checkpoints", u64::from(written));
                Ok(())
            }
            Err(error) => self.excuse(store, "a checkpoint", error),
        }
    }

    pub(super) fn roll_over(&mut self, store: &Store) -> Result<(), String> {
        self.tally.count("rolls");
        match roll_over(store) {
            Ok(()) => Ok(()),
            Err(error) => self.excuse(store, "a roll", error),
        }
    }

    pub(super) fn idle(&mut self, store: &Store) -> Result<(), String> {
        idle(store);
        self.tally.count("watermarks");
        Ok(())
    }

    /// Compacts; other operations run concurrently, and it may be stopped.
    pub(super) fn compact(&mut self, store: &Store) -> Result<(), String> {
        self.was_compacted = true;
        let rules = match self.below(4) {
            0 => CompactionRules::BACKGROUND,
            1 => CompactionRules::LOW_SPACE,
            _ => CompactionRules { store_dead_percent_min: 0, segment_dead_percent_min: 1 },
        };
        self.tally.count("compactions begun");
        let done = store.compact(rules, None, &mut |_| self.run_concurrent(store));
        match done {
            Ok(report) => {
                if !report.skipped.is_empty() && !self.was_hit() {
                    return Err(format!("compaction finds damage: {:?}", report.skipped));
                }
                self.tally.count_many("compactions that replaced something", report.steps.min(1));
                self.tally.count_many("segments replaced", report.segments_removed);
                self.tally.count_many("removals dropped", report.tombstones_dropped);
                self.tally.count_many("segments punched", u64::from(report.punched_bytes > 0));
                Ok(())
            }
            Err(Error::Cancelled) => {
                self.tally.count("compactions stopped");
                Ok(())
            }
            Err(error) => self.excuse(store, "a compaction", error),
        }
    }

    pub(super) fn was_hit(&self) -> bool {
        let disk = &self.world.disk;
        disk.is_off() || disk.fault_count() > self.trouble.hits_before
    }

    /// Scrubs; other operations run concurrently, and it may be stopped.
    pub(super) fn scrub(&mut self, store: &Store) -> Result<(), String> {
        match store.scrub(&mut |_| self.run_concurrent(store)) {
            Ok(report) if report.damage.count() > 0 && !self.was_hit() => {
                Err(format!("a scrub finds damage: {:?}", report.damage))
            }
            Ok(_) => {
                self.tally.count("scrubs");
                Ok(())
            }
            Err(Error::Cancelled) => Ok(()),
            Err(error) => self.excuse(store, "a scrub", error),
        }
    }

    /// Backs up to another machine, whose power may be cut; the copy is a state of the store during the backup.
    pub(super) fn back_up(&mut self, store: &Store) -> Result<(), String> {
        let image = self.image.clone();
        if self.below(4) == 0 {
            image.cut_power_after(image.operations() + self.below(60));
        }
        let before = self.model.clone();
        let to: Arc<dyn Disk> = Arc::new(image.clone());
        let mut is_stopped = false;
        // The published state is fixed when the backup begins, so concurrent changes are not in the copy, except for
        // those before the first byte.
        let done = store.backup(&to, &mut |_| {
            let flow = self.run_concurrent(store);
            is_stopped |= flow.is_break();
            flow
        });
        image.cut_power_after(u64::MAX);
        let copied = match done {
            Ok(report) if report.damage_count > 0 && !self.was_hit() => {
                return Err(format!("a backup finds damage: {:?}", report.damage));
            }
            Ok(report) => report.damage_count == 0,
            Err(Error::Cancelled) if is_stopped => false,
            Err(_) if image.is_off() => false,
            Err(error) => {
                self.excuse(store, "a backup", error)?;
                false
            }
        };
        if image.is_off() || self.below(4) == 0 {
            self.tally.count("power cuts of a backup's machine");
            let policy = LossPolicy::ALL[self.below(6) as usize];
            image.power_on(policy, self.chance.next_u64());
        }
        if !copied {
            return Ok(());
        }
        self.tally.count("backups");
        let (store, report) = World::on(image.fork(), 8)
            .try_open()
            .map_err(|error| format!("a backup does not open: {error}"))?;
        if report.damage_count() > 0 {
            return Err(format!("a backup is damaged: {report}"));
        }
        Contents::of(&store)
            .and_then(|contents| contents.check_against(&before))
            .map_err(|what| format!("a backup: {what}"))
    }
}
