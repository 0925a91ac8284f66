//! Shared links: lookup, creation, editing, end, and counted downloads and uploads.
//!
//! Guarantees: exactly `downloads_max` downloads of a link succeed, and at most `files_max` files and `bytes_max` bytes
//! are uploaded to it, across races and crashes; ended and expired links are deleted after
//! [`limits::SHARED_LINK_RETENTION`]. Non-goals: authorization.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::{BucketName, FactName, ObjectKey};

use super::audit_entry::{AuditRecord, changed_settings};
use super::change::{Change, Table, apply_record, check_count, check_total, each_fact, split};
use super::id::{AccountId, ApiKeyId, IdKind, OfSharedLink, SharedLinkId};
use super::link_use::{self, StoredLinkUse};
use super::record::decode;
use super::shared_link::{LinkLayout, LinkSecret, LinkState, SharedLink};
use super::upload_rules::{
    StoredLinkUpload, UPLOADS_PREFIX, UploadReservation, UploadRules, UploadRulesChange,
    link_of_upload, uploads_of,
};
use super::{AuditAction, CatalogError, PasswordHash, SharedLinks, StoredAmount};
use crate::limits::{self, millis};

/// Parameters of a new link.
pub struct NewSharedLink {
    pub bucket: BucketName,
    /// Files and folders, valid and not empty.
    pub paths: Vec<String>,
    pub title: String,
    pub message: String,
    pub layout: LinkLayout,
    pub zip: bool,
    pub expires_ms: Option<u64>,
    pub password: Option<PasswordHash>,
    pub downloads_max: Option<u64>,
    /// Rules of a link that requests files.
    pub upload: Option<UploadRules>,
    pub account: AccountId,
    pub api_key: Option<ApiKeyId>,
}

/// Change of a link; `None` leaves a field unchanged.
#[derive(Default)]
pub struct SharedLinkChange {
    pub title: Option<String>,
    pub message: Option<String>,
    pub layout: Option<LinkLayout>,
    pub zip: Option<bool>,
    pub expires_ms: Option<Option<u64>>,
    pub password: Option<Option<PasswordHash>>,
    pub downloads_max: Option<Option<u64>>,
    pub upload: UploadRulesChange,
}

/// All links.
#[derive(Debug, Default)]
pub(super) struct SharedLinkTable {
    links: BTreeMap<SharedLinkId, Arc<SharedLink>>,
    by_secret: BTreeMap<LinkSecret, SharedLinkId>,
}

impl Table for SharedLinkTable {
    const PREFIXES: &'static [&'static str] =
        &[OfSharedLink::PREFIX, link_use::PREFIX, UPLOADS_PREFIX];

    fn apply(&mut self, fact: &FactName, value: Option<&[u8]>) -> Result<(), CatalogError> {
        let (prefix, name) = split(fact);
        if prefix == UPLOADS_PREFIX {
            // Uploads are counted when their batch is committed, so that this is the start.
            let link = link_of_upload(name).and_then(|id| self.links.get(&id));
            if let (Some(link), Some(value)) = (link, value) {
                link.uploads.add_stored(decode::<StoredLinkUpload>(fact, value)?.amount());
            }
            return Ok(());
        }
        let known = SharedLinkId::parse(name).and_then(|id| self.links.get(&id)).cloned();
        if prefix == link_use::PREFIX {
            if let (Some(link), Some(value)) = (known, value) {
                link.uses.advance_to(&decode::<StoredLinkUse>(fact, value)?);
            }
            return Ok(());
        }
        apply_record(&mut self.links, fact, value)?;
        if let (Some(before), Some(id)) = (&known, SharedLinkId::parse(name)) {
            // A new version of the record is not shared yet.
            if let Some(now) = self.links.get_mut(&id).and_then(Arc::get_mut) {
                (now.uses, now.uploads) = (before.uses.clone(), before.uploads.clone());
            }
        }
        let now = SharedLinkId::parse(name).and_then(|id| self.links.get(&id));
        match (&known, now) {
            (Some(before), None) => drop(self.by_secret.remove(&before.secret)),
            (_, Some(now)) => drop(self.by_secret.insert(now.secret.clone(), now.id.clone())),
            (None, None) => {}
        }
        Ok(())
    }
}

