//! `trug serve`: starting, stopping, settings.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use tests::commands::run;
use tests::{Connection, DataFolder, Form, ServerProcess};

/// Starts an upload and sends a piece of it; returns the rest.
fn half_an_upload(server: &ServerProcess, key: &str) -> (Connection, Vec<u8>) {
    let form = Form::new().file("file", "late.txt", None, b"late");
    let content_type = form.content_type();
    let body = form.body();
    let (first, rest) = body.split_at(body.len() / 2);
    let mut connection = server.connect().with_key(key);
    let headers = [("content-type", &*content_type)];
    connection.begin("POST", "/photos/", &headers, body.len()).expect("the head is sent");
    connection.more(first).expect("the body is sent");
    // The server must have read the head before it is stopped.
    thread::sleep(Duration::from_millis(200));
    (connection, rest.to_vec())
}

#[test]
fn startup_prints_addresses_set_up_link_and_commands() {
    let folder = DataFolder::new();
    let server = folder.serve();
    let printed = server.wait_for_output("account password");
    assert!(printed.starts_with("trug "), "{printed}");
    let url = format!("http://{}", server.address());
    assert!(printed.contains(&format!("  Dashboard    {url}/\n")), "{printed}");
    assert!(printed.contains(" (new)\n") && !printed.contains("Recovered"), "{printed}");
    let link = format!("  {url}/-/set-up#");
    let link = printed.lines().find_map(|line| line.strip_prefix(&link)).expect("a link");
    assert_eq!(link.len(), 52, "{printed}");
    // The commands can be pasted; with a password the set-up is complete.
    let commands = printed.lines().filter(|line| line.contains(" account "));
    let script = commands.collect::<Vec<_>>().join("\n");
    let mut shell = Command::new("sh");
    shell.args(["-eu", "-c", &script]).current_dir(folder.parent());
    shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut shell = shell.spawn().expect("a shell runs");
    shell.stdin.take().unwrap().write_all(b"correct horse battery\n").unwrap();
    let output = shell.wait_with_output().expect("a shell runs");
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{script}\n{stdout}{stderr}");
    assert!(stdout.contains("operator"), "{stdout}");
    assert!(stderr.contains("account invite"), "{stderr}");
    server.stop();
    let server = folder.serve();
    let printed = server.wait_for_output("Data folder");
    assert!(printed.contains("0 objects, 0 bytes, opened in "), "{printed}");
    server.stop();
    assert!(!server_output_after_stop(&folder).contains("/-/set-up"));
}

/// Returns the complete output of a server on this folder.
fn server_output_after_stop(folder: &DataFolder) -> String {
    let server = folder.serve();
    thread::sleep(Duration::from_millis(100));
    server.output()
}

#[test]
fn startup_prints_the_link_until_an_operator_has_a_password() {
    let (folder, _key) = DataFolder::with_bucket();
    let printed = folder.serve().wait_for_output("account password");
    assert!(printed.contains("/-/set-up#"), "{printed}");
    assert!(printed.contains(" account edit NAME --role operator "), "{printed}");
    folder.done(&["account", "edit", "--account", "ann", "--role", "operator"]);
    let mut command = folder.command(&["account", "password", "--account", "ann"]);
    let password = folder.parent().join("password");
    fs::write(&password, "correct horse battery\n").unwrap();
    assert_eq!(run(command.arg("--password-file").arg(&password)).code, 0);
    assert!(!server_output_after_stop(&folder).contains("/-/set-up"));
}

#[test]
fn startup_reports_recovery_after_a_kill() {
    let (folder, key) = DataFolder::with_bucket();
    let mut server = folder.serve();
    server.put(&key, "/photos/", "a.txt", b"hello");
    server.kill();
    let printed = folder.serve().wait_for_output("Recovered");
    assert!(printed.contains("records after an unclean shutdown"), "{printed}");
    assert!(printed.contains("1 object, 5 bytes"), "{printed}");
}

