//! Quotas of accounts and buckets: clients 8.1 and 13.6.

use serde_json::json;
use server::management::{AccountSettings, BucketSettings};
use tests::{Form, World};

fn quota(bytes: Option<u64>, objects: Option<u64>) -> BucketSettings {
    BucketSettings {
        quota_bytes: bytes.map(Some),
        quota_objects: objects.map(Some),
        ..BucketSettings::default()
    }
}

#[tokio::test]
async fn quota_excess_is_rejected_and_stores_nothing() {
    let (world, client) = World::with_bucket(1);
    world.edit_bucket("photos", quota(Some(10), None));
    client.put("/photos/", "a.txt", b"12345").await;
    let form = Form::new().file("f", "b.txt", None, b"1").file("f", "c.txt", None, b"123456");
    let reply = client.upload("/photos/", form).await;
    reply.check_error(507, "quota_exceeded");
    let body = reply.json();
    assert_eq!((&body["quota"], &body["measure"]), (&json!("bucket"), &json!("bytes")));
    assert_eq!((&body["limit"], &body["used"]), (&json!(10), &json!(5)));
    assert_eq!(world.object_count("photos"), 1);
    client.put("/photos/", "b.txt", b"12345").await;
    client.upload_file("/photos/", "c.txt", b"1").await.check_error(507, "quota_exceeded");
    client.delete("/photos/a.txt").await.check_done();
    client.put("/photos/", "c.txt", b"12345").await;
}

#[tokio::test]
async fn quota_of_account_spans_all_its_buckets() {
    let (world, client) = World::with_bucket(1);
    world.bucket("ann", "second", Default::default());
    let object_count_max = Some(Some(2));
    world.edit_account("ann", AccountSettings { object_count_max, ..Default::default() });
    client.put("/photos/", "a.txt", b"1").await;
    client.put("/second/", "a.txt", b"1").await;
    let reply = client.upload_file("/second/", "b.txt", b"").await;
    reply.check_error(507, "quota_exceeded");
    assert_eq!(
        (&reply.json()["quota"], &reply.json()["measure"]),
        (&json!("account"), &json!("files"))
    );
}

#[tokio::test]
async fn quota_counts_overwrites_by_their_difference() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "a.txt", b"12345678").await;
    world.edit_bucket("photos", quota(Some(10), Some(1)));
    client.put("/photos/?overwrite=true", "a.txt", b"1234567890").await;
    let over = || Form::new().file("f", "a.txt", None, b"12345678901");
    client.upload("/photos/?overwrite=true", over()).await.check_error(507, "quota_exceeded");
    // Over a limit that was lowered, what shrinks is still let in.
    world.edit_bucket("photos", quota(Some(5), Some(0)));
    client.put("/photos/?overwrite=true", "a.txt", b"123456789").await;
    client.put("/photos/?overwrite=true", "a.txt", b"123456789").await;
    client.upload("/photos/?overwrite=true", over()).await.check_error(507, "quota_exceeded");
    assert_eq!(client.get("/photos/a.txt").await.text(), "123456789");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn quota_is_filled_exactly_by_50_concurrent_uploads() {
    let (world, client) = World::with_bucket(1);
    let storage_bytes_max = Some(Some(10 * 100));
    world.edit_account("ann", AccountSettings { storage_bytes_max, ..Default::default() });
    world.edit_bucket("photos", quota(None, Some(20)));
    let uploads: Vec<_> = (0..50)
        .map(|at| {
            let client = client.clone();
            tokio::spawn(async move {
                client.upload_file("/photos/", &format!("{at}.txt"), &[b'x'; 100]).await
            })
        })
        .collect();
    let mut stored = 0;
    for upload in uploads {
        let reply = upload.await.unwrap();
        match reply.status.as_u16() {
            200 => stored += 1,
            _ => reply.check_error(507, "quota_exceeded"),
        }
    }
    assert_eq!((stored, world.object_count("photos")), (10, 10));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn quota_concurrent_overwrites_are_not_counted_twice() {
    let (world, client) = World::with_bucket(1);
    for at in 0..4 {
        client.put("/photos/", &format!("{at}.txt"), &[b'x'; 10]).await;
    }
    world.edit_bucket("photos", quota(Some(100), None));
    let uploads: Vec<_> = (0..40)
        .map(|at| {
            let client = client.clone();
            tokio::spawn(async move {
                let bytes = vec![b'y'; if at % 3 == 0 { 1 } else { 60 }];
                client
                    .upload_file("/photos/?overwrite=true", &format!("{}.txt", at % 4), &bytes)
                    .await
            })
        })
        .collect();
    for upload in uploads {
        let reply = upload.await.unwrap();
        match reply.status.as_u16() {
            200 => {}
            409 => reply.check_error(409, "conflict"),
            _ => reply.check_error(507, "quota_exceeded"),
        }
    }
    let photos = engine::BucketName::parse("photos").unwrap();
    assert!(world.store.bucket_usage(&photos).unwrap().bytes <= 100);
}
