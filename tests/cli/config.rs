//! `trug config`: values, their sources, and the documents.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tests::DataFolder;
use tests::commands::{done, run, trug};

const FILE: &str =
    "listen = \"127.0.0.1:0\"\npublic_url = \"https://file.example\"\nscrub_days = 7\n";

fn file(folder: &DataFolder, text: &str) -> PathBuf {
    let path = folder.parent().join("trug.toml");
    std::fs::write(&path, text).expect("a file can be written");
    path
}

fn line<'a>(text: &'a str, start: &str) -> &'a str {
    text.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{start}: {text}"))
}

#[test]
fn config_shows_each_setting_with_its_source() {
    let folder = DataFolder::new();
    let path = file(&folder, FILE);
    let mut command = trug();
    command.args(["config", "show", "--sources", "--config"]).arg(&path);
    command.args(["--public-url", "https://flag.example", "--set", "scrub_days=9"]);
    let ran = run(command.env("TRUG_SCRUB_DAYS", "8").env("TRUG_DRAIN_SECONDS", "5"));
    assert_eq!((ran.code, &*ran.stderr), (0, ""), "{ran:?}");
    let says = |setting: &str, value: &str, source: &str| {
        let line = line(&ran.stdout, setting);
        assert!(line.starts_with(value) && line.ends_with(&format!("# {source}")), "{line}");
    };
    says("listen", "listen = \"127.0.0.1:0\"", &path.display().to_string());
    says("public_url", "public_url = \"https://flag.example\"", "command line");
    says("scrub_days", "scrub_days = 9", "command line");
    says("drain_seconds", "drain_seconds = 5", "environment");
    says("body_bytes_max", "body_bytes_max = 104857600", "default");
    says("# upload_listen", "# upload_listen: none", "default");
    assert!(!folder.path().exists(), "no store is made");
}

#[test]
fn config_show_output_is_a_valid_settings_file() {
    let folder = DataFolder::new();
    let show = |path: &Path| {
        let ran = done(trug().args(["config", "show", "--config"]).arg(path));
        ran.stdout
    };
    let shown = show(&file(&folder, FILE));
    assert_eq!(show(&file(&folder, &shown)), shown);
}

#[test]
fn config_check_reports_invalid_settings_with_position() {
    let folder = DataFolder::new();
    let check = |text: &str| {
        let path = file(&folder, text);
        (run(trug().args(["config", "check", "--config"]).arg(&path)), path)
    };
    let (ran, _) = check(FILE);
    assert_eq!((ran.code, &*ran.stdout), (0, "the settings are valid\n"), "{ran:?}");
    for (text, says) in [
        ("scrub_day = 7\n", "line 1: unknown setting scrub_day; did you mean scrub_days?"),
        ("\nscrub_days = \"7\"\n", "line 2: scrub_days: \"7\" is not a duration such as 30d"),
        ("scrub_days = 4000\n", "scrub_days: 4000 is out of range: 0 to 3650"),
        ("scrub_days = \n", "line 1"),
        ("webhook_ca_file = \"/nowhere/roots.pem\"\n", "webhook_ca_file: /nowhere/roots.pem: "),
    ] {
        let (ran, path) = check(text);
        ran.check_failure(2, says);
        let names_the_file = ran.stderr.contains(&path.display().to_string());
        assert!(names_the_file || text.starts_with("webhook"), "{ran:?}");
    }
}

#[test]
fn config_check_reads_the_credentials_of_the_remote_store() {
    let folder = DataFolder::new();
    let keys = folder.write_file("remote.key", "key\nhunter2\n");
    let text = "remote_url = \"s3://trug-replica/main\"\nremote_ack = \"remote\"\n";
    let check = |keys: &str| {
        let path = file(&folder, &format!("{text}remote_credentials_file = \"{keys}\"\n"));
        let ran = run(trug().args(["config", "check", "--config"]).arg(&path));
        let shown = run(trug().args(["config", "show", "--sources", "--config"]).arg(&path));
        assert!(!format!("{ran:?}{shown:?}").contains("hunter2"), "{ran:?}{shown:?}");
        (ran, shown)
    };
    let mode = |mode| std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(&keys, mode(0o644)).expect("it is ours");
    let (ran, shown) = check(&keys);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("the store is replicated to s3://trug-replica/main\n"), "{ran:?}");
    assert!(ran.stderr.contains("the credentials file is world-readable"), "{ran:?}");
    assert!(line(&shown.stdout, "remote_ack").starts_with("remote_ack = \"remote\""));
    assert!(line(&shown.stdout, "remote_credentials_file").contains(&keys));
    std::fs::set_permissions(&keys, mode(0o600)).expect("it is ours");
    assert_eq!(check(&keys).0.stderr, "");
    let (ran, _) = check("/nowhere/remote.key");
    ran.check_failure(2, "remote_credentials_file: /nowhere/remote.key: ");
    std::fs::write(&keys, "hunter2\n").expect("it is ours");
    check(&keys).0.check_failure(2, "remote_credentials_file: the credentials have 1 lines");
    for (setting, value) in [
        ("remote_url", "s3://trug-replica//main"),
        ("remote_endpoint", "rgw.example.com"),
        ("remote_region", "eu central"),
    ] {
        let set = format!("{setting}={value}");
        let words = ["config", "check", "--set", "remote_url=s3://pics", "--set", &set];
        run(trug().args(words)).check_failure(2, &format!("{setting}: "));
    }
}

/// The documents are generated from the code: they contain the output of `trug config reference`.
#[test]
fn config_settings_are_all_documented_in_the_manual() {
    let reference = run(trug().args(["config", "reference"]));
    assert_eq!(reference.code, 0, "{reference:?}");
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools/OPERATING.md");
    let manual = std::fs::read_to_string(manual).expect("the manual can be read");
    let table = manual.find("| file | environment |").expect("the manual has the table");
    let table = &manual[table..];
    let table = &table[..table.find("\n\n").map_or(table.len(), |end| end + 1)];
    assert_eq!(table, reference.stdout, "paste what `trug config reference` prints");
}