#[test]
fn the_printed_link_makes_the_first_account_once() {
    let folder = DataFolder::new();
    let link_of = |server: &ServerProcess| {
        let printed = server.wait_for_output("account password");
        let link = printed.lines().find_map(|line| line.split_once("/-/set-up#"));
        link.expect("a link is printed").1.to_owned()
    };
    let set_up = |server: &ServerProcess, token: &str| {
        let body = serde_json::json!({
            "token": token, "name": "ann", "password": "correct horse battery", "bucketName": "photos"
        });
        let headers = [("content-type", "application/json"), ("sec-fetch-site", "same-origin")];
        let body = body.to_string();
        let answer = server.connect().send("POST", "/-/set-up", &headers, body.as_bytes());
        answer.expect("it answers")
    };
    let server = folder.serve();
    let first = link_of(&server);
    server.stop();
    // Another start creates another one.
    let server = folder.serve();
    let second = link_of(&server);
    assert_eq!(set_up(&server, &first).status, 404);
    let done = set_up(&server, &second);
    assert_eq!(done.status, 200, "{}", done.text());
    let key = done.json()["key"].as_str().expect("a key is printed").to_owned();
    server.put(&key, "/photos/", "a.txt", b"hello");
    assert_eq!(server.get("/photos/a.txt").body, b"hello");
    assert_eq!(set_up(&server, &second).status, 410);
    server.stop();
    let server = folder.serve();
    thread::sleep(Duration::from_millis(100));
    assert!(!server.output().contains("/-/set-up"), "{}", server.output());
    server.put(&key, "/photos/", "b.txt", b"hello");
}

#[test]
fn store_contents_survive_server_restart() {
    let (folder, key) = DataFolder::with_bucket();
    let big = vec![b'x'; 3_000_000];
    let server = folder.serve();
    server.put(&key, "/photos/", "small.txt", b"small");
    server.put(&key, "/photos/", "big.bin", &big);
    server.stop();
    let mut server = folder.serve();
    assert_eq!(server.get("/photos/small.txt").body, b"small");
    assert!(server.get("/photos/big.bin").body == big);
    server.put(&key, "/photos/", "late.txt", b"late");
    server.kill();
    let server = folder.serve();
    assert_eq!(server.get("/photos/late.txt").body, b"late");
    assert!(server.get("/photos/big.bin").body == big);
}

#[test]
fn data_folder_and_address_are_used_by_one_server() {
    let (folder, _) = DataFolder::with_bucket();
    let server = folder.serve();
    let second = folder.run(&["serve", "--listen", "127.0.0.1:0"]);
    second.check_failure(4, "in use by process");
    assert_eq!(server.get("/-/ready").status, 200);

    let (other, _) = DataFolder::with_bucket();
    let address = server.address().to_string();
    let taken = other.run(&["serve", "--listen", &address]);
    assert_eq!(taken.code, 1, "{taken:?}");
    assert!(taken.stderr.contains(&format!("cannot listen on {address}")), "{taken:?}");
    assert!(taken.stderr.contains("choose another address with --listen"), "{taken:?}");
    other.done(&["stats"]);
}

#[test]
fn shutdown_signal_drains_requests() {
    let (folder, key) = DataFolder::with_bucket();
    let mut server = folder.serve();
    let (mut connection, rest) = half_an_upload(&server, &key);
    server.terminate();
    thread::sleep(Duration::from_millis(200));
    assert!(Connection::connect(server.address()).is_err(), "it still takes connections");
    connection.more(&rest).expect("the rest is sent");
    let answer = connection.read_response("POST").expect("it answers");
    assert_eq!(answer.status, 200, "{}", answer.text());
    let status = server.wait();
    assert!(status.success(), "{status}: {}", server.log());
    assert!(server.log().contains("\"message\":\"graceful shutdown started"), "{}", server.log());
    assert!(!folder.path().join("control.sock").exists());
    let server = folder.serve();
    assert_eq!(server.get("/photos/late.txt").body, b"late");
}

