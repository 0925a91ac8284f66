//! What `trug import` reports, read from its JSON.

use serde_json::Value;
use tests::Ran;

/// The whole report.
pub(crate) fn report(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

/// The counts of a report: new, unchanged, skipped, refused.
pub(crate) fn counts(ran: &Ran) -> [u64; 4] {
    let report = report(ran);
    let count = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{ran:?}"));
    [
        count(&report["importedCount"]),
        count(&report["unchangedCount"]),
        count(&report["skipped"]["count"]),
        count(&report["refused"]["count"]),
    ]
}
