//! `trug webhook`: create, list, change, test, and dead letters.

use tests::{DataFolder, Receiver, Scripted};

use crate::with_and_without_server;

const URL: &str = "https://hooks.example.com/in";

fn create(folder: &DataFolder, url: &str) -> (String, String) {
    let words = ["webhook", "create", "--bucket", "photos", "--url", url];
    let ran = folder.done(&[&words[..], &["--event", "s3:ObjectCreated:*"]].concat());
    let id = ran.stderr.split(' ').nth(2).expect("its id is noted").trim_end_matches(':');
    (id.to_owned(), ran.stdout.trim_end().to_owned())
}

#[test]
fn webhook_commands_create_list_change_and_delete() {
    with_and_without_server(|folder| {
        let (id, secret) = create(folder, URL);
        assert!(secret.starts_with("whsec_"), "{secret}");
        let list = folder.done(&["webhook", "list", "--bucket", "photos"]).stdout;
        assert!(list.contains(&id) && list.contains(URL) && !list.contains("whsec"), "{list}");
        let words = ["webhook", "edit", "--id", &id, "--enabled", "false", "--prefix", "pets/"];
        folder.done(&words);
        let found = folder.json(&["webhook", "list", "--bucket", "photos"])[0].take();
        assert_eq!((&found["enabled"], &found["prefix"]), (&false.into(), &"pets/".into()));
        assert_eq!(found["events"], serde_json::json!(["s3:ObjectCreated:*"]));
        let none = folder.json(&["webhook", "dead-letters", "--id", &id]);
        assert_eq!(none["deadLetters"], serde_json::json!([]));
        assert_eq!(folder.json(&["webhook", "retry", "--id", &id])["retriedCount"], 0);
        assert_eq!(folder.json(&["webhook", "forget", "--id", &id])["deletedCount"], 0);
        folder.done(&["webhook", "delete", "--id", &id]);
        folder.run(&["webhook", "delete", "--id", &id]).check_failure(1, "does not exist");
        let words = ["webhook", "create", "--bucket", "photos", "--event", "s3:ObjectCreated:*"];
        let bad = folder.run(&[&words[..], &["--url", "ftp://example.com"]].concat());
        bad.check_failure(1, "must start with http:// or https://");
    });
}

#[test]
fn webhook_test_requires_server_and_shows_response() {
    let (folder, _) = DataFolder::with_bucket();
    let receiver = Receiver::start();
    let (id, _) = create(&folder, &receiver.url("/hook"));
    folder
        .run(&["webhook", "test", "--id", &id])
        .check_failure(1, "only be tested on a running server");
    let server =
        folder.serve_with(&["--listen", "127.0.0.1:0", "--webhook-allow", &receiver.origin()]);
    receiver.script([Scripted { body: "well".into(), ..Scripted::status(200) }]);
    let shown = folder.done(&["webhook", "test", "--id", &id]).stdout;
    assert!(shown.contains("response status 200") && shown.contains("well"), "{shown}");
    receiver.script([Scripted::status(500)]);
    let failed = folder.run(&["webhook", "test", "--id", &id]);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.stdout.contains("not delivered: response status 500"), "{failed:?}");
    server.stop();
    // Without the operator's permission it is not delivered.
    let server = folder.serve();
    let refused = folder.run(&["webhook", "test", "--id", &id]);
    assert!(refused.stdout.contains("does not resolve to a public address"), "{refused:?}");
    assert_eq!(receiver.seen().len(), 2);
    server.stop();
}

#[test]
fn webhook_delivery_log_hides_secret_urls() {
    let (folder, key) = DataFolder::with_bucket();
    let receiver = Receiver::start();
    create(&folder, &receiver.url("/hook?word=secret"));
    let (allow, log) = (receiver.origin(), "jobs=debug,info");
    receiver.script([Scripted::status(500)]);
    let server = folder.serve_with_env(&[("TRUG_WEBHOOK_ALLOW", &allow), ("TRUG_LOG", log)]);
    server.upload(&key, "/photos/", "a.txt", b"1");
    // The first attempt fails, and it is retried after five seconds.
    receiver.wait_until(|seen| seen.len() == 2);
    server.terminate();
    let log = server.log();
    assert!(log.contains("webhook delivery failed") && log.contains("127.0.0.1"), "{log}");
    assert!(!log.contains("secret") && !log.contains("/hook"), "{log}");
}

#[test]
fn webhook_invalid_settings_are_reported() {
    let (folder, _) = DataFolder::with_bucket();
    let bad = folder.run(&["serve", "--listen", "127.0.0.1:0", "--webhook-allow", "10.0.0.0/8"]);
    bad.check_failure(2, "webhook_allow");
    let pem = folder.parent().join("ca.pem");
    for (text, says) in [(None, "No such file"), (Some("hello"), "no certificate")] {
        if let Some(text) = text {
            std::fs::write(&pem, text).expect("the file can be written");
        }
        let mut command = folder.command(&["serve", "--listen", "127.0.0.1:0"]);
        command.env("TRUG_WEBHOOK_CA_FILE", &pem);
        let ran = tests::commands::run(&mut command);
        ran.check_failure(2, "webhook_ca_file");
        ran.check_failure(2, says);
    }
}
