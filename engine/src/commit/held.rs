//! Answers that are held until the disk is at work again.
//!
//! Whoever is answered comes back with a body, and taking that in keeps a processor busy. Told at once, they all would
//! take them from the next group, which waits to be written; the disk would rest meanwhile, and the processors while it
//! works. So the answers of a long group wait until the next one, if there is one, is on its way.
//!
//! Promises: told in order, once. Never here: for how long.

use super::batch::Committed;
use super::queue::Answer;
use crate::error::Result;

/// How batches ended, and whom to tell.
#[derive(Default)]
pub(super) struct HeldAnswers(Vec<(Result<Committed>, Answer)>);

impl HeldAnswers {
    /// Adds more.
    pub(super) fn hold(&mut self, outcomes: impl IntoIterator<Item = (Result<Committed>, Answer)>) {
        self.0.extend(outcomes);
    }

    /// Tells all of them.
    pub(super) fn tell(&mut self) {
        for (outcome, answer) in self.0.drain(..) {
            answer(outcome);
        }
    }
}
