//! All ways to store a file obey the same rules: product 5.2, one decision for every protocol.

use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use catalog::{FairUseStanding, Scope};
use http::Method;
use serde_json::json;
use server::management::{AccountSettings, AdminRequest, ApiKeySettings, BucketSettings};
use tests::fixtures::{key_of_bucket, key_of_folder, key_with_scopes, path_of};
use tests::{Client, Form, Reply, World};

#[derive(Clone, Copy, Debug)]
pub(super) enum UploadRoute {
    Form,
    Token,
    Put,
    Tus,
    TusWithCreation,
}

pub(super) const UPLOAD_ROUTES: [UploadRoute; 5] = [
    UploadRoute::Form,
    UploadRoute::Token,
    UploadRoute::Put,
    UploadRoute::Tus,
    UploadRoute::TusWithCreation,
];

impl UploadRoute {
    /// Stores a file at a path, `bucket/key`; returns the first response that rejects it, or the last.
    pub(super) async fn store(self, client: &Client, path: &str, bytes: &[u8]) -> Reply {
        let form = || Form::new().file("file", "a.txt", Some("text/plain"), bytes);
        let (bucket, key) = path.split_once('/').unwrap();
        match self {
            Self::Form => client.upload(&format!("/{path}"), form()).await,
            Self::Token => {
                let issued = client.get(&format!("/api/presigned-url?path={path}")).await;
                if issued.status != 200 {
                    return issued;
                }
                client.without_key().upload(&path_of(&issued.json()["url"]), form()).await
            }
            Self::Put => {
                let issued = client.get(&format!("/{bucket}/presigned/{key}")).await;
                if issued.status != 200 {
                    return issued;
                }
                let headers = [("content-type", "text/plain")];
                let (place, body) =
                    (path_of(&issued.json()["presignedUrl"]), Body::from(bytes.to_vec()));
                client.without_key().send(Method::PUT, &place, &headers, body).await
            }
            Self::Tus | Self::TusWithCreation => {
                self.store_by_tus(client, bucket, key, bytes).await
            }
        }
    }

    async fn store_by_tus(self, client: &Client, bucket: &str, key: &str, bytes: &[u8]) -> Reply {
        let said = format!("bucketName {},path {}", STANDARD.encode(bucket), STANDARD.encode(key));
        let length = bytes.len().to_string();
        let kind = ("content-type", "application/offset+octet-stream");
        let mut headers = vec![
            ("tus-resumable", "1.0.0"),
            ("upload-length", &*length),
            ("upload-metadata", &*said),
        ];
        let mut body = Body::empty();
        if matches!(self, Self::TusWithCreation) {
            headers.push(kind);
            body = Body::from(bytes.to_vec());
        }
        let begun = client.send(Method::POST, "/api/tus/", &headers, body).await;
        if begun.status != 201 || matches!(self, Self::TusWithCreation) {
            return begun;
        }
        let place = format!("/api/tus/{}", begun.header("location"));
        let headers = [("tus-resumable", "1.0.0"), ("upload-offset", "0"), kind];
        client.send(Method::PATCH, &place, &headers, Body::from(bytes.to_vec())).await
    }
}

/// Checks that a file is rejected by every way, and that nothing is stored.
async fn check_rejected(
    world: &World,
    client: &Client,
    path: &str,
    bytes: &[u8],
    expected: (u16, &str),
) {
    for way in UPLOAD_ROUTES {
        let reply = way.store(client, path, bytes).await;
        assert_eq!(reply.status, expected.0, "{way:?} {path}: {}", reply.text());
        assert_eq!(reply.json()["code"], expected.1, "{way:?} {path}");
        assert_eq!(world.object_count("photos"), 0, "{way:?} {path}");
    }
}

#[tokio::test]
async fn upload_works_by_every_route() {
    let (world, client) = World::with_bucket(1);
    for (at, way) in UPLOAD_ROUTES.into_iter().enumerate() {
        let reply = way.store(&client, &format!("photos/{at}.txt"), b"hello").await;
        assert!(reply.status.is_success(), "{way:?}: {}", reply.text());
        assert_eq!(client.get(&format!("/photos/{at}.txt")).await.text(), "hello", "{way:?}");
    }
    assert_eq!(world.object_count("photos"), UPLOAD_ROUTES.len() as u64);
}

#[tokio::test]
async fn upload_bucket_rules_hold_on_every_route() {
    let (world, client) = World::with_bucket(1);
    let set = async |body| client.patch_json("/api/buckets/photos", body).await.check_done();
    set(json!({"fileBytesMax": 10})).await;
    check_rejected(&world, &client, "photos/a.txt", &[b'x'; 11], (413, "file_too_large")).await;
    set(json!({"fileBytesMax": null, "allowedTypes": ["image/*"]})).await;
    check_rejected(&world, &client, "photos/a.txt", b"hello", (415, "type_not_allowed")).await;
    // A name is no proof.
    check_rejected(&world, &client, "photos/a.png", b"hello", (415, "type_not_allowed")).await;
    set(json!({"allowedTypes": [], "quotaBytes": 10})).await;
    check_rejected(&world, &client, "photos/a.txt", &[b'x'; 11], (507, "quota_exceeded")).await;
    set(json!({"quotaBytes": null, "quotaObjects": 0})).await;
    check_rejected(&world, &client, "photos/a.txt", b"hello", (507, "quota_exceeded")).await;
}

