//! Errors of the catalog.

use std::fmt;

use engine::{BucketName, FactName};

use super::OrganisationId;

/// Error of a catalog operation.
#[derive(Clone, Debug)]
pub enum CatalogError {
    /// The store failed.
    Store(engine::Error),
    /// A fact cannot be read by this build.
    CorruptRecord { fact: FactName, why: String },
    /// A record of that name already exists: its description.
    AlreadyExists(String),
    /// The record does not exist: its description.
    NotFound(String),
    /// The bucket does not exist: its name.
    BucketNotFound(String),
    /// The request violates a rule: its description.
    InvalidRequest(String),
    /// A setting is invalid: its name in JSON, and the rule.
    InvalidSetting { setting: &'static str, rule: String },
    /// The bucket still holds this many objects.
    NotEmpty(BucketName, u64),
    /// The organisation still has this many buckets.
    HasBuckets(OrganisationId, usize),
    /// The account owns buckets or organisations.
    OwnsProperty { account: String, buckets: usize, organisations: usize },
    /// The account owns the organisation, and remains its owner.
    OwnsOrganisation,
    /// An account exists already, so the first set-up is over.
    SetupDone,
    /// The link was used or replaced.
    LinkInvalid,
    /// The shared link was ended.
    LinkEnded,
    /// The verified password was changed in the meantime.
    PasswordChanged,
    /// The account is suspended.
    Suspended,
}

impl From<engine::Error> for CatalogError {
    fn from(error: engine::Error) -> Self {
        Self::Store(error)
    }
}

impl From<engine::name::NameError> for CatalogError {
    fn from(why: engine::name::NameError) -> Self {
        Self::InvalidRequest(why.to_string())
    }
}

impl fmt::Display for CatalogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::CorruptRecord { fact, why } => write!(f, "the fact {fact} cannot be read: {why}"),
            Self::AlreadyExists(what) => write!(f, "{what} already exists"),
            Self::NotFound(what) => write!(f, "{what} does not exist"),
            Self::BucketNotFound(name) => write!(f, "the bucket {name:?} does not exist"),
            Self::InvalidRequest(rule) => f.write_str(rule),
            Self::InvalidSetting { rule, .. } => f.write_str(rule),
            Self::NotEmpty(bucket, objects) => {
                write!(f, "the bucket {bucket} is not empty: {objects} objects")
            }
            Self::HasBuckets(id, buckets) => {
                write!(f, "the organisation {id} is not empty: {buckets} buckets")
            }
            Self::OwnsProperty { account, buckets, organisations } => {
                write!(f, "the account {account:?} owns {buckets} buckets")?;
                match organisations {
                    0 => Ok(()),
                    _ => write!(f, " and {organisations} organisations"),
                }
            }
            Self::OwnsOrganisation => {
                f.write_str("the owner of an organisation cannot leave it or change role")
            }
            Self::SetupDone => f.write_str("this server is already set up"),
            Self::LinkInvalid => {
                f.write_str("the link was already used or replaced by a newer one")
            }
            Self::LinkEnded => f.write_str("the link was ended: create a new one"),
            Self::PasswordChanged => f.write_str("the password was changed concurrently"),
            Self::Suspended => f.write_str("the account is suspended"),
        }
    }
}

impl std::error::Error for CatalogError {}
