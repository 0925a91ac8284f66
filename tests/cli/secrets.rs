//! Secrets do not leak: the logs and output of a server, and the permissions of its files. Product 5.2 and 5.4.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use memchr::memmem;
use serde_json::{Value, json};
use tests::{Connection, DataFolder, Form, Response};

/// Returns a field of a response, as text.
fn text(answer: &Response, name: &str) -> String {
    answer.json()[name].as_str().unwrap_or_else(|| panic!("no {name}: {answer:?}")).to_owned()
}

/// Returns the part of a key or token that must never be logged: its last half, which is secret in both.
fn secret_of(text: &str) -> &str {
    match text.split('_').nth(2) {
        Some(secret) => secret,
        None => &text[text.len() / 2..],
    }
}

#[test]
fn log_contains_no_keys_or_tokens() {
    let (folder, key) = DataFolder::with_bucket();
    let mut server = folder.serve_with_env(&[("TRUG_LOG", "trace")]);
    let mut keyed = server.connect().with_key(&key);
    let ask = |method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]| {
        server.connect().send(method, path, headers, body).expect("it answers")
    };
    let json = [("content-type", "application/json")];
    let form = || Form::new().file("file", "a.txt", None, b"a");
    let mut secrets = vec![key.clone()];

    // Keys, in every form, right and wrong.
    let wanted = br#"{"scopes": ["upload", "presign"], "name": "second"}"#;
    let second = text(&keyed.send("POST", "/api/keys", &json, wanted).expect("it answers"), "key");
    let wrong = format!("{}x", &key[..key.len() - 1]);
    for key in [&key, &second, &wrong] {
        for value in
            [format!("Bearer {key}"), format!("Key {key}"), key.clone(), format!("Basic {key}")]
        {
            ask("DELETE", "/photos/none", &[("authorization", &value)], b"");
        }
        ask("DELETE", "/photos/none", &[("x-api-key", key)], b"");
        for name in ["apiKey", "api_key", "API_KEY", "key", "token"] {
            ask("DELETE", &format!("/photos/none?{name}={key}"), &[], b"");
            ask("GET", &format!("/photos/none?a=b&{name}={key}&c"), &[], b"");
        }
        // In places where they do not belong.
        ask("GET", "/photos/a.txt", &[("cookie", &format!("key={key}"))], b"");
        ask("GET", "/photos/a.txt", &[("referer", &format!("http://x/?apiKey={key}"))], b"");
        ask("POST", "/api/keys", &json, format!("{{\"key\": \"{key}\"}}").as_bytes());
        ask("BREW", &format!("/photos/a?apiKey={key}"), &[], b"");
    }
    secrets.extend([second, wrong]);

    // Tokens of both forms: used, used twice, changed, with a wrong method, in a body that breaks off.
    for _ in 0..2 {
        let issued = keyed.get("/api/presigned-url?path=photos/in/").expect("it answers");
        let token = text(&issued, "token");
        let path = format!("/api/presigned-url/{token}");
        ask("GET", &path, &[], b"");
        ask("POST", &path, &json, b"{}");
        for _ in 0..2 {
            server.connect().upload(&path, form()).expect("it answers");
        }
        ask("POST", &format!("{path}x"), &[], b"");
        secrets.push(token);
        let issued = keyed.get("/photos/presigned/b.txt").expect("it answers");
        let url = text(&issued, "presignedUrl");
        let path = url.split_once("/photos/").expect("it is in the bucket").1;
        ask("PUT", &format!("/photos/{path}"), &[("content-type", "text/plain")], b"b");
        ask("GET", &format!("/photos/{path}"), &[], b"");
        ask("PUT", &format!("/photos/x{path}"), &[], b"b");
        secrets.push(url.split_once("token=").expect("it has a token").1.to_owned());
    }
    // A malformed request head is logged, if at all, without its content.
    let mut broken = Connection::connect(server.address()).expect("it listens");
    let head = format!("NONSENSE\r\nAuthorization: Bearer {key}\r\n\r\n");
    broken.more(head.as_bytes()).expect("it takes bytes");
    let _ = broken.read_response("GET");
    drop(keyed);
    server.terminate();
    server.wait();

    let log = server.log();
    assert!(log.lines().count() > 50, "hardly anything was logged: {log}");
    for secret in &secrets {
        let secret = secret_of(secret);
        assert!(secret.len() > 16, "{secret} is no secret");
        for printed in [&log, &server.output()] {
            let line = printed.lines().find(|line| line.contains(secret));
            assert_eq!(line, None, "{secret} is printed");
        }
    }
}

