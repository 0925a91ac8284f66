//! Audit log: `API.md`, Audit.

use std::time::Duration;

use catalog::{Actor, BucketChange};
use engine::disk::sim::LossPolicy;
use serde_json::{Value, json};
use server::management::{AdminRequest, ApiKeySettings};
use tests::fixtures::{key_of_bucket, key_of_folder, key_with_scopes};
use tests::{Browser, Client, PASSWORD, World};

async fn page(client: &Client, query: &str) -> Value {
    client.get(&format!("/api/audit?{query}")).await.check_done()
}

async fn entries(client: &Client, query: &str) -> Vec<Value> {
    page(client, query).await["entries"].as_array().unwrap().clone()
}

/// Returns the actions, the oldest first.
async fn actions(client: &Client, query: &str) -> Vec<String> {
    let entries = entries(client, query).await;
    entries.iter().rev().map(|it| it["action"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn audit_entry_has_actor_action_target_and_address() {
    let (world, client) = World::with_bucket(1);
    let client = client.at("203.0.113.7");
    let reply = client.patch_json("/api/buckets/photos", json!({"access": "private"})).await;
    reply.check_done();
    let key = client.get("/api/keys").await.check_done()["apiKeys"][0]["id"].take();
    let ann = client.get("/api/account").await.check_done()["account"]["id"].take();
    let found = entries(&client, "action=bucket.change").await;
    let expected = json!([{
        "id": found[0]["id"],
        "time": "2026-01-31T12:00:00.000Z",
        "action": "bucket.change",
        "actor": {"kind": "key", "id": key, "name": "", "account": ann},
        "bucketName": "photos",
        "target": null,
        "targetName": null,
        "detail": "access: private",
        "address": "203.0.113.7",
        "requestId": reply.header("x-request-id"),
    }]);
    assert_eq!(Value::from(found), expected);
    // Changes by the operator on the machine.
    let made = entries(&client, "action=bucket.create").await;
    assert_eq!(
        made[0]["actor"],
        json!({"kind": "operator", "id": null, "name": null, "account": null})
    );
    assert_eq!((&made[0]["address"], &made[0]["bucketName"]), (&Value::Null, &json!("photos")));

    let mut browser = Browser::with(world.anonymous().at("203.0.113.8"));
    world.set_password("ann", PASSWORD);
    browser.sign_in("ann", PASSWORD).await.check_done();
    browser.post("/api/buckets", json!({"bucketName": "second"})).await.check_done();
    let second = &entries(&client, "bucketName=second").await[0];
    assert_eq!(second["actor"]["kind"], "session");
    assert_eq!((&second["actor"]["name"], &second["actor"]["account"]), (&json!("ann"), &ann));
    assert_eq!(second["address"], "203.0.113.8");
    let session = second["actor"]["id"].as_str().unwrap();
    assert_eq!(entries(&client, &format!("actor={session}")).await.len(), 1);
    let begun = &entries(&client, "action=session.begin").await[0];
    assert_eq!((&begun["target"], &begun["address"]), (&json!(session), &json!("203.0.113.8")));
}

#[tokio::test]
async fn audit_records_every_change() {
    let (world, client) = World::with_bucket(1);
    let operator = world.operator();
    let start = entries(&operator, "limit=1").await[0]["id"].as_str().unwrap().to_owned();
    let bob = world.account("bob");
    client.post_json("/api/buckets", json!({"bucketName": "more"})).await.check_done();
    client.patch_json("/api/buckets/more", json!({"thumbnails": true})).await.check_done();
    let hook = json!({"url": "https://hooks.example.com/in", "events": ["s3:ObjectCreated:*"]});
    let hooks = "/api/buckets/more/webhooks";
    let hook = client.post_json(hooks, hook).await.check_done()["webhook"]["id"].take();
    let hook = format!("{hooks}/{}", hook.as_str().unwrap());
    client.patch_json(&hook, json!({"enabled": false})).await.check_done();
    client.delete(&hook).await.check_done();
    client.delete("/api/buckets/more").await.check_done();
    client.put("/photos/", "a.txt", b"a").await;
    let link = json!({"paths": ["a.txt"], "password": "tern-42"});
    let link = client.post_json("/api/buckets/photos/links", link).await.check_done();
    let secret = link["link"]["url"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    let link = format!("/api/links/{}", link["link"]["id"].as_str().unwrap());
    client.patch_json(&link, json!({"password": "gull-17"})).await.check_done();
    client.delete(&link).await.check_done();
    let key = json!({"name": "phone", "scopes": ["upload"]});
    let key = client.post_json("/api/keys", key).await.check_done()["apiKey"]["id"].take();
    client.delete(&format!("/api/keys/{}", key.as_str().unwrap())).await.check_done();
    let crew = client.post_json("/api/organisations", json!({"name": "Crew"})).await.check_done();
    let crew = format!("/api/organisations/{}", crew["organisation"]["id"].as_str().unwrap());
    client.patch_json(&crew, json!({"name": "Team"})).await.check_done();
    let member = json!({"account": bob, "role": "member"});
    client.post_json(&format!("{crew}/members"), member).await.check_done();
    client.delete(&format!("{crew}/members?account={bob}")).await.check_done();
    client.delete(&crew).await.check_done();
    operator.patch_json(&format!("/api/accounts/{bob}"), json!({"plan": "Pro"})).await.check_done();
    let invited = operator.post_json(&format!("/api/accounts/{bob}/invitations"), json!({})).await;
    let url = invited.check_done()["url"].as_str().unwrap().to_owned();
    let token = url.split_once('#').unwrap().1;
    let mut browser = Browser::of(&world);
    browser.post("/-/invitation", json!({"token": token, "password": PASSWORD})).await;
    assert!(browser.is_signed_in().await);
    browser.delete("/-/session").await;
    browser.sign_in("bob", "not the password").await.check_own_error(401, "wrong_password");
    browser.sign_in("nobody", "not the password").await.check_own_error(401, "wrong_password");
    browser.sign_in("bob", PASSWORD).await.check_done();
    let passwords = json!({"current": PASSWORD, "new": "another long password"});
    assert_eq!(browser.put("/-/password", passwords).await.status, 204);
    browser.delete("/-/sessions").await;
    let job = json!({"kind": "emptyBucket", "bucketName": "photos"});
    let job = client.post_json("/api/jobs", job).await.json()["job"]["id"].take();
    client.delete(&format!("/api/jobs/{}", job.as_str().unwrap())).await.check_done();
    let found = entries(&operator, "limit=500").await;
    let since = found.iter().take_while(|entry| entry["id"] != start.as_str());
    let mut since: Vec<_> = since.map(|entry| entry["action"].as_str().unwrap()).collect();
    since.reverse();
    let expected = [
        "account.create",
        "bucket.create",
        "bucket.change",
        "webhook.create",
        "webhook.change",
        "webhook.delete",
        "bucket.delete",
        "link.create",
        "link.change",
        "link.end",
        "key.create",
        "key.delete",
        "organisation.create",
        "organisation.change",
        "member.invite",
        "member.remove",
        "organisation.delete",
        "account.change",
        "account.invite",
        "password.change",
        "session.begin",
        "session.end",
        "session.refused",
        "session.refused",
        "session.begin",
        "password.change",
        "session.end",
        "job.begin",
        "job.cancel",
    ];
    assert_eq!(since, expected);
    // No entry contains a secret or the address of a webhook.
    let text = page(&operator, "limit=500").await.to_string();
    let secrets = [client.key(), token, PASSWORD, "whsec", "/in", "not the password", "nobody"];
    for secret in secrets.into_iter().chain([&*secret, "tern-42", "gull-17", "argon2id"]) {
        assert!(!text.contains(secret), "{secret}");
    }
}

#[tokio::test]
async fn audit_omits_rejected_requests() {
    let (world, client) = World::with_bucket(1);
    let operator = world.operator();
    let before = entries(&operator, "").await.len();
    let body = json!({"bucketName": "photos"});
    client.post_json("/api/buckets", body).await.check_error(409, "already_exists");
    client.put("/photos/", "a.txt", b"1").await;
    client.delete("/api/buckets/photos").await.check_error(409, "bucket_not_empty");
    client.delete("/photos/a.txt").await.check_done();
    client.delete("/api/keys/aaaaaaaaaaaaaaaa").await.check_error(404, "api_key_not_found");
    assert_eq!(entries(&operator, "").await.len(), before);
}

#[tokio::test]
async fn audit_shows_callers_only_their_own_entries() {
    let (world, ann) = World::with_bucket(1);
    let bob_id = world.account("bob");
    let bob = world.client_of("bob", ApiKeySettings::default());
    let carl_id = world.account("carl");
    let carl = world.client_of("carl", ApiKeySettings::default());
    let operator = world.operator().at("203.0.113.9");
    let crew = ann.post_json("/api/organisations", json!({"name": "Crew"})).await.check_done();
    let crew = crew["organisation"]["id"].as_str().unwrap().to_owned();
    for (account, client, role) in [(&bob_id, &bob, "admin"), (&carl_id, &carl, "member")] {
        let member = json!({"account": account, "role": role});
        ann.post_json(&format!("/api/organisations/{crew}/members"), member).await.check_done();
        let accept = format!("/api/organisations/{crew}/membership");
        client.post_json(&accept, json!({})).await.check_done();
    }
    let shared = json!({"bucketName": "shared", "organisation": crew});
    ann.post_json("/api/buckets", shared).await.check_done();
    ann.patch_json("/api/buckets/photos", json!({"access": "private"})).await.check_done();
    let plan = json!({"plan": "Pro"});
    operator.patch_json(&format!("/api/accounts/{carl_id}"), plan).await.check_done();

    let about = |query: &'static str| format!("limit=500&{query}");
    assert_eq!(
        actions(&ann, &about("bucketName=photos")).await,
        ["bucket.create", "bucket.change"]
    );
    for client in [&bob, &carl] {
        assert!(actions(client, &about("bucketName=photos")).await.is_empty());
        assert!(actions(client, &about("action=organisation.delete")).await.is_empty());
    }
    // An administrator of the organisation sees its buckets and members; a member sees the entries about that member.
    assert_eq!(actions(&bob, &about("bucketName=shared")).await, ["bucket.create"]);
    assert!(actions(&carl, &about("bucketName=shared")).await.is_empty());
    let joined = ["member.invite", "member.add"];
    assert_eq!(actions(&bob, &about("action=member.")).await, [joined, joined].concat());
    assert_eq!(actions(&carl, &about("action=member.")).await, joined);
    // A removed administrator does not see it either.
    let path = format!("/api/organisations/{crew}/members?account={bob_id}");
    ann.delete(&path).await.check_done();
    assert!(actions(&bob, &about("bucketName=shared")).await.is_empty());
    // The address of an operator is visible to operators only.
    let changed = &entries(&carl, "action=account.change").await[0];
    assert_eq!((&changed["address"], &changed["requestId"]), (&Value::Null, &Value::Null));
    assert_eq!(changed["detail"], "plan: Pro");
    let seen = &entries(&operator, "action=account.change").await[0];
    assert_eq!(seen["address"], "203.0.113.9");

    let of_photos = world.client_of("ann", key_of_bucket("photos"));
    let found = entries(&of_photos, "limit=500").await;
    assert!(!found.is_empty() && found.iter().all(|entry| entry["bucketName"] == "photos"));
    let of_folder = world.client_of("ann", key_of_folder("a/"));
    of_folder.get("/api/audit").await.check_error(403, "forbidden");
    let reader = world.client_of("ann", key_with_scopes(&[catalog::Scope::Read]));
    reader.get("/api/audit").await.check_error(403, "forbidden");
    world.anonymous().get("/api/audit").await.check_error(401, "missing_api_key");
}

#[tokio::test]
async fn audit_of_recreated_bucket_hides_previous_owner() {
    let (world, ann) = World::with_bucket(1);
    let bob = world.account_with_key("bob");
    ann.delete("/api/buckets/photos").await.check_done();
    bob.post_json("/api/buckets", json!({"bucketName": "photos"})).await.check_done();
    assert_eq!(actions(&bob, "bucketName=photos").await, ["bucket.create"]);
    assert_eq!(actions(&ann, "bucketName=photos").await, ["bucket.create", "bucket.delete"]);
}

#[tokio::test]
async fn audit_pages_are_consecutive_under_filters() {
    let (world, client) = World::with_bucket(1);
    let operator = world.operator();
    for at in 0..25 {
        let body = json!({"cacheControl": format!("max-age={at}")});
        client.patch_json("/api/buckets/photos", body).await.check_done();
        world.account(&format!("account {at}"));
    }
    let (mut seen, mut before) = (Vec::new(), String::new());
    loop {
        let query = format!("action=bucket.change&limit=7&before={before}");
        let page = page(&operator, &query).await;
        let entries = page["entries"].as_array().unwrap();
        assert!(entries.len() <= 7);
        seen.extend(entries.iter().map(|entry| entry["detail"].as_str().unwrap().to_owned()));
        match page["nextCursor"].as_str() {
            Some(next) => before = next.to_owned(),
            None => break,
        }
    }
    let expected: Vec<_> = (0..25).rev().map(|at| format!("cache_control: max-age={at}")).collect();
    assert_eq!(seen, expected);
    for (query, parameter) in [("limit=0", "limit"), ("limit=501", "limit"), ("before=x", "before")]
    {
        operator.get(&format!("/api/audit?{query}")).await.check_parameter(parameter);
    }
}

#[tokio::test]
async fn audit_is_bounded_per_actor() {
    const MORE: u64 = 200;
    let (world, _) = World::with_bucket(1);
    let operator = world.operator();
    let bucket = engine::BucketName::parse("photos").unwrap();
    let ann = world.state.catalog.accounts().find("ann").unwrap().id.to_string();
    let quiet = entries(&operator, "limit=500").await.len();
    let actor = Actor { account: Some(ann), ..Actor::default() };
    let catalog = world.state.catalog.acting_as(actor);
    for at in 0..catalog::limits::AUDIT_ENTRIES_MAX as u64 + MORE {
        let change = BucketChange { thumbnails: Some(at % 2 == 0), ..BucketChange::default() };
        catalog.buckets().edit(&bucket, change).unwrap();
    }
    let kept = |world: &World| {
        let (mut count, mut after) = (0, None);
        loop {
            let page = world.store.facts("audit/", after.as_ref(), 1_000).unwrap();
            count += page.len();
            after = page.into_iter().next_back().map(|(fact, _)| fact);
            if after.is_none() {
                return count;
            }
        }
    };
    assert_eq!(kept(&world), catalog::limits::AUDIT_ENTRIES_MAX);
    assert_eq!(entries(&operator, "limit=500&action=account.").await.len(), 3);
    assert!(quiet >= 5);
    // Unauthenticated refusals have a bound of their own.
    for _ in 0..catalog::limits::AUDIT_REFUSED_MAX + 10 {
        catalog.audit().record_failed_sign_in(None).unwrap();
    }
    let refused = world.store.facts("audit/", None, 1).unwrap();
    assert_eq!(refused.len(), 1);
    assert_eq!(kept(&world), catalog::limits::AUDIT_ENTRIES_MAX);
    assert_eq!(entries(&operator, "limit=500&action=account.").await.len(), 3);
    // Old entries expire.
    let found = world.found_on(world.disk.fork());
    assert_eq!(kept(&found), catalog::limits::AUDIT_ENTRIES_MAX);
    found.clock.advance(401 * 24 * 60 * 60 * 1_000);
    found.state.catalog.audit().sweep().unwrap();
    assert_eq!(kept(&found), 0);
    found.manage(AdminRequest::CreateAccount { name: "late".into(), settings: Default::default() });
    assert_eq!(kept(&found), 1);
}

#[tokio::test]
async fn power_loss_keeps_change_and_audit_entry_atomic() {
    let (world, client) = World::with_bucket(1);
    world.disk.record_cuts();
    client.post_json("/api/buckets", json!({"bucketName": "second"})).await.check_done();
    client.delete("/api/buckets/photos").await.check_done();
    // Work of the store's threads completes a little later.
    tokio::time::sleep(Duration::from_millis(300)).await;
    world.store.close().unwrap();
    let (mut before, mut after) = (0, 0);
    for cut in world.disk.take_cuts() {
        for (seed, policy) in (0..).zip(LossPolicy::ALL) {
            let disk = cut.fork();
            disk.power_on(policy, seed);
            let found = world.found_on(disk);
            let ann = Client::new(found.app(), client.key.clone());
            let catalog = &found.state.catalog;
            let is = |name: &str| {
                catalog.buckets().get(&engine::BucketName::parse(name).unwrap()).is_some()
            };
            let (is_made, is_deleted) = (is("second"), !is("photos"));
            let logged = actions(&ann, "action=bucket.").await;
            let expected = ["bucket.create", "bucket.create", "bucket.delete"];
            let count = 1 + usize::from(is_made) + usize::from(is_deleted);
            assert_eq!(logged, expected[..count], "{policy:?}");
            if is_deleted { after += 1 } else { before += 1 }
        }
    }
    assert!(before > 0 && after > 0, "{before} {after}");
}
