//! The flag for thumbnails: specification 4.2 (earlier description), clients 3.2.

use serde_json::Value;
use tests::{Form, World};

const NAMES: [&str; 5] =
    ["thumbnail", "generateThumbnail", "thumb", "createThumbnail", "thumbnails"];

#[tokio::test]
async fn the_flag_is_taken_under_every_name_and_answered() {
    let (_world, client) = World::with_bucket(1);
    for name in NAMES {
        for value in ["", "=true", "=1", "=yes", "=false", "=0", "=off"] {
            let path = format!("/photos/?{name}{value}");
            let reply = client.put(&path, "a.png", b"\x89PNG\r\n\x1a\n").await;
            assert_eq!(reply["success"], true, "{path}");
            let fields = reply.as_object().unwrap();
            assert_eq!(fields["thumbnailUrl"], Value::Null, "{path}");
            assert_eq!(fields["thumbnailUrls"], Value::from(vec![Value::Null]), "{path}");
            let token = client.get(&format!("/api/presigned-url?path=photos/&{name}{value}")).await;
            assert_eq!(token.status, 200, "{path}");
        }
    }
}

#[tokio::test]
async fn a_value_that_is_none_is_refused_by_name() {
    let (world, client) = World::with_bucket(1);
    for name in NAMES {
        let form = Form::new().file("file", "a.png", None, b"1");
        let reply = client.upload(&format!("/photos/?{name}=small"), form).await;
        reply.check_error(400, "bad_parameter");
        assert_eq!(reply.json()["parameter"], "thumbnail");
    }
    assert_eq!(world.object_count("photos"), 0);
}
