//! Processing of a resumable upload within one request.
//!
//! Guarantees: an offset is durable before it is reported, even if the connection breaks; a chunk with a checksum
//! counts whole or not at all; a complete upload is stored before its full offset is reported. A started step runs to
//! completion while holding the turn, even if its request is dropped, so that no two requests write to one file. A
//! complete upload that cannot be stored for now stays complete, and each request retries.
//!
//! Non-goals: response headers.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use axum::body::Body;
use catalog::commit::commit;
use catalog::object_attributes::StoredAttributes;
use catalog::open_uploads::{SuspendedUpload, UploadLock};
use catalog::{
    Actor, Bucket, EventKind, PendingUpload, Scope, SharedLink, StagedUpload, StoredAmount,
    ThumbnailChoice, UploadParams, UploadReservation,
};
use engine::upload::{ResumableUpload, ResumePoint};
use engine::{Batch, ObjectKey, ObjectName, StagedBody};
use http::StatusCode;
use http::header::HeaderMap;
use jobs::object_operations::find_object;
use jobs::thumbnail_object::{is_thumbnail_of, thumbnail_object_name};
use protocol::error::ApiError;
use protocol::file_name::{ConflictRule, Naming, file_name};
use protocol::object_path::{PathInBucket, key_in_folder, parse_bucket_name};
use protocol::public_url::public_url;
use protocol::request_body::{BodyLimits, RequestBody};
use protocol::tus_headers::{ChunkChecksum, UploadMetadata};
use service::auth::Caller;
use service::limits;
use service::link_uploads::{
    LinkVisitor, UPLOADED_BY, attributes_of, audit_link_upload, reserve_in_link, uploader_name,
};
use service::state::AppState;
use service::upload::check_target;
use service::upload::{
    StagedFile, ThumbnailCache, UploadOptions, UploadTarget, resolve_keys, store_files,
};
use usage::task::{blocking, run_to_completion};
use uuid::Uuid;

use super::params::{CreateUploadParams, object_options};

/// Uploader: a caller, or a client of a link, with the rights of the link's creator.
#[derive(Clone)]
pub(crate) struct Uploader {
    pub(crate) caller: Caller,
    pub(crate) link: Option<LinkVisitor>,
}

impl From<Caller> for Uploader {
    fn from(caller: Caller) -> Self {
        Self { caller, link: None }
    }
}

impl Uploader {
    /// Returns the author of the upload in the audit log.
    fn actor(&self) -> Actor {
        self.link.as_ref().map_or_else(|| self.caller.actor(), |visitor| visitor.actor.clone())
    }

    fn link(&self) -> Option<&Arc<SharedLink>> {
        self.link.as_ref().map(|visitor| &visitor.link)
    }
}

/// Upload whose turn the request holds.
#[derive(Clone)]
pub(super) struct UploadSession {
    app: AppState,
    uploader: Uploader,
    pub(super) upload: PendingUpload,
    /// Released when the last clone is dropped.
    lock: Arc<UploadLock>,
}

impl UploadSession {
    /// Creates the requested upload.
    pub(super) async fn create(
        app: &AppState,
        uploader: &Uploader,
        params: CreateUploadParams,
    ) -> Result<Self, ApiError> {
        let bucket = parse_bucket_name(&params.bucket)?;
        let upload = PendingUpload {
            id: app.rng.uuid(),
            account: uploader.caller.account().id.clone(),
            bucket,
            path: params.path,
            overwrite: params.overwrite,
            randomize_name: params.randomize_name,
            thumbnail: params.thumbnail,
            length: params.length,
            metadata: params.metadata,
            received_bytes: 0,
            received_hash: [0; 32],
            expires_ms: 0,
            is_stored: false,
            key: None,
            link: uploader.link().map(|link| link.id.clone()),
        };
        let turn = app.upload_locks.acquire(upload.id).await.ok_or_else(ApiError::upload_locked)?;
        let work = Self::at(app, uploader, upload, turn);
        let destination = work.destination()?;
        work.attributes()?;
        let claimed = work.claim(&destination).await?;
        work.step(|mut work| async move {
            let (store, account) = (work.app.store.clone(), work.upload.account.clone());
            let id = work.upload.id;
            let (open, received) = blocking(move || {
                let bound = limits::TUS_PENDING_MAX;
                if PendingUpload::count(&store, &account, bound)? >= bound {
                    return Err(ApiError::too_many_uploads(bound));
                }
                let mut open = store.begin_upload(id)?;
                let received = open.sync()?;
                Ok((open, received))
            })
            .await?;
            work.save(received).await?;
            claimed.keep();
            work.leave_open(SuspendedUpload::Partial(Box::new(open))).await;
            Ok(work)
        })
        .await
    }

