//! Rate limits of accounts, addresses, buckets and sign-ins.
//!
//! Each limit is a token bucket that refills evenly and holds one window's worth: 100 per minute allow a burst of 100
//! after a pause, then one each 0.6 seconds. `governor` does the arithmetic, with the server's clock. Guarantees: two
//! accounts, and two plans, never share a limit; a rejected request consumes no tokens; memory is bounded by the
//! recently active accounts and buckets and, for addresses, by a table of fixed size. Nothing survives a restart.
//! Non-goals: authentication, and the error response.

mod address_table;
mod fields;
mod picture_time;
mod sign_ins;

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use catalog::{Account, AccountId, FairUseStanding, Plan, RateLimitRejections};
use engine::BucketName;
use engine::clock::Clock;
use engine::rng::Rng;
use governor::middleware::{NoOpMiddleware, StateInformationMiddleware};
use governor::nanos::Nanos;
use governor::state::keyed::HashMapStateStore;
use governor::{InsufficientCapacity, Quota, RateLimiter};
use listener::ip_network::{AddressKey, Network, is_local_or_trusted};
use protocol::error::ApiError;

use self::address_table::PerIpTable;
use self::picture_time::ImageCpuLimit;
use self::sign_ins::LoginLimits;

use crate::config::Config;
use crate::limits;

pub use self::sign_ins::LoginAttempt;

/// Action with a separate rate limit for each account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateClass {
    /// Storing files by any method; use of a token counts for the account that issued it.
    Upload,
    /// All other requests with an API key, except delivery.
    Management,
}

/// Rate-limit policy, as reported to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimitPolicy {
    pub name: &'static str,
    /// Burst size.
    pub count: u32,
    /// Time to refill an empty bucket.
    pub window_seconds: u32,
}

/// Granted request, with the remaining tokens, unless there is no limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLimitGrant(Option<RemainingQuota>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct RemainingQuota {
    policy: RateLimitPolicy,
    remaining: u32,
}

/// Rejected request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLimited {
    policy: RateLimitPolicy,
    /// Seconds to wait, at least 1.
    retry_after_seconds: u64,
}

/// All rate limits.
pub struct RateLimits {
    time: LimiterClock,
    free: Rates,
    starter: Rates,
    pro: Rates,
    management: Rates,
    sign_ins: LoginLimits,
    settable: ArcSwap<ConfiguredLimits>,
    rejections: Arc<RateLimitRejections>,
    tidied_ms: AtomicU64,
}

/// Limits that depend on the configuration, replaced as a whole.
struct ConfiguredLimits {
    plan_rates: bool,
    business: Arc<Rates>,
    failures: Option<Arc<PerIpLimit>>,
    requests: Option<Arc<PerIpLimit>>,
    image_cpu: Arc<ImageCpuLimit>,
    trusted: Vec<Network>,
    /// Configuration values that they were created from.
    numbers: LimitValues,
}

/// Configured rates.
#[derive(Clone, Copy, PartialEq, Eq)]
struct LimitValues {
    business: u32,
    failures: u32,
    requests: (u32, u32),
    image_cpu: (u32, u32),
}

impl RateLimits {
    pub fn new(
        config: &Config,
        clock: Arc<dyn Clock>,
        rng: &dyn Rng,
        rejections: Arc<RateLimitRejections>,
    ) -> Self {
        let time = LimiterClock(clock);
        let rates = |name, throttled, count| Rates::new(name, throttled, count, &time);
        let settable = ConfiguredLimits::new(config, &time, rng);
        Self {
            free: rates("upload-free", "upload-free-throttled", limits::UPLOADS_PER_MINUTE_FREE),
            starter: rates(
                "upload-starter",
                "upload-starter-throttled",
                limits::UPLOADS_PER_MINUTE_STARTER,
            ),
            pro: rates("upload-pro", "upload-pro-throttled", limits::UPLOADS_PER_MINUTE_PRO),
            management: rates("management", "management-throttled", limits::MANAGEMENT_PER_MINUTE),
            sign_ins: LoginLimits::new(&time, rng),
            settable: ArcSwap::from_pointee(settable),
            rejections,
            tidied_ms: AtomicU64::new(time.0.monotonic_ms()),
            time,
        }
    }

    /// Applies a new configuration. The usage of a changed limit is reset, that of others is not.
    pub fn change(&self, config: &Config, rng: &dyn Rng) {
        let settable = ConfiguredLimits::after(&self.settable.load(), config, &self.time, rng);
        self.settable.store(Arc::new(settable));
    }

