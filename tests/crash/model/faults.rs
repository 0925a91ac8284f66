//! Disturbances of a run, and the failures that they explain.

use engine::disk::Disk;
use engine::disk::faults::{Fault, FaultRule, Operation, PathPattern};
use engine::disk::sim::SimDisk;
use tests::store::{World, body};

use super::run::Run;

/// Free space that is always sufficient.
pub(super) const AMPLE_FREE_BYTES: u64 = 1 << 40;

const INDEX: &str = "index.redb";

/// Current disturbances of the disk.
#[derive(Default)]
pub(super) struct Trouble {
    /// Number of steps until they end.
    pub(super) steps_left: u64,
    /// Whether free space is short.
    pub(super) is_full: bool,
    /// Number of injected faults that had hit before the step began.
    pub(super) hits_before: u64,
    /// Number of injected faults that had hit before the store was opened.
    pub(super) hits_at_opening: u64,
}

impl Trouble {
    /// Whether the disk explains that the store is read-only.
    pub(super) fn explains_failure(&self, disk: &SimDisk) -> bool {
        disk.is_off() || disk.fault_count() > self.hits_at_opening
    }

    /// Ends all disturbances.
    pub(super) fn clear_faults(&mut self, world: &World) {
        world.disk.cut_power_after(u64::MAX);
        world.disk.clear_faults();
        if self.is_full {
            world.disk.set_free_bytes(AMPLE_FREE_BYTES);
            // The store may cache the lack of space for so long.
            world.clock.advance(engine::limits::FREE_SPACE_POLL_MS);
        }
        self.is_full = false;
    }
}

impl Run {
    /// Starts a disturbance.
    pub(super) fn disturb(&mut self) {
        self.trouble.steps_left = 1 + self.below(20);
        match self.below(16) {
            0..=7 => {
                let soon = if self.below(3) == 0 { 200 } else { 12 };
                self.world.disk.cut_power_after(self.world.disk.operations() + self.below(soon));
            }
            8 | 9 => self.fail_a_sync(),
            10 | 11 => self.fail_a_write(),
            12 => self.fail_reads(),
            13 | 14 => self.fill_the_disk(),
            _ => {
                let is_cold = self.below(2) == 0;
                self.world.disk.set_cold(is_cold);
                self.tally.count_many("cold disks", u64::from(is_cold));
            }
        }
    }

    fn fail_a_sync(&mut self) {
        // A folder whose sync failed is written with the next one: were removals lost for good, files would reappear
        // that no record remembers.
        let (operation, fault) = match self.below(4) {
            0 => (Operation::SyncFolder, Fault::Error),
            1 => (Operation::SyncData, Fault::Error),
            _ => (Operation::SyncData, Fault::SyncLost),
        };
        self.tally.count("faults of syncs planned");
        self.inject(operation, fault, 8);
    }

    fn fail_a_write(&mut self) {
        const OPERATIONS: [Operation; 9] = [
            Operation::Write,
            Operation::Write,
            Operation::Write,
            Operation::Create,
            Operation::Allocate,
            Operation::SetLen,
            Operation::Remove,
            Operation::CreateFolder,
            Operation::Punch,
        ];
        let operation = OPERATIONS[self.below(9) as usize];
        let fault = match self.below(4) {
            0 | 1 => Fault::Error,
            2 if operation == Operation::Write => Fault::Torn,
            _ => Fault::NoSpace,
        };
        self.tally.count("faults of writes planned");
        self.inject(operation, fault, 12);
    }

    fn fail_reads(&mut self) {
        const OPERATIONS: [Operation; 4] =
            [Operation::Read, Operation::Map, Operation::Open, Operation::Populate];
        let operation = OPERATIONS[self.below(4) as usize];
        self.tally.count("faults of reads planned");
        for _ in 0..=self.below(3) {
            self.inject(operation, Fault::Error, 20);
        }
    }

    fn inject(&mut self, operation: Operation, fault: Fault, soon: u64) {
        let place = match self.below(8) {
            0..=3 => PathPattern::Any,
            4 | 5 => PathPattern::Prefix("log".to_owned()),
            6 => PathPattern::Prefix("compacted".to_owned()),
            _ => PathPattern::Prefix(INDEX.to_owned()),
        };
        self.world.disk.inject(FaultRule::once(operation, place, fault).after(self.below(soon)));
    }

    fn fill_the_disk(&mut self) {
        let most = [10, 100, 400][self.below(3) as usize];
        self.world.disk.set_free_bytes(4_096 * self.below(most));
        self.trouble.is_full = true;
        self.tally.count("full disks");
    }

    /// Disturbs the next opening: the index may be lost or damaged, the power may be cut, the disk may fail.
    pub(super) fn disturb_opening(&mut self) {
        if self.below(12) == 0 {
            self.damage_index();
        }
        if self.below(8) == 0 {
            self.choose_geometry();
        }
        match self.below(24) {
            0..=3 => {
                let after = self.world.disk.operations() + self.below(40);
                self.world.disk.cut_power_after(after);
            }
            4 => self.fail_reads(),
            5 => self.fail_a_sync(),
            6 => self.fail_a_write(),
            _ => {}
        }
    }

    fn damage_index(&mut self) {
        let disk = &self.world.disk;
        if !disk.paths().iter().any(|path| path == INDEX) {
            return;
        }
        let bytes = disk.bytes(INDEX).len();
        match self.below(3) {
            0 => {
                let _ = disk.remove(INDEX);
                self.tally.count("indexes lost");
            }
            1 if bytes > 0 => {
                let from = self.below(bytes as u64);
                disk.overwrite(INDEX, from, &body(from, 1 + self.below(10_000) as usize));
                self.tally.count("indexes damaged");
            }
            _ => {
                if let Ok(file) = disk.open(INDEX) {
                    let _ = file.set_len(self.below(1 + bytes as u64));
                    self.tally.count("indexes cut");
                }
            }
        }
    }
}
