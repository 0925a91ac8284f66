//! Replies to requests for presigned uploads.
//!
//! Fields of the API are in one struct, compatibility aliases of other services in another.

use protocol::time_format::iso_time;
use serde::Serialize;
use utoipa::ToSchema;

/// One-time upload token and its URL.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenReply {
    url: String,
    expires_in: u64,
    expires_at: String,
    token: String,
    #[serde(flatten)]
    aliases: TokenAliases,
}

/// Compatibility aliases for Fivemanage and Qbox templates. Not part of the API contract.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct TokenAliases {
    presigned_url: String,
    data: TokenAliasData,
    status: &'static str,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct TokenAliasData {
    presigned_url: String,
}

impl TokenReply {
    /// Creates the reply with a token and its upload URL.
    pub fn new(url: String, token: String, expires_in: u64, expires_ms: u64) -> Self {
        let presigned_url = url.clone();
        let data = TokenAliasData { presigned_url: url.clone() };
        Self {
            url,
            expires_in,
            expires_at: iso_time(expires_ms),
            token,
            aliases: TokenAliases { presigned_url, data, status: "ok" },
        }
    }
}

/// Presigned PUT URL.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PresignedUrlReply {
    presigned_url: String,
    bucket_name: String,
    key: String,
    expires_in: u64,
    expires_at: String,
    #[serde(flatten)]
    aliases: PresignedUrlAliases,
}

/// Compatibility aliases: bucket, key and HTTP method. Not part of the API contract.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PresignedUrlAliases {
    bucket: String,
    file_key: String,
    file_path: String,
    method: &'static str,
}

impl PresignedUrlReply {
    /// Creates the reply with the presigned URL of a file.
    pub fn new(
        presigned_url: String,
        bucket: &str,
        key: &str,
        expires_in: u64,
        expires_ms: u64,
    ) -> Self {
        Self {
            presigned_url,
            bucket_name: bucket.to_owned(),
            key: key.to_owned(),
            expires_in,
            expires_at: iso_time(expires_ms),
            aliases: PresignedUrlAliases {
                bucket: bucket.to_owned(),
                file_key: key.to_owned(),
                file_path: key.to_owned(),
                method: "PUT",
            },
        }
    }
}
