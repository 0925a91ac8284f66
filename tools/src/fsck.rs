//! `trug fsck`: checks a store that is not in use, and repairs it.
//!
//! Guarantees: without `--repair` no byte of the store changes. Non-goals: the checks.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::PathBuf;

use engine::fsck::{self, CheckOptions, Finding, RepairOptions, Report, Severity};
use engine::progress::WorkProgress;
use engine::{BucketName, Create, Environment, Error, OpenOptions};
use protocol::reserved_paths;
use serde::Serialize;

use crate::exit::{self, Exit, Failure};
use crate::management::UNDELETE_WINDOW_MS;
use crate::output;
use crate::progress::Bar;
use crate::remote_segments::{RemoteConfigArgs, RemoteSegments};

/// Check a store that is not in use, and repair it.
///
/// Reads and compares segment headers, footers, record headers and the index, without changes. Each finding has a
/// place, a severity (note, repairable, loss), the object that it affects, and a remedy. Notes are not damage: traces
/// of a crash, and losses that were recorded before.
#[derive(clap::Args)]
#[command(after_help = exit::help("trug fsck --data data --deep"))]
pub(crate) struct Args {
    /// Data folder.
    #[arg(long, value_name = "DIR", env = "TRUG_DATA", default_value = "data")]
    data: PathBuf,
    #[command(flatten)]
    remote: RemoteConfigArgs,
    /// Print the result as one JSON document.
    #[arg(long)]
    json: bool,
    /// Verify all content against its checksums and hashes too.
    #[arg(long)]
    deep: bool,
    /// Repair what can be repaired. Copy the data folder first. The exit code is 3 if data is lost.
    #[arg(long)]
    repair: bool,
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let remote = RemoteSegments::of_folder(&args.data, &args.remote)?;
    let surroundings = Environment {
        remote: remote.store.clone(),
        ..Environment::of_folder(&args.data, Create::Never)?
    };
    let bar = Bar::new();
    let watch = &mut |progress: WorkProgress| {
        bar.show(progress);
        ControlFlow::Continue(())
    };
    let derived_bucket = BucketName::parse(reserved_paths::VARIANTS).ok();
    let check = CheckOptions { deep: args.deep, derived_bucket, ..CheckOptions::default() };
    let done = match args.repair {
        false => fsck::check(&surroundings, check, watch).map(|report| Done {
            has_lost: !report.is_clean(),
            report,
            before: None,
            steps: Vec::new(),
        }),
        true => {
            let open = OpenOptions {
                retention_window_ms: UNDELETE_WINDOW_MS,
                ..OpenOptions::new(Create::Never)
            };
            let options = RepairOptions { check, open };
            let mut steps = Vec::new();
            let say = &mut |step: &str| steps.push(step.to_owned());
            fsck::repair(&surroundings, &options, watch, say).map(|repaired| Done {
                has_lost: repaired.has_lost(),
                report: repaired.after,
                before: Some(repaired.before),
                steps,
            })
        }
    };
    bar.remove();
    let done = done.map_err(|error| match error {
        Error::InUse(_) => {
            Failure::from(error).with_hint("stop the server first, or check a backup of the folder")
        }
        other => other.into(),
    })?;
    output::result(&if args.json { done.json()? } else { done.text() })?;
    match done.has_lost {
        false => Ok(()),
        true => Err(Failure::new(Exit::Damage, done.verdict())),
    }
}

/// Findings and repairs.
struct Done {
    report: Report,
    /// Findings before the repair.
    before: Option<Report>,
    steps: Vec<String>,
    has_lost: bool,
}

impl Done {
    fn text(&self) -> String {
        let mut text = String::new();
        if let Some(before) = &self.before {
            let _ = writeln!(text, "{}", format_report(before));
            for step in &self.steps {
                let _ = writeln!(text, "done: {}", output::plain(step));
            }
            if self.steps.is_empty() {
                text.push_str("nothing to repair\n");
                return text;
            }
            text.push_str("\nafter the repair:\n");
        }
        let _ = writeln!(text, "{}", format_report(&self.report));
        text
    }

    fn verdict(&self) -> String {
        match &self.before {
            None => "damage was found: copy the folder, then run with --repair".into(),
            Some(_) if self.report.is_clean() => {
                "the store is repaired; the losses above are recorded".into()
            }
            Some(_) => "not everything could be repaired; the damage above remains".into(),
        }
    }

    fn json(&self) -> Result<String, Failure> {
        let view = DoneView {
            clean: self.report.is_clean(),
            lost: self.has_lost,
            report: ReportView::of(&self.report),
            before: self.before.as_ref().map(ReportView::of),
            steps: &self.steps,
        };
        output::document(&view)
    }
}

/// Formats a report for a terminal, which names cannot control.
fn format_report(report: &Report) -> String {
    let text = report.to_string();
    text.lines().map(output::plain).collect::<Vec<_>>().join("\n")
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DoneView<'a> {
    clean: bool,
    lost: bool,
    report: ReportView<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<ReportView<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    steps: &'a [String],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReportView<'a> {
    deep: bool,
    loss_count: u64,
    repairable_count: u64,
    note_count: u64,
    segments: u64,
    objects: u64,
    lost_before: u64,
    facts: u64,
    bytes: u64,
    took_ms: u64,
    bytes_per_second: u64,
    findings: Vec<FindingView<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FindingView<'a> {
    severity: &'a str,
    file: &'a str,
    offset: u64,
    what: &'a str,
    objects: Vec<String>,
    objects_unlisted: u64,
    remedy: &'a str,
    remedy_does: String,
}

impl<'a> ReportView<'a> {
    fn of(report: &'a Report) -> Self {
        Self {
            deep: report.deep,
            loss_count: report.count(Severity::Loss),
            repairable_count: report.count(Severity::Repairable),
            note_count: report.count(Severity::Note),
            segments: report.segments,
            objects: report.objects,
            lost_before: report.known_losses,
            facts: report.facts,
            bytes: report.bytes,
            took_ms: report.took_ms,
            bytes_per_second: report.bytes_per_second(),
            findings: report.findings.iter().map(FindingView::of).collect(),
        }
    }
}

impl<'a> FindingView<'a> {
    fn of(finding: &'a Finding) -> Self {
        Self {
            severity: finding.severity.word(),
            file: &finding.file,
            offset: finding.offset,
            what: &finding.what,
            objects: finding.objects.iter().map(ToString::to_string).collect(),
            objects_unlisted: finding.objects_unlisted,
            remedy: finding.remedy.word(),
            remedy_does: finding.remedy.to_string(),
        }
    }
}
