//! Parts put together.
//!
//! Promises: what is stored is exactly what was named, in its order, and each part is what came; until that is certain
//! the name means what it did before. An answer that takes long begins early and is kept alive. Never here: parts.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{Batch, Error, Staged};
use http::StatusCode;
use s3s::crypto::{Checksum as _, Md5};
use s3s::dto::{CompleteMultipartUploadInput, CompleteMultipartUploadOutput, CompletedPart};
use s3s::{S3Error, S3ErrorCode, S3Request, S3Result};
use tokio::task::JoinHandle;

use super::super::access::caller_of;
use super::super::errors::{refusal, refused};
use super::super::objects::{hex, manner, strong};
use super::find;
use crate::bridge::blocking;
use crate::catalog::{Bucket, EventKind, MultipartUpload, UploadedPart};
use crate::error::ApiError;
use crate::intake::{Received, S3Attributes, keep};
use crate::limits;
use crate::state::AppState;

type Output = CompleteMultipartUploadOutput;

/// Makes an object of the parts that a request names.
pub(in crate::s3) async fn complete(
    app: &AppState,
    request: S3Request<CompleteMultipartUploadInput>,
) -> S3Result<Output> {
    let caller = caller_of(&request.extensions)?;
    let input = request.input;
    let CompleteMultipartUploadInput { bucket, key, upload_id, .. } = &input;
    let found = find(app, &caller, bucket, key, upload_id).await;
    let (bucket, upload) = found.map_err(|error| refused(&error))?;
    let named = input.multipart_upload.and_then(|it| it.parts).unwrap_or_default();
    let named = named_parts(&named)?;
    let app = app.clone();
    let output = move |etag| Output {
        bucket: Some(input.bucket.clone()),
        key: Some(input.key.clone()),
        e_tag: strong(etag),
        ..Output::default()
    };
    // A task of its own goes on when the client goes away.
    let mut joining: JoinHandle<S3Result<String>> =
        tokio::spawn(async move { joined(&app, bucket, upload, named).await });
    match tokio::time::timeout(limits::S3_JOINING_WAIT, &mut joining).await {
        Ok(ended) => Ok(output(ended_with(ended)?)),
        Err(_) => {
            let future = async move { Ok(output(ended_with(joining.await)?)) };
            Ok(Output { future: Some(Box::pin(future)), ..Output::default() })
        }
    }
}

fn ended_with(ended: Result<S3Result<String>, tokio::task::JoinError>) -> S3Result<String> {
    ended.unwrap_or_else(|why| Err(refused(&ApiError::internal(why.to_string()))))
}

/// The parts that a request names, in rising order.
fn named_parts(named: &[CompletedPart]) -> S3Result<Vec<(u32, Option<String>)>> {
    let mut parts: Vec<(u32, Option<String>)> = Vec::with_capacity(named.len());
    for part in named {
        let number = super::number_of(part.part_number.unwrap_or_default())?;
        if parts.last().is_some_and(|(last, _)| *last >= number) {
            let message = "Parts are named in rising order";
            return Err(refusal(S3ErrorCode::InvalidPartOrder, message));
        }
        parts.push((number, part.e_tag.as_ref().map(|etag| etag.value().to_owned())));
    }
    if parts.is_empty() {
        return Err(refusal(S3ErrorCode::MalformedXML, "No part is named"));
    }
    Ok(parts)
}

async fn joined(
    app: &AppState,
    bucket: Arc<Bucket>,
    upload: MultipartUpload,
    named: Vec<(u32, Option<String>)>,
) -> S3Result<String> {
    let ours = |error: ApiError| refused(&error);
    // Held until the object is stored, so that nobody else puts the same parts together or gives them up.
    let turn = app.open_uploads.turn(upload.id).await;
    let _turn = turn.ok_or_else(|| ours(ApiError::upload_locked()))?;
    let (store, account, id) = (app.store.clone(), upload.account.clone(), upload.id);
    let look = move || {
        let upload = MultipartUpload::find(&store, &account, id)?;
        let Some(upload) = upload else { return Err(ApiError::upload_not_found()) };
        let parts = upload.parts(&store, 0, limits::S3_PARTS_MAX as usize)?;
        Ok((upload, parts))
    };
    let (upload, parts) = blocking(look).await.map_err(ours)?;
    if let Some(etag) = upload.done {
        return Ok(etag);
    }
    let chosen = chosen(parts, &named)?;
    let bytes: u64 = chosen.iter().map(|part| part.received.bytes).sum();
    let limit = bucket.file_bytes_max.unwrap_or(engine::limits::OBJECT_BYTES_MAX);
    if bytes > limit.min(engine::limits::OBJECT_BYTES_MAX) {
        return Err(ours(ApiError::file_over_limit(limit)));
    }
    let etag = etag_of(&chosen);
    let (store, put_together) = (app.store.clone(), chosen.clone());
    let staged = blocking(move || join(&store, &put_together)).await;
    let staged = staged.map_err(|error| lost(error, &ours))?;
    let s3 = S3Attributes { etag: Some(etag.clone()), metadata: upload.metadata.clone() };
    let received = Received::new(None, upload.declared_type.clone(), staged).with_s3(s3);
    let done = MultipartUpload { done: Some(etag.clone()), ..upload.clone() };
    let (fact, value) = done.fact().map_err(|error| ours(error.into()))?;
    let along = Batch::new().put_fact(fact, value);
    let manner = manner(EventKind::CreatedInPieces);
    let keys = [upload.key.clone()];
    keep(app, &bucket, manner, along, vec![received], &keys).await.map_err(ours)?;
    let store = app.store.clone();
    let removed = blocking(move || upload.remove_parts(&store)).await;
    if let Err(error) = removed {
        // The sweep does it.
        tracing::warn!("parts of an upload that is done stay for now: {error}");
    }
    Ok(etag)
}

