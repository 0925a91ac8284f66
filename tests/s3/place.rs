//! A server with the S3 gateway, keys that sign, and folders to compare.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;
use tests::commands::without_settings;
use tests::pypi::from_pypi;
use tests::{DataFolder, ServerProcess};

/// A server, and its signing keys.
pub(crate) struct Place {
    pub(crate) data: DataFolder,
    pub(crate) server: ServerProcess,
    pub(crate) keys: Keys,
}

/// Credentials of a client.
#[derive(Clone)]
pub(crate) struct Keys {
    pub(crate) id: String,
    pub(crate) secret: String,
}

impl Keys {
    /// Creates a new key of `ann`.
    pub(crate) fn make(data: &DataFolder, words: &[&str]) -> Self {
        let mut command = vec!["apikey", "create", "--account", "ann"];
        command.extend(words);
        Self::read(&data.json(&command)["s3"])
    }

    fn read(value: &Value) -> Self {
        let text = |name: &str| value[name].as_str().unwrap().to_owned();
        Self { id: text("accessKeyId"), secret: text("secretAccessKey") }
    }
}

impl Place {
    /// Creates a server with the private bucket `photos` of `ann`.
    pub(crate) fn new() -> Self {
        Self::with(&[])
    }

    /// Creates such a server with these settings in its environment.
    pub(crate) fn with(settings: &[(&str, &str)]) -> Self {
        let (data, _key) = DataFolder::with_bucket();
        data.done(&["bucket", "edit", "--name", "photos", "--access", "private"]);
        let keys = Keys::make(&data, &[]);
        // By default, aws-cli signs addresses for unknown servers in an older way.
        let config = "[default]\ns3 =\n    signature_version = s3v4\n";
        fs::create_dir(data.parent().join(".aws")).unwrap();
        fs::write(data.parent().join(".aws/config"), config).unwrap();
        let server = data.serve_with_env(&[&[("TRUG_PLAN_RATES", "false")], settings].concat());
        Self { data, server, keys }
    }

    pub(crate) fn address(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// Returns a path next to the data that does not exist yet.
    pub(crate) fn temp_path(&self, name: &str) -> PathBuf {
        self.data.parent().join(name)
    }
}

/// Builds a client command without the environment of the user who runs the tests.
pub(crate) fn client(program: &Path, keys: &Keys, home: &Path) -> Command {
    let mut command = without_settings(program);
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("AWS_")) {
            command.env_remove(name);
        }
    }
    command
        .env("HOME", home)
        .env("AWS_ACCESS_KEY_ID", &keys.id)
        .env("AWS_SECRET_ACCESS_KEY", &keys.secret)
        .env("AWS_DEFAULT_REGION", "us-east-1")
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .env("NO_PROXY", "*");
    command
}

/// Creates a folder of so many files, in folders, with realistic names.
pub(crate) fn make_files(folder: &Path, count: usize) {
    for at in 0..count {
        let inside = folder.join(format!("Album {}/tag {}", at % 7, at % 3));
        fs::create_dir_all(&inside).unwrap();
        let name = match at % 4 {
            0 => format!("{at}.jpg"),
            1 => format!("ä {at} (1)+&=.txt"),
            2 => format!("日本 {at}%20.bin"),
            _ => format!("~{at}'!$.tar.gz"),
        };
        fs::write(inside.join(name), bytes(at * 37 % 9_000, at as u8)).unwrap();
    }
}

/// Returns bytes without repetitions.
pub(crate) fn bytes(count: usize, seed: u8) -> Vec<u8> {
    let mut state = u64::from(seed) + 1;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..count).map(|_| next()).collect()
}

/// Returns all files below a folder, by their paths.
pub(crate) fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut found, mut waiting) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(next) = waiting.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else {
                found.insert(
                    path.strip_prefix(folder).unwrap().to_owned(),
                    fs::read(&path).unwrap(),
                );
            }
        }
    }
    found
}

/// Returns aws-cli, installed once.
pub(crate) fn aws() -> PathBuf {
    static AWS: OnceLock<PathBuf> = OnceLock::new();
    AWS.get_or_init(|| from_pypi("aws-cli", "awscli==1.45.11", ["aws", "--version"])).clone()
}
