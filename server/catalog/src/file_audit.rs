//! File audit: uploads, copies and deletions of files, with their authors.
//!
//! Committed changes are collected in memory, and stored within a second as blocks, one fact for up to some hundred
//! changes of one bucket: a fact for each upload would be a second write to the index. Guarantees: at most
//! [`FILE_AUDIT_FILES_MAX`] changes are retained, older than [`AUDIT_RETENTION`] only briefly; beyond the limit the
//! oldest blocks of the account with the most changes are deleted; a page contains every change that was acknowledged
//! before. A crash loses the changes of the last second. Non-goals: authorization of readers.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::mem::{replace, take};
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::name::NameError;
use engine::{BucketName, FactName};
use tokio::sync::Notify;

use super::audit_entry::{Actor, AuditEntry};
use super::audit_log::AuditPage;
use super::change::{Change, Table, split};
use super::event::ObjectEvent;
use super::file_audit_block::{ChangedFile, FileAuditBlock};
use super::record::decode;
use super::{Audit, Catalog, CatalogError};
use crate::limits::{
    AUDIT_RETENTION, FILE_AUDIT_BLOCK_BYTES, FILE_AUDIT_FILES_MAX, FILE_AUDIT_OPEN_BYTES,
    FILE_AUDIT_PENDING_MAX, millis,
};

/// Prefix of the fact names of blocks; the number follows.
const PREFIX: &str = "file-audit/";
const NUMBER_DIGITS: usize = 20;
/// Blocks that are written or deleted in one batch.
const BATCH_BLOCKS: usize = 100;

/// Changes of files that one commit made.
pub(super) struct FileChanges {
    pub(super) at_ms: u64,
    pub(super) bucket: BucketName,
    pub(super) actor: Arc<Actor>,
    pub(super) files: Vec<ChangedFile>,
}

/// Changes that are not stored yet.
#[derive(Default)]
pub(super) struct PendingFileChanges {
    pending: Mutex<Pending>,
    added: Notify,
}

#[derive(Default)]
struct Pending {
    commits: Vec<FileChanges>,
    files: usize,
    /// Changes dropped at the limit since the last write.
    dropped: u64,
}

/// Index of the stored blocks.
#[derive(Debug, Default)]
pub(super) struct FileAuditTable {
    next: u64,
    blocks: BTreeMap<u64, BlockInfo>,
    /// Newest block of each bucket.
    newest: BTreeMap<Arc<str>, u64>,
    /// Numbers of the blocks of each account, oldest first, with their changes in all.
    accounts: BTreeMap<Arc<str>, (usize, VecDeque<u64>)>,
    files: usize,
}

#[derive(Debug)]
struct BlockInfo {
    oldest_ms: u64,
    newest_ms: u64,
    bucket: Arc<str>,
    /// Id of the owner of the bucket; empty if the bucket was deleted.
    account: Arc<str>,
    files: usize,
    bytes: usize,
}

/// Position of a change, in the order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileAuditId {
    at_ms: u64,
    block: u64,
    index: usize,
}

impl PendingFileChanges {
    /// Adds the changes of a commit.
    pub(super) fn add(&self, changes: FileChanges) {
        let mut pending = self.lock();
        if pending.files >= FILE_AUDIT_PENDING_MAX {
            pending.dropped += changes.files.len() as u64;
            return;
        }
        pending.files += changes.files.len();
        pending.commits.push(changes);
        drop(pending);
        self.added.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Pending {
        take(&mut *self.lock())
    }

    /// Puts changes back that could not be written.
    fn restore(&self, commits: Vec<FileChanges>) {
        let mut pending = self.lock();
        pending.files += commits.iter().map(|it| it.files.len()).sum::<usize>();
        let newer = replace(&mut pending.commits, commits);
        pending.commits.extend(newer);
    }
}

impl Table for FileAuditTable {
    const PREFIXES: &'static [&'static str] = &[PREFIX];

    fn apply(&mut self, fact: &FactName, value: Option<&[u8]>) -> Result<(), CatalogError> {
        let Ok(number) = split(fact).1.parse() else { return Ok(()) };
        self.remove(number);
        // An unreadable block is not counted, and stays.
        if let Some(bytes) = value
            && let Ok(block) = decode::<FileAuditBlock>(fact, bytes)
        {
            self.insert(number, &block, bytes.len());
        }
        Ok(())
    }
}

impl FileAuditTable {
    fn insert(&mut self, number: u64, block: &FileAuditBlock, bytes: usize) {
        let bucket: Arc<str> = block.bucket.as_str().into();
        let account: Arc<str> = block.owner.as_deref().unwrap_or_default().into();
        let times = || block.changes.iter().map(|it| it.at_ms);
        let files = block.changes.len();
        self.next = self.next.max(number + 1);
        let newest = self.newest.entry(bucket.clone()).or_insert(number);
        *newest = number.max(*newest);
        let (of_account, numbers) = self.accounts.entry(account.clone()).or_default();
        *of_account += files;
        numbers.insert(numbers.partition_point(|it| *it < number), number);
        self.files += files;
        let oldest_ms = times().min().unwrap_or_default();
        let newest_ms = times().max().unwrap_or_default();
        let info = BlockInfo { oldest_ms, newest_ms, bucket, account, files, bytes };
        self.blocks.insert(number, info);
    }

