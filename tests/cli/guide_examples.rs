//! Every example of the guides in `server/assets/docs/guides`, run by a shell with the real curl and trug, by Node with
//! the client that the server serves, and by Python, against a real server.
//!
//! Guarantees: a guide without its line in the table fails, as does an example that is neither run nor in the table
//! with a reason. Non-goals: the guide to S3 clients (`tests/s3/guide.rs`).

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use tests::DataFolder;
use tests::guides::{self, LANGUAGES, Reader};

const CAT: &[u8] = include_bytes!("../fixtures/jpeg/420.jpg");
/// Guide that is run with S3 clients.
const WITH_S3_CLIENTS: &str = "s3";
const BYTES_OF_FILM: usize = 9 << 20;

struct Guide {
    name: &'static str,
    /// Texts that the examples of each language print.
    printed: &'static [(&'static str, &'static [&'static str])],
    /// Files that the server has afterwards.
    stored: &'static [&'static str],
    /// Files that the examples write.
    written: &'static [&'static str],
    /// Languages that are not run, the number of examples, and why.
    not_run: &'static [(&'static str, usize, &'static str)],
}

const GUIDES: &[Guide] = &[
    Guide {
        name: "backup",
        printed: &[
            ("sh", &["\"deletedCount\":1", "\"state\":\"deleted\""]),
            ("js", &["/pics/2026/cat.jpg"]),
            ("python", &["/pics/2026/cat.jpg"]),
        ],
        stored: &["/pics/2026/cat.jpg"],
        written: &["2026.tar", "restored"],
        not_run: &[],
    },
    Guide {
        name: "browser-uploads",
        printed: &[
            ("sh", &["/api/presigned-url/", "/pics/avatars/cat.jpg", "image/*"]),
            ("js", &["/api/presigned-url/", "/pics/avatars/cat%20(1).jpg"]),
            ("python", &["/api/presigned-url/"]),
        ],
        stored: &["/pics/avatars/cat.jpg"],
        written: &[],
        not_run: &[("html", 1, "run in Chromium by tests/browser")],
    },
    Guide {
        name: "cdn",
        printed: &[
            ("sh", &["max-age=3600", "304\n"]),
            ("js", &["public, max-age=3600"]),
            ("python", &["public, max-age=3600"]),
        ],
        stored: &[],
        written: &[],
        not_run: &[],
    },
    Guide {
        name: "errors",
        printed: &[
            ("sh", &["404 file_not_found"]),
            ("js", &["404 file_not_found"]),
            ("python", &["404 file_not_found"]),
        ],
        stored: &[],
        written: &[],
        not_run: &[
            ("json", 1, "a reply; its original is in api_examples.rs"),
            ("text", 1, "headers; their original is in api_examples.rs"),
        ],
    },
    Guide {
        name: "file-requests",
        printed: &[
            ("sh", &["/-/s/", "\"uploadedFiles\":0", "\"entries\":[]"]),
            ("js", &["/-/s/"]),
            ("python", &["/-/s/"]),
        ],
        stored: &[],
        written: &[],
        not_run: &[],
    },
    Guide {
        name: "frameworks",
        printed: &[("js", &["cat.jpg?width=800&format=auto", "1600w"])],
        stored: &[],
        written: &[],
        not_run: &[("text", 1, "configuration of Nuxt, which is not installed")],
    },
    Guide {
        name: "integrations",
        printed: &[("sh", &["UploadMethods", "phone-pics", "Authorization"])],
        stored: &[],
        written: &["trug-pics.sxcu"],
        not_run: &[],
    },
    Guide {
        name: "metadata",
        printed: &[
            ("sh", &["\"by\":\"ann\"", "\"by\":\"bob\"", "\"id\":\"tmp\"", "\"file.upload\""]),
            ("js", &["/pics/described/cat%20(1).jpg", "x"]),
            ("python", &["image/jpeg", "[]\n", "file.upload described/cat.jpg 127.0.0.1"]),
        ],
        stored: &["/pics/described/cat.jpg"],
        written: &[],
        not_run: &[],
    },
    Guide {
        name: "migration",
        printed: &[("sh", &["importUrls"]), ("js", &["importUrls"]), ("python", &["importUrls"])],
        stored: &["/pics/a.jpg", "/pics/archive/photos/a.jpg"],
        written: &["pics.tar"],
        not_run: &[(
            "text",
            2,
            "sources on other machines; tests/s3/moving.rs and import_urls.rs run the same",
        )],
    },
    Guide {
        name: "private-files",
        printed: &[
            ("sh", &["/-/s/"]),
            ("js", &["/contracts/2026/contract.pdf?", "/-/s/", "/-/zip/"]),
            ("python", &["/contracts/2026/contract.pdf?", "/-/s/"]),
        ],
        stored: &[],
        written: &["contract-copy.pdf", "2026.zip"],
        not_run: &[],
    },
    Guide {
        name: "quick-start",
        printed: &[
            ("sh", &["/pics/2026/cat.jpg", "\"KeyCount\":1", "\"totalIsExact\""]),
            ("js", &["/pics/2026/cat%20(1).jpg", "2026/cat.jpg"]),
            ("python", &["/pics/2026/cat", "2026/cat.jpg"]),
        ],
        stored: &["/pics/2026/cat.jpg"],
        written: &["trug.mjs", "copy.jpg", "small.webp"],
        not_run: &[],
    },
    Guide {
        name: "resumable-uploads",
        printed: &[("js", &["100 %", "films/film.mp4"]), ("python", &["films/python.mp4"])],
        stored: &["/pics/film.mp4", "/pics/films/film.mp4", "/pics/films/python.mp4"],
        written: &[],
        not_run: &[],
    },
    Guide {
        name: "transforms",
        printed: &[
            ("js", &["cat.jpg?width=400", "1600w", "tom_thumb.webp"]),
            ("python", &["image/webp"]),
        ],
        stored: &["/pics/tom_thumb.webp"],
        written: &["400.jpg", "square.webp", "cat.avif", "tom_thumb.webp"],
        not_run: &[("html", 1, "its URLs are those of the example in front of it")],
    },
    Guide {
        name: "webhooks",
        printed: &[("sh", &["whsec_"]), ("js", &["whsec_"]), ("python", &["whsec_"])],
        stored: &[],
        written: &[],
        not_run: &[("json", 1, "a message; tests/api/webhooks compares it with the server's")],
    },
];

