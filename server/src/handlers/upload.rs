//! `POST /{bucket}/{*path}`: files of a form, into a folder or to one path.
//!
//! Promises: all files of a request are stored, or none.

use axum::body::Body;
use axum::extract::State;
use http::Request;

use crate::auth::Caller;
use crate::catalog::{Bucket, Scope};
use crate::error::ApiError;
use crate::intake::{Kept, keep, may_be_folder, receive, wanted_keys};
use crate::multipart::FormFiles;
use crate::object_name::{NameRule, Naming};
use crate::query::Query;
use crate::replies::{UploadReply, UploadedFile, iso_time};
use crate::request_body::BodyLimits;
use crate::state::AppState;
use crate::target::{Place, Target, check_writable, public_url};

const OVERWRITE: &[&str] = &["overwrite", "upsert", "replace"];
const RANDOMIZE_NAME: &[&str] = &["randomizeName"];

/// Stores the files of the form.
pub async fn upload(
    State(app): State<AppState>,
    caller: Caller,
    query: Query,
    request: Request<Body>,
) -> Result<UploadReply, ApiError> {
    let target = Target::from_path(request.uri().path())?;
    let bucket = caller.bucket(&app.catalog, &target.bucket, Scope::Upload)?;
    let (naming, rule) = wishes(&query)?;
    check_place(&caller, &bucket, &target.place)?;
    let (head, body) = request.into_parts();
    let limits = BodyLimits::new(app.config.body_bytes_max);
    let form = FormFiles::open(&head.headers, body, limits).await?;
    let files = receive(&app, &bucket, &target.place, form).await?;
    let keys = wanted_keys(&app, &bucket, &target.place, naming, &files)?;
    keys.iter().try_for_each(|key| caller.check_file(key))?;
    let kept = keep(&app, &bucket, rule, files, &keys).await?;
    let files = kept.into_iter().map(|file| uploaded(&app, file)).collect();
    Ok(UploadReply::new(bucket.name.as_str(), files))
}

fn wishes(query: &Query) -> Result<(Naming, NameRule), ApiError> {
    let overwrite = query.flag(OVERWRITE)?.unwrap_or(false);
    let randomize_name = query.flag(RANDOMIZE_NAME)?.unwrap_or(false);
    let naming = if randomize_name { Naming::Randomised } else { Naming::Kept };
    let rule = if overwrite { NameRule::Overwrite } else { NameRule::Suffix };
    Ok((naming, rule))
}

/// Refuses before the body is read what would be refused after it.
fn check_place(caller: &Caller, bucket: &Bucket, place: &Place) -> Result<(), ApiError> {
    if let Place::File(key) = place {
        check_writable(key)?;
        if may_be_folder(bucket, place) {
            let folder = Place::parse(&format!("{key}/"))?;
            return caller.check_place(&folder).or_else(|_| caller.check_place(place));
        }
    }
    caller.check_place(place)
}

fn uploaded(app: &AppState, file: Kept) -> UploadedFile {
    let object = &file.object;
    let name = object.name();
    UploadedFile {
        name: name.key.file_name().to_owned(),
        original_name: file.original_name,
        key: name.key.to_string(),
        url: public_url(app.public_url.as_str(), name),
        thumbnail_url: None,
        size: object.bytes(),
        content_type: object.content_type().to_owned(),
        etag: format!("\"{}\"", object.etag()),
        last_modified: iso_time(object.modified_ms()),
        renamed: file.renamed,
    }
}
