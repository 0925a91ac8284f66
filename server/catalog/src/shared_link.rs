//! Shared link: a page with files of a bucket, or one that requests files, for clients without an account.
//!
//! Guarantees: the secret is never printed by accident; a path is in a link only if the link names it, or a folder
//! above it. Non-goals: the pages, and the current rights of the creator, on which every request depends.

use std::fmt;
use std::sync::Arc;

use engine::rng::Rng;
use engine::{BucketName, ObjectKey};
use protocol::object_path::PathInBucket;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::base32;
use super::grant::Issuer;
use super::id::{AccountId, ApiKeyId, SharedLinkId};
use super::link_use::LinkUse;
use super::password::PasswordHash;
use super::record::Record;
use super::stored_text::{StoredText, text};
use super::upload_rules::{UploadRules, UploadTally};

/// Page with files, or one that requests files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedLink {
    #[serde(skip, default = "SharedLinkId::unnamed")]
    pub id: SharedLinkId,
    /// Readable, so that the creator can copy the URL again.
    #[serde(with = "text")]
    pub secret: LinkSecret,
    #[serde(with = "text")]
    pub bucket: BucketName,
    /// Files, and folders, which end in `/`; never empty. The only folder of a link that requests files.
    pub paths: Vec<String>,
    /// Title of the page; empty for the name of its only path.
    pub title: String,
    pub message: String,
    pub layout: LinkLayout,
    /// Whether everything may be downloaded as a zip archive.
    pub zip: bool,
    /// Expiry, in milliseconds since 1970.
    pub expires_ms: Option<u64>,
    pub password: Option<PasswordHash>,
    /// Time of the last change of the password, on which unlocked browsers depend.
    pub password_changed_ms: u64,
    pub downloads_max: Option<u64>,
    /// Rules of a link that requests files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upload: Option<UploadRules>,
    /// Account that created the link.
    pub account: AccountId,
    /// API key that created it, if it was not a signed-in user.
    pub api_key: Option<ApiKeyId>,
    pub created_ms: u64,
    pub updated_ms: u64,
    /// Time at which it was ended by request.
    pub ended_ms: Option<u64>,
    /// Account that ended it; `None` for the command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<String>,
    #[serde(skip)]
    pub uses: Arc<LinkUse>,
    #[serde(skip)]
    pub uploads: Arc<UploadTally>,
}

/// Kind of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum LinkKind {
    /// A page with files.
    #[default]
    Download,
    /// A page that requests files.
    Upload,
}

/// Presentation of the files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum LinkLayout {
    /// A gallery if at least half of the files are images, otherwise a list.
    #[default]
    Auto,
    Gallery,
    List,
}

/// State of a link, apart from the rights of its creator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinkState {
    Active,
    Expired,
    /// The maximum of downloads, or of uploaded files or bytes, is reached.
    UsedUp,
    Ended,
    /// The creator may no longer read the files, or upload to the folder.
    Blocked,
}

/// Secret in the URL: 128 random bits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkSecret(String);

const SECRET_BYTES: usize = 16;
const SECRET_CHARS: usize = 26;

impl Record for SharedLink {
    fn named(self, name: &str) -> Result<Self, String> {
        for path in &self.paths {
            PathInBucket::parse(path).map_err(|error| error.message().to_owned())?;
        }
        Ok(Self { id: SharedLinkId::read(name)?, ..self })
    }
}

impl SharedLink {
    /// Returns the kind.
    pub fn kind(&self) -> LinkKind {
        if self.upload.is_some() { LinkKind::Upload } else { LinkKind::Download }
    }

    /// Returns the state at a time. Never [`LinkState::Blocked`].
    pub fn state(&self, now_ms: u64) -> LinkState {
        let is_used_up = match &self.upload {
            Some(rules) => self.uploads.is_full(rules),
            None => self.downloads_max.is_some_and(|max| self.uses.downloads() >= max),
        };
        match self.expires_ms {
            _ if self.ended_ms.is_some() => LinkState::Ended,
            Some(expires_ms) if now_ms >= expires_ms => LinkState::Expired,
            _ if is_used_up => LinkState::UsedUp,
            _ => LinkState::Active,
        }
    }

    /// Returns the time since which the link is not active, except for used up ones.
    pub(super) fn inactive_since_ms(&self, now_ms: u64) -> Option<u64> {
        let expired = self.expires_ms.filter(|expires_ms| now_ms >= *expires_ms);
        self.ended_ms.into_iter().chain(expired).min()
    }

    /// Returns whose rights the link has.
    pub fn issuer(&self) -> Issuer {
        match &self.api_key {
            Some(id) => Issuer::Key(id.clone()),
            None => Issuer::Account(self.account.clone()),
        }
    }

    /// Returns the files and folders.
    pub fn places(&self) -> Vec<PathInBucket> {
        // Checked when the record was read.
        self.paths.iter().filter_map(|path| PathInBucket::parse(path).ok()).collect()
    }

    /// Returns whether a file or a whole folder is in the link.
    pub fn includes(&self, path: &PathInBucket) -> bool {
        match path {
            PathInBucket::File(key) => self.contains(key),
            PathInBucket::Folder(folder) => {
                let is_above = |it: &&String| it.is_empty() || it.ends_with('/');
                let mut above = self.paths.iter().filter(is_above);
                above.any(|path| folder.as_str().starts_with(path.as_str()))
            }
        }
    }

    /// Returns whether a file is in the link.
    pub fn contains(&self, key: &ObjectKey) -> bool {
        self.paths.iter().any(|path| match path.is_empty() || path.ends_with('/') {
            true => key.as_str().starts_with(path),
            false => key.as_str() == path,
        })
    }
}

impl LinkSecret {
    pub(super) fn issue(rng: &dyn Rng) -> Self {
        let mut bytes = [0; SECRET_BYTES];
        rng.fill(&mut bytes);
        Self(base32::encode(&bytes))
    }

    /// Parses a secret; the link need not exist.
    pub fn parse(text: &str) -> Option<Self> {
        (text.len() == SECRET_CHARS && base32::is_valid(text)).then(|| Self(text.to_owned()))
    }

    /// Returns the secret as it is in the URL.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl StoredText for LinkSecret {
    fn to_text(&self) -> String {
        self.0.clone()
    }

    fn from_text(text: &str) -> Result<Self, String> {
        Self::parse(text).ok_or_else(|| "invalid secret of a link".to_owned())
    }
}

impl fmt::Debug for LinkSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkSecret")
    }
}

#[cfg(test)]
mod tests {
    use engine::rng::SeededRng;

    use super::*;

    #[test]
    fn link_secret_round_trips_and_is_not_printed() {
        let secret = LinkSecret::issue(&SeededRng::new(1));
        assert_eq!(secret.text().len(), SECRET_CHARS);
        assert_eq!(LinkSecret::parse(secret.text()), Some(secret.clone()));
        assert_eq!(format!("{secret:?}"), "LinkSecret");
        for bad in ["", &secret.text()[1..], &secret.text().to_uppercase()] {
            assert_eq!(LinkSecret::parse(bad), None, "{bad}");
        }
    }
}
