//! Compaction, asked for.

use super::Store;
use crate::compaction::{CompactionReport, CompactionRules, Selection, Throttle};
use crate::error::Result;
use crate::progress::Watch;
use std::ops::ControlFlow;
use std::sync::Arc;

impl Store {
    /// What a compaction by these rules would do.
    pub fn select_compaction(&self, rules: CompactionRules) -> Result<Selection> {
        self.0.compactor.select(rules)
    }

    /// Compacts by these rules, beside whatever else goes on: copies what is wanted of segments that are mostly dead,
    /// and gives their space back, and that of large objects that might have come back. At most so many bytes a second,
    /// if a limit is given, and fewer while commits suffer.
    ///
    /// Stopped by `watch`, it answers [`Error::Cancelled`](crate::Error::Cancelled); the steps until then are done.
    pub fn compact(
        &self,
        rules: CompactionRules,
        bytes_per_second_max: Option<u64>,
        watch: &mut Watch<'_>,
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

    /// Compacts as the store does by itself: what was deleted or replaced lately and is retained stays. For stores
    /// without threads.
    #[doc(hidden)]
    pub fn step_compaction(&self, rules: CompactionRules) -> Result<CompactionReport> {
        let (clock, load) = (Arc::clone(&self.0.clock), Arc::clone(&self.0.load));
        let throttle = Throttle::new(clock, load, None, std::thread::sleep);
        self.0.compactor.run_by_itself(rules, &throttle, &mut |_| ControlFlow::Continue(()))
    }
}