    /// Charges an action to an account.
    pub fn charge(
        &self,
        action: RateClass,
        account: &Account,
    ) -> Result<RateLimitGrant, RateLimited> {
        let settable = self.settable.load();
        if !settable.plan_rates {
            return Ok(RateLimitGrant(None));
        }
        self.forget_idle(&settable);
        let taken = self.rate(&settable, action, account).take(&account.id);
        if taken.is_err() {
            self.rejections.count(&account.id);
        }
        taken
    }

    /// Charges a request to an address.
    pub fn charge_request(&self, address: IpAddr) -> Result<(), RateLimited> {
        let settable = self.settable.load();
        match &settable.requests {
            Some(requests) if !settable.is_exempt(address) => {
                requests.take(AddressKey::from_ip(address), NonZeroU32::MIN)
            }
            _ => Ok(()),
        }
    }

    /// Charges image processing time, in milliseconds of CPU, to an address and to the bucket of the file.
    pub fn charge_image_cpu(
        &self,
        address: Option<IpAddr>,
        bucket: &BucketName,
        milliseconds: u64,
    ) -> Result<(), RateLimited> {
        let settable = self.settable.load();
        self.forget_idle(&settable);
        let address =
            address.filter(|address| !settable.is_exempt(*address)).map(AddressKey::from_ip);
        settable.image_cpu.charge(address, bucket, milliseconds)
    }

    /// Charges an invalid API key to an address; fails if the address has used up its limit.
    pub fn take_failure(&self, address: IpAddr) -> Result<(), RateLimited> {
        let settable = self.settable.load();
        match &settable.failures {
            Some(failures) if !settable.is_exempt(address) => {
                failures.take(AddressKey::from_ip(address), NonZeroU32::MIN)
            }
            _ => Ok(()),
        }
    }

    /// Charges a sign-in attempt: to the address and the name, or to a known device of the account.
    pub fn charge_login_attempt(
        &self,
        address: Option<IpAddr>,
        name: &str,
        device: Option<&str>,
    ) -> Result<LoginAttempt, RateLimited> {
        let settable = self.settable.load();
        self.sign_ins.charge(address.filter(|address| !settable.is_exempt(*address)), name, device)
    }

    /// Refunds a successful sign-in.
    pub fn refund_login_attempt(&self, taken: LoginAttempt) {
        self.sign_ins.refund(taken);
    }

    /// Returns the number of accounts, addresses and buckets with state.
    pub fn tracked_count(&self) -> usize {
        let settable = self.settable.load();
        let accounts = self.rates(&settable).map(|rate| rate.limiter.len());
        let addresses = [&settable.failures, &settable.requests].into_iter().flatten();
        accounts.sum::<usize>()
            + addresses.map(|it| it.known_count()).sum::<usize>()
            + settable.image_cpu.known_count()
            + self.sign_ins.known_count()
    }

    fn rate<'a>(
        &'a self,
        settable: &'a ConfiguredLimits,
        action: RateClass,
        account: &Account,
    ) -> &'a Rate {
        let rates = match (action, account.plan) {
            (RateClass::Management, _) => &self.management,
            (RateClass::Upload, Plan::Free) => &self.free,
            (RateClass::Upload, Plan::Starter) => &self.starter,
            (RateClass::Upload, Plan::Pro) => &self.pro,
            (RateClass::Upload, Plan::Business) => &settable.business,
        };
        if account.standing == FairUseStanding::Throttled { &rates.throttled } else { &rates.full }
    }

    fn rates<'a>(&'a self, settable: &'a ConfiguredLimits) -> impl Iterator<Item = &'a Rate> {
        let all = [&self.free, &self.starter, &self.pro, &*settable.business, &self.management];
        all.into_iter().flat_map(|rates| [&rates.full, &rates.throttled])
    }

    /// Drops accounts and buckets whose token buckets are full, periodically.
    fn forget_idle(&self, settable: &ConfiguredLimits) {
        let now_ms = self.time.0.monotonic_ms();
        let tidied_ms = self.tidied_ms.load(Ordering::Relaxed);
        let is_due = now_ms.saturating_sub(tidied_ms)
            >= limits::RATE_LIMIT_PRUNE_INTERVAL.as_millis() as u64;
        let ours = |from| {
            let (order, otherwise) = (Ordering::Relaxed, Ordering::Relaxed);
            self.tidied_ms.compare_exchange(from, now_ms, order, otherwise).is_ok()
        };
        if is_due && ours(tidied_ms) {
            self.rates(settable).for_each(|rate| rate.limiter.retain_recent());
            settable.image_cpu.forget_idle();
        }
    }
}

