//! Complete resumable uploads that cannot be stored for now: retained, and stored by the next request that can:
//! `API.md`, Resumable uploads.

use engine::disk::faults::{Fault, FaultRule, Operation, PathPattern};
use engine::disk::sim::LossPolicy;
use server::management::{ApiKeySettings, BucketSettings};
use tests::store::body;
use tests::{Client, World};

use super::tus::{append, begun, head};

const SAID: [(&str, &str); 2] = [("bucketName", "photos"), ("path", "a.bin")];
/// Upload sizes: one that stays in memory, and one that becomes a big segment.
const SIZES: [usize; 2] = [10_000, 1_500_000];

/// Next request of a client.
#[derive(Clone, Copy, Debug)]
enum Next {
    Head,
    Append,
}

const NEXT: [Next; 2] = [Next::Head, Next::Append];

fn quota(bytes: Option<u64>) -> BucketSettings {
    BucketSettings { quota_bytes: Some(bytes), ..BucketSettings::default() }
}

/// Creates a completely received upload that cannot be stored for the given reason.
async fn unstorable_upload(client: &Client, whole: &[u8], status: u16, code: &str) -> String {
    unstorable_upload_after(client, whole, || (), status, code).await
}

/// Creates such an upload where the reason is a change since its creation.
async fn unstorable_upload_after(
    client: &Client,
    whole: &[u8],
    change: impl FnOnce(),
    status: u16,
    code: &str,
) -> String {
    let path = begun(client, whole.len(), &SAID).await;
    change();
    append(client, &path, 0, whole).await.check_error(status, code);
    path
}

async fn must_be_stored(client: &Client, path: &str, whole: &[u8], next: Next) {
    let reply = match next {
        Next::Head => head(client, path).await,
        Next::Append => append(client, path, whole.len(), b"").await,
    };
    assert!(reply.status.is_success(), "{next:?}: {} {}", reply.status, reply.text());
    assert_eq!(reply.header("upload-offset"), whole.len().to_string());
    assert_eq!(reply.header("x-object-url"), "https://cdn.example.com/photos/a.bin");
    assert!(client.get("/photos/a.bin").await.body == whole);
}

#[tokio::test]
async fn tus_over_quota_upload_completes_without_resending() {
    for (bytes, next) in SIZES.into_iter().flat_map(|bytes| NEXT.map(|next| (bytes, next))) {
        let (world, client) = World::with_bucket(1);
        let whole = body(1, bytes);
        let lower = || world.edit_bucket("photos", quota(Some(bytes as u64 - 1)));
        let path = unstorable_upload_after(&client, &whole, lower, 507, "quota_exceeded").await;
        for _ in 0..2 {
            // A client starts over after any other response.
            assert_eq!(head(&client, &path).await.status, 423);
            let reply = append(&client, &path, bytes, b"").await;
            reply.check_error(507, "quota_exceeded");
        }
        assert_eq!(client.get("/photos/a.bin").await.status, 404);
        world.edit_bucket("photos", quota(None));
        must_be_stored(&client, &path, &whole, next).await;
        assert_eq!(world.object_count("photos"), 1);
        assert!(world.store.resumable_uploads().unwrap().is_empty());
    }
}

#[tokio::test]
async fn tus_waiting_upload_survives_restart() {
    for (bytes, next) in SIZES.into_iter().flat_map(|bytes| NEXT.map(|next| (bytes, next))) {
        let (world, client) = World::with_bucket(1);
        let whole = body(1, bytes);
        let lower = || world.edit_bucket("photos", quota(Some(bytes as u64 - 1)));
        let path = unstorable_upload_after(&client, &whole, lower, 507, "quota_exceeded").await;
        world.edit_bucket("photos", quota(None));
        let disk = world.disk.fork();
        disk.cut_power();
        disk.power_on(LossPolicy::KeepSynced, 0);
        let found = world.found_on(disk);
        let client = found.client_of("ann", ApiKeySettings::default());
        must_be_stored(&client, &path, &whole, next).await;
    }
}

