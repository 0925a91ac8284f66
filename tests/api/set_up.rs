//! Set-up links and invitations: links for a single use.

use std::time::Duration;

use catalog::{FairUseStanding, Plan, Role};
use engine::disk::sim::LossPolicy;
use http::Method;
use serde_json::{Value, json};
use server::management::{AccountSettings, AdminRequest, AdminResponse as Done};
use tests::{Browser, Client, PASSWORD, World};

const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 24 * 60 * MINUTE_MS;

/// Returns the secret of a new first set-up link.
fn link(world: &World) -> String {
    let link = world.state.issue_set_up_link().expect("no operator has a password");
    link.strip_prefix("/-/set-up#").expect("it leads to the set-up").to_owned()
}

fn wanted(token: &str) -> Value {
    json!({"token": token, "name": "ann", "password": PASSWORD, "bucketName": "pics"})
}

/// Returns the secret of a new invitation of an account.
fn invite(world: &World, account: &str) -> String {
    let public_url = Some("https://cdn.example.com/".to_owned());
    let request = AdminRequest::InviteAccount { account: account.into(), public_url };
    let Done::Invited(invited) = world.manage(request) else { panic!("nobody was invited") };
    let secret = invited.url.strip_prefix("https://cdn.example.com/-/invitation#");
    secret.unwrap_or_else(|| panic!("{}", invited.url)).to_owned()
}

#[tokio::test]
async fn set_up_creates_operator_bucket_and_key_and_signs_in() {
    let world = World::new(1);
    let mut browser = Browser::of(&world);
    let nobody = browser.get("/-/session").await.json();
    assert_eq!(nobody, json!({"success": true, "signedIn": false, "setUpNeeded": true}));
    let token = link(&world);
    let done = browser.post("/-/set-up", wanted(&token)).await.check_done();
    assert_eq!(
        (&done["account"]["role"], &done["account"]["name"]),
        (&"operator".into(), &"ann".into())
    );
    assert_eq!((&done["account"]["plan"], &done["signedIn"]), (&"Business".into(), &true.into()));
    assert_eq!(
        (&done["bucket"]["bucketName"], &done["bucket"]["access"]),
        (&"pics".into(), &"public".into())
    );
    assert_eq!(done["apiKey"]["bucketName"], "pics");
    assert!(browser.is_signed_in().await);
    browser.get("/api/accounts").await.check_done();
    // The key permits uploads, and no management.
    let key = Client::new(world.app(), Some(done["key"].as_str().unwrap().to_owned()));
    key.put("/pics/", "a.txt", b"hello").await;
    assert_eq!(world.anonymous().get("/pics/a.txt").await.text(), "hello");
    key.get("/api/keys").await.check_error(403, "forbidden");
    // The result survives a restart, and the link does not.
    let found = world.found_on(world.disk.fork());
    assert!(found.state.issue_set_up_link().is_none());
    let mut again = Browser::of(&found);
    assert_eq!(again.sign_in("ann", PASSWORD).await.status, 200);
    again.post("/-/set-up", wanted(&token)).await.check_own_error(410, "set_up_done");
}

#[tokio::test]
async fn set_up_succeeds_once_under_concurrency() {
    let world = World::new(1);
    let token = link(&world);
    let mut first = Browser::of(&world);
    let mut second = Browser::of(&world);
    // Concurrently: both hold the link, and one of them becomes the administrator.
    let other = json!({"token": token, "name": "eve", "password": PASSWORD, "bucketName": "evil"});
    let (one, two) = tokio::join!(
        first.post("/-/set-up", wanted(&token)),
        second.post("/-/set-up", other.clone())
    );
    let mut statuses = [one.status.as_u16(), two.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 410]);
    assert_eq!(world.state.catalog.accounts().all().len(), 1);
    assert_eq!(world.state.catalog.buckets().all().len(), 1);
    second.post("/-/set-up", other).await.check_own_error(410, "set_up_done");
}

