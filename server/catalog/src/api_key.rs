//! API key: creation, encoding and verification, and its rights.
//!
//! A key reads `trug_<id>_<secret>_<check>`. The id finds the record, the checksum tells a typing error from a guess
//! without a lookup, and only a SHA-256 of the secret is stored. Guarantees: the secret is in memory only while a key
//! is issued or presented; it is compared in constant time. Non-goals: the position of a key in a request, and the
//! owner of a requested bucket.

use std::fmt;
use std::sync::Arc;

use engine::rng::Rng;
use engine::{BucketName, FolderKey, ObjectKey};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::id::{AccountId, ApiKeyId};
use super::last_used::LastUsed;
use super::record::Record;
use super::secret::{IssuedSecret, SecretHash};
use super::stored_text::{optional_text, text};
use super::{CatalogError, base32};
use crate::limits::CATALOG_TEXT_BYTES_MAX;

/// Key as a client presents it, before verification.
pub struct PresentedKey {
    id: ApiKeyId,
    secret_sha256: SecretHash,
}

/// Newly issued key, whose text is shown only once.
pub struct IssuedKey {
    pub record: ApiKey,
    pub text: String,
}

/// Record of an API key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredApiKey", into = "StoredApiKey")]
pub struct ApiKey {
    pub id: ApiKeyId,
    pub account: AccountId,
    /// Name given by the owner; may be empty.
    pub name: String,
    secret_sha256: SecretHash,
    pub scopes: Vec<Scope>,
    pub limits: KeyRestrictions,
    pub created_ms: u64,
    pub revoked_ms: Option<u64>,
    /// Last use; not part of the record, but found together with it.
    pub(super) last_use: Arc<LastUsed>,
}

/// Restrictions of a key; the default allows everything that its account may access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyRestrictions {
    pub bucket: Option<BucketName>,
    /// Restricts the key to this folder and its subfolders.
    pub prefix: FolderKey,
    pub expires_ms: Option<u64>,
}

/// Permission of an API key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    Upload,
    Delete,
    Read,
    List,
    Presign,
    Manage,
}

/// Stored form, without nesting: `flatten` would accept unknown fields.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredApiKey {
    account: AccountId,
    name: String,
    /// SHA-256 of the secret, hexadecimal.
    secret_sha256: SecretHash,
    scopes: Vec<Scope>,
    #[serde(default, with = "optional_text")]
    bucket: Option<BucketName>,
    #[serde(with = "text")]
    prefix: FolderKey,
    expires_ms: Option<u64>,
    created_ms: u64,
    revoked_ms: Option<u64>,
}

impl From<ApiKey> for StoredApiKey {
    fn from(key: ApiKey) -> Self {
        Self {
            account: key.account,
            name: key.name,
            secret_sha256: key.secret_sha256,
            scopes: key.scopes,
            bucket: key.limits.bucket,
            prefix: key.limits.prefix,
            expires_ms: key.limits.expires_ms,
            created_ms: key.created_ms,
            revoked_ms: key.revoked_ms,
        }
    }
}

impl From<StoredApiKey> for ApiKey {
    fn from(stored: StoredApiKey) -> Self {
        let StoredApiKey { bucket, prefix, expires_ms, .. } = stored;
        Self {
            id: ApiKeyId::unnamed(),
            account: stored.account,
            name: stored.name,
            secret_sha256: stored.secret_sha256,
            scopes: stored.scopes,
            limits: KeyRestrictions { bucket, prefix, expires_ms },
            created_ms: stored.created_ms,
            revoked_ms: stored.revoked_ms,
            last_use: Arc::default(),
        }
    }
}

impl Record for ApiKey {
    fn named(self, name: &str) -> Result<Self, String> {
        Ok(Self { id: ApiKeyId::read(name)?, ..self })
    }
}

impl Scope {
    /// Every scope, in listing order.
    pub const ALL: [Self; 6] =
        [Self::Upload, Self::Delete, Self::Read, Self::List, Self::Presign, Self::Manage];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Upload => "upload",
            Self::Delete => "delete",
            Self::Read => "read",
            Self::List => "list",
            Self::Presign => "presign",
            Self::Manage => "manage",
        }
    }
}

impl PresentedKey {
    /// Parses a presented key; `None` if it is malformed.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix("trug_")?;
        let (id, rest) = rest.split_once('_')?;
        let (secret, check) = rest.split_once('_')?;
        let secret_sha256 = SecretHash::from_text(secret)?;
        let id = ApiKeyId::parse(id)?;
        (check == check_of(id.as_str(), secret)).then_some(Self { id, secret_sha256 })
    }

    pub fn id(&self) -> &ApiKeyId {
        &self.id
    }
}