#[test]
fn second_shutdown_signal_stops_at_once() {
    let (folder, key) = DataFolder::with_bucket();
    let mut server = folder.serve();
    let (mut connection, _) = half_an_upload(&server, &key);
    server.terminate();
    thread::sleep(Duration::from_millis(200));
    server.terminate();
    let status = server.wait();
    assert!(status.success(), "{status}: {}", server.log());
    let answer = connection.read_response("POST");
    assert!(answer.is_err(), "{answer:?}");
    let server = folder.serve();
    assert_eq!(server.get("/photos/late.txt").status, 404);
}

#[test]
fn settings_precedence_is_flags_environment_file() {
    let (folder, key) = DataFolder::with_bucket();
    let file = folder.parent().join("trug.toml");
    let text = "listen = \"127.0.0.1:0\"\npublic_url = \"https://file.example\"\n\
                body_bytes_max = 2000\n";
    std::fs::write(&file, text).expect("a file can be written");
    let mut command = folder.command(&["serve"]);
    command.arg("--config").arg(&file).env("TRUG_PUBLIC_URL", "https://variable.example/cdn/");
    let server = ServerProcess::start(&mut command);
    let answer = server.put(&key, "/photos/", "a.txt", b"a").json();
    assert_eq!(answer["url"], "https://variable.example/cdn/photos/a.txt");
    let refused = server.upload(&key, "/photos/", "b.txt", &[b'b'; 3_000]);
    assert_eq!((refused.status, &refused.json()["limit"]), (413, &2_000.into()));
    assert!(server.output().contains("  Dashboard    https://variable.example/cdn/\n"));
    server.stop();

    command.args(["--public-url", "http://flag.example"]);
    let server = ServerProcess::start(&mut command);
    let answer = server.put(&key, "/photos/", "c.txt", b"c").json();
    assert_eq!(answer["url"], "http://flag.example/photos/c.txt");
}

#[test]
fn premium_listener_accepts_larger_bodies() {
    let (folder, key) = DataFolder::with_bucket();
    let mut command = folder.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.args(["--upload-listen", "127.0.0.1:0"]).env("TRUG_BODY_BYTES_MAX", "2000");
    folder.done(&["account", "edit", "ann", "--plan", "Free"]);
    let server = ServerProcess::start(&mut command);
    let premium = server.printed_address("  Uploads      http://");
    let large = || Form::new().file("file", "large.bin", None, &[b'x'; 3_000]);
    let ask = |address| {
        let connection = Connection::connect(address).expect("it takes connections");
        connection.with_key(&key).upload("/photos/", large()).expect("it answers")
    };
    assert_eq!(ask(server.address()).status, 413);
    assert_eq!(ask(premium).json()["code"], "plan_required");
    folder.done(&["account", "edit", "--account", "ann", "--plan", "Pro"]);
    let answer = ask(premium);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(server.get("/photos/large.bin").body.len(), 3_000);
    let second =
        Connection::connect(premium).expect("it takes connections").get("/photos/large.bin");
    assert_eq!(second.expect("it answers").body.len(), 3_000);

    let (other, _) = DataFolder::with_bucket();
    let premium = premium.to_string();
    let taken = other.run(&["serve", "--listen", "127.0.0.1:0", "--upload-listen", &premium]);
    assert_eq!(taken.code, 1, "{taken:?}");
    assert!(taken.stderr.contains(&format!("cannot listen on {premium}")), "{taken:?}");
    server.stop();
}

