//! The premium endpoint: specification 4.2, 4.3 (earlier forms) and 8, clients 13.3 and 13.14.

use axum::body::Body;
use catalog::Plan;
use http::Method;
use serde_json::json;
use service::Config;
use tests::fixtures::path_of;
use tests::world::PUBLIC_URL;
use tests::{Client, Form, World};

fn form(bytes: usize) -> Form {
    Form::new().file("file", "a.bin", None, &vec![7; bytes])
}

/// Creates a service with small limits, a client at its basic and one at its premium endpoint.
fn both_ends() -> (World, Client, Client) {
    let limits =
        Config { body_bytes_max: 1_000, upload_body_bytes_max: 5_000, ..Config::default() };
    let (world, basic) = World::with_bucket_and(1, limits);
    let premium = world.at_premium(&basic);
    (world, basic, premium)
}

#[tokio::test]
async fn premium_host_rejects_plans_below_pro_except_reads() {
    let (world, basic, premium) = both_ends();
    basic.put("/photos/", "a.txt", b"hello").await;
    for plan in [Plan::Free, Plan::Starter] {
        world.set_plan("ann", plan);
        premium.upload("/photos/", form(10)).await.check_error(403, "plan_required");
        premium.delete("/photos/a.txt").await.check_error(403, "plan_required");
        let presign = premium.get("/api/presigned-url?path=photos/").await;
        presign.check_error(403, "plan_required");
        let presign = premium.get("/photos/presigned/a.txt").await;
        presign.check_error(403, "plan_required");
        assert_eq!(premium.get("/photos/a.txt").await.text(), "hello");
    }
    for plan in [Plan::Pro, Plan::Business] {
        world.set_plan("ann", plan);
        assert_eq!(premium.upload("/photos/", form(10)).await.status, 200);
        assert_eq!(premium.get("/api/presigned-url?path=photos/").await.status, 200);
    }
    let anonymous = premium.without_key();
    anonymous.upload("/photos/", form(10)).await.check_error(401, "missing_api_key");
    assert_eq!(anonymous.get("/-/ready").await.status, 200);
    world.set_plan("ann", Plan::Free);
    world.make_private("photos");
    anonymous.get("/photos/a.txt").await.check_error(401, "missing_api_key");
    assert_eq!(premium.get("/photos/a.txt").await.text(), "hello");
}

#[tokio::test]
async fn premium_host_has_its_own_body_limit() {
    let (world, basic, premium) = both_ends();
    world.set_plan("ann", Plan::Pro);
    let refused = basic.upload("/photos/", form(2_000)).await;
    refused.check_error(413, "file_too_large");
    assert_eq!(refused.json()["limit"], 1_000);
    let reply = premium.upload("/photos/", form(2_000)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.json()["url"], format!("{PUBLIC_URL}/photos/a.bin"));
    let refused = premium.upload("/photos/", form(6_000)).await;
    refused.check_error(413, "file_too_large");
    assert_eq!(refused.json()["limit"], 5_000);
    assert_eq!(Config::default().upload_body_bytes_max, 5 << 30);
    assert_eq!(basic.get("/photos/a.bin").await.body.len(), 2_000);
}

#[tokio::test]
async fn premium_presigned_upload_uses_plan_of_issuer() {
    let (world, basic, premium) = both_ends();
    let posted =
        &path_of(&basic.get("/api/presigned-url?path=photos/&overwrite").await.json()["url"]);
    let put = &path_of(&basic.get("/photos/presigned/b.bin").await.json()["presignedUrl"]);
    let anonymous = premium.without_key();
    let raw = || anonymous.send(Method::PUT, put, &[], Body::from(vec![7; 2_000]));
    anonymous.upload(posted, form(2_000)).await.check_error(403, "plan_required");
    raw().await.check_error(403, "plan_required");
    world.set_plan("ann", Plan::Pro);
    let at_basic = basic.without_key().upload(posted, form(2_000)).await;
    at_basic.check_error(413, "file_too_large");
    assert_eq!(anonymous.upload(posted, form(2_000)).await.status, 200);
    assert_eq!(raw().await.status, 200);
    assert_eq!(world.object_count("photos"), 2);
}

#[tokio::test]
async fn premium_host_accepts_legacy_upload_and_delete() {
    let (world, _, premium) = both_ends();
    world.set_plan("ann", Plan::Pro);
    let reply = premium.put("/photos/dir/x.txt?overwrite=1&thumbnail=1", "y.txt", b"1").await;
    assert_eq!(
        (&reply["success"], &reply["key"], &reply["path"]),
        (&json!(true), &json!("dir/x.txt"), &json!("dir/x.txt"))
    );
    for at in 0..6 {
        let files = (0..20).fold(Form::new(), |form, file| {
            form.file("files", &format!("{at}-{file}.txt"), None, b"1")
        });
        assert_eq!(premium.upload("/photos/dir/", files).await.status, 200);
    }
    let first = premium.delete("/photos/dir/").await.json();
    assert_eq!((&first["deletedCount"], &first["isTruncated"]), (&json!(100), &json!(true)));
    let second = premium.delete("/photos/dir/").await.json();
    assert_eq!((&second["deletedCount"], &second["isTruncated"]), (&json!(21), &json!(false)));
    premium.delete("/photos/dir/").await.check_error(404, "file_not_found");
}