#[tokio::test]
async fn upload_key_permissions_hold_on_every_route() {
    let (world, client) = World::with_bucket(1);
    world.bucket("ann", "second", BucketSettings::default());
    let limited = |settings| world.client_of("ann", settings);
    let folder = limited(key_of_folder("img"));
    for path in ["photos/a.txt", "photos/imgs/a.txt", "photos/img", "photos/im/g/a.txt"] {
        check_rejected(&world, &folder, path, b"hello", (403, "forbidden")).await;
    }
    let bucket = limited(key_of_bucket("second"));
    for way in UPLOAD_ROUTES {
        // A token's path is relative to the key's bucket, so there is no other to be named.
        let reply = way.store(&bucket, "photos/a.txt", b"hello").await;
        let is_inside = matches!(way, UploadRoute::Token);
        assert_eq!(reply.status, if is_inside { 200 } else { 403 }, "{way:?}: {}", reply.text());
        assert_eq!(world.object_count("photos"), 0);
    }
    for scope in Scope::ALL {
        let one = limited(key_with_scopes(&[scope]));
        for way in UPLOAD_ROUTES {
            let needed = match way {
                UploadRoute::Form | UploadRoute::Tus | UploadRoute::TusWithCreation => {
                    Scope::Upload
                }
                UploadRoute::Token | UploadRoute::Put => Scope::Presign,
            };
            if scope != needed {
                let reply = way.store(&one, "photos/a.txt", b"hello").await;
                reply.check_error(403, "forbidden");
            }
        }
    }
    let bob = world.account_with_key("bob");
    check_rejected(&world, &bob, "photos/a.txt", b"hello", (404, "bucket_not_found")).await;
    check_rejected(&world, &client, "nowhere/a.txt", b"hello", (404, "bucket_not_found")).await;
    for path in ["photos/presigned/a.txt", "photos/a/../b.txt", "photos/a//b.txt"] {
        check_rejected(&world, &client, path, b"hello", (400, "bad_path")).await;
    }
    let issued = world.api_key("ann", ApiKeySettings::default());
    let revoked = Client::new(world.app(), Some(issued.key));
    world.manage(AdminRequest::RevokeApiKey { id: issued.api_key.id });
    check_rejected(&world, &revoked, "photos/a.txt", b"hello", (401, "invalid_api_key")).await;
    let standing = Some(FairUseStanding::Suspended);
    world.edit_account("ann", AccountSettings { standing, ..AccountSettings::default() });
    check_rejected(&world, &client, "photos/a.txt", b"hello", (403, "account_suspended")).await;
}

#[tokio::test]
async fn upload_chunk_lost_between_requests_is_lost() {
    let (world, client) = World::with_bucket(1);
    let issued = world.api_key("ann", ApiKeySettings::default());
    let holder = Client::new(world.app(), Some(issued.key));
    let said = format!("bucketName {},path {}", STANDARD.encode("photos"), STANDARD.encode("x/a"));
    let headers =
        [("tus-resumable", "1.0.0"), ("upload-length", "10"), ("upload-metadata", &*said)];
    let begun = holder.send(Method::POST, "/api/tus/", &headers, Body::empty()).await;
    let place = format!("/api/tus/{}", begun.header("location"));
    let kind = ("content-type", "application/offset+octet-stream");
    let headers = [("tus-resumable", "1.0.0"), ("upload-offset", "0"), kind];
    let append = async |client: &Client| {
        client.send(Method::PATCH, &place, &headers, Body::from("hello")).await
    };
    // Another key of the account, without access to the place, or without the upload scope.
    let narrow = world.client_of("ann", key_of_folder("img"));
    append(&narrow).await.check_error(403, "forbidden");
    let reader = world.client_of("ann", key_with_scopes(&[Scope::Read, Scope::Manage]));
    append(&reader).await.check_error(403, "forbidden");
    let ask = async |client: &Client, method: Method| {
        let headers = [("tus-resumable", "1.0.0")];
        client.send(method, &place, &headers, Body::empty()).await.status.as_u16()
    };
    for client in [&narrow, &reader] {
        assert_eq!(ask(client, Method::HEAD).await, 403);
        assert_eq!(ask(client, Method::DELETE).await, 403);
    }
    world.manage(AdminRequest::RevokeApiKey { id: issued.api_key.id });
    append(&holder).await.check_error(401, "invalid_api_key");
    assert_eq!(append(&client).await.status, 204);
}