impl ApiKey {
    /// Issues a key; its text is only in the result.
    pub(super) fn issue(
        rng: &dyn Rng,
        account: AccountId,
        name: &str,
        scopes: &[Scope],
        limits: KeyRestrictions,
        now_ms: u64,
    ) -> Result<IssuedKey, CatalogError> {
        if name.len() > CATALOG_TEXT_BYTES_MAX || name.chars().any(char::is_control) {
            return Err(CatalogError::InvalidRequest(format!(
                "a key's name has at most {CATALOG_TEXT_BYTES_MAX} bytes and no control characters"
            )));
        }
        if scopes.is_empty() {
            return Err(CatalogError::InvalidRequest("a key needs at least one scope".into()));
        }
        if limits.expires_ms.is_some_and(|expires_ms| expires_ms <= now_ms) {
            return Err(CatalogError::InvalidRequest("the expiry is in the past".into()));
        }
        let id = ApiKeyId::issue(rng);
        let IssuedSecret { text: secret, hash: secret_sha256 } = IssuedSecret::issue(rng);
        let text = format!("trug_{id}_{secret}_{}", check_of(id.as_str(), &secret));
        let mut scopes = scopes.to_vec();
        scopes.sort_unstable();
        scopes.dedup();
        let record = Self {
            id,
            account,
            name: name.to_owned(),
            secret_sha256,
            scopes,
            limits,
            created_ms: now_ms,
            revoked_ms: None,
            last_use: Arc::default(),
        };
        Ok(IssuedKey { record, text })
    }

    /// Returns whether the presented key matches, in constant time.
    pub fn matches(&self, presented: &PresentedKey) -> bool {
        self.id == presented.id && self.secret_sha256.matches(&presented.secret_sha256)
    }

    /// Returns whether the key is valid: neither revoked nor expired.
    pub fn is_active(&self, now_ms: u64) -> bool {
        self.revoked_ms.is_none()
            && self.limits.expires_ms.is_none_or(|expires_ms| now_ms < expires_ms)
    }

    pub fn allows(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }
}

impl KeyRestrictions {
    /// Returns whether the key may access the bucket at all.
    pub fn allows_bucket(&self, bucket: &BucketName) -> bool {
        self.bucket.as_ref().is_none_or(|only| only == bucket)
    }

    /// Returns whether the key may access an object of a bucket that it may access.
    pub fn allows_key(&self, key: &ObjectKey) -> bool {
        key.as_str().starts_with(self.prefix.as_str())
    }

    /// Returns whether the restrictions include all rights of another key, including its expiry.
    pub fn is_superset_of(&self, other: &Self) -> bool {
        let ends_no_later = self
            .expires_ms
            .is_none_or(|mine| other.expires_ms.is_some_and(|expires_ms| expires_ms <= mine));
        self.covers_paths(other) && ends_no_later
    }

    /// Returns whether the restrictions include all buckets and folders of another key.
    pub fn covers_paths(&self, other: &Self) -> bool {
        let bucket = self.bucket.is_none() || self.bucket == other.bucket;
        bucket && self.allows_folder(&other.prefix)
    }

    /// Returns whether the key may access everything in a folder.
    pub fn allows_folder(&self, folder: &FolderKey) -> bool {
        folder.as_str().starts_with(self.prefix.as_str())
    }
}

/// Prints nothing, so that a key is never logged by accident.
impl fmt::Debug for PresentedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PresentedKey({})", self.id)
    }
}

/// Parses a prefix such as `img` or `img/`: always the folder, so that `img2/` is not in it.
pub fn prefix_folder(prefix: &str) -> Result<FolderKey, CatalogError> {
    let folder = match prefix.trim_start_matches('/') {
        "" => String::new(),
        rest if rest.ends_with('/') => rest.to_owned(),
        rest => format!("{rest}/"),
    };
    FolderKey::parse(&folder).map_err(|why| {
        CatalogError::InvalidRequest(format!("the prefix {prefix:?} is not valid: {why}"))
    })
}

/// Returns the CRC-32 of the text before it, which detects every wrong, missing or swapped character.
fn check_of(id: &str, secret: &str) -> String {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(id.as_bytes());
    hasher.update(b"_");
    hasher.update(secret.as_bytes());
    let checksum = hasher.finalize();
    let bytes: [u8; 4] = std::array::from_fn(|at| (checksum >> (24 - 8 * at)) as u8);
    base32::encode(&bytes)
}

#[cfg(test)]
mod tests {
    use engine::rng::SeededRng;

