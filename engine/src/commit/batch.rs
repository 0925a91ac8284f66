//! A batch: what is to change together, and what must hold for it.
//!
//! Promises: all of a batch is done or none of it, across crashes too; its preconditions are decided against everything
//! that was committed before it, so two batches that both require a key to be absent cannot both succeed.
//! Never here: names that clients choose, tokens, thumbnails. Those are batches.

use std::fmt;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::format::{FRAME_HEADER_BYTES, HEAD_BYTES_MAX, SegmentId, SegmentUsage};
use crate::index::{Moved, Object};
use crate::limits;
use crate::name::{FactName, ObjectName};
use crate::upload::Staged;

/// The strong validator of a body: the first 16 bytes of its BLAKE3, shown as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Etag([u8; 16]);

/// Changes to be made together.
#[derive(Clone, Default)]
pub struct Batch {
    pub(crate) operations: Vec<Operation>,
    pub(crate) preconditions: Vec<Precondition>,
}

/// What must hold when a batch's turn comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// No object has this name.
    KeyAbsent(ObjectName),
    /// An object has this name.
    KeyPresent(ObjectName),
    /// The object of this name has this content.
    KeyIs(ObjectName, Etag),
    /// The object of this name is the version whose record has this number: the same content put again is another one.
    KeyVersion(ObjectName, u64),
    /// No object has this name, or one that is derived and has these attributes.
    KeyAbsentOrDerived(ObjectName, Vec<u8>),
    /// There is no such fact.
    FactAbsent(FactName),
    /// There is such a fact.
    FactPresent(FactName),
}

/// What to keep with an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PutOptions {
    /// Its content type, at most [`limits::CONTENT_TYPE_BYTES_MAX`] bytes.
    pub content_type: String,
    /// Opaque bytes of the caller's, at most [`limits::ATTRIBUTES_BYTES_MAX`].
    pub attributes: Vec<u8>,
    /// Whether it can be made again from another object; then it does not count as the bucket's.
    pub derived: bool,
    /// When an object of this name was first put, for one that comes from elsewhere or comes back. Milliseconds since
    /// 1970; None for what the store knows itself. No later than now.
    pub created_ms: Option<u64>,
}

/// What a batch does to an object by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectChange {
    /// It is put.
    Put,
    /// It is deleted, if it is there.
    Delete,
}

/// What a committed batch did.
#[derive(Clone, Debug, Default)]
pub struct Committed {
    /// The objects put, in the order of the batch.
    pub objects: Vec<Object>,
    /// How many of the deletions found an object. Those of [`Batch::delete_derived`] do not count.
    pub deleted_count: usize,
    /// Whether nothing points to the inputs of a compaction any more.
    pub(crate) inputs_are_free: bool,
}

#[derive(Clone)]
pub(crate) enum Operation {
    Put {
        name: ObjectName,
        staged: Staged,
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
    /// The object with this record is damaged beyond repair.
    MarkLost {
        name: ObjectName,
        lsn: u64,
    },
    /// The commit point of a compaction.
    Compacted {
        outputs: Vec<(SegmentId, SegmentUsage)>,
        inputs: Vec<SegmentId>,
    },
    /// Points the index to some of a committed compaction's copies. Alone in its batch, and in no log.
    Repoint {
        moved: Vec<Moved>,
    },
    /// All is re-pointed. Alone in its batch, and in no log.
    Repointed {
        inputs: Vec<SegmentId>,
    },
    /// Space of dead bodies was given back.
    Punched {
        segment: SegmentId,
        bytes: u64,
    },
}

impl Batch {
    /// A batch that changes nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts an object, in place of what has its name.
    pub fn put(mut self, name: ObjectName, staged: Staged, options: PutOptions) -> Self {
        self.operations.push(Operation::Put { name, staged, options });
        self
    }

    /// Deletes an object. One that is not there is not an error; require [`Precondition::KeyPresent`] where it should
    /// be.
    pub fn delete(mut self, name: ObjectName) -> Self {
        self.operations.push(Operation::Delete { name });
        self
    }

    /// Deletes an object if it is derived and has these attributes when the batch's turn comes: what was made of an
    /// object goes with it. Any other object stays, and so does what this batch puts itself.
    pub fn delete_derived(mut self, name: ObjectName, attributes: Vec<u8>) -> Self {
        self.operations.push(Operation::DeleteDerived { name, attributes });
        self
    }

    /// Sets a fact.
    pub fn put_fact(mut self, name: FactName, value: Bytes) -> Self {
        self.operations.push(Operation::PutFact { name, value });
        self
    }

    /// Removes a fact; one that is not there is not an error.
    pub fn delete_fact(mut self, name: FactName) -> Self {
        self.operations.push(Operation::DeleteFact { name });
        self
    }

    /// Gives the object up whose record has this number, unless there is a newer one: from now on its key answers that
    /// it is damaged, until something is put there or it is deleted.
    pub(crate) fn mark_lost(mut self, name: ObjectName, lsn: u64) -> Self {
        self.operations.push(Operation::MarkLost { name, lsn });
        self
    }

    /// One of the operations that keep the house in order, alone.
    pub(crate) fn of(operation: Operation) -> Self {
        Self { operations: vec![operation], preconditions: Vec::new() }
    }

    /// Adds a precondition.
    pub fn require(mut self, precondition: Precondition) -> Self {
        self.preconditions.push(precondition);
        self
    }

    /// Adds what another batch does, and what it requires.
    pub fn and(mut self, other: Self) -> Self {
        self.operations.extend(other.operations);
        self.preconditions.extend(other.preconditions);
        self
    }

    /// What the batch does to objects, in its order. Without derived objects that it puts, and without
    /// [`Batch::delete_derived`].
    pub fn object_changes(&self) -> impl Iterator<Item = (&ObjectName, ObjectChange)> {
        self.operations.iter().filter_map(|operation| match operation {
            Operation::Put { name, options, .. } if !options.derived => {
                Some((name, ObjectChange::Put))
            }
            Operation::Delete { name } => Some((name, ObjectChange::Delete)),
            _ => None,
        })
    }

    /// The same batch with other attributes of the objects that it puts; those of derived ones stay.
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

    /// What must hold for the batch.
    pub fn preconditions(&self) -> &[Precondition] {
        &self.preconditions
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Whether it brings bodies, which the reserve of free space is not for. Facts are not bodies: they are small, and
    /// a full store must still be able to use up a token or to revoke a key.
    pub(crate) fn has_bodies(&self) -> bool {
        self.operations.iter().any(|operation| matches!(operation, Operation::Put { .. }))
    }

    /// The most bytes that the batch takes in a group.
    pub(crate) fn bytes(&self) -> u64 {
        let records: u64 = self.operations.iter().map(Operation::bytes).sum();
        records + FRAME_HEADER_BYTES as u64
    }

    /// Refuses what no segment could take.
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

/// No record head takes more than this beside its names, types, attributes and block checksums.
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
            Self::Compacted { outputs, inputs } => (8 * (outputs.len() + inputs.len()), 0),
            Self::Repoint { .. } | Self::Repointed { .. } | Self::Punched { .. } => (0, 0),
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
    /// The validator of content with this BLAKE3.
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
    fn object_changes_of_a_batch_are_listed_in_order() {
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
