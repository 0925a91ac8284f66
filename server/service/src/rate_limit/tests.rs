use std::collections::HashMap;
use std::net::Ipv4Addr;

use catalog::{AccountName, Role};
use engine::clock::SimClock;
use engine::rng::SeededRng;
use proptest::prelude::*;

use super::*;

const MINUTE_MS: u64 = 60_000;

struct World {
    clock: Arc<SimClock>,
    rate_limits: RateLimits,
    account: Account,
}

fn world(config: &Config) -> World {
    let clock = Arc::new(SimClock::at(1_700_000_000_000));
    let rejections = Arc::new(RateLimitRejections::new(clock.clone()));
    let rate_limits = RateLimits::new(config, clock.clone(), &SeededRng::new(5), rejections);
    let account = Account {
        id: AccountId::parse("annannannannanna").unwrap(),
        name: AccountName::parse("ann").unwrap(),
        role: Role::User,
        plan: Plan::Free,
        standing: FairUseStanding::Good,
        quota: catalog::Quota::default(),
        created_ms: 0,
    };
    World { clock, rate_limits, account }
}

/// Returns how many consecutive uploads pass, up to a maximum.
fn passing(world: &World, account: &Account, most: u32) -> u32 {
    let take = || world.rate_limits.charge(RateClass::Upload, account).is_ok();
    (0..most).take_while(|_| take()).count() as u32
}

/// Returns a distinct address for each number.
fn address(number: u32) -> IpAddr {
    Ipv4Addr::from_bits(0x0b00_0000 + number).into()
}

#[test]
fn rate_depends_on_plan_and_throttling() {
    let config = Config { business_uploads_per_minute: 2_000, ..Config::default() };
    let world = world(&config);
    for (plan, rate) in
        [(Plan::Free, 100), (Plan::Starter, 300), (Plan::Pro, 1_000), (Plan::Business, 2_000)]
    {
        for (standing, rate) in [
            (FairUseStanding::Good, rate),
            (FairUseStanding::Throttled, rate / 10),
            (FairUseStanding::Notified, 0),
            (FairUseStanding::UpgradeRequested, 0),
        ] {
            let account = Account { plan, standing, ..world.account.clone() };
            assert_eq!(passing(&world, &account, 3_000), rate, "{plan:?} {standing:?}");
        }
    }
}

#[test]
fn token_bucket_refills_at_the_exact_time() {
    let world = world(&Config::default());
    assert_eq!(passing(&world, &world.account, 200), 100);
    world.clock.advance(599);
    assert_eq!(passing(&world, &world.account, 1), 0);
    world.clock.advance(1);
    assert_eq!(passing(&world, &world.account, 2), 1);
    world.clock.advance(MINUTE_MS);
    assert_eq!(passing(&world, &world.account, 200), 100);
    world.clock.advance(100 * MINUTE_MS);
    assert_eq!(passing(&world, &world.account, 200), 100);
}

#[test]
fn zero_account_rate_is_unlimited() {
    let world = world(&Config { plan_rates: false, ..Config::default() });
    assert_eq!(passing(&world, &world.account, 5_000), 5_000);
    assert_eq!(
        world.rate_limits.charge(RateClass::Upload, &world.account),
        Ok(RateLimitGrant(None))
    );
}

#[test]
fn uploads_and_requests_have_separate_limits() {
    let world = world(&Config::default());
    assert_eq!(passing(&world, &world.account, 200), 100);
    let manage = || world.rate_limits.charge(RateClass::Management, &world.account);
    assert_eq!((0..1_100).filter(|_| manage().is_ok()).count(), 1_000);
    assert_eq!(manage().unwrap_err().policy.name, "management");
}

#[test]
fn invalid_keys_are_limited_per_ip() {
    let world = world(&Config::default());
    let fail = |number| world.rate_limits.take_failure(address(number));
    assert!((0..60).all(|_| fail(1).is_ok()));
    let refused = fail(1).unwrap_err();
    assert_eq!((refused.policy.name, refused.retry_after_seconds), ("failed-auth", 1));
    assert!(fail(2).is_ok());
    world.clock.advance(999);
    assert!(fail(1).is_err());
    world.clock.advance(1);
    assert!(fail(1).is_ok());
    assert!(fail(1).is_err());
}

#[test]
fn zero_is_no_bound_and_trusted_networks_have_none() {
    let trusted_networks = vec![Network::parse("10.0.0.0/8").unwrap()];
    let few = Config {
        failed_authentications_per_minute: 1,
        address_requests_per_second: 1,
        address_requests_burst: 1,
        trusted_networks,
        ..Config::default()
    };
    let none = Config {
        failed_authentications_per_minute: 0,
        address_requests_per_second: 0,
        ..few.clone()
    };
    let passes = |config: &Config, address: &str| {
        let world = world(config);
        let address = address.parse().unwrap();
        world.rate_limits.take_failure(address).unwrap();
        world.rate_limits.charge_request(address).unwrap();
        let failures = world.rate_limits.take_failure(address).is_ok();
        (failures, world.rate_limits.charge_request(address).is_ok())
    };
    assert_eq!(passes(&few, "192.0.2.1"), (false, false));
    assert_eq!(passes(&none, "192.0.2.1"), (true, true));
    for trusted in ["10.1.2.3", "127.0.0.1", "::1", "::ffff:127.0.0.1"] {
        assert_eq!(passes(&few, trusted), (true, true), "{trusted}");
    }
}

