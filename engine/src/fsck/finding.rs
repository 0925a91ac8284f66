//! What is wrong: where, how bad, whose, and what helps.
//!
//! Promises: sentences for people who do not know the format; lists are bounded.
//! Never here: how anything is found, or done.

use std::fmt;

use uuid::Uuid;

use crate::format::{SegmentClass, SegmentId};
use crate::limits;
use crate::name::{FactName, ObjectName};

/// Something that fsck has to say about a place in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The file, relative to the data folder.
    pub file: String,
    /// Where in it.
    pub offset: u64,
    /// What is wrong: a sentence without its full stop.
    pub what: String,
    /// Whose bytes they are, as far as that is known: at most [`limits::FINDING_OBJECTS_MAX`].
    pub objects: Vec<ObjectName>,
    /// How many further objects are concerned.
    pub objects_unlisted: u64,
    /// What helps.
    pub remedy: Remedy,
}

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing that counts is wrong: traces of a crash, damage to what nobody can ask for, what was given up before.
    Note,
    /// Something is wrong that can be made whole again.
    Repairable,
    /// Something is gone.
    Loss,
}

/// What helps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Nothing can be done here.
    None,
    /// Remove the index; opening the store makes a new one.
    RebuildIndex,
    /// Write the header page again from its good copy.
    RewriteHeader {
        /// The segment.
        segment: SegmentId,
        /// Its class.
        class: SegmentClass,
    },
    /// Write the footer again from the groups.
    Reseal {
        /// The segment.
        segment: SegmentId,
        /// Its class.
        class: SegmentClass,
        /// Where its groups end.
        end: u64,
    },
    /// Write STORE again, with what the segments say.
    RewriteStoreFile {
        /// The store's id.
        store: Uuid,
        /// When its first segment was made.
        created_ms: u64,
    },
    /// Remove the file.
    RemoveOrphan,
    /// Record that these objects, with the numbers of their records, are lost.
    MarkLost(Vec<(ObjectName, u64)>),
    /// Remove these objects, with the numbers of their records, which are made again when they are missing.
    Remove(Vec<(ObjectName, u64)>),
    /// Put these objects again, whose contents can still be read.
    PutAgain(Vec<(ObjectName, u64)>),
    /// Write these facts again from the index.
    RewriteFacts(Vec<FactName>),
    /// Open the store, which keeps what is whole and goes on behind the damage.
    GoOn,
    /// Copy the folder to a disk that reads. Nothing is given up while the first one may read again.
    CopyToSoundDisk,
}

impl Finding {
    /// A finding that names nobody.
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

    /// The same finding, about one more object.
    pub(super) fn name(&mut self, object: ObjectName) {
        if self.objects.len() < limits::FINDING_OBJECTS_MAX {
            self.objects.push(object);
        } else {
            self.objects_unlisted += 1;
        }
    }
}

impl Severity {
    /// One word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Repairable => "repairable",
            Self::Loss => "loss",
        }
    }
}

impl Remedy {
    /// Whether a repair can apply it.
    pub(super) fn is_applicable(&self) -> bool {
        !matches!(self, Self::None | Self::CopyToSoundDisk)
    }

    /// A name for programs.
    pub fn word(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::RebuildIndex => "rebuild-index",
            Self::RewriteHeader { .. } => "rewrite-header",
            Self::Reseal { .. } => "reseal",
            Self::RewriteStoreFile { .. } => "rewrite-store-file",
            Self::RemoveOrphan => "remove-orphan",
            Self::MarkLost(_) => "mark-lost",
            Self::Remove(_) => "remove",
            Self::PutAgain(_) => "put-again",
            Self::RewriteFacts(_) => "rewrite-facts",
            Self::GoOn => "go-on",
            Self::CopyToSoundDisk => "copy-to-sound-disk",
        }
    }
}

/// What it does, and what is lost by it.
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
                "the loss is recorded: each key answers \"damaged\" until it is put or deleted; what was stored \
                 there cannot be had any more, so restore it from a backup"
            }
            Self::Remove(_) => {
                "the objects are deleted; no data is lost, because they are regenerated on \
                request"
            }
            Self::PutAgain(_) => {
                "the objects are rewritten with the same content; only their modification times \
                are lost"
            }
            Self::RewriteFacts(_) => {
                "the server's records are rewritten from the index; no data is lost"
            }
            Self::GoOn => {
                "the store is opened, keeps what is whole and goes on behind the damage; what was written in that \
                 stretch stays lost, so put again what is missing"
            }
            Self::CopyToSoundDisk => {
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

/// Text shows this many of a finding's objects.
const OBJECTS_SHOWN_MAX: usize = 16;
