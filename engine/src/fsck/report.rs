//! What a check came to.
//!
//! Never here: finding anything.

use std::fmt;

use super::finding::{Finding, Severity};
use crate::limits;

/// What a check came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What was found, at most [`limits::FINDINGS_LISTED_MAX`], in the order of the checks.
    pub findings: Vec<Finding>,
    /// How many findings of each severity there are beyond those listed.
    unlisted: [u64; 3],
    /// Whether there is an index that can be used.
    pub(super) has_index: bool,
    /// Whether bodies were read.
    pub deep: bool,
    /// Segments that were looked at.
    pub segments: u64,
    /// Objects that are there.
    pub objects: u64,
    /// Of these, objects whose loss was recorded before: their keys answer "damaged".
    pub lost_before: u64,
    /// Facts that are there.
    pub facts: u64,
    /// Bytes that were read and checked.
    pub bytes: u64,
    /// How long it took.
    pub took_ms: u64,
}

impl Report {
    /// Nothing found so far.
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

    /// Adds what was found in one more segment, and what was read of it.
    pub(super) fn append(&mut self, other: Self) {
        for finding in other.findings {
            self.add(finding);
        }
        for (all, more) in self.unlisted.iter_mut().zip(other.unlisted) {
            *all += more;
        }
        self.bytes += other.bytes;
    }

    /// How many findings of this severity there are.
    pub fn count(&self, severity: Severity) -> u64 {
        let listed = self.findings.iter().filter(|finding| finding.severity == severity).count();
        listed as u64 + self.unlisted[severity as usize]
    }

    /// How bad the worst finding is.
    pub fn worst(&self) -> Option<Severity> {
        let all = [Severity::Loss, Severity::Repairable, Severity::Note];
        all.into_iter().find(|severity| self.count(*severity) > 0)
    }

    /// Whether nothing that counts is wrong.
    pub fn is_clean(&self) -> bool {
        self.worst() <= Some(Severity::Note)
    }

    /// How fast bytes were checked.
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
