//! `trug import --from-s3` from trug's own gateway: everything is imported, byte for byte, with the metadata set by
//! rclone; an interrupted import is resumed; nothing is imported twice.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use tests::commands::{done, require_program, run};
use tests::{DataFolder, ServerProcess};

use crate::place::{Keys, Place, client, files, make_files};

/// Builds the command that imports the objects under a prefix of the bucket `photos` of one server into another one.
fn import(from: &Place, to: &DataFolder, prefix: &str) -> Command {
    let (url, origin) = (format!("{}/photos/{prefix}", from.address()), from.address());
    let mut command = to.command(&[
        "import",
        "--bucket",
        "photos",
        "--json",
        "--from-s3",
        &url,
        "--allow",
        &origin,
    ]);
    command.env("AWS_ACCESS_KEY_ID", &from.keys.id).env("AWS_SECRET_ACCESS_KEY", &from.keys.secret);
    command.env("AWS_REGION", "us-east-1").env_remove("AWS_SESSION_TOKEN");
    command
}

fn report(command: &mut Command) -> Value {
    let ran = done(command);
    serde_json::from_str(&ran.stdout).unwrap()
}

fn filled(count: usize) -> (Place, std::path::PathBuf) {
    let place = Place::new();
    let here = place.temp_path("here");
    make_files(&here, count);
    place.data.done(&["import", "--bucket", "photos", "--from", here.to_str().unwrap()]);
    (place, here)
}

#[test]
fn s3_import_is_byte_exact_and_idempotent() {
    let (place, here) = filled(2_500);
    let (to, _) = DataFolder::with_bucket();
    let began = Instant::now();
    let first = report(&mut import(&place, &to, ""));
    println!("2500 files in {:?}", began.elapsed());
    assert_eq!((&first["importedCount"], &first["refused"]["count"]), (&2_500.into(), &0.into()));
    assert!(files(&here) == files(&to.export_files("out")));
    let again = report(&mut import(&place, &to, ""));
    assert_eq!((&again["importedCount"], &again["unchangedCount"]), (&0.into(), &2_500.into()));
    // The prefix limits the import.
    let (to, _) = DataFolder::with_bucket();
    let some = report(&mut import(&place, &to, "Album%203/"));
    let expected = files(&here.join("Album 3"));
    assert_eq!(some["importedCount"], expected.len());
    assert!(files(&to.export_files("out").join("Album 3")) == expected);
}

#[test]
fn s3_import_resumes_after_kill_without_duplicates() {
    let (place, here) = filled(3_000);
    // An object less than a second younger than an imported one may be another file.
    sleep(Duration::from_millis(1_100));
    for with_server in [false, true] {
        let mut after = Duration::from_millis(400);
        let met = (0..20).find(|_| {
            let (to, _) = DataFolder::with_bucket();
            let is_done = killed(&place, &to, with_server, after);
            let rest = report(&mut import(&place, &to, ""));
            let [new, old] =
                ["importedCount", "unchangedCount"].map(|count| rest[count].as_u64().unwrap());
            println!("with a server: {with_server}, after {after:?}: new {new}, there {old}");
            assert_eq!(new + old, 3_000);
            assert!(files(&here) == files(&to.export_files("out")));
            match (is_done, old) {
                (true, _) => after /= 2,
                (false, 0) => after = after * 3 / 2,
                (false, _) => return true,
            }
            false
        });
        assert!(met.is_some(), "never between the first and the last file");
    }
}

/// Imports, and kills the importing process after a while. Returns whether all was done by then.
fn killed(place: &Place, to: &DataFolder, with_server: bool, after: Duration) -> bool {
    let mut server = with_server.then(|| to.serve());
    let mut command = import(place, to, "");
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    sleep(after);
    match &mut server {
        Some(server) => server.kill(),
        None => child.kill().unwrap(),
    }
    drop(server);
    child.wait().unwrap().success()
}

#[test]
#[ignore = "needs rclone"]
fn s3_import_keeps_type_and_metadata() {
    require_program("rclone", "version");
    let place = Place::new();
    let file = place.temp_path("a.bin");
    fs::write(&file, "some bytes").unwrap();
    let (to, _) = DataFolder::with_bucket();
    let keys = Keys::make(&to, &[]);
    let config = place.temp_path("rclone.conf");
    fs::write(&config, "").unwrap();
    let rclone = |address: String, keys: &Keys, words: &[&str]| {
        let mut rclone = client(Path::new("rclone"), keys, place.data.parent());
        rclone
            .env("RCLONE_CONFIG", &config)
            .env("RCLONE_CONFIG_TRUG_TYPE", "s3")
            .env("RCLONE_CONFIG_TRUG_PROVIDER", "Other")
            .env("RCLONE_CONFIG_TRUG_ENV_AUTH", "true")
            .env("RCLONE_CONFIG_TRUG_ENDPOINT", address);
        done(rclone.args(words)).stdout
    };
    let up = ["copyto", "--metadata", "--metadata-set", "colour=dark blue", "--metadata-set"];
    let words = ["content-type=text/csv", file.to_str().unwrap(), "trug:photos/a.bin"];
    rclone(place.address(), &place.keys, &[&up[..], &words].concat());
    assert_eq!(report(&mut import(&place, &to, ""))["importedCount"], 1);
    let server: ServerProcess = to.serve();
    let address = format!("http://{}", server.address());
    let info = rclone(address, &keys, &["lsjson", "--stat", "--metadata", "trug:photos/a.bin"]);
    let info: Value = serde_json::from_str(&info).unwrap();
    assert_eq!(info["Metadata"]["colour"], "dark blue", "{info}");
    assert_eq!(info["MimeType"], "text/csv", "{info}");
}

#[test]
fn s3_import_reports_the_gateway_error_for_wrong_secret() {
    let place = Place::new();
    let (to, _) = DataFolder::with_bucket();
    let ran = run(import(&place, &to, "").env("AWS_SECRET_ACCESS_KEY", "wrong-one"));
    ran.check_failure(1, "403 SignatureDoesNotMatch");
    let ran = run(import(&place, &to, "")
        .env_remove("AWS_ACCESS_KEY_ID")
        .env_remove("AWS_SECRET_ACCESS_KEY"));
    assert_eq!(ran.code, 1, "{ran:?}");
}