    fn remove(&mut self, number: u64) {
        let Some(info) = self.blocks.remove(&number) else { return };
        self.files -= info.files;
        if self.newest.get(&info.bucket) == Some(&number) {
            self.newest.remove(&info.bucket);
        }
        if let Some((files, numbers)) = self.accounts.get_mut(&info.account) {
            *files -= info.files;
            numbers.retain(|it| *it != number);
            if numbers.is_empty() {
                self.accounts.remove(&info.account);
            }
        }
    }

    /// Returns the number and size of the block of a bucket that has room for more changes, if any.
    fn open_block(&self, bucket: &BucketName) -> Option<(u64, usize)> {
        let number = *self.newest.get(bucket.as_str())?;
        let bytes = self.blocks.get(&number)?.bytes;
        (bytes < FILE_AUDIT_OPEN_BYTES).then_some((number, bytes))
    }

    /// Returns blocks whose changes are all older than a time.
    fn older_than(&self, before_ms: u64) -> Vec<u64> {
        let old = self.blocks.iter().filter(|(_, info)| info.newest_ms < before_ms);
        old.map(|(number, _)| *number).take(BATCH_BLOCKS).collect()
    }

    /// Returns the blocks to evict at the limit: the oldest of the account with the most changes.
    fn crowded_out(&self) -> Vec<u64> {
        let mut excess = self.files.saturating_sub(FILE_AUDIT_FILES_MAX);
        let most = self.accounts.values().max_by_key(|(files, _)| *files);
        let oldest = most.into_iter().flat_map(|(_, numbers)| numbers).take(BATCH_BLOCKS);
        let is_needed = |number: &&u64| {
            let is_over = excess > 0;
            excess = excess.saturating_sub(self.blocks.get(*number).map_or(0, |it| it.files));
            is_over
        };
        oldest.take_while(is_needed).copied().collect()
    }
}

impl Catalog {
    /// Returns the changes that the events of a commit report.
    pub(super) fn file_changes(
        &self,
        bucket: &BucketName,
        events: &[ObjectEvent],
    ) -> Option<FileChanges> {
        let file = |event: &ObjectEvent| ChangedFile {
            kind: event.kind,
            key: event.key.clone(),
            bytes: event.content.as_ref().map(|content| content.bytes),
        };
        (!events.is_empty()).then(|| FileChanges {
            at_ms: self.now_ms(),
            bucket: bucket.clone(),
            actor: self.author.clone().unwrap_or_default(),
            files: events.iter().map(file).collect(),
        })
    }
}

