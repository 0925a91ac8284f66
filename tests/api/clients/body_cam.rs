//! Body cameras of game scripts: clients 4.5. `formData.append('video', blob)`, without any name.

use super::browser::{FORM, nui, one_file};
use super::{Service, WEBM};

#[tokio::test]
async fn body_cam_blob_without_name_gets_sniffed_extension() {
    let service = Service::start().await;
    for kind in ["video/webm;codecs=vp8,opus", "video/webm;codecs=vp9", "video/webm"] {
        let request =
            nui("POST /photos/", "Authorization: <key>\n", FORM, &one_file("video", "blob", kind));
        let key = service.upload(&request, WEBM, "url", "video/webm").await;
        assert!(key.starts_with("blob") && key.ends_with(".webm"), "{key}");
    }
}
