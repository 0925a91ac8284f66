//! `trug link`: create, request, list, show, edit, end.

use tests::DataFolder;

use crate::with_and_without_server;

/// Creates a link; returns its id, which is noted, and its URL, which alone is printed.
fn create(folder: &DataFolder, words: &[&str]) -> (String, String) {
    let ran = folder.done(&[&["link"], words].concat());
    let url = ran.stdout.strip_suffix('\n').expect("a line ends");
    assert!(url.contains("/-/s/") && !url.contains(char::is_whitespace), "{url}");
    let id = ran.stderr.split(' ').nth(2).expect("its id is noted");
    (id.to_owned(), url.to_owned())
}

#[test]
fn link_commands_create_list_show_edit_and_end() {
    with_and_without_server(|folder| {
        let file = folder.parent().join("a.txt");
        std::fs::write(&file, "hello").expect("the file can be written");
        folder.done(&["cp", file.to_str().expect("the path is UTF-8"), "photos/a.txt"]);
        let (id, url) =
            create(folder, &["request", "photos/inbox/", "--files", "3", "--size", "1GB"]);
        let shown = folder.json(&["link", "show", &id]);
        for (field, value) in [
            ("kind", serde_json::json!("upload")),
            ("bucketName", "photos".into()),
            ("paths", serde_json::json!(["inbox/"])),
            ("filesMax", 3.into()),
            ("bytesMax", 1_000_000_000.into()),
            ("askName", "optional".into()),
            ("createdBy", "ann".into()),
            ("state", "active".into()),
            ("url", url.as_str().into()),
        ] {
            assert_eq!(shown[field], value, "{field}");
        }
        let (whole, _) =
            create(folder, &["create", "photos/", "--downloads", "20", "--expires", "never"]);
        let list = folder.done(&["link", "list", "photos"]).stdout;
        assert!(
            list.contains(&id) && list.contains("0 files") && list.contains("photos/inbox/"),
            "{list}"
        );
        assert!(
            list.contains(&whole) && list.contains("0 of 20") && list.contains("never"),
            "{list}"
        );
        assert!(!list.contains("/-/s/"), "{list}");
        assert!(folder.done(&["link", "ls", "--wide"]).stdout.contains(&url));
        let words = [
            "--files",
            "9",
            "--ask-name",
            "required",
            "--types",
            "image/*,video/*",
            "--title",
            "Party",
        ];
        let edited = folder.json(&[&["link", "edit", &id], &words[..]].concat());
        assert_eq!((&edited["filesMax"], &edited["askName"]), (&9.into(), &"required".into()));
        assert_eq!(edited["allowedTypes"], serde_json::json!(["image/*", "video/*"]));
        let text = folder.done(&["link", "show", &id]).stdout;
        assert!(
            text.contains(&url) && text.contains("Party") && text.contains("image/*, video/*"),
            "{text}"
        );
        folder.done(&["link", "end", &id]);
        assert!(folder.done(&["link", "list"]).stdout.contains("ended"));
        folder.run(&["link", "end", &id]).check_failure(1, "ended");
        folder.run(&["link", "show", "abcdefghijklmnop"]).check_failure(1, "does not exist");
    });
}

#[test]
fn link_settings_are_checked() {
    with_and_without_server(|folder| {
        let secret = folder.parent().join("link-password");
        std::fs::write(&secret, "tern-42\n").expect("the file can be written");
        let secret = secret.to_str().expect("the path is UTF-8");
        let (id, _) = create(folder, &["request", "photos/inbox/", "--password-file", secret]);
        assert_eq!(folder.json(&["link", "show", &id])["hasPassword"], true);
        assert_eq!(folder.json(&["link", "edit", &id, "--no-password"])["hasPassword"], false);
        for (words, code, says) in [
            (&["request", "photos/inbox"][..], 1, "must be one folder"),
            (&["request", "photos/inbox/", "--files", "0"], 1, "filesMax"),
            (&["request", "photos/inbox/", "--size", "lots"], 2, "lots"),
            (&["request", "photos/inbox/", "--ask-name", "maybe"], 2, "maybe"),
            (&["request", "photoz/inbox/"], 1, "photoz"),
            (&["create", "photos/none.txt"], 1, "photos/none.txt"),
            (&["create", "photos/a", "other/b"], 2, "another bucket"),
            (&["create", "photos/", "--expires", "soon"], 2, "soon"),
            (&["edit", &id], 2, "required"),
            (&["edit", &id, "--downloads", "3"], 1, "downloadsMax"),
        ] {
            folder.run(&[&["link"], words].concat()).check_failure(code, says);
        }
    });
}

#[test]
fn link_of_a_server_opens_its_page() {
    let (folder, key) = DataFolder::with_bucket();
    let server = folder.serve();
    server.upload(&key, "/photos/", "a.txt", b"hello");
    let (id, url) = create(&folder, &["create", "photos/a.txt", "--title", "Hi"]);
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
    let path = &url[url.find("/-/s/").expect("it is a link")..];
    let page = server.get(path);
    assert_eq!(page.status, 200, "{page:?}");
    assert_eq!(server.get(&format!("{path}/f/a.txt")).status, 200);
    let shown = folder.json(&["link", "show", &id]);
    assert_eq!((&shown["viewCount"], &shown["downloadCount"]), (&1.into(), &1.into()));
    assert!(shown["lastUsedAt"].is_string(), "{shown}");
    let (_, url) =
        create(&folder, &["create", "photos/", "--public-url", "https://cdn.example.com"]);
    assert!(url.starts_with("https://cdn.example.com/-/s/"), "{url}");
    server.stop();
    // A graceful shutdown writes the use, and the sums of the hour.
    assert_eq!(folder.json(&["link", "show", &id])["viewCount"], 1);
    let text = folder.done(&["link", "show", &id]).stdout;
    assert!(
        text.contains("views               1\n") && text.contains("last used           20"),
        "{text}"
    );
    let audit = folder.done(&["audit", "--wide"]).stdout;
    assert!(audit.contains("link.download") && audit.contains("files: 1, addresses: 1"), "{audit}");
    let ran = folder.done(&["link", "create", "photos/"]);
    assert!(
        ran.stdout.starts_with("/-/s/") && ran.stderr.contains("no server is running"),
        "{ran:?}"
    );
}

#[test]
fn link_days_max_of_the_server_applies_to_link_commands() {
    let (folder, key) = DataFolder::with_bucket();
    let server = folder.serve_with_env(&[("TRUG_LINK_DAYS_MAX", "2")]);
    server.upload(&key, "/photos/", "a.txt", b"hello");
    let create = ["link", "create", "photos/", "--expires"];
    for refused in ["never", "3d"] {
        folder.run(&[&create, &[refused][..]].concat()).check_failure(1, "at most 2 days");
    }
    let ran = folder.done(&[&create, &["2d"][..]].concat());
    let id = ran.stderr.split(' ').nth(2).expect("its id is noted");
    folder.run(&["link", "edit", id, "--expires", "never"]).check_failure(1, "at most 2 days");
    server.stop();
}
