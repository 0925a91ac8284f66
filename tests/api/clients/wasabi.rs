//! wasabi_mdt: clients 4.5. A form to a presigned address, or the bytes of a PNG by PUT.

use super::browser::{FORM, nui, one_file};
use super::fxserver::get;
use super::{PNG, Service, field};
use tests::fixtures::path_of;

#[tokio::test]
async fn wasabi_image_is_put_raw() {
    let service = Service::start().await;
    let reply = service.request(&get("/photos/presigned/mdt/1.png", "<key>"), b"").await.json();
    let path = &path_of(field(&reply, "presignedUrl"));
    let put = nui(&format!("PUT {path}"), "", "image/png", "<content>");
    assert_eq!(service.upload(&put, PNG, "url", "image/png").await, "mdt/1.png");
    // Repeating the upload has the same result.
    assert_eq!(service.upload(&put, PNG, "url", "image/png").await, "mdt/1.png");
    assert_eq!(service.world.object_count("photos"), 1);
}

#[tokio::test]
async fn wasabi_form_is_posted_to_a_token() {
    let service = Service::start().await;
    let reply =
        service.request(&get("/api/presigned-url?path=photos/mdt/", "<key>"), b"").await.json();
    let path = &path_of(field(&reply, "data.presignedUrl"));
    let post =
        nui(&format!("POST {path}"), "", FORM, &one_file("file", "mugshot.png", "image/png"));
    assert_eq!(service.upload(&post, PNG, "data.url", "image/png").await, "mdt/mugshot.png");
}
