//! The store reader in Python, `tests/reader/read_store.py`, run on a folder as an independent second implementation.
//!
//! It needs `python3` of version 3.11 or later. Non-goals: the content of the folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use engine::disk::sim::SimDisk;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::commands::missing;
use crate::store::Contents;

/// Output of the reader for a store.
#[derive(Debug)]
pub struct ReaderOutput {
    pub code: i32,
    /// Objects by bucket and key.
    pub objects: BTreeMap<(String, String), Value>,
    pub stderr: String,
}

/// Path of the script, valid in any folder.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/reader/read_store.py");
const IS_NEW_ENOUGH: &str = "import sys; sys.exit(sys.version_info < (3, 11))";

/// Fails the test when Python is missing.
pub fn require_python() {
    static IS_THERE: LazyLock<bool> = LazyLock::new(|| {
        let asked = Command::new("python3").args(["-c", IS_NEW_ENOUGH]).status();
        asked.is_ok_and(|status| status.success())
    });
    if !*IS_THERE {
        missing("python3 of version 3.11 or later");
    }
}

/// Runs it on the folder of a store.
pub fn read_in_python(folder: &Path) -> ReaderOutput {
    let output = Command::new("python3").arg(SCRIPT).arg(folder).output().expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("it speaks UTF-8");
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    let objects = stdout.lines().map(|line| {
        let object: Value =
            serde_json::from_str(line).unwrap_or_else(|why| panic!("{line}: {why}"));
        let word = |name: &str| object[name].as_str().expect("objects have names").to_owned();
        ((word("bucket"), word("key")), object)
    });
    ReaderOutput { code: output.status.code().unwrap_or(-1), objects: objects.collect(), stderr }
}

/// Runs it on a copy of a simulated disk.
pub fn read_disk_in_python(disk: &SimDisk) -> ReaderOutput {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    for path in disk.paths() {
        let target = folder.path().join(&path);
        fs::create_dir_all(target.parent().expect("it is in the folder")).expect("a folder");
        fs::write(target, disk.bytes(&path)).expect("it can be written");
    }
    read_in_python(folder.path())
}

/// Returns the digest of a body as the reader writes it.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl ReaderOutput {
    /// Compares with what the engine reads: object by object, all that both know of each.
    pub fn must_be(&self, contents: &Contents) -> Result<(), String> {
        let mut remaining = self.objects.clone();
        for (name, seen) in &contents.objects {
            let key = (name.bucket.to_string(), name.key.as_str().to_owned());
            let Some(object) = remaining.remove(&key) else {
                return Err(format!("{name} is missing: {}", self.stderr));
            };
            let (content_type, attributes, created_ms, modified_ms, derived) = &seen.described;
            let attributes: String = attributes.iter().map(|byte| format!("{byte:02x}")).collect();
            for (field, wanted) in [
                ("bytes", Value::from(seen.body.len())),
                ("type", content_type.as_str().into()),
                ("attributes", attributes.into()),
                ("created_ms", (*created_ms).into()),
                ("modified_ms", (*modified_ms).into()),
                ("derived", (*derived).into()),
                ("lsn", seen.lsn.into()),
                ("sha256", sha256(&seen.body).into()),
            ] {
                if object[field] != wanted {
                    return Err(format!("{name}: {field} is {wanted}, not as in {object}"));
                }
            }
        }
        match remaining.keys().next() {
            Some(name) => Err(format!("{name:?} is there and should not be")),
            None => Ok(()),
        }
    }
}
