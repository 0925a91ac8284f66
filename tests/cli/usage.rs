//! Behaviour common to all commands: help, wrong usage, folders without a store, a store in use.

use engine::{Create, OpenOptions, Store};
use tests::commands::{run, trug};
use tests::{DataFolder, Ran};

const LEAVES: &[&[&str]] = &[
    &["serve"],
    &["account", "create"],
    &["account", "list"],
    &["account", "edit"],
    &["account", "password"],
    &["account", "invite"],
    &["organisation", "create"],
    &["organisation", "list"],
    &["organisation", "rename"],
    &["organisation", "delete"],
    &["organisation", "add"],
    &["organisation", "remove"],
    &["bucket", "create"],
    &["bucket", "list"],
    &["bucket", "edit"],
    &["bucket", "delete"],
    &["apikey", "create"],
    &["apikey", "list"],
    &["apikey", "revoke"],
    &["stats"],
    &["export"],
    &["import"],
    &["history"],
    &["audit"],
    &["undelete"],
    &["backup"],
    &["compact"],
    &["scrub"],
];

/// Commands that need an existing store.
const ON_A_STORE: &[&[&str]] = &[
    &["account", "list"],
    &["account", "edit", "--account", "ann", "--plan", "Pro"],
    &["account", "invite", "--account", "ann"],
    &["organisation", "create", "--account", "ann", "--name", "Crew"],
    &["organisation", "list"],
    &["bucket", "create", "--account", "ann", "--name", "photos"],
    &["bucket", "list"],
    &["apikey", "create", "--account", "ann"],
    &["apikey", "list"],
    &["stats"],
    &["export", "--bucket", "photos", "--to", "/nowhere/a.tar"],
    &["import", "--bucket", "photos", "--from", "/nowhere/a.tar"],
    &["history", "--bucket", "photos"],
    &["undelete", "--bucket", "photos", "a.txt"],
    &["backup", "--to", "/nowhere/backup"],
    &["compact"],
    &["scrub"],
    &["audit"],
];

fn plainly(words: &[&str]) -> Ran {
    run(trug().args(words))
}

