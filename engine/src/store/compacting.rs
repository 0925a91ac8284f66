//! Compaction API of the store.

use super::Store;
use crate::compaction::{CompactionPlan, CompactionReport, CompactionRules, Throttle};
use crate::error::Result;
use crate::progress::ProgressCallback;
use std::ops::ControlFlow;
use std::sync::Arc;

impl Store {
    /// Returns the steps that a compaction by these rules would execute now. Changes nothing.
    pub fn select_compaction(&self, rules: CompactionRules) -> Result<CompactionPlan> {
        self.0.compactor.plan(rules)
    }

    /// Compacts the store by these rules while it is in use: copies the live records of segments with many dead bytes,
    /// removes these segments, and releases retained large objects. Waits for the disk.
    ///
    /// Copies at most `bytes_per_second_max` bytes per second, and fewer while commits are slower than usual; `None`:
    /// no limit. Fails with [`Error::Cancelled`](crate::Error::Cancelled) if `watch` stops it; completed steps remain.
    pub fn compact(
        &self,
        rules: CompactionRules,
        bytes_per_second_max: Option<u64>,
        watch: &mut ProgressCallback<'_>,
    ) -> Result<CompactionReport> {
        self.0.health.require_writable()?;
        let throttle = Throttle::new(
            Arc::clone(&self.0.clock),
            Arc::clone(&self.0.load),
            bytes_per_second_max,
            std::thread::sleep,
        );
        self.0.compactor.run(rules, &throttle, watch)
    }

    /// Performs a background compaction, which does not release retained objects. For stores without threads.
    #[doc(hidden)]
    pub fn step_compaction(&self, rules: CompactionRules) -> Result<CompactionReport> {
        let (clock, load) = (Arc::clone(&self.0.clock), Arc::clone(&self.0.load));
        let throttle = Throttle::new(clock, load, None, std::thread::sleep);
        self.0.compactor.run_in_background(rules, &throttle, &mut |_| ControlFlow::Continue(()))
    }
}
