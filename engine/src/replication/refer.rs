//! References of a restored folder to segments in the remote store.
//!
//! Non-goals: what is restored.

use super::remote_log::damaged;
use super::restore::{Target, add_damage, big_reference};
use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::format::{
    Malformed, ManifestSegment, RemoteReference, RemoteSegment, SEGMENT_HEADER_BYTES, SegmentClass,
};
use crate::remote::Part;
use crate::segment::{RecordCursor, read_header};
use crate::tier::TieredDisk;

impl Target<'_, '_> {
    /// Refers to a log or compacted segment, and collects the big segments that its records name.
    pub(super) fn refer(&mut self, tier: &TieredDisk, segment: &ManifestSegment) -> Result<()> {
        let ManifestSegment { object, class, bytes, .. } = *segment;
        let name = object.object_name();
        let page = self.remote.read(&name, Part::Range(0..SEGMENT_HEADER_BYTES as u64));
        let page = page.map_err(|why| Error::remote(format!("reading {name}"), &why))?;
        let page = page.filter(|page| page.bytes.len() == SEGMENT_HEADER_BYTES);
        let Some(page) = page else {
            add_damage(&mut self.report, &damaged(&name, Malformed::Missing));
            return Ok(());
        };
        self.write_reference(tier, class, object, bytes, &page.bytes)?;
        let path = object.id.path(class);
        let opened =
            tier.open(&path).map_err(|source| Error::io(format!("opening {path}"), source))?;
        let header = read_header(opened.as_ref(), &path, object.id, class, self.store);
        let mut cursor = match header
            .and_then(|header| RecordCursor::open(opened, path.clone(), header, None))
        {
            Err(error @ Error::Corrupt(_)) => {
                add_damage(&mut self.report, &error);
                return Ok(());
            }
            other => other?,
        };
        while let Some(found) = cursor.step()? {
            self.big.extend(big_reference(&found.record));
        }
        for fault in cursor.faults() {
            let error = Error::corrupt(path.clone(), fault.offset, fault.reason);
            add_damage(&mut self.report, &error);
        }
        Ok(())
    }

    /// Refers to a big segment.
    pub(super) fn refer_to_big(
        &mut self,
        tier: &TieredDisk,
        object: RemoteSegment,
        bytes: u64,
    ) -> Result<()> {
        let folder = object.id.folder(SegmentClass::Big);
        let created = tier.create_folder(&folder);
        created.map_err(|source| Error::io(format!("creating {folder}"), source))?;
        self.write_reference(tier, SegmentClass::Big, object, bytes, &[])
    }

    fn write_reference(
        &mut self,
        tier: &TieredDisk,
        class: SegmentClass,
        object: RemoteSegment,
        bytes: u64,
        page: &[u8],
    ) -> Result<()> {
        let reference = RemoteReference { store: self.store, object, bytes };
        let written = tier.write_reference(class, &reference, page);
        written.map_err(|source| {
            Error::io(format!("referring to {}", object.object_name()), source)
        })?;
        self.report.segments += 1;
        Ok(())
    }
}