impl ConfiguredLimits {
    fn new(config: &Config, time: &LimiterClock, rng: &dyn Rng) -> Self {
        let numbers = LimitValues::of(config);
        Self {
            plan_rates: config.plan_rates,
            business: numbers.business(time),
            failures: numbers.failures(time, rng),
            requests: numbers.requests(time, rng),
            image_cpu: Arc::new(ImageCpuLimit::new(config, time, rng)),
            trusted: config.trusted_networks.clone(),
            numbers,
        }
    }

    /// Creates the limits of a new configuration, reusing unchanged ones.
    fn after(was: &Self, config: &Config, time: &LimiterClock, rng: &dyn Rng) -> Self {
        let (old, numbers) = (was.numbers, LimitValues::of(config));
        let mut is = Self::new(config, time, rng);
        if old.business == numbers.business {
            is.business = was.business.clone();
        }
        if old.failures == numbers.failures {
            is.failures.clone_from(&was.failures);
        }
        if old.requests == numbers.requests {
            is.requests.clone_from(&was.requests);
        }
        if old.image_cpu == numbers.image_cpu {
            is.image_cpu = was.image_cpu.clone();
        }
        is
    }

    /// Returns whether an address is exempt: in a trusted network, whose users must not be rejected because of one of
    /// them.
    fn is_exempt(&self, address: IpAddr) -> bool {
        is_local_or_trusted(address, &self.trusted)
    }
}

impl LimitValues {
    fn of(config: &Config) -> Self {
        let (address, bucket) =
            (config.image_ms_per_second_per_address, config.image_ms_per_second_per_bucket);
        Self {
            business: config.business_uploads_per_minute,
            failures: config.failed_authentications_per_minute,
            requests: (config.address_requests_per_second, config.address_requests_burst),
            image_cpu: (address, bucket),
        }
    }

    fn business(self, time: &LimiterClock) -> Arc<Rates> {
        let (name, throttled) = ("upload-business", "upload-business-throttled");
        Arc::new(Rates::new(name, throttled, self.business, time))
    }

    fn failures(self, time: &LimiterClock, rng: &dyn Rng) -> Option<Arc<PerIpLimit>> {
        let quota = Quota::per_minute(NonZeroU32::new(self.failures)?);
        Some(Arc::new(PerIpLimit::new("failed-auth", quota, time, rng)))
    }

    fn requests(self, time: &LimiterClock, rng: &dyn Rng) -> Option<Arc<PerIpLimit>> {
        let (rate, burst) = (NonZeroU32::new(self.requests.0)?, NonZeroU32::new(self.requests.1)?);
        let quota = Quota::per_second(rate).allow_burst(burst);
        Some(Arc::new(PerIpLimit::new("address", quota, time, rng)))
    }
}

/// Rate of one kind of accounts, full and throttled.
struct Rates {
    full: Rate,
    throttled: Rate,
}

struct Rate {
    policy: RateLimitPolicy,
    limiter: RateLimiter<
        AccountId,
        HashMapStateStore<AccountId>,
        LimiterClock,
        StateInformationMiddleware,
    >,
}

impl Rates {
    fn new(name: &'static str, throttled: &'static str, count: u32, time: &LimiterClock) -> Self {
        Self {
            full: Rate::new(name, count, time),
            throttled: Rate::new(throttled, count / limits::THROTTLED_DIVISOR, time),
        }
    }
}

impl Rate {
    /// Creates a rate per minute of at least one.
    fn new(name: &'static str, count: u32, time: &LimiterClock) -> Self {
        let count = NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::per_minute(count);
        let limiter = RateLimiter::hashmap_with_clock(quota, time.clone()).with_middleware();
        Self { policy: RateLimitPolicy::of(name, quota), limiter }
    }

    fn take(&self, account: &AccountId) -> Result<RateLimitGrant, RateLimited> {
        let policy = self.policy;
        match self.limiter.check_key(account) {
            Ok(state) => {
                let remaining = state.remaining_burst_capacity();
                Ok(RateLimitGrant(Some(RemainingQuota { policy, remaining })))
            }
            Err(not_until) => {
                let now = self.limiter.clock().passed();
                Err(RateLimited::new(policy, not_until.wait_time_from(now)))
            }
        }
    }
}

/// Rate limit of each address, and of each IPv6 /48 as a whole.
struct PerIpLimit {
    addresses: OfKeys,
    networks: OfKeys,
}

impl PerIpLimit {
    fn new(name: &'static str, quota: Quota, time: &LimiterClock, rng: &dyn Rng) -> Self {
        let addresses = listener::limits::ADDRESSES_PER_NETWORK;
        let burst = quota.burst_size().saturating_mul(addresses);
        let interval = quota.replenish_interval() / addresses.get();
        let of_network = Quota::with_period(interval).map(|quota| quota.allow_burst(burst));
        Self {
            addresses: OfKeys::new(name, quota, time, rng),
            networks: OfKeys::new(name, of_network.unwrap_or(quota), time, rng),
        }
    }

