//! Guides of the documentation, and their examples, run as a reader would: in a folder with a few files, with the key
//! in the environment.
//!
//! Guarantees: the example that fails is printed with its output. Non-goals: expected results, which the tests know.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::commands::{trug_binary, without_settings};

/// URL of the server in the guides.
const SERVER: &str = "https://files.example.com";
/// API key in the guides.
const KEY: &str = "YOUR_KEY";
/// Languages that are run, in this order.
pub const LANGUAGES: [&str; 3] = ["sh", "js", "python"];

/// Fenced code block.
pub struct Example {
    /// Text after the fence.
    pub language: String,
    pub code: String,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/assets/docs/guides")
}

/// Returns the names of all guides.
///
/// # Panics
///
/// If the folder cannot be read.
#[must_use]
pub fn names() -> Vec<String> {
    let entries = fs::read_dir(folder()).expect("the guides can be read");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string());
    let mut names: Vec<String> = names
        .map(|name| name.expect("a name").strip_suffix(".md").expect("Markdown").to_owned())
        .collect();
    names.sort();
    names
}

/// Returns the examples of a guide in their order.
///
/// # Panics
///
/// If there is no such guide.
#[must_use]
pub fn examples(guide: &str) -> Vec<Example> {
    let text = fs::read_to_string(folder().join(format!("{guide}.md"))).expect("the guide");
    let blocks = text.split("\n```").skip(1).step_by(2);
    let examples = blocks.map(|block| {
        let (language, code) = block.split_once('\n').expect("a fence has its line");
        Example { language: language.to_owned(), code: format!("{code}\n") }
    });
    examples.collect()
}

/// Reader who tries the examples of a guide.
pub struct Reader<'a> {
    /// Working directory.
    pub folder: &'a Path,
    /// URL of the server.
    pub server: String,
    pub key: &'a str,
    /// More variables of the environment.
    pub variables: Vec<(&'static str, String)>,
    /// Interpreter of the Python examples.
    pub python: PathBuf,
    /// Whether responses with an error are expected in the shell.
    pub expects_errors: bool,
}

impl Reader<'_> {
    /// Runs the examples: those of the shell as one script, then each of the others, and returns the output of each
    /// language.
    ///
    /// # Panics
    ///
    /// If an example fails.
    #[must_use]
    pub fn run(&self, examples: &[Example]) -> BTreeMap<&'static str, String> {
        let mut printed = BTreeMap::new();
        for language in LANGUAGES {
            let of_language = examples.iter().filter(|example| example.language == language);
            let texts: Vec<String> = of_language.map(|it| self.filled(&it.code)).collect();
            let output = match language {
                "sh" => self.run_shell(&texts.concat()),
                _ => texts.iter().enumerate().map(|it| self.run_file(language, it)).collect(),
            };
            printed.insert(language, output);
        }
        printed
    }

    fn filled(&self, code: &str) -> String {
        code.replace(SERVER, &self.server).replace(KEY, self.key)
    }

    fn run_shell(&self, script: &str) -> String {
        let fail = if self.expects_errors { "" } else { "--fail-with-body " };
        let curl = format!("curl() {{ command curl -sS {fail}\"$@\"; }}\n");
        let trug = trug_binary();
        let trug = format!("trug() {{ \"{}\" \"$@\"; }}\n", trug.display());
        // The variables that a guide exports are for its other examples, too.
        let keep = "env | grep ^AWS_ > exported || true\n";
        let script = format!("{curl}{trug}{script}\n{keep}");
        self.output(without_settings("sh").args(["-eu", "-c", &script]), "sh", &script)
    }

    fn run_file(&self, language: &str, (at, code): (usize, &String)) -> String {
        let (program, extension) = match language {
            "js" => (Path::new("node"), "mjs"),
            _ => (&*self.python, "py"),
        };
        let file = self.folder.join(format!("example_{at}.{extension}"));
        fs::write(&file, code).expect("a file can be written");
        self.output(without_settings(program).arg(file), language, code)
    }

    fn output(&self, command: &mut Command, language: &str, code: &str) -> String {
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(|name| name.starts_with("AWS_")) {
                command.env_remove(name);
            }
        }
        command.current_dir(self.folder).env("KEY", self.key).env("NO_PROXY", "*");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        let exported = fs::read_to_string(self.folder.join("exported")).unwrap_or_default();
        command.envs(exported.lines().filter_map(|line| line.split_once('=')));
        let program = command.get_program().to_owned();
        let output = command.output().unwrap_or_else(|error| {
            panic!("{} is missing ({error}): the {language} examples need it", program.display())
        });
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{language}:\n{code}\n{printed}\n{errors}");
        printed
    }
}

/// Returns a webhook's secret, and the signature of a message by it.
#[must_use]
pub fn webhook_signature(id: &str, time: u64, body: &str) -> (String, String) {
    let key = [7; 24];
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("HMAC takes keys of any length");
    mac.update(format!("{id}.{time}.{body}").as_bytes());
    let signature = STANDARD.encode(mac.finalize().into_bytes());
    (format!("whsec_{}", STANDARD.encode(key)), format!("v1,{signature}"))
}
