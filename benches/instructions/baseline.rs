//! The accepted instruction counts, and the permitted deviation.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

/// Percent by which a count may exceed the accepted one.
const INCREASE_PERCENT_MAX: u64 = 5;
/// Percent by which a count may exceed the accepted one where another compiler built the program: the increase is then
/// usually due to the compiler.
const INCREASE_PERCENT_MAX_OTHER_COMPILER: u64 = 25;

/// Accepted counts, and the compiler of the counted program.
pub(crate) struct Baseline {
    pub(crate) compiler: String,
    /// Instructions of one request, by scenario.
    pub(crate) instructions: BTreeMap<String, u64>,
}

/// Result of comparing a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Holds(u64),
    /// Lower by enough that the new count should be accepted.
    Less(u64),
    More(u64),
    /// No accepted count exists.
    New,
}

impl Baseline {
    pub(crate) fn read() -> Result<Self, String> {
        let text = std::fs::read_to_string(file()).map_err(|error| error.to_string())?;
        let read: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let compiler = read["compiler"].as_str().ok_or("no compiler")?.to_owned();
        let counts = read["instructions"].as_object().ok_or("no instructions")?;
        let count = |(name, count): (&String, &Value)| {
            let count = count.as_u64().ok_or(format!("{name} is no count"))?;
            Ok((name.clone(), count))
        };
        let instructions = counts.iter().map(count).collect::<Result<_, String>>()?;
        Ok(Self { compiler, instructions })
    }

    pub(crate) fn write(&self) -> Result<(), String> {
        let value = json!({ "compiler": self.compiler, "instructions": self.instructions });
        std::fs::write(file(), format!("{value:#}\n")).map_err(|error| error.to_string())
    }

    pub(crate) fn verdict(&self, name: &str, count: u64, compiler: &str) -> Verdict {
        let Some(accepted) = self.instructions.get(name).copied() else { return Verdict::New };
        let more_max = if self.compiler == compiler {
            INCREASE_PERCENT_MAX
        } else {
            INCREASE_PERCENT_MAX_OTHER_COMPILER
        };
        match count * 100 {
            count if count > accepted * (100 + more_max) => Verdict::More(accepted),
            count if count < accepted * (100 - INCREASE_PERCENT_MAX) => Verdict::Less(accepted),
            _ => Verdict::Holds(accepted),
        }
    }
}

impl Verdict {
    /// Message where compilers differ.
    pub(crate) const WIDER: &str = "up to 25 % more is taken for the compiler's doing";

    pub(crate) fn holds(self) -> bool {
        matches!(self, Self::Holds(_) | Self::Less(_))
    }

    pub(crate) fn accepted(self) -> Option<u64> {
        match self {
            Self::Holds(accepted) | Self::Less(accepted) | Self::More(accepted) => Some(accepted),
            Self::New => None,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Holds(_) => "",
            Self::Less(_) => "less: --accept it",
            Self::More(_) => "MORE",
            Self::New => "NEW: --accept it",
        })
    }
}

/// Returns the version string of this machine's compiler.
pub(crate) fn compiler() -> Result<String, String> {
    let output = Command::new("rustc").arg("--version").output();
    let output = output.map_err(|error| format!("rustc: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("instructions/accepted.json")
}
