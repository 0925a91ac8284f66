//! What the operator can do with accounts, buckets and keys: one operation per request, with typed answers.
//!
//! The command line calls [`execute`] on a store that it opened, or sends the same request over the control socket to
//! the server that has it open. Promises: a request that fails changes nothing.
//! Never here: who is asking; whoever gets here is the operator.

use engine::{BucketName, ClassStats, Health, NameError, ObjectKey, Store};
use http::StatusCode;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::catalog::{
    Access, Account, AccountChange, AccountId, AccountName, ApiKey, ApiKeyId, Bucket, BucketChange,
    BucketContents, BucketKind, CacheControl, Catalog, CatalogError, KeyLimits, NewApiKey,
    NewBucket, Plan, Scope, ServeHtml, Standing, new_bucket_name, prefix_folder,
};
use crate::error::ApiError;
use crate::replies::iso_time;

/// One thing to do. Accounts are named by name or id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Request {
    CreateAccount {
        name: String,
        plan: Plan,
    },
    ListAccounts,
    EditAccount {
        account: String,
        name: Option<String>,
        plan: Option<Plan>,
        standing: Option<Standing>,
    },
    CreateBucket {
        name: String,
        account: String,
        kind: BucketKind,
        settings: BucketSettings,
    },
    /// Of one account, or all.
    ListBuckets {
        account: Option<String>,
    },
    EditBucket {
        name: String,
        settings: BucketSettings,
    },
    /// With `force`, the objects in it go too; without, it must be empty.
    DeleteBucket {
        name: String,
        force: bool,
    },
    CreateApiKey {
        account: String,
        settings: ApiKeySettings,
    },
    /// Of one account, or all.
    ListApiKeys {
        account: Option<String>,
    },
    RevokeApiKey {
        id: String,
    },
    Stats,
}

/// What can be set of a bucket; an absent field stays as it is, an empty text takes the setting away.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct BucketSettings {
    pub access: Option<Access>,
    pub placeholder: Option<String>,
    pub cache_control: Option<String>,
    pub serve_html: Option<bool>,
}

