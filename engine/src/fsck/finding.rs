//! Findings: severity, location, affected objects and remedy.
//!
//! Guarantees: texts are readable without knowledge of the format; lists are bounded.
//! Non-goals: the checks and the repair.

use std::fmt;

use uuid::Uuid;

use crate::format::{SegmentClass, SegmentId};
use crate::limits;
use crate::name::{FactName, ObjectName};

/// Problem found by a check, with its location and remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Severity of the finding.
    pub severity: Severity,
    /// Path of the file, relative to the data folder.
    pub file: String,
    /// Offset in the file in bytes.
    pub offset: u64,
    /// Description: a sentence without the full stop at its end.
    pub what: String,
    /// Affected objects, as far as known: at most [`limits::FINDING_OBJECTS_MAX`].
    pub objects: Vec<ObjectName>,
    /// Number of further affected objects.
    pub objects_unlisted: u64,
    /// Recommended remedy.
    pub remedy: Remedy,
}

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// No live data is affected: traces of a crash, damage to dead records, or losses that were recorded before.
    Note,
    /// Damage that can be repaired without loss.
    Repairable,
    /// Live data is lost.
    Loss,
}

/// Remedy of a finding. A repair applies all of them except [`Remedy::None`] and [`Remedy::CopyToHealthyDisk`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Nothing can be done, or nothing is needed.
    None,
    /// Removes the index; the next open rebuilds it.
    RebuildIndex,
    /// Rewrites the header page from its intact copy.
    RewriteHeader {
        /// Id of the segment.
        segment: SegmentId,
        /// Class of the segment.
        class: SegmentClass,
    },
    /// Rewrites the footer from the groups.
    Reseal {
        /// Id of the segment.
        segment: SegmentId,
        /// Class of the segment.
        class: SegmentClass,
        /// End of its groups.
        end: u64,
    },
    /// Rewrites the STORE file from the segment headers.
    RewriteStoreFile {
        /// Id of the store.
        store: Uuid,
        /// Creation time of the first segment, in milliseconds since 1970.
        created_ms: u64,
    },
    /// Removes the orphaned file.
    RemoveOrphan,
    /// Marks these objects as lost: reads return a corruption error until they are overwritten or deleted. Each has the
    /// LSN of its record.
    MarkLost(Vec<(ObjectName, u64)>),
    /// Removes these objects, which the application regenerates when they are missing. Each has the LSN of its record.
    RemoveDerived(Vec<(ObjectName, u64)>),
    /// Puts these objects again, because their records are damaged but their contents are readable. Each has the LSN of
    /// its record.
    RewriteObjects(Vec<(ObjectName, u64)>),
    /// Puts these facts again with their values from the index.
    RewriteFacts(Vec<FactName>),
    /// Opens the store, which keeps the intact data and continues after the damage.
    SkipDamage,
    /// Asks the operator to copy the folder to a working disk. Nothing is marked as lost while the disk may become
    /// readable again.
    CopyToHealthyDisk,
}

impl Finding {
    /// Creates a finding without affected objects.
    pub(super) fn new(
        severity: Severity,
        file: impl Into<String>,
        offset: u64,
        what: impl Into<String>,
        remedy: Remedy,
    ) -> Self {
        let (file, what) = (file.into(), what.into());
        Self { severity, file, offset, what, objects: Vec::new(), objects_unlisted: 0, remedy }
    }

    /// Adds an affected object.
    pub(super) fn name(&mut self, object: ObjectName) {
        if self.objects.len() < limits::FINDING_OBJECTS_MAX {
            self.objects.push(object);
        } else {
            self.objects_unlisted += 1;
        }
    }
}

impl Severity {
    /// Returns the severity as one lowercase word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Repairable => "repairable",
            Self::Loss => "loss",
        }
    }
}

impl Remedy {
    /// Returns whether a repair can apply the remedy.
    pub(super) fn is_applicable(&self) -> bool {
        !matches!(self, Self::None | Self::CopyToHealthyDisk)
    }

    /// Returns the machine-readable name.
    pub fn word(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::RebuildIndex => "rebuild-index",
            Self::RewriteHeader { .. } => "rewrite-header",
            Self::Reseal { .. } => "reseal",
            Self::RewriteStoreFile { .. } => "rewrite-store-file",
            Self::RemoveOrphan => "remove-orphan",
            Self::MarkLost(_) => "mark-lost",
            Self::RemoveDerived(_) => "remove",
            Self::RewriteObjects(_) => "put-again",
            Self::RewriteFacts(_) => "rewrite-facts",
            Self::SkipDamage => "go-on",
            Self::CopyToHealthyDisk => "copy-to-sound-disk",
        }
    }
}

/// Describes the action, and what it loses.
impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "no repair is possible",
            Self::RebuildIndex => {
                "the index is deleted and rebuilt from the segments, which may take minutes; no \
                data is lost"
            }
            Self::RewriteHeader { .. } => {
                "the corrupt header copy is rewritten from the intact one; no data is lost"
            }
            Self::Reseal { .. } => {
                "the footer is rebuilt from the groups of the segment; no data is lost"
            }
            Self::RewriteStoreFile { .. } => {
                "STORE is rewritten with the id found in all segments; no data is lost"
            }
            Self::RemoveOrphan => "the file is deleted; nothing references it",
            Self::MarkLost(_) => {
                "the loss is recorded: each key answers \"damaged\" until it is put or deleted; \
                the content cannot be recovered, so restore it from a backup"
            }
            Self::RemoveDerived(_) => {
                "the objects are deleted; no data is lost, because they are regenerated on \
                request"
            }
            Self::RewriteObjects(_) => {
                "the objects are rewritten with the same content; only their modification times \
                are lost"
            }
            Self::RewriteFacts(_) => {
                "the server's records are rewritten from the index; no data is lost"
            }
            Self::SkipDamage => {
                "the store is opened, keeps what is whole and goes on behind the damage; what was written in that \
                 stretch stays lost, so put again what is missing"
            }
            Self::CopyToHealthyDisk => {
                "nothing is recorded as lost while the disk may read it again: copy the folder to a sound disk, with a \
                 tool that goes on behind bad sectors, and check the copy"
            }
        })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<10} {}", self.severity.word(), self.file)?;
        if self.offset > 0 {
            write!(f, " at {}", self.offset)?;
        }
        write!(f, ": {}", self.what)?;
        for object in self.objects.iter().take(OBJECTS_SHOWN_MAX) {
            write!(f, "\n             {object}")?;
        }
        let shown = self.objects.len().min(OBJECTS_SHOWN_MAX) as u64;
        let more = self.objects.len() as u64 - shown + self.objects_unlisted;
        if more > 0 {
            write!(f, "\n             and {more} more")?;
        }
        match &self.remedy {
            Remedy::None if self.severity == Severity::Note => Ok(()),
            remedy => write!(f, "\n           remedy: {remedy}"),
        }
    }
}

/// Number of affected objects shown in text output.
const OBJECTS_SHOWN_MAX: usize = 16;
