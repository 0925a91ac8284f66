//! `GET /api/list-objects`: keys of a bucket, with the semantics of S3's ListObjectsV2 in JSON.
//!
//! Guarantees: a key that exists throughout is on exactly one page: the continuation token is the last item of a page,
//! regardless of concurrent writes. Non-goals: search.

use axum::extract::State;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use catalog::Scope;
use catalog::object_attributes::last_modified_ms;
use engine::listing::{KeyGroupPage, KeyGrouping};
use engine::{BucketName, FolderKey, Store};
use protocol::error::ApiError;
use protocol::object_path::{normalize, parse_bucket_name};
use protocol::paging::{folder_cursor_text, parse_folder_cursor};
use protocol::query::Query;
use protocol::time_format::iso_time;
use service::auth::Caller;
use service::limits::LIST_KEYS_MAX;
use service::parameters::ListedBucketParameter;
use service::replies::{ListReply, ListedObject, Success};
use service::state::AppState;
use sha2::{Digest, Sha256};
use usage::task::blocking;
use utoipa::ToSchema;

const BUCKET_NAME: &[&str] = &["bucketName", "bucket"];
const CURSOR: &[&str] = &["continuationToken"];
const FORMAT: u8 = 1;
const CHECK_BYTES: usize = 8;

/// Selection and order of the keys. A continuation token is valid for exactly one of these.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Listing {
    bucket: BucketName,
    prefix: String,
    delimiter: String,
    order: Order,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ToSchema)]
#[schema(rename_all = "lowercase")]
enum Order {
    /// UTF-8 bytes of the whole key.
    Keys,
    /// Folders by name, then files by name.
    Folders,
}

/// Lists objects of a bucket in the JSON form of S3 ListObjectsV2.
#[utoipa::path(
    get,
    path = "/api/list-objects",
    operation_id = "listObjects",
    tag = "Listing and search",
    params(
        ListedBucketParameter,
        ("prefix" = Option<String>, Query, description = "Only keys with this prefix."),
        ("delimiter" = Option<String>, Query, description = "Delimiter; keys with the same text before it are \
            grouped into one common prefix."),
        ("startAfter" = Option<String>, Query, description = "Only keys after this one."),
        ("maxKeys" = Option<u64>, Query, description = "Entries per page, at most 1000."),
        ("continuationToken" = Option<String>, Query, description = "`NextContinuationToken` of \
            the previous page."),
        ("order" = inline(Option<Order>), Query, description = "Sort order. `folders` requires `delimiter=/` and a \
            folder as `prefix`."),
    ),
    responses(
        (status = OK, body = ListReply),
        (status = NOT_FOUND, description = "`bucket_not_found`."),
    )
)]
pub async fn list(
    State(app): State<AppState>,
    caller: Caller,
    query: Query,
) -> Result<Success<ListReply>, ApiError> {
    let listing = Listing::of(&query)?;
    let bucket = caller.bucket(&app.catalog, &listing.bucket, Scope::List)?;
    caller.require_prefix_access(&listing.prefix)?;
    let start_after = query.string(&["startAfter"])?.map(|text| normalize(&text).into_owned());
    if start_after.is_some() && listing.order == Order::Folders {
        return Err(ApiError::bad_parameter("startAfter", "cannot be combined with order=folders"));
    }
    let keys_max = query.number(&["maxKeys"])?.unwrap_or(LIST_KEYS_MAX as u64);
    let keys_max = usize::try_from(keys_max).unwrap_or(LIST_KEYS_MAX).min(LIST_KEYS_MAX);
    let cursor = query.string(CURSOR)?;
    let after = match &cursor {
        Some(cursor) => Some(listing.open_cursor(cursor)?),
        None => start_after.clone(),
    };
    let mut page = match keys_max {
        // No page can follow an empty one.
        0 => KeyGroupPage::default(),
        _ => {
            let (store, listing) = (app.store.clone(), listing.clone());
            blocking(move || listing.page(&store, after.as_deref(), keys_max)).await?
        }
    };
    page.objects.retain(|object| !bucket.is_expired(object, || app.clock.unix_ms()));
    let contents = page.objects.iter().map(|object| ListedObject {
        key: object.name().key.to_string(),
        last_modified: iso_time(last_modified_ms(object)),
        etag: format!("\"{}\"", object.etag()),
        size: object.bytes(),
    });
    let next_cursor = page.next.map(|last| listing.cursor(&last));
    Ok(Success(
        ListReply::new(contents.collect(), page.groups, next_cursor)
            .with_listing(listing.bucket.as_str(), listing.prefix, listing.delimiter)
            .with_request(keys_max, cursor, start_after),
    ))
}

