//! Upload, step 2: keys of the received files, and whether the bucket accepts them.
//!
//! Guarantees: what a bucket rejects, by size or type, is rejected whatever the upload method. Before thumbnails are
//! rendered, which is expensive, an upload that is certain to fail is rejected. Non-goals: taken names.

use std::borrow::Cow;

use catalog::QuotaDelta;
use catalog::{AllowedTypes, Bucket, QuotaDecision};
use engine::{Error, FolderKey, Health, ObjectKey, ObjectName};
use protocol::content_type::{detect, essence, extension_for, matches_magic};
use protocol::error::ApiError;
use protocol::file_name::{ConflictRule, Naming, file_name, split_extension};
use protocol::object_path::{PathInBucket, check_writable, key_in_folder};
use usage::task::blocking;

use super::receive::StagedFile;
use super::{UploadOptions, UploadTarget, one_file_only, thumbnails};
use crate::state::AppState;

/// Returns the key that each file would have if no name were taken, in the order of the files.
pub fn resolve_keys(
    app: &AppState,
    target: &UploadTarget,
    naming: Naming,
    files: &[StagedFile],
) -> Result<Vec<ObjectKey>, ApiError> {
    let name_of = |file: &StagedFile, path_name: Option<&str>| {
        let own_name = path_name.or(file.client_name.as_deref());
        file_name(naming, own_name, || file.content_extension(), || app.rng.uuid())
    };
    let keys_in = |folder: &FolderKey| {
        files
            .iter()
            .map(|file| key_in_folder(folder, &name_of(file, None)))
            .collect::<Result<Vec<_>, _>>()
    };
    let keys = match &target.place {
        PathInBucket::Folder(folder) => keys_in(folder)?,
        PathInBucket::File(key) => {
            let all_have_extensions =
                files.iter().all(|file| split_extension(&name_of(file, None)).1.is_some());
            let lenient_folder = target.lenient_folder().filter(|_| all_have_extensions);
            match (files, naming) {
                _ if let Some(folder) = lenient_folder => keys_in(&folder)?,
                ([_], Naming::ClientName) => vec![key.clone()],
                ([file], Naming::Random) => {
                    let has_extension = split_extension(key.file_name()).1.is_some();
                    let path_name = Some(key.file_name()).filter(|_| has_extension);
                    vec![key_in_folder(&key.folder(), &name_of(file, path_name))?]
                }
                _ => return Err(one_file_only()),
            }
        }
    };
    for key in &keys {
        check_writable(key)?;
    }
    Ok(keys)
}

/// Checks files against the rules of their bucket, and renders their thumbnails if these are wanted.
pub(super) async fn accept(
    app: &AppState,
    bucket: &Bucket,
    options: &UploadOptions,
    files: &mut [StagedFile],
    wanted: &[ObjectKey],
) -> Result<(), ApiError> {
    for (file, key) in files.iter().zip(wanted) {
        file.check_allowed(bucket, key)?;
    }
    if options.thumbnail.applies_to(bucket) {
        // Rendering a thumbnail is charged to the limited processing time of the bucket.
        precheck(app, bucket, options, files, wanted).await?;
        thumbnails::render_all(app, bucket, files).await;
    }
    Ok(())
}

/// Checks for free names, room in the quotas, and a writable store, in the order in which storing the files checks
/// them, so that the error is the same. Guarantees nothing: the batch has preconditions of its own.
async fn precheck(
    app: &AppState,
    bucket: &Bucket,
    &UploadOptions { rule, completes, .. }: &UploadOptions,
    files: &[StagedFile],
    wanted: &[ObjectKey],
) -> Result<(), ApiError> {
    let bytes: Vec<u64> = files.iter().map(|file| file.staged.bytes()).collect();
    let (app, bucket, wanted) = (app.clone(), bucket.clone(), wanted.to_vec());
    let check = move || {
        let (proposals, _claims) =
            app.jobs.claims.claim_keys(&app.store, &bucket.name, rule, &wanted)?;
        if app.catalog.quotas().is_limited(&bucket) {
            let mut growth = QuotaDelta::default();
            for (bytes, proposal) in bytes.into_iter().zip(&proposals) {
                let name = ObjectName::new(bucket.name.clone(), proposal.key.clone());
                let replaces = match proposal.rule {
                    ConflictRule::Overwrite => app.store.get(&name)?,
                    ConflictRule::Rename => None,
                };
                growth.count(bytes, replaces.as_ref());
            }
            if let QuotaDecision::Exceeded(exceeded) =
                app.catalog.quotas().reserve(&bucket, growth.amount(), completes)?
            {
                return Err(exceeded.into());
            }
        }
        match app.store.health() {
            Health::Writable => Ok(()),
            Health::Full { .. } => Err(Error::NoSpace.into()),
            Health::ReadOnly(why) => Err(Error::ReadOnly(why).into()),
        }
    };
    blocking(check).await
}

impl StagedFile {
    /// Returns the extension that matches the bytes, the client's name and the declared type.
    fn content_extension(&self) -> Option<&'static str> {
        let name = self.client_name.as_deref().unwrap_or_default();
        extension_for(&detect(name, self.content_head(), self.declared_type.as_deref()))
    }

    /// Returns the first bytes of the content; empty if the body is an encoding of the content.
    fn content_head(&self) -> &[u8] {
        match self.attributes.headers.content_encoding {
            Some(_) => &[],
            None => self.staged.head(),
        }
    }

    /// Returns the media type that is stored for the file under a key.
    pub(super) fn content_type(&self, key: &ObjectKey) -> Cow<'static, str> {
        if let Some(chosen) = &self.chosen_type {
            return Cow::Owned(chosen.clone());
        }
        detect(key.file_name(), self.content_head(), self.declared_type.as_deref())
    }

    /// Rejects a file that the bucket does not accept, whatever its upload method. A bucket restricted to media types
    /// requires proof by the content.
    pub(super) fn check_allowed(&self, bucket: &Bucket, key: &ObjectKey) -> Result<(), ApiError> {
        let bytes = self.staged.bytes();
        if let Some(limit) = bucket.file_bytes_max.filter(|limit| bytes > *limit) {
            return Err(ApiError::file_over_limit(limit));
        }
        if let Some(chosen) = &self.chosen_type {
            let proven = detect("", self.content_head(), Some(chosen));
            if proven != *chosen || !matches_magic(chosen, self.content_head()) {
                let must = format!("{chosen:?} is contradicted by the content, which is {proven}");
                return Err(ApiError::bad_parameter("contentType", &must));
            }
        }
        if bucket.allowed_types == AllowedTypes::Any {
            return Ok(());
        }
        let content_type = self.content_type(key);
        let is_allowed = bucket.allowed_types.allow(essence(&content_type));
        match is_allowed && matches_magic(&content_type, self.content_head()) {
            true => Ok(()),
            false => Err(ApiError::type_not_allowed(&content_type)),
        }
    }
}
