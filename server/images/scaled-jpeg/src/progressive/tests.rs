//! Tests of coefficient blocks.

use super::*;

#[test]
fn zero_runs_are_counted_between_coefficients() {
    let (mut values, mut nonzero, places) = ([0; 4], 0b1011 << 2, [0; 64]);
    let block = Block { values: &mut values, nonzero: &mut nonzero, positions: &places };
    assert_eq!(block.after_zeros(1, 63, 0), 1);
    assert_eq!(block.after_zeros(1, 63, 1), 4);
    assert_eq!(block.after_zeros(2, 63, 0), 4);
    assert_eq!(block.after_zeros(2, 63, 1), 6);
    assert_eq!(block.after_zeros(1, 5, 2), 6, "behind the last");
    assert_eq!(block.after_zeros(60, 63, 15), 64);
    assert_eq!((band(0, 0), band(0, 63), band(63, 63)), (1, u64::MAX, 1 << 63));
}
