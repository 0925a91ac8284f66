//! Selections of files for which a zip download was prepared, each under a secret URL.
//!
//! Guarantees: they are in memory only, for [`ZIP_DOWNLOAD_LIFETIME`], and bounded in number and bytes; of a secret
//! only its hash is stored; an archive has the current rights of the caller who prepared it. Non-goals: these rights.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use catalog::{AccountId, IssuedSecret, Issuer, SecretHash};
use engine::BucketName;
use engine::rng::Rng;
use protocol::object_path::PathInBucket;

use crate::limits::{
    ZIP_DOWNLOAD_LIFETIME, ZIP_DOWNLOADS_BYTES_MAX, ZIP_DOWNLOADS_PER_ACCOUNT_MAX,
};

/// Prepared download.
#[derive(Debug)]
pub struct ZipDownload {
    pub account: AccountId,
    pub issuer: Issuer,
    pub bucket: BucketName,
    pub paths: Vec<PathInBucket>,
    pub file_name: String,
}

/// Prepared downloads.
#[derive(Default)]
pub struct ZipDownloads(Mutex<BTreeMap<SecretHash, Prepared>>);

struct Prepared {
    download: Arc<ZipDownload>,
    bytes: usize,
    /// Expiry in monotonic time.
    expires_ms: u64,
}

impl ZipDownloads {
    /// Adds a download, and returns its secret. Replaces the oldest of the account over
    /// [`ZIP_DOWNLOADS_PER_ACCOUNT_MAX`]; `None` if there is no room for it.
    pub fn add(&self, download: ZipDownload, rng: &dyn Rng, monotonic_ms: u64) -> Option<String> {
        let mut prepared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        prepared.retain(|_, it| monotonic_ms < it.expires_ms);
        let own: Vec<_> =
            prepared.iter().filter(|(_, it)| it.download.account == download.account).collect();
        if own.len() >= ZIP_DOWNLOADS_PER_ACCOUNT_MAX {
            let oldest = own.iter().min_by_key(|(_, it)| it.expires_ms).map(|it| it.0.clone());
            oldest.map(|oldest| prepared.remove(&oldest));
        }
        let bytes = download.paths.iter().map(|path| PATH_BYTES + path.as_str().len()).sum();
        let used: usize = prepared.values().map(|it| it.bytes).sum();
        if used + bytes > ZIP_DOWNLOADS_BYTES_MAX {
            return None;
        }
        let life_ms = u64::try_from(ZIP_DOWNLOAD_LIFETIME.as_millis()).unwrap_or(u64::MAX);
        let IssuedSecret { text, hash } = IssuedSecret::issue(rng);
        let expires_ms = monotonic_ms.saturating_add(life_ms);
        prepared.insert(hash, Prepared { download: Arc::new(download), bytes, expires_ms });
        Some(text)
    }

    /// Returns the download with this secret.
    pub fn get(&self, secret: &str, monotonic_ms: u64) -> Option<Arc<ZipDownload>> {
        let prepared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = prepared.get(&SecretHash::from_text(secret)?)?;
        (monotonic_ms < found.expires_ms).then(|| found.download.clone())
    }
}

/// Memory of a path besides its text.
const PATH_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use engine::rng::SeededRng;

    use super::*;

    fn download(account: &str, path: &str) -> ZipDownload {
        let account = AccountId::parse(account).unwrap();
        ZipDownload {
            issuer: Issuer::Account(account.clone()),
            account,
            bucket: BucketName::parse("pics").unwrap(),
            paths: vec![PathInBucket::parse(path).unwrap()],
            file_name: "pics.zip".to_owned(),
        }
    }

    #[test]
    fn zip_downloads_expire_and_are_bounded_per_account() {
        let (downloads, rng) = (ZipDownloads::default(), SeededRng::new(1));
        let (one, other) = ("aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb");
        let first = downloads.add(download(one, "a/"), &rng, 0).unwrap();
        assert_eq!(downloads.get(&first, 299_999).unwrap().paths[0].as_str(), "a/");
        assert!(downloads.get(&first, 300_000).is_none() && downloads.get("x", 0).is_none());
        let foreign = downloads.add(download(other, "b/"), &rng, 0).unwrap();
        for time in 1..=ZIP_DOWNLOADS_PER_ACCOUNT_MAX as u64 {
            downloads.add(download(one, "a/"), &rng, time).unwrap();
        }
        assert!(downloads.get(&first, 1).is_none() && downloads.get(&foreign, 1).is_some());
    }

    #[test]
    fn zip_downloads_without_room_are_rejected() {
        let (downloads, rng) = (ZipDownloads::default(), SeededRng::new(1));
        let paths = ZIP_DOWNLOADS_BYTES_MAX / (PATH_BYTES + 1);
        let path = PathInBucket::parse("a").unwrap();
        let large = ZipDownload { paths: vec![path; paths], ..download("aaaaaaaaaaaaaaaa", "a") };
        assert!(downloads.add(large, &rng, 0).is_some());
        assert!(downloads.add(download("bbbbbbbbbbbbbbbb", "abc"), &rng, 0).is_none());
        assert!(downloads.add(download("bbbbbbbbbbbbbbbb", "abc"), &rng, 300_000).is_some());
    }
}
