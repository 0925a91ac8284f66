//! Migration from another S3 service: the commands of OPERATING.md against moto, and the imported objects.

use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use tests::DataFolder;
use tests::commands::{done, run};
use tests::moto::Moto;

use crate::place::{aws, bytes};

const OPERATING: &str = include_str!("../../tools/OPERATING.md");
const HEADING: &str = "### Moving from MinIO, R2, B2, a folder\n";

fn moto_aws(moto: &Moto, words: &[&str]) {
    let mut command = signed(Command::new(aws()));
    let ran = run(command.args(["--endpoint-url", moto.address()]).args(words));
    assert_eq!(ran.code, 0, "{words:?}: {ran:?}");
}

fn signed(mut command: Command) -> Command {
    command.env("AWS_ACCESS_KEY_ID", "AKID").env("AWS_SECRET_ACCESS_KEY", "secret");
    command.env("AWS_DEFAULT_REGION", "us-east-1").env_remove("AWS_SESSION_TOKEN");
    command
}

/// A bucket `pics` with an object that has everything an import keeps, and enough others for two pages.
fn filled_moto(folder: &DataFolder, file_count: u32) -> Moto {
    let moto = Moto::start();
    moto_aws(&moto, &["s3api", "create-bucket", "--bucket", "pics"]);
    let file = folder.parent().join("body");
    fs::write(&file, bytes(5_000, 1)).unwrap();
    let put = ["s3api", "put-object", "--bucket", "pics", "--key", "2019/ä b (1)"];
    let body = ["--body", file.to_str().unwrap(), "--content-type", "application/x-own"];
    let headers = ["--cache-control", "max-age=60", "--content-disposition", "inline"];
    moto_aws(&moto, &[&put[..], &body, &headers, &["--metadata", "colour=red"]].concat());
    let many = folder.parent().join("many");
    fs::create_dir_all(&many).unwrap();
    for at in 0..file_count {
        fs::write(many.join(format!("{at}.txt")), format!("{at}")).unwrap();
    }
    moto_aws(&moto, &["s3", "sync", "--quiet", many.to_str().unwrap(), "s3://pics/many"]);
    moto
}

/// Commands of the section, without comments.
fn imports() -> impl Iterator<Item = &'static str> {
    let section = OPERATING.split_once(HEADING).expect("the section exists").1;
    let block = section.split_once("```sh\n").expect("it has commands").1;
    let block = block.split_once("```").expect("the block ends").0;
    block.lines().filter(|line| line.starts_with("trug import "))
}

#[test]
#[ignore = "needs aws-cli and moto from PyPI"]
fn import_from_s3_keeps_headers_metadata_and_time() {
    let (folder, _) = DataFolder::with_bucket();
    // More than a page of a listing.
    let moto = filled_moto(&folder, 1_100);
    let import = || {
        let from = ["--from", "s3://pics", "--endpoint", moto.address()];
        let words = [&["import", "photos", "--json"][..], &from].concat();
        let ran = done(&mut signed(folder.command(&words)));
        serde_json::from_str::<serde_json::Value>(&ran.stdout).unwrap()
    };
    let report = import();
    assert_eq!(report["importedCount"], 1_101, "{report}");
    let stat = folder.json(&["stat", "photos/2019/ä b (1)"]);
    assert_eq!(
        (&stat["bytes"], &stat["contentType"]),
        (&5_000.into(), &"application/x-own".into())
    );
    assert_eq!(stat["headers"]["cacheControl"], "max-age=60", "{stat}");
    assert_eq!(stat["headers"]["contentDisposition"], "inline", "{stat}");
    assert_eq!(stat["metadata"]["colour"], "red", "{stat}");
    // An HTTP date has whole seconds.
    assert!(stat["createdAt"].as_str().unwrap().ends_with(".000Z"), "{stat}");
    // Repeated, it transfers what is missing.
    folder.done(&["rm", "photos/many/7.txt"]);
    sleep(Duration::from_secs(1));
    let again = import();
    assert_eq!((&again["importedCount"], &again["unchangedCount"]), (&1.into(), &1_100.into()));
    assert_eq!(folder.done(&["cat", "photos/many/7.txt"]).stdout, "7");
}

#[test]
#[ignore = "needs aws-cli and moto from PyPI"]
fn import_from_s3_rejects_only_invalid_keys() {
    let (folder, _) = DataFolder::with_bucket();
    let moto = Moto::start();
    moto_aws(&moto, &["s3api", "create-bucket", "--bucket", "pics"]);
    for key in ["a//b", "/root", "x/../y", "folder/", "ok.txt"] {
        moto_aws(&moto, &["s3api", "put-object", "--bucket", "pics", "--key", key]);
    }
    let words = ["import", "photos", "--from", "s3://pics", "--endpoint", moto.address()];
    let ran = run(&mut signed(folder.command(&words)));
    assert_eq!(ran.code, 1, "{ran:?}");
    for line in ["imported      1 files", "/root: ", "a//b: ", "x/../y: "] {
        assert!(ran.stdout.contains(line), "{line}: {ran:?}");
    }
    assert_eq!(folder.done(&["cat", "photos/ok.txt"]).stdout, "");
}

#[test]
#[ignore = "needs aws-cli and moto from PyPI"]
fn commands_of_the_moving_section_import() {
    let (folder, _) = DataFolder::with_bucket();
    let moto = filled_moto(&folder, 3);
    let local = folder.parent().join("many");
    let mut seen = 0;
    for line in imports() {
        let bucket = format!("moved-{seen}");
        folder.done(&["bucket", "create", &bucket, "--account", "ann"]);
        let words = line.split_whitespace().skip(1).map(|word| match word {
            "pics" => bucket.clone(),
            "/srv/www/pics" => local.to_str().unwrap().to_owned(),
            "/var/lib/trug" => folder.path().to_str().unwrap().to_owned(),
            endpoint if endpoint.starts_with("http") => moto.address().to_owned(),
            word => word.to_owned(),
        });
        let mut command = signed(tests::commands::trug());
        // AWS itself is the default endpoint.
        command.env("AWS_ENDPOINT_URL", moto.address()).args(words);
        let ran = run(&mut command);
        assert_eq!(ran.code, 0, "{line}: {ran:?}");
        assert!(!ran.stdout.contains("imported      0 files"), "{line}: {ran:?}");
        seen += 1;
    }
    assert!(seen >= 5, "{seen}");
}