    /// Takes tokens, at most the burst size.
    fn take(&self, address: AddressKey, count: NonZeroU32) -> Result<(), RateLimited> {
        let network = address.network();
        if let Some(network) = network {
            self.networks.check(network, count)?;
        }
        self.addresses.take(address, count)?;
        network.map_or(Ok(()), |network| self.networks.take(network, count))
    }

    fn check(&self, address: AddressKey, count: NonZeroU32) -> Result<(), RateLimited> {
        if let Some(network) = address.network() {
            self.networks.check(network, count)?;
        }
        self.addresses.check(address, count)
    }

    fn refund(&self, address: AddressKey) {
        self.addresses.refund(address);
        if let Some(network) = address.network() {
            self.networks.refund(network);
        }
    }

    fn known_count(&self) -> usize {
        self.addresses.table.count() + self.networks.table.count()
    }
}

/// Rate limit of each of many keys, in a table of fixed size.
struct OfKeys {
    policy: RateLimitPolicy,
    table: PerIpTable,
    limiter: RateLimiter<AddressKey, PerIpTable, LimiterClock, NoOpMiddleware<Nanos>>,
    quota: Quota,
    started: Nanos,
}

impl OfKeys {
    fn new(name: &'static str, quota: Quota, time: &LimiterClock, rng: &dyn Rng) -> Self {
        let table = PerIpTable::new(rng);
        Self {
            policy: RateLimitPolicy::of(name, quota),
            quota,
            started: time.passed(),
            limiter: RateLimiter::new(quota, table.clone(), time.clone()),
            table,
        }
    }

    /// Takes tokens, at most the burst size.
    fn take(&self, address: AddressKey, count: NonZeroU32) -> Result<(), RateLimited> {
        let count = count.min(self.quota.burst_size());
        match self.limiter.check_key_n(&address, count) {
            Ok(Err(not_until)) => {
                let now = self.limiter.clock().passed();
                Err(RateLimited::new(self.policy, not_until.wait_time_from(now)))
            }
            Ok(Ok(())) | Err(InsufficientCapacity(_)) => Ok(()),
        }
    }

    /// Refunds one token.
    fn refund(&self, address: AddressKey) {
        self.table.refund(address, self.quota.replenish_interval().into());
    }

    /// Checks whether enough tokens are left, without taking them.
    fn check(&self, address: AddressKey, count: NonZeroU32) -> Result<(), RateLimited> {
        let Some(whole_at) = self.table.full_at(address) else { return Ok(()) };
        let now = self.limiter.clock().passed().saturating_sub(self.started);
        let count = count.min(self.quota.burst_size()).get();
        // Maximum time by which an address may be ahead of the present.
        let ahead_max =
            self.quota.burst_size_replenished_in() - self.quota.replenish_interval() * count;
        let free_at = whole_at.saturating_sub(ahead_max.into());
        if now >= free_at {
            return Ok(());
        }
        Err(RateLimited::new(self.policy, free_at.saturating_sub(now).into()))
    }
}

impl RateLimitPolicy {
    fn of(name: &'static str, quota: Quota) -> Self {
        let window = quota.burst_size_replenished_in();
        Self { name, count: quota.burst_size().get(), window_seconds: ceil_seconds(window) as u32 }
    }
}

impl RateLimited {
    fn new(policy: RateLimitPolicy, wait: Duration) -> Self {
        Self { policy, retry_after_seconds: ceil_seconds(wait) }
    }
}

impl RateLimited {
    /// Returns the seconds to wait, at least 1.
    pub fn retry_after_seconds(&self) -> u64 {
        self.retry_after_seconds
    }
}

impl From<RateLimited> for ApiError {
    fn from(refused: RateLimited) -> Self {
        let error = Self::rate_limited(refused.policy.name, refused.retry_after_seconds);
        refused.headers().fold(error, |error, (name, value)| error.with_header(name, value))
    }
}

/// Rounds up to whole seconds, at least one.
fn ceil_seconds(wait: Duration) -> u64 {
    wait.as_millis().div_ceil(1_000).max(1) as u64
}

/// Server clock, adapted to `governor`.
#[derive(Clone)]
struct LimiterClock(Arc<dyn Clock>);

impl LimiterClock {
    /// Returns the time since an arbitrary moment in the past.
    fn passed(&self) -> Nanos {
        Nanos::new(self.0.monotonic_us().saturating_mul(1_000))
    }
}

impl governor::clock::Clock for LimiterClock {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        self.passed()
    }
}

#[cfg(test)]
mod tests;
