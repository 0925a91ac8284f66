//! The JavaScript client, `server/client`: its own tests, in Node and Chromium, against a real server.
//!
//! Guarantees: all files `test/*.test.mjs` of the package run. Non-goals: what they test.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;
use tests::DataFolder;

use crate::tools;

#[test]
#[ignore = "needs Node, Chromium, and `npm ci` with `--prefix tests/browser` and `--prefix server/client`"]
fn client_package_passes_in_node_and_chromium() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (node, chromium) = tools(&root.join("tests/browser")).unwrap_or_else(|it| panic!("{it}"));
    let package = root.join("server/client");
    let compiler = package.join("node_modules/typescript");
    assert!(compiler.exists(), "TypeScript is missing: npm ci --prefix server/client");
    let files = fs::read_dir(package.join("test")).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.to_str().is_some_and(|it| it.ends_with(".test.mjs")));
    let (data, key) = DataFolder::with_bucket();
    let server = data.serve();
    let base = format!("http://{}", server.address());
    let options = json!({"base": base, "key": key, "chromium": chromium});
    let mut suite = Command::new(node);
    suite.args(["--test", "--test-reporter=spec"]).args(files).current_dir(&package);
    suite.env("TRUG_CLIENT_OPTIONS", options.to_string());
    // Its output is visible at once, also of a run that is interrupted or passes.
    let ended = suite.stdin(Stdio::null()).status().unwrap();
    assert!(ended.success(), "{ended}, the server logged:\n{}", server.log());
    server.stop();
}