impl Listing {
    fn of(query: &Query) -> Result<Self, ApiError> {
        let text = |name: &str| {
            let text = query.string(&[name])?.unwrap_or_default();
            Ok::<_, ApiError>(normalize(&text).into_owned())
        };
        let bucket = query.string(BUCKET_NAME)?;
        let bucket = bucket.ok_or_else(|| ApiError::bad_parameter("bucketName", "is required"))?;
        let (prefix, delimiter) = (text("prefix")?, text("delimiter")?);
        let order = match query.string(&["order"])?.as_deref() {
            None | Some("keys") => Order::Keys,
            Some("folders") => Order::Folders,
            Some(_) => return Err(ApiError::bad_parameter("order", "must be keys or folders")),
        };
        if order == Order::Folders {
            if delimiter != "/" {
                return Err(ApiError::bad_parameter(
                    "order",
                    "set to \"folders\" requires delimiter=/",
                ));
            }
            if let Err(rule) = FolderKey::parse(&prefix) {
                let must = format!("must be a folder for order=folders: {rule}");
                return Err(ApiError::bad_parameter("prefix", &must));
            }
        }
        Ok(Self { bucket: parse_bucket_name(&bucket)?, prefix, delimiter, order })
    }

    fn page(
        &self,
        store: &Store,
        after: Option<&str>,
        limit: usize,
    ) -> Result<KeyGroupPage, ApiError> {
        if self.order == Order::Keys {
            let grouping = KeyGrouping { prefix: &self.prefix, delimiter: &self.delimiter };
            return Ok(store.list_key_groups(&self.bucket, grouping, after, limit)?);
        }
        let folder = FolderKey::parse(&self.prefix).map_err(ApiError::bad_path)?;
        let after = after.map(parse_folder_cursor).transpose().map_err(|_| bad_cursor())?;
        let page = store.list_folder(&self.bucket, &folder, after.as_ref(), limit)?;
        let next = page.next.as_ref().map(folder_cursor_text);
        let groups = page.folders.iter().map(ToString::to_string).collect();
        Ok(KeyGroupPage { groups, objects: page.files, next })
    }

    /// Returns the continuation token after an item of this listing. It grants no access of its own, so it is not
    /// secret: the checksum only detects mixed-up or truncated tokens.
    fn cursor(&self, last: &str) -> String {
        let mut bytes = vec![FORMAT];
        bytes.extend_from_slice(&self.check(last));
        bytes.extend_from_slice(last.as_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    fn open_cursor(&self, cursor: &str) -> Result<String, ApiError> {
        let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| bad_cursor())?;
        let body = bytes.strip_prefix(&[FORMAT]).ok_or_else(bad_cursor)?;
        let (check, last) = body.split_at_checked(CHECK_BYTES).ok_or_else(bad_cursor)?;
        let last = std::str::from_utf8(last).map_err(|_| bad_cursor())?;
        if check != self.check(last) {
            return Err(bad_cursor());
        }
        Ok(last.to_owned())
    }

    fn check(&self, last: &str) -> [u8; CHECK_BYTES] {
        let order = match self.order {
            Order::Keys => "keys",
            Order::Folders => "folders",
        };
        let mut hash = Sha256::new();
        for part in [self.bucket.as_str(), &self.prefix, &self.delimiter, order, last] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let hash = hash.finalize();
        std::array::from_fn(|at| hash.get(at).copied().unwrap_or_default())
    }
}

fn bad_cursor() -> ApiError {
    ApiError::bad_parameter(
        "continuationToken",
        "is not a token of this listing (same bucket, prefix and order)",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(query: &str) -> Listing {
        Listing::of(&Query::from_uri(&format!("/api/list-objects?{query}").parse().unwrap()))
            .unwrap()
    }

    #[test]
    fn list_cursor_is_bound_to_its_listing() {
        let ours = listing("bucketName=photos&prefix=a%2F&delimiter=%2F");
        let cursor = ours.cursor("a/日本.png");
        let is_safe = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        assert!(cursor.chars().all(is_safe), "{cursor}");
        assert_eq!(ours.open_cursor(&cursor).unwrap(), "a/日本.png");
        for other in [
            "bucketName=photo&prefix=a%2F&delimiter=%2F",
            "bucketName=photos&prefix=a&delimiter=%2F",
            "bucketName=photos&prefix=a%2F&delimiter=%2F&order=folders",
            "bucketName=photos&prefix=a%2F",
            "bucketName=photos&prefix=a%2F%2F",
            "bucketName=photosa&prefix=%2F&delimiter=%2F",
        ] {
            assert_eq!(listing(other).open_cursor(&cursor).unwrap_err().status(), 400, "{other}");
        }
    }

    #[test]
    fn tampered_list_cursor_is_rejected() {
        let ours = listing("bucketName=photos");
        let cursor = ours.cursor("a/b.png");
        for at in 0..cursor.len() {
            assert!(ours.open_cursor(&cursor[..at]).is_err(), "cut at {at}");
            let mut changed = cursor.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(ours.open_cursor(&changed).is_err(), "changed at {at}");
        }
        for wrong in ["", "a", "!!!!", "AQ", "AQ==", &format!("{cursor}A"), &format!("{cursor}=")] {
            assert!(ours.open_cursor(wrong).is_err(), "{wrong}");
        }
    }
}