    /// Charges the upload to the file size limit of its bucket, the quotas of the bucket and of its owner, and the
    /// limit of unfinished uploads per account; fails if one is exceeded.
    async fn claim(
        &self,
        UploadTarget { bucket, place, .. }: &UploadTarget,
    ) -> Result<Claimed, ApiError> {
        let (app, upload) = (&self.app, &self.upload);
        check_length(bucket, upload.length)?;
        let replaced = match self.replaced_key(place)? {
            Some(key) if app.catalog.quotas().is_limited(bucket) => {
                find_object(&app.store, &ObjectName::new(bucket.name.clone(), key)).await?
            }
            _ => None,
        };
        let replaced = replaced.filter(|old| !old.is_derived());
        let staged = StagedUpload {
            account: upload.account.clone(),
            bucket: bucket.name.clone(),
            length: upload.length,
            replaced: replaced.map_or_else(StoredAmount::default, |old| StoredAmount {
                objects: 1,
                bytes: old.bytes(),
            }),
            bodies: BTreeMap::new(),
            touched_ms: app.clock.unix_ms(),
            is_completing: false,
            reservation: self.reserve_in_link()?.map(Arc::new),
        };
        let room = app.catalog.reserve_quota(bucket, staged.claim(), None).await?;
        let bound = limits::UNFINISHED_BYTES_MAX;
        let is_counted = app.catalog.staging().insert(upload.id, staged, bound);
        drop(room);
        if !is_counted {
            return Err(ApiError::too_many_unfinished_bytes(bound));
        }
        Ok(Claimed { app: app.clone(), id: upload.id, is_kept: false })
    }

    /// Reserves the share of the file in the limits of its link.
    fn reserve_in_link(&self) -> Result<Option<UploadReservation>, ApiError> {
        let Some(link) = self.uploader.link() else { return Ok(None) };
        let amount = StoredAmount { objects: 1, bytes: self.upload.length };
        reserve_in_link(&self.app, link, amount).map(Some)
    }

    /// Returns the key whose object the upload replaces, as far as it is known before the content.
    fn replaced_key(&self, place: &PathInBucket) -> Result<Option<ObjectKey>, ApiError> {
        let PendingUpload { overwrite, randomize_name, metadata, .. } = &self.upload;
        if !overwrite || *randomize_name {
            return Ok(None);
        }
        match place {
            PathInBucket::File(key) => Ok(Some(key.clone())),
            PathInBucket::Folder(folder) => {
                let metadata = UploadMetadata::parse(metadata)?;
                let name = metadata.text(&["filename", "name"]);
                let name = file_name(Naming::ClientName, name, || None, || self.app.rng.uuid());
                Ok(key_in_folder(folder, &name).ok())
            }
        }
    }

    /// Waits for the turn at an upload of the caller.
    pub(super) async fn find(
        app: &AppState,
        uploader: &Uploader,
        id: &str,
    ) -> Result<Self, ApiError> {
        let id = Uuid::parse_str(id).map_err(|_| ApiError::upload_not_found())?;
        let look = || {
            let (store, account) = (app.store.clone(), uploader.caller.account().id.clone());
            blocking(move || PendingUpload::find(&store, &account, id))
        };
        let link = uploader.link().map(|link| &link.id);
        let is_own = |upload: &PendingUpload| upload.link.as_ref() == link;
        look().await?.filter(is_own).ok_or_else(ApiError::upload_not_found)?;
        let turn = app.upload_locks.acquire(id).await.ok_or_else(ApiError::upload_locked)?;
        // The previous holder of the turn may have changed it.
        let upload = look().await?.ok_or_else(ApiError::upload_not_found)?;
        if upload.expires_ms <= app.clock.unix_ms() {
            return Err(ApiError::upload_expired());
        }
        let work = Self::at(app, uploader, upload, turn);
        work.destination()?;
        if !work.upload.is_stored && !app.catalog.staging().contains(id) {
            // Its bytes were evicted in favor of other uploads.
            work.forget().await?;
            return Err(ApiError::upload_expired());
        }
        Ok(work)
    }

