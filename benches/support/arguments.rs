//! Command-line options of benches, after `cargo bench -p benches --bench put --`.

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

/// Options of a bench.
pub struct Arguments {
    /// Fewer and shorter rounds: a smoke run whose numbers are not kept.
    pub quick: bool,
    words: Vec<String>,
}

impl Arguments {
    /// Runs a bench with the options of this process. An error is printed after the bench's name.
    pub fn run(name: &str, bench: impl FnOnce(&Self) -> Result<(), String>) -> ExitCode {
        match bench(&Self::read()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => {
                eprintln!("{name}: {why}");
                ExitCode::FAILURE
            }
        }
    }

    /// Reads the options of this process. Cargo's own `--bench` is left out.
    pub fn read() -> Self {
        let words: Vec<String> = env::args().skip(1).filter(|word| word != "--bench").collect();
        Self { quick: words.iter().any(|word| word == "--quick"), words }
    }

    /// Returns the word after `option`.
    pub fn value(&self, option: &str) -> Option<&str> {
        let at = self.words.iter().position(|word| word == option)?;
        self.words.get(at + 1).map(String::as_str)
    }

    /// Returns the number after `option`.
    ///
    /// # Panics
    ///
    /// When it is not a number.
    pub fn number(&self, option: &str) -> Option<u64> {
        let value = self.value(option)?;
        Some(value.replace('_', "").parse().unwrap_or_else(|_| panic!("{option} takes a number")))
    }

    /// Whether `word` is among the words.
    pub fn has(&self, word: &str) -> bool {
        self.words.iter().any(|found| found == word)
    }

    /// Returns the folder for data: that of `--data-folder`, else one next to the built benches, which is usually on a
    /// real disk.
    pub fn data_folder(&self) -> PathBuf {
        match self.value("--data-folder") {
            Some(path) => PathBuf::from(path),
            None => env::current_exe()
                .ok()
                .and_then(|path| path.parent().map(PathBuf::from))
                .unwrap_or_else(env::temp_dir),
        }
    }
}