#[tokio::test]
async fn tus_large_upload_survives_failed_or_full_disk() {
    let big = || PathPattern::Prefix("big".to_owned());
    let uploads = || PathPattern::Prefix("uploads/".to_owned());
    let rules = [
        (FaultRule::once(Operation::CreateFolder, big(), Fault::NoSpace), 507, "no_space"),
        // The body is written before.
        (FaultRule::once(Operation::Write, uploads(), Fault::NoSpace).after(3), 507, "no_space"),
        (FaultRule::once(Operation::Write, uploads(), Fault::Torn).after(4), 500, "internal"),
        (
            FaultRule::once(Operation::SyncData, uploads(), Fault::SyncLost).after(2),
            500,
            "internal",
        ),
        (FaultRule::once(Operation::Link, uploads(), Fault::NoSpace), 507, "no_space"),
        (FaultRule::once(Operation::SyncFolder, big(), Fault::SyncLost), 500, "internal"),
    ];
    let whole = body(1, SIZES[1]);
    for ((rule, status, code), next) in rules.iter().flat_map(|rule| NEXT.map(|next| (rule, next)))
    {
        let (world, client) = World::with_bucket(1);
        world.disk.inject(rule.clone());
        let path = unstorable_upload(&client, &whole, *status, code).await;
        assert_eq!(world.disk.fault_count(), 1);
        must_be_stored(&client, &path, &whole, next).await;
        let disk = world.disk.fork();
        disk.cut_power();
        disk.power_on(LossPolicy::KeepSynced, 0);
        let found = world.found_on(disk).anonymous().get("/photos/a.bin").await;
        assert!(found.body == whole, "{rule:?}");
    }
}

#[tokio::test]
async fn tus_upload_with_unknown_commit_is_stored_once() {
    for (bytes, policy) in SIZES.into_iter().flat_map(|it| LossPolicy::ALL.map(|all| (it, all))) {
        let (world, client) = World::with_bucket(1);
        let whole = body(1, bytes);
        let path = begun(&client, bytes, &SAID).await;
        // The commits of the pieces go well, that of the file does not.
        let log = world.first_log_segment();
        world.disk.inject(FaultRule::once(Operation::SyncData, log, Fault::Error).after(1));
        append(&client, &path, 0, &whole).await.check_error(500, "internal");
        append(&client, &path, bytes, b"").await.check_error(503, "read_only");
        assert_eq!(head(&client, &path).await.status, 423);
        let disk = world.disk.fork();
        disk.cut_power();
        disk.power_on(policy, 0);
        let found = world.found_on(disk);
        let client = found.client_of("ann", ApiKeySettings::default());
        let info = head(&client, &path).await;
        assert_eq!(info.status, 200, "{policy:?}");
        assert_eq!(info.header("upload-offset"), bytes.to_string());
        assert!(client.get("/photos/a.bin").await.body == whole, "{policy:?}");
        assert_eq!(found.object_count("photos"), 1);
    }
}

#[tokio::test]
async fn tus_waiting_upload_can_be_terminated_and_expires() {
    for bytes in SIZES {
        let (world, client) = World::with_bucket(1);
        let whole = body(1, bytes);
        let lower = || world.edit_bucket("photos", quota(Some(1)));
        let path = unstorable_upload_after(&client, &whole, lower, 507, "quota_exceeded").await;
        let reply = client
            .send(http::Method::DELETE, &path, &[super::tus::VERSION], axum::body::Body::empty())
            .await;
        assert_eq!(reply.status, 204);
        world.edit_bucket("photos", quota(None));
        let path = unstorable_upload_after(&client, &whole, lower, 507, "quota_exceeded").await;
        world.clock.advance(24 * 60 * 60 * 1_000);
        append(&client, &path, bytes, b"").await.check_error(410, "upload_expired");
        assert_eq!(server::handlers::tus::expire_uploads(&world.state).unwrap(), 1);
        assert!(world.store.resumable_uploads().unwrap().is_empty());
        assert!(world.disk.paths().iter().all(|path| !path.starts_with("big/")));
    }
}

#[tokio::test]
async fn tus_upload_rejected_by_the_bucket_is_removed() {
    for bytes in SIZES {
        let (world, client) = World::with_bucket(1);
        let allowed_types = Some(Some(vec!["video/*".to_owned()]));
        world.edit_bucket("photos", BucketSettings { allowed_types, ..Default::default() });
        let path = unstorable_upload(&client, &body(1, bytes), 415, "type_not_allowed").await;
        assert_eq!(head(&client, &path).await.status, 404);
        assert!(world.store.resumable_uploads().unwrap().is_empty());
        assert!(world.disk.paths().iter().all(|path| !path.starts_with("big/")));
    }
}

#[tokio::test]
async fn tus_leftovers_of_a_killed_server_are_swept() {
    let (world, client) = World::with_bucket(1);
    let whole = body(1, SIZES[1]);
    let path = begun(&client, whole.len(), &SAID).await;
    let uploads = PathPattern::Prefix("uploads/".to_owned());
    world.disk.inject(FaultRule::once(Operation::Remove, uploads, Fault::Error));
    append(&client, &path, 0, &whole).await.check_error(500, "internal");
    assert_eq!(world.store.resumable_uploads().unwrap().len(), 1);
    must_be_stored(&client, &path, &whole, Next::Head).await;
    assert_eq!(server::handlers::tus::expire_uploads(&world.state).unwrap(), 0);
    assert!(world.store.resumable_uploads().unwrap().is_empty());
    must_be_stored(&client, &path, &whole, Next::Append).await;
}
