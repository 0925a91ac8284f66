//! Power cuts in the middle of every disk operation of an undelete: objects restored in one batch are present
//! completely or not at all, and existing objects are unchanged.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use bytes::Bytes;
use engine::FolderKey;
use engine::disk::sim::LossPolicy;
use engine::history::UndeleteRequest;
use tests::store::{Change, Model, World, batch, body, bucket, commit, name};

use crate::survivor::{check, fingerprint};

#[test]
fn undelete_survives_power_loss_at_every_operation() {
    let world = World::new(7);
    let store = world.open();
    let put = |key: &str| Change::Put(name(key), Bytes::from(body(key.len() as u64, 700)));
    let mut model = Model::default();
    let names = ["a", "bb", "ccc"];
    let mut changes: Vec<Change> = names.iter().map(|key| put(key)).collect();
    changes.push(put("stays"));
    changes.push(Change::Put(name("big"), Bytes::from(body(9, 9_000))));
    let all = changes.clone();
    let deleted: Vec<Change> = names.iter().map(|key| Change::Delete(name(key))).collect();
    for changes in [changes, deleted] {
        commit(&store, batch(&store, &changes).unwrap()).unwrap();
        model.apply(&changes);
    }
    let before = model.clone();
    model.apply(&all);

    world.disk.record_cuts();
    let folder =
        UndeleteRequest::Folder { bucket: bucket(), folder: FolderKey::root(), since_ms: 0 };
    let undeleted = store.undelete(&folder, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(undeleted.restored.len(), 3);
    let mut cuts = world.disk.take_cuts();
    let last = world.disk.fork();
    last.cut_power();
    cuts.push(last);

    let mut seen = BTreeSet::new();
    for (at, cut) in cuts.iter().enumerate() {
        for (policy, seed) in LossPolicy::ALL.iter().flat_map(|it| (0..4).map(move |s| (*it, s))) {
            let disk = cut.fork();
            disk.power_on(policy, seed + 1_000 * at as u64);
            if seen.insert(fingerprint(&disk)) {
                check(&disk, &[&before, &model])
                    .unwrap_or_else(|what| panic!("cut {at}, {policy:?} seed {seed}: {what}"));
            }
        }
    }
    let done = cuts.last().unwrap().fork();
    done.power_on(LossPolicy::KeepSynced, 0);
    check(&done, &[&model]).unwrap_or_else(|what| panic!("when it is done: {what}"));
    assert!(cuts.len() > 2 && seen.len() > 2, "{} cuts, {} survivors", cuts.len(), seen.len());
}
