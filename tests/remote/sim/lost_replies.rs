//! Calls whose reply is lost, that arrive late or twice: the log has every batch once, in order.

use std::io::ErrorKind;

use engine::remote::RemoteFault;
use engine::replication::ReplicationStep;
use engine::rng::{Rng, SeededRng};
use tests::store::{body, delete, name, put, roll_over};

use super::worlds::{RemoteWorld, contents_of, restore_from, shown};

/// Runs a script of writes with one fault at this call. Returns the number of calls.
fn run_with(fault: Option<(u64, RemoteFault)>) -> Result<u64, String> {
    let world = RemoteWorld::new(1);
    if let Some((call, fault)) = fault {
        world.remote.inject(call, fault);
    }
    let store = world.world.open();
    for at in 0..12 {
        put(&store, &name(&format!("small/{at}")), &body(at, 3_500)).unwrap();
        if at % 4 == 0 {
            put(&store, &name(&format!("big/{at}")), &body(at, 9_000)).unwrap();
        }
        if at % 5 == 3 {
            delete(&store, &name(&format!("small/{}", at - 2))).unwrap();
        }
        roll_over(&store).unwrap();
        // Failures are retried.
        let _ = store.step_ship();
        let _ = store.step_replication_upkeep();
    }
    for _ in 0..200 {
        roll_over(&store).unwrap();
        let idle = Ok::<_, ()>(ReplicationStep::Idle);
        let shipped = store.step_ship().map_err(drop);
        let kept = store.step_replication_upkeep().map_err(drop);
        if (shipped, kept) == (idle, idle) {
            break;
        }
    }
    world.remote.deliver_late_writes();
    let calls = world.remote.calls();
    let status = store.replication_status().unwrap();
    if status.shipped_lsn != status.last_lsn {
        return Err(format!("not everything was shipped: {status:?}"));
    }
    let (disk, report) = restore_from(&world.remote.fork(), None).map_err(|why| why.to_string())?;
    if report.damage_count > 0 {
        return Err(format!("{:?}", report.damage));
    }
    let restored = contents_of(disk);
    if restored == shown(&store) { Ok(calls) } else { Err("other content".into()) }
}

#[test]
fn no_lost_late_or_repeated_call_changes_the_log() {
    let calls = run_with(None).unwrap();
    let mut runs = 0;
    for call in 1..=calls {
        for fault in [
            RemoteFault::ReplyLost,
            RemoteFault::Delayed(1),
            RemoteFault::Delayed(7),
            RemoteFault::Repeated(3),
            RemoteFault::Refused(ErrorKind::TimedOut),
        ] {
            let outcome = run_with(Some((call, fault)));
            assert!(outcome.is_ok(), "call {call}, {fault:?}: {outcome:?}");
            runs += 1;
        }
    }
    assert!(runs > 100, "{runs}");
}

#[test]
fn many_faults_at_once_delay_and_lose_nothing() {
    for seed in 0..40 {
        let world = RemoteWorld::new(seed);
        let rng = SeededRng::new(seed);
        for call in 1..400 {
            let fault = match rng.below(8) {
                0 => RemoteFault::ReplyLost,
                1 => RemoteFault::Delayed(rng.below(20)),
                2 => RemoteFault::Repeated(rng.below(20)),
                3 => RemoteFault::Refused(ErrorKind::ConnectionRefused),
                _ => continue,
            };
            world.remote.inject(call, fault);
        }
        let store = world.world.open();
        for at in 0..60 {
            put(&store, &name(&format!("{}", rng.below(20))), &body(at, 3_500)).unwrap();
            roll_over(&store).unwrap();
            let _ = store.step_ship();
            let _ = store.step_replication_upkeep();
        }
        let mut quiet = 0;
        while quiet < 3 {
            roll_over(&store).unwrap();
            let steps = (store.step_ship(), store.step_replication_upkeep());
            let is_idle = matches!(steps, (Ok(ReplicationStep::Idle), Ok(ReplicationStep::Idle)));
            quiet = if is_idle { quiet + 1 } else { 0 };
        }
        world.remote.deliver_late_writes();
        let (disk, report) = restore_from(&world.remote.fork(), None).unwrap();
        assert_eq!(report.damage, [""; 0], "seed {seed}");
        assert_eq!(contents_of(disk), shown(&store), "seed {seed}");
    }
}