#[test]
fn every_command_has_help() {
    for words in LEAVES {
        let ran = plainly(&[words, &["--help"][..]].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        for part in ["Usage: trug", "Example:\n  trug", "Exit codes: 0 done", "--data"] {
            assert!(ran.stdout.contains(part), "{part:?} is not in {}", ran.stdout);
        }
    }
    let ran = plainly(&["--version"]);
    assert!(ran.code == 0 && ran.stdout.starts_with("trug "), "{ran:?}");
    let avif = match cfg!(feature = "fast-codecs") {
        true => "AVIF is written by libaom",
        false => "AVIF is read and written without assembler",
    };
    assert!(ran.stdout.contains(avif), "{ran:?}");
}

#[test]
fn usage_errors_exit_with_2() {
    let cases: &[&[&str]] = &[
        &[],
        &["account"],
        &["nonsense"],
        &["account", "create"],
        &["account", "create", "--name", "ann", "--plan", "Gold"],
        &["account", "edit", "--account", "ann"],
        &["bucket", "edit", "--name", "photos"],
        &["bucket", "edit", "--name", "photos", "--serve-html", "perhaps"],
        &["bucket", "create", "--account", "ann", "--name", "photos", "--type", "odd"],
        &["apikey", "create", "--account", "ann", "--scope", "everything"],
        &["stats", "--color"],
        &["export", "--bucket", "photos"],
        &["import", "--bucket", "photos", "--from", "a.tar", "--on-conflict", "perhaps"],
        &["history", "--bucket", "photos", "--limit", "0"],
        &["undelete"],
        &["audit", "--limit", "0"],
        &["compact", "--dead-percent-min", "101"],
        &["compact", "--rate", "0"],
        &["backup", "--data", "data"],
    ];
    for words in cases {
        plainly(words).check_failure(2, if words.len() < 2 { "Usage: trug" } else { "--help" });
    }
}

#[test]
fn foreign_folder_is_reported_and_left_untouched() {
    for words in ON_A_STORE {
        let folder = DataFolder::new();
        folder.run(words).check_failure(1, "does not exist");
        assert!(!folder.path().exists(), "{words:?}");
        std::fs::create_dir(folder.path()).expect("a folder can be made");
        folder.run(words).check_failure(1, "the folder contains no store");
        assert!(!folder.path().join("STORE").exists(), "{words:?}");
    }
}

#[test]
fn busy_store_without_control_socket_exits_with_4() {
    let (folder, _) = DataFolder::with_bucket();
    let (store, _) = Store::open_folder(&folder.path(), OpenOptions::new(Create::Never))
        .expect("the store is free");
    let ran = folder.run(&["account", "list"]);
    ran.check_failure(4, &format!("in use by process {}", std::process::id()));
    // The remains of a killed server do not count as a server.
    drop(std::os::unix::net::UnixListener::bind(folder.path().join("control.sock")));
    folder.run(&["stats"]).check_failure(4, "does not accept commands");
    store.close().expect("the store closes");
    folder.done(&["account", "list"]);
}

#[test]
fn concurrent_commands_wait_for_the_store_lock() {
    let (folder, _) = DataFolder::with_bucket();
    std::thread::scope(|scope| {
        for number in 0..6 {
            let folder = &folder;
            scope.spawn(move || {
                folder.done(&["account", "create", "--name", &format!("number {number}")]);
            });
        }
    });
    assert_eq!(folder.json(&["account", "list"]).as_array().map(Vec::len), Some(7));
}

#[test]
fn data_folder_is_read_from_the_environment() {
    let (folder, _) = DataFolder::with_bucket();
    let ran = run(trug().args(["bucket", "list"]).env("TRUG_DATA", folder.path()));
    assert!(ran.code == 0 && ran.stdout.contains("photos"), "{ran:?}");
}

#[test]
fn broken_pipe_is_not_a_failure() {
    let (folder, _) = DataFolder::with_bucket();
    let (reader, writer) = std::io::pipe().expect("a pipe can be made");
    drop(reader);
    let mut command = folder.command(&["account", "list"]);
    let status = command.stdout(writer).status().expect("the binary runs");
    assert_eq!(status.code(), Some(0));
}

#[test]
fn names_are_positional_with_options_and_aliases() {
    let folder = DataFolder::new();
    folder.done(&["account", "mk", "ann"]);
    folder.done(&["bucket", "create", "pics", "--account", "ann", "--quota", "1.5GB"]);
    folder.done(&["bucket", "edit", "--name", "pics", "--file-bytes-max", "512MiB"]);
    let bucket = &folder.json(&["bucket", "ls"])[0];
    assert_eq!(bucket["quotaBytes"], 1_500_000_000);
    assert_eq!(bucket["fileBytesMax"], 512 << 20);
    folder.done(&["org", "create", "Crew", "--account", "ann"]);
    folder.done(&["org", "rename", "Crew", "Team"]);
    folder.done(&["org", "rm", "Team"]);
    folder.done(&[
        "webhook",
        "create",
        "pics",
        "http://192.0.2.1/",
        "--event",
        "s3:ObjectCreated:*",
    ]);
    let id = folder.json(&["webhook", "ls", "pics"])[0]["id"].as_str().expect("an ID").to_owned();
    folder.done(&["webhook", "failed", &id]);
    folder.done(&["webhook", "rm", &id]);
    folder.done(&["history", "pics"]);
    let key = folder.json(&["key", "create", "--account", "ann"])["id"].clone();
    folder.done(&["key", "rm", key.as_str().unwrap()]);
    folder.done(&["bucket", "rm", "pics"]);
    for (words, says) in [
        (&["bucket", "create", "--account", "ann"][..], "<NAME>"),
        (&["bucket", "edit", "pics", "--name", "pics", "--index", "true"], "cannot be used with"),
        (&["bucket", "edit", "pics", "--quota", "much"], "not a size such as 500MB"),
        (&["undelete", "pics"], "--since is required"),
    ] {
        folder.run(words).check_failure(2, says);
    }
}