    fn at(app: &AppState, uploader: &Uploader, upload: PendingUpload, turn: UploadLock) -> Self {
        Self { app: app.clone(), uploader: uploader.clone(), upload, lock: Arc::new(turn) }
    }

    /// Runs a step to completion, even if its caller is dropped: the turn is held until then.
    async fn step<F>(&self, step: impl FnOnce(Self) -> F) -> F::Output
    where
        F: Future<Output: Send> + Send + 'static,
    {
        run_to_completion(step(self.clone())).await
    }

    /// Stores a complete upload that is not stored yet, because the server was killed or had no space: a client that
    /// sees the full offset sends no more requests.
    pub(super) async fn finish_pending(self) -> Result<Self, ApiError> {
        if self.upload.is_stored || self.upload.received_bytes < self.upload.length {
            return Ok(self);
        }
        let waiting = self.lock.take();
        self.step(|work| async move {
            match waiting {
                Some(SuspendedUpload::Complete(staged, thumbnail)) => {
                    work.stored(staged, thumbnail).await
                }
                Some(SuspendedUpload::Partial(open)) => work.finished(*open).await,
                None => {
                    let open = work.resumed().await?;
                    work.finished(open).await
                }
            }
        })
        .await
    }

    /// Returns the destination of the file, after checking that the caller may write there.
    fn destination(&self) -> Result<UploadTarget, ApiError> {
        let PendingUpload { bucket, path, .. } = &self.upload;
        let bucket = self.uploader.caller.bucket(&self.app.catalog, bucket, Scope::Upload)?;
        let rules = self.uploader.link().and_then(|link| link.upload.as_ref());
        let bucket = rules.map_or(bucket.clone(), |rules| Arc::new(rules.restrict(&bucket)));
        let destination = UploadTarget::from_path(bucket, PathInBucket::parse(path)?);
        check_target(&self.uploader.caller, &destination)?;
        Ok(destination)
    }

    /// Appends bytes; the last ones store the file.
    pub(super) async fn receive(
        mut self,
        headers: &HeaderMap,
        body: Body,
    ) -> Result<Self, ApiError> {
        // The limit of the bucket may have been lowered since the upload was created.
        check_length(&self.destination()?.bucket, self.upload.length)?;
        let mut checksum = ChunkChecksum::from_header(headers)?;
        let missing = self.upload.length - self.upload.received_bytes;
        let mut body = RequestBody::new(headers, body, BodyLimits::new(missing))?;
        let mut open = self.open().await?;
        let ended = loop {
            let chunk = tokio::select! {
                biased;
                () = self.lock.preempted() => break Err(ApiError::upload_locked()),
                chunk = body.chunk() => chunk,
            };
            let chunk = match chunk {
                Ok(Some(chunk)) => chunk,
                Ok(None) => break Ok(()),
                Err(failure) => break Err(failure),
            };
            if let Some(checksum) = &mut checksum {
                checksum.update(&chunk);
            }
            if !open.push_in_memory(&chunk) {
                let push = move || open.push(&chunk).map(|()| open);
                open = self.step(|_work| blocking(push)).await?;
            }
            let unsaved = open.bytes() - self.upload.received_bytes;
            if checksum.is_none() && unsaved >= crate::limits::TUS_SYNC_EVERY_BYTES {
                (self, open) = self.step(|work| work.synced(open)).await?;
            }
        };
        let ended = match checksum {
            // The chunk is dropped with `open`: the next request resumes from the last saved offset.
            Some(checksum) => {
                ended?;
                if !checksum.matches() {
                    return Err(ApiError::checksum_mismatch());
                }
                Ok(())
            }
            None => ended,
        };
        self.step(|work| async move {
            let (work, open) = work.synced(open).await?;
            if work.upload.received_bytes == work.upload.length {
                return work.finished(open).await;
            }
            work.leave_open(SuspendedUpload::Partial(Box::new(open))).await;
            ended.map(|()| work)
        })
        .await
    }

    /// Opens the upload at its saved offset.
    async fn open(&self) -> Result<ResumableUpload, ApiError> {
        if let Some(SuspendedUpload::Partial(open)) = self.lock.take() {
            return Ok(*open);
        }
        self.step(|work| async move { work.resumed().await }).await
    }

    /// Reopens the upload from its bytes on the disk.
    async fn resumed(&self) -> Result<ResumableUpload, ApiError> {
        let (store, id, received) =
            (self.app.store.clone(), self.upload.id, self.upload.received());
        self.unless_lost(blocking(move || store.resume_upload(id, received)).await).await
    }

