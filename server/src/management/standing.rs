//! Account standings and fair-use sweeps, as replies.
//!
//! Non-goals: changes of a standing.

use catalog::{AccountId, Catalog, ChangedBy, FairUseStanding, StandingChange};
use jobs::fair_use::{FairUseStep, SweepReport};
use protocol::time_format::iso_time;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Standing change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StandingChangeView {
    pub at: String,
    pub from: FairUseStanding,
    pub to: FairUseStanding,
    pub reason: String,
    pub by: ChangedBy,
}

/// Result of a fair-use sweep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SweepReportView {
    /// Number of accounts on the plan Free.
    pub account_count: u64,
    /// Number of accounts that exceed fair use, whether or not a step was due.
    pub violation_count: u64,
    pub steps: Vec<StandingStepView>,
}

/// Standing change made by a fair-use sweep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StandingStepView {
    pub account: String,
    pub name: String,
    pub from: FairUseStanding,
    pub to: FairUseStanding,
    pub reason: String,
}

/// Returns the history of an account's standing.
pub fn standing_changes(catalog: &Catalog, account: &AccountId) -> Vec<StandingChangeView> {
    let history = catalog.accounts().standing_history(account).unwrap_or_default();
    let view = |change: &StandingChange| StandingChangeView {
        at: iso_time(change.at_ms),
        from: change.from,
        to: change.to,
        reason: change.reason.clone(),
        by: change.by,
    };
    history.changes.iter().map(view).collect()
}

/// Converts the result of a sweep.
pub fn swept_view(swept: SweepReport) -> SweepReportView {
    let view = |FairUseStep { account, name, from, to, reason }| StandingStepView {
        account: account.to_string(),
        name,
        from,
        to,
        reason,
    };
    let SweepReport { account_count, violation_count, steps } = swept;
    SweepReportView { account_count, violation_count, steps: steps.into_iter().map(view).collect() }
}
