//! Atomic batch of operations with preconditions.
//!
//! Guarantees: a batch is atomic, also across crashes. Its preconditions are checked against everything committed
//! before it, so two batches that put the same key and require it to be absent cannot both succeed.
//! Non-goals: choosing names for uploads, tokens and thumbnails, which callers build from batches.

use std::fmt;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::format::{FRAME_HEADER_BYTES, HEAD_BYTES_MAX, SegmentId, SegmentUsage};
use crate::index::{Object, RelocatedRecord};
use crate::limits;
use crate::name::{FactName, ObjectName};
use crate::upload::StagedBody;

/// ETag of a body, a strong validator: the first 16 bytes of its BLAKE3 hash. Displayed as 32 lowercase hexadecimal
/// digits without quotes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Etag([u8; 16]);

/// Operations that are committed atomically if all preconditions hold.
///
/// At most [`limits::BATCH_RECORDS_MAX`] operations and [`limits::BATCH_BYTES_MAX`] bytes in the log. Operations apply
/// in the order in which they were added.
#[derive(Clone, Default)]
pub struct Batch {
    pub(crate) operations: Vec<Operation>,
    pub(crate) preconditions: Vec<Precondition>,
}

/// Condition that must hold when a batch is committed. Operations of the same batch do not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// No object has this name.
    KeyAbsent(ObjectName),
    /// An object has this name.
    KeyPresent(ObjectName),
    /// The object of this name exists and has this ETag.
    KeyHasEtag(ObjectName, Etag),
    /// The object of this name exists and is the version with this LSN. Unlike an ETag, an LSN changes when the same
    /// content is put again.
    KeyHasLsn(ObjectName, u64),
    /// No object has this name, or the object is derived and has exactly these attributes.
    KeyAbsentOrDerived(ObjectName, Vec<u8>),
    /// The fact does not exist.
    FactAbsent(FactName),
    /// The fact exists.
    FactPresent(FactName),
}

/// Options of a put.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PutOptions {
    /// Content type, at most [`limits::CONTENT_TYPE_BYTES_MAX`] bytes.
    pub content_type: String,
    /// Opaque bytes of the caller, at most [`limits::ATTRIBUTES_BYTES_MAX`] bytes.
    pub attributes: Vec<u8>,
    /// Whether the object is derived: it can be regenerated from another object. Derived objects are counted separately
    /// in [`Usage`](crate::Usage) and are not retained for undelete.
    pub derived: bool,
    /// Creation time of an imported or restored object, in milliseconds since 1970; a later time than now is replaced
    /// by now. `None`: the creation time of the object that is overwritten, or now.
    pub created_ms: Option<u64>,
}

/// Effect of a batch on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectChange {
    /// Put of an object.
    Put,
    /// Deletion, if the object exists.
    Delete,
}

/// Result of a committed batch.
#[derive(Clone, Debug, Default)]
pub struct CommitInfo {
    /// Objects that the batch put, in the order of its operations.
    pub objects: Vec<Object>,
    /// Number of objects that [`Batch::delete`] deleted; those of [`Batch::delete_derived`] do not count.
    pub deleted_count: usize,
    /// LSN up to which the log is durable with the batch; 0 if it wrote no records.
    pub(crate) last_lsn: u64,
    /// Whether the index no longer refers to the inputs of a compaction.
    pub(crate) inputs_are_free: bool,
}

#[derive(Clone)]
pub(crate) enum Operation {
    Put {
        name: ObjectName,
        staged: StagedBody,
        options: PutOptions,
    },
    Delete {
        name: ObjectName,
    },
    DeleteDerived {
        name: ObjectName,
        attributes: Vec<u8>,
    },
    PutFact {
        name: FactName,
        value: Bytes,
    },
    DeleteFact {
        name: FactName,
    },
    /// Marks the object with this record as lost to corruption.
    MarkLost {
        name: ObjectName,
        lsn: u64,
    },
    /// Commit point of a compaction.
    CommitCompaction {
        outputs: Vec<(SegmentId, SegmentUsage)>,
        inputs: Vec<SegmentId>,
    },
    /// Makes the index refer to some copies of a committed compaction. Only operation of its batch, not logged.
    Repoint {
        moved: Vec<RelocatedRecord>,
    },
    /// Ends the repointing of a compaction. Only operation of its batch, not logged.
    Repointed {
        inputs: Vec<SegmentId>,
    },
    /// Records punched holes in dead bodies.
    RecordHolePunch {
        segment: SegmentId,
        bytes: u64,
    },
}

