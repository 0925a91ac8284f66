//! Thumbnails at upload: specification 1 and 4.2, clients 3.2.

mod asked;
mod crash;
mod deletion;
mod made;
mod names;

use serde_json::Value;
use tests::fixtures::path_of;

/// Returns the path of the thumbnail in a response.
fn path(reply: &Value) -> String {
    path_of(&reply["thumbnailUrl"])
}

/// Checks that a response has no thumbnail, and the reason.
fn check_none(reply: &Value, why: &str) {
    for place in
        ["/thumbnailUrl", "/thumbnailUrls/0", "/files/0/thumbnailUrl", "/data/thumbnailUrl"]
    {
        assert_eq!(reply.pointer(place), Some(&Value::Null), "{place}: {reply}");
    }
    assert_eq!(reply["files"][0]["thumbnailSkipped"], why, "{reply}");
}
