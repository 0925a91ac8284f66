//! JSON report of `trug import`.

use serde_json::Value;
use tests::Ran;

/// Parses the whole report.
pub(crate) fn report(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

/// Returns the counts of a report: new, unchanged, skipped, rejected.
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
