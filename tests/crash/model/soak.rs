//! The model test for any duration, on two threads: `TRUG_SOAK_SECONDS`, 60 by default, or `TRUG_SOAK_OPERATIONS`. The
//! seeds start at a random one, or at `TRUG_SEED`; those of failures are printed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use engine::rng::{Rng, SystemRng};

use super::tally::Tally;
use super::{play, wanted_seed};

/// Maximum number of failures before the soak stops.
const FAILURES_MAX: usize = 20;

/// Duration of the soak.
enum Budget {
    Until(Instant),
    Operations(u64),
}

impl Budget {
    fn of_environment() -> Self {
        let number = |name| std::env::var(name).ok().and_then(|number| number.parse().ok());
        match number("TRUG_SOAK_OPERATIONS") {
            Some(operations) => Self::Operations(operations),
            None => {
                let seconds = number("TRUG_SOAK_SECONDS").unwrap_or(60);
                Self::Until(Instant::now() + Duration::from_secs(seconds))
            }
        }
    }

    fn is_spent(&self, total: &Tally) -> bool {
        match self {
            Self::Until(end) => Instant::now() >= *end,
            Self::Operations(operations) => total.of("operations") >= *operations,
        }
    }
}

/// State shared by the threads.
struct Soak {
    budget: Budget,
    next_seed: AtomicU64,
    total: Mutex<Tally>,
    failures: Mutex<Vec<String>>,
}

impl Soak {
    fn go_on(&self) {
        loop {
            let is_over = self.failures.lock().unwrap().len() >= FAILURES_MAX
                || self.budget.is_spent(&self.total.lock().unwrap());
            if is_over {
                return;
            }
            let seed = self.next_seed.fetch_add(1, Ordering::Relaxed);
            let failure = match catch_unwind(AssertUnwindSafe(|| play(seed))) {
                Ok(Ok(tally)) => {
                    self.total.lock().unwrap().add(&tally);
                    continue;
                }
                Ok(Err(what)) => what,
                Err(_) => format!("seed {seed}: panicked"),
            };
            println!("{failure}");
            self.failures.lock().unwrap().push(failure);
        }
    }
}

#[test]
#[ignore = "takes as long as one likes"]
fn soak() {
    let first_seed = wanted_seed().unwrap_or_else(|| SystemRng.next_u64() >> 24);
    let soak = Soak {
        budget: Budget::of_environment(),
        next_seed: AtomicU64::new(first_seed),
        total: Mutex::default(),
        failures: Mutex::default(),
    };
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| soak.go_on());
        }
    });
    let seeds = soak.next_seed.into_inner() - first_seed;
    let total = soak.total.into_inner().unwrap();
    println!("{seeds} seeds from {first_seed} on, {:?}\n{total}", begun.elapsed());
    let failures = soak.failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}
