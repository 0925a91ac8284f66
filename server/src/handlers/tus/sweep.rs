//! Expiry of resumable uploads.
//!
//! Guarantees: bytes without a record are removed, and those of a stored file, even while a request reads its state;
//! records are removed with their bytes; an upload in use is skipped. Non-goals: the expiry time, which is part of the
//! record.

use std::collections::BTreeSet;

use catalog::{CatalogError, PendingUpload};
use engine::Batch;
use service::state::AppState;
use usage::task::blocking;

/// Sweeps immediately, and then periodically.
pub async fn run_expiry_loop(app: AppState) {
    loop {
        let swept = app.clone();
        match blocking(move || expire_uploads(&swept)).await {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "resumable uploads expired"),
            Err(error) => tracing::warn!("failed to expire resumable uploads: {error}"),
        }
        tokio::time::sleep(catalog::limits::TUS_SWEEP_INTERVAL).await;
    }
}

/// Removes expired uploads, and returns their number. Blocks on the disk.
pub fn expire_uploads(app: &AppState) -> Result<usize, CatalogError> {
    // Lists the files first, so that an upload created concurrently is not among them.
    let files = app.store.resumable_uploads()?;
    // An upload in use may not have a record yet.
    let begun: BTreeSet<_> =
        files.iter().copied().filter(|id| app.upload_locks.is_locked(*id)).collect();
    let now_ms = app.clock.unix_ms();
    let (mut kept, mut stored, mut expired) = (BTreeSet::new(), BTreeSet::new(), 0);
    kept.extend(catalog::MultipartUpload::sweep(&app.store, app.catalog.staging(), now_ms)?);
    let mut after = None;
    loop {
        let (page, last) = PendingUpload::page(&app.store, after.as_ref())?;
        if last.is_none() {
            break;
        }
        after = last;
        for upload in page {
            let is_evicted = !upload.is_stored && !app.catalog.staging().contains(upload.id);
            let is_over = upload.expires_ms <= now_ms || is_evicted;
            if !is_over || app.upload_locks.is_locked(upload.id) {
                let ids = if upload.is_stored { &mut stored } else { &mut kept };
                ids.insert(upload.id);
                continue;
            }
            app.store.commit(Batch::new().delete_fact(upload.fact()?.0))?;
            app.catalog.staging().remove(upload.id);
            app.store.remove_upload(upload.id)?;
            app.upload_locks.close(upload.id);
            expired += 1;
        }
    }
    for id in files {
        // No request writes to the bytes of a stored file.
        let is_worked_on =
            !stored.contains(&id) && (begun.contains(&id) || app.upload_locks.is_locked(id));
        if !kept.contains(&id) && !is_worked_on {
            app.store.remove_upload(id)?;
        }
    }
    Ok(expired)
}