    use super::*;

    fn issue(limits: KeyRestrictions) -> IssuedKey {
        let account = AccountId::parse("aaaaaaaaaaaaaaaa").unwrap();
        ApiKey::issue(&SeededRng::new(1), account, "phone", &Scope::ALL, limits, 1_000).unwrap()
    }

    #[test]
    fn api_key_matches_only_its_exact_secret() {
        let issued = issue(KeyRestrictions::default());
        // `trug`, id, secret and checksum.
        assert_eq!(issued.text.split('_').map(str::len).collect::<Vec<_>>(), [4, 16, 52, 7]);
        let presented = PresentedKey::parse(&issued.text).unwrap();
        assert!(issued.record.matches(&presented));
        for at in 0..issued.text.len() {
            let mut bytes = issued.text.clone().into_bytes();
            bytes[at] = if bytes[at] == b'q' { b'p' } else { b'q' };
            let wrong = String::from_utf8(bytes).unwrap();
            assert!(PresentedKey::parse(&wrong).is_none(), "{wrong}");
        }
        for bad in ["", "trug_", "trug___", "Bearer", &issued.text[..40], "é"] {
            assert!(PresentedKey::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn api_key_record_does_not_contain_the_secret() {
        let issued = issue(KeyRestrictions::default());
        let secret = issued.text.split('_').nth(2).unwrap();
        let stored = serde_json::to_string(&issued.record).unwrap();
        assert!(!stored.contains(secret));
        assert!(!format!("{:?}", issued.record).contains(secret));
        let back: ApiKey = serde_json::from_str(&stored).unwrap();
        assert_eq!(back.named(issued.record.id.as_str()).unwrap(), issued.record);
    }

    #[test]
    fn api_key_with_wrong_secret_is_rejected() {
        let issued = issue(KeyRestrictions::default());
        let id = issued.record.id.as_str();
        let secret = base32::encode(&[7; 32]);
        let forged = format!("trug_{id}_{secret}_{}", check_of(id, &secret));
        assert!(!issued.record.matches(&PresentedKey::parse(&forged).unwrap()));
    }

    #[test]
    fn api_key_is_active_until_expiry_or_revocation() {
        let limits = KeyRestrictions { expires_ms: Some(2_000), ..KeyRestrictions::default() };
        let mut key = issue(limits).record;
        assert!(key.is_active(1_999));
        assert!(!key.is_active(2_000));
        key.limits.expires_ms = None;
        key.revoked_ms = Some(1_500);
        assert!(!key.is_active(1_600));
    }

    #[test]
    fn key_restrictions_cover_subsets() {
        let limits = |bucket: Option<&str>, prefix: &str, expires_ms| KeyRestrictions {
            bucket: bucket.map(|name| BucketName::parse(name).unwrap()),
            prefix: prefix_folder(prefix).unwrap(),
            expires_ms,
        };
        let whole = KeyRestrictions::default();
        let narrow = limits(Some("photos"), "img", Some(2_000));
        assert!(
            whole.is_superset_of(&narrow)
                && whole.is_superset_of(&whole)
                && narrow.is_superset_of(&narrow)
        );
        assert!(narrow.is_superset_of(&limits(Some("photos"), "img/a", Some(1_999))));
        for wider in [
            whole,
            limits(None, "img", Some(2_000)),
            limits(Some("other"), "img", Some(2_000)),
            limits(Some("photos"), "", Some(2_000)),
            limits(Some("photos"), "img2", Some(2_000)),
            limits(Some("photos"), "img", Some(2_001)),
            limits(Some("photos"), "img", None),
        ] {
            assert!(!narrow.is_superset_of(&wider), "{wider:?}");
        }
        assert!(narrow.covers_paths(&limits(Some("photos"), "img", None)));
    }

    #[test]
    fn key_prefix_matches_whole_folders() {
        for prefix in ["img", "img/", "/img/"] {
            let limits = KeyRestrictions {
                prefix: prefix_folder(prefix).unwrap(),
                ..KeyRestrictions::default()
            };
            assert!(limits.allows_key(&ObjectKey::parse("img/a/b.png").unwrap()));
            assert!(!limits.allows_key(&ObjectKey::parse("img2/a.png").unwrap()));
            assert!(!limits.allows_key(&ObjectKey::parse("img").unwrap()));
            assert!(limits.allows_folder(&FolderKey::parse("img/").unwrap()));
            assert!(!limits.allows_folder(&FolderKey::root()));
        }
        assert!(prefix_folder("a/../b").is_err());
        assert!(KeyRestrictions::default().allows_folder(&FolderKey::root()));
    }
}