    /// Deletes the upload if its bytes are lost: the client has to send all of them again.
    async fn unless_lost<T>(&self, outcome: engine::Result<T>) -> Result<T, ApiError> {
        match outcome {
            Err(error) if is_lost(&error) => {
                self.forget().await?;
                Err(ApiError::upload_expired().with_log(error.to_string()))
            }
            other => Ok(other?),
        }
    }

    async fn leave_open(&self, upload: SuspendedUpload) {
        let closed = self.lock.suspend(upload, self.app.clock.unix_ms());
        if closed.is_some() {
            blocking(move || drop(closed)).await;
        }
    }

    /// Makes the received bytes durable, and saves the offset.
    async fn synced(
        mut self,
        mut open: ResumableUpload,
    ) -> Result<(Self, ResumableUpload), ApiError> {
        let (open, received) = blocking(move || {
            let received = open.sync()?;
            Ok::<_, engine::Error>((open, received))
        })
        .await?;
        self.save(received).await?;
        Ok((self, open))
    }

    /// Saves the durable offset.
    async fn save(&mut self, received: ResumePoint) -> Result<(), ApiError> {
        let expires_ms = self.app.clock.unix_ms() + catalog::limits::TUS_EXPIRY_MS;
        let ResumePoint { bytes: received_bytes, hash: received_hash } = received;
        let upload = self.upload.clone();
        self.persist(PendingUpload { received_bytes, received_hash, expires_ms, ..upload }).await
    }

    /// Persists the state of the upload, then updates the copy in memory.
    async fn persist(&mut self, upload: PendingUpload) -> Result<(), ApiError> {
        let (fact, value) = upload.fact()?;
        commit(&self.app.store, Batch::new().put_fact(fact, value)).await?;
        let (id, bytes, now_ms) = (upload.id, upload.received_bytes, self.app.clock.unix_ms());
        self.app.catalog.staging().record_received(id, id, bytes, now_ms);
        self.upload = upload;
        Ok(())
    }

    /// Finishes the body, and stores it as the file.
    async fn finished(self, open: ResumableUpload) -> Result<Self, ApiError> {
        let staged = self.unless_lost(blocking(move || open.finish()).await).await?;
        self.stored(staged, None).await
    }

    /// Stores the file, with the record of completion in the same batch. An upload that cannot be stored for now is
    /// retained.
    async fn stored(
        mut self,
        staged: StagedBody,
        thumbnail: Option<StagedBody>,
    ) -> Result<Self, ApiError> {
        let thumbnail = ThumbnailCache::new(thumbnail);
        match self.try_store(staged.clone(), thumbnail.clone()).await {
            Ok(key) => {
                // Only needed for the URL in later responses.
                let (is_stored, key) = (true, Some(key));
                self.persist(PendingUpload { is_stored, key, ..self.upload.clone() }).await?;
                self.remove_bytes().await?;
                Ok(self)
            }
            Err(error) if is_transient(&error) => {
                // A small body is quickly read again, and would take shared memory.
                if staged.is_big() {
                    self.leave_open(SuspendedUpload::Complete(staged, thumbnail.get())).await;
                }
                Err(error)
            }
            Err(error) => {
                blocking(move || drop(staged)).await;
                self.forget().await?;
                Err(error)
            }
        }
    }