impl SharedLinkTable {
    pub(super) fn get(&self, id: &SharedLinkId) -> Option<Arc<SharedLink>> {
        self.links.get(id).cloned()
    }
}

/// Lookup.
impl SharedLinks<'_> {
    /// Returns the link with this id.
    pub fn get(&self, id: &SharedLinkId) -> Option<Arc<SharedLink>> {
        self.0.state.shared_links.read().get(id)
    }

    /// Returns the link with this secret, in any state.
    pub fn with_secret(&self, secret: &LinkSecret) -> Option<Arc<SharedLink>> {
        let table = self.0.state.shared_links.read();
        table.by_secret.get(secret).and_then(|id| table.links.get(id)).cloned()
    }

    /// Returns the links that a function selects, newest first.
    pub fn select(&self, is_selected: impl Fn(&SharedLink) -> bool) -> Vec<Arc<SharedLink>> {
        let table = self.0.state.shared_links.read();
        let mut links: Vec<_> =
            table.links.values().filter(|link| is_selected(link)).cloned().collect();
        drop(table);
        links.sort_by(|one, other| {
            other.created_ms.cmp(&one.created_ms).then_with(|| one.id.cmp(&other.id))
        });
        links
    }
}

/// Changes.
impl SharedLinks<'_> {
    /// Creates a link.
    pub fn create(&self, new: NewSharedLink) -> Result<Arc<SharedLink>, CatalogError> {
        let mut change = self.0.begin();
        let bucket = self.0.buckets().require(&new.bucket)?;
        let now_ms = self.0.now_ms();
        check_total(self.0.state.shared_links.read().links.len(), "shared links")?;
        self.check_active_count(&new.account)?;
        let rng = &*self.0.state.rng;
        let link = SharedLink {
            id: SharedLinkId::issue(rng),
            secret: LinkSecret::issue(rng),
            bucket: new.bucket,
            paths: new.paths,
            title: new.title,
            message: new.message,
            layout: new.layout,
            zip: new.zip,
            expires_ms: new.expires_ms,
            password: new.password,
            password_changed_ms: now_ms,
            downloads_max: new.downloads_max,
            upload: new.upload,
            account: new.account,
            api_key: new.api_key,
            created_ms: now_ms,
            updated_ms: now_ms,
            ended_ms: None,
            ended_by: None,
            uses: Default::default(),
            uploads: Default::default(),
        };
        let entry =
            AuditRecord::new(AuditAction::LinkCreate).bucket(&bucket).account(&link.account);
        change.audit(entry.target(&link.id).detail(format!("paths: {}", link.paths.join(", "))));
        change.add(link.id.fact()?, &link)?;
        change.commit()?;
        self.require(&link.id)
    }

    /// Edits a link. A new password locks browsers that had the earlier one.
    pub fn edit(
        &self,
        id: &SharedLinkId,
        edit: SharedLinkChange,
    ) -> Result<Arc<SharedLink>, CatalogError> {
        let now_ms = self.0.now_ms();
        self.change(id, AuditAction::LinkChange, |link| {
            let SharedLinkChange { title, message, layout, zip, .. } = edit;
            link.title = title.unwrap_or_else(|| std::mem::take(&mut link.title));
            link.message = message.unwrap_or_else(|| std::mem::take(&mut link.message));
            link.layout = layout.unwrap_or(link.layout);
            link.zip = zip.unwrap_or(link.zip);
            link.expires_ms = edit.expires_ms.unwrap_or(link.expires_ms);
            link.downloads_max = edit.downloads_max.unwrap_or(link.downloads_max);
            if let Some(rules) = &mut link.upload {
                rules.apply(edit.upload);
            }
            if let Some(password) = edit.password {
                (link.password, link.password_changed_ms) = (password, now_ms);
            }
        })
    }

    /// Ends a link. The record remains for a while, so that the creator sees what it was.
    pub fn end(&self, id: &SharedLinkId) -> Result<Arc<SharedLink>, CatalogError> {
        let now_ms = self.0.now_ms();
        self.change(id, AuditAction::LinkEnd, |link| {
            (link.ended_ms, link.ended_by) = (Some(now_ms), self.author_account());
        })
    }

    fn author_account(&self) -> Option<String> {
        self.0.author.as_ref().and_then(|author| author.account.clone())
    }

    /// Reopens a link that the same account ended at most [`limits::SHARED_LINK_REOPEN_TIME`] ago. An active one stays
    /// as it is.
    pub fn reopen(&self, id: &SharedLinkId) -> Result<Arc<SharedLink>, CatalogError> {
        let change = self.0.begin();
        let before = self.require(id)?;
        let Some(ended_ms) = before.ended_ms else { return Ok(before) };
        let is_late =
            self.0.now_ms() > ended_ms.saturating_add(millis(limits::SHARED_LINK_REOPEN_TIME));
        if is_late || before.ended_by != self.author_account() {
            return Err(CatalogError::LinkEnded);
        }
        self.check_active_count(&before.account)?;
        self.commit_change(change, &before, AuditAction::LinkChange, |link| {
            (link.ended_ms, link.ended_by) = (None, None);
        })
    }

    /// Checks that an account may have one more active link.
    fn check_active_count(&self, account: &AccountId) -> Result<(), CatalogError> {
        let now_ms = self.0.now_ms();
        let table = self.0.state.shared_links.read();
        let is_counted = |link: &&Arc<SharedLink>| {
            link.account == *account && link.inactive_since_ms(now_ms).is_none()
        };
        let active = table.links.values().filter(is_counted).count();
        check_count(active, limits::SHARED_LINKS_PER_ACCOUNT_MAX, "active links")
    }

    fn change(
        &self,
        id: &SharedLinkId,
        action: AuditAction,
        edit: impl FnOnce(&mut SharedLink),
    ) -> Result<Arc<SharedLink>, CatalogError> {
        let change = self.0.begin();
        let before = self.require(id)?;
        match before.ended_ms {
            Some(_) => Err(CatalogError::LinkEnded),
            None => self.commit_change(change, &before, action, edit),
        }
    }

    fn commit_change(
        &self,
        mut change: Change<'_>,
        before: &Arc<SharedLink>,
        action: AuditAction,
        edit: impl FnOnce(&mut SharedLink),
    ) -> Result<Arc<SharedLink>, CatalogError> {
        let id = &before.id;
        let mut link = SharedLink::clone(before);
        edit(&mut link);
        link.updated_ms = self.0.now_ms();
        let detail = changed_settings(&**before, &link, &["secret", "password"]);
        let entry = AuditRecord::new(action).target(id).bucket_named(&link.bucket, self.0);
        change.audit(entry.account(&link.account).detail(detail));
        change.put(id.fact()?, &link)?;
        change.commit()?;
        self.require(id)
    }

    /// Counts a download; false if the link has reached its maximum. The count of a limited link is durable before this
    /// returns, that of another one a little later.
    pub fn count_download(&self, id: &SharedLinkId) -> Result<bool, CatalogError> {
        let link = self.require(id)?;
        let used_ms = self.0.now_ms();
        if link.downloads_max.is_none() {
            link.uses.record_download(used_ms);
            self.0.state.unwritten_link_uses.add(id);
            return Ok(true);
        }
        let mut change = self.0.begin();
        let link = self.require(id)?;
        if link.state(used_ms) != LinkState::Active {
            return Ok(false);
        }
        let (count, views) = (link.uses.downloads() + 1, link.uses.views());
        change.put(id.fact_at(link_use::PREFIX)?, &StoredLinkUse { count, views, used_ms })?;
        change.commit()?;
        Ok(true)
    }

    /// Counts a view of the page of a link.
    pub fn record_view(&self, link: &SharedLink) {
        link.uses.record_view(self.0.now_ms());
        self.0.state.unwritten_link_uses.add(&link.id);
    }

    /// Records an upload to a link as its last use.
    fn record_use(&self, link: &SharedLink) {
        link.uses.record_use(self.0.now_ms());
        self.0.state.unwritten_link_uses.add(&link.id);
    }

    /// Persists counted downloads and views, and the times of the last use. Failed writes are retried the next time.
    pub fn write_uses(&self) -> Result<(), CatalogError> {
        let mut change = self.0.begin();
        let unwritten = &self.0.state.unwritten_link_uses;
        unwritten.write_batches(limits::SHARED_LINKS_BATCH, |ids: &BTreeSet<SharedLinkId>| {
            for id in ids {
                let Some(link) = self.get(id) else { continue };
                change.put(id.fact_at(link_use::PREFIX)?, &link.uses.to_stored())?;
            }
            change.commit_any()
        })
    }

    /// Reserves the uploads of a request; `None` if they would exceed the limits of the link.
    pub fn reserve_uploads(
        &self,
        id: &SharedLinkId,
        amount: StoredAmount,
    ) -> Result<Option<UploadReservation>, CatalogError> {
        Ok(UploadReservation::new(&*self.require(id)?, amount))
    }

    /// Records the stored files of a request as a use of the link, and in the audit log. Files are not changes of the
    /// catalog, so that their batch is committed before.
    pub fn audit_upload(
        &self,
        link: &SharedLink,
        files: &[&ObjectKey],
        name: Option<&str>,
    ) -> Result<(), CatalogError> {
        self.record_use(link);
        let mut change = self.0.begin();
        let entry = AuditRecord::new(AuditAction::LinkUpload).target(&link.id);
        let files: Vec<_> = files.iter().map(|key| key.as_str()).collect();
        let name = name.map(|name| format!("name: {name}, ")).unwrap_or_default();
        let detail = format!("{name}files: {}", files.join(", "));
        let entry = entry.bucket_named(&link.bucket, self.0).account(&link.account);
        change.audit(entry.detail(detail));
        change.commit()
    }

    /// Deletes the links of a deleted bucket.
    pub(super) fn delete_all_of(&self, bucket: &BucketName) -> Result<(), CatalogError> {
        self.delete_where(|link| link.bucket == *bucket)
    }

    /// Deletes the links of a deleted account.
    pub(super) fn delete_all_by(&self, account: &AccountId) -> Result<(), CatalogError> {
        self.delete_where(|link| link.account == *account)
    }

    /// Deletes links that ended or expired long ago.
    pub fn delete_old(&self) -> Result<(), CatalogError> {
        let now_ms = self.0.now_ms();
        let retention_ms = millis(limits::SHARED_LINK_RETENTION);
        self.delete_where(|link| {
            let since = link.inactive_since_ms(now_ms);
            since.is_some_and(|since_ms| now_ms >= since_ms.saturating_add(retention_ms))
        })
    }

    fn delete_where(&self, is_deleted: impl Fn(&SharedLink) -> bool) -> Result<(), CatalogError> {
        let mut change = self.0.begin();
        for links in self.select(is_deleted).chunks(limits::SHARED_LINKS_BATCH) {
            for link in links {
                change.delete(link.id.fact()?);
                change.delete(link.id.fact_at(link_use::PREFIX)?);
            }
            change.commit_any()?;
            for link in links {
                self.delete_uploads_of(&mut change, &link.id)?;
            }
        }
        Ok(())
    }

    /// Deletes the counted uploads of a deleted link, to which none can be added.
    fn delete_uploads_of(
        &self,
        change: &mut Change<'_>,
        link: &SharedLinkId,
    ) -> Result<(), CatalogError> {
        let mut facts = Vec::new();
        each_fact(&self.0.state.store, &uploads_of(link), |fact, _| {
            facts.push(fact.clone());
            Ok(())
        })?;
        for batch in facts.chunks(limits::SHARED_LINKS_BATCH) {
            batch.iter().cloned().for_each(|fact| change.delete(fact));
            change.commit_any()?;
        }
        Ok(())
    }

    fn require(&self, id: &SharedLinkId) -> Result<Arc<SharedLink>, CatalogError> {
        self.get(id).ok_or_else(|| CatalogError::NotFound(format!("the link {id}")))
    }
}
