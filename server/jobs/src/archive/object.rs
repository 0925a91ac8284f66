//! Writing of one object to a file or stream.
//!
//! Guarantees: every byte is verified before it is written; a file appears under its name when it is complete and
//! durable. Non-goals: several objects, which `export` writes.

use engine::progress::ProgressCallback;
use engine::{Conflict, Error, ObjectName, Store};

use super::export::write_all;
use super::local_files::Output;
use super::progress::ProgressReporter;
use super::{ArchiveError, ArchiveLocation, absolute, location_error};

/// Writes the content of an object. Returns its bytes, or `None` if there is no such object. Blocks on the disk.
///
/// # Errors
///
/// [`ArchiveError::Store`] with [`Error::Corrupt`] for a corrupt object; a stream has then received the bytes before
/// the corruption.
pub fn read_object<'w>(
    store: &Store,
    name: &ObjectName,
    to: &ArchiveLocation,
    watch: &'w mut ProgressCallback<'w>,
) -> Result<Option<u64>, ArchiveError> {
    let body = loop {
        let Some(object) = store.get(name)? else { return Ok(None) };
        match store.body(&object) {
            // Overwritten since the lookup.
            Err(Error::Conflict(Conflict::KeyChanged(_))) => {}
            body => break body?,
        }
    };
    let mut work = ProgressReporter::new(watch, body.bytes(), 1);
    let (mut output, path) = match to {
        ArchiveLocation::Stream(path) => {
            (Output::stream(path).map_err(location_error("write to", path))?, path)
        }
        ArchiveLocation::Path(path) => {
            let path = absolute(path).map(|_| path)?;
            (Output::create(path).map_err(location_error("create", path))?, path)
        }
    };
    for range in engine::Body::read_ranges(body.bytes()) {
        let piece = body.read(range)?;
        write_all(&mut output, &piece, path, &mut work)?;
        work.add_bytes(piece.len() as u64)?;
    }
    work.add_item()?;
    output.finish().map_err(location_error("finish", path))?;
    Ok(Some(body.bytes()))
}
