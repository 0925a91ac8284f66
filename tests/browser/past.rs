//! A store with weeks of history, created by the service itself under a simulated clock.
//!
//! Usage over days, an old backup and dead letters cannot arise within the time of a test. So they are created here:
//! requests, uploads and deliveries are those of the service, and only its clock is simulated. The events are returned,
//! for the tests that check them afterwards.
//!
//! Guarantees: the history ends now, and the store is closed by then. Non-goals: what is displayed of it.

use std::sync::Arc;

use catalog::{Plan, Role};
use engine::clock::{Clock, SimClock, SystemClock};
use engine::rng::{Rng, SystemRng};
use engine::{Create, Environment, OpenOptions, RealDisk, Store};
use jobs::webhooks::deliver_due;
use protocol::destination::Origin;
use protocol::public_url::PublicUrl;
use serde_json::{Value, json};
use server::dispatch::HttpService;
use server::management::{AdminRequest, ApiKeySettings};
use service::config::Config;
use service::state::AppState;
use tests::fixtures::{create_account, create_key, manage, set_password};
use tests::{Client, DataFolder};

/// Length of the history in days.
const DAYS: u64 = 13;
const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;
/// Number of hours whose request counts are returned.
const REPORTED_HOURS: u64 = 23;
/// Age of the backup in hours.
const BACKUP_HOURS: u64 = 12 * 24;
/// Age of the first delivery of the later dead letters in hours.
const CALLS_HOURS: u64 = 11 * 24;
/// Interval between writes of usage counters in hours.
const WRITE_HOURS: u64 = 8;
/// Number of audited changes: more than a page.
const CHANGES: usize = 110;
/// Public URL of the service.
const PUBLIC_URL: &str = "https://cdn.example.com";
/// Address of a client with a wrong password.
const ELSEWHERE: &str = "203.0.113.9";
/// Content of the file that tests look for on the disk.
pub(crate) const LETTER: &str = "Dear reader, these words lie once on the disk.\n";

/// A service, and its clock.
struct Past {
    store: Store,
    state: AppState,
    clock: Arc<SimClock>,
}

/// Runs the history in an empty folder: `olga` operates the server, `ann` has an account. Events about `desk/calls/` go
/// to the receiver.
pub(crate) fn live(data: &DataFolder, password: &str, receiver: &str) -> Value {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(async {
        let now_ms = SystemClock::new().unix_ms();
        let hours = DAYS * 24;
        let this_hour_ms = now_ms - now_ms % HOUR_MS;
        let past = Past::open(data, this_hour_ms - hours * HOUR_MS, receiver);
        create_account(&past.state, "olga", Role::Operator, Plan::Business);
        let ann = create_account(&past.state, "ann", Role::User, Plan::Business);
        set_password(&past.state, "olga", password);
        let (olga, client) = (past.client_of("olga"), past.client_of("ann"));
        let webhook = past.begin(&olga, &client, receiver).await;
        let mut reported = Vec::new();
        for hour in 1..hours {
            past.wait_until(this_hour_ms - (hours - hour) * HOUR_MS + 10 * MINUTE_MS);
            let left = hours - hour;
            match left {
                BACKUP_HOURS => past.back_up(data),
                CALLS_HOURS => calls(&olga).await,
                _ => {}
            }
            let (requests, refusals) = busy_hour(&past, &olga, left).await;
            if left <= REPORTED_HOURS {
                let time = this_hour_ms - left * HOUR_MS;
                reported.push(json!({"timeMs": time, "requests": requests, "refusals": refusals}));
            }
            deliver_due(&past.state.jobs).await;
            past.state.catalog.usage().advance();
            if hour % WRITE_HOURS == 0 {
                past.state.catalog.usage().write().unwrap();
            }
        }
        past.wait_until(now_ms - 20 * MINUTE_MS);
        past.end(&client).await;
        past.wait_until(now_ms);
        past.state.catalog.usage().write().unwrap();
        past.state.catalog.audit().write_file_changes().unwrap();
        past.store.close().unwrap();
        json!({"ann": ann, "webhook": webhook, "hours": reported, "key": olga.key()})
    })
}

