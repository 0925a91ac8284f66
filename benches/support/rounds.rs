//! Interleaved rounds: each contestant once per round, in rotating order, so that noise affects all alike.

use std::time::{Duration, Instant};

use super::process;

/// Result of one round of one contestant.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// Operations per second.
    pub per_second: f64,
    /// CPU time of one operation, user and system, in microseconds.
    pub cpu_us: f64,
}

/// Runs `rounds` rounds; `run` gets the number of a contestant. Returns the samples by contestant, by round.
pub fn interleaved(
    rounds: usize,
    contestants: usize,
    mut run: impl FnMut(usize) -> Sample,
) -> Vec<Vec<Sample>> {
    let mut samples = vec![Vec::with_capacity(rounds); contestants];
    for round in 0..rounds {
        for turn in 0..contestants {
            let contestant = (turn + round) % contestants;
            samples[contestant].push(run(contestant));
        }
    }
    samples
}

/// Runs rounds as [`interleaved`] does, up to the first failure of a contestant.
///
/// # Errors
///
/// That failure.
pub fn try_interleaved(
    rounds: usize,
    contestants: usize,
    mut run: impl FnMut(usize) -> Result<Sample, String>,
) -> Result<Vec<Vec<Sample>>, String> {
    let mut failed = None;
    let samples = interleaved(rounds, contestants, |contestant| {
        if failed.is_some() {
            return Sample::default();
        }
        run(contestant).unwrap_or_else(|why| {
            failed = Some(why);
            Sample::default()
        })
    });
    failed.map_or(Ok(samples), Err)
}

/// Returns the median of some numbers; zero when there are none.
pub fn median(numbers: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = numbers.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// Returns the median of the rates.
pub fn rate(samples: &[Sample]) -> f64 {
    median(samples.iter().map(|sample| sample.per_second))
}

/// Returns the median of the CPU times.
pub fn cpu_us(samples: &[Sample]) -> f64 {
    median(samples.iter().map(|sample| sample.cpu_us))
}

/// Returns the median of the ratios of two contestants, round by round: neighbours in time share the noise.
pub fn ratio(ours: &[Sample], theirs: &[Sample]) -> f64 {
    median(ours.iter().zip(theirs).map(|(a, b)| a.per_second / b.per_second.max(f64::MIN_POSITIVE)))
}

/// Returns the smallest and the largest of those ratios.
pub fn spread(ours: &[Sample], theirs: &[Sample]) -> (f64, f64) {
    ours.iter()
        .zip(theirs)
        .map(|(a, b)| a.per_second / b.per_second.max(f64::MIN_POSITIVE))
        .fold((f64::MAX, 0.0), |(low, high), ratio| (low.min(ratio), high.max(ratio)))
}

/// Repeats `operation` on this thread for about `length`, after a short run that does not count.
pub fn repeat(length: Duration, mut operation: impl FnMut()) -> Sample {
    let warm = Instant::now();
    let mut chunk = 0_u64;
    while warm.elapsed() < length / 5 {
        operation();
        chunk += 1;
    }
    // The clock is read a few hundred times in all, whatever an operation costs.
    let chunk = (chunk / 50).max(1);
    let (started, cpu) = (Instant::now(), process::own_cpu());
    let mut done = 0_u64;
    while started.elapsed() < length {
        for _ in 0..chunk {
            operation();
        }
        done += chunk;
    }
    sample(done, started.elapsed(), process::own_cpu().saturating_sub(cpu))
}

/// Builds a sample of `done` operations.
pub fn sample(done: u64, elapsed: Duration, cpu: Duration) -> Sample {
    let count = done.max(1) as f64;
    Sample {
        per_second: done as f64 / elapsed.as_secs_f64(),
        cpu_us: cpu.as_secs_f64() * 1e6 / count,
    }
}
