//! Damaged data as seen by clients: an error that names the file, or a body that breaks off; never wrong bytes.

use http::Method;
use server::management::BucketSettings;
use tests::World;

const MARK: &[u8] = b"here the disk will lie";

#[tokio::test]
async fn damaged_file_returns_an_error_naming_it() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "a.bin", MARK).await;
    client.put("/photos/", "b.bin", b"sound").await;
    world.damage(MARK);
    let reply = client.get("/photos/a.bin").await;
    reply.check_error(500, "damaged");
    assert_eq!(reply.json()["key"], "a.bin");
    assert_eq!(reply.json()["bucketName"], "photos");
    assert_eq!(client.get("/photos/b.bin").await.text(), "sound");
}

#[tokio::test]
async fn damage_never_returns_404_or_partial_content() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "a.bin", MARK).await;
    world.damage(MARK);
    for range in ["bytes=0-", "bytes=0-0", "bytes=-1", "bytes=0-0,5-6", "bytes=3-4,9-"] {
        let reply = client.get_with("/photos/a.bin", &[("range", range)]).await;
        reply.check_error(500, "damaged");
        assert_eq!(reply.json()["key"], "a.bin", "{range}");
        assert_eq!(reply.header("content-range"), "", "{range}");
    }
    // A HEAD response has no body, so no byte of it is read.
    let head = client.head_with("/photos/a.bin", &[]).await;
    assert_eq!((head.status.as_u16(), head.header("content-length")), (200, "22"));
    let etag = head.header("etag").to_owned();
    assert_eq!(client.get_with("/photos/a.bin", &[("if-none-match", &etag)]).await.status, 304);
    // It can be replaced and deleted like any other.
    client.put("/photos/?overwrite=true", "a.bin", b"sound again").await;
    assert_eq!(client.get("/photos/a.bin").await.text(), "sound again");
}

#[tokio::test]
async fn damaged_placeholder_is_an_error_not_missing() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "none.bin", MARK).await;
    let placeholder = Some("none.bin".to_owned());
    world.edit_bucket("photos", BucketSettings { placeholder, ..Default::default() });
    assert_eq!(client.get("/photos/gone.bin").await.status, 404);
    world.damage(MARK);
    let reply = client.get("/photos/gone.bin").await;
    reply.check_error(500, "damaged");
    assert_eq!(reply.json()["key"], "none.bin");
    let head = client.head_with("/photos/gone.bin", &[]).await;
    assert_eq!((head.status.as_u16(), head.header("content-length")), (404, "22"));
}

#[tokio::test]
async fn damage_in_the_middle_aborts_the_body() {
    let (world, client) = World::with_bucket(1);
    let mut body = vec![7; 3_000_000];
    body[1_500_000..1_500_000 + MARK.len()].copy_from_slice(MARK);
    client.put("/photos/", "a.bin", &body).await;
    world.damage(MARK);
    let answer = client.open(Method::GET, "/photos/a.bin", &[]).await;
    assert_eq!(answer.status(), 200);
    let (bytes, is_whole) = tests::client::read_until_closed(answer.into_body()).await;
    assert!(!is_whole);
    assert!(bytes.len() < 1_500_000 && bytes[..] == body[..bytes.len()]);
    let sound = client.get_with("/photos/a.bin", &[("range", "bytes=0-65535")]).await;
    assert_eq!(sound.status, 206);
    assert_eq!(sound.body[..], body[..65_536]);
}

#[tokio::test]
async fn cold_reads_return_the_same_bytes() {
    let (world, client) = World::with_bucket(1);
    let body: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
    client.put("/photos/", "big.bin", &body).await;
    client.put("/photos/", "small.bin", &body[..5_000]).await;
    world.disk.set_cold(true);
    assert!(client.get("/photos/big.bin").await.body == body);
    assert!(client.get("/photos/small.bin").await.body == body[..5_000]);
}