impl Audit<'_> {
    /// Returns when a change of a file is not stored yet.
    pub async fn wait_for_file_change(&self) {
        self.0.state.file_changes.added.notified().await;
    }

    /// Stores the collected changes of files, and deletes those beyond the limit. After an error the changes remain
    /// collected. Blocks on the disk.
    pub fn write_file_changes(&self) -> Result<(), CatalogError> {
        let mut change = self.0.begin();
        let Pending { commits, dropped, .. } = self.0.state.file_changes.take();
        if dropped > 0 {
            tracing::warn!(dropped, "changes of files missing in the audit log: writes failed");
        }
        let mut buckets: BTreeMap<BucketName, Vec<FileChanges>> = BTreeMap::new();
        for commit in commits {
            buckets.entry(commit.bucket.clone()).or_default().push(commit);
        }
        while let Some((bucket, commits)) = buckets.pop_first() {
            if let Err(error) = self.write_bucket(&mut change, &bucket, &commits) {
                let rest = buckets.into_values().flatten();
                self.0.state.file_changes.restore(commits.into_iter().chain(rest).collect());
                return Err(error);
            }
        }
        self.delete_blocks(&mut change, FileAuditTable::crowded_out)
    }

    /// Deletes changes of files that are past their retention, block by block.
    pub(super) fn sweep_file_changes(&self) -> Result<(), CatalogError> {
        let before_ms = self.0.now_ms().saturating_sub(millis(AUDIT_RETENTION));
        self.delete_blocks(&mut self.0.begin(), |table| table.older_than(before_ms))
    }

    /// Writes the changes of a bucket in one batch: to its open block, and to new ones.
    fn write_bucket(
        &self,
        change: &mut Change<'_>,
        bucket: &BucketName,
        commits: &[FileChanges],
    ) -> Result<(), CatalogError> {
        let current = self.0.buckets().get(bucket);
        // Changes of an earlier bucket of that name are not shown to the owner of the current one.
        let current = current.filter(|it| commits.iter().all(|at| it.created_ms <= at.at_ms));
        let (mut number, mut block, mut bytes) = self.open_block(bucket, current.as_deref())?;
        for commit in commits {
            for file in &commit.files {
                if bytes > FILE_AUDIT_BLOCK_BYTES {
                    let next = FileAuditBlock::new(bucket, current.as_deref());
                    change.put(fact(number)?, &replace(&mut block, next))?;
                    number = self.0.state.file_audit.read().next.max(number + 1);
                    bytes = 0;
                }
                bytes += block.add(commit.at_ms, &commit.actor, file);
            }
        }
        change.put(fact(number)?, &block)?;
        change.commit()
    }

    /// Returns the block to which changes of a bucket are added, with its number and size.
    fn open_block(
        &self,
        bucket: &BucketName,
        current: Option<&super::Bucket>,
    ) -> Result<(u64, FileAuditBlock, usize), CatalogError> {
        let new = FileAuditBlock::new(bucket, current);
        let (open, next) = {
            let table = self.0.state.file_audit.read();
            (table.open_block(bucket), table.next)
        };
        if let Some((number, bytes)) = open
            && let Some(block) = self.block(number)?
            && block.owner == new.owner
            && block.organisation == new.organisation
        {
            return Ok((number, block, bytes));
        }
        Ok((next, new, 0))
    }

    fn block(&self, number: u64) -> Result<Option<FileAuditBlock>, CatalogError> {
        let fact = fact(number)?;
        let value = self.0.state.store.fact(&fact)?;
        value.map(|value| decode(&fact, &value)).transpose()
    }

    /// Deletes selected blocks, in batches, until none is selected.
    fn delete_blocks(
        &self,
        change: &mut Change<'_>,
        select: impl Fn(&FileAuditTable) -> Vec<u64>,
    ) -> Result<(), CatalogError> {
        loop {
            let selected = select(&self.0.state.file_audit.read());
            if selected.is_empty() {
                return Ok(());
            }
            for number in selected {
                change.delete(fact(number)?);
            }
            change.commit()?;
        }
    }

    /// Returns the newest changes of files that match, before another one. Blocks on the disk.
    pub fn file_page(
        &self,
        bucket: Option<&str>,
        wants: impl Fn(&AuditEntry) -> bool,
        before: Option<FileAuditId>,
        limit: usize,
    ) -> Result<AuditPage<FileAuditId>, CatalogError> {
        if let Err(error) = self.write_file_changes() {
            tracing::warn!(%error, "failed to store changes of files in the audit log");
        }
        let is_before = |id: &FileAuditId| before.is_none_or(|before| *id < before);
        let mut blocks = self.blocks_before(bucket, before);
        let mut entries = Vec::new();
        // Blocks of different buckets overlap in time.
        let mut queue: BTreeMap<FileAuditId, Arc<FileAuditBlock>> = BTreeMap::new();
        loop {
            let newest_ms = queue.last_key_value().map(|(id, _)| id.at_ms);
            let next = blocks.pop_front_if(|(at_ms, _)| newest_ms.is_none_or(|it| *at_ms >= it));
            if let Some((_, block)) = next {
                let Some(changes) = self.block(block)?.map(Arc::new) else { continue };
                let ids = changes.changes.iter().enumerate();
                let ids = ids.map(|(index, it)| FileAuditId { at_ms: it.at_ms, block, index });
                queue.extend(ids.filter(is_before).map(|id| (id, changes.clone())));
                continue;
            }
            let Some((id, block)) = queue.pop_last() else {
                return Ok(AuditPage { entries, next: None });
            };
            let Some(entry) = block.entry(id.index).filter(&wants) else { continue };
            if entries.len() == limit {
                let next = entries.last().map(|(id, _)| *id);
                return Ok(AuditPage { entries, next });
            }
            entries.push((id, entry));
        }
    }

    /// Returns the times and numbers of the blocks with changes before a position, newest first.
    fn blocks_before(
        &self,
        bucket: Option<&str>,
        before: Option<FileAuditId>,
    ) -> VecDeque<(u64, u64)> {
        let table = self.0.state.file_audit.read();
        let blocks = table.blocks.iter().filter(|(_, info)| {
            bucket.is_none_or(|bucket| *info.bucket == *bucket)
                && before.is_none_or(|before| info.oldest_ms <= before.at_ms)
        });
        let mut blocks: Vec<_> = blocks.map(|(number, info)| (info.newest_ms, *number)).collect();
        blocks.sort_unstable_by(|a, b| b.cmp(a));
        blocks.into()
    }
}

fn fact(number: u64) -> Result<FactName, NameError> {
    FactName::parse(&format!("{PREFIX}{number:0NUMBER_DIGITS$}"))
}

impl fmt::Display for FileAuditId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.at_ms, self.block, self.index)
    }
}

impl FromStr for FileAuditId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.splitn(3, '-');
        let mut part = || parts.next().unwrap_or_default();
        Ok(Self { at_ms: part().parse()?, block: part().parse()?, index: part().parse()? })
    }
}
