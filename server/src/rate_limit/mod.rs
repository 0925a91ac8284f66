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
use engine::{BucketName, Clock, Entropy};
use governor::middleware::{NoOpMiddleware, StateInformationMiddleware};
use governor::nanos::Nanos;
use governor::state::keyed::HashMapStateStore;
use governor::{InsufficientCapacity, Quota, RateLimiter};

use self::address_table::AddressTable;
use self::picture_time::PictureTime;
use self::sign_ins::SignIns;
use crate::address::{AddressKey, Network, is_exempt};
use crate::catalog::{Account, AccountId, Conduct, Plan, Standing};
use crate::config::Config;
use crate::limits;

pub use self::sign_ins::SignInTry;

/// Action with a separate rate limit for each account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitedAction {
    /// Storing files by any method; use of a token counts for the account that issued it.
    Upload,
    /// All other requests with an API key, except delivery.
    Management,
}

/// Rate-limit policy, as reported to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    pub name: &'static str,
    /// Burst size.
    pub count: u32,
    /// Time to refill an empty bucket.
    pub window_seconds: u32,
}

/// Granted request, with the remaining tokens, unless there is no limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken(Option<Remainder>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Remainder {
    policy: Policy,
    remaining: u32,
}

/// Rejected request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    policy: Policy,
    /// Seconds to wait, at least 1.
    retry_after_seconds: u64,
}

/// All rate limits.
pub struct Allowances {
    time: Time,
    free: Rates,
    starter: Rates,
    pro: Rates,
    management: Rates,
    sign_ins: SignIns,
    settable: ArcSwap<Settable>,
    conduct: Arc<Conduct>,
    tidied_ms: AtomicU64,
}

/// Limits that depend on the configuration, replaced as a whole.
struct Settable {
    plan_rates: bool,
    business: Arc<Rates>,
    failures: Option<Arc<OfAddresses>>,
    requests: Option<Arc<OfAddresses>>,
    pictures: Arc<PictureTime>,
    trusted: Vec<Network>,
    /// Configuration values that they were created from.
    numbers: Numbers,
}

/// Configured rates.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Numbers {
    business: u32,
    failures: u32,
    requests: (u32, u32),
    pictures: (u32, u32),
}

impl Allowances {
    pub fn new(
        config: &Config,
        clock: Arc<dyn Clock>,
        entropy: &dyn Entropy,
        conduct: Arc<Conduct>,
    ) -> Self {
        let time = Time(clock);
        let rates = |name, throttled, count| Rates::new(name, throttled, count, &time);
        let settable = Settable::new(config, &time, entropy);
        Self {
            free: rates("upload-free", "upload-free-throttled", limits::UPLOADS_PER_MINUTE_FREE),
            starter: rates(
                "upload-starter",
                "upload-starter-throttled",
                limits::UPLOADS_PER_MINUTE_STARTER,
            ),
            pro: rates("upload-pro", "upload-pro-throttled", limits::UPLOADS_PER_MINUTE_PRO),
            management: rates("management", "management-throttled", limits::MANAGEMENT_PER_MINUTE),
            sign_ins: SignIns::new(&time, entropy),
            settable: ArcSwap::from_pointee(settable),
            conduct,
            tidied_ms: AtomicU64::new(time.0.monotonic_ms()),
            time,
        }
    }

    /// Applies a new configuration. The usage of a changed limit is reset, that of others is not.
    pub fn change(&self, config: &Config, entropy: &dyn Entropy) {
        let settable = Settable::after(&self.settable.load(), config, &self.time, entropy);
        self.settable.store(Arc::new(settable));
    }

    /// Charges an action to an account.
    pub fn take(&self, action: LimitedAction, account: &Account) -> Result<Taken, Refused> {
        self.conduct.note_request(&account.id);
        let settable = self.settable.load();
        if !settable.plan_rates {
            return Ok(Taken(None));
        }
        self.forget_idle(&settable);
        let taken = self.rate(&settable, action, account).take(&account.id);
        if taken.is_err() {
            self.conduct.note_refusal(&account.id);
        }
        taken
    }

