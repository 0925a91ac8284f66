//! Every example in `server/API.md`, run by a shell with the real curl against a real server.
//!
//! The responses are compared with the document: with the status in the table below, with the fields that the section
//! documents, and with the names that it mentions, so that neither an example nor a field is missing from it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tests::{DataFolder, ServerProcess};

const DOCUMENT: &str = include_str!("../../server/API.md");
const CAT: &[u8] = include_bytes!("../fixtures/jpeg/exif.jpg");

/// A section with examples.
struct Section {
    heading: &'static str,
    /// Expected statuses of the requests of its examples, in order.
    statuses: &'static [u16],
    /// Documented fields that these responses lack, because they only occur in other cases.
    absent: &'static [&'static str],
    /// Sections whose fields its responses have, too.
    like: &'static [&'static str],
}

const fn section(heading: &'static str, statuses: &'static [u16]) -> Section {
    Section { heading, statuses, absent: &[], like: &["Management"] }
}

const SECTIONS: &[Section] = &[
    section("Delivery", &[200, 206, 200]),
    section("Compression", &[200]),
    Section { absent: &["thumbnailSkipped"], ..section("Upload", &[200, 200]) },
    Section { like: &["Upload"], ..section("Thumbnails", &[200, 200]) },
    section("Resumable uploads", &[201, 204]),
    // Folders only.
    Section { absent: &["isTruncated"], ..section("Delete", &[200]) },
    // Repeated parameters of the request, or a continuation flag.
    Section {
        absent: &[
            "Delimiter",
            "StartAfter",
            "ContinuationToken",
            "NextContinuationToken",
            "Prefix",
        ],
        ..section("List", &[200])
    },
    // Values, not names.
    Section { absent: &["folder", "file"], ..section("Search", &[200, 200]) },
    section("Download links", &[200]),
    // Values.
    Section {
        absent: &["active", "auto", "download"],
        like: &["Management", "Links that request files"],
        ..section("Shared links", &[200, 200, 200])
    },
    section("Pages of public files", &[200]),
    Section {
        absent: &["no", "optional", "required"],
        like: &["Management", "Shared links"],
        ..section("Links that request files", &[200])
    },
    section("Zip archives", &[200, 200]),
    Section { like: &["Upload"], ..section("Presigned tokens", &[200, 200]) },
    // A parameter.
    Section {
        like: &["Upload"],
        absent: &["token"],
        ..section("Presigned addresses, the earlier form", &[200, 200])
    },
    section("Integrations", &[200, 200, 200]),
    section("Buckets", &[200; 6]),
    section("Object metadata", &[200, 200]),
    // Fields of other rules; values.
    Section {
        absent: &["expireAt", "file_not_found", "manage"],
        like: &["Upload", "Buckets"],
        ..section("Expiry", &[200; 4])
    },
    section("Moves and copies", &[200; 3]),
    // Values, not names.
    Section {
        absent: &["deleted", "replaced"],
        like: &["Delete"],
        ..section("Undelete", &[200; 3])
    },
    Section {
        absent: &["files", "addresses", "url", "waiting", "running", "cancelled", "failed"],
        ..section("Jobs", &[202, 200])
    },
    // Values, not names; fields of an existing backup, and of damage.
    Section {
        absent: &[
            "writable",
            "full",
            "log",
            "compacted",
            "big",
            "at",
            "to",
            "bucketName",
            "path",
            "file",
            "offset",
            "what",
            "whatToDo",
            "foundAt",
        ],
        ..section("Storage", &[200])
    },
    // Values.
    Section {
        absent: &["default", "environment", "reload", "restart"],
        ..section("Server settings", &[200])
    },
    section("Recent uploads", &[200]),
    section("Quotas", &[200]),
    section("Usage over time", &[200]),
    section("Audit", &[200]),
    Section { like: &["Management", "Audit"], ..section("Audit of files", &[200]) },
    section("API keys", &[200; 3]),
    section("Organisations", &[200; 8]),
    // Of accounts that were moved along; two values.
    Section {
        absent: &["at", "from", "to", "reason", "by", "sweep", "operator"],
        ..section("Accounts", &[200; 7])
    },
    // Without an account.
    Section {
        like: &["Management", "Accounts", "Buckets"],
        absent: &["setUpNeeded"],
        ..section("Sessions", &[200, 200, 200, 200, 204, 204])
    },
    Section { like: &["Management", "Deliveries"], ..section("Webhooks", &[200; 7]) },
    Section { absent: &["account", "name", "from", "to", "reason"], ..section("Fair use", &[200]) },
];

