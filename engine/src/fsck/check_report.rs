//! Report of a check: findings and totals.
//!
//! Non-goals: the checks.

use std::fmt;

use super::finding::{Finding, Severity};
use crate::limits;

/// Report of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Findings in the order of the checks, at most [`limits::FINDINGS_LISTED_MAX`]. Further ones are only counted.
    pub findings: Vec<Finding>,
    /// Number of unlisted findings by severity.
    unlisted: [u64; 3],
    /// Whether there is a usable index.
    pub(super) has_index: bool,
    /// Whether the check read all bodies.
    pub deep: bool,
    /// Number of checked segments.
    pub segments: u64,
    /// Number of existing objects.
    pub objects: u64,
    /// Number of objects that were marked as lost before: reads of them return a corruption error.
    pub known_losses: u64,
    /// Number of existing facts.
    pub facts: u64,
    /// Number of bytes read and verified.
    pub bytes: u64,
    /// Duration in milliseconds.
    pub took_ms: u64,
}

impl Report {
    /// Creates an empty report.
    pub(super) fn new(deep: bool) -> Self {
        Self { deep, ..Self::default() }
    }

    /// Adds a finding.
    pub(super) fn add(&mut self, finding: Finding) {
        if self.findings.len() < limits::FINDINGS_LISTED_MAX {
            self.findings.push(finding);
        } else {
            self.unlisted[finding.severity as usize] += 1;
        }
    }

    /// Adds the findings and totals of one segment.
    pub(super) fn append(&mut self, other: Self) {
        for finding in other.findings {
            self.add(finding);
        }
        for (all, more) in self.unlisted.iter_mut().zip(other.unlisted) {
            *all += more;
        }
        self.bytes += other.bytes;
    }

    /// Returns the number of findings of this severity, listed or not.
    pub fn count(&self, severity: Severity) -> u64 {
        let listed = self.findings.iter().filter(|finding| finding.severity == severity).count();
        listed as u64 + self.unlisted[severity as usize]
    }

    /// Returns the highest severity of all findings; `None` without findings.
    pub fn worst(&self) -> Option<Severity> {
        let all = [Severity::Loss, Severity::Repairable, Severity::Note];
        all.into_iter().find(|severity| self.count(*severity) > 0)
    }

    /// Returns whether no live data is affected.
    pub fn is_clean(&self) -> bool {
        self.worst() <= Some(Severity::Note)
    }

    /// Returns the throughput of the check in bytes per second.
    pub fn bytes_per_second(&self) -> u64 {
        self.bytes.saturating_mul(1_000) / self.took_ms.max(1)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            writeln!(f, "{finding}")?;
        }
        let unlisted: u64 = self.unlisted.iter().sum();
        if unlisted > 0 {
            writeln!(f, "and {unlisted} more findings")?;
        }
        writeln!(
            f,
            "checked {} segments with {} objects and {} facts: {} bytes in {}.{:03} s, {} MB/s{}",
            self.segments,
            self.objects,
            self.facts,
            self.bytes,
            self.took_ms / 1_000,
            self.took_ms % 1_000,
            self.bytes_per_second() / 1_000_000,
            if self.deep { "" } else { "; bodies were not read (--deep reads them)" },
        )?;
        match self.worst() {
            None => write!(f, "no problems found"),
            Some(Severity::Note) => write!(f, "no problems found that matter"),
            Some(_) => write!(
                f,
                "DAMAGE: {} with data loss, {} repairable",
                self.count(Severity::Loss),
                self.count(Severity::Repairable)
            ),
        }
    }
}
