//! Fair use of the plan Free: specification 8, clients 13.13.

use catalog::{Catalog, ChangedBy, FairUseStanding, Plan, Role};
use server::management::{
    AccountSettings, AccountView, AdminRequest, AdminResponse, ApiKeySettings, BucketSettings,
    StandingStepView, SweepReportView, standing_changes,
};
use service::config::Config;
use tests::{Client, World};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

fn sweep(world: &World) -> SweepReportView {
    match world.manage(AdminRequest::SweepAccounts) {
        AdminResponse::Swept(swept) => swept,
        other => panic!("a sweep was asked for, not {other:?}"),
    }
}

fn account(world: &World, name: &str) -> AccountView {
    match world.manage(AdminRequest::ListAccounts) {
        AdminResponse::Accounts(all) => {
            all.into_iter().find(|it| it.name == name).expect("it is listed")
        }
        other => panic!("accounts were asked for, not {other:?}"),
    }
}

/// Sends requests until ten thousand of this day were rejected.
async fn hammer(client: &Client) {
    let mut refused = 0;
    while refused < 10_000 {
        let status = client.upload_file("/photos/a?overwrite=true", "a", b"1").await.status;
        refused += u32::from(status == 429 || status == 403);
    }
}

#[tokio::test]
async fn standing_of_excessive_caller_drops_one_step_with_reason() {
    let (world, client) = World::with_bucket_and(1, Config::default());
    let nothing = SweepReportView { account_count: 1, violation_count: 0, steps: Vec::new() };
    assert_eq!(sweep(&world), nothing);
    let ladder = [
        FairUseStanding::Good,
        FairUseStanding::Notified,
        FairUseStanding::UpgradeRequested,
        FairUseStanding::Throttled,
        FairUseStanding::Suspended,
    ];
    for pair in ladder.windows(2) {
        hammer(&client).await;
        let swept = sweep(&world);
        let [StandingStepView { name, from, to, reason, .. }] = &*swept.steps else {
            panic!("one step: {swept:?}");
        };
        assert_eq!((&**name, *from, *to), ("ann", pair[0], pair[1]));
        assert!(reason.contains("exceeded the plan's rate limit"), "{reason}");
        // Again, it is too early: the step was just taken, and is not repeated for three days.
        for _ in 0..3 {
            let again = sweep(&world);
            assert_eq!((again.violation_count, again.steps.len()), (1, 0));
        }
        world.clock.advance(3 * DAY_MS);
    }
    let view = account(&world, "ann");
    assert_eq!(view.standing, FairUseStanding::Suspended);
    let changes: Vec<_> =
        view.standing_changes.iter().map(|change| (change.from, change.to)).collect();
    assert_eq!(changes, ladder.windows(2).map(|pair| (pair[0], pair[1])).collect::<Vec<_>>());
    assert!(view.standing_changes.iter().all(|change| change.by == ChangedBy::Sweep));
    assert_eq!(view.standing_changes[1].at, "2026-02-03T12:00:00.000Z");
    client.delete("/photos/a").await.check_error(403, "account_suspended");
    assert_eq!(client.without_key().get("/photos/a").await.status, 200, "delivery goes on");
}

#[tokio::test]
async fn standing_can_be_reset_by_operator_before_next_sweep() {
    let (world, client) = World::with_bucket_and(1, Config::default());
    hammer(&client).await;
    assert_eq!(sweep(&world).steps.len(), 1);
    world.edit_plan(None, Some(FairUseStanding::Good));
    let view = account(&world, "ann");
    let latest = view.standing_changes.last().expect("it is remembered");
    assert_eq!((latest.from, latest.to), (FairUseStanding::Notified, FairUseStanding::Good));
    assert_eq!((latest.by, &*latest.reason), (ChangedBy::Operator, "set by the operator"));
    world.clock.advance(DAY_MS);
    hammer(&client).await;
    assert_eq!(sweep(&world).steps, []);
    // An edit without a change is not recorded.
    world.edit_plan(Some(Plan::Free), Some(FairUseStanding::Good));
    assert_eq!(account(&world, "ann"), view);
}

