//! Commits of batches, awaited.

use engine::{Batch, CommitInfo, Store};
use tokio::sync::oneshot;
use usage::spans::child_span;

/// Commits a batch. The result is durable.
pub async fn commit(store: &Store, batch: Batch) -> engine::Result<CommitInfo> {
    let (answer, answered) = oneshot::channel();
    store.submit(batch, move |result| {
        // The receiver is gone after a client disconnect; the batch is committed or rejected regardless.
        let _ = answer.send(result);
    });
    await_commit(answered).await
}

/// Awaits the result of a submitted batch.
pub async fn await_commit(
    answered: oneshot::Receiver<engine::Result<CommitInfo>>,
) -> engine::Result<CommitInfo> {
    child_span("store.commit", answered).await.unwrap_or(Err(engine::Error::Closed))
}
