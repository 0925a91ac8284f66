//! Progress bar of long work on the terminal.
//!
//! Guarantees: nothing is shown if stderr is not a terminal, or before the first progress report; the bar is removed
//! when the work ends.
//! Non-goals: the work itself.

use engine::progress::WorkProgress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Progress bar.
pub(crate) struct Bar(ProgressBar);

const KNOWN: &str =
    "{elapsed_precise} [{bar:30}] {bytes}/{total_bytes} ({binary_bytes_per_sec}, {eta} left) {msg}";
const UNKNOWN: &str = "{elapsed_precise} {bytes} ({binary_bytes_per_sec}) {msg}";

impl Bar {
    pub(crate) fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_style(style(UNKNOWN));
        Self(bar)
    }

    pub(crate) fn show(&self, progress: WorkProgress) {
        let WorkProgress { done_bytes, total_bytes, done_items, total_items } = progress;
        if total_bytes > 0 && self.0.length() != Some(total_bytes) {
            self.0.set_style(style(KNOWN));
            self.0.set_length(total_bytes);
        }
        let items = match total_items {
            0 => done_items.to_string(),
            total => format!("{done_items} of {total}"),
        };
        self.0.set_message(items);
        self.0.set_position(done_bytes);
    }

    pub(crate) fn remove(&self) {
        self.0.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_templates_are_valid() {
        for template in [KNOWN, UNKNOWN] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
