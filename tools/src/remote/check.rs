//! `trug remote check`: which properties a remote store has.
//!
//! Non-goals: how properties are observed, which the engine's probe decides.

use engine::clock::SystemClock;
use engine::remote::ProbeReport;
use engine::rng::{Rng, SystemRng};
use serde::Serialize;

use super::location::{LocationArgs, RemoteConnection};
use crate::exit::{self, Failure};
use crate::output;

/// Check whether a remote store has the properties that replication requires.
///
/// Creates, lists, reads and removes at most 16 small objects below probe/ in the remote store. The exit code is 1 if a
/// property is missing.
#[derive(clap::Args)]
#[command(after_help = exit::help(
    "trug remote check s3://pics/trug --endpoint https://rgw.example.com --credentials-file keys.txt"
))]
pub(crate) struct Args {
    #[command(flatten)]
    location: LocationArgs,
    /// Print the result as one JSON document.
    #[arg(long)]
    json: bool,
}

/// Result of a check in JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CheckView {
    url: String,
    creates_atomically: bool,
    lists_after_write: bool,
    reads_ranges: bool,
    reads_after_create: bool,
    clock_skew_ms: i64,
    create_ms: u64,
}

/// Clock difference that is reported as a problem, in milliseconds. S3 rejects requests at 15 minutes.
const CLOCK_SKEW_MS_MAX: u64 = 60_000;

pub(super) fn run(args: Args) -> Result<(), Failure> {
    let Args { location, json } = args;
    let RemoteConnection { store, location, .. } = &location.connect()?;
    let report = engine::remote::probe(store, &SystemClock::new(), SystemRng.uuid())
        .map_err(|error| Failure::failed(format!("{location} cannot be checked: {error}")))?;
    let view = CheckView::new(location.to_string(), &report);
    output::result(&if json { output::document(&view)? } else { view.text() })?;
    match view.missing_count() {
        0 => Ok(()),
        1 => Err(Failure::failed(format!("{location}: a required property is missing"))),
        count => {
            Err(Failure::failed(format!("{location}: {count} required properties are missing")))
        }
    }
}

impl CheckView {
    fn new(url: String, report: &ProbeReport) -> Self {
        Self {
            url,
            creates_atomically: report.creates_atomically,
            lists_after_write: report.lists_after_write,
            reads_ranges: report.reads_ranges,
            reads_after_create: report.reads_after_create,
            clock_skew_ms: report.clock_skew_ms,
            create_ms: report.create_ms,
        }
    }

    /// Returns each required property, and what its absence means.
    fn properties(&self) -> [(&'static str, bool, &'static str); 4] {
        [
            (
                "creates atomically",
                self.creates_atomically,
                "Two primaries cannot be detected: never let a standby take over by itself.",
            ),
            (
                "lists after write",
                self.lists_after_write,
                "A restore or a replica may miss the newest changes.",
            ),
            ("reads ranges", self.reads_ranges, "Files cannot be read in parts: do not use it."),
            (
                "reads after create",
                self.reads_after_create,
                "Replicas may wait for changes that are there.",
            ),
        ]
    }

    fn missing_count(&self) -> usize {
        self.properties().iter().filter(|(_, is_there, _)| !is_there).count()
    }

    fn text(&self) -> String {
        let mut text = format!("{}\n", self.url);
        for (name, is_there, meaning) in self.properties() {
            match is_there {
                true => text.push_str(&format!("  {name:<20}yes\n")),
                false => text.push_str(&format!("  {name:<20}no   {meaning}\n")),
            }
        }
        let seconds = self.clock_skew_ms as f64 / 1_000.0;
        let note = match self.clock_skew_ms.unsigned_abs() > CLOCK_SKEW_MS_MAX {
            true => "   Set the clock: stores reject requests at a difference of 15 minutes.",
            false => "",
        };
        text.push_str(&format!("  {:<20}{seconds:+.1} s{note}\n", "clock of the store"));
        text.push_str(&format!("  {:<20}{} ms\n", "create, median", self.create_ms));
        text
    }
}