/// Wrapper of the real curl, which records the status, the head and the body of the nth response.
const CURL: &str = r#"#!/bin/sh
n=$(($(cat "$NOTES/count") + 1))
echo $n > "$NOTES/count"
echo "curl $*" > "$NOTES/$n.command"
"$CURL" -sS -D "$NOTES/$n.head" "$@" > "$NOTES/$n.body"
ended=$?
cat "$NOTES/$n.body"
exit $ended
"#;

/// A recorded response.
struct RecordedResponse {
    command: String,
    status: u16,
    head: String,
    body: String,
}

/// A server with the account `me` and the bucket `pics`, which has a cat picture and a JSON file, as the examples
/// require it, and a private bucket.
struct Town {
    folder: DataFolder,
    server: ServerProcess,
    variables: Vec<(&'static str, String)>,
}

impl Town {
    fn new() -> Self {
        let folder = DataFolder::new();
        folder.done(&["account", "create", "me", "--role", "user"]);
        let make = ["bucket", "create", "--account", "me", "--name"];
        folder.done(&[&make[..], &["pics"]].concat());
        folder.done(&[&make[..], &["private-pics", "--access", "private"]].concat());
        let other = folder.json(&["account", "create", "--name", "other"]);
        folder.done(&["account", "create", "--name", "op", "--role", "operator"]);
        let key = |account| folder.done(&["apikey", "create", "--account", account]).stdout;
        let (key, operator_key) = (key("me"), key("op"));
        let password = "correct horse battery";
        let file = folder.parent().join("password");
        fs::write(&file, password).expect("a file can be written");
        let file = file.display().to_string();
        folder.done(&["account", "password", "--account", "me", "--password-file", &file]);
        let server = folder.serve();
        let variables = vec![
            ("PASSWORD", password.to_owned()),
            ("URL", format!("http://{}", server.address())),
            ("KEY", key.trim_end().to_owned()),
            ("OPERATOR_KEY", operator_key.trim_end().to_owned()),
            ("OTHER_ACCOUNT", other["id"].as_str().expect("an account has an id").to_owned()),
        ];
        let mut connection = server.connect().with_key(key.trim_end());
        for (address, name) in [("/pics/", "cat.jpg"), ("/private-pics/2026/", "tom.jpg")] {
            assert_eq!(connection.upload_file(address, name, CAT).expect("it answers").status, 200);
        }
        let data = connection.upload_file("/pics/", "data.json", &b"[1, 2, 3], ".repeat(200));
        assert_eq!(data.expect("it answers").status, 200);
        fs::write(folder.parent().join("cat.jpg"), CAT).expect("a file can be written");
        fs::create_dir_all(folder.parent().join("notes")).expect("a folder can be made");
        let wrapper = folder.parent().join("notes/curl");
        fs::write(&wrapper, CURL).expect("a file can be written");
        let ran = Command::new("chmod").arg("+x").arg(&wrapper).status();
        assert!(ran.is_ok_and(|status| status.success()));
        Self { folder, server, variables }
    }

