//! Completion of multipart uploads: assembly of parts.
//!
//! Guarantees: the stored object consists exactly of the listed parts, in their order and with the content that was
//! uploaded; until then the key has its previous object. A response that takes long begins early, so that the
//! connection stays alive. Non-goals: upload of parts.

use std::collections::BTreeMap;
use std::sync::Arc;

use catalog::object_attributes::StoredChecksum;
use catalog::{Bucket, EventKind, MultipartUpload, UploadedPart};
use engine::{Error, ObjectName, StagedBody};
use http::StatusCode;
use protocol::error::ApiError;
use s3s::crypto::{Checksum as _, Md5};
use s3s::dto::{
    Checksum, ChecksumType, CompleteMultipartUploadInput, CompleteMultipartUploadOutput,
    CompletedPart,
};
use s3s::{S3Error, S3ErrorCode, S3Request, S3Result};
use service::auth::Caller;
use service::state::AppState;
use service::upload::{StagedFile, store_files};
use tokio::task::JoinHandle;
use usage::task::blocking;

use super::super::access::caller_of;
use super::super::checksums::{
    Algorithm, RunningChecksum, composite, copy_checksums, response_of, value_of,
};
use super::super::conditions::WriteConditions;
use super::super::errors::{s3_error, to_s3_error};
use super::super::objects::{hex, strong_etag, upload_options};
use super::super::stored::{StoredParts, with_content};
use super::super::versioning::id_of;
use super::{algorithm_of, find};

type Output = CompleteMultipartUploadOutput;

/// Implements CompleteMultipartUpload.
pub(crate) async fn complete_multipart_upload(
    app: &AppState,
    request: S3Request<CompleteMultipartUploadInput>,
) -> S3Result<Output> {
    let caller = caller_of(&request.extensions)?;
    let input = request.input;
    let CompleteMultipartUploadInput { bucket, key, upload_id, .. } = &input;
    let found = find(app, &caller, bucket, key, upload_id).await;
    let (bucket, upload) = found.map_err(|error| to_s3_error(&error))?;
    let wanted = ObjectOptions::of(&input)?;
    let app = app.clone();
    let output = move |joined: Joined| {
        let checksum = response_of(joined.checksum.as_ref());
        let mut output = Output {
            bucket: Some(input.bucket.clone()),
            key: Some(input.key.clone()),
            e_tag: strong_etag(joined.etag),
            version_id: joined.version_id,
            ..Output::default()
        };
        copy_checksums!(checksum => output);
        output.checksum_type = checksum.checksum_type;
        output
    };
    // A separate task continues after a client disconnect.
    let mut joining: JoinHandle<S3Result<Joined>> =
        tokio::spawn(async move { joined(&app, &caller, bucket, upload, wanted).await });
    match tokio::time::timeout(crate::limits::S3_COMPLETE_KEEPALIVE_DELAY, &mut joining).await {
        Ok(ended) => Ok(output(ended_with(ended)?)),
        Err(_) => {
            let future = async move { Ok(output(ended_with(joining.await)?)) };
            Ok(Output { future: Some(Box::pin(future)), ..Output::default() })
        }
    }
}

/// Requested properties of the object.
struct ObjectOptions {
    parts: Vec<ListedPart>,
    conditions: WriteConditions,
    /// Checksum of the object in base64, if the client knows it.
    checksum: Checksum,
    bytes: Option<i64>,
}

/// Part listed in a request.
struct ListedPart {
    number: u32,
    etag: Option<String>,
    checksum: Checksum,
}

/// Stored object.
struct Joined {
    etag: String,
    checksum: Option<StoredChecksum>,
    /// Version id; `None` for a retry.
    version_id: Option<String>,
}

impl ObjectOptions {
    fn of(input: &CompleteMultipartUploadInput) -> S3Result<Self> {
        let parts = input.multipart_upload.as_ref().and_then(|it| it.parts.as_deref());
        let mut checksum = Checksum::default();
        copy_checksums!(input => checksum);
        Ok(Self {
            parts: parse_listed_parts(parts.unwrap_or_default())?,
            conditions: WriteConditions {
                if_match: input.if_match.clone(),
                if_none_match: input.if_none_match.clone(),
            },
            checksum,
            bytes: input.mpu_object_size,
        })
    }
}

fn ended_with(ended: Result<S3Result<Joined>, tokio::task::JoinError>) -> S3Result<Joined> {
    ended.unwrap_or_else(|why| Err(to_s3_error(&ApiError::internal(why.to_string()))))
}

