//! Crash tests: power cuts after any disk operation, bit rot, lost files. Everything runs on the simulated disk; each
//! check is a function that returns the violations that it found, so that `mutation` can show that it finds them.

#![allow(clippy::unwrap_used, reason = "a failed test panics")]

mod backup_cuts;
mod bit_rot;
mod compacted_rot;
mod compaction;
mod failed_sync;
mod footer_rot;
mod full_disk;
mod given_back;
mod index_faults;
mod index_loss;
mod layout;
mod matrix;
mod model;
mod mutation;
mod mutation_orders;
mod power_loss;
mod punched_rot;
mod punching;
mod python_reader;
mod repair_cuts;
mod resumable_cuts;
mod retained_cuts;
mod scenario;
mod scrub;
mod survivor;
mod torn_tail;
mod undelete_cuts;

use mimalloc::MiMalloc;

/// A tenth faster than the allocator of the system: opening a store allocates much.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;
