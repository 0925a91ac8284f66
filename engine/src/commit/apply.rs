//! Applies one batch: preconditions, log records, index changes.
//!
//! Guarantees: a rejected batch leaves group and view unchanged.
//! Non-goals: disk access.

use std::collections::{BTreeMap, BTreeSet};

use super::batch::{Batch, CommitInfo, Etag, Operation, Precondition};
use super::move_detection::{is_move, may_be_move};
use super::recent_noncurrent::{NoncurrentReason, RecentVersion};
use crate::error::{Conflict, Error, Result};
use crate::format::{
    Checksum, Entry, EntryContent, GroupBuilder, Location, ObjectFlags, ObjectMeta, Placed,
    RecordContent, RecordOp, SegmentId,
};
use crate::index::{Fact, Object, ReplacedEntry, UnreferencedSegment, View};
use crate::name::ObjectName;
use crate::upload::{StagedBody, StagedContent};

/// Effects of one batch, valid once its group is durable.
#[derive(Default)]
pub(super) struct BatchOutcome {
    pub(super) committed: CommitInfo,
    pub(super) staged: Vec<StagedBody>,
    /// Big segments that no record refers to after the batch.
    pub(super) unnamed: Vec<UnreferencedSegment>,
    /// Big segments among them whose content has another name now.
    pub(super) moved: Vec<SegmentId>,
    /// Versions that the batch made noncurrent.
    pub(super) ended: Vec<RecentVersion>,
    pub(super) has_records: bool,
    /// Whether the index changes, with or without log records.
    pub(super) changes_index: bool,
}

/// Checks the preconditions of a batch.
pub(super) fn require(view: &View, preconditions: &[Precondition]) -> Result<()> {
    for precondition in preconditions {
        let refused = match precondition {
            Precondition::KeyAbsent(name) => {
                view.entry(name)?.map(|_| Conflict::KeyPresent(name.clone()))
            }
            Precondition::KeyPresent(name) => match view.entry(name)? {
                Some(_) => None,
                None => Some(Conflict::KeyMissing(name.clone())),
            },
            Precondition::KeyHasEtag(name, etag) => match view.entry(name)? {
                Some(entry) if Etag::of_hash(&entry.meta.hash) == *etag => None,
                Some(_) => Some(Conflict::KeyChanged(name.clone())),
                None => Some(Conflict::KeyMissing(name.clone())),
            },
            Precondition::KeyHasLsn(name, lsn) => match view.entry(name)? {
                Some(entry) if entry.lsn == *lsn => None,
                Some(_) => Some(Conflict::KeyChanged(name.clone())),
                None => Some(Conflict::KeyMissing(name.clone())),
            },
            Precondition::KeyAbsentOrDerived(name, attributes) => {
                let other = view.entry(name)?.filter(|it| !is_derived(it, attributes));
                other.map(|_| Conflict::KeyPresent(name.clone()))
            }
            Precondition::FactAbsent(name) => {
                view.fact(name)?.map(|_| Conflict::FactPresent(name.clone()))
            }
            Precondition::FactPresent(name) => match view.fact(name)? {
                Some(_) => None,
                None => Some(Conflict::FactMissing(name.clone())),
            },
        };
        if let Some(conflict) = refused {
            return Err(Error::Conflict(conflict));
        }
    }
    Ok(())
}

