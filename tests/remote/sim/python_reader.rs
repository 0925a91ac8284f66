//! The independent reader in Python assembles the same store from the objects as the engine does.

use std::fs;
use std::path::Path;
use std::process::Command;

use engine::remote::SimRemote;
use engine::replication::restore_points;
use tests::python_reader::{read_in_python, require_python};
use tests::store::{compact, name, put, roll_over};

use super::worlds::{RemoteWorld, contents_of, fill, restore_from, settle, ship, shown};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/reader/read_remote.py");

/// Runs the reader on a copy of the remote store. Returns its exit code and its messages.
fn assemble(remote: &SimRemote, new: &Path, chunk: Option<u64>) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    for object in remote.names() {
        let path = folder.path().join(&object);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, remote.object(&object).unwrap()).unwrap();
    }
    let mut command = Command::new("python3");
    command.arg(SCRIPT).arg(folder.path()).arg(new);
    let output = command.args(chunk.map(|it| it.to_string())).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn python_reader_assembles_every_restore_point() {
    require_python();
    let world = RemoteWorld::new(1);
    let store = world.open();
    for round in 0..3 {
        for at in 0..3 {
            world.world.clock.advance(1_000);
            fill(&store, 10 * round + at);
            roll_over(&store).unwrap();
            settle(&store).unwrap();
        }
        compact(&store).unwrap();
        world.world.clock.advance(700_000);
        put(&store, &name("round"), round.to_string().as_bytes()).unwrap();
        settle(&store).unwrap();
    }
    store.close().unwrap();
    drop(store);
    let store = world.open();
    world.world.clock.advance(1_000);
    fill(&store, 100);
    ship(&store).unwrap();

    let new = tempfile::tempdir().unwrap();
    let (code, messages) = assemble(&world.remote, &new.path().join("store"), None);
    assert_eq!(code, Some(0), "{messages}");
    let read = read_in_python(&new.path().join("store"));
    read.must_be(&shown(&store)).unwrap();

    let points = restore_points(&world.remote).unwrap();
    assert!(points.len() >= 3, "{points:?}");
    for point in points {
        let target = new.path().join(point.chunk.to_string());
        let (code, messages) = assemble(&world.remote, &target, Some(point.chunk));
        assert_eq!(code, Some(0), "{point:?}: {messages}");
        let (disk, _) = restore_from(&world.remote, Some(point.created_ms)).unwrap();
        read_in_python(&target).must_be(&contents_of(disk)).unwrap();
    }
}

#[test]
fn python_reader_reports_damaged_objects() {
    require_python();
    let world = RemoteWorld::new(1);
    let store = world.open();
    fill(&store, 1);
    settle(&store).unwrap();
    put(&store, &name("later"), b"in a chunk").unwrap();
    ship(&store).unwrap();
    let last = world.remote.names().into_iter().rfind(|name| name.starts_with("log/")).unwrap();
    let mut content = world.remote.object(&last).unwrap().to_vec();
    content[200] ^= 1;
    world.remote.damage(&last, Some(content.into()));
    let new = tempfile::tempdir().unwrap();
    let (code, messages) = assemble(&world.remote, &new.path().join("store"), None);
    assert_eq!(code, Some(3));
    assert!(messages.contains("the body of a chunk"), "{messages}");
}
