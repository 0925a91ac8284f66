//! A service in memory: simulated disk, clock and random numbers under the real store, catalog and router.
//!
//! Guarantees: two worlds of one seed behave identically. Non-goals: sockets and sleeps.

use std::sync::Arc;

use catalog::{BucketKind, Plan, Role};
use engine::clock::{Clock, SimClock};
use engine::disk::faults::PathPattern;
use engine::disk::sim::SimDisk;
use engine::remote::SimRemote;
use engine::replication::ReplicationOptions;
use engine::rng::{Rng, SeededRng};
use engine::{Create, Environment, OpenOptions, Store};
use protocol::public_url::PublicUrl;
use server::dispatch::HttpService;
use server::management::{
    AccountSettings, AdminRequest, AdminResponse, ApiKeyIssuedView, ApiKeySettings, BucketOwner,
    BucketSettings,
};
use service::config::Config;
use service::state::AppState;

use crate::{Client, fixtures};

/// Initial time of every world: 2026-01-31T12:00:00Z.
pub const BEGINNING_MS: u64 = 1_769_860_800_000;
/// Base URL of every generated address.
pub const PUBLIC_URL: &str = "https://cdn.example.com";

/// Pause between two chunks of a replicated world, in milliseconds.
const SHIP_INTERVAL_MS: u64 = 10;
/// Segments above this would be only in the remote store.
const LOCAL_BYTES_MAX: u64 = 1 << 30;

/// A service, and the handles of its environment.
pub struct World {
    pub disk: Arc<SimDisk>,
    pub store: Store,
    pub clock: Arc<SimClock>,
    pub state: AppState,
    seed: u64,
    app: HttpService,
}

impl World {
    /// Creates an empty service without rate limits.
    pub fn new(seed: u64) -> Self {
        Self::with(seed, Config { plan_rates: false, ..Config::default() })
    }

    /// Creates an empty service with the given configuration.
    pub fn with(seed: u64, config: Config) -> Self {
        let disk = SimDisk::with_seed(seed);
        Self::on(disk, SimClock::at(BEGINNING_MS), seed, config, None)
    }

    /// Creates an empty service that replicates to a new simulated remote store.
    pub fn replicated(seed: u64, config: Config) -> (Self, SimRemote) {
        let clock = SimClock::at(BEGINNING_MS);
        let remote = SimRemote::new(Arc::new(SimClock::at(BEGINNING_MS)));
        let world = Self::on(SimDisk::with_seed(seed), clock, seed, config, Some(remote.clone()));
        (world, remote)
    }

    /// Opens a copy of the service with the same remote store, as another process would.
    pub fn copied_to(&self, remote: &SimRemote) -> Self {
        let clock = SimClock::at(self.clock.unix_ms());
        let config = Config::clone(&self.state.config());
        Self::on(self.disk.fork(), clock, self.seed + 1, config, Some(remote.clone()))
    }

    /// Opens the service on an existing disk, as after a restart at the same moment.
    pub fn found_on(&self, disk: SimDisk) -> Self {
        self.found_with(disk, Config::clone(&self.state.config()))
    }

    /// Opens the service on an existing disk with another configuration.
    pub fn found_with(&self, disk: SimDisk, config: Config) -> Self {
        let clock = SimClock::at(self.clock.unix_ms());
        Self::on(disk, clock, self.seed + 1, config, None)
    }

    fn on(
        disk: SimDisk,
        clock: SimClock,
        seed: u64,
        config: Config,
        remote: Option<SimRemote>,
    ) -> Self {
        let (disk, clock) = (Arc::new(disk), Arc::new(clock));
        let rng: Arc<dyn Rng> = Arc::new(SeededRng::new(seed));
        let surroundings = Environment {
            disk: disk.clone(),
            clock: clock.clone(),
            rng: rng.clone(),
            remote: None,
        };
        let mut options = OpenOptions::new(Create::IfMissing);
        options.reserve_bytes = config.reserve_bytes;
        options.retention_window_ms = config.undelete_window.as_millis() as u64;
        options.replication = remote.map(|remote| ReplicationOptions {
            ship_interval_ms: SHIP_INTERVAL_MS,
            local_bytes_max: LOCAL_BYTES_MAX,
            ..ReplicationOptions::new(Arc::new(remote))
        });
        let (store, _) = Store::open(surroundings, options).expect("the disk opens");
        let url = PublicUrl::parse(PUBLIC_URL).expect("the address is valid");
        let ours: Arc<dyn Clock> = clock.clone();
        let state =
            AppState::new(store.clone(), config, url, ours, rng).expect("the catalog opens");
        let app = HttpService::new(state.clone());
        Self { disk, store, clock, state, seed, app }
    }

