//! Objects that expire by the lifecycle rules of their bucket.
//!
//! A scan of a bucket deletes what has expired, and remembers what expires before the next scan. Objects that are
//! stored later are younger than the age of every rule until then.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use catalog::{Bucket, Expiration, LifecycleRule};
use engine::limits::LIST_PAGE_MAX;
use engine::{BucketName, Object, ObjectKey, ObjectName};
use protocol::error::ApiError;
use usage::task::blocking;

use super::ExpirySweep;
use crate::limits::{DELETE_FILES_MAX, EXPIRY_SCAN_INTERVAL_MS, EXPIRY_UPCOMING_MAX};

/// Scans by bucket.
pub(super) type RuleScans = BTreeMap<BucketName, RuleScan>;

/// Last scan of a bucket.
pub(super) struct RuleScan {
    /// Rules at the time of the scan.
    rules: Vec<LifecycleRule>,
    created_ms: u64,
    next_ms: u64,
    /// Objects that expire before the next scan, by expiry time.
    upcoming: BTreeSet<(u64, ObjectKey)>,
}

impl RuleScan {
    fn new(bucket: &Bucket, now_ms: u64) -> Self {
        let ages = bucket.lifecycle.iter().filter(|rule| rule.enabled);
        let interval_ms = ages.filter_map(|rule| match rule.expiration {
            Expiration::AfterSeconds(seconds) => Some(seconds * 1_000),
            Expiration::AtMs(_) => None,
        });
        let interval_ms = interval_ms.min().unwrap_or(u64::MAX).min(EXPIRY_SCAN_INTERVAL_MS);
        Self {
            rules: bucket.lifecycle.clone(),
            created_ms: bucket.created_ms,
            next_ms: now_ms + interval_ms,
            upcoming: BTreeSet::new(),
        }
    }

    fn is_current(&self, bucket: &Bucket, now_ms: u64) -> bool {
        self.rules == bucket.lifecycle
            && self.created_ms == bucket.created_ms
            && now_ms < self.next_ms
    }

    /// Remembers an object that expires later, if it does so before the next scan. Beyond the bound of memory the next
    /// scan is earlier.
    fn remember(&mut self, expires_ms: u64, key: &ObjectKey) {
        if expires_ms >= self.next_ms {
            return;
        }
        self.upcoming.insert((expires_ms, key.clone()));
        if self.upcoming.len() > EXPIRY_UPCOMING_MAX
            && let Some((last_ms, _)) = self.upcoming.pop_last()
        {
            self.next_ms = last_ms;
        }
    }
}

impl ExpirySweep {
    /// Deletes the objects that expire by rules.
    pub(super) async fn delete_by_rules(&mut self) -> Result<(), ApiError> {
        let buckets = self.context.catalog.buckets().all();
        let ruled: Vec<_> =
            buckets.into_iter().filter(|bucket| !bucket.lifecycle.is_empty()).collect();
        self.scans.retain(|name, _| ruled.iter().any(|bucket| bucket.name == *name));
        let mut failed = Ok(());
        for bucket in ruled {
            let now_ms = self.context.clock.unix_ms();
            let scan = self.scans.get(&bucket.name);
            let deleted = match scan.is_some_and(|scan| scan.is_current(&bucket, now_ms)) {
                true => self.delete_upcoming(&bucket).await,
                false => self.scan(&bucket).await,
            };
            failed = failed.and(deleted);
        }
        failed
    }

    /// Deletes the remembered objects that have expired since.
    async fn delete_upcoming(&mut self, bucket: &Arc<Bucket>) -> Result<(), ApiError> {
        loop {
            let now_ms = self.context.clock.unix_ms();
            let Some(scan) = self.scans.get(&bucket.name) else { return Ok(()) };
            let due: Vec<_> = scan
                .upcoming
                .iter()
                .take_while(|(expires_ms, _)| *expires_ms <= now_ms)
                .take(DELETE_FILES_MAX)
                .cloned()
                .collect();
            if due.is_empty() || self.context.is_draining() {
                return Ok(());
            }
            let (store, of, keys) = (self.context.store.clone(), bucket.name.clone(), due.clone());
            let find = move || {
                let names = keys.into_iter().map(|(_, key)| ObjectName::new(of.clone(), key));
                names.map(|name| store.get(&name)).collect::<engine::Result<Vec<_>>>()
            };
            let objects = blocking(find).await?.into_iter().flatten().collect();
            self.delete_expired(bucket, objects, now_ms).await?;
            if let Some(scan) = self.scans.get_mut(&bucket.name) {
                scan.upcoming.retain(|entry| !due.contains(entry));
            }
        }
    }

    /// Scans the prefixes of the rules of a bucket.
    async fn scan(&mut self, bucket: &Arc<Bucket>) -> Result<(), ApiError> {
        let now_ms = self.context.clock.unix_ms();
        let mut scan = RuleScan::new(bucket, now_ms);
        for prefix in bucket.lifecycle_prefixes() {
            let mut after: Option<String> = None;
            loop {
                let (store, of, prefix) =
                    (self.context.store.clone(), bucket.name.clone(), prefix.clone());
                let list = move || store.list_keys(&of, &prefix, after.as_deref(), LIST_PAGE_MAX);
                let page = blocking(list).await?;
                after = page.objects.last().map(|object| object.name().key.to_string());
                for object in &page.objects {
                    if let Some((expires_ms, _)) = bucket.expiry(object)
                        && expires_ms > now_ms
                    {
                        scan.remember(expires_ms, &object.name().key);
                    }
                }
                self.delete_expired(bucket, page.objects, now_ms).await?;
                if !page.more || after.is_none() {
                    break;
                }
                if self.context.is_draining() {
                    return Ok(());
                }
            }
        }
        self.scans.insert(bucket.name.clone(), scan);
        Ok(())
    }

    /// Deletes those of some objects that have expired. One that is replaced concurrently remains until the next scan.
    async fn delete_expired(
        &mut self,
        bucket: &Arc<Bucket>,
        objects: Vec<Object>,
        now_ms: u64,
    ) -> Result<(), ApiError> {
        let mut by_rule: BTreeMap<Option<String>, Vec<Object>> = BTreeMap::new();
        for object in objects {
            if let Some((expires_ms, rule)) = bucket.expiry(&object)
                && expires_ms <= now_ms
            {
                by_rule.entry(rule.map(|rule| rule.id.clone())).or_default().push(object);
            }
        }
        for (rule, objects) in by_rule {
            for objects in objects.chunks(DELETE_FILES_MAX) {
                if self.delete(bucket, rule.clone(), objects.to_vec()).await? {
                    continue;
                }
                for object in objects {
                    self.delete(bucket, rule.clone(), vec![object.clone()]).await?;
                }
            }
        }
        Ok(())
    }
}
