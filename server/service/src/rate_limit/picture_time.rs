//! Rate limits of image processing time: per client address, and per bucket.
//!
//! An image can be requested at any size, so these limits alone bound the cost of serving a file. Guarantees: a request
//! rejected by one of the limits consumes nothing of the other, except for concurrent requests; an image whose cost
//! exceeds the burst size consumes all of it. Non-goals: cost of an image.

use std::num::NonZeroU32;

use engine::BucketName;
use engine::rng::Rng;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::keyed::HashMapStateStore;
use governor::{InsufficientCapacity, Quota, RateLimiter};
use listener::ip_network::AddressKey;

use super::{LimiterClock, PerIpLimit, RateLimitPolicy, RateLimited};
use crate::config::Config;
use crate::limits::IMAGE_BURST_WINDOW;

/// Both limits, in milliseconds.
pub(super) struct ImageCpuLimit {
    of_addresses: Option<PerIpLimit>,
    of_buckets: Option<PerBucketLimit>,
}

struct PerBucketLimit {
    policy: RateLimitPolicy,
    limiter:
        RateLimiter<BucketName, HashMapStateStore<BucketName>, LimiterClock, NoOpMiddleware<Nanos>>,
}

impl ImageCpuLimit {
    pub(super) fn new(config: &Config, time: &LimiterClock, rng: &dyn Rng) -> Self {
        let address = quota(config.image_ms_per_second_per_address);
        let bucket = quota(config.image_ms_per_second_per_bucket);
        Self {
            of_addresses: address
                .map(|quota| PerIpLimit::new("pictures-address", quota, time, rng)),
            of_buckets: bucket.map(|quota| PerBucketLimit {
                policy: RateLimitPolicy::of("pictures-bucket", quota),
                limiter: RateLimiter::hashmap_with_clock(quota, time.clone()),
            }),
        }
    }

    /// Charges both limits.
    pub(super) fn charge(
        &self,
        address: Option<AddressKey>,
        bucket: &BucketName,
        milliseconds: u64,
    ) -> Result<(), RateLimited> {
        let count = u32::try_from(milliseconds).unwrap_or(u32::MAX);
        let count = NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN);
        let of_address = self.of_addresses.as_ref().zip(address);
        if let Some((addresses, address)) = of_address {
            addresses.check(address, count)?;
        }
        if let Some(buckets) = &self.of_buckets {
            buckets.take(bucket, count)?;
        }
        match of_address {
            Some((addresses, address)) => addresses.take(address, count),
            None => Ok(()),
        }
    }

    pub(super) fn known_count(&self) -> usize {
        let addresses = self.of_addresses.as_ref().map_or(0, PerIpLimit::known_count);
        addresses + self.of_buckets.as_ref().map_or(0, |it| it.limiter.len())
    }

    /// Drops buckets whose limits are full.
    pub(super) fn forget_idle(&self) {
        if let Some(buckets) = &self.of_buckets {
            buckets.limiter.retain_recent();
        }
    }
}

impl PerBucketLimit {
    fn take(&self, bucket: &BucketName, count: NonZeroU32) -> Result<(), RateLimited> {
        let count = count.min(NonZeroU32::new(self.policy.count).unwrap_or(count));
        match self.limiter.check_key_n(bucket, count) {
            Ok(Err(not_until)) => {
                let now = self.limiter.clock().passed();
                Err(RateLimited::new(self.policy, not_until.wait_time_from(now)))
            }
            Ok(Ok(())) | Err(InsufficientCapacity(_)) => Ok(()),
        }
    }
}

/// Returns the limit of a rate per second, with its burst. `None` means unlimited.
fn quota(per_second: u32) -> Option<Quota> {
    let per_second = NonZeroU32::new(per_second)?;
    let saved = NonZeroU32::new(IMAGE_BURST_WINDOW.as_secs() as u32).unwrap_or(NonZeroU32::MIN);
    Some(Quota::per_second(per_second).allow_burst(per_second.saturating_mul(saved)))
}