    /// Charges a request to an address.
    pub fn take_request(&self, address: IpAddr) -> Result<(), Refused> {
        let settable = self.settable.load();
        match &settable.requests {
            Some(requests) if !settable.is_exempt(address) => {
                requests.take(AddressKey::of(address), NonZeroU32::MIN)
            }
            _ => Ok(()),
        }
    }

    /// Charges image processing time, in milliseconds of CPU, to an address and to the bucket of the file.
    pub fn take_picture_time(
        &self,
        address: Option<IpAddr>,
        bucket: &BucketName,
        milliseconds: u64,
    ) -> Result<(), Refused> {
        let settable = self.settable.load();
        self.forget_idle(&settable);
        let address = address.filter(|address| !settable.is_exempt(*address)).map(AddressKey::of);
        settable.pictures.take(address, bucket, milliseconds)
    }

    /// Charges an invalid API key to an address; fails if the address has used up its limit.
    pub fn take_failure(&self, address: IpAddr) -> Result<(), Refused> {
        let settable = self.settable.load();
        match &settable.failures {
            Some(failures) if !settable.is_exempt(address) => {
                failures.take(AddressKey::of(address), NonZeroU32::MIN)
            }
            _ => Ok(()),
        }
    }

    /// Charges a sign-in attempt: to the address and the name, or to a known device of the account.
    pub fn take_sign_in(
        &self,
        address: Option<IpAddr>,
        name: &str,
        device: Option<&str>,
    ) -> Result<SignInTry, Refused> {
        let settable = self.settable.load();
        self.sign_ins.take(address.filter(|address| !settable.is_exempt(*address)), name, device)
    }

    /// Refunds a successful sign-in.
    pub fn give_back_sign_in(&self, taken: SignInTry) {
        self.sign_ins.give_back(taken);
    }

    /// Returns the number of accounts, addresses and buckets with state.
    pub fn known_count(&self) -> usize {
        let settable = self.settable.load();
        let accounts = self.rates(&settable).map(|rate| rate.limiter.len());
        let addresses = [&settable.failures, &settable.requests].into_iter().flatten();
        accounts.sum::<usize>()
            + addresses.map(|it| it.known_count()).sum::<usize>()
            + settable.pictures.known_count()
            + self.sign_ins.known_count()
    }

    fn rate<'a>(
        &'a self,
        settable: &'a Settable,
        action: LimitedAction,
        account: &Account,
    ) -> &'a Rate {
        let rates = match (action, account.plan) {
            (LimitedAction::Management, _) => &self.management,
            (LimitedAction::Upload, Plan::Free) => &self.free,
            (LimitedAction::Upload, Plan::Starter) => &self.starter,
            (LimitedAction::Upload, Plan::Pro) => &self.pro,
            (LimitedAction::Upload, Plan::Business) => &settable.business,
        };
        if account.standing == Standing::Throttled { &rates.throttled } else { &rates.full }
    }

    fn rates<'a>(&'a self, settable: &'a Settable) -> impl Iterator<Item = &'a Rate> {
        let all = [&self.free, &self.starter, &self.pro, &*settable.business, &self.management];
        all.into_iter().flat_map(|rates| [&rates.full, &rates.throttled])
    }

    /// Drops accounts and buckets whose token buckets are full, periodically.
    fn forget_idle(&self, settable: &Settable) {
        let now_ms = self.time.0.monotonic_ms();
        let tidied_ms = self.tidied_ms.load(Ordering::Relaxed);
        let is_due = now_ms.saturating_sub(tidied_ms) >= limits::ALLOWANCES_KEEP.as_millis() as u64;
        let ours = |from| {
            let (order, otherwise) = (Ordering::Relaxed, Ordering::Relaxed);
            self.tidied_ms.compare_exchange(from, now_ms, order, otherwise).is_ok()
        };
        if is_due && ours(tidied_ms) {
            self.rates(settable).for_each(|rate| rate.limiter.retain_recent());
            settable.pictures.forget_idle();
        }
    }
}

impl Settable {
    fn new(config: &Config, time: &Time, entropy: &dyn Entropy) -> Self {
        let numbers = Numbers::of(config);
        Self {
            plan_rates: config.plan_rates,
            business: numbers.business(time),
            failures: numbers.failures(time, entropy),
            requests: numbers.requests(time, entropy),
            pictures: Arc::new(PictureTime::new(config, time, entropy)),
            trusted: config.trusted_networks.clone(),
            numbers,
        }
    }

