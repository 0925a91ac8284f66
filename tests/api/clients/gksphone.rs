//! gksphone: clients 4.5. For each kind of file an address, a field, a header with a key, and the name of the response
//! field.

use super::browser::{FORM, nui, one_file};
use super::{Service, WEBM, WEBP};

#[tokio::test]
async fn gksphone_kinds_have_their_field_and_index() {
    let service = Service::start().await;
    for (field, header, name, kind, content, read) in [
        ("gks_image", "Authorization: <key>\n", "blob", "image/webp", WEBP, "url"),
        ("file", "X-API-Key: <key>\n", "video.webm", "video/webm", WEBM, "link"),
        ("file", "Authorization: Bearer <key>\n", "audio.weba", "audio/webm", WEBM, "data.url"),
    ] {
        let request = nui("POST /phone/gks/", header, FORM, &one_file(field, name, kind));
        service.upload(&request, content, read, kind).await;
    }
}