    async fn try_store(
        &self,
        staged: StagedBody,
        thumbnail_kept: ThumbnailCache,
    ) -> Result<ObjectKey, ApiError> {
        let destination = self.destination()?;
        let metadata = UploadMetadata::parse(&self.upload.metadata)?;
        let text = |names: &[&str]| metadata.text(names).map(str::to_owned);
        let name = text(&["filename", "name"]);
        let file = StagedFile::new(name, text(&["filetype", "type", "contentType"]), staged);
        let mut file =
            file.with_thumbnail_cache(thumbnail_kept).with_attributes(self.attributes()?);
        if self.uploader.link.is_none() {
            file.describe(&object_options(&metadata, self.app.clock.unix_ms())?)?;
        }
        let files = vec![file];
        let naming = if self.upload.randomize_name { Naming::Random } else { Naming::ClientName };
        let rule =
            if self.upload.overwrite { ConflictRule::Overwrite } else { ConflictRule::Rename };
        let thumbnail = ThumbnailChoice::from_flag(self.upload.thumbnail);
        let keys = resolve_keys(&self.app, &destination, naming, &files)?;
        keys.iter().try_for_each(|key| self.uploader.caller.require_key_access(key))?;
        let done = PendingUpload { is_stored: true, ..self.upload.clone() };
        let (fact, value) = done.fact()?;
        let mut along = Batch::new().put_fact(fact, value);
        let reservation = self.app.catalog.staging().reservation(self.upload.id);
        if let Some(reservation) = &reservation {
            along = reservation.record(along, self.upload.id)?;
        }
        let params = UploadParams { naming, rule, thumbnail };
        let options =
            UploadOptions::new(params, EventKind::CreatedByMultipart, self.uploader.actor())
                .completing(self.upload.id);
        let stored =
            store_files(&self.app, &destination.bucket, &options, along, files, &keys).await?;
        let object = stored.into_iter().next().map(|file| file.object);
        let object = object.ok_or_else(|| ApiError::internal("the upload stored no file"))?;
        if let (Some(reservation), Some(visitor)) = (reservation, &self.uploader.link) {
            reservation.settle();
            let name = self.uploader_name()?;
            let keys = vec![object.name().key.clone()];
            audit_link_upload(&self.app, visitor, keys, name).await;
        }
        Ok(object.name().key.clone())
    }

    /// Returns the name that a client of a link gave.
    fn uploader_name(&self) -> Result<Option<String>, ApiError> {
        let Some(rules) = self.uploader.link().and_then(|link| link.upload.as_ref()) else {
            return Ok(None);
        };
        let metadata = UploadMetadata::parse(&self.upload.metadata)?;
        uploader_name(rules.ask_name, metadata.text(&[UPLOADED_BY]))
    }

    /// Returns the attributes of the file.
    fn attributes(&self) -> Result<StoredAttributes, ApiError> {
        Ok(attributes_of(self.uploader_name()?))
    }

    /// Returns the URL of the file, and of its thumbnail if there is one.
    pub(super) async fn file_urls(&self) -> Result<(Option<String>, Option<String>), ApiError> {
        let Some(key) = self.upload.key.clone() else { return Ok((None, None)) };
        let name = ObjectName::new(self.upload.bucket.clone(), key);
        let address = |name: &ObjectName| public_url(self.app.public_url.as_str(), name);
        let url = address(&name);
        let Ok(thumbnail) = thumbnail_object_name(&name) else { return Ok((Some(url), None)) };
        let found = find_object(&self.app.store, &thumbnail).await?;
        let is_its = found.is_some_and(|found| is_thumbnail_of(&found, &name.key));
        Ok((Some(url), is_its.then(|| address(&thumbnail))))
    }

    /// Terminates the upload.
    pub(super) async fn terminate(&self) -> Result<(), ApiError> {
        self.step(|work| async move { work.forget().await }).await
    }

    /// Deletes the upload and its bytes.
    async fn forget(&self) -> Result<(), ApiError> {
        let (fact, _) = self.upload.fact()?;
        commit(&self.app.store, Batch::new().delete_fact(fact)).await?;
        self.app.catalog.staging().remove(self.upload.id);
        let waiting = self.lock.take();
        blocking(move || drop(waiting)).await;
        self.remove_bytes().await
    }

    async fn remove_bytes(&self) -> Result<(), ApiError> {
        let (store, id) = (self.app.store.clone(), self.upload.id);
        Ok(blocking(move || store.remove_upload(id)).await?)
    }
}

/// Guard that releases the reservation of a new upload unless its record is stored.
struct Claimed {
    app: AppState,
    id: Uuid,
    is_kept: bool,
}

impl Claimed {
    fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        if !self.is_kept {
            self.app.catalog.staging().remove(self.id);
        }
    }
}

fn check_length(bucket: &Bucket, bytes: u64) -> Result<(), ApiError> {
    match bucket.file_bytes_max {
        Some(limit) if bytes > limit => Err(ApiError::file_over_limit(limit)),
        _ => Ok(()),
    }
}

/// Returns whether a storing error may be transient.
pub(super) fn is_transient(error: &ApiError) -> bool {
    error.status().is_server_error() || error.status() == StatusCode::CONFLICT
}

/// Returns whether the bytes of an upload are missing or corrupt.
fn is_lost(error: &engine::Error) -> bool {
    match error {
        engine::Error::Corrupt(_) => true,
        engine::Error::Io { source, .. } => source.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    }
}