/// What can be set of a new key; without scopes it has all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ApiKeySettings {
    pub name: String,
    pub scopes: Vec<Scope>,
    pub bucket: Option<String>,
    pub prefix: Option<String>,
    /// A date and time as in RFC 3339.
    pub expires_at: Option<String>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Reply {
    Account(AccountView),
    Accounts(Vec<AccountView>),
    Bucket(BucketView),
    Buckets(Vec<BucketView>),
    BucketDeleted(BucketDeletedView),
    /// The only time that the key itself is told.
    ApiKeyIssued(ApiKeyIssuedView),
    ApiKey(ApiKeyView),
    ApiKeys(Vec<ApiKeyView>),
    Stats(StatsView),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AccountView {
    pub id: String,
    pub name: String,
    pub plan: Plan,
    pub standing: Standing,
    pub created_at: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BucketView {
    pub bucket_name: String,
    pub account: String,
    #[serde(rename = "type")]
    pub kind: BucketKind,
    pub access: Access,
    pub placeholder: Option<String>,
    pub cache_control: Option<String>,
    pub serve_html: bool,
    pub created_at: String,
    pub updated_at: String,
    pub object_count: u64,
    pub total_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BucketDeletedView {
    pub bucket_name: String,
    pub deleted_count: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiKeyView {
    pub id: String,
    pub account: String,
    pub name: String,
    pub scopes: Vec<Scope>,
    pub bucket_name: Option<String>,
    pub prefix: String,
    pub created_at: String,
    pub expires_at: Option<String>,
    pub revoked_at: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiKeyIssuedView {
    pub key: String,
    #[serde(flatten)]
    pub api_key: ApiKeyView,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatsView {
    pub accounts: u64,
    pub buckets: u64,
    pub api_keys: u64,
    pub objects: u64,
    pub object_bytes: u64,
    /// Thumbnails and the like, not counted above.
    pub derived_objects: u64,
    pub derived_bytes: u64,
    /// Segments of the log.
    pub log: SegmentsView,
    /// Segments of one large object each.
    pub big: SegmentsView,
    /// Why the store takes no writes, when it takes none.
    pub read_only: Option<String>,
    /// Set while the disk is too full for uploads.
    pub full: Option<FullView>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FullView {
    pub free_bytes: u64,
    /// What is to stay free.
    pub reserve_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SegmentsView {
    pub segments: u64,
    pub live_bytes: u64,
    pub dead_bytes: u64,
}

/// Does what is asked. Waits for the disk.
pub fn execute(store: &Store, catalog: &Catalog, request: Request) -> Result<Reply, CatalogError> {
    match request {
        Request::CreateAccount { name, plan } => {
            let account = catalog.create_account(AccountName::parse(&name)?, plan)?;
            Ok(Reply::Account(account_view(&account)))
        }
        Request::ListAccounts => {
            let accounts = catalog.accounts();
            Ok(Reply::Accounts(accounts.iter().map(|account| account_view(account)).collect()))
        }
        Request::EditAccount { account, name, plan, standing } => {
            let name = name.map(|name| AccountName::parse(&name)).transpose()?;
            let id = account_id(catalog, &account)?;
            let account = catalog.edit_account(&id, AccountChange { name, plan, standing })?;
            Ok(Reply::Account(account_view(&account)))
        }
        Request::CreateBucket { name, account, kind, settings } => {
            let name = new_bucket_name(&name)?;
            let owner = account_id(catalog, &account)?;
            let settings = bucket_change(settings)?;
            let bucket = catalog.create_bucket(NewBucket { name, owner, kind, settings })?;
            Ok(Reply::Bucket(bucket_view(store, &bucket)?))
        }
        Request::ListBuckets { account } => {
            let owner = account.map(|account| account_id(catalog, &account)).transpose()?;
            let is_asked = |bucket: &Bucket| owner.as_ref().is_none_or(|id| *id == bucket.owner);
            let buckets = catalog.buckets();
            let asked = buckets.iter().filter(|bucket| is_asked(bucket));
            Ok(Reply::Buckets(asked.map(|it| bucket_view(store, it)).collect::<Result<_, _>>()?))
        }
        Request::EditBucket { name, settings } => {
            let bucket = catalog.edit_bucket(&bucket_name(&name)?, bucket_change(settings)?)?;
            Ok(Reply::Bucket(bucket_view(store, &bucket)?))
        }
        Request::DeleteBucket { name, force } => {
            let contents =
                if force { BucketContents::DeleteToo } else { BucketContents::MustBeGone };
            let deleted_count = catalog.delete_bucket(&bucket_name(&name)?, contents)?;
            Ok(Reply::BucketDeleted(BucketDeletedView { bucket_name: name, deleted_count }))
        }
        Request::CreateApiKey { account, settings } => {
            let issued = catalog.issue_api_key(new_api_key(catalog, &account, settings)?)?;
            let api_key = api_key_view(&issued.record);
            Ok(Reply::ApiKeyIssued(ApiKeyIssuedView { key: issued.text, api_key }))
        }
        Request::ListApiKeys { account } => {
            let owner = account.map(|account| account_id(catalog, &account)).transpose()?;
            let is_asked = |key: &ApiKey| owner.as_ref().is_none_or(|id| *id == key.account);
            let api_keys = catalog.api_keys();
            let asked = api_keys.iter().filter(|api_key| is_asked(api_key));
            Ok(Reply::ApiKeys(asked.map(|api_key| api_key_view(api_key)).collect()))
        }
        Request::RevokeApiKey { id } => {
            let missing = || CatalogError::Missing(format!("the API key {id:?}"));
            let id = ApiKeyId::parse(&id).ok_or_else(missing)?;
            Ok(Reply::ApiKey(api_key_view(&*catalog.revoke_api_key(&id)?)))
        }
        Request::Stats => Ok(Reply::Stats(stats(store, catalog)?)),
    }
}

impl From<CatalogError> for ApiError {
    fn from(error: CatalogError) -> Self {
        let message = error.to_string();
        let refuse = |status, code| Self::new(status, code, message.clone());
        match error {
            CatalogError::Store(error) => error.into(),
            CatalogError::Unreadable { .. } => Self::internal(message),
            CatalogError::Exists(_) => refuse(StatusCode::CONFLICT, "already_exists"),
            CatalogError::Missing(_) => refuse(StatusCode::NOT_FOUND, "not_found"),
            CatalogError::Refused(_) => refuse(StatusCode::BAD_REQUEST, "bad_request"),
            CatalogError::NotEmpty(..) => refuse(StatusCode::CONFLICT, "bucket_not_empty"),
        }
    }
}

fn account_id(catalog: &Catalog, name_or_id: &str) -> Result<AccountId, CatalogError> {
    match catalog.account_called(name_or_id) {
        Some(account) => Ok(account.id.clone()),
        None => Err(CatalogError::Missing(format!("the account {name_or_id:?}"))),
    }
}

fn bucket_name(name: &str) -> Result<BucketName, CatalogError> {
    BucketName::parse(name).map_err(|_| CatalogError::Missing(format!("the bucket {name:?}")))
}

fn bucket_change(settings: BucketSettings) -> Result<BucketChange, CatalogError> {
    let unless_empty = |text: String| Some(text).filter(|text| !text.is_empty());
    let placeholder = |key: String| -> Result<ObjectKey, CatalogError> {
        let refuse = |why: NameError| {
            CatalogError::Refused(format!("the placeholder {key:?} is not a key: {why}"))
        };
        let parsed = ObjectKey::parse(&crate::target::normalize(&key)).map_err(refuse)?;
        if parsed.is_folder_marker() {
            return Err(CatalogError::Refused(format!("the placeholder {key:?} is a folder")));
        }
        Ok(parsed)
    };
    Ok(BucketChange {
        access: settings.access,
        placeholder: match settings.placeholder {
            Some(key) => Some(unless_empty(key).map(placeholder).transpose()?),
            None => None,
        },
        cache_control: match settings.cache_control {
            Some(text) => {
                Some(unless_empty(text).map(|text| CacheControl::parse(&text)).transpose()?)
            }
            None => None,
        },
        serve_html: settings
            .serve_html
            .map(|pages| if pages { ServeHtml::AsPages } else { ServeHtml::AsText }),
    })
}

fn new_api_key(
    catalog: &Catalog,
    account: &str,
    settings: ApiKeySettings,
) -> Result<NewApiKey, CatalogError> {
    let scopes = match settings.scopes {
        scopes if scopes.is_empty() => Scope::ALL.to_vec(),
        scopes => scopes,
    };
    let limits = KeyLimits {
        bucket: settings.bucket.map(|bucket| bucket_name(&bucket)).transpose()?,
        prefix: prefix_folder(&crate::target::normalize(&settings.prefix.unwrap_or_default()))?,
        expires_ms: settings.expires_at.map(|text| unix_ms(&text)).transpose()?,
    };
    Ok(NewApiKey { account: account_id(catalog, account)?, name: settings.name, scopes, limits })
}

fn unix_ms(text: &str) -> Result<u64, CatalogError> {
    let refused = || {
        let example = "2030-01-31T12:00:00Z";
        CatalogError::Refused(format!("the expiry {text:?} is not a date and time like {example}"))
    };
    let time: Timestamp = text.parse().map_err(|_| refused())?;
    u64::try_from(time.as_millisecond()).map_err(|_| refused())
}

fn account_view(account: &Account) -> AccountView {
    AccountView {
        id: account.id.to_string(),
        name: account.name.as_str().to_owned(),
        plan: account.plan,
        standing: account.standing,
        created_at: iso_time(account.created_ms),
    }
}

fn bucket_view(store: &Store, bucket: &Bucket) -> Result<BucketView, CatalogError> {
    let usage = store.bucket_usage(&bucket.name)?;
    Ok(BucketView {
        bucket_name: bucket.name.to_string(),
        account: bucket.owner.to_string(),
        kind: bucket.kind,
        access: bucket.access,
        placeholder: bucket.placeholder.as_ref().map(ToString::to_string),
        cache_control: bucket.cache_control.as_ref().map(|value| value.as_str().to_owned()),
        serve_html: bucket.serve_html == ServeHtml::AsPages,
        created_at: iso_time(bucket.created_ms),
        updated_at: iso_time(bucket.updated_ms),
        object_count: usage.objects,
        total_bytes: usage.bytes,
    })
}

fn api_key_view(api_key: &ApiKey) -> ApiKeyView {
    ApiKeyView {
        id: api_key.id.to_string(),
        account: api_key.account.to_string(),
        name: api_key.name.clone(),
        scopes: api_key.scopes.clone(),
        bucket_name: api_key.limits.bucket.as_ref().map(ToString::to_string),
        prefix: api_key.limits.prefix.to_string(),
        created_at: iso_time(api_key.created_ms),
        expires_at: api_key.limits.expires_ms.map(iso_time),
        revoked_at: api_key.revoked_ms.map(iso_time),
    }
}

fn stats(store: &Store, catalog: &Catalog) -> Result<StatsView, CatalogError> {
    let stats = store.stats()?;
    let (read_only, full) = match store.health() {
        Health::Writable => (None, None),
        Health::Full { free_bytes, reserve_bytes } => {
            (None, Some(FullView { free_bytes, reserve_bytes }))
        }
        Health::ReadOnly(reason) => (Some(reason.to_string()), None),
    };
    Ok(StatsView {
        accounts: catalog.accounts().len() as u64,
        buckets: catalog.buckets().len() as u64,
        api_keys: catalog.api_keys().len() as u64,
        objects: stats.objects,
        object_bytes: stats.object_bytes,
        derived_objects: stats.derived_objects,
        derived_bytes: stats.derived_bytes,
        log: segments_view(stats.log),
        big: segments_view(stats.big),
        read_only,
        full,
    })
}

fn segments_view(stats: ClassStats) -> SegmentsView {
    SegmentsView {
        segments: stats.segments,
        live_bytes: stats.live_bytes,
        dead_bytes: stats.record_bytes.saturating_sub(stats.live_bytes),
    }
}