#[test]
fn ip_flood_does_not_grow_memory() {
    let world = world(&Config::default());
    for number in 0..1_000_000 {
        world.rate_limits.charge_request(address(number)).unwrap();
    }
    assert!(world.rate_limits.tracked_count() <= limits::RATE_LIMIT_IPS_MAX);
}

#[test]
fn idle_accounts_are_pruned() {
    let world = world(&Config::default());
    for number in 0..500_u16 {
        let letter = |bit: u16| if (number >> bit) & 1 == 0 { 'a' } else { 'b' };
        let id = AccountId::parse(&(0..16).map(letter).collect::<String>()).unwrap();
        passing(&world, &Account { id, ..world.account.clone() }, 1);
    }
    assert_eq!(world.rate_limits.tracked_count(), 500);
    world.clock.advance(2 * MINUTE_MS);
    assert_eq!(passing(&world, &world.account, 200), 100);
    assert!(world.rate_limits.tracked_count() <= 1);
}

/// Reference model of a token bucket: in sixty-thousandths of a request, refilled by `rate` each millisecond.
struct Tank {
    rate: u64,
    level: u64,
    at_ms: u64,
}

impl Tank {
    fn take(&mut self, now_ms: u64) -> Result<u32, u64> {
        let came = (now_ms - self.at_ms) * self.rate;
        (self.level, self.at_ms) = ((self.level + came).min(self.rate * MINUTE_MS), now_ms);
        if self.level < MINUTE_MS {
            return Err((MINUTE_MS - self.level).div_ceil(self.rate).div_ceil(1_000).max(1));
        }
        self.level -= MINUTE_MS;
        Ok((self.level / MINUTE_MS) as u32)
    }
}

proptest! {
    #[test]
    fn rate_limiter_matches_token_bucket_model(
        steps in prop::collection::vec((0..3_u64, 0..4_usize, 1..150_u32, 0..2_000_u64), 1..60),
    ) {
        let world = world(&Config::default());
        let ids = ["aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb", "cccccccccccccccc"];
        let kinds = [
            (Plan::Free, FairUseStanding::Good, 100),
            (Plan::Free, FairUseStanding::Throttled, 10),
            (Plan::Starter, FairUseStanding::Good, 300),
            (Plan::Pro, FairUseStanding::UpgradeRequested, 1_000),
        ];
        let mut tanks = HashMap::new();
        let mut now_ms = 0;
        for (who, kind, count, wait_ms) in steps {
            let id = AccountId::parse(ids[who as usize]).unwrap();
            let (plan, standing, rate) = kinds[kind];
            let account = Account { id, plan, standing, ..world.account.clone() };
            let tank = tanks.entry((who, kind)).or_insert(Tank { rate, level: rate * MINUTE_MS, at_ms: 0 });
            for _ in 0..count {
                let taken = world.rate_limits.charge(RateClass::Upload, &account);
                let result = taken.map(|it| it.0.unwrap().remaining).map_err(|it| it.retry_after_seconds);
                prop_assert_eq!(result, tank.take(now_ms));
            }
            world.clock.advance(wait_ms * 7);
            now_ms += wait_ms * 7;
        }
    }
}

#[test]
fn image_cpu_is_charged_per_ip_and_bucket() {
    let config = Config {
        image_ms_per_second_per_address: 10,
        image_ms_per_second_per_bucket: 20,
        ..Config::default()
    };
    let world = world(&config);
    let [pics, more] = ["pics", "more"].map(|name| BucketName::parse(name).unwrap());
    let take = |number, bucket: &BucketName, milliseconds| {
        let taken = world.rate_limits.charge_image_cpu(Some(address(number)), bucket, milliseconds);
        taken.map_err(|refused| (refused.policy.name, refused.retry_after_seconds))
    };
    // Burst of five minutes: 3,000 for an address, 6,000 for a bucket.
    assert_eq!(take(1, &pics, 2_900), Ok(()));
    assert_eq!(take(1, &pics, 200), Err(("pictures-address", 10)));
    assert_eq!(take(1, &pics, 100), Ok(()));
    assert_eq!(take(2, &pics, 3_000), Ok(()), "what was refused took nothing of the bucket");
    assert_eq!(take(3, &pics, 20), Err(("pictures-bucket", 1)));
    assert_eq!(take(3, &more, 3_000), Ok(()), "what the bucket refused took nothing of an address");
    let own = Some(Ipv4Addr::LOCALHOST.into());
    for nobody in [None, own] {
        let taken = world.rate_limits.charge_image_cpu(nobody, &more, 1_500);
        assert_eq!(taken, Ok(()), "the machine itself has no limit for addresses");
    }
    assert!(world.rate_limits.charge_image_cpu(own, &more, 1).is_err(), "but buckets have theirs");
    world.clock.advance(300_000);
    assert_eq!(take(1, &more, u64::MAX), Ok(()), "the largest picture takes all there is");
    assert_eq!(take(1, &more, 1), Err(("pictures-address", 1)));
    world.clock.advance(301_000);
    assert_eq!(world.rate_limits.charge_image_cpu(None, &pics, 1), Ok(()));
    // Three addresses stay in their table; one of the buckets is full again.
    assert_eq!(world.rate_limits.tracked_count(), 3 + 1);
}

#[test]
fn zero_image_cpu_limit_is_unlimited() {
    let config = Config {
        image_ms_per_second_per_address: 0,
        image_ms_per_second_per_bucket: 0,
        ..Config::default()
    };
    let world = world(&config);
    let pics = BucketName::parse("pics").unwrap();
    for _ in 0..1_000 {
        assert_eq!(world.rate_limits.charge_image_cpu(Some(address(1)), &pics, 1_000_000), Ok(()));
    }
}
