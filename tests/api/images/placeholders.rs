//! Placeholders of missing files take the parameters too: clients 3.1.

use server::management::BucketSettings;
use tests::World;

use super::png;

#[tokio::test]
async fn placeholder_is_resized_like_any_image() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "none.png", &png(80, 60)).await;
    let settings = BucketSettings { placeholder: Some("none.png".into()), ..Default::default() };
    world.edit_bucket("photos", settings);
    let reply = client.get("/photos/missing.jpg?width=20&format=webp").await;
    assert_eq!(reply.status, 404);
    assert_eq!(reply.header("content-type"), "image/webp");
    assert_eq!(reply.header("cache-control"), "max-age=30");
    assert_eq!(reply.header("etag"), "");
    let seen = image::load_from_memory(&reply.body).unwrap();
    assert_eq!((seen.width(), seen.height()), (20, 15));
    client.get("/photos/missing.jpg?width=0").await.check_error(400, "bad_parameter");
}