    /// Creates a service with the account `ann`, her public bucket `photos`, and a client with a key of full access.
    pub fn with_bucket(seed: u64) -> (Self, Client) {
        Self::new(seed).and_bucket()
    }

    /// Creates a service as [`World::with_bucket`] does, with the given configuration.
    pub fn with_bucket_and(seed: u64, config: Config) -> (Self, Client) {
        Self::with(seed, config).and_bucket()
    }

    /// Adds the account `ann`, her public bucket `photos`, and a client with a key of full access.
    pub fn and_bucket(self) -> (Self, Client) {
        let world = self;
        world.account("ann");
        world.bucket("ann", "photos", BucketSettings::default());
        let client = world.client_of("ann", ApiKeySettings::default());
        (world, client)
    }

    /// Returns the service, for tests that use a socket of their own.
    pub fn app(&self) -> HttpService {
        self.app.clone()
    }

    /// Returns the same client at the premium endpoint.
    pub fn at_premium(&self, client: &Client) -> Client {
        Client::new(HttpService::new(self.state.premium()), client.key.clone())
    }

    /// Sets the plan of an account.
    pub fn set_plan(&self, account: &str, plan: Plan) {
        let settings = AccountSettings { plan: Some(plan), ..AccountSettings::default() };
        self.edit_account(account, settings);
    }

    /// Returns a client without a key.
    pub fn anonymous(&self) -> Client {
        Client::new(self.app.clone(), None)
    }

    /// Returns a client with a new key of the account.
    pub fn client_of(&self, account: &str, settings: ApiKeySettings) -> Client {
        let issued = self.api_key(account, settings);
        Client::new(self.app.clone(), Some(issued.key))
    }

    /// Creates an account with the role `user` on the plan `Free`; returns its id.
    pub fn account(&self, name: &str) -> String {
        fixtures::create_account(&self.state, name, Role::User, Plan::Free)
    }

    pub fn edit_account(&self, account: &str, settings: AccountSettings) {
        self.manage(AdminRequest::EditAccount { account: account.into(), settings });
    }

    /// Creates an operator; returns a client with a key of full access.
    pub fn operator(&self) -> Client {
        self.account("op");
        self.make_operator("op");
        self.client_of("op", ApiKeySettings::default())
    }

    /// Sets the password of an account.
    pub fn set_password(&self, account: &str, password: &str) {
        fixtures::set_password(&self.state, account, password);
    }

    pub fn bucket(&self, account: &str, name: &str, settings: BucketSettings) {
        self.bucket_of(BucketOwner::Account(account.into()), name, settings);
    }

    pub fn bucket_of(&self, owner: BucketOwner, name: &str, settings: BucketSettings) {
        let (name, kind) = (name.into(), Default::default());
        self.manage(AdminRequest::CreateBucket { name, owner, kind, settings });
    }

    /// Creates a bucket of the type `phone`.
    pub fn phone_bucket(&self, account: &str, name: &str) {
        let (owner, kind) = (BucketOwner::Account(account.into()), BucketKind::Phone);
        let (name, settings) = (name.into(), BucketSettings::default());
        self.manage(AdminRequest::CreateBucket { name, owner, kind, settings });
    }

    pub fn edit_bucket(&self, name: &str, settings: BucketSettings) {
        self.manage(AdminRequest::EditBucket { name: name.into(), settings });
    }

    pub fn api_key(&self, account: &str, settings: ApiKeySettings) -> ApiKeyIssuedView {
        fixtures::create_key(&self.state, account, settings)
    }

    /// Sends a management request as the operator.
    pub fn manage(&self, request: AdminRequest) -> AdminResponse {
        fixtures::manage(&self.state, request)
    }

    /// Returns the segment that commits write to, of a log with one segment: a fault there hits commits, and not the
    /// thread that prepares the next segment.
    pub fn first_log_segment(&self) -> PathPattern {
        let first = self.disk.paths().into_iter().filter(|path| path.starts_with("log/")).min();
        PathPattern::Prefix(first.expect("a log"))
    }

    /// Returns the number of objects in a bucket.
    pub fn object_count(&self, bucket: &str) -> u64 {
        let bucket = engine::BucketName::parse(bucket).expect("the bucket name is valid");
        self.store.bucket_usage(&bucket).expect("usage can be read").objects
    }
}
