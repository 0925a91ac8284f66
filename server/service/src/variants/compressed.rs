//! Compressed forms of text-like files, cached as variants: `{LSN}/br`, `{LSN}/zstd`, `{LSN}/gzip`.
//!
//! Guarantees: one job per form, and a bounded number of jobs, so that images find room in the queue; a request waits
//! at most [`COMPRESSION_WAIT`], after which the job continues for later requests; a file that does not shrink is not
//! compressed again while the server runs. Non-goals: which files and clients (`delivery::representation`), and the
//! codings (`compression`).

use bytes::Bytes;
use compression::Coding;
use engine::Object;
use usage::task::blocking;

use super::{RenderCost, RenderFailure, VariantError, Variants};
use crate::limits::{
    COMPRESSION_BYTES_PER_MS, COMPRESSION_JOBS_MAX, COMPRESSION_SAVED_DIVISOR, COMPRESSION_WAIT,
};
use crate::object_body::read_all;

/// Compressed form of a file.
#[derive(Clone, Debug)]
pub enum CompressedFile {
    /// Cached variant.
    Cached(Object),
    /// Bytes that are not cached.
    Memory(Bytes),
}

impl Variants {
    /// Returns the compressed form of a file. `None` if the file should be sent as it is: it does not shrink, the
    /// result is not there in time, or `charge` rejects the cost in milliseconds of CPU.
    pub async fn compressed(
        &self,
        parent: &Object,
        coding: Coding,
        charge: impl FnOnce(u64) -> bool,
    ) -> Result<Option<CompressedFile>, VariantError> {
        let inner = &self.0;
        if inner.incompressible.get(&parent.lsn()).is_some() {
            return Ok(None);
        }
        if let Some(variant) = inner.cache.get(parent, coding.name())? {
            inner.hits.add(1);
            return Ok(Some(CompressedFile::Cached(variant)));
        }
        inner.misses.add(1);
        let key = (parent.lsn(), coding);
        let is_running = inner.compressions.is_running(&key);
        if !is_running
            && (inner.compressions.count() >= COMPRESSION_JOBS_MAX || !charge(cost_ms(parent)))
        {
            return Ok(None);
        }
        let job = |_| self.clone().compress(parent.clone(), coding);
        match tokio::time::timeout(COMPRESSION_WAIT, inner.compressions.join(key, job)).await {
            Ok(Some(compressed)) => compressed,
            // The job panicked, or takes longer.
            Ok(None) | Err(_) => Ok(None),
        }
    }

    /// Compresses a file, and caches the result if possible.
    async fn compress(
        self,
        parent: Object,
        coding: Coding,
    ) -> Result<Option<CompressedFile>, VariantError> {
        let inner = self.0;
        let bytes = compression::memory_bytes(parent.bytes());
        let cost = RenderCost { ms: cost_ms(&parent), bytes };
        let (store, source) = (inner.store.clone(), parent.clone());
        let compressing = inner.render_pool.run(cost, move || -> engine::Result<_> {
            Ok(coding.compress(&read_all(&store.body(&source)?)?))
        });
        let compressed = match compressing.await {
            Ok(compressed) => compressed?,
            Err(RenderFailure::Busy) => return Ok(None),
            Err(RenderFailure::Panicked) => Err(std::io::Error::other("the encoder panicked")),
        };
        let saved = |bytes: &Vec<u8>| parent.bytes().saturating_sub(bytes.len() as u64);
        let bytes = match compressed {
            Ok(bytes) if saved(&bytes) >= parent.bytes() / COMPRESSION_SAVED_DIVISOR => {
                Bytes::from(bytes)
            }
            result => {
                if let Err(error) = result {
                    tracing::warn!(%error, "compression failed; sending the file as it is");
                }
                inner.incompressible.insert(parent.lsn(), ());
                return Ok(None);
            }
        };
        let cached = bytes.clone();
        let put = blocking(move || {
            inner.cache.put(&parent, coding.name(), parent.content_type(), &cached)
        });
        Ok(Some(match put.await {
            Ok(Some(variant)) => CompressedFile::Cached(variant),
            Ok(None) => CompressedFile::Memory(bytes),
            // Files are served even if the store is full or read-only.
            Err(error) => {
                tracing::debug!(%error, "compressed file not cached");
                CompressedFile::Memory(bytes)
            }
        }))
    }
}

impl CompressedFile {
    /// Returns the length in bytes.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Cached(variant) => variant.bytes(),
            Self::Memory(bytes) => bytes.len() as u64,
        }
    }
}

/// Returns the estimated CPU time in milliseconds; at least 1.
fn cost_ms(file: &Object) -> u64 {
    file.bytes() / COMPRESSION_BYTES_PER_MS + 1
}
