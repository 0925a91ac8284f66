//! Reply to a deletion.

use serde::Serialize;
use utoipa::ToSchema;

/// Result of a deletion.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeleteReply {
    message: String,
    key: String,
    deleted_count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_truncated: Option<bool>,
    #[serde(flatten)]
    aliases: DeleteAliases,
}

/// Compatibility aliases of `deletedCount`. Not part of the API contract.
#[derive(Clone, Debug, Serialize, ToSchema)]
struct DeleteAliases {
    deleted: usize,
    count: usize,
}

/// Remaining files of a folder after a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truncation {
    /// The folder is empty.
    Complete,
    /// The caller has to repeat the request for the rest.
    More,
}

impl DeleteReply {
    /// Creates the reply to the deletion of one file.
    pub fn file(bucket_name: &str, key: &str) -> Self {
        Self::new(bucket_name, key, 1, None)
    }

    /// Creates the reply to the deletion of files of a folder.
    pub fn folder(bucket_name: &str, folder: &str, count: usize, rest: Truncation) -> Self {
        Self::new(bucket_name, folder, count, Some(rest == Truncation::More))
    }

    fn new(bucket_name: &str, key: &str, count: usize, is_truncated: Option<bool>) -> Self {
        Self {
            message: format!("Deleted {bucket_name}/{key}"),
            key: key.to_owned(),
            deleted_count: count,
            is_truncated,
            aliases: DeleteAliases { deleted: count, count },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, to_value};

    #[test]
    fn delete_reply_states_the_count() {
        let one = to_value(DeleteReply::file("phone", "a.png")).unwrap();
        assert_eq!(
            one,
            json!({"message": "Deleted phone/a.png", "key": "a.png", "deletedCount": 1, "deleted": 1,
                "count": 1})
        );
        let some = to_value(DeleteReply::folder("phone", "img/", 100, Truncation::More)).unwrap();
        assert_eq!(some["isTruncated"], json!(true));
        assert_eq!(some["deletedCount"], json!(100));
    }
}