#[test]
fn log_contains_no_passwords_or_links() {
    let folder = DataFolder::new();
    let mut server = folder.serve_with_env(&[("TRUG_LOG", "trace")]);
    let printed = server.wait_for_output("account password");
    let link = printed.lines().find_map(|line| line.split_once("/-/set-up#")).expect("a link").1;
    let json = [("content-type", "application/json"), ("sec-fetch-site", "same-origin")];
    let ask = |method: &str, path: &str, cookie: &str, body: Value| {
        let mut headers = json.to_vec();
        headers.push(("cookie", cookie));
        let body = body.to_string();
        server.connect().send(method, path, &headers, body.as_bytes()).expect("it answers")
    };
    let cookie_of = |answer: &Response| {
        let cookie = answer.header("set-cookie").split(';').next().unwrap_or_default();
        cookie.to_owned()
    };
    let (password, wrong) = ("battery-staple-one", "battery-staple-two");
    let set_up = |token: &str| json!({"token": token, "name": "ann", "password": password, "bucketName": "photos"});
    ask("POST", "/-/set-up", "", json!({"token": link, "password": 7, "name": "ann"}));
    ask("POST", "/-/set-up", "", set_up(&format!("{link}x")));
    ask("POST", &format!("/-/set-up?token={link}"), "", json!({}));
    let done = ask("POST", "/-/set-up", "", set_up(link));
    assert_eq!(done.status, 200, "{}", done.text());
    ask("POST", "/-/set-up", "", set_up(link));
    let key = text(&done, "key");
    let first = cookie_of(&done);
    // Signed in and out, rightly and wrongly, and where a password does not belong.
    for secret in [password, wrong] {
        ask("POST", "/-/session", "", json!({"name": "ann", "password": secret}));
        ask("POST", "/-/session", "", json!({"name": "ann", "passwort": secret}));
        ask("POST", "/-/session", "", json!({"name": "ann", "password": [secret]}));
        ask("GET", &format!("/-/session?password={secret}"), "", json!({}));
    }
    let signed_in = ask("POST", "/-/session", &first, json!({"name": "ann", "password": password}));
    let second = cookie_of(&signed_in);
    let new = "battery-staple-new";
    ask("PUT", "/-/password", &second, json!({"current": wrong, "new": new}));
    ask("PUT", "/-/password", &second, json!({"current": password, "new": new}));
    let id = signed_in.json()["account"]["id"].as_str().expect("an id").to_owned();
    let invited = ask("POST", &format!("/api/accounts/{id}/invitations"), &second, json!({}));
    let invitation = text(&invited, "url").split_once('#').expect("a secret").1.to_owned();
    let by_invitation = "battery-staple-invited";
    let accept = json!({"token": invitation, "password": by_invitation});
    let accepted = ask("POST", "/-/invitation", "", accept.clone());
    assert_eq!(accepted.status, 200, "{}", accepted.text());
    ask("POST", "/-/invitation", "", accept);
    let third = cookie_of(&accepted);
    for cookie in [&first, &second, &third] {
        ask("GET", "/api/buckets", cookie, json!({}));
        ask("BREW", "/-/session", cookie, json!({}));
        ask("DELETE", "/-/session", cookie, json!({}));
    }
    server.terminate();
    server.wait();

    let log = server.log();
    assert!(log.lines().count() > 15, "hardly anything was logged: {log}");
    let mut secrets = vec!["battery-staple".to_owned(), key, link.to_owned(), invitation];
    for cookie in [first, second, third] {
        secrets.push(cookie.split_once('=').expect("a cookie has a value").1.to_owned());
    }
    for secret in &secrets {
        let secret = if secret.len() > 20 { secret_of(secret) } else { secret };
        let line = log.lines().find(|line| line.contains(secret));
        assert_eq!(line, None, "{secret} is printed");
    }
    // Stored files do not contain the secrets themselves.
    for file in files_below(&folder.path()) {
        let bytes = std::fs::read(&file).expect("a file can be read");
        for secret in &secrets {
            let secret = if secret.len() > 20 { secret_of(secret) } else { secret };
            let found = memmem::find(&bytes, secret.as_bytes());
            assert!(found.is_none(), "{secret} is in {}", file.display());
        }
    }
}

