//! The JavaScript client at `/-/client.js`, as pages of other origins load it.
//!
//! Non-goals: what the client does; `tests/browser/client_package.rs` runs its own tests.

use tests::World;

const SCRIPT: &str = include_str!("../../server/client/dist/client.js");
const TYPES: &str = include_str!("../../server/client/dist/client.d.ts");
/// Maximum compressed size of the client.
const GZIP_BYTES_MAX: usize = 12 * 1_024;

#[tokio::test]
async fn client_module_is_served_to_every_origin() {
    let (world, _) = World::with_bucket(1);
    let anonymous = world.anonymous();
    let reply = anonymous.get("/-/client.js").await;
    assert_eq!(reply.status, 200);
    assert!(reply.text() == SCRIPT);
    for (name, value) in [
        ("content-type", "text/javascript; charset=utf-8"),
        ("cache-control", "no-cache"),
        ("access-control-allow-origin", "*"),
        ("cross-origin-resource-policy", "cross-origin"),
        ("x-typescript-types", "/-/client.d.ts"),
    ] {
        assert_eq!(reply.header(name), value, "{name}");
    }
    let known = [("if-none-match", reply.header("etag"))];
    assert_eq!(anonymous.get_with("/-/client.js", &known).await.status, 304);
    let types = anonymous.get("/-/client.d.ts").await;
    assert_eq!(types.status, 200);
    assert!(types.text() == TYPES);
    assert_eq!(types.header("content-type"), "application/typescript; charset=utf-8");
}

#[tokio::test]
async fn client_module_version_is_immutable() {
    let (world, _) = World::with_bucket(1);
    let anonymous = world.anonymous();
    let location = anonymous.get("/-/client.js").await.header("content-location").to_owned();
    let reply = anonymous.get(&location).await;
    assert_eq!(reply.status, 200);
    assert!(reply.text() == SCRIPT);
    assert_eq!(reply.header("cache-control"), "public, max-age=31536000, immutable");
    let other = anonymous.get("/-/client/00000000000000000000000000000000/client.js").await;
    other.check_own_error(404, "not_found");
}

#[tokio::test]
async fn client_module_is_at_most_12_kib_compressed() {
    let (world, _) = World::with_bucket(1);
    let gzip = [("accept-encoding", "gzip")];
    let reply = world.anonymous().get_with("/-/client.js", &gzip).await;
    assert_eq!(reply.header("content-encoding"), "gzip");
    assert!(reply.body.len() <= GZIP_BYTES_MAX, "{} bytes", reply.body.len());
}
