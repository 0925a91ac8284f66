//! `trug bucket`.

use tests::DataFolder;

use crate::with_and_without_server;

#[test]
fn bucket_commands_create_list_edit_and_delete() {
    with_and_without_server(|folder| {
        folder.done(&["account", "create", "--name", "bob"]);
        let create = ["bucket", "create", "--account", "bob", "--name", "calls", "--type", "phone"];
        let mut words = create.to_vec();
        words.extend(["--access", "private", "--cache-control", "no-cache"]);
        let calls = folder.json(&words);
        for (field, value) in [
            ("bucketName", "calls"),
            ("type", "phone"),
            ("access", "private"),
            ("cacheControl", "no-cache"),
        ] {
            assert_eq!(calls[field], value, "{field}");
        }
        assert_eq!((&calls["objectCount"], &calls["totalBytes"]), (&0.into(), &0.into()));

        let count = |words: &[&str]| folder.json(words).as_array().map(Vec::len);
        assert_eq!(count(&["bucket", "list"]), Some(2));
        assert_eq!(count(&["bucket", "list", "--account", "bob"]), Some(1));

        let edit = ["bucket", "edit", "--name", "calls", "--serve-html", "true"];
        let mut words = edit.to_vec();
        words.extend(["--cache-control", "", "--placeholder", "none.png"]);
        let edited = folder.json(&words);
        assert_eq!((&edited["serveHtml"], &edited["access"]), (&true.into(), &"private".into()));
        assert!(edited["cacheControl"].is_null() && edited["placeholder"] == "none.png");

        let list = folder.done(&["bucket", "list"]).stdout;
        assert!(list.starts_with("NAME ") && list.contains("\nphotos "), "{list}");

        let deleted = folder.done(&["bucket", "delete", "--name", "calls"]);
        assert_eq!(deleted.stdout, "deleted the bucket calls and 0 files\n");
        assert_eq!(count(&["bucket", "list"]), Some(1));
    });
}

#[test]
fn bucket_shows_top_level_folders_with_usage() {
    let (folder, key) = DataFolder::with_bucket();
    let server = folder.serve();
    for (place, body) in [("/photos/b/deep/", b"22".as_slice()), ("/photos/a/", b"1")] {
        server.put(&key, place, "a.txt", body);
    }
    let check = || {
        let command = ["bucket", "folders", "--name", "photos"];
        let shown = folder.done(&command);
        assert_eq!(
            shown.stdout,
            "FOLDER  FILES  STORED\na/      1      1 bytes\nb/      1      2 bytes\n"
        );
        assert!(!shown.stderr.contains("more folders"), "{shown:?}");
        let first = folder.done(&[&command[..], &["--limit", "1"]].concat());
        assert!(first.stderr.contains("use --after \"a/\""), "{first:?}");
        let second = folder.json(&[&command[..], &["--after", "a"]].concat());
        assert_eq!(second["folders"][0]["folder"], "b/");
        assert_eq!(
            (&second["folders"][0]["totalBytes"], &second["nextCursor"]),
            (&2.into(), &().into())
        );
        folder.run(&["bucket", "folders", "--name", "none"]).check_failure(1, "does not exist");
        folder.run(&[&command[..], &["--limit", "1001"]].concat()).check_failure(2, "--limit");
    };
    check();
    server.stop();
    check();
}

#[test]
fn bucket_settings_can_be_set_and_unset() {
    with_and_without_server(|folder| {
        let edit = ["bucket", "edit", "--name", "photos"];
        let mut words = edit.to_vec();
        words.extend(["--cors-origins", "https://b.example,https://a.example"]);
        words.extend(["--allowed-types", "image/*,video/mp4", "--file-bytes-max", "10"]);
        words.extend(["--quota-bytes", "100", "--quota-objects", "5", "--thumbnails", "true"]);
        words.extend(["--compression", "false"]);
        let edited = folder.json(&words);
        let origins = serde_json::json!(["https://a.example", "https://b.example"]);
        assert_eq!(edited["corsOrigins"], origins);
        assert_eq!(edited["allowedTypes"], serde_json::json!(["image/*", "video/mp4"]));
        for (field, value) in [("fileBytesMax", 10), ("quotaBytes", 100), ("quotaObjects", 5)] {
            assert_eq!(edited[field], value, "{field}");
        }
        assert_eq!((&edited["thumbnails"], &edited["compression"]), (&true.into(), &false.into()));
        let mut words = edit.to_vec();
        words.extend(["--cors-origins", "*", "--allowed-types", "", "--file-bytes-max", "none"]);
        words.extend(["--quota-bytes", "none", "--quota-objects", "NONE"]);
        let edited = folder.json(&words);
        assert_eq!(edited["corsOrigins"], serde_json::json!(["*"]));
        assert_eq!(edited["allowedTypes"], serde_json::json!([]));
        for field in ["fileBytesMax", "quotaBytes", "quotaObjects"] {
            assert!(edited[field].is_null(), "{field}");
        }
        let refused = |words: &[&str], says: &str| {
            folder.run(&[&edit[..], words].concat()).check_failure(1, says);
        };
        refused(&["--cors-origins", "example.com"], "is not an origin");
        refused(&["--allowed-types", "image"], "is not a media type");
        refused(&["--placeholder", "/nowhere/a.png"], "has no bucket nowhere");
        let none = folder.run(&["bucket", "create", "--name", "other"]);
        none.check_failure(2, "--account");
    });
}

#[test]
fn bucket_invalid_commands_are_rejected() {
    with_and_without_server(|folder| {
        let refused = |words: &[&str], says: &str| folder.run(words).check_failure(1, says);
        let create = |account: &str, name: &str, says: &str| {
            refused(&["bucket", "create", "--account", account, "--name", name], says);
        };
        create("ann", "photos", "photos");
        create("ann", "api", "reserved");
        create("ann", "No", "not valid");
        create("bob", "other", "\"bob\" does not exist");
        refused(&["bucket", "edit", "--name", "none", "--access", "public"], "does not exist");
        refused(&["bucket", "delete", "--name", "none", "--force"], "does not exist");
        refused(&["bucket", "list", "--account", "bob"], "does not exist");
    });
}

#[test]
fn bucket_delete_with_files_requires_force() {
    let (folder, key) = DataFolder::with_bucket();
    let check = || {
        let refused = folder.run(&["bucket", "delete", "--name", "photos"]);
        refused.check_failure(1, "photos is not empty: 1 objects");
        assert!(refused.stderr.contains("--force"), "{refused:?}");
    };
    let server = folder.serve();
    server.put(&key, "/photos/", "a.txt", b"hello");
    check();
    server.stop();
    check();
    let deleted = folder.json(&["bucket", "delete", "--name", "photos", "--force"]);
    assert_eq!((&deleted["bucketName"], &deleted["deletedCount"]), (&"photos".into(), &1.into()));
    let again = folder.run(&["bucket", "delete", "--name", "photos"]);
    again.check_failure(1, "the bucket \"photos\" does not exist");
}
