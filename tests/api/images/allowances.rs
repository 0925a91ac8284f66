//! Rate limits of rendering: charged once, per address and bucket, and never for cached variants.

use engine::disk::faults::{Fault, FaultRule, Operation, PathPattern};
use fuzz::synthetic_photo::{Encoding, SyntheticPhoto};
use server::management::BucketSettings;
use service::config::Config;
use tests::{Client, Reply, World};

use super::png;
use crate::tus::{append, begun};

/// Render budgets of one address, and of a bucket: milliseconds for each second, for five minutes.
fn config(per_address: u32, per_bucket: u32) -> Config {
    Config {
        image_ms_per_second_per_address: per_address,
        image_ms_per_second_per_bucket: per_bucket,
        ..Config::default()
    }
}

/// Requests one variant after the other, about ten milliseconds each, until the limit is reached.
async fn spend(client: &Client, path: &str) -> Reply {
    for quality in 1..=60 {
        let reply = client.get(&format!("{path}?format=webp&quality={quality}")).await;
        if reply.status == 429 {
            assert!(quality > 10, "{quality}");
            return reply;
        }
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    panic!("nothing was refused");
}

#[tokio::test]
async fn render_rate_limit_per_address_exempts_cache_hits() {
    let (world, client) = World::with_bucket_and(1, config(1, 0));
    for name in ["a.png", "b.png"] {
        client.put("/photos/", name, &png(400, 300)).await;
    }
    let near = client.at("192.0.2.1");
    let refused = spend(&near, "/photos/a.png").await;
    refused.check_error(429, "rate_limited");
    assert_eq!(refused.header("ratelimit-policy"), "\"pictures-address\";q=300;w=300");
    for path in ["/photos/a.png?format=webp&quality=1", "/photos/a.png"] {
        assert_eq!(near.get(path).await.status, 200, "{path}");
    }
    let missing = "/photos/a.png?format=webp&quality=99";
    near.get(missing).await.check_error(429, "rate_limited");
    assert_eq!(client.at("192.0.2.2").get(missing).await.status, 200);
    let wait: u64 = refused.header("retry-after").parse().unwrap();
    world.clock.advance(1_000 * wait);
    assert_eq!(near.get("/photos/a.png?format=webp&quality=98").await.status, 200);

    let first = client.at("2001:db8::1");
    spend(&first, "/photos/b.png").await;
    let neighbour = client.at("2001:db8::2").get("/photos/b.png?format=webp&quality=99").await;
    neighbour.check_error(429, "rate_limited");
    assert_eq!(
        client.at("2001:db8:0:1::1").get("/photos/b.png?format=webp&quality=99").await.status,
        200
    );
}

#[tokio::test]
async fn render_rate_limit_charges_jpeg_scans_by_time() {
    let (_world, client) = World::with_bucket_and(1, config(1, 0));
    let progressive = Encoding { progressive: Some(4), ..Encoding::PLAIN };
    let usual = SyntheticPhoto::new(1, 800, 600).jpeg(&progressive);
    // Its first scan, of all components.
    let from = usual.windows(2).position(|pair| pair == [0xff, 0xda]).unwrap();
    let is_next = |pair: &[u8]| matches!(pair, [0xff, 0xc4 | 0xda]);
    let to = from + 2 + usual[from + 2..].windows(2).position(is_next).unwrap();
    let many = [&usual[..from], &usual[from..to].repeat(70), &usual[from..]].concat();
    let mut made = Vec::new();
    for (name, file, address) in
        [("usual.jpg", usual, "192.0.2.1"), ("many.jpg", many, "192.0.2.2")]
    {
        client.put("/photos/", name, &file).await;
        let mut widths = 8..68;
        for width in widths.by_ref() {
            let reply = client.at(address).get(&format!("/photos/{name}?width={width}")).await;
            if reply.status == 429 {
                break;
            }
            assert_eq!(reply.status, 200, "{}", reply.text());
        }
        made.push(60 - widths.len());
    }
    assert_eq!(made[0], 60);
    assert!((2..40).contains(&made[1]), "{made:?}");
}

#[tokio::test]
async fn render_rate_limit_per_bucket() {
    let (world, client) = World::with_bucket_and(1, config(0, 1));
    world.bucket("ann", "more", BucketSettings::default());
    for bucket in ["photos", "more"] {
        client.put(&format!("/{bucket}/"), "a.png", &png(400, 300)).await;
    }
    let refused = spend(&client.at("192.0.2.1"), "/photos/a.png").await;
    assert_eq!(refused.header("ratelimit-policy"), "\"pictures-bucket\";q=300;w=300");
    let elsewhere = client.at("192.0.2.2");
    let missing = "/photos/a.png?format=webp&quality=99";
    elsewhere.get(missing).await.check_error(429, "rate_limited");
    assert_eq!(elsewhere.get("/photos/a.png?format=webp&quality=1").await.status, 200);
    assert_eq!(elsewhere.get("/more/a.png?width=300").await.status, 200);
}

#[tokio::test]
async fn coalesced_renders_are_charged_once() {
    let (_world, client) = World::with_bucket_and(1, config(1, 0));
    client.put("/photos/", "a.png", &png(400, 300)).await;
    let near = client.at("192.0.2.1");
    let asking = (0..100).map(|_| {
        let near = near.clone();
        tokio::spawn(async move { near.get("/photos/a.png?format=webp").await.status })
    });
    for status in asking.collect::<Vec<_>>() {
        assert_eq!(status.await.unwrap(), 200);
    }
}

#[tokio::test]
async fn failed_render_is_attempted_and_charged_once() {
    let (world, client) = World::with_bucket_and(1, config(1, 0));
    let whole = png(400, 300);
    client.put("/photos/", "cut.png", &whole[..whole.len() / 2]).await;
    let near = client.at("192.0.2.1");
    for _ in 0..100 {
        near.get("/photos/cut.png?format=webp").await.check_error(422, "undecodable");
    }
    // After ten minutes it is retried.
    world.clock.advance(10 * 60 * 1_000);
    near.get("/photos/cut.png?format=webp").await.check_error(422, "undecodable");
}

#[tokio::test]
async fn thumbnail_render_is_charged_to_its_bucket() {
    let (_world, client) = World::with_bucket_and(1, config(0, 1));
    let picture = png(400, 300);
    let mut skipped = None;
    for at in 0..60 {
        let reply = client.put("/photos/?thumbnail", &format!("{at}.png"), &picture).await;
        if reply["thumbnailUrl"].is_null() {
            skipped = Some((at, reply["files"][0]["thumbnailSkipped"].clone()));
            break;
        }
    }
    let (made, why) = skipped.expect("nothing was refused");
    assert!(made > 10 && why == "busy", "{made}: {why}");
    let variant = client.get("/photos/0.png?format=webp&quality=1").await;
    variant.check_error(429, "rate_limited");
}

async fn check_repeatedly_rejected(client: &Client, code: &str) {
    for _ in 0..45 {
        let rejected = client.upload_file("/photos/?thumbnail", "a.png", &png(400, 300)).await;
        rejected.check_error(507, code);
    }
}

#[tokio::test]
async fn rejected_upload_charges_no_render() {
    const RESERVE_BYTES: u64 = 1 << 30;
    let config = Config { reserve_bytes: Some(RESERVE_BYTES), ..config(0, 1) };
    let (world, client) = World::with_bucket_and(1, config);
    let quota = |bytes| BucketSettings { quota_bytes: Some(bytes), ..BucketSettings::default() };
    world.edit_bucket("photos", quota(Some(10)));
    check_repeatedly_rejected(&client, "quota_exceeded").await;
    world.edit_bucket("photos", quota(None));
    world.disk.set_free_bytes(RESERVE_BYTES - 4_096);
    world.clock.advance(1_000);
    check_repeatedly_rejected(&client, "no_space").await;
    world.disk.set_free_bytes(2 * RESERVE_BYTES);
    world.clock.advance(1_000);
    let reply = client.put("/photos/?thumbnail", "a.png", &png(400, 300)).await;
    assert!(!reply["thumbnailUrl"].is_null(), "{reply}");
}

#[tokio::test]
async fn retried_tus_upload_renders_its_thumbnail_once() {
    let (world, client) = World::with_bucket_and(1, config(0, 1));
    // Trailing bytes after the picture make the body large, so that it waits in a file of its own.
    let whole = [png(400, 300), vec![0; 1_500_000]].concat();
    let said = [("bucketName", "photos"), ("path", "a.png"), ("thumbnail", "1")];
    let upload = begun(&client, whole.len(), &said).await;
    let mut sent = &whole[..];
    for _ in 0..60 {
        let uploads = PathPattern::Prefix("uploads/".to_owned());
        world.disk.inject(FaultRule::once(Operation::Link, uploads, Fault::NoSpace));
        let reply = append(&client, &upload, whole.len() - sent.len(), sent).await;
        reply.check_error(507, "no_space");
        sent = &[];
    }
    let reply = append(&client, &upload, whole.len(), b"").await;
    assert!(reply.status.is_success(), "{}", reply.text());
    assert!(reply.headers.contains_key("x-thumbnail-url"), "{:?}", reply.headers);
    assert_eq!(client.get("/photos/a_thumb.webp").await.status, 200);
}