#[tokio::test]
async fn set_up_is_possible_until_an_operator_has_a_password() {
    let world = World::new(1);
    let is_needed = async || {
        let session = Browser::of(&world).get("/-/session").await.json();
        assert_eq!(session["setUpNeeded"], world.state.issue_set_up_link().is_some());
        session["setUpNeeded"] == true
    };
    world.account("bob");
    world.set_password("bob", PASSWORD);
    assert!(is_needed().await, "bob is a user");
    let settings = AccountSettings { role: Some(Role::Operator), ..AccountSettings::default() };
    world.manage(AdminRequest::CreateAccount { name: "olga".into(), settings });
    assert!(is_needed().await, "olga has no password");
    let token = link(&world);
    world.set_password("olga", PASSWORD);
    assert!(!is_needed().await);
    let mut browser = Browser::of(&world);
    browser.post("/-/set-up", wanted(&token)).await.check_own_error(410, "set_up_done");
}

#[tokio::test]
async fn set_up_adopts_account_created_by_cli() {
    let (world, key) = World::with_bucket(1);
    world.set_password("ann", "a password that ann forgot");
    let token = link(&world);
    let mut browser = Browser::of(&world);
    let check = browser.post("/-/set-up", json!({"token": token, "check": true})).await;
    let accounts = json!([{"name": "ann", "hasBucket": true}]);
    assert_eq!(check.check_done()["accounts"], accounts);
    // Without a bucket only an account that owns one is adopted.
    let body = |name: &str| json!({"token": token, "name": name, "password": PASSWORD});
    let refused = browser.post("/-/set-up", body("eve")).await;
    refused.check_own_error(400, "bad_parameter");
    assert_eq!(refused.json()["parameter"], "bucketName");
    let mut taken = body("eve");
    taken["bucketName"] = "photos".into();
    browser.post("/-/set-up", taken).await.check_own_error(409, "already_exists");
    assert_eq!(world.state.catalog.accounts().all().len(), 1);
    let done = browser.post("/-/set-up", body("ann")).await.check_done();
    assert_eq!(done["account"]["role"], "operator");
    assert_eq!((&done["bucket"], &done["apiKey"]["bucketName"]), (&Value::Null, &Value::Null));
    assert_eq!(world.state.catalog.accounts().all().len(), 1);
    browser.get("/api/accounts").await.check_done();
    assert_eq!(Browser::of(&world).sign_in("ann", PASSWORD).await.status, 200);
    key.put("/photos/", "a.txt", b"earlier keys work").await;
}

#[tokio::test]
async fn set_up_check_changes_nothing_and_counts_wrong_tokens() {
    let world = World::new(1);
    let token = link(&world);
    let mut browser = Browser::of(&world);
    for _ in 0..3 {
        let check = browser.post("/-/set-up", json!({"token": token, "check": true})).await;
        assert_eq!(check.check_done()["accounts"], json!([]));
    }
    let extra = json!({"token": token, "check": true, "name": "ann"});
    browser.post("/-/set-up", extra).await.check_own_error(400, "bad_parameter");
    world.clock.advance(30 * MINUTE_MS);
    let expired = browser.post("/-/set-up", json!({"token": token, "check": true})).await;
    expired.check_own_error(410, "link_expired");
    let wrong = json!({"token": "a".repeat(52), "check": true});
    browser.post("/-/set-up", wrong).await.check_own_error(404, "link_not_found");
    assert!(world.state.catalog.accounts().all().is_empty());
}

