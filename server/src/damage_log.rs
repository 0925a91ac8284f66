//! Logging of detected corruption.
//!
//! Guarantees: each location is logged once per run of the server; locations known before the start are summarised in
//! one line. Non-goals: detection of corruption.

use std::collections::BTreeSet;
use std::pin::pin;

use engine::Store;
use engine::damage::{Damage, DamageList, SegmentId};
use tokio::sync::oneshot;
use usage::task::blocking;

use crate::limits;

/// Logs each corrupt location when it is found, and in one line how many were found before the start. Checks once more
/// at the end.
pub(crate) async fn log_corruption(store: Store, end: oneshot::Receiver<()>) {
    let mut logged = LoggedCorruption::default();
    let mut end = pin!(end);
    let mut is_last = false;
    loop {
        let asked = store.clone();
        match blocking(move || asked.damage()).await {
            Ok(known) => {
                let NewCorruption { earlier, found } = logged.news(known, store.opened_ms());
                if earlier > 0 {
                    tracing::error!("corruption: {earlier} known regions from earlier runs");
                }
                for damage in found {
                    tracing::error!(found_ms = damage.found_ms, "corruption detected: {damage}");
                }
            }
            Err(error) => tracing::warn!("failed to list corruption: {error}"),
        }
        if is_last {
            return;
        }
        is_last = tokio::time::timeout(limits::CORRUPTION_CHECK_INTERVAL, &mut end).await.is_ok();
    }
}

/// Corrupt locations that were already logged.
#[derive(Default)]
struct LoggedCorruption(Option<BTreeSet<(SegmentId, u64)>>);

/// Corruption to be logged.
struct NewCorruption {
    /// Number of locations found before the store was opened; reported the first time only.
    earlier: u64,
    /// Locations found since and not yet logged.
    found: Vec<Damage>,
}

impl LoggedCorruption {
    fn news(&mut self, known: DamageList, opened_ms: u64) -> NewCorruption {
        let total = known.count();
        let is_first = self.0.is_none();
        let logged = self.0.take().unwrap_or_default();
        self.0 = Some(known.places.iter().map(|damage| (damage.segment, damage.offset)).collect());
        let mut found = known.places;
        found.retain(|damage| match is_first {
            true => damage.found_ms >= opened_ms,
            false => !logged.contains(&(damage.segment, damage.offset)),
        });
        let earlier = if is_first { total - found.len() as u64 } else { 0 };
        NewCorruption { earlier, found }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corruption_is_logged_once_and_counted_at_startup() {
        let damage = |offset, found_ms| Damage {
            segment: SegmentId::new(1).unwrap(),
            class: engine::damage::SegmentClass::Log,
            offset,
            lsn: None,
            reason: engine::damage::Malformed::Checksum,
            name: None,
            found_ms,
        };
        let list = |places: &[Damage]| DamageList { places: places.to_vec(), unlisted: 2 };
        let summary = |news: NewCorruption| {
            let offsets: Vec<_> = news.found.iter().map(|damage| damage.offset).collect();
            (news.earlier, offsets)
        };
        let (old, at_opening, new) = (damage(10, 99), damage(20, 100), damage(30, 150));
        let mut log = LoggedCorruption::default();
        let known = [old.clone(), at_opening.clone()];
        assert_eq!(summary(log.news(list(&known), 100)), (3, vec![20]));
        assert_eq!(summary(log.news(list(&known), 100)), (0, vec![]));
        let known = [old, at_opening, new];
        assert_eq!(summary(log.news(list(&known), 100)), (0, vec![30]));
        assert_eq!(summary(log.news(list(&[]), 100)), (0, vec![]));
        // Repaired, and corrupt again.
        assert_eq!(summary(log.news(list(&known[2..]), 100)), (0, vec![30]));
        assert_eq!(summary(LoggedCorruption::default().news(list(&known), 200)), (5, vec![]));
    }
}
