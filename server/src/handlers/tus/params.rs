//! Parameters of a new resumable upload: from `Upload-Metadata`, else from the query; or from a link.
//!
//! Non-goals: authorization.

use catalog::SharedLink;
use http::header::HeaderMap;
use jiff::Timestamp;
use protocol::error::ApiError;
use protocol::query::{Query, parse_flag};
use protocol::tus_headers::{UploadMetadata, number};
use service::object_options::ObjectOptions;
use service::upload::{OVERWRITE, RANDOMIZE_NAME, THUMBNAIL};

const CONTENT_TYPE: &str = "contentType";
const EXPIRES_AT: &str = "expiresAt";

/// Parameters of a new upload.
pub(super) struct CreateUploadParams {
    pub(super) bucket: String,
    pub(super) path: String,
    pub(super) overwrite: bool,
    pub(super) randomize_name: bool,
    pub(super) thumbnail: Option<bool>,
    pub(super) length: u64,
    /// Original `Upload-Metadata`, which responses about the upload repeat verbatim.
    pub(super) metadata: String,
}

impl CreateUploadParams {
    pub(super) fn from_request(
        headers: &HeaderMap,
        query: &Query,
        now_ms: u64,
    ) -> Result<Self, ApiError> {
        let (length, text) = (length(headers)?, metadata(headers)?);
        let metadata = UploadMetadata::parse(&text)?;
        let wanted = |names: &[&str]| match metadata.text(names) {
            Some(value) => Ok(Some(value.to_owned())),
            None => query.string(names),
        };
        // Checked here, so that the upload is rejected before its bytes are sent.
        check_options(&metadata, now_ms)?;
        let flag = |names: &[&str]| match metadata.text(names) {
            Some(value) => match parse_flag(value) {
                Some(flag) => Ok(Some(flag)),
                None => Err(ApiError::bad_parameter(names[0], "must be true or false")),
            },
            None => query.flag(names),
        };
        Ok(Self {
            bucket: wanted(&["bucketName", "bucket"])?.ok_or_else(|| {
                ApiError::bad_parameter("bucketName", "is required in Upload-Metadata")
            })?,
            path: wanted(&["path"])?.unwrap_or_default(),
            overwrite: flag(OVERWRITE)?.unwrap_or(false),
            randomize_name: flag(RANDOMIZE_NAME)?.unwrap_or(false),
            thumbnail: flag(THUMBNAIL)?,
            length,
            metadata: text,
        })
    }

    /// Returns the parameters of an upload to a link, whose destination the client does not choose.
    pub(super) fn to_link(headers: &HeaderMap, link: &SharedLink) -> Result<Self, ApiError> {
        let (length, text) = (length(headers)?, metadata(headers)?);
        UploadMetadata::parse(&text)?;
        Ok(Self {
            bucket: link.bucket.to_string(),
            path: link.paths.first().cloned().unwrap_or_default(),
            overwrite: false,
            randomize_name: false,
            thumbnail: None,
            length,
            metadata: text,
        })
    }
}

fn length(headers: &HeaderMap) -> Result<u64, ApiError> {
    // Extensions of tus that the server does not announce.
    for (name, refused) in
        [("upload-defer-length", "Upload-Defer-Length"), ("upload-concat", "Upload-Concat")]
    {
        if headers.contains_key(name) {
            return Err(ApiError::bad_header(refused, "is not supported"));
        }
    }
    let length = number(headers, "upload-length")?
        .ok_or_else(|| ApiError::bad_header("Upload-Length", "is missing"))?;
    match length > engine::limits::OBJECT_BYTES_MAX {
        true => Err(ApiError::file_too_large(engine::limits::OBJECT_BYTES_MAX)),
        false => Ok(length),
    }
}

fn metadata(headers: &HeaderMap) -> Result<String, ApiError> {
    match headers.get("upload-metadata").map(|value| value.to_str()) {
        Some(Ok(text)) => Ok(text.to_owned()),
        Some(Err(_)) => Err(ApiError::bad_header("Upload-Metadata", "must be ASCII")),
        None => Ok(String::new()),
    }
}

/// Parses the options of the object in the metadata of a new upload.
fn check_options(metadata: &UploadMetadata, now_ms: u64) -> Result<(), ApiError> {
    options(metadata, now_ms, &[CONTENT_TYPE]).map(drop)
}

/// Parses the options of the object when its upload is complete: a lifetime counts from now. An expiry time that has
/// passed since the upload began does not fail it: the object expires at once.
pub(super) fn object_options(
    metadata: &UploadMetadata,
    now_ms: u64,
) -> Result<ObjectOptions, ApiError> {
    let options = options(metadata, now_ms, &[CONTENT_TYPE, EXPIRES_AT])?;
    let at = metadata.text(&[EXPIRES_AT]).and_then(|text| text.parse::<Timestamp>().ok());
    let at_ms = at.and_then(|at| u64::try_from(at.as_millisecond()).ok());
    Ok(ObjectOptions { expires_ms: at_ms.map(Some).or(options.expires_ms), ..options })
}

/// Parses the options except for some. The media type of a resumable upload is only a declared one, so that it cannot
/// fail the upload after all bytes were sent.
fn options(
    metadata: &UploadMetadata,
    now_ms: u64,
    except: &[&str],
) -> Result<ObjectOptions, ApiError> {
    let text = |name: &'static str| match except.contains(&name) {
        true => Ok(None),
        false => Ok(metadata.text(&[name]).map(str::to_owned)),
    };
    ObjectOptions::from_texts(text, now_ms)
}
