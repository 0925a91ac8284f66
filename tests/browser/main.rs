//! The dashboard in a real browser, and the tests of the JavaScript client (`client_package.rs`).
//!
//! Tests of every view, with a mouse, with the keyboard alone, for a screen reader, on a narrow screen, with a hundred
//! thousand files, and with names and files that try to run scripts. Tests of sessions, also against pages of other
//! origins and other tenants, and of uploads across server restarts. A server is started over a folder with buckets for
//! all of that; `suite.mjs` drives Chromium through it with playwright-core, signed in as users are, and prints one
//! line for each test. Tests that need a server of their own request one from `servers.rs`.
//!
//! Needs `node`, `chromium-headless-shell` or `chromium`, and `npm ci --prefix tests/browser`, so it is ignored unless
//! requested, as the build server does. `TRUG_BROWSER_SHOTS=FOLDER` keeps screenshots of all views,
//! `TRUG_BROWSER_ONLY=WORD,WORD` runs the tests with one of the words in their name, `TRUG_BROWSER_ASSETS=FOLDER` reads
//! the dashboard's files from there, `TRUG_BROWSER_SLOW=4` makes pages so many times slower. For a failed test the text
//! of its pages is printed, and a screenshot kept in the build folder.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the rules of the package are for the binary, not for those who look at it from outside"
)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod client_package;
mod past;
mod servers;

use std::env;
use std::fs::{File, write};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;
use tests::DataFolder;

use crate::servers::Servers;

/// Number of files in the long folder.
const MANY: usize = 100_000;
/// Password of the operator account.
const PASSWORD: &str = "four words are enough";
/// Program names in Debian and Ubuntu, and elsewhere. The headless shell renders in half of the time.
const CHROMIUM: &[&str] =
    &["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];

#[test]
#[ignore = "needs Node, Chromium and `npm ci --prefix tests/browser`"]
fn dashboard_works_in_chromium() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/browser");
    let (node, chromium) = tools(&folder).unwrap_or_else(|missing| panic!("{missing}"));
    let (data, key) = DataFolder::with_bucket();
    for (name, access) in [("many", "public"), ("hostile", "public"), ("secrets", "private")] {
        data.done(&["bucket", "create", "--account", "ann", "--name", name, "--access", access]);
    }
    let password = data.parent().join("password");
    write(&password, PASSWORD).unwrap();
    data.done(&["account", "create", "--name", "olga", "--role", "operator"]);
    let password = ["--password-file", password.to_str().unwrap()];
    data.done(&[&["account", "password", "--account", "olga"], &password[..]].concat());
    let archive = data.parent().join("many.tar");
    write_archive(&archive, "", MANY);
    data.done(&["import", "--bucket", "many", "--from", archive.to_str().unwrap()]);
    let server = data.serve();
    let servers = Servers::listen().unwrap();
    let options = json!({
        "base": format!("http://{}", server.address()),
        "key": key,
        "operator": {"name": "olga", "password": PASSWORD},
        "servers": servers.address().to_string(),
        "many": MANY,
        "chromium": chromium,
        "folder": data.parent(),
        "evidence": Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser"),
        "shots": env::var("TRUG_BROWSER_SHOTS").ok(),
        "only": env::var("TRUG_BROWSER_ONLY").ok(),
        "assets": env::var("TRUG_BROWSER_ASSETS").ok(),
        "slow": env::var("TRUG_BROWSER_SLOW").ok(),
    });
    let mut suite = Command::new(node);
    suite.arg("suite.mjs").env("TRUG_BROWSER_OPTIONS", options.to_string()).current_dir(folder);
    // Its output is visible at once, also of a run that is interrupted or passes.
    let ended = suite.stdin(Stdio::null()).status().unwrap();
    assert!(ended.success(), "{ended}, the server said:\n{}", server.log());
    server.stop();
}

/// Returns the tools of the suite, or what is missing.
fn tools(folder: &Path) -> Result<(PathBuf, PathBuf), String> {
    let node = find("node").ok_or("node is not there")?;
    let chromium = CHROMIUM.iter().find_map(|name| find(name)).ok_or("no Chromium is there")?;
    if !folder.join("node_modules/playwright-core").exists() {
        return Err("`npm ci --prefix tests/browser` brings what drives it".to_owned());
    }
    Ok((node, chromium))
}

fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Writes an archive of many small files in one folder.
pub(crate) fn write_archive(path: &Path, folder: &str, count: usize) {
    let mut archive = tar::Builder::new(BufWriter::new(File::create(path).unwrap()));
    for number in 0..count {
        let body = format!("{number}\n");
        let mut header = tar::Header::new_gnu();
        header.set_size(body.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(1_769_860_800 + number as u64);
        let name = format!("{folder}file-{number:06}.txt");
        archive.append_data(&mut header, name, body.as_bytes()).unwrap();
    }
    archive.into_inner().unwrap();
}
