//! Remote store in a folder.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use engine::remote::{Created, Part, RemoteStore};
use outbound::trust_anchors::TrustAnchors;
use remote::RemoteLocation;

use crate::endpoint::connect;
use crate::{cold_reads, promises};

fn connect_folder(folder: &Path) -> Arc<dyn RemoteStore> {
    connect(&RemoteLocation::parse(&format!("file://{}", folder.display())).unwrap())
}

#[test]
fn folder_keeps_the_promises_of_a_remote_store() {
    let folder = tempfile::tempdir().unwrap();
    promises::check_all(&connect_folder(folder.path()));
}

#[test]
fn folder_of_another_process_has_the_same_objects() {
    let folder = tempfile::tempdir().unwrap();
    let stores = [connect_folder(folder.path()), connect_folder(folder.path())];
    promises::check_races(&stores, 40, &[1, 2_000, 70_000, 5 << 20]);
}

#[test]
fn files_only_in_a_folder_are_read() {
    let folder = tempfile::tempdir().unwrap();
    cold_reads::check(&connect_folder(folder.path()));
}

#[test]
fn folder_listing_ignores_partial_files() {
    let folder = tempfile::tempdir().unwrap();
    let remote = connect_folder(folder.path());
    assert_eq!(remote.create("log/1", &["one".into()]).unwrap(), Created::New);
    // An interrupted creation leaves its file under a name of this form.
    fs::write(folder.path().join("log/2#1"), "tw").unwrap();
    let names: Vec<_> =
        remote.list("", None, 9).unwrap().into_iter().map(|object| object.name).collect();
    assert_eq!(names, ["log/1"]);
    assert_eq!(remote.create("log/2", &["two".into()]).unwrap(), Created::New);
    assert_eq!(remote.read("log/2", Part::Whole).unwrap().unwrap().bytes, "two");
}

#[test]
fn missing_folder_is_an_error_and_is_not_created() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("unmounted");
    let location = RemoteLocation::parse(&format!("file://{}", missing.display())).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let refused =
        remote::connect(&location, &TrustAnchors::default(), runtime.handle().clone()).err();
    assert!(refused.unwrap().to_string().contains("the folder must exist"));
    assert!(!missing.exists());
}

#[test]
fn moved_folder_is_used_and_its_path_is_not_created() {
    let parent = tempfile::tempdir().unwrap();
    let (path, moved) = (parent.path().join("remote"), parent.path().join("moved"));
    fs::create_dir(&path).unwrap();
    let remote = connect_folder(&path);
    fs::rename(&path, &moved).unwrap();
    assert_eq!(remote.create("log/1", &["one".into()]).unwrap(), Created::New);
    assert_eq!(remote.list("", None, 9).unwrap()[0].name, "log/1");
    assert!(moved.join("log/1").exists() && !path.exists());
    fs::write(moved.join("seg"), "a file").unwrap();
    let error = remote.create("seg/1", &["one".into()]).unwrap_err().to_string();
    assert!(error.contains(path.join("seg").to_str().unwrap()), "{error}");
    // Another folder at the path, as after an unmount, gets nothing.
    fs::create_dir(&path).unwrap();
    assert_eq!(remote.create("log/2", &["two".into()]).unwrap(), Created::New);
    assert!(fs::read_dir(&path).unwrap().next().is_none());
}

#[test]
fn removed_folder_is_an_error_of_every_call() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("remote");
    fs::create_dir(&path).unwrap();
    let remote = connect_folder(&path);
    fs::remove_dir(&path).unwrap();
    let errors = [
        remote.create("log/1", &["one".into()]).unwrap_err(),
        remote.upload("seg/1", 0, &mut |_, _| Ok(())).unwrap_err(),
        remote.read("log/1", Part::Whole).err().unwrap(),
        remote.list("log/", None, 9).err().unwrap(),
        remote.remove("log/1").unwrap_err(),
    ];
    for error in errors {
        assert!(error.to_string().ends_with("/remote was removed"), "{error}");
    }
    assert!(!path.exists());
}