    /// Creates the limits of a new configuration, reusing unchanged ones.
    fn after(was: &Self, config: &Config, time: &Time, entropy: &dyn Entropy) -> Self {
        let (old, numbers) = (was.numbers, Numbers::of(config));
        let mut is = Self::new(config, time, entropy);
        if old.business == numbers.business {
            is.business = was.business.clone();
        }
        if old.failures == numbers.failures {
            is.failures.clone_from(&was.failures);
        }
        if old.requests == numbers.requests {
            is.requests.clone_from(&was.requests);
        }
        if old.pictures == numbers.pictures {
            is.pictures = was.pictures.clone();
        }
        is
    }

    /// Returns whether an address is exempt: in a trusted network, whose users must not be rejected because of one of
    /// them.
    fn is_exempt(&self, address: IpAddr) -> bool {
        is_exempt(address, &self.trusted)
    }
}

impl Numbers {
    fn of(config: &Config) -> Self {
        let (address, bucket) =
            (config.image_ms_per_second_per_address, config.image_ms_per_second_per_bucket);
        Self {
            business: config.business_uploads_per_minute,
            failures: config.failed_authentications_per_minute,
            requests: (config.address_requests_per_second, config.address_requests_burst),
            pictures: (address, bucket),
        }
    }

    fn business(self, time: &Time) -> Arc<Rates> {
        let (name, throttled) = ("upload-business", "upload-business-throttled");
        Arc::new(Rates::new(name, throttled, self.business, time))
    }

    fn failures(self, time: &Time, entropy: &dyn Entropy) -> Option<Arc<OfAddresses>> {
        let quota = Quota::per_minute(NonZeroU32::new(self.failures)?);
        Some(Arc::new(OfAddresses::new("failed-auth", quota, time, entropy)))
    }

    fn requests(self, time: &Time, entropy: &dyn Entropy) -> Option<Arc<OfAddresses>> {
        let (rate, burst) = (NonZeroU32::new(self.requests.0)?, NonZeroU32::new(self.requests.1)?);
        let quota = Quota::per_second(rate).allow_burst(burst);
        Some(Arc::new(OfAddresses::new("address", quota, time, entropy)))
    }
}

/// Rate of one kind of accounts, full and throttled.
struct Rates {
    full: Rate,
    throttled: Rate,
}

struct Rate {
    policy: Policy,
    limiter: RateLimiter<AccountId, HashMapStateStore<AccountId>, Time, StateInformationMiddleware>,
}

impl Rates {
    fn new(name: &'static str, throttled: &'static str, count: u32, time: &Time) -> Self {
        Self {
            full: Rate::new(name, count, time),
            throttled: Rate::new(throttled, count / limits::THROTTLED_DIVISOR, time),
        }
    }
}

impl Rate {
    /// Creates a rate per minute of at least one.
    fn new(name: &'static str, count: u32, time: &Time) -> Self {
        let count = NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::per_minute(count);
        let limiter = RateLimiter::hashmap_with_clock(quota, time.clone()).with_middleware();
        Self { policy: Policy::of(name, quota), limiter }
    }

    fn take(&self, account: &AccountId) -> Result<Taken, Refused> {
        let policy = self.policy;
        match self.limiter.check_key(account) {
            Ok(state) => {
                let remaining = state.remaining_burst_capacity();
                Ok(Taken(Some(Remainder { policy, remaining })))
            }
            Err(not_until) => {
                let now = self.limiter.clock().passed();
                Err(Refused::new(policy, not_until.wait_time_from(now)))
            }
        }
    }
}

/// Rate limit of each address, and of each IPv6 /48 as a whole.
struct OfAddresses {
    addresses: OfKeys,
    networks: OfKeys,
}

impl OfAddresses {
    fn new(name: &'static str, quota: Quota, time: &Time, entropy: &dyn Entropy) -> Self {
        let addresses = limits::ADDRESSES_PER_NETWORK;
        let burst = quota.burst_size().saturating_mul(addresses);
        let interval = quota.replenish_interval() / addresses.get();
        let of_network = Quota::with_period(interval).map(|quota| quota.allow_burst(burst));
        Self {
            addresses: OfKeys::new(name, quota, time, entropy),
            networks: OfKeys::new(name, of_network.unwrap_or(quota), time, entropy),
        }
    }

