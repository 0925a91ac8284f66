//! Metrics of a real server: the token in a file, the metrics listener, the system's figures of the process, and a
//! secret that is never printed. Also the runbook, whose commands must be valid.

use std::collections::BTreeMap;
use std::path::Path;

use tests::commands::{done, run, trug};
use tests::{Connection, DataFolder, OpenMetrics};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Text before the address in the output of a server.
const WATCHED: &str = "  Metrics      http://";

fn token_file(folder: &DataFolder, text: &str) -> String {
    let path = folder.parent().join("token");
    std::fs::write(&path, text).expect("a file can be written");
    path.display().to_string()
}

#[test]
fn metrics_token_file_is_used_by_the_server() {
    let (folder, _) = DataFolder::with_bucket();
    let setting = format!("metrics_token_file={}", token_file(&folder, &format!("{TOKEN}\n")));
    let words = ["--listen", "127.0.0.1:0", "--set", &setting, "--set", "admin_listen=127.0.0.1:0"];
    let server = folder.serve_with(&words);
    let printed = server.wait_for_output(WATCHED);
    let watched = printed.lines().find_map(|line| line.strip_prefix(WATCHED));
    let watched = watched.expect("the address for watching is printed").to_owned();
    let mut at_home = server.connect().with_key(TOKEN);
    let mut watching =
        Connection::connect(watched.parse().expect("an address")).expect("it listens there");
    let read = |answer: tests::Response| {
        assert_eq!(answer.status, 200, "{}", answer.text());
        OpenMetrics::read(&answer.text())
    };
    let metrics = read(at_home.get("/-/metrics").expect("it answers"));
    let same = read(watching.get("/-/metrics").expect("it answers"));
    let names = |scrape: &OpenMetrics| {
        let names = scrape.series().into_keys();
        // Known once the scrub has run.
        names.filter(|name| !name.starts_with("trug_scrub_oldest")).collect::<Vec<_>>()
    };
    assert_eq!(names(&metrics), names(&same));
    assert_eq!(server.get("/-/metrics").status, 401);
    assert_eq!(watching.get("/photos/").expect("it answers").status, 404);
    assert_eq!(watching.get("/-/ready").expect("it answers").status, 200);
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(metrics.value(&format!("trug_build_info{{version={version:?}}}")), 1.0);
    assert!(metrics.value("process_resident_memory_bytes") > 1e6);
    let files = metrics.value("process_open_fds");
    assert!(files > 3.0 && files < metrics.value("process_max_fds"), "{files}");
    assert!(metrics.value("process_start_time_seconds") > 1.7e9);
    assert!(metrics.value("process_cpu_seconds_total") >= 0.0);
    assert!(metrics.value("trug_disk_free_bytes") > 0.0);
    assert_eq!(metrics.value("trug_scrub_period_seconds"), 30.0 * 86_400.0);
    assert_eq!(metrics.value("trug_store_state{state=\"writable\"}"), 1.0);
    let all = format!("{}{}", server.output(), server.log());
    assert!(!all.contains(TOKEN), "{all}");

    // The backup metric appears with the first backup.
    assert!(!metrics.series().contains_key("trug_backup_last_timestamp_seconds"));
    let to = folder.parent().join("backup").display().to_string();
    folder.done(&["backup", "--to", &to]);
    let metrics = read(watching.get("/-/metrics").expect("it answers"));
    assert!(metrics.value("trug_backup_last_timestamp_seconds") > 1.7e9);
    assert_eq!(metrics.value("trug_backup_last_damage"), 0.0);
    server.stop();
}

#[test]
fn metrics_invalid_token_is_rejected_and_not_printed() {
    let folder = DataFolder::new();
    let check = |words: &[&str]| run(trug().args(["config", "check"]).args(words));
    for (text, says) in [
        ("hunter2", "16 to 256"),
        ("", "16 to 256"),
        ("hunter2 and some more words", "without spaces"),
    ] {
        let setting = format!("metrics_token_file={}", token_file(&folder, text));
        let ran = check(&["--set", &setting]);
        ran.check_failure(2, says);
        assert!(
            ran.stderr.contains("metrics_token_file") && !ran.stderr.contains("hunter2"),
            "{ran:?}"
        );
        let setting = format!("metrics_token={text}");
        let ran = check(&["--set", &setting]);
        ran.check_failure(2, says);
        assert!(!ran.stderr.contains("hunter2"), "{ran:?}");
    }
    let ran = check(&["--set", "metrics_token_file=/nowhere/token"]);
    ran.check_failure(2, "metrics_token_file: /nowhere/token: ");
    // A file of unlimited length is rejected too.
    check(&["--set", "metrics_token_file=/dev/zero"]).check_failure(2, "longer than 4096 bytes");
    check(&["--set", "admin_listen=localhost"]).check_failure(2, "admin_listen");
}