impl Batch {
    /// Creates an empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts an object, and replaces an existing object of this name. The batch is rejected with [`Error::TooLarge`] if
    /// the body was committed before.
    pub fn put(mut self, name: ObjectName, staged: StagedBody, options: PutOptions) -> Self {
        self.operations.push(Operation::Put { name, staged, options });
        self
    }

    /// Deletes an object. A missing object is not an error; require [`Precondition::KeyPresent`] if it must exist.
    pub fn delete(mut self, name: ObjectName) -> Self {
        self.operations.push(Operation::Delete { name });
        self
    }

    /// Deletes an object if it is derived and has exactly these attributes when the batch is committed. Objects that
    /// the same batch puts are not deleted.
    pub fn delete_derived(mut self, name: ObjectName, attributes: Vec<u8>) -> Self {
        self.operations.push(Operation::DeleteDerived { name, attributes });
        self
    }

    /// Puts a fact, and replaces its previous value. At most [`limits::FACT_BYTES_MAX`] bytes.
    pub fn put_fact(mut self, name: FactName, value: Bytes) -> Self {
        self.operations.push(Operation::PutFact { name, value });
        self
    }

    /// Deletes a fact; a missing fact is not an error.
    pub fn delete_fact(mut self, name: FactName) -> Self {
        self.operations.push(Operation::DeleteFact { name });
        self
    }

    /// Marks the object with this LSN as lost, unless there is a newer version: reads of the key return a corruption
    /// error until it is overwritten or deleted.
    pub(crate) fn mark_lost(mut self, name: ObjectName, lsn: u64) -> Self {
        self.operations.push(Operation::MarkLost { name, lsn });
        self
    }

    /// Creates a batch of one internal operation.
    pub(crate) fn of(operation: Operation) -> Self {
        Self { operations: vec![operation], preconditions: Vec::new() }
    }

    /// Adds a precondition.
    pub fn require(mut self, precondition: Precondition) -> Self {
        self.preconditions.push(precondition);
        self
    }

    /// Appends the operations and preconditions of another batch.
    pub fn and(mut self, other: Self) -> Self {
        self.operations.extend(other.operations);
        self.preconditions.extend(other.preconditions);
        self
    }

    /// Returns the objects that the batch puts or deletes, in order. Puts of derived objects and
    /// [`Batch::delete_derived`] are left out.
    pub fn object_changes(&self) -> impl Iterator<Item = (&ObjectName, ObjectChange)> {
        self.operations.iter().filter_map(|operation| match operation {
            Operation::Put { name, options, .. } if !options.derived => {
                Some((name, ObjectChange::Put))
            }
            Operation::Delete { name } => Some((name, ObjectChange::Delete)),
            _ => None,
        })
    }

    /// Returns the objects that the batch puts, in order, with their attributes. Derived objects are left out.
    pub fn put_attributes(&self) -> impl Iterator<Item = (&ObjectName, &[u8])> {
        self.operations.iter().filter_map(|operation| match operation {
            Operation::Put { name, options, .. } if !options.derived => {
                Some((name, options.attributes.as_slice()))
            }
            _ => None,
        })
    }

    /// Replaces the attributes of each object that the batch puts by `map` of them. Derived objects are left out.
    pub fn map_attributes(mut self, map: impl Fn(Vec<u8>) -> Vec<u8>) -> Self {
        for operation in &mut self.operations {
            if let Operation::Put { options, .. } = operation
                && !options.derived
            {
                options.attributes = map(std::mem::take(&mut options.attributes));
            }
        }
        self
    }

    /// Returns the preconditions.
    pub fn preconditions(&self) -> &[Precondition] {
        &self.preconditions
    }

