//! Whole-store work that goes on beside requests: history, undelete, backup.
//!
//! Never here: the work itself. Each call hands on to the layer that does it.

use std::sync::Arc;

use super::Store;
use crate::backup::{self, AskIndex, BackupReport, Published};
use crate::commit::Batch;
use crate::disk::Disk;
use crate::error::Result;
use crate::format::SegmentClass;
use crate::history::{
    self, History, LogReader, PutBack, UndeleteRequest, Undeleted, VersionFilter,
};
use crate::name::ObjectName;
use crate::progress::Watch;
use crate::segment::LogPosition;

impl Store {
    /// What the log still knows of some objects: the first `limit` versions by name, at most
    /// [`limits::VERSIONS_MAX`](crate::limits::VERSIONS_MAX). Reads the heads of the whole log, and verifies the bodies
    /// of what it shows.
    pub fn history(
        &self,
        filter: &VersionFilter,
        limit: usize,
        watch: &mut Watch<'_>,
    ) -> Result<History> {
        self.read_log(|log| history::history(log, filter, limit, watch))
    }

    /// Brings back objects that were deleted, or one earlier version. Each is put as anybody would put it: nothing that
    /// is written meanwhile is overwritten.
    pub fn undelete(&self, request: &UndeleteRequest, watch: &mut Watch<'_>) -> Result<Undeleted> {
        self.undelete_along(request, &|_| Batch::new(), watch)
    }

    /// As [`Store::undelete`], and in the same batch in which an object is put back goes what `along` gives for it: few
    /// operations without bodies, such as [`Batch::delete_derived`].
    pub fn undelete_along(
        &self,
        request: &UndeleteRequest,
        along: &dyn Fn(&ObjectName) -> Batch,
        watch: &mut Watch<'_>,
    ) -> Result<Undeleted> {
        self.0.health.require_writable()?;
        let put_back = PutBack {
            upload: &|| self.upload(),
            commit: &|batch| self.commit(batch),
            along,
            batch_bytes_max: self.0.batch_bytes_max,
        };
        self.read_log(|log| history::undelete(log, &put_back, request, watch))
    }

    /// Makes the folder of `to` an image of the store as it is now, or brings the image there up to date. The image is
    /// a store without an index: to restore, open it or copy it back.
    pub fn backup(&self, to: &Arc<dyn Disk>, watch: &mut Watch<'_>) -> Result<BackupReport> {
        let published = || {
            self.look(|view| {
                let used = view.segments()?.into_iter();
                let big = used.filter(|(_, usage)| usage.class == SegmentClass::Big);
                Ok(Published {
                    position: view.position().map_or(LogPosition::START, LogPosition::from),
                    big: big.map(|(id, _)| id).collect(),
                })
            })
        };
        let index = AskIndex {
            published: &published,
            usage_of: &|id| self.look(|view| view.segment_usage(id)),
            may_be_punched: &|record, at| self.look(|view| view.may_be_punched(record, at)),
        };
        backup::backup(&self.0.segments, &index, to.as_ref(), watch)
    }

    fn read_log<T>(&self, read: impl FnOnce(&LogReader<'_>) -> Result<T>) -> Result<T> {
        let position = self.look(|view| Ok(view.position()))?;
        read(&LogReader {
            segments: &self.0.segments,
            position: position.map_or(LogPosition::START, LogPosition::from),
            entry: &|name| self.look(|view| view.entry(name)),
            usage_of: &|id| self.look(|view| view.segment_usage(id)),
            may_be_punched: &|record, at| self.look(|view| view.may_be_punched(record, at)),
        })
    }
}