#[tokio::test]
async fn first_account_is_an_operator_on_business() {
    let world = World::new(1);
    let create = |name: &str| {
        let settings = AccountSettings::default();
        match world.manage(AdminRequest::CreateAccount { name: name.into(), settings }) {
            Done::Account(account) => (account.role, account.plan),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(create("ann"), (Role::Operator, Plan::Business));
    assert_eq!(create("bob"), (Role::User, Plan::Business));
}

#[tokio::test]
async fn set_up_link_expires_after_30_minutes_and_is_single_use() {
    let world = World::new(1);
    let mut browser = Browser::of(&world);
    let nothing = browser.post("/-/set-up", wanted(&"a".repeat(52))).await;
    nothing.check_own_error(404, "link_not_found");
    let first = link(&world);
    world.clock.advance(30 * MINUTE_MS - 1);
    // A request rejected for another reason leaves the link valid.
    for (field, value, named) in [
        ("password", json!("short"), "password"),
        ("password", json!(1234567890), "password"),
        ("name", json!(" "), "name"),
        ("bucketName", json!("api"), "bucketName"),
        ("bucketName", Value::Null, "bucketName"),
        ("access", json!("secret"), "access"),
        ("unknown", json!(1), "unknown"),
    ] {
        let mut body = wanted(&first);
        body[field] = value;
        let refused = browser.post("/-/set-up", body).await;
        refused.check_own_error(400, "bad_parameter");
        assert_eq!(refused.json()["parameter"], named, "{}", refused.text());
    }
    for wrong in ["", &first[1..], &first.to_uppercase(), &format!("{first}a")] {
        browser.post("/-/set-up", wanted(wrong)).await.check_own_error(404, "link_not_found");
    }
    world.clock.advance(1);
    browser.post("/-/set-up", wanted(&first)).await.check_own_error(410, "link_expired");
    // A restart creates another.
    let second = link(&world);
    browser.post("/-/set-up", wanted(&first)).await.check_own_error(404, "link_not_found");
    browser.post("/-/set-up", wanted(&second)).await.check_done();
}

#[tokio::test]
async fn power_loss_leaves_set_up_complete_or_absent() {
    let world = World::new(1);
    let token = link(&world);
    world.disk.record_cuts();
    let done = Browser::of(&world).post("/-/set-up", wanted(&token)).await.check_done();
    let acknowledged = world.disk.operations();
    // Work of the store's threads completes a little later.
    tokio::time::sleep(Duration::from_millis(300)).await;
    world.store.close().unwrap();
    let (mut before, mut after) = (0, 0);
    let cuts = world.disk.take_cuts();
    for (at, cut) in cuts.iter().enumerate() {
        for (seed, policy) in (0..).zip(LossPolicy::ALL) {
            let disk = cut.fork();
            disk.power_on(policy, seed);
            let found = world.found_on(disk);
            let catalog = &found.state.catalog;
            let counts = (
                catalog.accounts().all().len(),
                catalog.buckets().all().len(),
                catalog.api_keys().all().len(),
            );
            let is_done = !catalog.accounts().all().is_empty();
            assert_eq!(counts, if is_done { (1, 1, 1) } else { (0, 0, 0) }, "{policy:?} {at}");
            assert!(is_done || cut.operations() < acknowledged, "{policy:?} {at}: it is gone");
            if !is_done {
                before += 1;
                continue;
            }
            after += 1;
            let known = catalog.sessions().find_account("ann").expect("ann is there");
            assert!(known.1.is_some(), "{policy:?} {at}: ann has no password");
            let key = Client::new(found.app(), Some(done["key"].as_str().unwrap().to_owned()));
            assert_eq!(
                key.upload_file("/pics/", "a.txt", b"1").await.status,
                200,
                "{policy:?} {at}"
            );
        }
    }
    assert!(before > 0 && after > 0, "{before} {after}");
}

#[tokio::test]
async fn invitation_sets_password_once() {
    let (world, _) = World::with_bucket(1);
    world.make_operator("ann");
    let mut ann = Browser::signed_in(&world, "ann").await;
    let bob = world.account("bob");
    let path = format!("/api/accounts/{bob}/invitations");
    let invited = ann.post(&path, json!({})).await.check_done();
    assert_eq!(invited["expiresAt"], "2026-02-01T12:00:00.000Z");
    assert_eq!(invited["account"]["hasPassword"], false);
    let url = invited["url"].as_str().unwrap();
    let token = url.strip_prefix("https://cdn.example.com/-/invitation#").expect(url);
    let accept = |token: &str, password: &str| json!({"token": token, "password": password});

    let mut browser = Browser::of(&world);
    let short = browser.post("/-/invitation", accept(token, "short")).await;
    short.check_own_error(400, "bad_parameter");
    let welcome = browser.post("/-/invitation", accept(token, PASSWORD)).await.check_done();
    assert_eq!((&welcome["signedIn"], &welcome["account"]["name"]), (&true.into(), &"bob".into()));
    assert!(browser.is_signed_in().await);
    let again = browser.post("/-/invitation", accept(token, "another password")).await;
    again.check_own_error(404, "link_not_found");
    assert_eq!(Browser::of(&world).sign_in("bob", PASSWORD).await.status, 200);
    // A forgotten password is reset; sessions with the old one end.
    let token = invite(&world, "bob");
    let mut other = Browser::of(&world);
    other.post("/-/invitation", accept(&token, "another password")).await.check_done();
    assert!(!browser.is_signed_in().await);
    browser.sign_in("bob", PASSWORD).await.check_own_error(401, "wrong_password");
}

#[tokio::test]
async fn invitation_expires_by_time_replacement_or_password() {
    let (world, _) = World::with_bucket(1);
    world.account("bob");
    let mut browser = Browser::of(&world);
    let accept = |token: &str| json!({"token": token, "password": PASSWORD});
    let first = invite(&world, "bob");
    let second = invite(&world, "bob");
    browser.post("/-/invitation", accept(&first)).await.check_own_error(404, "link_not_found");
    world.clock.advance(DAY_MS);
    browser.post("/-/invitation", accept(&second)).await.check_own_error(410, "link_expired");
    assert_eq!(world.state.catalog.sessions().sweep().unwrap(), 1);
    browser.post("/-/invitation", accept(&second)).await.check_own_error(404, "link_not_found");

    let third = invite(&world, "bob");
    world.set_password("bob", "set by the operator");
    browser.post("/-/invitation", accept(&third)).await.check_own_error(404, "link_not_found");

    let fourth = invite(&world, "bob");
    let found = world.found_on(world.disk.fork());
    Browser::of(&found).post("/-/invitation", accept(&fourth)).await.check_done();
    let standing = Some(FairUseStanding::Suspended);
    world.edit_account("bob", AccountSettings { standing, ..AccountSettings::default() });
    browser.post("/-/invitation", accept(&fourth)).await.check_own_error(404, "link_not_found");
    for nonsense in ["", "x", "aaaaaaaaaaaaaaaa_", &"a".repeat(69)] {
        let reply = browser.post("/-/invitation", accept(nonsense)).await;
        reply.check_own_error(404, "link_not_found");
    }
}

#[tokio::test]
async fn only_operators_can_invite() {
    let (world, client) = World::with_bucket(1);
    let bob = world.account("bob");
    let path = format!("/api/accounts/{bob}/invitations");
    client.post_json(&path, json!({})).await.check_error(403, "forbidden");
    let mut ann = Browser::signed_in(&world, "ann").await;
    ann.post(&path, json!({})).await.check_error(403, "forbidden");
    world.make_operator("ann");
    ann.post(&path, json!({})).await.check_done();
    client.post_json(&path, json!({})).await.check_done();
    let nobody = "/api/accounts/aaaaaaaaaaaaaaaa/invitations";
    ann.post(nobody, json!({})).await.check_error(404, "account_not_found");
    let standing = Some(FairUseStanding::Suspended);
    world.edit_account("bob", AccountSettings { standing, ..AccountSettings::default() });
    ann.post(&path, json!({})).await.check_error(403, "account_suspended");
    let foreign = [("sec-fetch-site", "cross-site")];
    let forged = ann.request_with(Method::POST, &path, &foreign, None).await;
    forged.check_error(403, "cross_site");
}
