//! Instructions of the server per request, compared with the accepted counts.
//!
//! The real server runs under callgrind (package `valgrind`), which counts the instructions of all its threads, and
//! answers the same requests over a socket each time. It is run twice, with three times as many requests in the second
//! run: the difference is the cost of the requests, without the start. Counts of two runs differ by less than a
//! hundredth as a rule; what exceeds the accepted count is counted again. Kernel work is not counted.
//!
//! `instructions [--accept] [PROGRAM]` compares with `benches/instructions/accepted.json`, or writes it. PROGRAM is by
//! default `trug` with the profile `profile.toml`, which is built first.

mod baseline;
mod scenarios;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;

use benches::folder;
use benches::table::{self, Table};
use tests::ServerProcess;
use tests::commands::without_settings;

use self::baseline::{Baseline, Verdict};
use self::scenarios::{Asker, BUCKET, SCENARIOS, Scenario};

/// Settings without rate limits that a run could reach.
const SETTINGS: [(&str, &str); 3] = [
    ("TRUG_PLAN_RATES", "false"),
    ("TRUG_IMAGE_MS_PER_SECOND_PER_ADDRESS", "0"),
    ("TRUG_IMAGE_MS_PER_SECOND_PER_BUCKET", "0"),
];

/// Number of further counts of a request that exceeds its accepted count.
const RECOUNTS_MAX: usize = 2;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let (mut accept, mut program) = (false, None);
    for word in words.by_ref() {
        match word.as_str() {
            "--accept" => accept = true,
            other => program = Some(PathBuf::from(other)),
        }
    }
    match program.map_or_else(build, Ok).and_then(|program| compare(&program, accept)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Builds `trug` as it is counted, in the folder of builds that has this program as `debug/examples/instructions`.
fn build() -> Result<PathBuf, String> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let folder = own.ancestors().nth(3).ok_or("this program is in no build folder")?;
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--workspace", "--bin", "trug"]);
    cargo.args(["--config", "benches/instructions/profile.toml"]).arg("--target-dir").arg(folder);
    let status = cargo.current_dir(repository).status();
    match status.map_err(|error| format!("cargo: {error}"))?.success() {
        true => Ok(folder.join("debug/trug")),
        false => Err("trug was not built".to_owned()),
    }
}

/// Counts all scenarios; returns whether all are within their bounds.
fn compare(program: &Path, accept: bool) -> Result<bool, String> {
    let compiler = baseline::compiler()?;
    let mut now = Baseline { compiler, instructions: count_all(program)? };
    if accept {
        now.write()?;
    }
    let before = Baseline::read()?;
    recount(program, &mut now, &before)?;
    let mut table = Table::new(&["request", "instructions", "accepted", "ratio", ""]);
    let mut all_hold = true;
    for (name, each) in &now.instructions {
        let verdict = before.verdict(name, *each, &now.compiler);
        all_hold &= verdict.holds();
        let (accepted, ratio) = match verdict.accepted() {
            Some(accepted) => (table::count(accepted as f64), *each as f64 / accepted as f64),
            None => ("-".to_owned(), f64::NAN),
        };
        let row = [name.clone(), table::count(*each as f64), accepted, table::figure(ratio)];
        table.row(row.into_iter().chain([verdict.to_string()]).collect());
    }
    table.print();
    if before.compiler != now.compiler {
        println!(
            "accepted with {}, counted with {}: {}",
            before.compiler,
            now.compiler,
            Verdict::WIDER
        );
    }
    Ok(all_hold)
}

/// Returns the instructions of each scenario, counted on all processors, since valgrind uses only one.
fn count_all(program: &Path) -> Result<BTreeMap<String, u64>, String> {
    let waiting = Mutex::new(SCENARIOS.iter());
    let next = || waiting.lock().ok()?.next();
    let count_some = || {
        let counted = std::iter::from_fn(next).map(|scenario| {
            let each = instructions_each(program, scenario)?;
            eprintln!("done: {}", scenario.name);
            Ok((scenario.name.to_owned(), each))
        });
        counted.collect::<Result<Vec<_>, String>>()
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..processors).map(|_| scope.spawn(count_some)).collect();
        let counted =
            threads.into_iter().map(|thread| thread.join().map_err(|_| "a count panicked")?);
        Ok(counted.collect::<Result<Vec<_>, String>>()?.into_iter().flatten().collect())
    })
}

/// Counts again what exceeds the accepted count, and takes the lowest count: an upload took up to 15 % more while other
/// programs used the processors.
fn recount(program: &Path, now: &mut Baseline, before: &Baseline) -> Result<(), String> {
    for scenario in SCENARIOS.iter().flat_map(|scenario| [scenario; RECOUNTS_MAX]) {
        let Some(count) = now.instructions.get_mut(scenario.name) else { continue };
        if matches!(before.verdict(scenario.name, *count, &now.compiler), Verdict::More(_)) {
            eprintln!("again: {}", scenario.name);
            *count = (*count).min(instructions_each(program, scenario)?);
        }
    }
    Ok(())
}

/// Returns the instructions of one request, from runs with so many and three times as many.
fn instructions_each(program: &Path, scenario: &Scenario) -> Result<u64, String> {
    let few = instructions(program, scenario, scenario.times)?;
    let many = instructions(program, scenario, 3 * scenario.times)?;
    Ok(many.saturating_sub(few) / (2 * scenario.times))
}

/// Returns the instructions of a whole run.
fn instructions(program: &Path, scenario: &Scenario, times: u64) -> Result<u64, String> {
    let folder = folder::make(&std::env::temp_dir()).map_err(|error| error.to_string())?;
    let (data, counts) = (folder.path().join("data"), folder.path().join("counts"));
    let command = |words: &[&str]| {
        let mut command = without_settings(program);
        command.envs(SETTINGS).args(words).arg("--data").arg(&data);
        command
    };
    printed(command(&["account", "create", "--role", "operator", "--name", BUCKET]))?;
    printed(command(&["bucket", "create", "--account", BUCKET, "--name", BUCKET]))?;
    let key = printed(command(&["apikey", "create", "--account", BUCKET]))?;
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    // Closing seals the segment, so that reads are from a sealed segment.
    let filling = ServerProcess::start(&mut command(&serve));
    (scenario.fill)(&mut Asker::new(&filling, &key))?;
    filling.stop();

    let mut under_valgrind = without_settings("valgrind");
    under_valgrind
        .envs(SETTINGS)
        .arg("--tool=callgrind")
        .arg(format!("--callgrind-out-file={}", counts.display()))
        .arg(program)
        .args(serve)
        .arg("--data")
        .arg(&data);
    let counted = ServerProcess::start(&mut under_valgrind);
    let mut asker = Asker::new(&counted, &key);
    for number in 0..times {
        (scenario.ask)(&mut asker, number).map_err(|why| {
            format!("{}, request {number}: {why}: {}", scenario.name, counted.log())
        })?;
    }
    counted.stop();
    let counts = std::fs::read_to_string(&counts).map_err(|error| error.to_string())?;
    let total = counts.lines().find_map(|line| line.strip_prefix("totals: "));
    total.and_then(|total| total.trim().parse().ok()).ok_or("callgrind wrote no total".to_owned())
}

fn printed(mut command: Command) -> Result<String, String> {
    let output = command.output().map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}