    /// Runs the lines of a section, and returns the responses.
    fn run(&self, script: &str) -> Vec<RecordedResponse> {
        let notes = self.folder.parent().join("notes");
        fs::write(notes.join("count"), "0").expect("a file can be written");
        let path = std::env::var("PATH").expect("there is a path");
        let curl = Command::new("sh").args(["-c", "command -v curl"]).output();
        let curl = curl.expect("a shell runs").stdout;
        assert!(
            !curl.is_empty(),
            "curl is missing: install it, on Debian with apt-get install curl"
        );
        let mut shell = Command::new("sh");
        shell.args(["-eu", "-c", script]).current_dir(self.folder.parent());
        shell.env("CURL", String::from_utf8_lossy(&curl).trim_end());
        shell.env("NOTES", &notes).env("PATH", format!("{}:{path}", notes.display()));
        shell.envs(self.variables.iter().map(|(name, value)| (name, value)));
        let output = shell.output().expect("a shell runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{script}\n{said}");
        let read = |name: String| fs::read(notes.join(name)).expect("what came is noted");
        let count: usize =
            String::from_utf8_lossy(&read("count".into())).trim().parse().expect("a count");
        (1..=count)
            .map(|at| {
                let text = |name: &str| {
                    String::from_utf8_lossy(&read(format!("{at}.{name}"))).into_owned()
                };
                let head = text("head");
                // After a 100 comes the final response.
                let last = head.lines().rfind(|line| line.starts_with("HTTP/"));
                let status = last.and_then(|line| line.split(' ').nth(1)?.parse().ok());
                let status = status.unwrap_or_else(|| panic!("no answer: {head}"));
                RecordedResponse { command: text("command"), status, head, body: text("body") }
            })
            .collect()
    }

    fn file(&self, name: &str) -> Vec<u8> {
        let path: &Path = self.folder.parent();
        fs::read(path.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }
}

/// Returns the sections of the document: heading and text, up to the next heading of any depth.
fn sections() -> Vec<(&'static str, &'static str)> {
    let mut sections = Vec::new();
    for part in DOCUMENT.split("\n## ").flat_map(|part| part.split("\n### ")) {
        let (heading, text) = part.split_once('\n').expect("a heading has its line");
        sections.push((heading, text));
    }
    sections
}

fn text_of(heading: &str) -> &'static str {
    let found = sections().into_iter().find(|(known, _)| *known == heading);
    found.unwrap_or_else(|| panic!("{heading} is no section")).1
}

/// Returns the lines of a section's examples of a kind.
fn examples(text: &str, kind: &str) -> String {
    let begin = format!("```{kind}\n");
    let blocks =
        text.split(&begin).skip(1).map(|rest| rest.split("```").next().unwrap_or_default());
    blocks.collect()
}

/// Returns the texts between backticks that may be names of fields.
fn names(text: &str) -> BTreeSet<&str> {
    let quoted = text.split('`').skip(1).step_by(2);
    // `success: true` names a field with its value.
    quoted
        .map(|quoted| quoted.split(": ").next().unwrap_or_default())
        .filter(|name| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric()))
        .filter(|name| {
            !["true", "false", "null"].contains(name)
                && !name.starts_with(|it: char| it.is_ascii_digit())
        })
        .collect()
}

/// Returns the fields that a section documents: those that it names after "The response", and in the table that
/// follows.
fn promised(text: &'static str) -> BTreeSet<&'static str> {
    let paragraphs: Vec<&str> = text.split("\n\n").collect();
    let mut promised = BTreeSet::new();
    for (at, paragraph) in paragraphs.iter().enumerate() {
        let Some(begin) = paragraph.find("The response") else { continue };
        promised.extend(names(&paragraph[begin..]));
        if paragraph.trim_end().ends_with(':') {
            promised.extend(paragraphs.get(at + 1).map(|table| names(table)).unwrap_or_default());
        }
    }
    promised
}

/// Collects the names of all fields at any depth; below `data` they are not part of the contract.
fn fields(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                found.insert(name.clone());
                if name != "data" {
                    fields(value, found);
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| fields(value, found)),
        _ => {}
    }
}

