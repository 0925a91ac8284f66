//! `trug account`.

use std::io::Write;
use std::process::Stdio;

use tests::{DataFolder, ServerProcess};

use crate::with_and_without_server;

#[test]
fn account_commands_create_list_and_edit() {
    with_and_without_server(|folder| {
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
fn account_role_and_quota_are_set() {
    with_and_without_server(|folder| {
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
fn account_invalid_commands_are_rejected() {
    with_and_without_server(|folder| {
        let refused = |words: &[&str], says: &str| folder.run(words).check_failure(1, says);
        refused(&["account", "create", "--name", "ann"], "\"ann\" already exists");
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
fn account_sweep_reports_and_standing_has_a_reason() {
    with_and_without_server(|folder| {
        folder.done(&["account", "edit", "ann", "--plan", "Free"]);
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
        let list = folder.done(&["account", "list", "--wide"]).stdout;
        assert!(list.contains("REASON") && list.contains("set by the operator"), "{list}");
    });
}

#[test]
fn terminal_escape_sequences_in_names_are_escaped() {
    with_and_without_server(|folder| {
        folder.done(&["account", "create", "--name", "a\u{202e}b"]);
        let list = folder.done(&["account", "list"]).stdout;
        assert!(list.contains("a\\u{202e}b") && !list.contains('\u{202e}'), "{list}");
        let json = folder.done(&["account", "list", "--json"]).stdout;
        assert!(json.contains("a\\u202eb") && !json.contains('\u{202e}'), "{json}");
    });
}

#[test]
fn first_account_creates_the_store() {
    let folder = DataFolder::new();
    let ran = folder.done(&["account", "create", "--name", "ann"]);
    assert!(ran.stderr.contains("created a new store in"), "{ran:?}");
    assert!(ran.stdout.contains("operator"), "{ran:?}");
    assert!(ran.stderr.contains("trug account password ann --data "), "{ran:?}");
    let again = folder.done(&["account", "create", "--name", "bob"]);
    assert!(!again.stderr.contains("created a new store"), "{again:?}");
    assert!(!again.stdout.contains("operator"), "{again:?}");
}

#[test]
fn foreign_folder_is_not_made_a_store() {
    let folder = DataFolder::new();
    std::fs::create_dir(folder.path()).expect("a folder can be made");
    std::fs::write(folder.path().join("thesis.txt"), "mine").expect("a file can be made");
    let ran = folder.run(&["account", "create", "--name", "ann"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(!folder.path().join("log").exists() && !folder.path().join("STORE").exists());
}

/// Signs in like a same-origin page; returns the status and the response's `Set-Cookie`.
fn sign_in(server: &ServerProcess, name: &str, password: &str) -> (u16, String) {
    let body = serde_json::json!({"name": name, "password": password}).to_string();
    let headers = [("content-type", "application/json"), ("sec-fetch-site", "same-origin")];
    let mut connection = server.connect();
    let answer = connection.send("POST", "/-/session", &headers, body.as_bytes());
    let answer = answer.expect("it answers");
    (answer.status, answer.header("set-cookie").to_owned())
}

#[test]
fn password_is_read_from_file_or_stdin() {
    with_and_without_server(|folder| {
        let file = folder.parent().join("password");
        std::fs::write(&file, "correct horse battery\n").expect("a file can be written");
        let file = file.display().to_string();
        let words = ["account", "password", "--account", "ann", "--password-file", &file];
        let set = folder.json(&words);
        assert_eq!((&set["name"], &set["endedSessionCount"]), (&"ann".into(), &0.into()));
        assert_eq!(folder.json(&["account", "list"])[0]["hasPassword"], true);
        let printed = folder.done(&words);
        assert_eq!(printed.stdout, "ann has a new password; 0 sessions ended\n");
        assert_eq!(printed.stderr, "");

        let typed = |text: &str| {
            let mut command = folder.command(&["account", "password", "--account", "ann"]);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().expect("the binary runs");
            let mut stdin = child.stdin.take().expect("stdin is piped");
            stdin.write_all(text.as_bytes()).expect("it reads stdin");
            drop(stdin);
            let output = child.wait_with_output().expect("it ends");
            (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
        };
        assert_eq!(typed("another horse battery\n"), (Some(0), String::new()));
        let (code, says) = typed("short\n");
        assert!(code == Some(1) && says.contains("at least 10 characters"), "{says}");
        assert!(!says.contains("short\n"), "{says}");

        let none = ["account", "password", "--account", "ann", "--password-file", "none"];
        folder.run(&none).check_failure(2, "cannot read none");
        let nobody = ["account", "password", "--account", "bob", "--password-file", &file];
        folder.run(&nobody).check_failure(1, "\"bob\" does not exist");
    });
}

#[test]
fn password_reset_revokes_old_sessions() {
    let (folder, _) = DataFolder::with_bucket();
    let file = folder.parent().join("password");
    let set = |text: &str| {
        std::fs::write(&file, text).expect("a file can be written");
        let path = file.display().to_string();
        folder.json(&["account", "password", "--account", "ann", "--password-file", &path])
    };
    set("correct horse battery");
    let server = folder.serve();
    assert_eq!(sign_in(&server, "ann", "wrong horse battery").0, 401);
    let (status, cookie) = sign_in(&server, "ann", "correct horse battery");
    assert_eq!(status, 200);
    // Without TLS the cookie has its plain name.
    assert!(cookie.starts_with("trug-session=") && !cookie.contains("Secure"), "{cookie}");
    let cookie = cookie.split(';').next().expect("a cookie").to_owned();
    let is_in = |server: &ServerProcess| {
        let headers = [("cookie", cookie.as_str()), ("sec-fetch-site", "same-origin")];
        let answer = server.connect().send("GET", "/-/session", &headers, b"");
        answer.expect("it answers").json()["signedIn"] == true
    };
    assert!(is_in(&server));
    server.stop();
    // Sessions survive a restart; a new password ends them.
    let mut server = folder.serve();
    assert!(is_in(&server));
    server.kill();
    let server = folder.serve();
    assert!(is_in(&server));
    assert_eq!(set("another horse battery")["endedSessionCount"], 1);
    assert!(!is_in(&server));
    assert_eq!(sign_in(&server, "ann", "another horse battery").0, 200);
}

#[test]
fn invitation_link_is_printed_to_stdout() {
    with_and_without_server(|folder| {
        let words = ["account", "invite", "--account", "ann"];
        let url = ["--public-url", "https://cdn.example.com/files/"];
        let printed = folder.done(&[&words[..], &url[..]].concat());
        let link = printed.stdout.trim_end();
        let secret = link.strip_prefix("https://cdn.example.com/files/-/invitation#");
        assert_eq!(secret.map(str::len), Some(69), "{link}");
        assert!(printed.stderr.contains("for ann; works once, until 20"), "{printed:?}");
        let invited = folder.json(&words);
        assert!(invited["expiresAt"].is_string() && invited["name"] == "ann", "{invited}");
        let wrong = [&words[..], &["--public-url", "cdn.example.com"]].concat();
        folder.run(&wrong).check_failure(2, "must start with http:// or https://");
    });
    // A running server knows its address; without one there is no address.
    let (folder, _) = DataFolder::with_bucket();
    let words = ["account", "invite", "--account", "ann"];
    let printed = folder.done(&words);
    assert!(printed.stdout.starts_with("/-/invitation#"), "{printed:?}");
    assert!(printed.stderr.contains("--public-url"), "{printed:?}");
    let server = folder.serve();
    let printed = folder.done(&words);
    let (address, secret) = printed.stdout.trim_end().split_once("/-/invitation#").expect("a link");
    assert_eq!(address, format!("http://{}", server.address()));
    let body = serde_json::json!({"token": secret, "password": "correct horse battery"});
    let headers = [("content-type", "application/json"), ("sec-fetch-site", "same-origin")];
    let mut connection = server.connect();
    let body = body.to_string();
    let accept = connection.send("POST", "/-/invitation", &headers, body.as_bytes());
    assert_eq!(accept.expect("it answers").status, 200);
    assert_eq!(sign_in(&server, "ann", "correct horse battery").0, 200);
}

#[test]
fn account_delete_removes_keys_and_buckets_with_force() {
    with_and_without_server(|folder| {
        folder.done(&["account", "create", "root", "--role", "operator"]);
        folder.done(&["account", "create", "carl"]);
        folder.done(&["organisation", "create", "crew", "--account", "ann"]);
        folder.done(&["organisation", "add", "crew", "carl", "--role", "member"]);
        folder.done(&["apikey", "create", "--account", "carl"]);
        folder.done(&["bucket", "create", "of-carl", "--account", "carl"]);
        folder.run(&["account", "delete", "carl"]).check_failure(1, "owns 1 buckets");
        folder.run(&["account", "delete", "carl"]).check_failure(1, "--force");
        folder.run(&["account", "delete", "root"]).check_failure(1, "only operator");
        let deleted = folder.done(&["account", "delete", "carl", "--force"]).stdout;
        assert_eq!(deleted, "deleted the account carl and 0 objects\n");
        folder.run(&["apikey", "list", "--account", "carl"]).check_failure(1, "carl");
        let names = |words: &[&str]| folder.json(words).to_string();
        assert!(!names(&["bucket", "list"]).contains("of-carl"));
        assert!(!names(&["organisation", "list"]).contains("carl"));
        assert!(names(&["audit"]).contains("account.delete"));
        folder.done(&["account", "rm", "ann", "--force"]);
        assert_eq!(folder.json(&["organisation", "list"]).as_array().map(Vec::len), Some(0));
        folder.done(&["account", "create", "carl"]);
    });
}
