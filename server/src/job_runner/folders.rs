//! Jobs on the files of a folder, or of a whole bucket.
//!
//! A job affects only versions that existed when it was requested, whose records have smaller LSNs. A job that is
//! restarted therefore processes what is left, and nothing newer. Guarantees: memory is bounded by one page of the
//! listing; concurrent changes are preserved. Non-goals: single files.

use std::sync::Arc;

use catalog::{Bucket, Job, OnConflict};
use engine::history::{DeletedFilter, LsnRange};
use engine::listing::KeyPage;
use engine::{FolderKey, Object, ObjectKey};
use protocol::error::ApiError;
use usage::task::blocking;

use super::standing::JobAuthorization;
use super::{cancel_check, ended};
use crate::filing::{DeleteOutcome, delete_versions, log_span, move_versions, undelete_many};
use crate::job_board::RunningJob;
use crate::limits;
use crate::state::AppState;

/// Deletes the files of a folder.
pub(super) async fn delete(
    app: &AppState,
    job: &Job,
    folder: &FolderKey,
    standing: &JobAuthorization,
    board: &RunningJob,
) -> Result<(), ApiError> {
    let bucket = standing.bucket()?;
    count(app, job, &bucket, folder, standing, board).await?;
    let mut after = None;
    let mut tries = 0;
    while standing.check_continue()? {
        let page = page(app, &bucket, folder, after.clone(), limits::DELETE_FILES_MAX).await?;
        let (last, more) = (page.objects.last().map(|it| it.name().key.to_string()), page.more);
        let meant = page.objects.into_iter().filter(|it| it.lsn() <= job.began_lsn).collect();
        match delete_versions(app, &bucket, meant).await? {
            DeleteOutcome::Files { files, bytes } => {
                board.set_progress(|sums| {
                    sums.done += files;
                    sums.bytes += bytes;
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
    ended(board)
}

/// Moves the files of a folder to another one.
pub(super) async fn move_all(
    app: &AppState,
    job: &Job,
    (folder, to, on_taken): (&FolderKey, &FolderKey, OnConflict),
    standing: &JobAuthorization,
    board: &Arc<RunningJob>,
) -> Result<(), ApiError> {
    let bucket = standing.bucket()?;
    count(app, job, &bucket, folder, standing, board).await?;
    let is_stopped = cancel_check(app, board);
    loop {
        let mut after = None;
        let (mut moved, mut skipped) = (0, 0);
        loop {
            if !standing.check_continue()? {
                return ended(board);
            }
            let page = page(app, &bucket, folder, after, limits::MOVE_BATCH_FILES_MAX).await?;
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
            let done = move_versions(app, &bucket, files, on_taken, &is_stopped).await?;
            moved += done.files;
            skipped += done.skipped;
            board.set_progress(|sums| {
                sums.done += done.files;
                sums.bytes += done.bytes;
                sums.skipped = skipped;
            });
            if !page.more {
                break;
            }
        }
        if is_stopped() {
            return ended(board);
        }
        // The file in the way may itself have been moved: when moving to a parent folder, `a/a/x` waits for `a/x`.
        if moved == 0 || skipped == 0 {
            return Ok(());
        }
    }
}

/// Restores the deleted files of a folder.
pub(super) async fn undelete(
    app: &AppState,
    job: &Job,
    folder: &FolderKey,
    since_ms: u64,
    standing: &JobAuthorization,
    board: &Arc<RunningJob>,
) -> Result<(), ApiError> {
    let bucket = standing.bucket()?;
    let (span, put_since_ms) = log_span(&bucket);
    let span = LsnRange { through_lsn: job.began_lsn, ..span };
    let is_stopped = cancel_check(app, board);
    let found = {
        let turn = tokio::select! {
            turn = app.log_scan_lock.clone().acquire_owned() => turn,
            () = board.cancelled() => return Ok(()),
        };
        let turn = turn.map_err(|_| ApiError::overloaded(1))?;
        let (store, bucket, folder) = (app.store.clone(), bucket.name.clone(), folder.clone());
        let asked = DeletedFilter { bucket, folder, since_ms, span };
        let is_stopped = is_stopped.clone();
        let find = move || {
            let _turn = turn;
            let mut watch = |_| match is_stopped() {
                true => std::ops::ControlFlow::Break(()),
                false => std::ops::ControlFlow::Continue(()),
            };
            store.newest_deleted_versions(&asked, &mut watch)
        };
        blocking(find).await
    };
    let found = match found {
        Err(engine::Error::Cancelled) => return ended(board),
        found => found?,
    };
    let is_ours = |it: &Object| it.modified_ms() >= put_since_ms;
    let (mut versions, mut lost) = (Vec::new(), 0);
    for found in found {
        match found {
            Ok(version) if is_ours(&version) => versions.push(version),
            Ok(_) => {}
            Err(_) => lost += 1,
        }
    }
    let files = versions.iter().filter(|it| !it.is_derived()).count() as u64;
    board.set_progress(|sums| {
        sums.total = sums.done + files + lost;
        sums.skipped = lost;
    });
    while !versions.is_empty() {
        if !standing.check_continue()? {
            return ended(board);
        }
        let rest = versions.split_off(versions.len().min(limits::MOVE_BATCH_FILES_MAX));
        let done = undelete_many(app, &bucket, versions, &is_stopped).await?;
        board.set_progress(|sums| {
            sums.done += done.files;
            sums.bytes += done.bytes;
            sums.skipped += done.skipped;
        });
        versions = rest;
    }
    match is_stopped() {
        true => ended(board),
        false => Ok(()),
    }
}

/// Counts the remaining files, after those that are done.
async fn count(
    app: &AppState,
    job: &Job,
    bucket: &Bucket,
    folder: &FolderKey,
    standing: &JobAuthorization,
    board: &RunningJob,
) -> Result<(), ApiError> {
    let mut after = None;
    let mut left = 0;
    while standing.check_continue()? {
        let page = page(app, bucket, folder, after, engine::limits::LIST_PAGE_MAX).await?;
        let is_meant = |it: &&Object| !it.is_derived() && it.lsn() <= job.began_lsn;
        left += page.objects.iter().filter(is_meant).count() as u64;
        after = page.objects.last().map(|it| it.name().key.to_string());
        if !page.more {
            break;
        }
    }
    board.set_progress(|sums| sums.total = sums.done + left);
    Ok(())
}

async fn page(
    app: &AppState,
    bucket: &Bucket,
    folder: &FolderKey,
    after: Option<String>,
    limit: usize,
) -> Result<KeyPage, ApiError> {
    let (store, bucket, folder) = (app.store.clone(), bucket.name.clone(), folder.clone());
    let list = move || store.list_keys(&bucket, folder.as_str(), after.as_deref(), limit);
    Ok(blocking(list).await?)
}
