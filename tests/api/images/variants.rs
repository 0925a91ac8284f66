//! Variants: cached, shared, found again, and deleted with their parent.

use engine::disk::sim::SimDisk;
use server::management::ApiKeySettings;
use service::config::Config;
use tests::World;

use super::{png, shown};

#[tokio::test]
async fn variant_is_rendered_once_and_served_like_a_file() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "a.png", &png(80, 60)).await;
    let first = client.get("/photos/a.png?width=40").await;
    assert_eq!(world.derived_count(), 1);
    let again = client.get("/photos/a.png?width=40&v=2").await;
    assert_eq!((&first.body, first.header("etag")), (&again.body, again.header("etag")));
    assert_eq!(world.derived_count(), 1);
    assert_eq!(world.object_count("photos"), 1, "it counts as nobody's file");
    let etag = first.header("etag").to_owned();
    let known = client.get_with("/photos/a.png?width=40", &[("if-none-match", &etag)]).await;
    assert_eq!((known.status.as_u16(), known.body.len()), (304, 0));
    let range = client.get_with("/photos/a.png?width=40", &[("range", "bytes=3-9")]).await;
    assert_eq!((range.status.as_u16(), &range.body[..]), (206, &first.body[3..10]));
    let several = client.get_with("/photos/a.png?width=40", &[("range", "bytes=0-1,5-6")]).await;
    assert!(several.header("content-type").starts_with("multipart/byteranges"));
    let head = client.head_with("/photos/a.png?width=40", &[]).await;
    assert_eq!(head.header("content-length"), first.body.len().to_string());
    assert_eq!(head.header("etag"), etag);
    assert_eq!(
        first.header("last-modified"),
        client.get("/photos/a.png").await.header("last-modified")
    );
}

#[tokio::test]
async fn concurrent_variant_requests_are_coalesced() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "a.png", &png(200, 160)).await;
    let asking = (0..40).map(|at| {
        let client = client.clone();
        // Queries with the same transform.
        let query = ["width=100", "w=100&quality=", "width=100&height=80", "dpr=2&w=50"][at % 4];
        tokio::spawn(async move { client.get(&format!("/photos/a.png?{query}")).await })
    });
    let mut etags = std::collections::BTreeSet::new();
    for reply in asking.collect::<Vec<_>>() {
        let reply = reply.await.unwrap();
        assert_eq!(reply.status, 200);
        etags.insert(reply.header("etag").to_owned());
    }
    assert_eq!((etags.len(), world.derived_count()), (1, 1));
}

#[tokio::test]
async fn new_version_gets_new_variants_and_drops_old_ones() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "a.png", &png(80, 60)).await;
    client.get("/photos/a.png?width=40").await;
    client.put("/photos/a.png?overwrite=true", "a.png", &png(60, 80)).await;
    let seen = shown(&client.get("/photos/a.png?width=40").await);
    assert_eq!((seen.width(), seen.height()), (40, 53));
    assert_eq!(world.derived_count(), 2);
    world.state.variants.sweep().unwrap();
    assert_eq!(world.derived_count(), 1);
    client.delete("/photos/a.png").await.check_done();
    client.get("/photos/a.png?width=40").await.check_error(404, "file_not_found");
    world.state.variants.sweep().unwrap();
    assert_eq!(world.derived_count(), 0);
}

#[tokio::test]
async fn variant_cache_survives_restart() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "a.png", &png(80, 60)).await;
    let before = client.get("/photos/a.png?width=40").await;
    world.store.close().unwrap();
    let world = world.found_on(SimDisk::clone(&world.disk));
    let client = world.client_of("ann", ApiKeySettings::default());
    let after = client.without_key().get("/photos/a.png?width=40").await;
    assert_eq!((before.body, world.derived_count()), (after.body, 1));
    // Variants cached earlier are known, so that they are deleted with their parent.
    world.state.variants.load().unwrap();
    client.delete("/photos/a.png").await.check_done();
    world.state.variants.sweep().unwrap();
    assert_eq!(world.derived_count(), 0);
}

#[tokio::test]
async fn variant_count_per_file_is_bounded() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "a.png", &png(80, 60)).await;
    for width in 1..=70 {
        let seen = shown(&client.get(&format!("/photos/a.png?width={width}")).await);
        assert_eq!(seen.width(), width);
    }
    assert_eq!(world.derived_count(), 64);
    let made = client.get_with("/photos/a.png?width=70", &[("range", "bytes=0-3")]).await;
    assert_eq!((made.status.as_u16(), &made.body[..]), (206, &b"\x89PNG"[..]));
    let etag = made.header("etag").to_owned();
    let known = client.get_with("/photos/a.png?width=70", &[("if-none-match", &etag)]).await;
    assert_eq!(known.status, 304);
}

