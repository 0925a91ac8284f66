//! `trug account`.

use tests::DataFolder;

use crate::with_and_without_a_server;

#[test]
fn accounts_are_made_listed_and_edited() {
    with_and_without_a_server(|folder| {
        let bob = folder.json(&["account", "create", "--name", "Bob & Co", "--plan", "starter"]);
        assert_eq!((&bob["name"], &bob["plan"]), (&"Bob & Co".into(), &"Starter".into()));
        assert_eq!(bob["standing"], "good");
        let id = bob["id"].as_str().expect("an account has an id");

        let accounts = folder.json(&["account", "list"]);
        let mut names: Vec<_> = accounts.as_array().expect("a list").iter().collect();
        names.sort_by_key(|account| account["name"].as_str().map(str::to_owned));
        assert_eq!(names.len(), 2);
        assert_eq!((&names[0]["name"], &names[1]["name"]), (&"Bob & Co".into(), &"ann".into()));

        let edit = ["account", "edit", "--account", id, "--name", "bob", "--plan", "Business"];
        let edited = folder.json(&edit);
        assert_eq!((&edited["name"], &edited["plan"]), (&"bob".into(), &"Business".into()));
        let edited =
            folder.json(&["account", "edit", "--account", "bob", "--standing", "throttled"]);
        assert_eq!(
            (&edited["plan"], &edited["standing"]),
            (&"Business".into(), &"throttled".into())
        );

        let list = folder.done(&["account", "list"]);
        let line = list.stdout.lines().find(|line| line.contains("bob")).expect("bob is listed");
        assert!(list.stdout.starts_with("ID "), "{list:?}");
        assert!(line.starts_with(id) && line.contains("throttled"), "{line}");
        assert_eq!(list.stderr, "");
    });
}

#[test]
fn an_account_has_a_role_and_a_quota() {
    with_and_without_a_server(|folder| {
        let create = ["account", "create", "--name", "root", "--role", "operator"];
        let root = folder.json(&[&create[..], &["--storage-bytes-max", "1000"]].concat());
        assert_eq!((&root["role"], &root["storageBytesMax"]), (&"operator".into(), &1000.into()));
        let edit = ["account", "edit", "--account", "root", "--object-count-max", "7"];
        let edited = folder.json(&[&edit[..], &["--storage-bytes-max", "none"]].concat());
        assert_eq!(edited["objectCountMax"], 7);
        assert!(edited["storageBytesMax"].is_null() && edited["role"] == "operator", "{edited}");
        let wrong =
            folder.run(&["account", "edit", "--account", "root", "--object-count-max", "x"]);
        wrong.check_failure(2, "neither a number nor \"none\"");
    });
}

#[test]
fn what_cannot_be_done_is_refused_in_a_sentence() {
    with_and_without_a_server(|folder| {
        let refused = |words: &[&str], says: &str| folder.run(words).check_failure(1, says);
        refused(&["account", "create", "--name", "ann"], "\"ann\" exists already");
        refused(&["account", "create", "--name", " "], "needs a name");
        refused(&["account", "create", "--name", "a\u{1b}[2Jb"], "no control characters");
        refused(
            &["account", "edit", "--account", "bob", "--plan", "Pro"],
            "\"bob\" does not exist",
        );
        assert_eq!(folder.json(&["account", "list"]).as_array().map(Vec::len), Some(1));
    });
}

#[test]
fn a_sweep_says_what_it_looked_at_and_a_standing_why_it_changed() {
    with_and_without_a_server(|folder| {
        let swept = folder.json(&["account", "sweep"]);
        assert_eq!((&swept["accountCount"], &swept["violationCount"]), (&1.into(), &0.into()));
        assert_eq!(swept["steps"].as_array().map(Vec::len), Some(0));
        let text = folder.done(&["account", "sweep"]).stdout;
        assert_eq!(text, "1 accounts, 0 break fair use\n");

        let edit = ["account", "edit", "--account", "ann", "--standing", "throttled"];
        let change = folder.json(&edit)["standingChanges"][0].clone();
        assert_eq!((&change["from"], &change["to"]), (&"good".into(), &"throttled".into()));
        assert_eq!(
            (&change["by"], &change["reason"]),
            (&"operator".into(), &"set by the operator".into())
        );
        let list = folder.done(&["account", "list"]).stdout;
        assert!(list.contains("REASON") && list.contains("set by the operator"), "{list}");
    });
}

#[test]
fn names_that_would_steer_the_terminal_are_written_out() {
    with_and_without_a_server(|folder| {
        folder.done(&["account", "create", "--name", "a\u{202e}b"]);
        let list = folder.done(&["account", "list"]).stdout;
        assert!(list.contains("a\\u{202e}b") && !list.contains('\u{202e}'), "{list}");
        let json = folder.done(&["account", "list", "--json"]).stdout;
        assert!(json.contains("a\\u202eb") && !json.contains('\u{202e}'), "{json}");
    });
}

#[test]
fn the_first_account_makes_the_store_and_says_so() {
    let folder = DataFolder::new();
    let ran = folder.done(&["account", "create", "--name", "ann"]);
    assert!(ran.stderr.contains("made a new store in"), "{ran:?}");
    let again = folder.done(&["account", "create", "--name", "bob"]);
    assert_eq!(again.stderr, "");
}

#[test]
fn a_folder_of_something_else_is_not_made_a_store() {
    let folder = DataFolder::new();
    std::fs::create_dir(folder.path()).expect("a folder can be made");
    std::fs::write(folder.path().join("thesis.txt"), "mine").expect("a file can be made");
    let ran = folder.run(&["account", "create", "--name", "ann"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(!folder.path().join("log").exists() && !folder.path().join("STORE").exists());
}
