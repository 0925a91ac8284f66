//! Import of files from URLs, one after the other, each processed like an upload.
//!
//! Guarantees: the rules of uploads apply to each file: quotas, sizes, types, the rate limit of the account; a URL that
//! was imported before a restart is not imported again; a failed URL is reported, and the next one is tried. Memory is
//! that of one upload. Non-goals: which hosts may be contacted.

use catalog::{JobProgress, OnConflict};
use engine::{Batch, FolderKey, StagedBody};
use http::header::CONTENT_TYPE;
use http_body_util::BodyExt;
use percent_encoding::percent_decode_str;
use protocol::destination::OutboundUrl;
use protocol::error::ApiError;
use protocol::object_path::PathInBucket;
use protocol::request_body::{BodyLimits, RequestBody};
use tokio::time::{sleep, timeout};
use usage::task::blocking;

use super::job_run::JobRun;
use crate::archive::limits::{IMPORT_DRAIN_POLL_INTERVAL, IMPORT_FILE_TIMEOUT};
use crate::limits;
use crate::services::{JobPrincipal, NewFile};

/// Imports the files, in the order of their URLs.
pub(super) async fn import_urls(
    run: &JobRun,
    folder: &FolderKey,
    urls: &[String],
    on_conflict: OnConflict,
) -> Result<(), ApiError> {
    let JobRun { context, job, running, .. } = run;
    let total = urls.len() as u64;
    // Imported URLs are counted again, but their bytes already were.
    running.set_progress(|progress| {
        *progress = JobProgress { total, bytes: progress.bytes, ..JobProgress::default() }
    });
    for (at, url) in urls.iter().enumerate() {
        if !run.check_continue()? {
            return run.stopped_result();
        }
        let (catalog, id) = (context.catalog.clone(), job.id.clone());
        if blocking(move || catalog.jobs().is_url_done(&id, at)).await? {
            running.set_progress(|progress| progress.done += 1);
            continue;
        }
        let along = context.catalog.jobs().mark_url_done(&job.id, at)?;
        let imported = tokio::select! {
            imported = import_url(run, folder, url, on_conflict, along) => imported,
            () = stopped(run) => return run.stopped_result(),
        };
        let why = match imported {
            Ok(bytes) => {
                running.set_progress(|progress| {
                    progress.done += 1;
                    progress.bytes += bytes;
                });
                continue;
            }
            Err(why) => why,
        };
        running.set_progress(|progress| {
            progress.done += 1;
            progress.skipped += 1;
        });
        let (catalog, id) = (context.catalog.clone(), job.id.clone());
        blocking(move || catalog.jobs().record_failure(&id, at, &why)).await?;
    }
    Ok(())
}

/// Imports one file; returns its size, or the error.
async fn import_url(
    run: &JobRun,
    folder: &FolderKey,
    url: &str,
    on_conflict: OnConflict,
    along: Batch,
) -> Result<u64, String> {
    let url = OutboundUrl::parse(url).map_err(|why| format!("it {why}"))?;
    let principal = run.authorize().map_err(log_and_describe)?;
    while !run.services.charge_upload(&principal.account) {
        sleep(limits::IMPORT_RATE_LIMIT_DELAY).await;
        run.authorize().map_err(log_and_describe)?;
    }
    let downloaded = timeout(IMPORT_FILE_TIMEOUT, download(run, &principal, &url)).await;
    let (body, declared_type) = downloaded.map_err(|_| "timed out".to_owned())??;
    // Permissions may have changed during the download.
    let JobPrincipal { actor, .. } = run.authorize().map_err(log_and_describe)?;
    let bucket = run.bucket().map_err(log_and_describe)?;
    let file = NewFile::Download { body, name: name_of(&url), declared_type };
    let place = PathInBucket::Folder(folder.clone());
    let stored = run.services.store(actor, &bucket, place, file, on_conflict, along).await;
    Ok(stored.map_err(log_and_describe)?.object.bytes())
}

/// Downloads a file, whose bytes are counted for the bucket as they arrive. Returns it with its declared type.
async fn download(
    run: &JobRun,
    principal: &JobPrincipal,
    url: &OutboundUrl,
) -> Result<(StagedBody, Option<String>), String> {
    let bucket = run.bucket().map_err(log_and_describe)?;
    let fetched = run.context.import_client.fetch(url).await.map_err(|why| why.to_string())?;
    let declared_type = fetched.headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let declared_type = declared_type.map(str::to_owned);
    let (traffic, clock) = (bucket.traffic.clone(), run.context.clock.clone());
    let metered = fetched.body.map_frame(move |frame| {
        if let Some(bytes) = frame.data_ref() {
            traffic.advance_to(clock.unix_ms());
            traffic.add_bytes_in(bytes.len());
        }
        frame
    });
    let limits = BodyLimits::new(principal.upload_bytes_max);
    let body = RequestBody::new(&fetched.headers, metered.boxed_unsync(), limits);
    let body = body.map_err(log_and_describe)?;
    let received = run.services.receive(&bucket, body).await.map_err(log_and_describe)?;
    Ok((received, declared_type))
}

/// Returns the reported message of an error; server errors are logged as well.
fn log_and_describe(error: ApiError) -> String {
    if let Some(line) = error.log().filter(|_| error.is_failure()) {
        tracing::error!("import of a file failed: {line}");
    }
    error.message().to_owned()
}

/// Returns the file name: the last segment of the path, if any.
fn name_of(url: &OutboundUrl) -> Option<String> {
    let last = url.path().path().rsplit('/').next().unwrap_or_default();
    let name = percent_decode_str(last).decode_utf8_lossy().into_owned();
    (!name.is_empty()).then_some(name)
}

/// Waits until the job is cancelled, or the server drains.
async fn stopped(run: &JobRun) {
    let draining = async {
        while !run.context.is_draining() {
            sleep(IMPORT_DRAIN_POLL_INTERVAL).await;
        }
    };
    tokio::select! {
        () = run.running.cancelled() => {}
        () = draining => {}
    }
}
