//! Expiry of resumable uploads.
//!
//! Guarantees: bytes without a record are removed, and those of a stored file, even while a request reads its state;
//! records are removed with their bytes; an upload in use is skipped. Non-goals: the expiry time, which is part of the
//! record.

use std::collections::BTreeSet;

use engine::Batch;

use crate::bridge::blocking;
use crate::catalog::{CatalogError, PendingUpload};
use crate::limits;
use crate::state::AppState;

/// Sweeps immediately, and then periodically.
pub async fn sweep_now_and_then(app: AppState) {
    loop {
        let swept = app.clone();
        match blocking(move || sweep(&swept)).await {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "resumable uploads expired"),
            Err(error) => tracing::warn!("failed to expire resumable uploads: {error}"),
        }
        tokio::time::sleep(limits::TUS_SWEEP_WAIT).await;
    }
}

/// Removes expired uploads, and returns their number. Blocks on the disk.
pub fn sweep(app: &AppState) -> Result<usize, CatalogError> {
    // Lists the files first, so that an upload created concurrently is not among them.
    let files = app.store.resumable_uploads()?;
    // An upload in use may not have a record yet.
    let begun: BTreeSet<_> =
        files.iter().copied().filter(|id| app.open_uploads.is_taken(*id)).collect();
    let now_ms = app.clock.unix_ms();
    let (mut kept, mut stored, mut expired) = (BTreeSet::new(), BTreeSet::new(), 0);
    #[cfg(feature = "s3")]
    kept.extend(crate::catalog::MultipartUpload::sweep(&app.store, app.catalog.staging(), now_ms)?);
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
            if !is_over || app.open_uploads.is_taken(upload.id) {
                let ids = if upload.is_stored { &mut stored } else { &mut kept };
                ids.insert(upload.id);
                continue;
            }
            app.store.commit(Batch::new().delete_fact(upload.fact()?.0))?;
            app.catalog.staging().remove(upload.id);
            app.store.remove_upload(upload.id)?;
            app.open_uploads.close(upload.id);
            expired += 1;
        }
    }
    for id in files {
        // No request writes to the bytes of a stored file.
        let is_worked_on =
            !stored.contains(&id) && (begun.contains(&id) || app.open_uploads.is_taken(id));
        if !kept.contains(&id) && !is_worked_on {
            app.store.remove_upload(id)?;
        }
    }
    Ok(expired)
}
