//! `trug apikey`.

use tests::DataFolder;

use crate::with_and_without_server;

#[test]
fn apikey_create_prints_only_the_key_once() {
    with_and_without_server(|folder| {
        let ran = folder.done(&["apikey", "create", "--account", "ann"]);
        let key = ran.stdout.strip_suffix('\n').expect("a line ends");
        assert!(key.starts_with("trug_") && !key.contains(char::is_whitespace), "{key}");
        let id = key.split('_').nth(1).expect("a key holds its id");
        assert!(ran.stderr.contains(id) && !ran.stderr.contains(key), "{ran:?}");

        let words = ["apikey", "create", "--account", "ann", "--name", "phone", "--bucket"];
        let mut words = words.to_vec();
        words.extend(["photos", "--prefix", "img", "--scope", "upload,READ", "--scope", "list"]);
        words.extend(["--expires-at", "2100-01-31T12:00:00Z"]);
        let issued = folder.json(&words);
        let second = issued["key"].as_str().expect("the key is printed");
        for (field, value) in [
            ("name", "phone"),
            ("bucketName", "photos"),
            ("prefix", "img/"),
            ("expiresAt", "2100-01-31T12:00:00.000Z"),
        ] {
            assert_eq!(issued[field], value, "{field}");
        }
        assert_eq!(issued["scopes"], serde_json::json!(["upload", "read", "list"]));

        let list = folder.done(&["apikey", "list", "--account", "ann"]).stdout;
        let json = folder.done(&["apikey", "list", "--json"]).stdout;
        for text in [list, json] {
            assert!(text.contains(id) && text.contains("phone"), "{text}");
            for key in [key, second] {
                let secret = key.split('_').nth(2).expect("a key holds a secret");
                assert!(!text.contains(secret), "{text}");
            }
        }
    });
}

#[test]
fn apikey_works_until_revoked() {
    let (folder, key) = DataFolder::with_bucket();
    let id = key.split('_').nth(1).expect("a key holds its id");
    let upload = |server: &tests::ServerProcess, key: &str| {
        server.upload(key, "/photos/", "a.txt", b"hello").status
    };
    let server = folder.serve();
    assert_eq!(upload(&server, &key), 200);
    let reader = folder.done(&["apikey", "create", "--account", "ann", "--scope", "read"]).stdout;
    assert_eq!(upload(&server, reader.trim_end()), 403);
    let revoked = folder.json(&["apikey", "revoke", "--id", id]);
    assert!(revoked["revokedAt"].is_string() && revoked["id"] == id, "{revoked}");
    assert_eq!(upload(&server, &key), 401);
    server.stop();
    let server = folder.serve();
    assert_eq!(upload(&server, &key), 401);
}

#[test]
fn apikey_revocation_applies_to_open_connections() {
    let (folder, key) = DataFolder::with_bucket();
    let id = key.split('_').nth(1).expect("a key holds its id");
    let server = folder.serve();
    let mut kept = server.connect().with_key(&key);
    assert_eq!(kept.get("/api/account").expect("it answers").status, 200);
    folder.done(&["apikey", "revoke", "--id", id]);
    assert_eq!(kept.get("/api/account").expect("it answers").status, 401);
}

#[test]
fn apikey_last_use_survives_restart() {
    let (folder, key) = DataFolder::with_bucket();
    let last_use = || folder.json(&["apikey", "list"])[0]["lastUsedAt"].clone();
    assert!(last_use().is_null());
    let server = folder.serve();
    let answer = server.connect().with_key(&key).get("/api/account").expect("it answers");
    assert_eq!(answer.status, 200);
    let used = last_use();
    assert!(used.as_str().is_some_and(|at| at.ends_with(":00:00.000Z")), "{used}");
    server.stop();
    assert_eq!(last_use(), used);
}

#[test]
fn apikey_invalid_commands_are_rejected() {
    with_and_without_server(|folder| {
        let refused = |words: &[&str], says: &str| folder.run(words).check_failure(1, says);
        refused(&["apikey", "create", "--account", "bob"], "\"bob\" does not exist");
        let create = ["apikey", "create", "--account", "ann", "--expires-at"];
        folder
            .run(&[&create[..], &["tomorrow"]].concat())
            .check_failure(2, "not a duration such as 30d");
        refused(&[&create[..], &["2001-01-31T12:00:00Z"]].concat(), "in the past");
        refused(&["apikey", "revoke", "--id", "abcdefghijklmnop"], "does not exist");
        refused(&["apikey", "revoke", "--id", "?"], "does not exist");
    });
}

#[test]
fn s3_credentials_are_printed_on_request_in_each_format() {
    with_and_without_server(|folder| {
        let create = ["apikey", "create", "--account", "ann"];
        let ran = folder.done(&create);
        assert!(!ran.stderr.contains("S3"), "{ran:?}");
        let ran = folder.done(&[&create[..], &["--s3"]].concat());
        assert!(ran.stdout.starts_with("trug_") && ran.stdout.lines().count() == 1, "{ran:?}");
        for part in ["access key ID", "secret access key", "us-east-1", "http://127.0.0.1:8080"] {
            assert!(ran.stderr.contains(part), "{part}: {ran:?}");
        }
        let format = |format| {
            let words = ["--s3", "--endpoint", "https://cdn.example.com", "--format", format];
            folder.done(&[&create[..], &words].concat()).stdout
        };
        let env = format("env");
        assert!(env.contains("export AWS_ENDPOINT_URL=https://cdn.example.com\n"), "{env}");
        let id = env.lines().find_map(|line| line.strip_prefix("export AWS_ACCESS_KEY_ID="));
        let shown = folder.done(&["apikey", "s3", id.expect("an ID")]).stdout;
        assert!(env.replace("export ", "").starts_with(&shown), "{env} {shown}");
        assert!(format("aws").contains("\nendpoint_url = https://cdn.example.com\n"));
        assert!(format("rclone").contains("\nprovider = Other\n"));
        folder.run(&[&create[..], &["--format", "env"]].concat()).check_failure(2, "--s3");
    });
}

#[test]
fn apikey_expiry_is_a_duration_a_date_or_never() {
    with_and_without_server(|folder| {
        let expiry = |expires: &str| {
            let words = ["apikey", "create", "--account", "ann", "--expires", expires];
            folder.json(&words)["expiresAt"].clone()
        };
        assert_eq!(expiry("2130-01-31"), "2130-01-31T00:00:00.000Z");
        assert_eq!(expiry("never"), serde_json::Value::Null);
        assert!(expiry("30d").is_string());
        let words = ["apikey", "create", "--account", "ann", "--expires", "30"];
        folder.run(&words).check_failure(2, "a duration such as 30d");
    });
}
