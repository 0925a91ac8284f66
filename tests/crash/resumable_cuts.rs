//! Power cuts at every operation of a body that is uploaded over several openings: acknowledged bytes are present, also
//! when the body was about to be stored, and an acknowledged commit is whole.

use bytes::Bytes;
use engine::disk::sim::{LossPolicy, SimDisk};
use engine::upload::ResumePoint;
use engine::{Batch, PutOptions, Store};
use tests::store::{Model, World, body, commit, name, read};
use uuid::Uuid;

use crate::survivor::check;

const ID: Uuid = Uuid::from_u128(7);
const PIECE: usize = 100_000;

/// Acknowledgement of a completed step.
#[derive(Clone, Copy)]
enum Acknowledged {
    Nothing,
    Received(ResumePoint),
    Committed,
}

fn whole() -> Vec<u8> {
    body(9, 3 * PIECE)
}

fn finish(store: &Store, received: ResumePoint) {
    let mut upload = store.resume_upload(ID, received).unwrap();
    upload.push(&whole()[received.bytes as usize..]).unwrap();
    let staged = upload.finish().unwrap();
    commit(store, Batch::new().put(name("it"), staged, PutOptions::default())).unwrap();
    store.remove_upload(ID).unwrap();
}

fn step(store: &Store, acknowledged: Acknowledged) -> Acknowledged {
    let mut upload = match acknowledged {
        Acknowledged::Nothing => store.begin_upload(ID).unwrap(),
        Acknowledged::Received(received) if received.bytes as usize == 3 * PIECE => {
            finish(store, received);
            return Acknowledged::Committed;
        }
        Acknowledged::Received(received) => store.resume_upload(ID, received).unwrap(),
        Acknowledged::Committed => unreachable!("there is no step after the last"),
    };
    let from = upload.resume_point().bytes as usize;
    if !matches!(acknowledged, Acknowledged::Nothing) {
        upload.push(&whole()[from..from + PIECE]).unwrap();
    }
    Acknowledged::Received(upload.sync().unwrap())
}

/// Checks that an upload can be resumed after a crash in the step after this acknowledgement.
fn check_resumes(disk: &SimDisk, acknowledged: Acknowledged) {
    let store = World::on(disk.clone(), 11).open();
    if let Some(found) = read(&store, &name("it")).unwrap() {
        assert!(found == whole());
        return;
    }
    match acknowledged {
        Acknowledged::Nothing => {}
        Acknowledged::Received(received) => {
            finish(&store, received);
            assert!(read(&store, &name("it")).unwrap().unwrap() == whole());
        }
        Acknowledged::Committed => panic!("an acknowledged commit is gone"),
    }
}

#[test]
fn resumable_upload_survives_power_loss_at_every_operation() {
    let world = World::new(7);
    let mut acknowledged = Acknowledged::Nothing;
    let (before, mut after) = (Model::default(), Model::default());
    after.objects.insert(name("it"), (Bytes::from(whole()), false));
    let mut crashes = 0;
    while !matches!(acknowledged, Acknowledged::Committed) {
        let store = world.open();
        world.disk.record_cuts();
        let next = step(&store, acknowledged);
        for (at, cut) in world.disk.take_cuts().into_iter().enumerate() {
            for policy in LossPolicy::ALL {
                let disk = cut.fork();
                disk.power_on(policy, at as u64);
                check_resumes(&disk.fork(), acknowledged);
                check(&disk, &[&before, &after])
                    .unwrap_or_else(|what| panic!("cut {at}, {policy:?}: {what}"));
                crashes += 1;
            }
        }
        for policy in LossPolicy::ALL {
            let disk = world.disk.fork();
            disk.cut_power();
            disk.power_on(policy, 0);
            check_resumes(&disk, next);
            crashes += 1;
        }
        acknowledged = next;
    }
    assert!(crashes > 150, "{crashes} crashes");
}

/// Returns disks on which all of the body was acknowledged, with a power cut at each moment of storing it.
fn cut_while_stored(policy: LossPolicy) -> Vec<(SimDisk, ResumePoint)> {
    let world = World::new(7);
    let store = world.open();
    let mut upload = store.begin_upload(ID).unwrap();
    upload.push(&whole()).unwrap();
    let received = upload.sync().unwrap();
    drop(upload);
    world.disk.record_cuts();
    finish(&store, received);
    let cuts = world.disk.take_cuts();
    let survived = |(seed, cut): (u64, SimDisk)| {
        cut.power_on(policy, seed);
        (cut, received)
    };
    (0..).zip(cuts).map(survived).collect()
}

#[test]
fn repeated_store_of_resumable_body_survives_power_loss() {
    let (mut after, mut crashes) = (Model::default(), 0);
    after.objects.insert(name("it"), (Bytes::from(whole()), false));
    for first in [LossPolicy::KeepAll, LossPolicy::NamesKept] {
        for (disk, received) in cut_while_stored(first) {
            let world = World::on(disk, 12);
            // Other moments are those of a body that was never about to be stored.
            if world.files_in("big/").is_empty() {
                continue;
            }
            // From the opening on, which removes the remains of the first attempt.
            world.disk.record_cuts();
            let store = world.open();
            if read(&store, &name("it")).unwrap().is_some() {
                continue;
            }
            finish(&store, received);
            for (seed, cut) in (0..).zip(world.disk.take_cuts()) {
                for policy in LossPolicy::ALL {
                    let disk = cut.fork();
                    disk.power_on(policy, seed);
                    check_resumes(&disk.fork(), Acknowledged::Received(received));
                    check(&disk, &[&Model::default(), &after])
                        .unwrap_or_else(|what| panic!("{first:?}, {seed}, {policy:?}: {what}"));
                    crashes += 1;
                }
            }
        }
    }
    assert!(crashes > 500, "{crashes} crashes");
}