/// The parts that are named, if they have come and are those that are meant.
fn chosen(
    parts: Vec<UploadedPart>,
    named: &[(u32, Option<String>)],
) -> S3Result<Vec<UploadedPart>> {
    let mut parts: BTreeMap<u32, UploadedPart> =
        parts.into_iter().map(|part| (part.number, part)).collect();
    let missing = || refusal(S3ErrorCode::InvalidPart, "A part that is named has not come");
    let mut chosen = Vec::with_capacity(named.len());
    for (number, etag) in named {
        let part = parts.remove(number).ok_or_else(missing)?;
        if etag.as_ref().is_some_and(|etag| *etag != part.etag) {
            return Err(missing());
        }
        chosen.push(part);
    }
    Ok(chosen)
}

/// The entity tag of an object of these parts, as S3 makes it.
fn etag_of(parts: &[UploadedPart]) -> String {
    let mut md5 = Md5::new();
    for part in parts {
        md5.update(&unhex(&part.etag));
    }
    format!("{}-{}", hex(&md5.finalize()), parts.len())
}

/// The bytes that hexadecimal digits stand for.
fn unhex(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap_or("0"));
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap_or_default()).collect()
}

/// One body of many. Waits for the disk.
fn join(store: &engine::Store, parts: &[UploadedPart]) -> engine::Result<Staged> {
    let mut upload = store.upload();
    for part in parts {
        store.read_upload(part.file, part.received, &mut |piece| upload.push(piece))?;
    }
    upload.finish()
}

/// What a part whose bytes are not there any more, or not those that came, means to the client: it is to come again.
fn lost(error: Error, ours: &impl Fn(ApiError) -> S3Error) -> S3Error {
    let is_gone = match &error {
        Error::Corrupt(_) => true,
        Error::Io { source, .. } => source.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    };
    if !is_gone {
        return ours(error.into());
    }
    tracing::error!(%error, "a part of an upload is lost");
    let mut refusal =
        refusal(S3ErrorCode::InvalidPart, "The bytes of a part are lost: send it again");
    refusal.set_status_code(StatusCode::BAD_REQUEST);
    refusal
}

#[cfg(test)]
mod tests {
    use engine::Received as Came;
    use uuid::Uuid;

    use super::*;

    fn part(number: u32, etag: &str) -> UploadedPart {
        let received = Came::default();
        UploadedPart { number, file: Uuid::nil(), received, etag: etag.into(), stored_ms: 0 }
    }

    fn completed(number: i32) -> CompletedPart {
        CompletedPart { part_number: Some(number), ..CompletedPart::default() }
    }

    #[test]
    fn parts_are_named_in_their_order() {
        let numbers = |numbers: &[i32]| {
            let named: Vec<_> = numbers.iter().map(|number| completed(*number)).collect();
            named_parts(&named).map_err(|error| error.code().as_str().to_owned())
        };
        assert_eq!(numbers(&[1, 5, 10_000]).unwrap().len(), 3);
        assert_eq!(numbers(&[2, 1]).unwrap_err(), "InvalidPartOrder");
        assert_eq!(numbers(&[2, 2]).unwrap_err(), "InvalidPartOrder");
        assert_eq!(numbers(&[0]).unwrap_err(), "InvalidArgument");
        assert_eq!(numbers(&[]).unwrap_err(), "MalformedXML");
    }

    #[test]
    fn only_parts_that_came_as_they_are_meant_are_put_together() {
        let parts = || vec![part(1, "aa"), part(3, "bb"), part(4, "cc")];
        let named = |named: &[(u32, &str)]| -> Vec<_> {
            named.iter().map(|(number, etag)| (*number, Some((*etag).to_owned()))).collect()
        };
        let chosen_of = |it: &[(u32, &str)]| chosen(parts(), &named(it));
        let left_out = chosen_of(&[(1, "aa"), (4, "cc")]).unwrap();
        assert_eq!(left_out, [part(1, "aa"), part(4, "cc")]);
        for wrong in [[(1, "aa"), (2, "aa")], [(1, "aa"), (3, "aa")]] {
            assert_eq!(chosen_of(&wrong).unwrap_err().code().as_str(), "InvalidPart");
        }
    }

    #[test]
    fn the_entity_tag_is_that_of_s3() {
        // The MD5 of the MD5 of "hello" and of that of nothing.
        let parts = [
            part(1, "5d41402abc4b2a76b9719d911017c592"),
            part(2, "d41d8cd98f00b204e9800998ecf8427e"),
        ];
        // What md5sum says of the thirty-two bytes.
        assert_eq!(unhex("5d41402abc")[..2], [0x5d, 0x41]);
        assert_eq!(etag_of(&parts), "a169f9255cc30bf56198c64ae2a09832-2");
    }
}
