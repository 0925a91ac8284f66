//! Generated client configurations: clients 4.1 and 4.2, product 2.

use axum::body::Body;
use http::Method;
use tests::{Client, Form, World};

const ALL: [&str; 3] = ["sharex", "lb-phone", "curl"];

#[tokio::test]
async fn sharex_config_works_once_the_key_is_inserted() {
    let (world, client) = World::with_bucket(1);
    let reply = world.anonymous().get("/-/integrations/sharex?bucket=photos").await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-type"), "application/json");
    let disposition = reply.header("content-disposition");
    assert_eq!(disposition, "attachment; filename=\"trug-photos.sxcu\"");
    let config = reply.json();
    let text = |name: &str| config[name].as_str().unwrap().to_owned();
    assert_eq!(text("RequestMethod"), "POST");
    assert_eq!(text("Body"), "MultipartFormData");
    let authorization = config["Headers"]["Authorization"].as_str().unwrap();
    let mut sharex = client.without_key();
    sharex.key =
        authorization.replace("API_KEY", client.key()).strip_prefix("Bearer ").map(str::to_owned);
    let path = text("RequestURL").strip_prefix("https://cdn.example.com").unwrap().to_owned();
    let form = Form::new().file(&text("FileFormName"), "shot.png", Some("image/png"), b"\x89PNG");
    let answer = sharex.upload(&path, form).await.json();
    let read = |name: &str| {
        let field = text(name);
        answer[field.strip_prefix("{json:").unwrap().strip_suffix('}').unwrap()].clone()
    };
    assert_eq!(read("URL"), "https://cdn.example.com/photos/shot.png");
    assert!(read("ThumbnailURL").is_null());
    let refused = client.without_key().upload(&path, Form::new()).await.json();
    assert!(
        refused[text("ErrorMessage").trim_matches(['{', '}']).trim_start_matches("json:")]
            .is_string()
    );
}

#[tokio::test]
async fn integration_urls_use_the_public_base_url() {
    let (world, client) = World::with_bucket(1);
    let get = async |path: &str| world.anonymous().get(&format!("/-/integrations/{path}")).await;
    let phone = get("lb-phone?bucket=photos").await;
    assert_eq!(phone.header("content-type"), "text/plain; charset=utf-8");
    let phone = phone.text();
    for part in [
        "url = \"https://cdn.example.com/photos/phone/\"",
        "field = \"file\"",
        "[\"Authorization\"] = \"Bearer API_KEY\"",
        "success = { path = \"url\" }",
        "error = { path = \"success\", value = false }",
        "url = \"PRESIGNED_URL\"",
        "\"https://cdn.example.com/api/presigned-url?path=photos/phone/\"",
    ] {
        assert!(phone.contains(part), "{part}: {phone}");
    }
    assert_eq!(phone.matches('{').count(), phone.matches('}').count(), "{phone}");
    let presign = client.get("/api/presigned-url?path=photos/phone/").await.json();
    assert!(presign["url"].is_string());

    let lines = get("curl?bucket=photos").await.text();
    for line in [
        "curl -H \"Authorization: Bearer $KEY\" -F file=@cat.jpg https://cdn.example.com/photos/img/\n",
        "\"https://cdn.example.com/api/presigned-url?path=photos/img/&expiresAt=600\"\n",
    ] {
        assert!(lines.contains(line), "{line}: {lines}");
    }
}

#[tokio::test]
async fn integration_files_contain_no_api_key() {
    let (world, client) = World::with_bucket(1);
    for name in ALL {
        let key = client.key();
        let path = format!("/-/integrations/{name}?bucket=photos&apiKey={key}&key={key}");
        let reply = client.get(&path).await;
        assert_eq!(reply.status, 200, "{name}");
        assert!(reply.text().contains("API_KEY") && !reply.text().contains("trug_"), "{name}");
        // The response is the same for every caller, and whether or not the bucket exists, except for its name.
        let other = world.anonymous().get(&format!("/-/integrations/{name}?bucket=nowhere")).await;
        assert_eq!(other.text(), reply.text().replace("photos", "nowhere"), "{name}");
    }
}

#[tokio::test]
async fn integration_bucket_is_given_or_a_placeholder() {
    let (world, _) = World::with_bucket(1);
    let anonymous = world.anonymous();
    let send =
        async |method: Method, path: &str| anonymous.send(method, path, &[], Body::empty()).await;
    for name in ALL {
        let path = format!("/-/integrations/{name}");
        assert!(
            anonymous.get(&path).await.text().contains("https://cdn.example.com/BUCKET/"),
            "{name}"
        );
        for wrong in ["a", "Photos", "pho%22tos", "..", "api", "a%0Ab"] {
            let reply = anonymous.get(&format!("{path}?bucket={wrong}")).await;
            reply.check_error(400, "bad_parameter");
        }
        let head = send(Method::HEAD, &path).await;
        assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
        let refused = send(Method::POST, &path).await;
        refused.check_error(405, "method_not_allowed");
        assert_eq!(refused.header("allow"), "GET, HEAD, OPTIONS");
    }
    let none: Client = anonymous.clone();
    none.get("/-/integrations/none").await.check_error(404, "not_found");
    none.get("/-/integrations").await.check_error(404, "not_found");
}
