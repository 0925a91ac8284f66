//! Downloads from shared links, and requests that they refuse, summed per link and hour for the audit log.
//!
//! Guarantees: one audit entry per link, action and hour, however many requests there are; memory is bounded by the
//! number of links and by [`ADDRESSES_MAX`]; entries contain no secrets and no addresses. A crash loses the sums of at
//! most an hour; graceful shutdown writes them. Non-goals: the use shown for a link (`link_use`).

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use protocol::time_format::iso_time;

use super::audit_entry::{AuditAction, AuditRecord};
use super::id::SharedLinkId;
use super::last_used::HOUR_MS;
use super::shared_link::SharedLink;
use super::{CatalogError, SharedLinks};
use crate::limits::SHARED_LINKS_BATCH;

/// Maximum sums in memory; events of further links are not recorded until some are written.
const SUMS_MAX: usize = 100_000;
/// Maximum client addresses that are distinguished in one sum.
const ADDRESSES_PER_SUM_MAX: usize = 1_000;
/// Maximum client addresses that are distinguished in all sums.
const ADDRESSES_MAX: usize = 100_000;

/// Event of a link that is summed for the audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// Download of one file.
    FileDownload,
    /// Download of a zip archive.
    ArchiveDownload,
    WrongPassword,
    /// Password attempt over the rate limit.
    TooManyAttempts,
    /// Request after the maximum of downloads, or of uploads, was reached.
    LimitReached,
    Expired,
    Ended,
    /// Request for a link whose creator has lost its rights.
    Blocked,
}

/// Events that are not in the audit log yet.
#[derive(Debug, Default)]
pub(super) struct LinkEvents(Mutex<Sums>);

#[derive(Debug, Default)]
struct Sums {
    by_key: BTreeMap<SumKey, Sum>,
    /// Addresses in all sums.
    addresses: usize,
}

/// Link, whether the events are refusals, and hour since 1970.
type SumKey = (SharedLinkId, bool, u64);

#[derive(Debug)]
struct Sum {
    link: Arc<SharedLink>,
    counts: [u64; LinkEvent::ALL.len()],
    addresses: BTreeSet<IpAddr>,
    has_more_addresses: bool,
}

impl LinkEvent {
    const ALL: [Self; 8] = [
        Self::FileDownload,
        Self::ArchiveDownload,
        Self::WrongPassword,
        Self::TooManyAttempts,
        Self::LimitReached,
        Self::Expired,
        Self::Ended,
        Self::Blocked,
    ];

    fn is_refusal(self) -> bool {
        !matches!(self, Self::FileDownload | Self::ArchiveDownload)
    }

    /// Returns the name in the details of an entry.
    fn label(self) -> &'static str {
        match self {
            Self::FileDownload => "files",
            Self::ArchiveDownload => "archives",
            Self::WrongPassword => "wrong password",
            Self::TooManyAttempts => "too many attempts",
            Self::LimitReached => "limit reached",
            Self::Expired => "expired",
            Self::Ended => "ended",
            Self::Blocked => "blocked",
        }
    }
}

impl LinkEvents {
    fn record(
        &self,
        link: &Arc<SharedLink>,
        event: LinkEvent,
        address: Option<IpAddr>,
        now_ms: u64,
    ) {
        let mut sums = self.lock();
        let sums = &mut *sums;
        let key = (link.id.clone(), event.is_refusal(), now_ms / HOUR_MS);
        if sums.by_key.len() >= SUMS_MAX && !sums.by_key.contains_key(&key) {
            return;
        }
        let sum = sums.by_key.entry(key).or_insert_with(|| Sum::new(link.clone()));
        sum.counts[event as usize] += 1;
        let Some(address) = address.filter(|address| !sum.addresses.contains(address)) else {
            return;
        };
        if sum.addresses.len() < ADDRESSES_PER_SUM_MAX && sums.addresses < ADDRESSES_MAX {
            sum.addresses.insert(address);
            sums.addresses += 1;
        } else {
            sum.has_more_addresses = true;
        }
    }

    /// Takes the sums of the hours before one.
    fn take_before(&self, hour: u64) -> Vec<(SumKey, Sum)> {
        let mut sums = self.lock();
        let taken: Vec<_> = sums.by_key.extract_if(.., |key, _| key.2 < hour).collect();
        sums.addresses -= taken.iter().map(|(_, sum)| sum.addresses.len()).sum::<usize>();
        taken
    }

    /// Puts sums back that could not be written.
    fn put_back(&self, taken: Vec<(SumKey, Sum)>) {
        let mut sums = self.lock();
        for (key, sum) in taken {
            let addresses = sum.addresses.len();
            // Since then, only the current hour may have a new sum: that one is discarded.
            let newer = sums.by_key.insert(key, sum).map_or(0, |newer| newer.addresses.len());
            sums.addresses = sums.addresses + addresses - newer;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Sums> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sum {
    fn new(link: Arc<SharedLink>) -> Self {
        let (counts, addresses) = ([0; LinkEvent::ALL.len()], BTreeSet::new());
        Self { link, counts, addresses, has_more_addresses: false }
    }

    /// Describes the sum, with the start of its hour.
    fn detail(&self, hour: u64) -> String {
        let counted = LinkEvent::ALL.into_iter().zip(self.counts).filter(|(_, count)| *count > 0);
        let counts: Vec<_> =
            counted.map(|(event, count)| format!("{}: {count}", event.label())).collect();
        let addresses = self.addresses.len();
        let or_more = if self.has_more_addresses { " or more" } else { "" };
        let start = iso_time(hour.saturating_mul(HOUR_MS));
        format!("hour: {start}, {}, addresses: {addresses}{or_more}", counts.join(", "))
    }
}

impl SharedLinks<'_> {
    /// Records an event of a link for the audit log.
    pub fn record_event(&self, link: &Arc<SharedLink>, event: LinkEvent, address: Option<IpAddr>) {
        self.0.state.link_events.record(link, event, address, self.0.now_ms());
    }

    /// Writes the events of the hours that have passed to the audit log. Failed writes are retried the next time.
    pub fn write_events(&self) -> Result<(), CatalogError> {
        self.write_events_before(self.0.now_ms() / HOUR_MS)
    }

    /// Writes all events to the audit log, also those of the current hour.
    pub fn write_all_events(&self) -> Result<(), CatalogError> {
        self.write_events_before(u64::MAX)
    }

    fn write_events_before(&self, hour: u64) -> Result<(), CatalogError> {
        let mut change = self.0.begin();
        let events = &self.0.state.link_events;
        let mut rest = events.take_before(hour);
        while !rest.is_empty() {
            let later = rest.split_off(rest.len().min(SHARED_LINKS_BATCH));
            for ((id, is_refusal, hour), sum) in &rest {
                let action = match is_refusal {
                    true => AuditAction::LinkRefused,
                    false => AuditAction::LinkDownload,
                };
                let entry = AuditRecord::new(action).target(id);
                let entry = entry.bucket_named(&sum.link.bucket, self.0);
                change.audit(entry.account(&sum.link.account).detail(sum.detail(*hour)));
            }
            if let Err(error) = change.commit() {
                rest.extend(later);
                events.put_back(rest);
                return Err(error);
            }
            rest = later;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_event_labels_are_in_the_order_of_the_counts() {
        for (position, event) in LinkEvent::ALL.into_iter().enumerate() {
            assert_eq!(event as usize, position, "{event:?}");
        }
    }
}
