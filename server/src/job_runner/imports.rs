//! Import of files from URLs, one after the other, each processed like an upload.
//!
//! Guarantees: the rules of uploads apply to each file: quotas, sizes, types, the rate limit of the account; a URL that
//! was imported before a restart is not imported again; a failed URL is reported, and the next one is tried. Memory is
//! that of one upload. Non-goals: which hosts may be contacted.

use std::sync::Arc;

use bytes::Bytes;
use catalog::{Bucket, EventKind, Job, JobProgress, OnConflict, UploadParams};
use engine::{Batch, FolderKey, ObjectName, Precondition};
use http::header::CONTENT_TYPE;
use http_body::Body;
use http_body_util::BodyExt;
use percent_encoding::percent_decode_str;
use protocol::destination::OutboundUrl as Address;
use protocol::error::ApiError;
use protocol::file_name::{ConflictRule, Naming};
use protocol::object_path::PathInBucket;
use protocol::request_body::{BodyLimits, RequestBody};
use tokio::time::{sleep, timeout};
use usage::task::blocking;

use super::ended;
use super::standing::JobAuthorization;
use crate::job_board::RunningJob;
use crate::limits;
use crate::rate_limit::RateClass;
use crate::state::{AppState, EndpointTier};
use crate::upload::{
    StagedFile, UploadOptions, UploadTarget, receive_raw, resolve_keys, store_files,
};

/// Imports the files, in the order of their URLs.
pub(super) async fn import_urls(
    app: &AppState,
    job: &Job,
    (folder, urls, on_taken): (&FolderKey, &[String], OnConflict),
    standing: &JobAuthorization,
    board: &Arc<RunningJob>,
) -> Result<(), ApiError> {
    let total = urls.len() as u64;
    // Imported URLs are counted again, but their bytes already were.
    board.set_progress(|sums| {
        *sums = JobProgress { total, bytes: sums.bytes, ..JobProgress::default() }
    });
    for (at, url) in urls.iter().enumerate() {
        if !standing.check_continue()? {
            return ended(board);
        }
        let (catalog, id) = (app.catalog.clone(), job.id.clone());
        if blocking(move || catalog.is_url_done(&id, at)).await? {
            board.set_progress(|sums| sums.done += 1);
            continue;
        }
        let along = app.catalog.mark_url_done(&job.id, at)?;
        let taken = tokio::select! {
            taken = take(app, standing, folder, url, on_taken, along) => taken,
            () = stopped(app, board) => return ended(board),
        };
        let why = match taken {
            Ok(bytes) => {
                board.set_progress(|sums| {
                    sums.done += 1;
                    sums.bytes += bytes;
                });
                continue;
            }
            Err(why) => why,
        };
        board.set_progress(|sums| {
            sums.done += 1;
            sums.skipped += 1;
        });
        let (catalog, id) = (app.catalog.clone(), job.id.clone());
        blocking(move || catalog.record_failure(&id, at, &why)).await?;
    }
    Ok(())
}