/// Sends the requests of an hour; returns the number of requests, and of the rejected ones.
async fn busy_hour(past: &Past, olga: &Client, left: u64) -> (u64, u64) {
    let requests = if left <= REPORTED_HOURS { 8 + left * 5 % 13 } else { 1 + left % 4 };
    for _ in 0..requests {
        assert_eq!(olga.get("/desk/2026/list.txt").await.status, 200);
    }
    let refusals = left % 3;
    for _ in 0..refusals {
        let anonymous = Client::new(HttpService::new(past.state.clone()), None);
        anonymous.get("/desk/2026/list.txt").await.check_error(401, "missing_api_key");
    }
    (requests + refusals, refusals)
}

/// Uploads files whose events are not accepted by the receiver.
async fn calls(olga: &Client) {
    for name in ["one.wav", "two.wav", "three.wav"] {
        olga.put("/desk/calls/", name, b"a call").await;
    }
}

impl Past {
    fn open(data: &DataFolder, began_ms: u64, receiver: &str) -> Self {
        let disk = Arc::new(RealDisk::open(&data.path()).unwrap());
        let clock = Arc::new(SimClock::at(began_ms));
        let rng: Arc<dyn Rng> = Arc::new(SystemRng);
        let surroundings =
            Environment { disk, clock: clock.clone(), rng: rng.clone(), remote: None };
        let webhook_allow = vec![Origin::parse(receiver).unwrap()];
        let config = Config { plan_rates: false, webhook_allow, ..Config::default() };
        let mut options = OpenOptions::new(Create::IfMissing);
        options.retention_window_ms = config.undelete_window.as_millis() as u64;
        let (store, _) = Store::open(surroundings, options).unwrap();
        let url = PublicUrl::parse(PUBLIC_URL).unwrap();
        let state = AppState::new(store.clone(), config, url, clock.clone(), rng).unwrap();
        Self { store, state, clock }
    }

    fn wait_until(&self, unix_ms: u64) {
        self.clock.advance(unix_ms - self.clock.unix_ms());
    }

    fn client_of(&self, account: &str) -> Client {
        let issued = create_key(&self.state, account, ApiKeySettings::default());
        Client::new(HttpService::new(self.state.clone()), Some(issued.key))
    }

    /// Creates the initial state: buckets, files, keys, and a webhook; returns the webhook's id.
    async fn begin(&self, olga: &Client, ann: &Client, receiver: &str) -> String {
        let desk = json!({"bucketName": "desk", "access": "private", "quotaBytes": 1_000_000});
        olga.post_json("/api/buckets", desk).await.check_done();
        ann.post_json("/api/buckets", json!({"bucketName": "shop"})).await.check_done();
        olga.put("/desk/2026/", "letter.txt", LETTER.as_bytes()).await;
        olga.put("/desk/2026/", "list.txt", b"bread, butter\n").await;
        ann.put("/shop/", "sign.txt", b"open\n").await;
        let phone = json!({"name": "phone", "scopes": ["upload"], "bucketName": "shop"});
        ann.post_json("/api/keys", phone).await.check_done();
        let old = json!({"name": "old one", "scopes": ["list"]});
        let old = ann.post_json("/api/keys", old).await.check_done();
        let old = old["apiKey"]["id"].as_str().unwrap().to_owned();
        ann.delete(&format!("/api/keys/{old}")).await.check_done();
        let events = json!(["s3:ObjectCreated:*"]);
        let calls =
            json!({"url": format!("{receiver}/calls"), "events": events, "prefix": "calls/"});
        let calls = olga.post_json("/api/buckets/desk/webhooks", calls).await.check_done();
        let news = json!({"url": format!("{receiver}/news"), "events": events, "prefix": "news/"});
        let news = ann.post_json("/api/buckets/shop/webhooks", news).await.check_done();
        let news =
            format!("/api/buckets/shop/webhooks/{}", news["webhook"]["id"].as_str().unwrap());
        for number in 0..CHANGES {
            ann.patch_json(&news, json!({"enabled": number % 2 == 1})).await.check_done();
        }
        calls["webhook"]["id"].as_str().unwrap().to_owned()
    }

    fn back_up(&self, data: &DataFolder) {
        let to = data.parent().join("backup");
        manage(&self.state, AdminRequest::Backup { to });
    }

    /// Runs the final events: a large file is deleted and can be restored, and a sign-in fails.
    async fn end(&self, ann: &Client) {
        ann.put("/shop/", "film.bin", &vec![7; 3_000_000]).await;
        ann.delete("/shop/film.bin").await.check_done();
        let tried = json!({"name": "olga", "password": "not her password"});
        let refused = ann.without_key().at(ELSEWHERE).post_json("/-/session", tried).await;
        refused.check_own_error(401, "wrong_password");
    }
}