/// Parses the listed parts, which must be in ascending order.
fn parse_listed_parts(named: &[CompletedPart]) -> S3Result<Vec<ListedPart>> {
    let mut parts: Vec<ListedPart> = Vec::with_capacity(named.len());
    for part in named {
        let number = super::number_of(part.part_number.unwrap_or_default())?;
        if parts.last().is_some_and(|last| last.number >= number) {
            let message = "Parts must be listed in ascending order";
            return Err(s3_error(S3ErrorCode::InvalidPartOrder, message));
        }
        let mut checksum = Checksum::default();
        copy_checksums!(part => checksum);
        let etag = part.e_tag.as_ref().map(|etag| etag.value().to_owned());
        parts.push(ListedPart { number, etag, checksum });
    }
    if parts.is_empty() {
        return Err(s3_error(S3ErrorCode::MalformedXML, "The list of parts is empty"));
    }
    Ok(parts)
}

async fn joined(
    app: &AppState,
    caller: &Caller,
    bucket: Arc<Bucket>,
    upload: MultipartUpload,
    wanted: ObjectOptions,
) -> S3Result<Joined> {
    let ours = |error: ApiError| to_s3_error(&error);
    // Held until the object is stored, so that a concurrent request can neither assemble nor abort the same parts.
    let turn = app.upload_locks.acquire(upload.id).await;
    let _turn = turn.ok_or_else(|| ours(ApiError::upload_locked()))?;
    let (store, account, id) = (app.store.clone(), upload.account.clone(), upload.id);
    let look = move || {
        let upload = MultipartUpload::find(&store, &account, id)?;
        let Some(upload) = upload else { return Err(ApiError::upload_not_found()) };
        let parts = upload.parts(&store, 0, crate::limits::S3_PARTS_MAX as usize)?;
        Ok((upload, parts))
    };
    let (upload, parts) = blocking(look).await.map_err(ours)?;
    if let Some(etag) = upload.done {
        return Ok(Joined { etag, checksum: upload.done_checksum, version_id: None });
    }
    let algorithm = algorithm_of(&upload);
    let chosen = chosen(parts, &wanted.parts, algorithm)?;
    check_sizes(&bucket, &chosen, wanted.bytes)?;
    let name = ObjectName::new(bucket.name.clone(), upload.key.clone());
    let along = wanted.conditions.batch(app, &name, upload.sent_key()).await.map_err(ours)?;
    let etag = etag_of(&chosen);
    let (store, put_together) = (app.store.clone(), chosen.clone());
    let staged = blocking(move || join(&store, &put_together, algorithm)).await;
    let (staged, sum) = staged.map_err(|error| lost(error, &ours))?;
    let checksum = checksum_of(&upload, &chosen, sum);
    check_checksum(&wanted.checksum, checksum.as_ref())?;
    let attributes =
        with_content(&upload.attributes, etag.clone(), checksum.clone(), parts_of(&chosen));
    let received =
        StagedFile::new(None, attributes.declared_type.clone(), staged).with_attributes(attributes);
    let done = MultipartUpload {
        done: Some(etag.clone()),
        done_checksum: checksum.clone(),
        ..upload.clone()
    };
    let (fact, value) = done.fact().map_err(|error| ours(error.into()))?;
    let options = upload_options(EventKind::CreatedByMultipart, caller).completing(upload.id);
    let (along, keys) = (along.put_fact(fact, value), [upload.key.clone()]);
    let stored = store_files(app, &bucket, &options, along, vec![received], &keys).await;
    let stored = stored.map_err(|error| ours(wanted.conditions.explain(error)))?;
    let version_id = stored.first().and_then(|stored| id_of(&bucket, &stored.object));
    let store = app.store.clone();
    let removed = blocking(move || upload.remove_parts(&store)).await;
    if let Err(error) = removed {
        // The sweep retries it.
        tracing::warn!("failed to delete parts of a completed upload; will retry: {error}");
    }
    Ok(Joined { etag, checksum, version_id })
}

