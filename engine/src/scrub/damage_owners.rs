//! Resolves damaged locations to the objects that own them.
//!
//! Used only after damage, because it reads the whole index.

use std::ops::{ControlFlow, Range};

use super::segment_scrub::SegmentFile;
use super::{DamageCollector, ScrubContext};
use crate::error::Result;
use crate::format::{EntryContent, Location, Malformed, Record, RecordName, RecordOp, SegmentId};
use crate::limits;

/// Adds the owner of a big segment. Without an owner there is no damage.
pub(super) fn resolve_big_owner(
    store: &ScrubContext,
    id: SegmentId,
    findings: &mut DamageCollector,
    stopped: &dyn Fn() -> bool,
) -> Result<()> {
    if findings.count == 0 {
        return Ok(());
    }
    let mut owner = None;
    store.read_checked(|view| {
        let is_owner = |content: &EntryContent| {
            matches!(content, EntryContent::Big { segment, .. } if *segment == id)
        };
        view.resolve_damage_owners(
            |entry| stopped() || is_owner(&entry.content),
            |name, entry| {
                owner = is_owner(&entry.content).then_some((name, entry.lsn));
                Ok(ControlFlow::Break(()))
            },
        )
    })?;
    match owner {
        Some((name, lsn)) => {
            for damage in &mut findings.listed {
                damage.lsn = Some(lsn);
                damage.name = Some(RecordName::Object(name.clone()));
            }
        }
        None => (findings.listed, findings.count) = (Vec::new(), 0),
    }
    Ok(())
}

/// Adds the live records in the unclear ranges of a segment that are damaged.
pub(super) fn resolve_record_owners(
    store: &ScrubContext,
    id: SegmentId,
    file: Option<&SegmentFile>,
    unclear: &[Range<u64>],
    findings: &mut DamageCollector,
    stopped: &dyn Fn() -> bool,
) -> Result<()> {
    if unclear.is_empty() {
        return Ok(());
    }
    let is_unclear =
        |at: &Location| at.segment == id && unclear.iter().any(|range| range.contains(&at.offset));
    store.read_checked(|view| {
        view.resolve_damage_owners(
            |entry| stopped() || is_unclear(&entry.record),
            |name, entry| {
                if stopped() || findings.is_full() {
                    return Ok(ControlFlow::Break(()));
                }
                let name = RecordName::Object(name);
                if let Err((at, reason)) = check(file, &name, entry.lsn, &entry.record)? {
                    findings.record(at, entry.lsn, reason, name);
                }
                Ok(ControlFlow::Continue(()))
            },
        )?;
        let mut after = None;
        loop {
            let facts = view.facts("", after.as_ref(), limits::LIST_PAGE_MAX)?;
            let Some((last, _)) = facts.last() else { return Ok(()) };
            after = Some(last.clone());
            for (name, fact) in facts {
                if stopped() || findings.is_full() {
                    return Ok(());
                }
                if is_unclear(&fact.record) {
                    let name = RecordName::Fact(name);
                    if let Err((at, reason)) = check(file, &name, fact.lsn, &fact.record)? {
                        findings.record(at, fact.lsn, reason, name);
                    }
                }
            }
        }
    })
}

/// Verifies the record of this name and LSN at its location.
fn check(
    file: Option<&SegmentFile>,
    name: &RecordName,
    lsn: u64,
    at: &Location,
) -> Result<Result<(), (u64, Malformed)>> {
    let Some(file) = file else { return Ok(Err((at.offset, Malformed::Missing))) };
    let head = match file.read(at.offset, u64::from(at.head_bytes))? {
        Ok(head) => head,
        Err(fault) => return Ok(Err(fault)),
    };
    let place = file.header.context().at(at.offset);
    let record = match Record::decode(&head, place) {
        Ok((record, _)) => record,
        Err(reason) => return Ok(Err((at.offset, reason))),
    };
    let is_it = match (&record.op, name) {
        (RecordOp::Put { name: found, .. }, RecordName::Object(name)) => found == name,
        (RecordOp::PutFact { name: found, .. }, RecordName::Fact(name)) => found == name,
        _ => false,
    };
    if !is_it || record.lsn != lsn {
        return Ok(Err((at.offset, Malformed::Misplaced)));
    }
    let body_at = at.offset + u64::from(at.head_bytes);
    let read = file.read(body_at, record.body_bytes())?;
    Ok(read.and_then(|body| {
        let fault = record.verify_body(place, &body).err();
        fault.map_or(Ok(()), |fault| Err((fault.offset, Malformed::Checksum)))
    }))
}
