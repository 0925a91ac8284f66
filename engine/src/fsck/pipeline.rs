//! Two-stage pipeline: one thread reads and decodes, the other compares.
//!
//! Guarantees: pieces arrive in order, and only a few are queued; a failure of either side ends the other.
//! Non-goals: the content of the pieces.

use std::sync::mpsc;
use std::thread;

use crate::error::{Error, Result};

/// Maximum number of queued pieces.
const QUEUED_CHUNKS_MAX: usize = 4;
/// Number of items per piece.
pub(super) const CHUNK_ITEMS: usize = 1_024;

/// Consumes the pieces produced by `make`, which runs on a separate thread if `workers` allows it.
pub(super) fn pipeline<T: Send>(
    workers: usize,
    make: impl FnOnce(&mut dyn FnMut(T) -> Result<()>) -> Result<()> + Send,
    mut take: impl FnMut(T) -> Result<()>,
) -> Result<()> {
    if workers < 2 {
        return make(&mut take);
    }
    thread::scope(|scope| {
        let (give, given) = mpsc::sync_channel(QUEUED_CHUNKS_MAX);
        let maker =
            scope.spawn(move || make(&mut |piece| give.send(piece).map_err(|_| Error::Cancelled)));
        for piece in given {
            take(piece)?;
        }
        maker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipeline_preserves_order() {
        for workers in [1, 2] {
            let mut taken = Vec::new();
            let made = pipeline(
                workers,
                |give| (0..100).try_for_each(give),
                |piece| {
                    taken.push(piece);
                    Ok(())
                },
            );
            assert!(made.is_ok());
            assert_eq!(taken, (0..100).collect::<Vec<_>>());
        }
    }

    #[test]
    fn pipeline_stops_when_either_side_fails() {
        for workers in [1, 2] {
            let refused = pipeline(workers, |give| (0..).try_for_each(give), |_| Err(Error::Busy));
            assert!(matches!(refused, Err(Error::Busy)));
            let mut taken = 0;
            let broken = pipeline(
                workers,
                |give| give(1).and(Err(Error::Closed)),
                |piece: u64| {
                    taken += piece;
                    Ok(())
                },
            );
            assert!(matches!(broken, Err(Error::Closed)));
            assert_eq!(taken, 1);
        }
    }
}
