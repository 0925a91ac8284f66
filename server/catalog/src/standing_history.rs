//! History of an account's standing: time, reason and author of each change.
//!
//! The standing itself is in the account's record; the history is a separate record, written in the same batch.
//! Non-goals: the reasons for a change.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::FairUseStanding;
use super::record::Record;
use crate::limits::STANDING_CHANGES_MAX;

/// Prefix of the fact names of these records.
pub(super) const PREFIX: &str = "standing/";

/// Changes of an account's standing, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StandingHistory {
    pub changes: Vec<StandingChange>,
}

/// Change of a standing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StandingChange {
    pub at_ms: u64,
    pub from: FairUseStanding,
    pub to: FairUseStanding,
    /// Sentence for the account's owner.
    pub reason: String,
    pub by: ChangedBy,
}

/// Originator of a standing change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangedBy {
    Sweep,
    Operator,
}

impl Record for StandingHistory {}

impl StandingHistory {
    /// Returns the change that led to the current standing.
    pub fn latest(&self) -> Option<&StandingChange> {
        self.changes.last()
    }

    /// Returns the history with one more change.
    pub(super) fn with(&self, change: StandingChange) -> Self {
        let kept = self.changes.len().saturating_sub(STANDING_CHANGES_MAX - 1);
        let changes = self.changes.iter().skip(kept).cloned().chain([change]).collect();
        Self { changes }
    }
}

impl ChangedBy {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sweep => "sweep",
            Self::Operator => "operator",
        }
    }
}

impl FairUseStanding {
    /// Returns the name of the standing, as in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Notified => "notified",
            Self::UpgradeRequested => "upgrade_requested",
            Self::Throttled => "throttled",
            Self::Suspended => "suspended",
        }
    }
}
