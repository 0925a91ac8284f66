//! Jobs on the files of a folder, or of a whole bucket.
//!
//! A job affects only versions that existed when it was requested, whose records have smaller LSNs. A job that is
//! restarted therefore processes what is left, and nothing newer. Guarantees: memory is bounded by one page of the
//! listing; concurrent changes are preserved. Non-goals: single files.

use std::sync::Arc;

use engine::{DeletedAsked, FolderKey, KeyPage, LogSpan, Object, ObjectKey};

use super::standing::Standing;
use super::{ended, is_stopped};
use crate::bridge::blocking;
use crate::catalog::{Bucket, Job, OnTaken};
use crate::error::ApiError;
use crate::filing::{Deleted, delete_seen, move_many, restore_many, span_of};
use crate::job_board::RunningJob;
use crate::limits;
use crate::state::AppState;

/// Deletes the files of a folder.
pub(super) async fn delete(
    app: &AppState,
    job: &Job,
    folder: &FolderKey,
    standing: &Standing,
    board: &RunningJob,
) -> Result<(), ApiError> {
    let bucket = standing.bucket()?;
    count(app, job, &bucket, folder, standing, board).await?;
    let mut after = None;
    let mut tries = 0;
    while standing.goes_on()? {
        let page = page(app, &bucket, folder, after.clone(), limits::DELETE_FILES_MAX).await?;
        let (last, more) = (page.objects.last().map(|it| it.name().key.to_string()), page.more);
        let meant = page.objects.into_iter().filter(|it| it.lsn() <= job.began_lsn).collect();
        match delete_seen(app, &bucket, meant).await? {
            Deleted::Files { files, bytes } => {
                board.note(|sums| {
                    sums.done += files;
                    sums.bytes += bytes;
                });
                after = last;
                tries = 0;
                if !more {
                    return Ok(());
                }
            }
            Deleted::Changed => {
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
    (folder, to, on_taken): (&FolderKey, &FolderKey, OnTaken),
    standing: &Standing,
    board: &Arc<RunningJob>,
) -> Result<(), ApiError> {
    let bucket = standing.bucket()?;
    count(app, job, &bucket, folder, standing, board).await?;
    let is_stopped = is_stopped(app, board);
    loop {
        let mut after = None;
        let (mut moved, mut skipped) = (0, 0);
        loop {
            if !standing.goes_on()? {
                return ended(board);
            }
            let page = page(app, &bucket, folder, after, limits::MOVED_TOGETHER_MAX).await?;
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
            let done = move_many(app, &bucket, files, on_taken, &is_stopped).await?;
            moved += done.files;
            skipped += done.skipped;
            board.note(|sums| {
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
    standing: &Standing,
    board: &Arc<RunningJob>,
) -> Result<(), ApiError> {
    let bucket = standing.bucket()?;
    let (span, put_since_ms) = span_of(&bucket);
    let span = LogSpan { until_lsn: job.began_lsn, ..span };
    let is_stopped = is_stopped(app, board);
    let found = {
        let turn = tokio::select! {
            turn = app.log_look.clone().acquire_owned() => turn,
            () = board.stopped() => return Ok(()),
        };
        let turn = turn.map_err(|_| ApiError::overloaded(1))?;
        let (store, bucket, folder) = (app.store.clone(), bucket.name.clone(), folder.clone());
        let asked = DeletedAsked { bucket, folder, since_ms, span };
        let is_stopped = is_stopped.clone();
        let find = move || {
            let _turn = turn;
            let mut watch = |_| match is_stopped() {
                true => std::ops::ControlFlow::Break(()),
                false => std::ops::ControlFlow::Continue(()),
            };
            store.deleted(&asked, &mut watch)
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
    board.note(|sums| {
        sums.total = sums.done + files + lost;
        sums.skipped = lost;
    });
    while !versions.is_empty() {
        if !standing.goes_on()? {
            return ended(board);
        }
        let rest = versions.split_off(versions.len().min(limits::MOVED_TOGETHER_MAX));
        let done = restore_many(app, &bucket, versions, &is_stopped).await?;
        board.note(|sums| {
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
    standing: &Standing,
    board: &RunningJob,
) -> Result<(), ApiError> {
    let mut after = None;
    let mut left = 0;
    while standing.goes_on()? {
        let page = page(app, bucket, folder, after, engine::limits::LIST_PAGE_MAX).await?;
        let is_meant = |it: &&Object| !it.is_derived() && it.lsn() <= job.began_lsn;
        left += page.objects.iter().filter(is_meant).count() as u64;
        after = page.objects.last().map(|it| it.name().key.to_string());
        if !page.more {
            break;
        }
    }
    board.note(|sums| sums.total = sums.done + left);
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
