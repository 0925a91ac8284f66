//! Two runs of one seed are the same run: as many disk operations, and the same bytes in every file at the end.

use crate::random_runs::run;

#[test]
fn two_runs_of_a_seed_do_the_same_and_leave_the_same_bytes() {
    for seed in [1, 2, 3] {
        let (one, two) = (run(seed), run(seed));
        assert_eq!(one, two, "seed {seed}");
    }
    assert_ne!(run(1).map(|ran| ran.fingerprint), run(2).map(|ran| ran.fingerprint));
}
