//! Exit codes, and the mapping of failures to them.
//!
//! Non-goals: printing.

use std::fmt;
use std::process::ExitCode;

use catalog::CatalogError;
use jobs::archive::ImportReport;
use server::ServeError;
use server::control::ControlError;
use server::management::AdminResponse;
use service::config::ConfigError;

/// Exit codes as shown in every help text.
pub(crate) const CODES: &str =
    "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 damage found, 4 store is in use, 5 fenced";

/// Exit code of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Success.
    Done,
    /// Failure without a specific code.
    Failed,
    /// Invalid command line or configuration.
    WrongUsage,
    /// Corrupt data found.
    Damage,
    /// Store in use by another process that does not respond.
    InUse,
    /// Another process is the primary of the remote store, or the logs differ.
    Fenced,
}

/// Failure of a command.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    message: String,
}

/// Hint for a bucket that cannot be deleted because it contains files.
const FORCE_HINT: &str = "--force deletes them too";

/// Returns the end of a help text: an example, and the exit codes.
pub(crate) fn help(example: &str) -> String {
    format!("Example:\n  {example}\n\n{CODES}")
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::WrongUsage => 2,
            Exit::Damage => 3,
            Exit::InUse => 4,
            Exit::Fenced => 5,
        })
    }
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into() }
    }

    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, message)
    }

    pub(crate) fn wrong_usage(message: impl Into<String>) -> Self {
        Self::new(Exit::WrongUsage, message)
    }

    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    /// Appends a hint to the failure.
    pub(crate) fn with_hint(mut self, hint: &str) -> Self {
        self.message = format!("{}\n{hint}", self.message);
        self
    }
}

/// Returns an error if the reply reports damage or an incomplete result.
pub(crate) fn verdict(reply: &AdminResponse) -> Result<(), Failure> {
    match reply {
        AdminResponse::Exported(report) if report.damaged.count > 0 => {
            let count = report.damaged.count;
            let message = format!("{count} corrupt files are not in the export");
            Err(Failure::new(Exit::Damage, message))
        }
        AdminResponse::Exported(report) if report.not_written.count > 0 => {
            let count = report.not_written.count;
            Err(Failure::failed(format!("{count} files cannot be written to a folder")))
        }
        AdminResponse::Imported(ImportReport { stopped: Some(why), .. }) => {
            Err(Failure::failed(format!("the import ended early: {why}")))
        }
        AdminResponse::Imported(report) if report.refused.count > 0 => {
            Err(Failure::failed(format!("{} files were refused", report.refused.count)))
        }
        AdminResponse::History(history) if history.damage_count > 0 => {
            let count = history.damage_count;
            let message = format!("the log is corrupt in {count} places: versions may be missing");
            Err(Failure::new(Exit::Damage, message))
        }
        AdminResponse::Undeleted(undeleted) => match undeleted.refused.as_slice() {
            refused if refused.iter().any(|it| it.damaged) => {
                let count = refused.iter().filter(|it| it.damaged).count();
                Err(Failure::new(Exit::Damage, format!("{count} files are corrupt")))
            }
            [refused, ..] if undeleted.by_name => {
                Err(Failure::failed(format!("{} was not restored: {}", refused.path, refused.why)))
            }
            _ => Ok(()),
        },
        AdminResponse::WebhookTested(tested) if !tested.delivered => {
            Err(Failure::failed("the test was not delivered"))
        }
        AdminResponse::BackedUp(backed_up) if backed_up.damage_count > 0 => {
            let count = backed_up.damage_count;
            let message = format!("the store is corrupt in {count} places, and so is the backup");
            Err(Failure::new(Exit::Damage, message))
        }
        AdminResponse::Scrubbed(scrubbed) if scrubbed.damage.count > 0 => {
            let count = scrubbed.damage.count;
            let message = format!("{count} places are corrupt: run `trug fsck`");
            Err(Failure::new(Exit::Damage, message))
        }
        AdminResponse::Compacted(compacted) if !compacted.refused.is_empty() => {
            let count = compacted.refused.len();
            let message = format!("{count} segments are corrupt and were not compacted");
            Err(Failure::new(Exit::Damage, message))
        }
        AdminResponse::Compacted(compacted) if compacted.postponed => {
            let why = "replaced segments were not deleted: a backup uses them, or their deletion \
                failed";
            Err(Failure::failed(format!("incomplete: {why}; try again later")))
        }
        _ => Ok(()),
    }
}

fn exit_of_store(error: &engine::Error) -> Exit {
    match error {
        engine::Error::Corrupt(_) => Exit::Damage,
        engine::Error::InUse(_) => Exit::InUse,
        _ => Exit::Failed,
    }
}

impl From<engine::Error> for Failure {
    fn from(error: engine::Error) -> Self {
        Self::new(exit_of_store(&error), error.to_string())
    }
}

impl From<CatalogError> for Failure {
    fn from(error: CatalogError) -> Self {
        let exit = match &error {
            CatalogError::Store(error) => exit_of_store(error),
            CatalogError::CorruptRecord { .. } => Exit::Damage,
            _ => Exit::Failed,
        };
        let failure = Self::new(exit, error.to_string());
        match error {
            CatalogError::NotEmpty(..) | CatalogError::OwnsProperty { .. } => {
                failure.with_hint(FORCE_HINT)
            }
            _ => failure,
        }
    }
}