#[tokio::test]
async fn variant_cache_evicts_least_recently_used() {
    let one = png(80, 60);
    let probe = World::with_bucket(1);
    probe.1.put("/photos/", "a.png", &one).await;
    let bytes = probe.1.get("/photos/a.png?width=40").await.body.len() as u64;
    let config = Config { variants_bytes_max: 3 * bytes, ..Config::default() };
    let (world, client) = World::with_bucket_and(1, config);
    for name in ["a", "b", "c", "d", "e"] {
        client.put(&format!("/photos/{name}.png"), "x.png", &one).await;
        client.get(&format!("/photos/{name}.png?width=40")).await;
        client.get("/photos/a.png?width=40").await;
    }
    let stats = world.store.stats().unwrap();
    assert_eq!((stats.derived_objects, stats.derived_bytes), (3, 3 * bytes));
    let none = Config { variants_bytes_max: 0, ..Config::default() };
    let (world, client) = World::with_bucket_and(1, none);
    client.put("/photos/", "a.png", &one).await;
    assert_eq!(client.get("/photos/a.png?width=40").await.status, 200);
    assert_eq!(world.derived_count(), 0);
}

#[tokio::test]
async fn variant_access_follows_its_file() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "a.png", &png(80, 60)).await;
    assert_eq!(client.without_key().get("/photos/a.png?width=40").await.status, 200);
    world.make_private("photos");
    let refused = client.without_key().get("/photos/a.png?width=40").await;
    refused.check_error(401, "missing_api_key");
    let bob = world.account_with_key("bob");
    bob.get("/photos/a.png?width=40").await.check_error(403, "forbidden");
    assert_eq!(
        client.get("/photos/a.png?width=40").await.header("cache-control"),
        "private, no-store"
    );
    let name =
        world.store.list_keys(&engine::BucketName::parse("trug.variants").unwrap(), "", None, 9);
    let name = name.unwrap().objects[0].name().to_string();
    client.get(&format!("/{name}")).await.check_error(404, "bucket_not_found");
    client.delete(&format!("/{name}")).await.check_error(404, "bucket_not_found");
    let rejected = client.upload_file("/trug.variants/a.png", "a.png", b"1").await;
    rejected.check_error(404, "bucket_not_found");
}

#[tokio::test]
async fn corrupt_variant_is_regenerated() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "a.png", &png(80, 60)).await;
    let before = client.get("/photos/a.png?width=40").await;
    world.damage(&before.body[1..]);
    let after = client.get("/photos/a.png?width=40").await;
    assert_eq!((after.status.as_u16(), &after.body), (200, &before.body));
    assert_eq!(after.header("etag"), before.header("etag"));
    assert_eq!(world.derived_count(), 1);
}

#[tokio::test]
async fn damaged_variant_is_removed_by_the_sweep() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "a.png", &png(80, 60)).await;
    let made = client.get("/photos/a.png?width=40").await;
    world.damage(&made.body[1..]);
    let bucket = engine::BucketName::parse("trug.variants").unwrap();
    let variant = world.store.list_keys(&bucket, "", None, 1).unwrap().objects.remove(0);
    let body = world.store.body(&variant).and_then(|body| body.read(0..variant.bytes()));
    assert!(matches!(body, Err(engine::Error::Corrupt(_))), "{body:?}");
    world.state.variants.sweep().unwrap();
    assert_eq!(world.derived_count(), 0);
    assert_eq!(client.get("/photos/a.png?width=40").await.body, made.body);
}

#[tokio::test]
async fn variants_are_evicted_first_when_disk_is_short() {
    let config = Config { reserve_bytes: Some(1 << 20), ..Config::default() };
    let (world, client) = World::with_bucket_and(1, config);
    client.put("/photos/", "a.png", &png(80, 60)).await;
    let made = client.get("/photos/a.png?width=40").await;
    world.state.variants.sweep().unwrap();
    assert_eq!(world.derived_count(), 1);
    world.disk.set_free_bytes(1 << 19);
    world.clock.advance(10_000);
    world.state.variants.sweep().unwrap();
    assert_eq!(world.derived_count(), 0);
    assert_eq!(client.get("/photos/a.png?width=40").await.body, made.body, "from memory");
    assert_eq!(world.derived_count(), 0);
}
