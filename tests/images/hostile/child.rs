//! A child process that renders a file and reports the outcome.
//!
//! It is this same program, restricted to one test. Memory is the peak resident size less the size before, so it
//! includes code pages loaded on demand.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use images::{
    Error, Format, OutputFormat, PlanOutcome, TransformOptions, plan, read_source, render,
};
use rustix::process::{Resource, Rlimit, setrlimit};
use tempfile::TempDir;

const NAME: &str = "hostile::child::child_process_reports_decode_resource_usage";
/// Environment variables with the work of the process, and its file.
const WORK: &str = "TRUG_TEST_RENDERS";
const FILE: &str = "TRUG_TEST_FILE";

/// Address space limit: the allocator ends a process that exceeds it, which protects the machine.
const ADDRESS_BYTES_MAX: u64 = 2 << 30;
const CUT_BYTES: usize = 1_024;
/// Number of bytes at the start of a file that are changed, one by one.
const CHANGED_BYTES: usize = 512;

/// Files derived from a file for rendering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Files {
    /// The file itself.
    Itself,
    /// The file truncated at each KiB.
    Cut,
    /// The file with one byte changed, for each byte of its start, in three ways.
    Changed,
}

/// Outcome of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A picture was rendered.
    Rendered,
    /// The stored file was to be delivered unchanged.
    AsStored,
    /// A limit was exceeded; the text names it.
    Large(String),
    /// The file was reported as damaged.
    Corrupt,
}

/// Report of a process.
#[derive(Clone, Debug)]
pub(super) struct ChildReport {
    pub(super) outcomes: Vec<Outcome>,
    /// Reasons why files are damaged.
    pub(super) whys: Vec<String>,
    /// Peak memory in bytes.
    pub(super) peak_bytes: u64,
    /// Largest memory estimate in bytes.
    pub(super) planned_bytes: u64,
}

/// Renders a file, or those derived from it, in a separate process.
pub(super) fn render_apart(file: &Path, files: Files, wish: &TransformOptions) -> ChildReport {
    let work = format!("{files:?} {}", words(wish));
    let child = Command::new(env::current_exe().unwrap())
        .args(["--exact", NAME, "--nocapture"])
        .env(WORK, &work)
        .env(FILE, file)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    let cried = String::from_utf8_lossy(&child.stderr);
    let what = format!("{} {work}: {}: {said}{cried}", file.display(), child.status);
    assert!(child.status.success(), "{what}");
    let words_after = |name: &str| {
        let lines = said.lines().filter_map(move |line| line.split_once(name));
        lines.map(|(_, words)| words.trim().to_owned()).collect::<Vec<_>>()
    };
    let number = |name| words_after(name).first().and_then(|word| word.parse().ok());
    let outcomes = words_after("outcome:").into_iter().map(|word| match word.split_once(' ') {
        None if word == "made" => Outcome::Rendered,
        None if word == "stored" => Outcome::AsStored,
        None if word == "broken" => Outcome::Corrupt,
        Some(("large", bound)) => Outcome::Large(bound.to_owned()),
        _ => panic!("{word}: {what}"),
    });
    ChildReport {
        outcomes: outcomes.collect(),
        whys: words_after("because:"),
        peak_bytes: number("peak:").expect(&what),
        planned_bytes: number("planned:").expect(&what),
    }
}

fn words(wish: &TransformOptions) -> String {
    let OutputFormat::Format(format) = wish.format else { panic!("a format is wanted") };
    format!("{} {}", format.extension(), wish.width.unwrap_or(0))
}

#[test]
fn child_process_reports_decode_resource_usage() {
    if let (Ok(work), Some(file)) = (env::var(WORK), env::var_os(FILE)) {
        return work_as_child(&work, Path::new(&file));
    }
    // 27 million bytes of pixels, made into a picture of the same size.
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("large.png");
    image::RgbImage::new(3_000, 3_000).save(&file).unwrap();
    for (wish, least) in
        [(to(Format::Jpeg, None), 27_000_000), (to(Format::Png, Some(8)), 26_000_000)]
    {
        let report = render_apart(&file, Files::Itself, &wish);
        assert_eq!(report.outcomes, [Outcome::Rendered]);
        assert!((least..report.planned_bytes).contains(&report.peak_bytes), "{report:?}");
    }
    let report = render_apart(&file, Files::Cut, &to(Format::Jpeg, Some(8)));
    assert_eq!(report.outcomes.len(), fs::metadata(&file).unwrap().len().div_ceil(1_024) as usize);
    let report = render_apart(&file, Files::Changed, &to(Format::Gif, Some(8)));
    assert!(report.outcomes.contains(&Outcome::Corrupt), "{report:?}");
}

/// Returns transform options with a format and a width.
pub(super) fn to(format: Format, width: Option<u32>) -> TransformOptions {
    TransformOptions { format: OutputFormat::Format(format), width, ..TransformOptions::default() }
}

fn work_as_child(work: &str, file: &Path) {
    let limit = Rlimit { current: Some(ADDRESS_BYTES_MAX), maximum: Some(ADDRESS_BYTES_MAX) };
    setrlimit(Resource::As, limit).unwrap();
    let words: Vec<&str> = work.split(' ').collect();
    let [files, format, width] = words[..] else { panic!("{work}") };
    let width = width.parse().unwrap();
    let wish = to(Format::from_name(format).unwrap(), (width > 0).then_some(width));
    let whole = fs::read(file).unwrap();
    let before = resident_bytes("VmRSS:");
    let mut planned = 0;
    let mut try_one = |bytes: &[u8]| {
        let (outcome, why, bytes) = outcome(bytes, &wish);
        planned = planned.max(bytes);
        println!("\noutcome: {outcome}");
        if let Some(why) = why {
            println!("because: {why}");
        }
    };
    match files {
        "Itself" => try_one(&whole),
        "Cut" => (0..whole.len()).step_by(CUT_BYTES).for_each(|end| try_one(&whole[..end])),
        _ => {
            for at in 0..whole.len().min(CHANGED_BYTES) {
                for value in [0, 0xff, whole[at] ^ 1] {
                    let mut changed = whole.clone();
                    changed[at] = value;
                    try_one(&changed);
                }
            }
        }
    }
    println!("planned: {planned}\npeak: {}", resident_bytes("VmHWM:").saturating_sub(before));
}

/// Returns the outcome of a file in a word, why it is damaged, and the planned memory.
fn outcome(file: &[u8], wish: &TransformOptions) -> (String, Option<String>, u64) {
    let mut planned = 0;
    let mut made = || -> Result<bool, Error> {
        let format =
            Format::detect(file).ok_or_else(|| Error::Undecodable("no picture".to_owned()))?;
        let source = read_source(format, file)?;
        let PlanOutcome::Transform(plan) = plan(&source, wish)? else { return Ok(false) };
        planned = plan.memory_bytes(&source);
        let made = render(file, &source, &plan, &|| false)?;
        assert_eq!(read_source(plan.format, &made)?.oriented_size(), plan.sides, "{plan:?}");
        Ok(true)
    };
    let (word, why) = match made() {
        Ok(true) => ("made".to_owned(), None),
        Ok(false) => ("stored".to_owned(), None),
        Err(Error::TooLarge(bound)) => (format!("large {}", bound.as_str()), None),
        Err(Error::Undecodable(why)) => ("broken".to_owned(), Some(why)),
        Err(error @ (Error::Cancelled | Error::Failed(_))) => panic!("{error}"),
    };
    (word, why, planned)
}

/// Returns a line of `status` in proc(5) of this process in bytes.
fn resident_bytes(line: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|found| found.strip_prefix(line)).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1_024
}
