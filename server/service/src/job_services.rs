//! What the server does for background jobs: their authorization, rate limits, and the upload of imported and copied
//! files.

use std::sync::Arc;

use catalog::{
    Account, Actor, Bucket, Catalog, EventKind, Job, JobSpec, OnConflict, Scope, UploadParams,
};
use engine::{Batch, ObjectName, Precondition, StagedBody};
use jobs::object_operations::find_object;
use jobs::services::{BoxFuture, DownloadBody, JobPrincipal, NewFile, Services, StoredFile};
use protocol::error::ApiError;
use protocol::file_name::{ConflictRule, Naming};
use protocol::object_path::PathInBucket;

use crate::auth::Caller;
use crate::rate_limit::RateClass;
use crate::state::{AppState, EndpointTier};
use crate::upload::{
    StagedFile, UploadOptions, UploadTarget, receive_raw, resolve_keys, store_files,
};

/// Checks that a caller may run such a job.
pub fn check_allowed(catalog: &Catalog, caller: &Caller, work: &JobSpec) -> Result<(), ApiError> {
    let Some(bucket) = work.bucket() else {
        return caller.require_operator("begins jobs for the whole store");
    };
    for scope in required_scopes(work) {
        caller.bucket(catalog, bucket, *scope)?;
    }
    work.folders().iter().try_for_each(|folder| caller.require_folder_access(folder))
}

/// Returns the scopes that a job needs in a bucket.
fn required_scopes(work: &JobSpec) -> &'static [Scope] {
    match work {
        JobSpec::ImportUrls { .. } => &[Scope::Upload],
        JobSpec::DeleteFolder { .. } | JobSpec::EmptyBucket { .. } => &[Scope::Delete],
        JobSpec::MoveFolder { .. } | JobSpec::UndeleteFolder { .. } => {
            &[Scope::Upload, Scope::Delete]
        }
        JobSpec::Compact { .. } | JobSpec::Scrub => &[Scope::Manage],
    }
}

impl Services for AppState {
    fn authorize(&self, job: &Job) -> Result<JobPrincipal, ApiError> {
        let caller = Caller::from_issuer(&self.catalog, &job.issuer).ok_or_else(|| {
            ApiError::forbidden(
                "The API key or account that started this job is no longer authorized",
            )
        })?;
        check_allowed(&self.catalog, &caller, &job.work)?;
        let upload_bytes_max = match caller.require_plan(EndpointTier::Premium) {
            Ok(()) => self.config().upload_body_bytes_max,
            Err(_) => self.config().body_bytes_max,
        };
        let (account, actor) = (caller.account().clone(), caller.actor());
        Ok(JobPrincipal { account, actor, upload_bytes_max })
    }

    fn charge_upload(&self, account: &Account) -> bool {
        self.rate_limiter.charge(RateClass::Upload, account).is_ok()
    }

    fn receive<'a>(
        &'a self,
        bucket: &'a Bucket,
        body: DownloadBody,
    ) -> BoxFuture<'a, Result<StagedBody, ApiError>> {
        Box::pin(async move { Ok(receive_raw(self, bucket, None, body).await?.staged) })
    }

    fn store<'a>(
        &'a self,
        actor: Actor,
        bucket: &'a Arc<Bucket>,
        place: PathInBucket,
        file: NewFile,
        on_conflict: OnConflict,
        along: Batch,
    ) -> BoxFuture<'a, Result<StoredFile, ApiError>> {
        Box::pin(store_file(self, actor, bucket, place, file, on_conflict, along))
    }
}

async fn store_file(
    app: &AppState,
    actor: Actor,
    bucket: &Arc<Bucket>,
    place: PathInBucket,
    file: NewFile,
    on_conflict: OnConflict,
    mut along: Batch,
) -> Result<StoredFile, ApiError> {
    let files = vec![match file {
        NewFile::Download { body, name, declared_type } => {
            StagedFile::new(name, declared_type, body)
        }
        NewFile::Copy { body, of } => StagedFile::copy_of(&of, body),
    }];
    let target = UploadTarget::exact(bucket.clone(), place);
    let keys = resolve_keys(app, &target, Naming::ClientName, &files)?;
    if on_conflict == OnConflict::Refuse {
        for key in &keys {
            let name = ObjectName::new(bucket.name.clone(), key.clone());
            if find_object(&app.store, &name).await?.is_some() {
                return Err(ApiError::file_exists());
            }
            along = along.require(Precondition::KeyAbsent(name));
        }
    }
    let rule = match on_conflict {
        // With `Refuse`, the batch requires that the name is free.
        OnConflict::Overwrite | OnConflict::Refuse => ConflictRule::Overwrite,
        OnConflict::Rename => ConflictRule::Rename,
    };
    let params = UploadParams { rule, ..UploadParams::NONE };
    let options = UploadOptions::new(params, EventKind::CreatedByCopy, actor);
    let stored = store_files(app, bucket, &options, along, files, &keys).await?;
    let stored = stored.into_iter().next();
    let stored = stored.ok_or_else(|| ApiError::internal("an upload stored nothing"))?;
    Ok(StoredFile { object: stored.object, renamed: stored.renamed })
}
