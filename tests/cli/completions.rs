//! `trug completions` and `trug man`: their output in other programs.

use std::fs;
use std::process::Command;

use tests::DataFolder;
use tests::commands::{Ran, require_program, run, trug};

fn done(words: &[&str]) -> Ran {
    let ran = run(trug().args(words));
    assert_eq!((ran.code, &*ran.stderr), (0, ""), "{ran:?}");
    ran
}

#[test]
fn bash_completes_commands_and_flags() {
    let folder = DataFolder::new();
    let script = folder.parent().join("trug.bash");
    fs::write(&script, done(&["completions", "bash"]).stdout).expect("it can be written");
    let complete = |words: &[&str]| {
        let last = words.len() - 1;
        let text = format!(
            "set -eu; . {}; complete -p trug >&2; COMP_WORDS=({}); COMP_CWORD={last}; \
             _trug trug {} {}; echo \"${{COMPREPLY[@]}}\"",
            script.display(),
            words.join(" "),
            words[last],
            words[last - 1],
        );
        let ran = tests::commands::done(Command::new("bash").args(["--norc", "-c", &text]));
        assert!(ran.stderr.contains("-F _trug"), "{ran:?}");
        ran.stdout.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(complete(&["trug", "acc"]), ["account"]);
    assert_eq!(complete(&["trug", "bucket", "cre"]), ["create"]);
    assert_eq!(complete(&["trug", "backup", "--t"]), ["--to"]);
}

#[test]
fn other_shell_completions_are_valid() {
    for (shell, program) in [("zsh", "zsh"), ("fish", "fish")] {
        let script = done(&["completions", shell]).stdout;
        assert!(script.contains("webhook") && script.contains("backup"), "{shell}");
        // Rarely installed; their output is generated from the same definitions.
        if Command::new(program).arg("--version").output().is_ok() {
            let folder = DataFolder::new();
            let path = folder.parent().join("script");
            fs::write(&path, script).expect("it can be written");
            let ran = run(Command::new(program).arg("-n").arg(path));
            assert_eq!((ran.code, &*ran.stderr), (0, ""), "{shell}");
        }
    }
    for shell in ["elvish", "powershell"] {
        assert!(done(&["completions", shell]).stdout.contains("webhook"), "{shell}");
    }
    run(trug().args(["completions", "csh"])).check_failure(2, "csh");
}

#[test]
fn man_pages_exist_for_all_commands_without_warnings() {
    let folder = DataFolder::new();
    let pages = folder.parent().join("share/man/man1");
    let printed = done(&["man", "--to", pages.to_str().expect("text")]).stdout;
    let mut names: Vec<String> = fs::read_dir(&pages)
        .expect("it was made")
        .map(|entry| entry.expect("it is there").file_name().into_string().expect("text"))
        .collect();
    names.sort();
    assert!(printed.starts_with(&format!("wrote {} pages to ", names.len())), "{printed}");
    for name in ["trug.1", "trug-serve.1", "trug-bucket.1", "trug-bucket-create.1"] {
        assert!(names.iter().any(|it| it == name), "{name}: {names:?}");
    }
    require_program("groff", "--version");
    // Long words in narrow columns leave gaps, which is no fault of a page: -Wbreak.
    for name in &names {
        let page = pages.join(name);
        let ran = run(Command::new("groff")
            .args(["-man", "-wall", "-Wbreak", "-Tutf8", "-P-cbou"])
            .arg(page));
        assert_eq!((ran.code, &*ran.stderr), (0, ""), "{name}");
        assert!(ran.stdout.contains("NAME"), "{name}: {}", ran.stdout);
    }
}

#[test]
fn man_prints_one_page() {
    let page = done(&["man", "bucket", "create"]).stdout;
    assert!(page.contains(".TH trug-bucket-create 1"), "{page}");
    assert!(done(&["man"]).stdout.contains(".TH trug 1"));
    run(trug().args(["man", "bucket", "none"])).check_failure(2, "unknown command bucket none");
    run(trug().args(["man", "bucket", "--to", "x"])).check_failure(2, "cannot be used with");
}
