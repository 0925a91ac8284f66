//! Allowances: how much an account, an address, or whoever reads a bucket or signs in, may ask for, and what is left.
//!
//! An allowance refills evenly and holds one window's worth at most: 100 in a minute are 100 at once after a pause,
//! then one each 0.6 seconds. `governor` does the arithmetic, on our clock.
//! Promises: two accounts, and two plans, never share an allowance; what is refused takes nothing; memory is bounded by
//! the accounts and buckets that were used lately and, for addresses, by a table of fixed size. Nothing of it survives
//! a restart. Never here: who is asking, and how a refusal is sent.

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

/// What is counted apart for each account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitedAction {
    /// Storing files, by whatever way; the use of a token counts for the account that issued it.
    Upload,
    /// Everything else that needs an API key, but delivery.
    Management,
}

/// What an allowance is, as it is told to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    pub name: &'static str,
    /// How much it holds.
    pub count: u32,
    /// How long it takes to refill from nothing.
    pub window_seconds: u32,
}

/// One was taken; what is left, unless there is any number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken(Option<Remainder>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Remainder {
    policy: Policy,
    remaining: u32,
}

/// There was nothing left to take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    policy: Policy,
    /// At least 1.
    retry_after_seconds: u64,
}

/// All allowances.
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

/// What of it the operator may set, as one whole that is replaced.
struct Settable {
    plan_rates: bool,
    business: Arc<Rates>,
    failures: Option<Arc<OfAddresses>>,
    requests: Option<Arc<OfAddresses>>,
    pictures: Arc<PictureTime>,
    trusted: Vec<Network>,
    /// What it is made of.
    numbers: Numbers,
}

/// The rates that the operator sets.
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

    /// Holds everybody to what is set from now on. What was used up of an allowance that is another one now is
    /// forgotten, of the others it is not.
    pub fn change(&self, config: &Config, entropy: &dyn Entropy) {
        let settable = Settable::after(&self.settable.load(), config, &self.time, entropy);
        self.settable.store(Arc::new(settable));
    }

    /// Takes one of what the account may do of this.
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

    /// Takes one of the requests that an address may send.
    pub fn take_request(&self, address: IpAddr) -> Result<(), Refused> {
        let settable = self.settable.load();
        match &settable.requests {
            Some(requests) if !settable.is_exempt(address) => {
                requests.take(AddressKey::of(address), NonZeroU32::MIN)
            }
            _ => Ok(()),
        }
    }

    /// Takes milliseconds of a processor, for a picture that is made of a file of this bucket.
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

    /// Charges an invalid API key to an address; an error when the address has used up its limit.
    pub fn take_failure(&self, address: IpAddr) -> Result<(), Refused> {
        let settable = self.settable.load();
        match &settable.failures {
            Some(failures) if !settable.is_exempt(address) => {
                failures.take(AddressKey::of(address), NonZeroU32::MIN)
            }
            _ => Ok(()),
        }
    }

    /// Charges a try to sign in: to the address and the name, or to a device that is known for the name.
    pub fn take_sign_in(
        &self,
        address: Option<IpAddr>,
        name: &str,
        device: Option<&str>,
    ) -> Result<SignInTry, Refused> {
        let settable = self.settable.load();
        self.sign_ins.take(address.filter(|address| !settable.is_exempt(*address)), name, device)
    }

    /// The password was right.
    pub fn give_back_sign_in(&self, taken: SignInTry) {
        self.sign_ins.give_back(taken);
    }

    /// How many accounts, addresses and buckets something is known of.
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

    /// Drops accounts and buckets that have everything again, once in a while.
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

    /// What is set by now, with what stays as it was.
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

    /// Behind these addresses are people of our own: what one of them does is no reason to refuse all.
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

/// The rate of accounts of one kind, full and throttled.
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
    /// So many in a minute; at least one.
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

/// A rate limit of each address, and of each /48 of IPv6 addresses together.
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

    /// Takes so many, or as many as the limit allows at once if that is less.
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

/// A rate limit of each of many keys, in a table of fixed size.
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

    /// Takes so many, or as many as the limit allows at once if that is less.
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

    /// Gives one back.
    fn give_back(&self, address: AddressKey) {
        self.table.give_back(address, self.quota.replenish_interval().into());
    }

    /// Whether so many are left, without taking them.
    fn check(&self, address: AddressKey, count: NonZeroU32) -> Result<(), Refused> {
        let Some(whole_at) = self.table.whole_at(address) else { return Ok(()) };
        let now = self.limiter.clock().passed().saturating_sub(self.started);
        let count = count.min(self.quota.burst_size()).get();
        // How far ahead of the present an address may be.
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

/// Rounded up, and at least one.
fn whole_seconds(wait: Duration) -> u64 {
    wait.as_millis().div_ceil(1_000).max(1) as u64
}

/// Our clock, as `governor` wants it.
#[derive(Clone)]
struct Time(Arc<dyn Clock>);

impl Time {
    /// Since some moment in the past.
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
