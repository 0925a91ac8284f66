//! Import of files from URLs, one after the other, each processed like an upload.
//!
//! Guarantees: the rules of uploads apply to each file: quotas, sizes, types, the rate limit of the account; a URL that
//! was imported before a restart is not imported again; a failed URL is reported, and the next one is tried. Memory is
//! that of one upload. Non-goals: which hosts may be contacted.

use std::sync::Arc;

use bytes::Bytes;
use engine::{Batch, FolderKey, ObjectName, Precondition};
use http::header::CONTENT_TYPE;
use http_body::Body;
use http_body_util::BodyExt;
use percent_encoding::percent_decode_str;
use tokio::time::{sleep, timeout};

use super::ended;
use super::standing::Standing;
use crate::bridge::blocking;
use crate::catalog::{Bucket, EventKind, Job, JobSums, OnTaken, Wishes};
use crate::destination::Destination as Address;
use crate::error::ApiError;
use crate::intake::{Destination, Manner, Received, keep, receive_raw, wanted_keys};
use crate::job_board::RunningJob;
use crate::limits;
use crate::object_name::{NameRule, Naming};
use crate::rate_limit::LimitedAction;
use crate::request_body::{BodyLimits, RequestBody};
use crate::state::{AppState, Endpoint};
use crate::target::Place;

/// Imports the files, in the order of their URLs.
pub(super) async fn import(
    app: &AppState,
    job: &Job,
    (folder, urls, on_taken): (&FolderKey, &[String], OnTaken),
    standing: &Standing,
    board: &Arc<RunningJob>,
) -> Result<(), ApiError> {
    let total = urls.len() as u64;
    // Imported URLs are counted again, but their bytes already were.
    board.note(|sums| *sums = JobSums { total, bytes: sums.bytes, ..JobSums::default() });
    for (at, url) in urls.iter().enumerate() {
        if !standing.goes_on()? {
            return ended(board);
        }
        let (catalog, id) = (app.catalog.clone(), job.id.clone());
        if blocking(move || catalog.is_imported(&id, at)).await? {
            board.note(|sums| sums.done += 1);
            continue;
        }
        let along = app.catalog.importing(&job.id, at)?;
        let taken = tokio::select! {
            taken = take(app, standing, folder, url, on_taken, along) => taken,
            () = stopped(app, board) => return ended(board),
        };
        let why = match taken {
            Ok(bytes) => {
                board.note(|sums| {
                    sums.done += 1;
                    sums.bytes += bytes;
                });
                continue;
            }
            Err(why) => why,
        };
        board.note(|sums| {
            sums.done += 1;
            sums.skipped += 1;
        });
        let (catalog, id) = (app.catalog.clone(), job.id.clone());
        blocking(move || catalog.note_failure(&id, at, &why)).await?;
    }
    Ok(())
}

/// Imports one file; returns its size, or the error.
async fn take(
    app: &AppState,
    standing: &Standing,
    folder: &FolderKey,
    url: &str,
    on_taken: OnTaken,
    along: Batch,
) -> Result<u64, String> {
    let address = Address::parse(url).map_err(|why| format!("it {why}"))?;
    let caller = standing.caller().map_err(told)?;
    while app.allowances.take(LimitedAction::Upload, caller.account()).is_err() {
        sleep(limits::IMPORT_REST).await;
        standing.check().map_err(told)?;
    }
    let bytes_max = match caller.check_plan(Endpoint::Premium) {
        Ok(()) => app.config().upload_body_bytes_max,
        Err(_) => app.config().body_bytes_max,
    };
    let bucket = standing.bucket().map_err(told)?;
    let received = timeout(limits::IMPORT_FILE_WAIT, async {
        let fetched = app.imports.fetch(&address).await.map_err(|why| why.to_string())?;
        let declared = fetched.headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
        let declared = declared.map(str::to_owned);
        let body = metered(app, &bucket, fetched.body);
        let body = RequestBody::new(&fetched.headers, body, BodyLimits::new(bytes_max));
        let body = body.map_err(told)?;
        receive_raw(app, &bucket, declared, body).await.map_err(told)
    });
    let received = received.await.map_err(|_| "timed out".to_owned())??;
    // Permissions may have changed during the download.
    standing.check().map_err(told)?;
    let bucket = standing.bucket().map_err(told)?;
    store(app, &bucket, folder, received.named(name_of(&address)), on_taken, along)
        .await
        .map_err(told)
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
            traffic.turn_to(clock.unix_ms());
            traffic.note_bytes_in(bytes.len());
        }
        frame
    })
}

async fn store(
    app: &AppState,
    bucket: &Arc<Bucket>,
    folder: &FolderKey,
    file: Received,
    on_taken: OnTaken,
    mut along: Batch,
) -> Result<u64, ApiError> {
    let destination = Destination::locked(bucket.clone(), Place::Folder(folder.clone()));
    let files = vec![file];
    let keys = wanted_keys(app, &destination, Naming::Kept, &files)?;
    if on_taken == OnTaken::Refuse {
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
        OnTaken::Overwrite | OnTaken::Refuse => NameRule::Overwrite,
        OnTaken::Rename => NameRule::Suffix,
    };
    let manner = Manner::new(Wishes { rule, ..Wishes::NONE }, EventKind::CreatedByCopy);
    let kept = keep(app, bucket, manner, along, files, &keys).await?;
    Ok(kept.iter().map(|kept| kept.object.bytes()).sum())
}

/// Returns the reported message of an error; server errors are logged as well.
fn told(error: ApiError) -> String {
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
            sleep(limits::IMPORT_DRAIN_LOOK).await;
        }
    };
    tokio::select! {
        () = board.stopped() => {}
        () = draining => {}
    }
}