/// Adds the records of a batch to the group as one frame, and their effects to the view. The inner error rejects
/// only this batch. `named` are the big segments that the group refers to so far.
pub(super) fn add(
    builder: &mut GroupBuilder,
    view: &mut View,
    batch: &Batch,
    now_ms: u64,
    named: &mut BTreeSet<SegmentId>,
) -> Result<Result<BatchOutcome>> {
    if let [operation] = batch.operations.as_slice()
        && let Some(decided) = change_index(view, operation)?
    {
        return Ok(Ok(decided));
    }
    let mut named_now = named.clone();
    let mut records = Vec::with_capacity(batch.operations.len());
    let mut staged_bodies = Vec::new();
    // Whether objects have these names after the preconditions and the previous operations of the batch.
    let mut present: BTreeMap<&ObjectName, bool> =
        absent_names(&batch.preconditions).map(|name| (name, false)).collect();
    // Indexes of the records that delete derived objects.
    let mut uncounted = BTreeSet::new();
    for operation in &batch.operations {
        match operation {
            Operation::Put { name, staged, options } => {
                let content = staged.content().filter(|content| match content {
                    StagedContent::Memory(_) => true,
                    StagedContent::Big(segment) => named_now.insert(*segment),
                });
                let Some(content) = content else {
                    return Ok(Err(Error::TooLarge("a staged body is committed once")));
                };
                let (content, pieces) = match content {
                    StagedContent::Memory(blocks) => {
                        let (pieces, blocks) = blocks.into_iter().unzip();
                        (RecordContent::Inline { bytes: staged.bytes(), blocks }, pieces)
                    }
                    StagedContent::Big(segment) => {
                        (RecordContent::Big { bytes: staged.bytes(), segment }, Vec::new())
                    }
                };
                let old = match present.get(name) {
                    Some(false) => None,
                    _ => view.entry(name)?,
                };
                let known_ms = old.map_or(now_ms, |old| old.meta.created_ms);
                let created_ms = options.created_ms.map_or(known_ms, |created| created.min(now_ms));
                let meta = ObjectMeta {
                    content_type: options.content_type.clone(),
                    hash: *staged.hash(),
                    created_ms,
                    modified_ms: now_ms,
                    flags: ObjectFlags { derived: options.derived },
                    attributes: options.attributes.clone(),
                };
                staged_bodies.push(staged.clone());
                present.insert(name, true);
                let what = RecordOp::Put { name: name.clone(), meta, content };
                records.push((what, pieces));
            }
            Operation::Delete { name } => {
                let is_present = match present.get(name) {
                    Some(present) => *present,
                    None => view.entry(name)?.is_some(),
                };
                if is_present {
                    present.insert(name, false);
                    let what = RecordOp::Delete { name: name.clone(), deleted_ms: now_ms };
                    records.push((what, Vec::new()));
                }
            }
            Operation::DeleteDerived { name, attributes } => {
                let is_meant = !present.contains_key(name)
                    && view.entry(name)?.is_some_and(|entry| is_derived(&entry, attributes));
                if is_meant {
                    present.insert(name, false);
                    uncounted.insert(records.len());
                    let what = RecordOp::Delete { name: name.clone(), deleted_ms: now_ms };
                    records.push((what, Vec::new()));
                }
            }
            Operation::PutFact { name, value } => {
                let check = Checksum::of(value);
                let bytes = value.len() as u32;
                let what = RecordOp::PutFact { name: name.clone(), bytes, check };
                records.push((what, vec![value.clone()]));
            }
            Operation::DeleteFact { name } => {
                let what = RecordOp::DeleteFact { name: name.clone() };
                records.push((what, Vec::new()));
            }
            Operation::MarkLost { name, lsn } => {
                if let Some(old) = view.entry(name)?.filter(|old| old.lsn == *lsn) {
                    let content = RecordContent::Lost { bytes: old.body_bytes() };
                    let what =
                        RecordOp::Put { name: name.clone(), meta: old.meta.clone(), content };
                    records.push((what, Vec::new()));
                }
            }
            Operation::CommitCompaction { outputs, inputs } => {
                let outputs = outputs.iter().map(|(segment, _)| *segment).collect();
                let what = RecordOp::Compaction { outputs, inputs: inputs.clone() };
                records.push((what, Vec::new()));
            }
            Operation::RecordHolePunch { segment, bytes } => {
                let what = RecordOp::HolePunch { segment: *segment, bytes: *bytes };
                records.push((what, Vec::new()));
            }
            // Such an operation is the only one of its batch.
            Operation::Repoint { .. } | Operation::Repointed { .. } => {}
        }
    }
    if records.is_empty() {
        return Ok(Ok(BatchOutcome::default()));
    }
    *named = named_now;
    let placed = builder.frame(&records);
    let mut decided =
        BatchOutcome { staged: staged_bodies, has_records: true, ..BatchOutcome::default() };
    // Object put by the previous record.
    let mut before: Option<Object> = None;
    for (at, (placed, (what, body))) in placed.into_iter().zip(records).enumerate() {
        let Placed { lsn, segment, offset, head_bytes } = placed;
        let record = Location { segment, offset, head_bytes };
        let mut replaced = ReplacedEntry::default();
        let put_before = before.take();
        match what {
            RecordOp::Put { name, meta, content } => {
                let entry = Entry { lsn, record, meta, content: EntryContent::of(&content) };
                let (old, entry) = view.put(&name, entry)?;
                replaced = old;
                // An object given up as lost is not a noncurrent version.
                let is_given_up = matches!(entry.content, EntryContent::Lost { .. });
                let old = replaced.entry.take().filter(|_| !is_given_up);
                let ended = old.and_then(|old| {
                    RecentVersion::new(&name, old, NoncurrentReason::Replaced, lsn, now_ms)
                });
                decided.ended.extend(ended);
                let object = Object { name, entry };
                before = Some(object.clone());
                decided.committed.objects.push(object);
            }
            RecordOp::Delete { name, deleted_ms } => {
                replaced = view.delete(&name, deleted_ms, record)?;
                let counts = replaced.entry.is_some() && !uncounted.contains(&at);
                decided.committed.deleted_count += usize::from(counts);
                let is_moved = replaced.entry.as_ref().zip(put_before).is_some_and(|(old, to)| {
                    let put = (&to.name, &to.entry.meta);
                    may_be_move(put, &name, deleted_ms) && is_move(put.1, &old.meta)
                });
                if is_moved {
                    // A moved object has nothing to restore: it still exists.
                    decided.moved.extend(replaced.big.take().map(|big| big.segment));
                } else {
                    let ended = replaced.entry.take().and_then(|old| {
                        RecentVersion::new(&name, old, NoncurrentReason::Deleted, lsn, now_ms)
                    });
                    decided.ended.extend(ended);
                }
            }
            RecordOp::PutFact { name, .. } => {
                let value = body.into_iter().next().unwrap_or_default();
                view.put_fact(&name, Fact { lsn, record, value })?;
            }
            RecordOp::DeleteFact { name } => view.delete_fact(&name, record)?,
            RecordOp::Compaction { .. } => {
                view.apply_segment_record(record)?;
                for operation in &batch.operations {
                    if let Operation::CommitCompaction { outputs, .. } = operation {
                        view.add_compacted(outputs);
                    }
                }
            }
            RecordOp::HolePunch { segment, bytes } => {
                view.apply_hole_punch(segment, bytes, record)?
            }
        }
        decided.unnamed.extend(replaced.big);
    }
    Ok(Ok(decided))
}

/// Returns the names that no object has if the preconditions hold.
fn absent_names(preconditions: &[Precondition]) -> impl Iterator<Item = &ObjectName> {
    preconditions.iter().filter_map(|precondition| match precondition {
        Precondition::KeyAbsent(name) => Some(name),
        _ => None,
    })
}

/// Returns whether an object is derived and has these attributes.
fn is_derived(entry: &Entry, attributes: &[u8]) -> bool {
    entry.meta.flags.derived && entry.meta.attributes == attributes
}

/// Applies an operation that changes only the index, because its effect is already in the log. `None` for other
/// operations.
fn change_index(view: &mut View, operation: &Operation) -> Result<Option<BatchOutcome>> {
    let mut decided = BatchOutcome { changes_index: true, ..BatchOutcome::default() };
    match operation {
        Operation::Repoint { moved } => {
            for moved in moved {
                view.repoint(moved)?;
            }
        }
        Operation::Repointed { inputs } => {
            decided.committed.inputs_are_free = view.drop_segments(inputs)?;
        }
        _ => return Ok(None),
    }
    Ok(Some(decided))
}