#[test]
fn metrics_token_is_redacted_in_settings() {
    let folder = DataFolder::new();
    let path = folder.parent().join("trug.toml");
    std::fs::write(&path, format!("metrics_token = \"{TOKEN}\"\n")).expect("a file can be written");
    let show = |words: &[&str]| {
        let ran = done(trug().args(["config", "show"]).args(words).arg("--config").arg(&path));
        assert!(!ran.stdout.contains(TOKEN) && !ran.stderr.contains(TOKEN), "{ran:?}");
        ran.stdout
    };
    let shown = show(&[]);
    assert!(shown.lines().any(|line| line == "metrics_token = \"***\""), "{shown}");
    let sources = show(&["--sources"]);
    let line = sources.lines().find(|line| line.starts_with("metrics_token = ")).expect("its line");
    assert!(line.ends_with(&format!("# {}", path.display())), "{line}");
    // A masked value used as a secret is rejected, so no server runs with three stars as its token.
    std::fs::write(&path, &shown).expect("a file can be written");
    let ran = run(trug().args(["config", "check", "--config"]).arg(&path));
    ran.check_failure(2, "metrics_token: this is not a secret");
}

/// Returns the commands of the runbook: the section, and a line that starts with `trug`.
fn commands() -> Vec<(String, String)> {
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools/OPERATING.md");
    let manual = std::fs::read_to_string(manual).expect("the manual can be read");
    let runbook = manual.split("\n## Runbook\n").nth(1).expect("the manual has a runbook");
    let runbook = runbook.split("\n## ").next().unwrap_or_default();
    let (mut section, mut commands) = (String::new(), Vec::new());
    for line in runbook.lines() {
        if let Some(name) = line.strip_prefix("### ") {
            name.clone_into(&mut section);
        } else if line.starts_with("trug ") {
            commands.push((section.clone(), line.to_owned()));
        }
    }
    commands
}

#[test]
fn runbook_commands_and_flags_exist() {
    let mut helps: BTreeMap<Vec<&str>, String> = BTreeMap::new();
    let commands = commands();
    assert!(commands.len() > 30, "the commands were not found");
    for (section, line) in &commands {
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        let end = words.iter().position(|word| word.starts_with("--")).unwrap_or(words.len());
        let (command, flags) = words.split_at(end);
        let help = helps.entry(command.to_vec()).or_insert_with(|| {
            let ran = run(trug().args(command).arg("--help"));
            assert_eq!(ran.code, 0, "{section}: {line}: {ran:?}");
            ran.stdout
        });
        for flag in flags.iter().filter(|word| word.starts_with("--")) {
            let is_there =
                help.split_whitespace().any(|word| word.trim_end_matches([',', ']']) == *flag);
            assert!(is_there, "{section}: {line}: there is no {flag}");
        }
    }
}

#[test]
fn runbook_metrics_and_files_exist() {
    let (folder, _) = DataFolder::with_bucket();
    let server = folder.serve();
    let mut seen = 0;
    for (section, line) in commands() {
        // Commands that only read, and need nothing but a store.
        let reads =
            ["trug stats ", "trug account list", "trug bucket list", "trug audit ", "trug scrub "];
        let is_dry = line.contains("--dry-run");
        if !reads.iter().any(|read| line.starts_with(read)) && !is_dry {
            continue;
        }
        let data = folder.path().display().to_string();
        let line = line.replace("/var/lib/trug", &data);
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        let ran = run(trug().args(&words));
        assert_eq!(ran.code, 0, "{section}: {line}: {ran:?}");
        seen += 1;
    }
    assert!(seen > 15, "{seen}");
    server.stop();
}