/// Imports one file; returns its size, or the error.
async fn take(
    app: &AppState,
    standing: &JobAuthorization,
    folder: &FolderKey,
    url: &str,
    on_taken: OnConflict,
    along: Batch,
) -> Result<u64, String> {
    let address = Address::parse(url).map_err(|why| format!("it {why}"))?;
    let caller = standing.caller().map_err(log_and_describe)?;
    while app.rate_limiter.charge(RateClass::Upload, caller.account()).is_err() {
        sleep(limits::IMPORT_RATE_LIMIT_DELAY).await;
        standing.check().map_err(log_and_describe)?;
    }
    let bytes_max = match caller.require_plan(EndpointTier::Premium) {
        Ok(()) => app.config().upload_body_bytes_max,
        Err(_) => app.config().body_bytes_max,
    };
    let bucket = standing.bucket().map_err(log_and_describe)?;
    let received = timeout(jobs::archive::limits::IMPORT_FILE_TIMEOUT, async {
        let fetched = app.import_client.fetch(&address).await.map_err(|why| why.to_string())?;
        let declared = fetched.headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
        let declared = declared.map(str::to_owned);
        let body = metered(app, &bucket, fetched.body);
        let body = RequestBody::new(&fetched.headers, body, BodyLimits::new(bytes_max));
        let body = body.map_err(log_and_describe)?;
        receive_raw(app, &bucket, declared, body).await.map_err(log_and_describe)
    });
    let received = received.await.map_err(|_| "timed out".to_owned())??;
    // Permissions may have changed during the download.
    standing.check().map_err(log_and_describe)?;
    let bucket = standing.bucket().map_err(log_and_describe)?;
    store(app, &bucket, folder, received.with_client_name(name_of(&address)), on_taken, along)
        .await
        .map_err(log_and_describe)
}

/// Wraps the body so that its bytes are counted for the bucket as they arrive.
fn metered<B: Body<Data = Bytes> + Send + Unpin>(
    app: &AppState,
    bucket: &Bucket,
    body: B,
) -> impl Body<Data = Bytes, Error = B::Error> + Send + Unpin + use<B> {
    let (traffic, clock) = (bucket.traffic.clone(), app.clock.clone());
    body.map_frame(move |frame| {
        if let Some(bytes) = frame.data_ref() {
            traffic.advance_to(clock.unix_ms());
            traffic.add_bytes_in(bytes.len());
        }
        frame
    })
}

async fn store(
    app: &AppState,
    bucket: &Arc<Bucket>,
    folder: &FolderKey,
    file: StagedFile,
    on_taken: OnConflict,
    mut along: Batch,
) -> Result<u64, ApiError> {
    let destination = UploadTarget::exact(bucket.clone(), PathInBucket::Folder(folder.clone()));
    let files = vec![file];
    let keys = resolve_keys(app, &destination, Naming::ClientName, &files)?;
    if on_taken == OnConflict::Refuse {
        for key in &keys {
            let name = ObjectName::new(bucket.name.clone(), key.clone());
            let (store, looked_up) = (app.store.clone(), name.clone());
            if blocking(move || store.get(&looked_up)).await?.is_some() {
                return Err(ApiError::file_exists());
            }
            along = along.require(Precondition::KeyAbsent(name));
        }
    }
    let rule = match on_taken {
        // With `Refuse`, the batch requires that the name is free.
        OnConflict::Overwrite | OnConflict::Refuse => ConflictRule::Overwrite,
        OnConflict::Rename => ConflictRule::Rename,
    };
    let manner =
        UploadOptions::new(UploadParams { rule, ..UploadParams::NONE }, EventKind::CreatedByCopy);
    let kept = store_files(app, bucket, manner, along, files, &keys).await?;
    Ok(kept.iter().map(|kept| kept.object.bytes()).sum())
}

/// Returns the reported message of an error; server errors are logged as well.
fn log_and_describe(error: ApiError) -> String {
    if let Some(line) = error.log().filter(|_| error.is_failure()) {
        tracing::error!("import of a file failed: {line}");
    }
    error.message().to_owned()
}

/// Returns the file name: the last segment of the path, if any.
fn name_of(address: &Address) -> Option<String> {
    let last = address.path().path().rsplit('/').next().unwrap_or_default();
    let name = percent_decode_str(last).decode_utf8_lossy().into_owned();
    (!name.is_empty()).then_some(name)
}

/// Waits until the job is requested to stop, or the server drains.
async fn stopped(app: &AppState, board: &RunningJob) {
    let draining = async {
        while !app.is_draining() {
            sleep(jobs::archive::limits::IMPORT_DRAIN_POLL_INTERVAL).await;
        }
    };
    tokio::select! {
        () = board.cancelled() => {}
        () = draining => {}
    }
}