fn files_below(path: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(path).expect("a folder can be listed");
    let paths = entries.map(|entry| entry.expect("an entry is there").path());
    let below = |path: std::path::PathBuf| match path.is_dir() {
        true => files_below(&path),
        false => vec![path],
    };
    paths.flat_map(below).collect()
}

#[test]
fn log_contains_no_terminal_escapes() {
    let (folder, key) = DataFolder::with_bucket();
    let mut server = folder.serve_with_env(&[("TRUG_LOG", "trace")]);
    for path in [
        "/photos/%1b%5b2J%07%0d%0aforged",
        "/photos/%c2%9b2J%e2%80%ae",
        "/photos/a%0a%7b%22level%22:%22ERROR%22%7d",
        "/%1b%5b2J/x",
        "/photos/x?%1b%5b2J",
    ] {
        let mut connection = server.connect().with_key(&key);
        connection.get(path).expect("it answers");
        connection.delete(path).expect("it answers");
    }
    let name = "a\u{202e}\u{9b}2J.txt";
    let form = Form::new().file("file", name, Some("text/\u{9b}"), b"a");
    server.connect().with_key(&key).upload("/photos/", form).expect("it answers");
    let agent = [("user-agent", "\u{9b}2J"), ("x-request-id", "\u{9b}2J"), ("host", "a")];
    // Two `Host` headers: rejected, and perhaps logged.
    let _ = server.connect().send("GET", "/photos/a.txt", &agent, b"");
    server.terminate();
    server.wait();
    let log = server.log();
    assert!(log.lines().count() > 10, "{log}");
    for line in log.lines() {
        let steers = |it: char| it.is_control() || it == '\u{202e}';
        assert!(!line.contains(steers), "{line:?}");
        let parsed: Value = serde_json::from_str(line).expect("a line is one JSON");
        assert_ne!(parsed["level"], "ERROR", "{line}");
    }
}

#[test]
fn data_files_are_readable_only_by_owner() {
    let (folder, key) = DataFolder::with_bucket();
    let server = folder.serve();
    let mut connection = server.connect().with_key(&key);
    for bytes in [10, 2_000_000] {
        assert_eq!(
            connection
                .upload_file("/photos/", "a.bin", &vec![7; bytes])
                .expect("it answers")
                .status,
            200
        );
    }
    let headers = [
        ("tus-resumable", "1.0.0"),
        ("upload-length", "10"),
        ("upload-metadata", "bucketName cGhvdG9z"),
    ];
    let begun = connection.send("POST", "/api/tus/", &headers, b"").expect("it answers");
    assert_eq!(begun.status, 201);
    assert!(check_modes(&folder.path()) > 5);
    server.stop();
    check_modes(&folder.path());
}

/// Checks a folder and everything below it; returns the number of entries.
fn check_modes(path: &Path) -> usize {
    let metadata = std::fs::symlink_metadata(path).expect("it is there");
    let mode = metadata.permissions().mode() & 0o777;
    assert_eq!(mode & 0o077, 0, "{} has the mode {mode:o}", path.display());
    if !metadata.is_dir() {
        return 1;
    }
    let entries = std::fs::read_dir(path).expect("a folder can be listed");
    let below = entries.map(|entry| check_modes(&entry.expect("an entry is there").path()));
    below.sum::<usize>() + 1
}
