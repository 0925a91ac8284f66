//! Organisations, their members and permissions: specification 1 and 4.8, clients 13.11.

use serde_json::{Value, json};
use server::management::ApiKeySettings;
use tests::{Client, Reply, World};

/// Ann, who owns the organisation, and Bob; the ids of the organisation and of Bob.
struct Crew {
    world: World,
    ann: Client,
    bob: Client,
    id: String,
    bob_id: String,
}

impl Crew {
    async fn new() -> Self {
        let (world, ann) = World::with_bucket(1);
        let bob_id = world.account("bob");
        let bob = world.client_of("bob", ApiKeySettings::default());
        let made = ann.post_json("/api/organisations", json!({"name": "Crew"})).await.check_done();
        let id = made["organisation"]["id"].as_str().unwrap().to_owned();
        let body = json!({"bucketName": "shared", "organisation": id, "access": "private"});
        ann.post_json("/api/buckets", body).await.check_done();
        ann.put("/shared/", "a.txt", b"1").await;
        Self { world, ann, bob, id, bob_id }
    }

    fn path(&self, rest: &str) -> String {
        format!("/api/organisations/{}{rest}", self.id)
    }

    async fn invite_bob(&self, role: &str) -> Reply {
        let body = json!({"account": self.bob_id, "role": role});
        self.ann.post_json(&self.path("/members"), body).await
    }

    async fn accept(&self) -> Reply {
        self.bob.post(&self.path("/membership")).await
    }

    /// Adds Bob as a member, or changes his role.
    async fn set_bob(&self, role: &str) -> Reply {
        let reply = self.invite_bob(role).await;
        let is_invited =
            reply.status == 200 && reply.json()["invited"][0]["account"] == self.bob_id;
        if is_invited { self.accept().await } else { reply }
    }

    async fn upload(&self, client: &Client) -> Reply {
        client.upload_file("/shared/", "b.txt", b"1").await
    }
}

#[tokio::test]
async fn organisation_is_created_renamed_and_deleted() {
    let crew = Crew::new().await;
    let listed = crew.ann.get("/api/organisations").await.check_done();
    let organisation = &listed["organisations"][0];
    assert_eq!((&organisation["id"], &organisation["name"]), (&json!(crew.id), &json!("Crew")));
    assert_eq!(organisation["members"][0]["role"], "owner");
    assert_eq!(organisation["members"][0]["name"], "ann");
    for (q, found) in [("cre", 1), (&crew.id[..6], 1), ("night", 0)] {
        let listed = crew.ann.get(&format!("/api/organisations?q={q}")).await.check_done();
        assert_eq!(listed["organisations"].as_array().unwrap().len(), found, "{q}");
    }
    crew.ann.patch_json(&crew.path(""), json!({"name": "Team"})).await.check_done();
    let shown = crew.ann.get(&crew.path("")).await.check_done();
    assert_eq!(shown["organisation"]["name"], "Team");
    for body in [json!({"owner": crew.bob_id}), json!({"name": "x", "members": {}})] {
        let field = if body.get("owner").is_some() { "owner" } else { "members" };
        crew.ann.patch_json(&crew.path(""), body).await.check_parameter(field);
    }
    crew.ann.post_json("/api/organisations", json!({"name": " "})).await.check_parameter("name");

    crew.ann.delete(&crew.path("")).await.check_error(409, "organisation_not_empty");
    crew.ann.delete("/shared/a.txt").await.check_done();
    crew.ann.delete("/api/buckets/shared").await.check_done();
    crew.ann.delete(&crew.path("")).await.check_done();
    crew.ann.get(&crew.path("")).await.check_error(404, "organisation_not_found");
}

#[tokio::test]
async fn organisation_roles_are_enforced() {
    let crew = Crew::new().await;
    let bob = &crew.bob;
    let patch = || bob.patch_json("/api/buckets/shared", json!({"thumbnails": true}));
    let make = |name: &str| json!({"bucketName": name, "organisation": crew.id});
    bob.get("/shared/a.txt").await.check_error(403, "forbidden");
    crew.upload(bob).await.check_error(404, "bucket_not_found");
    bob.get("/api/buckets/shared").await.check_error(404, "bucket_not_found");
    bob.post_json("/api/buckets", make("mine")).await.check_error(404, "organisation_not_found");

    crew.set_bob("viewer").await.check_done();
    assert_eq!(bob.get("/shared/a.txt").await.status, 200);
    bob.get("/api/buckets/shared").await.check_done();
    crew.upload(bob).await.check_error(403, "forbidden");
    bob.delete("/shared/a.txt").await.check_error(403, "forbidden");
    patch().await.check_error(403, "forbidden");

    crew.set_bob("member").await.check_done();
    crew.upload(bob).await.check_done();
    bob.delete("/shared/b.txt").await.check_done();
    patch().await.check_error(403, "forbidden");
    bob.post_json("/api/buckets", make("mine")).await.check_error(403, "forbidden");
    bob.delete("/api/buckets/shared?force=true").await.check_error(403, "forbidden");

    crew.set_bob("admin").await.check_done();
    patch().await.check_done();
    let made = bob.post_json("/api/buckets", make("mine")).await.check_done();
    let ann = crew.ann.get("/api/account").await.check_done()["account"]["id"].take();
    assert_eq!(made["bucket"]["account"], ann);
    bob.delete("/api/buckets/mine").await.check_done();
    let body = json!({"account": crew.bob_id, "role": "owner"});
    bob.post_json(&crew.path("/members"), body).await.check_error(403, "forbidden");
    bob.delete(&crew.path("")).await.check_error(403, "forbidden");
    bob.patch_json(&crew.path(""), json!({"name": "Bobs"})).await.check_error(403, "forbidden");
    // The personal buckets of the organisation's owner are not visible to Bob.
    bob.get("/api/buckets/photos").await.check_error(404, "bucket_not_found");

    crew.set_bob("owner").await.check_done();
    bob.patch_json(&crew.path(""), json!({"name": "Bobs"})).await.check_done();
    crew.ann.get("/api/buckets/shared").await.check_done();
}