    /// Takes tokens, at most the burst size.
    fn take(&self, address: AddressKey, count: NonZeroU32) -> Result<(), Refused> {
        let network = address.network();
        if let Some(network) = network {
            self.networks.check(network, count)?;
        }
        self.addresses.take(address, count)?;
        network.map_or(Ok(()), |network| self.networks.take(network, count))
    }

    fn check(&self, address: AddressKey, count: NonZeroU32) -> Result<(), Refused> {
        if let Some(network) = address.network() {
            self.networks.check(network, count)?;
        }
        self.addresses.check(address, count)
    }

    fn give_back(&self, address: AddressKey) {
        self.addresses.give_back(address);
        if let Some(network) = address.network() {
            self.networks.give_back(network);
        }
    }

    fn known_count(&self) -> usize {
        self.addresses.table.count() + self.networks.table.count()
    }
}

/// Rate limit of each of many keys, in a table of fixed size.
struct OfKeys {
    policy: Policy,
    table: AddressTable,
    limiter: RateLimiter<AddressKey, AddressTable, Time, NoOpMiddleware<Nanos>>,
    quota: Quota,
    started: Nanos,
}

impl OfKeys {
    fn new(name: &'static str, quota: Quota, time: &Time, entropy: &dyn Entropy) -> Self {
        let table = AddressTable::new(entropy);
        Self {
            policy: Policy::of(name, quota),
            quota,
            started: time.passed(),
            limiter: RateLimiter::new(quota, table.clone(), time.clone()),
            table,
        }
    }

    /// Takes tokens, at most the burst size.
    fn take(&self, address: AddressKey, count: NonZeroU32) -> Result<(), Refused> {
        let count = count.min(self.quota.burst_size());
        match self.limiter.check_key_n(&address, count) {
            Ok(Err(not_until)) => {
                let now = self.limiter.clock().passed();
                Err(Refused::new(self.policy, not_until.wait_time_from(now)))
            }
            Ok(Ok(())) | Err(InsufficientCapacity(_)) => Ok(()),
        }
    }

    /// Refunds one token.
    fn give_back(&self, address: AddressKey) {
        self.table.give_back(address, self.quota.replenish_interval().into());
    }

    /// Checks whether enough tokens are left, without taking them.
    fn check(&self, address: AddressKey, count: NonZeroU32) -> Result<(), Refused> {
        let Some(whole_at) = self.table.whole_at(address) else { return Ok(()) };
        let now = self.limiter.clock().passed().saturating_sub(self.started);
        let count = count.min(self.quota.burst_size()).get();
        // Maximum time by which an address may be ahead of the present.
        let ahead_max =
            self.quota.burst_size_replenished_in() - self.quota.replenish_interval() * count;
        let free_at = whole_at.saturating_sub(ahead_max.into());
        if now >= free_at {
            return Ok(());
        }
        Err(Refused::new(self.policy, free_at.saturating_sub(now).into()))
    }
}

impl Policy {
    fn of(name: &'static str, quota: Quota) -> Self {
        let window = quota.burst_size_replenished_in();
        Self { name, count: quota.burst_size().get(), window_seconds: whole_seconds(window) as u32 }
    }
}

impl Refused {
    fn new(policy: Policy, wait: Duration) -> Self {
        Self { policy, retry_after_seconds: whole_seconds(wait) }
    }

    pub fn policy(&self) -> Policy {
        self.policy
    }

    pub fn retry_after_seconds(&self) -> u64 {
        self.retry_after_seconds
    }
}

/// Rounds up to whole seconds, at least one.
fn whole_seconds(wait: Duration) -> u64 {
    wait.as_millis().div_ceil(1_000).max(1) as u64
}

/// Server clock, adapted to `governor`.
#[derive(Clone)]
struct Time(Arc<dyn Clock>);

impl Time {
    /// Returns the time since an arbitrary moment in the past.
    fn passed(&self) -> Nanos {
        Nanos::new(self.0.monotonic_us().saturating_mul(1_000))
    }
}

impl governor::clock::Clock for Time {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        self.passed()
    }
}

#[cfg(test)]
mod tests;
