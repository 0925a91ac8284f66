//! Random schedules of several processes with one store: each may stall at any call to the remote store while the
//! others proceed, lose replies, be killed, and take over. Every acknowledged batch is in the restored store.
//!
//! A schedule is determined by its seed. `TRUG_SCHEDULES=N` plays N of them, `TRUG_SEED=N` one.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::io::ErrorKind;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use engine::disk::sim::SimDisk;
use engine::remote::{RemoteFault, SimRemote};
use engine::replication::{RemoteAck, ReplicationOptions, ReplicationState};
use engine::rng::{Rng, SeededRng};
use engine::{Batch, Store};
use tests::store::{Contents, World, body, fact, idle, name, roll_over, stage};

use super::worlds::{Stalling, restore_from};

/// Schedules played each time.
const SCHEDULES: u64 = 200;
/// Actions of a schedule, without those during stalls.
const ACTIONS: u64 = 90;
/// Processes alive at the same time.
const PROCESSES: usize = 3;

thread_local! {
    /// Schedule that is played on this thread: calls to the remote store give the other processes their turn.
    static PLAYED: RefCell<Option<Rc<Schedule>>> = const { RefCell::new(None) };
}

/// One process: a store on its own disk.
struct Process {
    store: Store,
    disk: SimDisk,
}

/// Schedule of several processes.
struct Schedule {
    rng: SeededRng,
    remote: SimRemote,
    clock: Arc<engine::clock::SimClock>,
    processes: RefCell<Vec<Option<Process>>>,
    /// Processes in a call, which cannot act.
    busy: RefCell<BTreeSet<usize>>,
    opened: Cell<u64>,
    writes: Cell<u64>,
    acknowledged: Arc<Mutex<Vec<String>>>,
    /// Processes that were the primary of an epoch.
    primaries: RefCell<BTreeMap<u64, BTreeSet<uuid::Uuid>>>,
    /// Segments that were only in the remote store when the primary was checked.
    evicted: Cell<u64>,
    left: Cell<u64>,
}

impl Schedule {
    fn new(seed: u64) -> Rc<Self> {
        let rng = SeededRng::new(seed);
        let world = World::new(seed);
        let remote = SimRemote::new(world.clock.clone());
        for call in 1..4_000 {
            let fault = match rng.below(40) {
                0 => RemoteFault::ReplyLost,
                1 => RemoteFault::Delayed(rng.below(60)),
                2 => RemoteFault::Repeated(rng.below(60)),
                3 => RemoteFault::Refused(ErrorKind::ConnectionReset),
                _ => continue,
            };
            remote.inject(call, fault);
        }
        Rc::new(Self {
            rng,
            remote,
            clock: world.clock,
            processes: RefCell::new((0..PROCESSES).map(|_| None).collect()),
            busy: RefCell::default(),
            opened: Cell::new(0),
            writes: Cell::new(0),
            acknowledged: Arc::default(),
            primaries: RefCell::default(),
            evicted: Cell::new(0),
            left: Cell::new(4 * ACTIONS),
        })
    }

    /// Lets other processes act while this one is in a call.
    fn proceed_without(&self, process: usize) {
        if !self.rng.below(6).eq(&0) {
            return;
        }
        let is_new = self.busy.borrow_mut().insert(process);
        for _ in 0..self.rng.below(5) {
            self.act();
        }
        if is_new {
            self.busy.borrow_mut().remove(&process);
        }
    }

    /// Performs one action of a random process that is not in a call.
    fn act(&self) {
        if self.left.get() == 0 {
            return;
        }
        self.left.set(self.left.get() - 1);
        let process = self.rng.below(PROCESSES as u64) as usize;
        if self.busy.borrow().contains(&process) {
            return;
        }
        self.busy.borrow_mut().insert(process);
        let taken = self.processes.borrow_mut()[process].take();
        let next = match taken {
            None => self.begin(process),
            Some(running) => self.act_with(process, running),
        };
        self.processes.borrow_mut()[process] = next;
        self.busy.borrow_mut().remove(&process);
    }

    fn act_with(&self, process: usize, running: Process) -> Option<Process> {
        let Process { store, disk } = running;
        match self.rng.below(16) {
            // Killed: the folder may be opened again, by this process or as a clone.
            0 => {
                drop(store);
                disk.restart_process();
                return self.open(process, disk);
            }
            1 => return None,
            2..=6 => self.write(&store),
            7..=12 => drop(store.step_ship()),
            13 => drop(store.step_replication_upkeep()),
            14 => {
                let _ = store.checkpoint();
                for _ in 0..8 {
                    let _ = store.step_replication_upkeep();
                    let _ = store.step_ship();
                }
            }
            _ => {
                self.clock.advance([1_000, 60_000, 700_000, 4_000_000][self.rng.below(4) as usize])
            }
        }
        self.note_primary(&store);
        let _ = roll_over(&store);
        let is_fenced = store
            .replication_status()
            .is_some_and(|status| matches!(status.state, ReplicationState::Fenced(_)));
        (!is_fenced).then_some(Process { store, disk })
    }

    /// Begins a process: on a new disk, on a restored one, or on a clone of another's.
    fn begin(&self, process: usize) -> Option<Process> {
        let clone = self.processes.borrow().iter().flatten().next().map(|it| it.disk.fork());
        let disk = match (self.rng.below(4), clone) {
            (0, Some(disk)) => disk,
            _ if self.remote.names().is_empty() => SimDisk::with_seed(self.opened.get()),
            _ => restore_from(&self.remote, None).ok()?.0,
        };
        self.open(process, disk)
    }

