//! Accounts: the caller's own, and all of them for the operator. Clients 13.11 and 13.13.

use catalog::{Role, Scope};
use serde_json::json;
use server::management::AccountSettings;
use tests::World;
use tests::fixtures::{key_of_bucket, key_of_folder, key_with_scopes};

#[tokio::test]
async fn account_can_read_and_rename_only_itself() {
    let (_world, client) = World::with_bucket(1);
    let before = client.get("/api/account").await.check_done()["account"].take();
    for (field, value) in [
        ("name", json!("ann")),
        ("role", json!("user")),
        ("plan", json!("Free")),
        ("standing", json!("good")),
        ("storageBytesMax", json!(null)),
        ("objectCountMax", json!(null)),
    ] {
        assert_eq!(before[field], value, "{field}");
    }
    for (field, value) in [
        ("plan", json!("Business")),
        ("role", json!("operator")),
        ("standing", json!("good")),
        ("storageBytesMax", json!(null)),
        ("objectCountMax", json!(1)),
        ("id", json!("abcdefghijklmnop")),
    ] {
        let body = json!({"name": "mallory", field: value});
        client.patch_json("/api/account", body).await.check_parameter(field);
    }
    assert_eq!(client.get("/api/account").await.check_done()["account"], before);
    let after = client.patch_json("/api/account", json!({"name": "Ann B."})).await.check_done();
    assert_eq!(after["account"]["name"], "Ann B.");
    client.patch_json("/api/account", json!({"name": ""})).await.check_parameter("name");
}

#[tokio::test]
async fn operator_creates_and_updates_accounts() {
    let (world, ann) = World::with_bucket(1);
    let operator = world.operator();
    let body = json!({"name": "carl", "plan": "Pro", "storageBytesMax": 1000});
    let carl = operator.post_json("/api/accounts", body).await.check_done()["account"].take();
    assert_eq!((&carl["plan"], &carl["role"]), (&json!("Pro"), &json!("user")));
    let path = format!("/api/accounts/{}", carl["id"].as_str().unwrap());
    let change = json!({"standing": "throttled", "objectCountMax": 5, "storageBytesMax": null});
    let changed = operator.patch_json(&path, change).await.check_done();
    let shown = operator.get(&path).await.check_done();
    assert_eq!(shown, changed);
    assert_eq!(shown["account"]["standing"], "throttled");
    assert!(shown["account"]["storageBytesMax"].is_null());
    let page = operator.get("/api/accounts?limit=2").await.check_done();
    let cursor = page["nextCursor"].as_str().unwrap();
    let rest = operator.get(&format!("/api/accounts?cursor={cursor}")).await.check_done();
    assert_eq!(rest["accounts"].as_array().unwrap().len(), 1);

    let again = json!({"name": "carl"});
    operator.post_json("/api/accounts", again).await.check_error(409, "already_exists");
    operator.post_json("/api/accounts", json!({"plan": "Pro"})).await.check_parameter("name");
    operator.patch_json(&path, json!({"plan": "Gold"})).await.check_parameter("plan");
    operator.patch_json(&path, json!({"plan": null})).await.check_parameter("plan");
    let nowhere = "/api/accounts/abcdefghijklmnop";
    operator.get(nowhere).await.check_error(404, "account_not_found");
    operator.patch_json(nowhere, json!({})).await.check_error(404, "account_not_found");
    let ann_id = ann.get("/api/account").await.check_done()["account"]["id"].take();
    let path = format!("/api/accounts/{}", ann_id.as_str().unwrap());
    operator.patch_json(&path, json!({"standing": "suspended"})).await.check_done();
    ann.get("/api/account").await.check_error(403, "account_suspended");
}

#[tokio::test]
async fn account_management_requires_operator_with_full_key() {
    let (world, ann) = World::with_bucket(1);
    let whole = world.operator();
    let id = whole.get("/api/account").await.check_done()["account"]["id"].take();
    let path = format!("/api/accounts/{}", id.as_str().unwrap());
    let limited = world.client_of("op", key_of_folder("img"));
    let uploader = world.client_of("op", key_with_scopes(&[Scope::Upload, Scope::Read]));
    for client in [&ann, &limited, &uploader] {
        client.get("/api/accounts").await.check_error(403, "forbidden");
        let body = json!({"name": "x", "role": "operator"});
        client.post_json("/api/accounts", body).await.check_error(403, "forbidden");
        client.get(&path).await.check_error(403, "forbidden");
        client.get("/api/accounts/abcdefghijklmnop").await.check_error(403, "forbidden");
        client.patch_json(&path, json!({"plan": "Pro"})).await.check_error(403, "forbidden");
    }
    // The role ends with the next request.
    let role = Some(Role::User);
    world.edit_account("op", AccountSettings { role, ..Default::default() });
    whole.get("/api/accounts").await.check_error(403, "forbidden");
}

