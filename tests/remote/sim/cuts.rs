//! Loss of the machine at every operation of its disk and every call to the remote store: what is restored is a prefix
//! of the batches, each whole, and with remote acknowledgement it contains every acknowledged one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use engine::replication::RemoteAck;
use engine::{Batch, PutOptions, Store};
use tests::store::{Contents, body, compact, fact, idle, name, roll_over, stage};

use super::worlds::{RemoteWorld, contents_of, restore_from, shown};

/// Number of batches of the script.
const BATCHES: u64 = 24;

/// Where the machine is lost.
#[derive(Clone, Copy, Debug)]
enum Loss {
    Nowhere,
    AtDiskOperation(u64),
    AtRemoteCall(u64),
}

/// A run: what each number of batches shows, the remote store, and how many batches were acknowledged.
struct Run {
    world: RemoteWorld,
    acknowledged: usize,
    states: Vec<Contents>,
    operations: u64,
}

fn run(ack: RemoteAck, loss: Loss) -> Run {
    let world = match ack {
        RemoteAck::Local => RemoteWorld::new(1),
        RemoteAck::Remote => RemoteWorld::acknowledging_remotely(1),
    };
    let mut states = Vec::new();
    let acknowledged = Arc::new(AtomicUsize::new(0));
    if let Ok((store, _)) = world.world.try_open() {
        // The first restore point.
        let _ = store.step_ship();
        let _ = store.step_replication_upkeep();
        let _ = store.step_replication_upkeep();
        let _ = store.step_replication_upkeep();
        if matches!(loss, Loss::Nowhere) {
            states.push(shown(&store));
        }
        match loss {
            Loss::Nowhere => {}
            Loss::AtDiskOperation(at) => {
                world.world.disk.cut_power_after(world.world.disk.operations() + at);
            }
            Loss::AtRemoteCall(at) => world.remote.cut_after(Some(world.remote.calls() + at)),
        }
        let begun = world.world.disk.operations();
        for number in 0..BATCHES {
            write(&store, number, &acknowledged);
            let _ = store.step_ship();
            let _ = store.step_replication_upkeep();
            if world.world.disk.is_off() {
                world.remote.cut_after(Some(0));
            }
            if matches!(loss, Loss::Nowhere) {
                states.push(shown(&store));
            }
        }
        let operations = world.world.disk.operations() - begun;
        let acknowledged = acknowledged.load(Ordering::SeqCst);
        world.remote.cut_after(None);
        return Run { world, acknowledged, states, operations };
    }
    unreachable!("the disk is intact while the store is opened")
}

/// Writes the batch of this number: several objects, at times a big one, a fact and a deletion.
fn write(store: &Store, number: u64, acknowledged: &Arc<AtomicUsize>) {
    let mut batch = Batch::new();
    let length = if number % 6 == 5 { 9_000 } else { 3_000 };
    for part in 0..3 {
        let key = format!("{}/{part}", number % 9);
        let Ok(staged) = stage(store, &body(10 * number + part, length)) else { return };
        batch = batch.put(name(&key), staged, PutOptions::default());
    }
    if number % 4 == 3 {
        batch = batch.delete(name(&format!("{}/1", (number + 7) % 9)));
    }
    let batch = batch.put_fact(fact("last"), number.to_string().into());
    let counter = Arc::clone(acknowledged);
    store.submit(batch, move |result| {
        if result.is_ok() {
            counter.store(number as usize + 1, Ordering::SeqCst);
        }
    });
    idle(store);
    let _ = roll_over(store);
    if number % 8 == 7 {
        let _ = compact(store);
    }
}

/// Returns the number of batches in what was restored, which must be the state after so many.
fn restored_batches(run: &Run, states: &[Contents]) -> usize {
    let (disk, report) = restore_from(&run.world.remote, None).unwrap();
    assert_eq!(report.damage, [""; 0]);
    let restored = contents_of(disk);
    let found = restored.facts.get(&fact("last"));
    let count = found.map_or(0, |it| str::from_utf8(it).unwrap().parse::<usize>().unwrap() + 1);
    let expected = &states[count];
    assert_eq!(restored.objects.len(), expected.objects.len());
    for (name, object) in &expected.objects {
        assert_eq!(restored.objects.get(name).map(|it| &it.body), Some(&object.body), "{name}");
    }
    assert_eq!(restored.facts, expected.facts);
    assert_eq!(restored.usages, expected.usages);
    count
}

fn check_every_loss(ack: RemoteAck) {
    let whole = run(ack, Loss::Nowhere);
    assert_eq!(restored_batches(&whole, &whole.states), BATCHES as usize);
    let calls = whole.world.remote.calls();
    let losses = (1..whole.operations).map(Loss::AtDiskOperation);
    let losses = losses.chain((0..calls).map(Loss::AtRemoteCall));
    let mut shortest = usize::MAX;
    for loss in losses {
        let run = run(ack, loss);
        let restored = restored_batches(&run, &whole.states);
        shortest = shortest.min(restored);
        if ack == RemoteAck::Remote {
            assert!(restored >= run.acknowledged, "{loss:?}: {restored} of {}", run.acknowledged);
        }
    }
    assert_eq!(shortest, 0, "some losses were at the beginning");
}

#[test]
fn lost_machine_is_restored_to_a_prefix() {
    check_every_loss(RemoteAck::Local);
}

#[test]
fn lost_machine_keeps_what_the_remote_store_acknowledged() {
    check_every_loss(RemoteAck::Remote);
}
