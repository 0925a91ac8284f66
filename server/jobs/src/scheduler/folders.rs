//! Jobs on the files of a folder, or of a whole bucket.
//!
//! A job affects only versions that existed when it was requested, whose records have smaller LSNs. A job that is
//! restarted therefore processes what is left, and nothing newer. Guarantees: memory is bounded by one page of the
//! listing; concurrent changes are preserved. Non-goals: single files.

use std::ops::ControlFlow;

use catalog::{Bucket, ObjectEvent, OnConflict};
use engine::history::{DeletedFilter, LsnRange};
use engine::listing::KeyPage;
use engine::{Error, FolderKey, Object, ObjectKey};
use protocol::error::ApiError;
use usage::task::blocking;

use super::job_run::JobRun;
use crate::object_operations::{
    DeleteOutcome, delete_versions, log_span, move_versions, undelete_many,
};
use crate::{Context, limits};

/// Deletes the files of a folder.
pub(super) async fn delete(run: &JobRun, folder: &FolderKey) -> Result<(), ApiError> {
    let JobRun { job, running, .. } = run;
    let context = &run.authored_context()?;
    let bucket = run.bucket()?;
    count(run, &bucket, folder).await?;
    let mut after = None;
    let mut tries = 0;
    while run.check_continue()? {
        let page = page(context, &bucket, folder, after.clone(), limits::DELETE_FILES_MAX).await?;
        let (last, more) = (page.objects.last().map(|it| it.name().key.to_string()), page.more);
        let existing = page.objects.into_iter().filter(|it| it.lsn() <= job.began_lsn).collect();
        match delete_versions(context, &bucket, existing, ObjectEvent::removed).await? {
            DeleteOutcome::Files { files, bytes } => {
                running.set_progress(|progress| {
                    progress.done += files;
                    progress.bytes += bytes;
                });
                after = last;
                tries = 0;
                if !more {
                    return Ok(());
                }
            }
            DeleteOutcome::Changed => {
                tries += 1;
                if tries > limits::JOB_TRIES_MAX {
                    return Err(ApiError::conflict("The folder kept changing: try again"));
                }
            }
        }
    }
    run.stopped_result()
}

/// Moves the files of a folder to another one.
pub(super) async fn move_all(
    run: &JobRun,
    folder: &FolderKey,
    to: &FolderKey,
    on_conflict: OnConflict,
) -> Result<(), ApiError> {
    let JobRun { job, running, .. } = run;
    let context = &run.authored_context()?;
    let bucket = run.bucket()?;
    count(run, &bucket, folder).await?;
    let is_stopped = run.cancel_check();
    loop {
        let mut after = None;
        let (mut moved, mut skipped) = (0, 0);
        loop {
            if !run.check_continue()? {
                return run.stopped_result();
            }
            let page = page(context, &bucket, folder, after, limits::MOVE_BATCH_FILES_MAX).await?;
            after = page.objects.last().map(|it| it.name().key.to_string());
            let mut files = Vec::new();
            for object in page.objects {
                if object.is_derived() || object.lsn() > job.began_lsn {
                    continue;
                }
                let rest = &object.name().key.as_str()[folder.as_str().len()..];
                match ObjectKey::parse(&format!("{to}{rest}")) {
                    Ok(key) => files.push((object, key)),
                    // The new name would be too long.
                    Err(_) => skipped += 1,
                }
            }
            let done = move_versions(context, &bucket, files, on_conflict, &is_stopped).await?;
            moved += done.files;
            skipped += done.skipped;
            running.set_progress(|progress| {
                progress.done += done.files;
                progress.bytes += done.bytes;
                progress.skipped = skipped;
            });
            if !page.more {
                break;
            }
        }
        if is_stopped() {
            return run.stopped_result();
        }
        // The file in the way may itself have been moved: when moving to a parent folder, `a/a/x` waits for `a/x`.
        if moved == 0 || skipped == 0 {
            return Ok(());
        }
    }
}

