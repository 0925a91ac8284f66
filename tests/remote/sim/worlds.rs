//! A machine that replicates, and what can be restored from its remote store.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use engine::disk::sim::SimDisk;
use engine::remote::{
    Created, Part, ReadPiece, RemoteBytes, RemoteCall, RemoteObject, RemoteStore, SimRemote,
};
use engine::replication::{RemoteAck, ReplicationOptions, ReplicationStep, RestoreReport, restore};
use engine::{Result, Store};
use tests::store::{Contents, World, body, name, put, roll_over};

/// Machine with a disk, and a remote store.
pub(crate) struct RemoteWorld {
    pub(crate) world: World,
    pub(crate) remote: SimRemote,
}

impl RemoteWorld {
    /// Creates an empty machine that acknowledges when a batch is durable on its disk.
    pub(crate) fn new(seed: u64) -> Self {
        let world = World::new(seed);
        let remote = SimRemote::new(Arc::clone(&world.clock) as _);
        Self::with(world, remote, RemoteAck::Local)
    }

    /// Creates an empty machine that acknowledges when the remote store has a batch.
    pub(crate) fn acknowledging_remotely(seed: u64) -> Self {
        let Self { world, remote } = Self::new(seed);
        Self::with(world, remote, RemoteAck::Remote)
    }

    /// Creates a machine with this disk, over a remote store.
    pub(crate) fn with(mut world: World, remote: SimRemote, ack: RemoteAck) -> Self {
        let mut options = ReplicationOptions::new(Arc::new(remote.clone()));
        options.ack = ack;
        // Its threads would make the order of calls random.
        options.probe = false;
        world.options.replication = Some(options);
        Self { world, remote }
    }

    /// Returns another machine with this disk, over the same remote store and with the same clock.
    pub(crate) fn machine(&self, disk: SimDisk, seed: u64) -> Self {
        let mut world = World::on(disk, seed);
        world.clock = Arc::clone(&self.world.clock);
        let ack = self.world.options.replication.as_ref().map_or(RemoteAck::Local, |it| it.ack);
        Self::with(world, self.remote.clone(), ack)
    }

    /// Opens the store, and becomes the primary.
    pub(crate) fn open(&self) -> Store {
        let store = self.world.open();
        ship(&store).unwrap();
        store
    }

    /// Restores the newest state, or that of a time, into an empty disk.
    pub(crate) fn restore(&self, at_ms: Option<u64>) -> Result<(SimDisk, RestoreReport)> {
        restore_from(&self.remote, at_ms)
    }

    /// Returns what the newest restored state shows.
    pub(crate) fn restored(&self) -> Contents {
        let (disk, report) = self.restore(None).unwrap();
        assert_eq!(report.damage, [""; 0]);
        contents_of(disk)
    }
}

/// Restores a state of a remote store into an empty disk.
pub(crate) fn restore_from(
    remote: &SimRemote,
    at_ms: Option<u64>,
) -> Result<(SimDisk, RestoreReport)> {
    let disk = SimDisk::new();
    let report = restore(remote, &disk, at_ms, &mut |_| ControlFlow::Continue(()))?;
    Ok((disk, report))
}

/// Opens the store on a disk without replication, and returns what it shows.
pub(crate) fn contents_of(disk: SimDisk) -> Contents {
    let world = World::on(disk, 77);
    let (store, report) = world.open_with_report();
    assert!(report.damage.is_empty(), "{report}");
    shown(&store)
}

/// Returns what must be equal in a store and its copy: segments may be sealed in one and compacted in the other.
pub(crate) fn shown(store: &Store) -> Contents {
    let contents = Contents::of(store).unwrap();
    Contents {
        log: Default::default(),
        compacted: Default::default(),
        big: Default::default(),
        ..contents
    }
}

/// Ships everything that is committed.
pub(crate) fn ship(store: &Store) -> Result<()> {
    while store.step_ship()? == ReplicationStep::Worked {}
    Ok(())
}

/// Runs the work of all threads until nothing is left to do.
pub(crate) fn settle(store: &Store) -> Result<()> {
    loop {
        roll_over(store)?;
        let shipped = store.step_ship()?;
        let kept = store.step_replication_upkeep()?;
        if (shipped, kept) == (ReplicationStep::Idle, ReplicationStep::Idle) {
            return Ok(());
        }
    }
}

/// Puts objects into several log segments, and one with a segment of its own.
pub(crate) fn fill(store: &Store, seed: u64) {
    for at in 0..30 {
        put(store, &name(&format!("small/{at}")), &body(seed + at, 3_000)).unwrap();
        roll_over(store).unwrap();
    }
    put(store, &name(&format!("big/{seed}")), &body(seed, 9_000)).unwrap();
}

/// Remote store of one process, which stalls at its calls: others act there.
pub(crate) struct Stalling {
    inner: SimRemote,
    stall: Box<Stall>,
}

/// Called before each call with its kind and the name, and after each creation.
type Stall = dyn Fn(RemoteCall, &str) + Send + Sync;

impl Stalling {
    /// Creates the remote store of a process.
    pub(crate) fn new(
        remote: &SimRemote,
        stall: impl Fn(RemoteCall, &str) + Send + Sync + 'static,
    ) -> Self {
        Self { inner: remote.clone(), stall: Box::new(stall) }
    }
}

impl RemoteStore for Stalling {
    fn create(&self, name: &str, pieces: &[Bytes]) -> io::Result<Created> {
        (self.stall)(RemoteCall::Create, name);
        let created = self.inner.create(name, pieces);
        (self.stall)(RemoteCall::Create, name);
        created
    }

    fn upload(&self, name: &str, bytes: u64, read: &mut ReadPiece<'_>) -> io::Result<()> {
        (self.stall)(RemoteCall::Upload, name);
        self.inner.upload(name, bytes, read)
    }

    fn read(&self, name: &str, part: Part) -> io::Result<Option<RemoteBytes>> {
        (self.stall)(RemoteCall::Read, name);
        self.inner.read(name, part)
    }

    fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> io::Result<Vec<RemoteObject>> {
        (self.stall)(RemoteCall::List, prefix);
        self.inner.list(prefix, after, limit)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        (self.stall)(RemoteCall::Remove, name);
        self.inner.remove(name)
    }
}
