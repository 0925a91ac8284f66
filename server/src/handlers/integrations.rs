//! `GET /-/integrations/...`: upload configuration for other programs, ready to be pasted.
//!
//! Guarantees: the reply contains no API key, regardless of the caller; the base URL is the configured one. The reply
//! does not depend on the existence of the bucket. Non-goals: storing anything.

use axum::body::Body;
use axum::extract::State;
use axum::response::IntoResponse;
use engine::BucketName;
use http::Response;
use http::header::{CONTENT_DISPOSITION, HeaderValue};
use protocol::error::ApiError;
use protocol::query::Query;
use protocol::reserved_paths::is_reserved;
use serde::Serialize;
use service::parameters::NamedBucketParameter;
use service::replies::{Json, PlainText};
use service::state::AppState;
use utoipa::ToSchema;

const BUCKET: &[&str] = &["bucket", "bucketName"];
/// Placeholder of the bucket if none was given: not a valid bucket name.
const ANY_BUCKET: &str = "BUCKET";
/// Placeholder of the API key. lb-phone inserts its own in place of this word.
const ANY_KEY: &str = "API_KEY";

/// ShareX custom uploader.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "PascalCase")]
struct ShareX {
    version: &'static str,
    name: String,
    destination_type: &'static str,
    request_method: &'static str,
    #[serde(rename = "RequestURL")]
    request_url: String,
    headers: ShareXHeaders,
    body: &'static str,
    file_form_name: &'static str,
    #[serde(rename = "URL")]
    url: &'static str,
    #[serde(rename = "ThumbnailURL")]
    thumbnail_url: &'static str,
    error_message: &'static str,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "PascalCase")]
struct ShareXHeaders {
    authorization: String,
}

/// Returns a ShareX custom uploader with a placeholder for the API key.
#[utoipa::path(
    get,
    path = "/-/integrations/sharex",
    operation_id = "sharexConfiguration",
    tag = "Integrations",
    security(()),
    params(NamedBucketParameter),
    responses((status = OK, body = ShareX))
)]
pub async fn sharex(State(app): State<AppState>, query: Query) -> Result<Response<Body>, ApiError> {
    let bucket = bucket(&query)?;
    let mut response = Json(ShareX {
        version: "15.0.0",
        name: format!("trug ({bucket})"),
        destination_type: "ImageUploader, TextUploader, FileUploader",
        request_method: "POST",
        request_url: format!("{}/{bucket}/", app.public_url.as_str()),
        headers: ShareXHeaders { authorization: format!("Bearer {ANY_KEY}") },
        body: "MultipartFormData",
        file_form_name: "file",
        url: "{json:url}",
        thumbnail_url: "{json:thumbnailUrl}",
        error_message: "{json:error}",
    })
    .into_response();
    let file = format!("attachment; filename=\"trug-{bucket}.sxcu\"");
    response.headers_mut().extend(HeaderValue::try_from(file).map(|it| (CONTENT_DISPOSITION, it)));
    Ok(response)
}

/// Returns lb-phone upload methods: with an API key, and with one token per upload.
#[utoipa::path(
    get,
    path = "/-/integrations/lb-phone",
    operation_id = "lbPhoneConfiguration",
    tag = "Integrations",
    security(()),
    params(NamedBucketParameter),
    responses((status = OK, body = String, content_type = "text/plain; charset=utf-8"))
)]
pub async fn lb_phone(State(app): State<AppState>, query: Query) -> Result<PlainText, ApiError> {
    let (base, bucket) = (app.public_url.as_str(), bucket(&query)?);
    let method = |name: &str, url: &str, headers: &str| {
        let entry = |kind: &str| {
            format!(
                "    {kind} = {{\n        url = \"{url}\",\n        field = \"file\",\n{headers}        \
                 error = {{ path = \"success\", value = false }},\n        \
                 success = {{ path = \"url\" }},\n    }},\n"
            )
        };
        let entries: String = ["Video", "Image", "Audio"].into_iter().map(entry).collect();
        format!("UploadMethods.{name} = {{\n{entries}}}\n")
    };
    let direct = method(
        "Trug",
        &format!("{base}/{bucket}/phone/"),
        &format!("        headers = {{ [\"Authorization\"] = \"Bearer {ANY_KEY}\" }},\n"),
    );
    let presigned = method("TrugPresigned", "PRESIGNED_URL", "");
    Ok(PlainText(format!(
        "-- Into the file with the upload methods, behind what is there. Then choose \"Trug\" or \"TrugPresigned\".\n\
         -- If links are checked against a list of domains, put the host of {base} on it.\n\
         \n\
         -- Direct: every player's game learns the key. Use one with the scope \"upload\" for this folder only.\n\
         {direct}\
         \n\
         -- Presigned: the key stays on the server, each upload gets a token of its own.\n\
         {presigned}\
         \n\
         -- Into the server's code, for the presigned method. The key needs the scope \"presign\" only.\n\
         function GetPresignedUrl(source, uploadType)\n    \
             local answer = promise.new()\n    \
             PerformHttpRequest(\"{base}/api/presigned-url?path={bucket}/phone/\", function(status, body)\n        \
                 answer:resolve(status == 200 and json.decode(body).url or false)\n    \
             end, \"GET\", \"\", {{ [\"Authorization\"] = \"Bearer {ANY_KEY}\" }})\n    \
             return Citizen.Await(answer) or nil\n\
         end\n"
    )))
}

/// Returns example curl commands.
#[utoipa::path(
    get,
    path = "/-/integrations/curl",
    operation_id = "curlLines",
    tag = "Integrations",
    security(()),
    params(NamedBucketParameter),
    responses((status = OK, body = String, content_type = "text/plain; charset=utf-8"))
)]
pub async fn curl(State(app): State<AppState>, query: Query) -> Result<PlainText, ApiError> {
    let (base, bucket) = (app.public_url.as_str(), bucket(&query)?);
    Ok(PlainText(format!(
        "KEY={ANY_KEY}\n\
         \n\
         # Upload into a folder, and to one path.\n\
         curl -H \"Authorization: Bearer $KEY\" -F file=@cat.jpg {base}/{bucket}/img/\n\
         curl -H \"Authorization: Bearer $KEY\" -F file=@cat.jpg \"{base}/{bucket}/img/tom.jpg?overwrite=true\"\n\
         \n\
         # Fetch, and delete.\n\
         curl -O {base}/{bucket}/img/tom.jpg\n\
         curl -X DELETE -H \"Authorization: Bearer $KEY\" {base}/{bucket}/img/tom.jpg\n\
         \n\
         # An address for one upload by somebody without a key.\n\
         curl -H \"Authorization: Bearer $KEY\" \"{base}/api/presigned-url?path={bucket}/img/&expiresAt=600\"\n\
         curl -F file=@cat.jpg {base}/api/presigned-url/TOKEN\n"
    )))
}

/// Returns the requested bucket, or the placeholder.
fn bucket(query: &Query) -> Result<String, ApiError> {
    match query.string(BUCKET)? {
        None => Ok(ANY_BUCKET.to_owned()),
        Some(name) => {
            let is_possible = BucketName::parse(&name).is_ok() && !is_reserved(&name);
            let refusal = || ApiError::bad_parameter("bucket", "must be a bucket name");
            is_possible.then_some(name).ok_or_else(refusal)
        }
    }
}