#[tokio::test]
async fn account_usage_counts_billable_objects() {
    let (world, client) = World::with_bucket(1);
    world.bucket("ann", "second", Default::default());
    world.account("bob");
    world.bucket("bob", "theirs", Default::default());
    client.put("/photos/", "a.txt", b"12345").await;
    client.put("/second/", "a.txt", b"123").await;
    client.patch_json("/api/buckets/second", json!({"quotaObjects": 9})).await.check_done();
    let storage_bytes_max = Some(Some(100));
    world.edit_account("ann", AccountSettings { storage_bytes_max, ..Default::default() });
    let usage = client.get("/api/usage").await.check_done();
    assert_eq!(
        usage["buckets"],
        json!([
            {"bucketName": "photos", "objectCount": 1, "totalBytes": 5, "unfinishedBytes": 0, "quotaObjects": null, "quotaBytes": null},
            {"bucketName": "second", "objectCount": 1, "totalBytes": 3, "unfinishedBytes": 0, "quotaObjects": 9, "quotaBytes": null},
        ])
    );
    assert_eq!(
        usage["total"],
        json!({"objectCount": 2, "totalBytes": 8, "objectCountMax": null, "storageBytesMax": 100})
    );
    let limited = world.client_of("ann", key_of_bucket("second"));
    let usage = limited.get("/api/usage").await.check_done();
    assert_eq!(usage["buckets"].as_array().unwrap().len(), 1);
    assert!(usage.get("total").is_none());
}

#[tokio::test]
async fn accounts_are_searched_by_name_part_and_id_prefix() {
    let (world, ann) = World::with_bucket(1);
    let operator = world.operator();
    let ids: Vec<_> = (0..30).map(|at| world.account(&format!("Staff {at:02} \u{c4}"))).collect();
    let found = async |query: &str| {
        let (mut names, mut pages, mut cursor) = (Vec::new(), 0, String::new());
        loop {
            let path = format!("/api/accounts?limit=7&q={query}{cursor}");
            let page = operator.get(&path).await.check_done();
            let accounts = page["accounts"].as_array().unwrap();
            names.extend(accounts.iter().map(|it| it["name"].as_str().unwrap().to_owned()));
            pages += 1;
            match page["nextCursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        names.sort();
        (names, pages)
    };
    let (names, pages) = found("staff").await;
    assert_eq!((names.len(), pages), (30, 5));
    assert_eq!(found("STAFF+1+a%CC%88").await.0.len(), 12);
    assert_eq!(found(&ids[3][..8]).await.0, ["Staff 03 \u{c4}"]);
    assert_eq!(found("").await.0.len(), 32);
    assert_eq!(found("nobody+staff").await, (Vec::new(), 1));
    let long = "x".repeat(257);
    operator.get(&format!("/api/accounts?q={long}")).await.check_parameter("q");
    ann.get("/api/accounts?q=staff").await.check_error(403, "forbidden");
}

#[tokio::test]
async fn operator_routes_are_rejected_for_other_accounts() {
    let (_world, client) = World::with_bucket(1);
    let id = "abcdefghijklmnop";
    for (path, does) in [
        ("/api/accounts".to_owned(), "manages accounts"),
        (format!("/api/accounts/{id}"), "manages accounts"),
        ("/api/storage".to_owned(), "sees the storage"),
        ("/api/settings".to_owned(), "sees the settings"),
    ] {
        let refused = client.get(&path).await;
        refused.check_error(403, "forbidden");
        assert_eq!(refused.json()["error"], format!("Only the operator {does}"), "{path}");
    }
    for (path, body, does) in [
        (format!("/api/accounts/{id}/invitations"), json!({}), "sends invitations"),
        ("/api/jobs".to_owned(), json!({"kind": "compact"}), "begins jobs for the whole store"),
    ] {
        let refused = client.post_json(&path, body).await;
        refused.check_error(403, "forbidden");
        assert_eq!(refused.json()["error"], format!("Only the operator {does}"), "{path}");
    }
}