#[test]
fn invalid_settings_exit_with_2() {
    let folder = DataFolder::new();
    let refused = |words: &[&str], says: &str| {
        let words = [&["serve"][..], words].concat();
        folder.run(&words).check_failure(2, says);
    };
    refused(&["--listen", "8080"], "is not an address");
    refused(&["--upload-listen", "8081"], "upload_listen: \"8081\" is not an address");
    refused(&["--public-url", "cdn.example"], "must start with http");
    let missing = folder.parent().join("none.toml");
    let missing = missing.to_str().expect("the path is text");
    refused(&["--config", missing], "cannot read");
    let file = folder.parent().join("odd.toml");
    std::fs::write(&file, "listn = \"x\"").expect("a file can be written");
    let file = file.to_str().expect("the path is text");
    refused(&["--config", file], "unknown setting listn; did you mean listen?");
    for (name, value) in [("TRUG_LISTN", "x"), ("TRUG_LOG", "a=b=c"), ("TRUG_BODY_BYTES_MAX", "-1")]
    {
        let ran = tests::commands::run(folder.command(&["serve"]).env(name, value));
        assert_eq!(ran.code, 2, "{name}: {ran:?}");
    }
    assert!(!folder.path().exists());
}

#[test]
fn log_is_json_without_secrets() {
    let (folder, key) = DataFolder::with_bucket();
    let mut server = folder.serve_with_env(&[("TRUG_LOG", "debug")]);
    let path = format!("/photos/none.txt?apiKey={key}&other=thing");
    assert_eq!(server.connect().delete(&path).expect("it answers").status, 404);
    server.put(&key, "/photos/", "a.txt", b"a");
    let token_path = "/api/presigned-url/not0a0token";
    assert_eq!(
        server.connect().upload_file(token_path, "b.txt", b"b").expect("it answers").status,
        404
    );
    server.terminate();
    server.wait();
    let log = server.log();
    assert!(log.contains("/api/presigned-url/") && !log.contains("not0a0token"), "{log}");
    assert!(log.contains("/photos/none.txt"), "{log}");
    let secret = key.split('_').nth(2).expect("a key holds a secret");
    assert!(!log.contains(secret) && !log.contains("other=thing"), "{log}");
    for line in log.lines() {
        let line: serde_json::Value = serde_json::from_str(line).expect("a line is JSON");
        assert!(line["level"].is_string() && line["message"].is_string(), "{line}");
    }
}

#[test]
fn damage_is_logged_and_the_rest_is_served() {
    let (folder, key) = DataFolder::with_bucket();
    let mut server = folder.serve();
    let marked = b"a line that is found again in the log, to be damaged";
    server.put(&key, "/photos/", "damaged.txt", marked);
    server.put(&key, "/photos/", "fine.txt", b"fine");
    server.kill();
    folder.damage(marked);
    let mut server = folder.serve();
    let fine = server.get("/photos/fine.txt");
    assert_eq!(fine.body, b"fine", "{}", fine.text());
    let answer = server.get("/photos/damaged.txt");
    assert_eq!((answer.status, &answer.json()["code"]), (500, &"damaged".into()));
    assert_eq!(answer.json()["key"], "damaged.txt");
    server.terminate();
    assert!(server.wait().success());
    let printed = server.output();
    assert!(printed.contains("  Damage       1 place: "), "{printed}");
    assert!(server.log().contains("DAMAGE"), "{}", server.log());
}

#[test]
fn missing_index_is_rebuilt_on_start() {
    let (folder, key) = DataFolder::with_bucket();
    let server = folder.serve();
    server.put(&key, "/photos/", "kept.txt", b"kept");
    server.stop();
    std::fs::remove_file(folder.path().join("index.redb")).expect("there is an index");
    let server = folder.serve();
    server.wait_for_output("index rebuilt");
    assert_eq!(server.get("/photos/kept.txt").body, b"kept");
}

#[test]
fn unopenable_damaged_store_exits_with_3() {
    let (folder, _) = DataFolder::with_bucket();
    let file = folder.path().join("STORE");
    let mut bytes = std::fs::read(&file).expect("there is a store");
    bytes[20] ^= 1;
    std::fs::write(&file, bytes).expect("the file can be written");
    for words in [&["serve", "--listen", "127.0.0.1:0"][..], &["stats"], &["account", "list"]] {
        folder.run(words).check_failure(3, "STORE");
    }
}
