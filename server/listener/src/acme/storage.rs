//! ACME storage: the account, and the certificate with its key. Two files in the data folder's own subfolder, readable
//! only by their owner. The engine does not manage them, and no backup contains them.
//!
//! Guarantees: files are written atomically. Non-goals: their content.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "no files of the store")]

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use instant_acme::AccountCredentials;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Subfolder of the data folder.
const FOLDER: &str = "acme";
const ACCOUNT: &str = "account.json";
const CERTIFICATE: &str = "certificate.json";

/// ACME storage folder.
#[derive(Clone, Debug)]
pub(super) struct CertificateStorage(PathBuf);

/// Stored account, with its directory.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredAcmeAccount {
    pub(super) directory: String,
    pub(super) contacts: Vec<String>,
    pub(super) credentials: AccountCredentials,
}

/// Stored certificate and key in PEM, with its names and directory.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredCertificate {
    pub(super) directory: String,
    pub(super) domains: Vec<String>,
    pub(super) certificates: String,
    pub(super) key: String,
}

impl CertificateStorage {
    /// Opens the folder, creating it if needed. Only for the process that holds the store's lock.
    pub(super) fn open(data: &Path) -> io::Result<Self> {
        let folder = data.join(FOLDER);
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(Self(folder)),
        }
    }

    pub(super) fn account(&self) -> io::Result<Option<StoredAcmeAccount>> {
        self.read(ACCOUNT)
    }

    pub(super) fn write_account(&self, account: &StoredAcmeAccount) -> io::Result<()> {
        self.write(ACCOUNT, account)
    }

    /// Deletes an account that the certification authority does not know.
    pub(super) fn forget_account(&self) -> io::Result<()> {
        fs::remove_file(self.0.join(ACCOUNT))
    }

    pub(super) fn certificate(&self) -> io::Result<Option<StoredCertificate>> {
        self.read(CERTIFICATE)
    }

    pub(super) fn write_certificate(&self, certificate: &StoredCertificate) -> io::Result<()> {
        self.write(CERTIFICATE, certificate)
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> io::Result<Option<T>> {
        let path = self.0.join(name);
        let named =
            |why: &dyn std::fmt::Display| io::Error::other(format!("{}: {why}", path.display()));
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|why| named(&why)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(named(&error)),
        }
    }

    fn write<T: Serialize>(&self, name: &str, value: &T) -> io::Result<()> {
        let unfinished = self.0.join(format!("{name}.part"));
        let bytes = serde_json::to_vec_pretty(value)?;
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&unfinished)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        fs::rename(&unfinished, self.0.join(name))?;
        File::open(&self.0)?.sync_all()
    }
}

impl StoredAcmeAccount {
    /// Copies the credentials by serialization, since the library's type is not `Clone`.
    pub(super) fn clone_credentials(&self) -> serde_json::Result<AccountCredentials> {
        serde_json::from_value(serde_json::to_value(&self.credentials)?)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn acme_storage_is_readable_by_owner_only() {
        let data = tempfile::tempdir().unwrap();
        let kept = CertificateStorage::open(data.path()).unwrap();
        assert!(kept.certificate().unwrap().is_none() && kept.account().unwrap().is_none());
        let mut certificate = StoredCertificate {
            directory: "https://a.example".into(),
            domains: vec!["b.example".into()],
            certificates: "one".into(),
            key: "secret".into(),
        };
        kept.write_certificate(&certificate).unwrap();
        certificate.certificates = "two".into();
        kept.write_certificate(&certificate).unwrap();
        let again = CertificateStorage::open(data.path()).unwrap();
        assert!(again.certificate().unwrap() == Some(certificate));
        let folder = data.path().join(FOLDER);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&folder.join(CERTIFICATE))), (0o700, 0o600));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);

        fs::write(folder.join(ACCOUNT), "{}").unwrap();
        let why = again.account().err().unwrap().to_string();
        assert!(why.contains("account.json: missing field"), "{why}");
        again.forget_account().unwrap();
        assert!(again.account().unwrap().is_none());
    }
}
