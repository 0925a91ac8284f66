//! Commands of README.md, run by a shell unchanged.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use tests::commands::trug_binary;
use tests::{DataFolder, ServerProcess};

const README: &str = include_str!("../../README.md");

/// Returns the first block of commands of a section.
fn commands(heading: &str) -> &'static str {
    let section = README.split_once(heading).expect("the section is there").1;
    let block = section.split_once("```sh\n").expect("it has commands").1;
    block.split_once("```").expect("the block ends").0
}

#[test]
fn readme_first_upload_and_resized_download_work() {
    let folder = DataFolder::new();
    let mut serve = Command::new(trug_binary());
    serve.args(["serve", "--listen", "127.0.0.1:0"]).current_dir(folder.parent());
    let server = ServerProcess::start(&mut serve);
    symlink(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../server"),
        folder.parent().join("server"),
    )
    .unwrap();
    let script = commands("## First upload\n");
    let alias = "alias trug=target/release/trug\n";
    assert!(script.contains(alias), "{script}");
    // A shell without a terminal has no aliases.
    let function = format!("trug() {{ {} \"$@\"; }}\n", trug_binary().display());
    let address = format!("http://{}", server.address());
    let script = script.replace(alias, &function).replace("http://127.0.0.1:8080", &address);
    let mut shell = Command::new("sh");
    shell.args(["-eu", "-c", &script.replace("curl ", "curl -fsS ")]).current_dir(folder.parent());
    let output = shell.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}\n{stderr}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"success\":true"));
    let picture = fs::read(folder.parent().join("small.webp")).unwrap();
    assert!(picture.starts_with(b"RIFF") && picture.len() > 1_000, "{} bytes", picture.len());
}

#[test]
fn quick_start_key_allows_1000_uploads_in_a_row() {
    let folder = DataFolder::new();
    folder.done(&["account", "create", "me"]);
    folder.done(&["bucket", "create", "pics", "--account", "me"]);
    let key = folder.done(&["apikey", "create", "--account", "me"]).stdout;
    let server = folder.serve();
    let mut connection = server.connect().with_key(key.trim_end());
    for at in 0..1_000 {
        let answer = connection
            .upload_file("/pics/", &format!("{at}.txt"), b"hello")
            .expect("the server responds");
        assert_eq!(answer.status, 200, "{at}: {}", answer.text());
    }
}
