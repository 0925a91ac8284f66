//! Permissions of webhooks.

use catalog::{MemberRole, Scope};
use serde_json::{Value, json};
use server::management::{AdminRequest, ApiKeySettings, BucketOwner};
use tests::fixtures::key_of_bucket;
use tests::{Client, World};

use super::{HOOKS, hook, hook_with};

const URL: &str = "https://hooks.example.com/";

fn body(prefix: &str) -> Value {
    json!({"url": URL, "events": ["s3:ObjectCreated:*"], "prefix": prefix})
}

/// Sends every request about a webhook.
async fn request_all(client: &Client, path: &str, status: u16, code: &str) {
    let post = |path: String| async move { client.post(&path).await };
    client.get(path).await.check_error(status, code);
    client.patch_json(path, json!({"enabled": false})).await.check_error(status, code);
    client.delete(path).await.check_error(status, code);
    client.get(&format!("{path}/dead-letters")).await.check_error(status, code);
    client.delete(&format!("{path}/dead-letters")).await.check_error(status, code);
    post(format!("{path}/test")).await.check_error(status, code);
    post(format!("{path}/dead-letters/retry")).await.check_error(status, code);
}

#[tokio::test]
async fn webhooks_of_another_account_are_inaccessible() {
    let (world, client) = World::with_bucket(1);
    let (path, _) = hook(&client, URL, &["s3:ObjectCreated:*"]).await;
    world.account("bob");
    world.bucket("bob", "music", Default::default());
    let bob = world.client_of("bob", ApiKeySettings::default());
    request_all(&bob, &path, 404, "bucket_not_found").await;
    bob.get(HOOKS).await.check_error(404, "bucket_not_found");
    bob.post_json(HOOKS, body("")).await.check_error(404, "bucket_not_found");
    // Nor through a bucket of his own.
    request_all(&bob, &path.replace("photos", "music"), 404, "webhook_not_found").await;
    let anonymous = client.without_key();
    anonymous.get(HOOKS).await.check_error(401, "missing_api_key");
    anonymous.post_json(HOOKS, body("")).await.check_error(401, "missing_api_key");
    let still = client.get(&path).await.check_done();
    assert_eq!(still["webhook"]["enabled"], true);
}

#[tokio::test]
async fn webhook_management_requires_scope_bucket_and_folder() {
    let (world, client) = World::with_bucket(1);
    world.bucket("ann", "music", Default::default());
    let (whole, _) = hook(&client, URL, &["s3:ObjectCreated:*"]).await;
    let (pets, _) = hook_with(&client, body("pets/cats/")).await;
    let with = |settings| world.client_of("ann", settings);
    let scopes = Scope::ALL.into_iter().filter(|scope| *scope != Scope::Manage).collect();
    let no_scope = with(ApiKeySettings { scopes, ..Default::default() });
    request_all(&no_scope, &whole, 403, "forbidden").await;
    no_scope.get(HOOKS).await.check_error(403, "forbidden");
    no_scope.post_json(HOOKS, body("")).await.check_error(403, "forbidden");

    let elsewhere = with(key_of_bucket("music"));
    request_all(&elsewhere, &whole, 403, "forbidden").await;
    elsewhere.post_json(HOOKS, body("")).await.check_error(403, "forbidden");

    let settings = ApiKeySettings {
        bucket: Some("photos".into()),
        prefix: Some("pets".into()),
        ..Default::default()
    };
    let limited = with(settings);
    request_all(&limited, &whole, 404, "webhook_not_found").await;
    let seen = limited.get(HOOKS).await.check_done();
    let seen: Vec<_> =
        seen["webhooks"].as_array().unwrap().iter().map(|it| &it["prefix"]).cloned().collect();
    assert_eq!(seen, ["pets/cats/"]);
    for outside in ["", "pet", "pets", "cars/"] {
        limited.post_json(HOOKS, body(outside)).await.check_error(403, "forbidden");
        limited.patch_json(&pets, json!({"prefix": outside})).await.check_error(403, "forbidden");
    }
    hook_with(&limited, body("pets/")).await;
    limited.delete(&pets).await.check_done();
}

#[tokio::test]
async fn webhook_management_follows_organisation_roles() {
    let (world, _) = World::with_bucket(1);
    for name in ["bob", "carl"] {
        world.account(name);
    }
    world.manage(AdminRequest::CreateOrganisation { name: "Crew".into(), account: "ann".into() });
    world.bucket_of(BucketOwner::Organisation("Crew".into()), "shared", Default::default());
    let hooks = "/api/buckets/shared/webhooks";
    for (account, role) in [("bob", MemberRole::Admin), ("carl", MemberRole::Member)] {
        let (organisation, account) = ("Crew".into(), account.into());
        world.manage(AdminRequest::SetMember { organisation, account, role });
    }
    let bob = world.client_of("bob", ApiKeySettings::default());
    let made = bob.post_json(hooks, body("")).await.check_done();
    let carl = world.client_of("carl", ApiKeySettings::default());
    // An address may be a secret: members do not see it.
    carl.get(hooks).await.check_error(403, "forbidden");
    carl.post_json(hooks, body("")).await.check_error(403, "forbidden");
    let path = format!("{hooks}/{}", made["webhook"]["id"].as_str().unwrap());
    request_all(&carl, &path, 403, "forbidden").await;
    let (organisation, account) = ("Crew".into(), "bob".into());
    world.manage(AdminRequest::RemoveMember { organisation, account });
    request_all(&bob, &path, 404, "bucket_not_found").await;
}