    fn open(&self, process: usize, disk: SimDisk) -> Option<Process> {
        self.opened.set(self.opened.get() + 1);
        let mut world = World::on(disk.clone(), self.opened.get());
        world.clock = Arc::clone(&self.clock);
        let remote = Stalling::new(&self.remote, move |_, _| {
            let played = PLAYED.with(|played| played.borrow().clone());
            if let Some(schedule) = played {
                schedule.proceed_without(process);
            }
        });
        let mut options = ReplicationOptions::new(Arc::new(remote));
        options.ack = RemoteAck::Remote;
        options.probe = false;
        // Of every other process, all segments that can be are only in the remote store.
        options.local_bytes_max = self.opened.get() % 2;
        world.options.replication = Some(options);
        let (store, _) = world.try_open().ok()?;
        Some(Process { store, disk })
    }

    fn write(&self, store: &Store) {
        let number = self.writes.get();
        self.writes.set(number + 1);
        let written = format!("w/{number:06}");
        let mut batch = Batch::new().put_fact(fact(&written), Bytes::from_static(b"1"));
        let length = [100, 3_900, 9_000][self.rng.below(3) as usize];
        if let Ok(staged) = stage(store, &body(number, length)) {
            let key = name(&format!("o/{}", self.rng.below(9)));
            batch = batch.put(key, staged, engine::PutOptions::default());
        }
        let acknowledged = Arc::clone(&self.acknowledged);
        store.submit(batch, move |result| {
            if result.is_ok() {
                acknowledged.lock().unwrap_or_else(PoisonError::into_inner).push(written);
            }
        });
        idle(store);
    }

    fn note_primary(&self, store: &Store) {
        let Some(status) = store.replication_status() else { return };
        if status.state == ReplicationState::Primary {
            let mut primaries = self.primaries.borrow_mut();
            primaries.entry(status.epoch).or_default().insert(status.primary);
        }
    }

    /// Checks that the primary can read every object, wherever its segments are.
    fn check_primary(&self) -> Result<(), String> {
        let newest = self.primaries.borrow().keys().last().copied();
        for Process { store, .. } in self.processes.borrow().iter().flatten() {
            let is_primary = store.replication_status().is_some_and(|status| {
                status.state == ReplicationState::Primary && Some(status.epoch) == newest
            });
            let tier = store.replication_status().and_then(|status| status.tier);
            self.evicted.set(self.evicted.get() + tier.map_or(0, |tier| tier.remote_segments));
            if is_primary && let Err(why) = Contents::of(store) {
                return Err(format!("the primary of epoch {newest:?}: {why}"));
            }
        }
        Ok(())
    }

    /// Checks what is left in the remote store. Returns the numbers of acknowledged batches, of epochs and of
    /// evicted segments.
    fn check(&self) -> Result<[u64; 3], String> {
        self.remote.deliver_late_writes();
        self.remote.clear_faults();
        self.check_primary()?;
        let acknowledged = self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner);
        let primaries = self.primaries.borrow();
        let counts = |batches: usize| [batches as u64, primaries.len() as u64, self.evicted.get()];
        if let Some((epoch, of)) = primaries.iter().find(|(_, of)| of.len() > 1) {
            return Err(format!("epoch {epoch} has {} primaries", of.len()));
        }
        let (disk, report) = match restore_from(&self.remote.fork(), None) {
            Ok(restored) => restored,
            Err(_) if acknowledged.is_empty() => return Ok(counts(0)),
            // The first upload is not complete: the log itself has everything.
            Err(engine::Error::NotAStore(_)) => return Ok(counts(0)),
            Err(other) => return Err(other.to_string()),
        };
        if report.damage_count > 0 {
            return Err(format!("damage: {:?}", report.damage));
        }
        let (store, opened) = World::on(disk, 77).open_with_report();
        if !opened.damage.is_empty() {
            return Err(opened.to_string());
        }
        let is_there = |written: &String| store.fact(&fact(written)).is_ok_and(|it| it.is_some());
        let lost = acknowledged.iter().find(|it| !is_there(it));
        match lost {
            Some(lost) => Err(format!("{lost} was acknowledged and is lost")),
            None => Ok(counts(acknowledged.len())),
        }
    }
}

fn play(seed: u64) -> Result<[u64; 3], String> {
    let schedule = Schedule::new(seed);
    PLAYED.with(|played| *played.borrow_mut() = Some(Rc::clone(&schedule)));
    for _ in 0..ACTIONS {
        schedule.act();
    }
    PLAYED.with(|played| *played.borrow_mut() = None);
    schedule.check().map_err(|why| format!("TRUG_SEED={seed}: {why}"))
}

#[test]
fn acknowledged_batches_survive_any_schedule() {
    let number = |name| env::var(name).ok().and_then(|it| it.parse::<u64>().ok());
    let seeds = match (number("TRUG_SEED"), number("TRUG_SCHEDULES")) {
        (Some(seed), _) => seed..seed + 1,
        (None, count) => 0..count.unwrap_or(SCHEDULES),
    };
    let is_single = seeds.end - seeds.start == 1;
    let (mut counts, mut failed) = ([0; 3], Vec::new());
    for seed in seeds {
        match play(seed) {
            Ok(of) => counts.iter_mut().zip(of).for_each(|(count, of)| *count += of),
            Err(why) => failed.push(why),
        }
    }
    let [batches, epochs, evicted] = counts;
    println!("{batches} acknowledged batches, {epochs} epochs, {evicted} evicted segments");
    assert!(failed.is_empty(), "{} failed: {:?}", failed.len(), &failed[..failed.len().min(5)]);
    let is_enough = batches > 300 && epochs > 200 && evicted > 20;
    assert!(is_single || is_enough, "{batches} batches, {epochs} epochs, {evicted} evicted");
}