#[tokio::test]
async fn standing_sweep_affects_only_free_plan_with_reason() {
    let (world, client) = World::with_bucket_and(1, Config::default());
    world.edit_plan(Some(Plan::Starter), None);
    hammer(&client).await;
    assert_eq!(sweep(&world).account_count, 0);
    world.edit_plan(Some(Plan::Free), None);
    world.account("bob");
    let swept = sweep(&world);
    assert_eq!((swept.account_count, swept.violation_count, swept.steps.len()), (2, 1, 1));
    assert_eq!(account(&world, "bob").standing, FairUseStanding::Good);
    // An account that has stopped for two days keeps its standing.
    world.clock.advance(4 * DAY_MS);
    let swept = sweep(&world);
    assert_eq!((swept.violation_count, swept.steps.len()), (0, 0));
    assert_eq!(account(&world, "ann").standing, FairUseStanding::Notified);
}

#[tokio::test]
async fn standing_detects_usage_spikes() {
    let (world, client) = World::with_bucket_and(1, Config::default());
    world.account("bob");
    world.bucket("bob", "films", BucketSettings::default());
    client.put("/photos/", "a.txt", b"1").await;
    let get = async |client: &Client, path: &str, status: u16, count: u32| {
        for _ in 0..count {
            assert_eq!(client.without_key().get(path).await.status, status);
        }
    };
    for _ in 0..3 {
        get(&client, "/films/a.txt", 404, 100).await;
        get(&client, "/photos/a.txt", 200, 100).await;
        world.clock.advance(DAY_MS);
    }
    // The usage history survives a restart.
    world.state.catalog.usage().write().unwrap();
    world.store.close().unwrap();
    let world = world.found_on(world.disk.fork());
    let client = Client::new(world.app(), client.key.clone());
    get(&client, "/photos/a.txt", 200, 99_999).await;
    get(&client, "/photos/b.txt", 404, 100).await;
    assert_eq!(sweep(&world).violation_count, 0);
    get(&client, "/photos/a.txt", 200, 1).await;
    let swept = sweep(&world);
    let [step] = &*swept.steps else { panic!("one step: {swept:?}") };
    assert_eq!((&*step.name, &*step.reason), ("ann", "100000 requests in one day; usual: 100"));
}

#[tokio::test]
async fn standing_keeps_latest_100_changes_after_reopen() {
    let (world, _) = World::with_bucket_and(1, Config::default());
    for _ in 0..60 {
        world.edit_plan(None, Some(FairUseStanding::Throttled));
        world.clock.advance(1);
        world.edit_plan(None, Some(FairUseStanding::Good));
        world.clock.advance(1);
    }
    let known = account(&world, "ann").standing_changes;
    assert_eq!(known.len(), 100);
    assert_eq!(known[99].at, "2026-01-31T12:00:00.119Z");
    let rng = world.state.rng.clone();
    let again = Catalog::open(world.store.clone(), world.clock.clone(), rng).unwrap();
    let id = again.accounts().find("ann").unwrap().id.clone();
    assert_eq!(standing_changes(&again, &id), known);
}

#[tokio::test]
async fn standing_over_quota_is_a_violation_and_sweep_runs_by_api() {
    let (world, client) = World::with_bucket_and(1, Config::default());
    client.put("/photos/", "a.txt", b"12345").await;
    world.account("boss");
    let role = Some(Role::Operator);
    let plan = Some(Plan::Pro);
    world.edit_account("boss", AccountSettings { role, plan, ..AccountSettings::default() });
    let boss = world.client_of("boss", ApiKeySettings::default());
    let ask = async |client: &Client| client.post("/api/accounts/sweep").await;
    ask(&client).await.check_error(403, "forbidden");
    assert_eq!(ask(&boss).await.json()["violationCount"], 0);
    let quota = AccountSettings { storage_bytes_max: Some(Some(4)), ..AccountSettings::default() };
    world.edit_account("ann", quota);
    let swept = ask(&boss).await.json();
    assert_eq!((&swept["success"], &swept["accountCount"]), (&true.into(), &1.into()));
    assert_eq!(swept["steps"][0]["to"], "notified");
    assert_eq!(swept["steps"][0]["reason"], "5 bytes stored; quota 4");
    let shown = client.get("/api/account").await.json()["account"].take();
    assert_eq!(shown["standing"], "notified");
    assert_eq!(shown["standingChanges"][0]["reason"], swept["steps"][0]["reason"]);
    assert_eq!(shown["standingChanges"][0]["by"], "sweep");
}
