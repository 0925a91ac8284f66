//! The disaster drill of `tools/OPERATING.md`, run as documented.

use std::fs;
use std::path::Path;

use tests::DataFolder;
use tests::commands::{run, trug_binary, without_settings};
use tests::free_address::free_address;

/// Listen address in the document.
const PORT: &str = "127.0.0.1:8090";

/// Returns the shell lines under a heading of a document.
fn commands(document: &str, heading: &str) -> String {
    let (_, section) = document.split_once(heading).expect("the heading is there");
    let section = section.split("\n## ").next().unwrap_or_default();
    let blocks = section.split("```sh\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap_or_default()).collect()
}

#[test]
fn disaster_drill_matches_the_runbook() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("OPERATING.md");
    let page = fs::read_to_string(page).expect("it is there");
    let script = commands(&page, "\n## Disaster drill\n");
    assert!(script.matches("trug ").count() > 20 && script.contains(PORT), "{script}");
    let script = script.replace(PORT, &free_address().to_string());
    let folder = DataFolder::new();
    let binaries = trug_binary().parent().expect("it is in a folder").to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([binaries].into_iter().chain(std::env::split_paths(&path)));
    let mut shell = without_settings("bash");
    // The servers end with the script, whatever ends it.
    let script = format!("trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{script}");
    shell.args(["--norc", "-eu", "-o", "pipefail", "-c", &script]).current_dir(folder.parent());
    let ran = run(shell.env("PATH", path.expect("a list of folders")));
    assert_eq!(ran.code, 0, "{script}\n{}\n{}", ran.stdout, ran.stderr);
    for says in ["drill/large.bin", "the index is missing", "the store is full"] {
        let said = [&ran.stdout, &ran.stderr].iter().any(|text| text.contains(says));
        assert!(said, "{says:?} is not said: {}\n{}", ran.stdout, ran.stderr);
    }
}