/// Folder of a reader, with the files of the guides and the client.
fn try_guide(guide: &Guide) {
    let data = DataFolder::new();
    data.done(&["account", "create", "me"]);
    data.done(&["bucket", "create", "pics", "--account", "me"]);
    let key = data.done(&["apikey", "create", "--account", "me"]).stdout;
    let key = key.trim_end();
    let server = data.serve();
    let mut connection = server.connect().with_key(key);
    let is_backup = guide.name == "backup";
    let stored =
        connection.upload_file(if is_backup { "/pics/2026/" } else { "/pics/" }, "cat.jpg", CAT);
    assert_eq!(stored.expect("it responds").status, 200);
    let folder = data.parent();
    let write = |name: &str, content: &[u8]| fs::write(folder.join(name), content).expect("a file");
    fs::create_dir_all(folder.join("photos")).expect("a folder");
    write("cat.jpg", CAT);
    write("photos/a.jpg", CAT);
    write("contract.pdf", b"%PDF-1.4\n");
    write("film.mp4", &vec![7; BYTES_OF_FILM]);
    write("trug.mjs", &server.get("/-/client.js").body);
    let reader = Reader {
        folder,
        server: format!("http://{}", server.address()),
        key,
        variables: vec![("TRUG_DATA", data.path().display().to_string())],
        python: PathBuf::from("python3"),
        expects_errors: guide.name == "errors",
    };
    let printed = reader.run(&guides::examples(guide.name));
    for (language, texts) in guide.printed {
        for text in *texts {
            let output = &printed[language];
            assert!(output.contains(text), "{}: {language} prints no {text}: {output}", guide.name);
        }
    }
    for path in guide.stored {
        assert_eq!(server.get(path).status, 200, "{}: {path}", guide.name);
    }
    for name in guide.written {
        assert!(folder.join(name).exists(), "{}: {name} is missing", guide.name);
    }
    if guide.name == "webhooks" {
        check_signatures(&reader);
    }
    server.stop();
}