/// Restores the deleted files of a folder.
pub(super) async fn undelete(
    run: &JobRun,
    folder: &FolderKey,
    since_ms: u64,
) -> Result<(), ApiError> {
    let running = &run.running;
    let context = &run.authored_context()?;
    let bucket = run.bucket()?;
    let found = find_deleted(run, &bucket, folder, since_ms).await?;
    let Some((mut versions, lost)) = found else { return run.stopped_result() };
    let files = versions.iter().filter(|it| !it.is_derived()).count() as u64;
    running.set_progress(|progress| {
        progress.total = progress.done + files + lost;
        progress.skipped = lost;
    });
    let is_stopped = run.cancel_check();
    while !versions.is_empty() {
        if !run.check_continue()? {
            return run.stopped_result();
        }
        let rest = versions.split_off(versions.len().min(limits::MOVE_BATCH_FILES_MAX));
        let done = undelete_many(context, &bucket, versions, &is_stopped).await?;
        running.set_progress(|progress| {
            progress.done += done.files;
            progress.bytes += done.bytes;
            progress.skipped += done.skipped;
        });
        versions = rest;
    }
    match is_stopped() {
        true => run.stopped_result(),
        false => Ok(()),
    }
}

/// Finds the newest deleted version of each file by a log scan, and the number of files without an intact one; `None`
/// if the job is to stop.
async fn find_deleted(
    run: &JobRun,
    bucket: &Bucket,
    folder: &FolderKey,
    since_ms: u64,
) -> Result<Option<(Vec<Object>, u64)>, ApiError> {
    let permit = tokio::select! {
        permit = run.context.log_scan_permit() => permit?,
        () = run.running.cancelled() => return Ok(None),
    };
    let (span, put_since_ms) = log_span(bucket);
    let span = LsnRange { through_lsn: run.job.began_lsn, ..span };
    let (bucket, folder) = (bucket.name.clone(), folder.clone());
    let filter = DeletedFilter { bucket, folder, since_ms, span };
    let run = run.clone();
    let find = move || {
        let _permit = permit;
        run.context.store.newest_deleted_versions(&filter, &mut |_| match run.is_stopped() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        })
    };
    let found = match blocking(find).await {
        Err(Error::Cancelled) => return Ok(None),
        found => found?,
    };
    let (mut versions, mut lost) = (Vec::new(), 0);
    for version in found {
        match version {
            Ok(version) if version.modified_ms() >= put_since_ms => versions.push(version),
            // It belongs to an earlier bucket of this name.
            Ok(_) => {}
            Err(_) => lost += 1,
        }
    }
    Ok(Some((versions, lost)))
}

/// Counts the remaining files, after those that are done.
async fn count(run: &JobRun, bucket: &Bucket, folder: &FolderKey) -> Result<(), ApiError> {
    let JobRun { context, job, running, .. } = run;
    let mut after = None;
    let mut left = 0;
    while run.check_continue()? {
        let page = page(context, bucket, folder, after, engine::limits::LIST_PAGE_MAX).await?;
        let existed = |it: &&Object| !it.is_derived() && it.lsn() <= job.began_lsn;
        left += page.objects.iter().filter(existed).count() as u64;
        after = page.objects.last().map(|it| it.name().key.to_string());
        if !page.more {
            break;
        }
    }
    running.set_progress(|progress| progress.total = progress.done + left);
    Ok(())
}

async fn page(
    context: &Context,
    bucket: &Bucket,
    folder: &FolderKey,
    after: Option<String>,
    limit: usize,
) -> Result<KeyPage, ApiError> {
    let (store, bucket, folder) = (context.store.clone(), bucket.name.clone(), folder.clone());
    let list = move || store.list_keys(&bucket, folder.as_str(), after.as_deref(), limit);
    Ok(blocking(list).await?)
}
