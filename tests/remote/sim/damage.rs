//! Damage in the remote store: fetched once more, then named; never a wrong byte.

use bytes::Bytes;
use engine::Error;
use engine::replication::RemoteAck;
use tests::store::{World, body, name, put, read};

use super::worlds::{RemoteWorld, contents_of, fill, restore_from, settle, ship, shown};

/// Returns a changed copy: a byte in the middle differs, or the second half is missing.
fn damaged(content: &Bytes, is_cut: bool) -> Bytes {
    let middle = content.len() / 2;
    if is_cut {
        return content.slice(..middle);
    }
    let mut changed = content.to_vec();
    changed[middle] ^= 0x20;
    changed.into()
}

#[test]
fn damaged_objects_are_named_and_no_wrong_byte_is_restored() {
    let world = RemoteWorld::new(1);
    let store = world.open();
    fill(&store, 1);
    settle(&store).unwrap();
    for at in 0..4 {
        put(&store, &name(&format!("later/{at}")), &body(100 + at, 2_000)).unwrap();
        ship(&store).unwrap();
    }
    let expected = shown(&store);
    let mut named = 0;
    for object in world.remote.names() {
        let content = world.remote.object(&object).unwrap();
        let others = [Some(damaged(&content, false)), Some(damaged(&content, true)), None];
        for (how, damage) in others.into_iter().enumerate() {
            let remote = world.remote.fork();
            remote.damage(&object, damage);
            let (disk, report) = match restore_from(&remote, None) {
                Ok(restored) => restored,
                Err(Error::Corrupt(found)) => {
                    assert!(found.file.starts_with(&object), "{object}: {found}");
                    continue;
                }
                // Without `remote` or a manifest there is nothing to restore.
                Err(Error::NotAStore(_)) => continue,
                Err(other) => panic!("{object}: {other}"),
            };
            named += usize::from(report.damage.iter().any(|it| it.contains(&object[4..])));
            let (opened, _) = World::on(disk, 7).open_with_report();
            for (name, object) in &expected.objects {
                if let Ok(Some(found)) = read(&opened, name) {
                    assert_eq!(found, object.body, "{name}, {how}");
                }
            }
        }
    }
    assert!(named > 5, "{named}");
}

#[test]
fn chunk_under_another_number_is_rejected() {
    let world = RemoteWorld::new(1);
    let store = world.open();
    settle(&store).unwrap();
    let mut states = vec![shown(&store)];
    for at in 0..3 {
        put(&store, &name(&format!("{at}")), &body(at, 500)).unwrap();
        ship(&store).unwrap();
        states.push(shown(&store));
    }
    let last = store.replication_status().unwrap().chunk;
    let (one, two) = (format!("log/{:020}", last - 1), format!("log/{last:020}"));
    let remote = world.remote.fork();
    let (first, second) = (remote.object(&one), remote.object(&two));
    remote.damage(&one, second);
    remote.damage(&two, first);
    let (disk, report) = restore_from(&remote, None).unwrap();
    assert_eq!(report.damage_count, 1, "{report:?}");
    assert!(report.damage[0].contains(&one), "{report:?}");
    assert_eq!(contents_of(disk), states[1], "the log ends before the swapped chunk");
}

#[test]
fn chunk_that_follows_another_one_is_not_restored() {
    let world = RemoteWorld::new(1);
    let store = world.open();
    fill(&store, 1);
    settle(&store).unwrap();
    let disk = World::on(world.world.disk.fork(), 5);
    let other = RemoteWorld::with(disk, world.remote.fork(), RemoteAck::Local);
    put(&store, &name("first"), &body(1, 500)).unwrap();
    ship(&store).unwrap();
    let expected = shown(&store);
    put(&store, &name("second"), &body(2, 500)).unwrap();
    ship(&store).unwrap();
    let chunk = store.replication_status().unwrap().chunk;

    // The same number in another log, where a fence is before it.
    let second = other.open();
    put(&second, &name("other"), &body(3, 500)).unwrap();
    ship(&second).unwrap();
    assert_eq!(second.replication_status().unwrap().chunk, chunk);
    let name = format!("log/{chunk:020}");
    world.remote.damage(&name, other.remote.object(&name));
    let (disk, report) = world.restore(None).unwrap();
    assert_eq!(report.damage_count, 1, "{report:?}");
    assert!(report.damage[0].contains(&name), "{report:?}");
    assert_eq!(contents_of(disk), expected);
}