/// Checks the functions of the webhook guide with signatures that are valid, old, and of another body.
fn check_signatures(reader: &Reader<'_>) {
    let body = r#"{"type":"ObjectCreated:Post"}"#;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_secs();
    for (time, signed_body, expected) in
        [(now, body, "true"), (now - 1_000, body, "false"), (now, "{}", "false")]
    {
        let (secret, signature) = guides::webhook_signature("evt_a", time, signed_body);
        let headers = format!(
            "{{\"webhook-id\": \"evt_a\", \"webhook-timestamp\": \"{time}\", \
             \"webhook-signature\": \"v1,bm90IHRoaXM= {signature}\"}}"
        );
        // Both functions are in the second example of their language.
        let js = format!(
            "import {{ isAuthentic }} from \"./example_1.mjs\";\n\
             console.log(isAuthentic(\"{secret}\", {headers}, Buffer.from('{body}')));\n"
        );
        let python = format!(
            "from example_1 import is_authentic\n\
             print(str(is_authentic(\"{secret}\", {headers}, b'{body}')).lower())\n"
        );
        for (program, name, code) in [("node", "check.mjs", js), ("python3", "check.py", python)] {
            fs::write(reader.folder.join(name), &code).expect("a file");
            let output = Command::new(program).arg(name).current_dir(reader.folder).output();
            let output = output.unwrap_or_else(|error| panic!("{program} is missing: {error}"));
            let errors = String::from_utf8_lossy(&output.stderr);
            let printed = String::from_utf8_lossy(&output.stdout);
            assert_eq!(printed.trim(), expected, "{program}:\n{code}\n{errors}");
        }
    }
}

#[test]
fn guide_examples_are_run_or_have_a_reason() {
    let known: Vec<&str> = GUIDES.iter().map(|guide| guide.name).collect();
    let names = guides::names();
    let names: Vec<&str> =
        names.iter().map(|name| &**name).filter(|it| *it != WITH_S3_CLIENTS).collect();
    assert_eq!(names, known, "each guide has its line in GUIDES, in alphabetical order");
    for guide in GUIDES {
        let examples = guides::examples(guide.name);
        let others = examples.iter().filter(|it| !LANGUAGES.contains(&&*it.language));
        let mut others: Vec<&str> = others.map(|it| &*it.language).collect();
        for (language, count, reason) in guide.not_run {
            let all = others.len();
            others.retain(|it| it != language);
            assert_eq!(all - others.len(), *count, "{}: {language} ({reason})", guide.name);
        }
        assert!(others.is_empty(), "{}: {others:?} are neither run nor in the table", guide.name);
    }
}

fn named(names: &[&str]) {
    for name in names {
        let guide = GUIDES.iter().find(|guide| guide.name == *name);
        try_guide(guide.unwrap_or_else(|| panic!("there is no {name}")));
    }
}

#[test]
fn guides_to_start_with_have_working_examples() {
    named(&["quick-start", "errors", "frameworks", "transforms"]);
}

#[test]
fn guides_to_uploads_have_working_examples() {
    named(&["browser-uploads", "resumable-uploads", "private-files", "file-requests"]);
}

#[test]
fn guides_to_connections_have_working_examples() {
    named(&["webhooks", "cdn", "integrations"]);
}

#[test]
fn guides_to_operation_have_working_examples() {
    named(&["migration", "backup", "metadata"]);
}
