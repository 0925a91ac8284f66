//! Scripted scenarios: a store with a little in it, then up to three acts, and the disk in the middle of each operation
//! of the last one. The acts before the last one are a scenario of their own.

use bytes::Bytes;
use engine::Store;
use engine::disk::faults::IgnoredSync;
use engine::disk::sim::SimDisk;
use tests::store::{
    Change, Model, World, batch, body, bucket_named, commit, compact, fact, idle, name, name_in,
    roll_over,
};

/// One act on a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Puts a new small object.
    Put,
    /// Overwrites a small object.
    Overwrite,
    /// Deletes a small object.
    Delete,
    /// Commits a put, a deletion and a fact together.
    Batch,
    /// Puts a new object with a segment of its own.
    PutBig,
    /// Replaces a big object by a small one, which removes its segment.
    ReplaceBig,
    /// Replaces a big object by a big one.
    OverwriteBig,
    /// Puts half a log segment in one batch; two of them roll.
    Fill,
    /// Idles without commits, which writes a watermark.
    Idle,
    /// Checkpoints changes in memory to the index.
    Checkpoint,
    /// Prepares the next segment and seals full ones.
    RollOver,
    /// Kills the process and starts it again.
    Reopen,
    /// Closes the store, and opens it again.
    Close,
    /// Waits half an hour, after which expired files are removed.
    Wait,
    /// Compacts dead bytes.
    Compact,
}

impl Act {
    /// All acts that do not concern deleted versions.
    pub(crate) const ALL: [Self; 13] = [
        Self::Put,
        Self::Overwrite,
        Self::Delete,
        Self::Batch,
        Self::PutBig,
        Self::ReplaceBig,
        Self::OverwriteBig,
        Self::Fill,
        Self::Idle,
        Self::Checkpoint,
        Self::RollOver,
        Self::Reopen,
        Self::Close,
    ];

    /// Returns the committed changes of the act when it is the `turn`-th.
    pub(crate) fn changes(self, turn: u64) -> Option<Vec<Change>> {
        let bytes = |seed: u64, length| Bytes::from(body(100 * turn + seed, length));
        let other = name_in(&bucket_named("other"), &format!("in/a/folder/{turn}"));
        Some(match self {
            Self::Put => vec![Change::Put(name(&format!("new/{turn}")), bytes(1, 700))],
            Self::Overwrite => vec![Change::Put(name("small"), bytes(2, 900))],
            Self::Delete => vec![Change::Delete(name("gone-soon"))],
            Self::Batch => vec![
                Change::PutDerived(other, bytes(3, 50)),
                Change::Delete(name("small")),
                Change::PutFact(fact("token/1"), bytes(4, 30)),
                Change::DeleteFact(fact("token/0")),
            ],
            Self::PutBig => vec![Change::Put(name(&format!("huge/{turn}")), bytes(5, 70_000))],
            Self::ReplaceBig => vec![Change::Put(name("big"), bytes(6, 10))],
            Self::OverwriteBig => vec![Change::Put(name("big"), bytes(7, 5_000))],
            Self::Fill => (0..6)
                .map(|at| Change::Put(name(&format!("fill/{turn}/{at}")), bytes(10 + at, 4_000)))
                .collect(),
            Self::Idle
            | Self::Checkpoint
            | Self::RollOver
            | Self::Reopen
            | Self::Close
            | Self::Wait
            | Self::Compact => return None,
        })
    }
}

/// Disks after the power cuts of one scenario, and the acknowledged models.
pub(crate) struct Recording {
    /// Disks in the middle of each operation, and at the end.
    pub(crate) cuts: Vec<SimDisk>,
    /// Number of completed operations when a model was acknowledged.
    marks: Vec<(u64, Model)>,
}

impl Recording {
    /// Returns the models that a store on this disk may match: the acknowledged one, or one in progress.
    pub(crate) fn acceptable(&self, cut: &SimDisk) -> Vec<&Model> {
        self.marks.iter().skip(self.acknowledged(cut)).take(2).map(|(_, model)| model).collect()
    }

    /// Returns the number of the last model acknowledged before the power cut.
    pub(crate) fn acknowledged(&self, cut: &SimDisk) -> usize {
        let done = cut.operations();
        self.marks.iter().rposition(|(at, _)| *at <= done).unwrap_or(0)
    }
}

/// Result of a step; under a mutation it may fail.
type Played = Result<(), String>;

/// Plays the acts on a machine whose disk ignores some syncs, and records the last of them. Without acts, the creation
/// of the store is recorded.
pub(crate) fn record(
    acts: &[Act],
    ignored: &[IgnoredSync],
    undelete_window_ms: u64,
) -> Result<Recording, String> {
    let mut world = World::new(7);
    world.options.retention_window_ms = undelete_window_ms;
    for ignore in ignored {
        world.disk.ignore_syncs(ignore.clone());
    }
    let mut model = Model::default();
    let mut marks = vec![(0, model.clone())];
    if acts.is_empty() {
        world.disk.record_cuts();
    }
    let mut store = Some(world.open());
    for changes in beginning() {
        play(&world, store.as_ref(), &changes, &mut model, &mut marks)?;
    }
    for (turn, act) in (1..).zip(acts) {
        if turn == acts.len() as u64 {
            world.disk.record_cuts();
            let model = model.clone();
            marks = vec![(0, model)];
        }
        if let Some(changes) = act.changes(turn) {
            play(&world, store.as_ref(), &changes, &mut model, &mut marks)?;
            continue;
        }
        let open = store.as_ref().ok_or("no store")?;
        let done = match act {
            Act::Idle => {
                idle(open);
                Ok(())
            }
            Act::Checkpoint => open.checkpoint().map(|_| ()),
            Act::RollOver => roll_over(open),
            Act::Wait => {
                world.clock.advance(30 * 60 * 1_000);
                idle(open);
                Ok(())
            }
            Act::Compact => compact(open).map(|_| ()),
            Act::Close => open.close(),
            _ => Ok(()),
        };
        done.map_err(|error| format!("{act:?}: {error}"))?;
        if matches!(act, Act::Reopen | Act::Close) {
            store = None;
            store.get_or_insert(world.open());
        }
    }
    let last = world.disk.fork();
    let mut cuts = world.disk.take_cuts();
    last.cut_power();
    cuts.push(last);
    Ok(Recording { cuts, marks })
}

/// Returns the initial changes of every scenario.
pub(crate) fn beginning() -> Vec<Vec<Change>> {
    let bytes = |seed, length| Bytes::from(body(seed, length));
    vec![
        vec![Change::Put(name("small"), bytes(1, 300))],
        vec![
            Change::Put(name("gone-soon"), bytes(2, 40)),
            Change::Put(name("empty"), Bytes::new()),
            Change::PutFact(fact("token/0"), bytes(3, 20)),
        ],
        vec![Change::Put(name("big"), bytes(4, 6_000))],
    ]
}

fn play(
    world: &World,
    store: Option<&Store>,
    changes: &[Change],
    model: &mut Model,
    marks: &mut Vec<(u64, Model)>,
) -> Played {
    let store = store.ok_or("no store")?;
    let committed = batch(store, changes).and_then(|batch| commit(store, batch));
    committed.map_err(|error| format!("a commit of {}: {error}", changes.len()))?;
    model.apply(changes);
    marks.push((world.disk.operations(), model.clone()));
    Ok(())
}