/// Returns the listed parts, if they were uploaded and their tags and checksums match.
fn chosen(
    parts: Vec<UploadedPart>,
    named: &[ListedPart],
    algorithm: Option<Algorithm>,
) -> S3Result<Vec<UploadedPart>> {
    let mut parts: BTreeMap<u32, UploadedPart> =
        parts.into_iter().map(|part| (part.number, part)).collect();
    let missing = || s3_error(S3ErrorCode::InvalidPart, "A listed part was not uploaded");
    let mut chosen = Vec::with_capacity(named.len());
    for ListedPart { number, etag, checksum } in named {
        let part = parts.remove(number).ok_or_else(missing)?;
        let said = algorithm.and_then(|algorithm| value_of(checksum, algorithm));
        if etag.as_ref().is_some_and(|etag| *etag != part.etag)
            || said.is_some_and(|said| part.checksum.as_deref() != Some(said))
        {
            return Err(missing());
        }
        chosen.push(part);
    }
    Ok(chosen)
}

/// Rejects parts that are too small, or together too large, or whose total differs from the announced size.
fn check_sizes(bucket: &Bucket, parts: &[UploadedPart], said: Option<i64>) -> S3Result<()> {
    let bytes: u64 = parts.iter().map(|part| part.bytes).sum();
    let limit = bucket.file_bytes_max.unwrap_or(engine::limits::OBJECT_BYTES_MAX);
    if bytes > limit.min(engine::limits::OBJECT_BYTES_MAX) {
        return Err(to_s3_error(&ApiError::file_over_limit(limit)));
    }
    let but_the_last = parts.split_last().map_or(&[][..], |(_, others)| others);
    if but_the_last.iter().any(|part| part.bytes < crate::limits::S3_PART_BYTES_MIN) {
        let message = "A part other than the last is smaller than 5 MiB";
        return Err(s3_error(S3ErrorCode::EntityTooSmall, message));
    }
    match said {
        Some(said) if u64::try_from(said) != Ok(bytes) => {
            let message = "The total size of the parts differs from x-amz-mp-object-size";
            Err(s3_error(S3ErrorCode::InvalidRequest, message))
        }
        _ => Ok(()),
    }
}

/// Returns the checksum of the object: of its content, or of the checksums of its parts.
fn checksum_of(
    upload: &MultipartUpload,
    parts: &[UploadedPart],
    whole: Option<String>,
) -> Option<StoredChecksum> {
    let (algorithm, wanted) = (algorithm_of(upload)?, upload.checksum.as_ref()?);
    let value = match wanted.kind.as_str() {
        ChecksumType::FULL_OBJECT => whole,
        _ => composite(algorithm, parts.iter().map(|part| part.checksum.as_deref())),
    };
    value.map(|value| StoredChecksum { algorithm: algorithm.name().to_owned(), value })
}

/// Rejects content with a checksum other than the announced one.
fn check_checksum(said: &Checksum, checksum: Option<&StoredChecksum>) -> S3Result<()> {
    let Some(StoredChecksum { algorithm, value }) = checksum else { return Ok(()) };
    let said = Algorithm::of_name(algorithm).and_then(|it| value_of(said, it));
    // Some clients send a composite checksum without the number of parts.
    let is_right = said.is_none_or(|said| said == value || value.split('-').next() == Some(said));
    let message = "The checksum of the object does not match";
    is_right.then_some(()).ok_or_else(|| s3_error(S3ErrorCode::BadDigest, message))
}

/// Returns the part data that is stored with the object.
fn parts_of(parts: &[UploadedPart]) -> StoredParts {
    let checksums = parts.iter().map(|part| part.checksum.clone());
    let checksums = checksums.collect::<Option<_>>().unwrap_or_default();
    StoredParts { sizes: sizes_of(parts), checksums }
}

/// Run-length encodes the part sizes: number of consecutive parts, and their bytes.
fn sizes_of(parts: &[UploadedPart]) -> Vec<(u32, u64)> {
    let mut sizes: Vec<(u32, u64)> = Vec::new();
    for part in parts {
        match sizes.last_mut() {
            Some((count, bytes)) if *bytes == part.bytes => *count += 1,
            _ => sizes.push((1, part.bytes)),
        }
    }
    sizes
}

/// Returns the entity tag of an object of these parts, as S3 computes it.
fn etag_of(parts: &[UploadedPart]) -> String {
    let mut md5 = Md5::new();
    for part in parts {
        md5.update(&unhex(&part.etag));
    }
    format!("{}-{}", hex(&md5.finalize()), parts.len())
}

/// Decodes hexadecimal digits.
fn unhex(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap_or("0"));
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap_or_default()).collect()
}