#[test]
fn api_examples_get_the_documented_responses() {
    let town = Town::new();
    let with_examples = sections().into_iter().filter(|(_, text)| text.contains("```sh\n"));
    let headings: Vec<&str> = with_examples.map(|(heading, _)| heading).collect();
    let known: Vec<&str> = SECTIONS.iter().map(|section| section.heading).collect();
    assert_eq!(headings, known, "each section with examples has its line in SECTIONS");
    for section in SECTIONS {
        let text = text_of(section.heading);
        let noted = town.run(&examples(text, "sh"));
        let statuses: Vec<u16> = noted.iter().map(|noted| noted.status).collect();
        let shown: String = noted.iter().map(|it| format!("{}{}\n", it.command, it.body)).collect();
        assert_eq!(statuses, section.statuses, "{}: {shown}", section.heading);

        let mut found = BTreeSet::new();
        for answer in noted.iter().filter_map(|it| serde_json::from_str(&it.body).ok()) {
            fields(&answer, &mut found);
        }
        let is_header = |name: &str| {
            let line = format!("\n{}: ", name.to_ascii_lowercase());
            noted.iter().any(|it| it.head.contains(&line))
        };
        let missing: Vec<&str> = promised(text)
            .into_iter()
            .filter(|name| !found.contains(*name) && !section.absent.contains(name))
            .filter(|name| !is_header(name))
            .collect();
        let texts = section.like.iter().map(|heading| text_of(heading)).chain([text]);
        let named: BTreeSet<&str> = texts.flat_map(names).collect();
        found.retain(|name| !named.contains(&**name));
        assert!(
            missing.is_empty() && found.is_empty(),
            "{}: {missing:?} are promised and not there, {found:?} are there and not named: {shown}",
            section.heading
        );
    }
    // Examples whose only result is a file.
    assert_eq!(town.file("Tom.jpg"), CAT);
    let sharex: Value = serde_json::from_slice(&town.file("trug-pics.sxcu")).expect("it is JSON");
    assert_eq!(sharex["Body"], "MultipartFormData");
    // The files that the examples store are present.
    for path in ["/pics/2026/tom.jpg", "/pics/2026/cat.jpg"] {
        assert_eq!(town.server.get(path).body, CAT, "{path}");
    }
}

#[test]
fn api_error_example_is_valid() {
    let town = Town::new();
    let example = examples(text_of("Errors"), "json");
    let mut example: Value = serde_json::from_str(&example).expect("the example is JSON");
    let answer = town.server.get("/pics/none.jpg");
    assert_eq!(answer.status, example["status"]);
    let mut answer = answer.json();
    for it in [&mut example, &mut answer] {
        let id = it["requestId"].take();
        assert_eq!(id.as_str().map(str::len), Some(16));
    }
    assert_eq!(answer, example);
}

#[test]
fn api_rate_limit_example_is_valid() {
    let town = Town::new();
    let folder = &town.folder;
    let key = town.variables.iter().find(|(name, _)| *name == "KEY").expect("a key").1.as_str();
    town.server.stop();
    folder.done(&["account", "edit", "me", "--plan", "Free"]);
    let server = folder.serve_with_env(&[]);
    let mut connection = server.connect().with_key(key);
    let refused = (0..200).find_map(|_| {
        let answer =
            connection.upload_file("/pics/a.txt?overwrite=true", "a", b"1").expect("it answers");
        (answer.status == 429).then_some(answer)
    });
    let refused = refused.expect("the plan Free has a rate");
    let digits = |text: &str| {
        let split: Vec<&str> = text.split(|it: char| it.is_ascii_digit()).collect();
        split.into_iter().filter(|part| !part.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    let example = examples(text_of("Rate limits"), "text");
    assert_eq!(example.lines().count(), 6);
    for line in example.lines() {
        let (name, value) = line.split_once(": ").expect("a line is a field");
        let there = refused.header(&name.to_ascii_lowercase());
        assert!(!there.is_empty(), "{name} is missing");
        assert_eq!(digits(there), digits(value), "{line}: {there}");
    }
}