#[tokio::test]
async fn organisation_membership_requires_acceptance() {
    let crew = Crew::new().await;
    let invited = crew.invite_bob("admin").await.check_done();
    assert_eq!(invited["members"].as_array().unwrap().len(), 1);
    assert_eq!(invited["invited"], json!([{"account": crew.bob_id, "role": "admin"}]));
    assert!(!invited.to_string().contains("\"bob\""), "no name of who has not accepted: {invited}");
    // Before accepting, Bob has access to nothing, and sees the name and the role alone.
    crew.bob.get(&crew.path("")).await.check_error(404, "organisation_not_found");
    crew.bob.get("/api/buckets/shared").await.check_error(404, "bucket_not_found");
    let listed = crew.bob.get("/api/organisations").await.check_done();
    assert_eq!(listed["organisations"], json!([]));
    assert_eq!(listed["invitations"], json!([{"id": crew.id, "name": "Crew", "role": "admin"}]));
    // The last role that was offered counts.
    crew.invite_bob("viewer").await.check_done();
    let joined = crew.accept().await.check_done();
    assert_eq!(joined["organisation"]["invited"], json!([]));
    crew.bob.get("/api/buckets/shared").await.check_done();
    crew.upload(&crew.bob).await.check_error(403, "forbidden");
    crew.accept().await.check_error(404, "organisation_not_found");
    let listed = crew.bob.get("/api/organisations").await.check_done();
    assert_eq!(listed["invitations"], json!([]));
}

#[tokio::test]
async fn organisation_invitation_is_declined_or_withdrawn() {
    let crew = Crew::new().await;
    crew.accept().await.check_error(404, "organisation_not_found");
    crew.invite_bob("admin").await.check_done();
    crew.bob.delete(&crew.path("/membership")).await.check_done();
    crew.bob.delete(&crew.path("/membership")).await.check_error(404, "organisation_not_found");
    crew.invite_bob("admin").await.check_done();
    let path = crew.path(&format!("/members?account={}", crew.bob_id));
    let left = crew.ann.delete(&path).await.check_done();
    assert_eq!(left["invited"], json!([]));
    crew.accept().await.check_error(404, "organisation_not_found");
}

#[tokio::test]
async fn organisation_removed_member_loses_access_at_once() {
    let crew = Crew::new().await;
    crew.set_bob("admin").await.check_done();
    // Also with a key created for the bucket before the removal.
    let body = json!({"scopes": ["upload", "read"], "bucketName": "shared"});
    let issued: Value = crew.bob.post_json("/api/keys", body).await.check_done();
    let phone = Client::new(crew.world.app(), Some(issued["key"].as_str().unwrap().to_owned()));
    crew.upload(&phone).await.check_done();
    let path = crew.path(&format!("/members?account={}", crew.bob_id));
    let left = crew.ann.delete(&path).await.check_done();
    assert_eq!(left["members"].as_array().unwrap().len(), 1);
    for client in [&crew.bob, &phone] {
        crew.upload(client).await.check_error(404, "bucket_not_found");
        client.get("/shared/a.txt").await.check_error(403, "forbidden");
    }
    crew.bob.get(&crew.path("")).await.check_error(404, "organisation_not_found");
    crew.ann.delete(&path).await.check_error(404, "account_not_found");
}

#[tokio::test]
async fn organisation_member_can_leave_but_not_the_last_owner() {
    let crew = Crew::new().await;
    crew.set_bob("viewer").await.check_done();
    let leave = crew.path(&format!("/members?account={}", crew.bob_id));
    crew.bob.delete(&leave).await.check_done();
    crew.bob.delete(&leave).await.check_error(404, "organisation_not_found");
    let ann = crew.ann.get("/api/account").await.check_done()["account"]["id"].take();
    let ann = ann.as_str().unwrap();
    let leave = crew.path(&format!("/members?account={ann}"));
    crew.ann.delete(&leave).await.check_error(409, "last_owner");
    let less = json!({"account": ann, "role": "viewer"});
    crew.ann.post_json(&crew.path("/members"), less).await.check_error(409, "last_owner");
    crew.set_bob("owner").await.check_done();
    crew.bob.delete(&leave).await.check_error(409, "last_owner");
}

#[tokio::test]
async fn organisation_members_are_addressed_by_id() {
    let crew = Crew::new().await;
    for account in ["bob", "abcdefghijklmnop", ""] {
        let body = json!({"account": account, "role": "viewer"});
        let reply = crew.ann.post_json(&crew.path("/members"), body).await;
        reply.check_error(404, "account_not_found");
    }
    let body = json!({"account": crew.bob_id, "role": "king"});
    crew.ann.post_json(&crew.path("/members"), body).await.check_parameter("role");
    crew.ann.delete(&crew.path("/members")).await.check_parameter("account");
}

#[tokio::test]
async fn organisation_members_are_suspended_with_their_owner() {
    let crew = Crew::new().await;
    crew.set_bob("admin").await.check_done();
    let standing = Some(catalog::FairUseStanding::Suspended);
    let settings = server::management::AccountSettings { standing, ..Default::default() };
    crew.world.edit_account("ann", settings);
    crew.upload(&crew.bob).await.check_error(403, "account_suspended");
    crew.bob.get("/shared/a.txt").await.check_error(403, "account_suspended");
    let body = json!({"bucketName": "more", "organisation": crew.id});
    crew.bob.post_json("/api/buckets", body).await.check_error(403, "account_suspended");
}