/// Concatenates parts into one body, and computes its checksum. Blocks on the disk.
fn join(
    store: &engine::Store,
    parts: &[UploadedPart],
    algorithm: Option<Algorithm>,
) -> engine::Result<(StagedBody, Option<String>)> {
    let mut upload = store.upload();
    let mut checksum = RunningChecksum::new(algorithm);
    for part in parts {
        store.read_upload(part.file, part.received(), &mut |piece| {
            checksum.update(piece);
            upload.push(piece)
        })?;
    }
    Ok((upload.finish()?, checksum.finish()))
}

/// Converts the error of a missing or corrupt part to one that asks the client to upload it again.
fn lost(error: Error, ours: &impl Fn(ApiError) -> S3Error) -> S3Error {
    let is_gone = match &error {
        Error::Corrupt(_) => true,
        Error::Io { source, .. } => source.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    };
    if !is_gone {
        return ours(error.into());
    }
    tracing::error!(%error, "multipart part missing");
    let mut refusal =
        s3_error(S3ErrorCode::InvalidPart, "The data of a part is missing: upload the part again");
    refusal.set_status_code(StatusCode::BAD_REQUEST);
    refusal
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn part(number: u32, etag: &str) -> UploadedPart {
        let (file, etag, checksum) = (Uuid::nil(), etag.into(), Some("NhCmhg==".into()));
        UploadedPart { number, file, bytes: 0, hash: [0; 32], etag, checksum, stored_ms: 0 }
    }

    fn completed(number: i32) -> CompletedPart {
        CompletedPart { part_number: Some(number), ..CompletedPart::default() }
    }

    #[test]
    fn complete_requires_ascending_part_numbers() {
        let numbers = |numbers: &[i32]| {
            let named: Vec<_> = numbers.iter().map(|number| completed(*number)).collect();
            let named = parse_listed_parts(&named).map(|parts| parts.len());
            named.map_err(|error| error.code().as_str().to_owned())
        };
        assert_eq!(numbers(&[1, 5, 10_000]).unwrap(), 3);
        assert_eq!(numbers(&[2, 1]).unwrap_err(), "InvalidPartOrder");
        assert_eq!(numbers(&[2, 2]).unwrap_err(), "InvalidPartOrder");
        assert_eq!(numbers(&[0]).unwrap_err(), "InvalidArgument");
        assert_eq!(numbers(&[]).unwrap_err(), "MalformedXML");
    }

    #[test]
    fn complete_verifies_part_etags_and_checksums() {
        let parts = || vec![part(1, "aa"), part(3, "bb"), part(4, "cc")];
        let named = |named: &[(u32, &str)], checksum: &Checksum| -> Vec<_> {
            let of = |(number, etag): &(u32, &str)| ListedPart {
                number: *number,
                etag: Some((*etag).to_owned()),
                checksum: checksum.clone(),
            };
            named.iter().map(of).collect()
        };
        let chosen_of =
            |it: &[(u32, &str)]| chosen(parts(), &named(it, &Checksum::default()), None);
        let left_out = chosen_of(&[(1, "aa"), (4, "cc")]).unwrap();
        assert_eq!(left_out, [part(1, "aa"), part(4, "cc")]);
        for wrong in [[(1, "aa"), (2, "aa")], [(1, "aa"), (3, "aa")]] {
            assert_eq!(chosen_of(&wrong).unwrap_err().code().as_str(), "InvalidPart");
        }
        for (said, is_right) in [("NhCmhg==", true), ("AAAAAA==", false)] {
            let said = Checksum { checksum_crc32: Some(said.into()), ..Checksum::default() };
            let named = named(&[(1, "aa")], &said);
            assert_eq!(chosen(parts(), &named, Some(Algorithm::Crc32)).is_ok(), is_right);
        }
    }

    #[test]
    fn sizes_of_parts_are_counted_in_runs() {
        let of = |bytes: u64| UploadedPart { bytes, ..part(1, "aa") };
        assert_eq!(sizes_of(&[of(5), of(5), of(3), of(5)]), [(2, 5), (1, 3), (1, 5)]);
        assert_eq!(sizes_of(&[]), []);
    }

    #[test]
    fn multipart_etag_matches_s3() {
        // The MD5 of the MD5 of "hello" and of that of nothing.
        let parts = [
            part(1, "5d41402abc4b2a76b9719d911017c592"),
            part(2, "d41d8cd98f00b204e9800998ecf8427e"),
        ];
        // As computed by md5sum for the thirty-two bytes.
        assert_eq!(unhex("5d41402abc")[..2], [0x5d, 0x41]);
        assert_eq!(etag_of(&parts), "a169f9255cc30bf56198c64ae2a09832-2");
    }
}