impl From<ControlError> for Failure {
    fn from(error: ControlError) -> Self {
        let exit = match &error {
            ControlError::NotRunning => Exit::InUse,
            ControlError::Refused { code, .. } if code == "damaged" => Exit::Damage,
            ControlError::Refused { .. }
            | ControlError::Disconnected(_)
            | ControlError::Stream(_) => Exit::Failed,
        };
        let failure = Self::new(exit, error.to_string());
        match error {
            ControlError::Refused { code, .. }
                if matches!(&*code, "bucket_not_empty" | "account_not_empty") =>
            {
                failure.with_hint(FORCE_HINT)
            }
            _ => failure,
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::wrong_usage(error.to_string())
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        let message = error.to_string();
        match error {
            ServeError::Catalog(error) => Self { message, ..Self::from(error) },
            ServeError::Close(error) => Self { message, ..Self::from(error) },
            ServeError::Listen(..) | ServeError::Control(..) | ServeError::Acme(..) => {
                Self::failed(message)
            }
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use jobs::archive::{ExportReport, TruncatedList};
    use server::ListenError;
    use server::management::{
        BackedUpView, CompactedView, DamageView, HistoryView, RefusedSegmentView,
        RefusedVersionView, ScrubbedView, UndeletedView,
    };

    use super::*;

    #[test]
    fn failures_map_to_documented_exit_codes() {
        let damage = engine::Error::Corrupt(engine::damage::Corruption {
            file: "log/0000000001.seg".into(),
            offset: 7,
            reason: engine::damage::Malformed::Checksum,
            object: None,
        });
        let refused =
            |code: &str| ControlError::Refused { message: "no".into(), code: code.into() };
        let error = io::Error::from(io::ErrorKind::AddrInUse);
        let address = "127.0.0.1:80".parse().unwrap();
        for (failure, exit) in [
            (Failure::from(damage.clone()), Exit::Damage),
            (Failure::from(CatalogError::Store(damage.clone())), Exit::Damage),
            (Failure::from(ServeError::Close(damage)), Exit::Damage),
            (Failure::from(engine::Error::InUse(Some(7))), Exit::InUse),
            (Failure::from(engine::Error::NoSpace), Exit::Failed),
            (Failure::from(engine::Error::Cancelled), Exit::Failed),
            (Failure::from(ControlError::cancelled()), Exit::Failed),
            (Failure::from(CatalogError::NotFound("it".into())), Exit::Failed),
            (Failure::from(refused("damaged")), Exit::Damage),
            (Failure::from(refused("not_found")), Exit::Failed),
            (Failure::from(ControlError::NotRunning), Exit::InUse),
            (Failure::from(ServeError::Listen(ListenError { address, error })), Exit::Failed),
        ] {
            assert_eq!(failure.exit(), exit, "{failure}");
        }
    }

    #[test]
    fn partial_result_is_a_failure_exit() {
        let none = TruncatedList::default();
        let some = TruncatedList { count: 1, listed: Vec::new() };
        let exported = |damaged: &TruncatedList, not_written: &TruncatedList| {
            let (damaged, not_written) = (damaged.clone(), not_written.clone());
            AdminResponse::Exported(ExportReport {
                damaged,
                not_written,
                ..ExportReport::default()
            })
        };
        let imported = |refused: &TruncatedList, skipped: &TruncatedList, stopped: Option<&str>| {
            let (refused, skipped) = (refused.clone(), skipped.clone());
            let stopped = stopped.map(str::to_owned);
            AdminResponse::Imported(ImportReport {
                refused,
                skipped,
                stopped,
                ..ImportReport::default()
            })
        };
        let undeleted = |damaged: &[bool], by_name| {
            let refused = damaged.iter().map(|damaged| RefusedVersionView {
                path: "a".to_owned(),
                why: "why".to_owned(),
                damaged: *damaged,
            });
            let refused = refused.collect();
            AdminResponse::Undeleted(UndeletedView { refused, by_name, ..UndeletedView::default() })
        };
        let scrubbed = |count| {
            let damage = DamageView { count, ..DamageView::default() };
            AdminResponse::Scrubbed(ScrubbedView { damage, ..ScrubbedView::default() })
        };
        let compacted = |refused_count| {
            let refused = RefusedSegmentView { id: 1, why: "why".to_owned() };
            let refused = vec![refused; refused_count];
            AdminResponse::Compacted(CompactedView { refused, ..CompactedView::default() })
        };
        for (reply, exit) in [
            (exported(&none, &none), Exit::Done),
            (exported(&some, &some), Exit::Damage),
            (exported(&none, &some), Exit::Failed),
            (imported(&none, &some, None), Exit::Done),
            (imported(&some, &none, None), Exit::Failed),
            (imported(&none, &none, Some("cut off")), Exit::Failed),
            (AdminResponse::History(HistoryView::default()), Exit::Done),
            (
                AdminResponse::History(HistoryView { damage_count: 1, ..HistoryView::default() }),
                Exit::Damage,
            ),
            (undeleted(&[], true), Exit::Done),
            (undeleted(&[false], false), Exit::Done),
            (undeleted(&[false], true), Exit::Failed),
            (undeleted(&[false, true], false), Exit::Damage),
            (AdminResponse::BackedUp(BackedUpView::default()), Exit::Done),
            (
                AdminResponse::BackedUp(BackedUpView {
                    damage_count: 1,
                    ..BackedUpView::default()
                }),
                Exit::Damage,
            ),
            (scrubbed(0), Exit::Done),
            (scrubbed(1), Exit::Damage),
            (compacted(0), Exit::Done),
            (compacted(1), Exit::Damage),
            (
                AdminResponse::Compacted(CompactedView {
                    postponed: true,
                    ..CompactedView::default()
                }),
                Exit::Failed,
            ),
        ] {
            let ended = verdict(&reply).map_or_else(|failure| failure.exit(), |()| Exit::Done);
            assert_eq!(ended, exit, "{reply:?}");
        }
    }
}