    /// Returns whether the batch has no operations.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Returns whether the batch has bodies, which may not use the reserve of free space. Facts do not count: they
    /// are small, and a full store must still be able to use up a token or revoke a key.
    pub(crate) fn has_puts(&self) -> bool {
        self.operations.iter().any(|operation| matches!(operation, Operation::Put { .. }))
    }

    /// Returns the maximum length of the batch in a group.
    pub(crate) fn bytes(&self) -> u64 {
        let records: u64 = self.operations.iter().map(Operation::bytes).sum();
        records + FRAME_HEADER_BYTES as u64
    }

    /// Checks that the batch fits in a segment.
    pub(crate) fn check(&self, bytes_max: u64) -> Result<()> {
        if self.operations.len() > limits::BATCH_RECORDS_MAX {
            return Err(Error::TooLarge("a batch has at most 1,024 operations"));
        }
        if self.bytes() > bytes_max {
            return Err(Error::TooLarge("the small objects of one batch exceed the batch limit"));
        }
        for operation in &self.operations {
            operation.check()?;
        }
        Ok(())
    }
}

/// Maximum length of a record head without names, content type, attributes and block checksums.
pub(crate) const RECORD_FIXED_BYTES_MAX: usize = 128;

impl Operation {
    fn bytes(&self) -> u64 {
        let object_name = |name: &ObjectName| name.bucket.as_str().len() + name.key.as_str().len();
        let (head, body) = match self {
            Self::Put { name, staged, options } => {
                let body = staged.inline_bytes();
                let blocks = body.div_ceil(limits::BLOCK_BYTES as u64) as usize;
                let kept = options.content_type.len() + options.attributes.len();
                (object_name(name) + kept + 4 * blocks, body)
            }
            Self::Delete { name } | Self::DeleteDerived { name, .. } => (object_name(name), 0),
            Self::PutFact { name, value } => (name.as_str().len(), value.len() as u64),
            Self::DeleteFact { name } => (name.as_str().len(), 0),
            Self::MarkLost { .. } => (HEAD_BYTES_MAX, 0),
            Self::CommitCompaction { outputs, inputs } => (8 * (outputs.len() + inputs.len()), 0),
            Self::Repoint { .. } | Self::Repointed { .. } | Self::RecordHolePunch { .. } => (0, 0),
        };
        (RECORD_FIXED_BYTES_MAX + head) as u64 + body
    }

    fn check(&self) -> Result<()> {
        match self {
            Self::Put { options, .. } => {
                if options.content_type.len() > limits::CONTENT_TYPE_BYTES_MAX {
                    return Err(Error::TooLarge("a content type has at most 255 bytes"));
                }
                if options.attributes.len() > limits::ATTRIBUTES_BYTES_MAX {
                    return Err(Error::TooLarge("an object has at most 6 KiB of attributes"));
                }
            }
            Self::PutFact { value, .. } if value.len() > limits::FACT_BYTES_MAX => {
                return Err(Error::TooLarge("a fact has at most 64 KiB"));
            }
            _ => {}
        }
        Ok(())
    }
}

impl Etag {
    /// Returns the ETag of content with this BLAKE3 hash.
    pub fn of_hash(hash: &[u8; 32]) -> Self {
        let mut first = [0; 16];
        first.copy_from_slice(hash.split_at(16).0);
        Self(first)
    }
}

impl fmt::Display for Etag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.0.iter().fold(0, |number: u128, byte| number << 8 | u128::from(*byte));
        write!(f, "{number:032x}")
    }
}

impl fmt::Debug for Etag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::{BucketName, ObjectKey};

    #[test]
    fn batch_lists_object_changes_in_order() {
        let name = |key: &str| {
            let bucket = BucketName::parse("pics").unwrap();
            ObjectName::new(bucket, ObjectKey::parse(key).unwrap())
        };
        let batch = Batch::new()
            .delete(name("b"))
            .delete_derived(name("t"), Vec::new())
            .delete_fact(FactName::parse("f").unwrap())
            .delete(name("a"));
        let (b, a) = (name("b"), name("a"));
        let changes: Vec<_> = batch.object_changes().collect();
        assert_eq!(changes, [(&b, ObjectChange::Delete), (&a, ObjectChange::Delete)]);
    }
}
