//! Management operations on a store: one operation per request, with typed replies.
//!
//! The command line calls [`execute`] on a store that it opened, or sends the same request over the control socket to
//! the server that has it open. A long request reports its progress, and can be cancelled at each report. Guarantees: a
//! short request that fails changes nothing; a cancelled long one leaves the store consistent. Non-goals:
//! authentication; every caller is the operator.

mod audit;
mod backup;
mod compaction;
mod folder_stats;
mod objects;
mod reply;
mod settings;
mod standing;
mod stats;
mod storage;
mod versions;
mod webhooks;

use std::path::PathBuf;
use std::sync::Arc;

use engine::{BucketName, FolderKey, Store, Watch};
use http::StatusCode;
use serde::{Deserialize, Serialize};

use crate::archive::{self, ArchiveError, ImportRules, Job, Place, Source};
use crate::catalog::{
    AccountId, AccountName, ApiKey, ApiKeyId, Bucket, BucketContents, BucketKind, Catalog,
    CatalogError, MemberRole, NewAccount, NewBucket, NewBucketOwner, OrganisationId,
    OrganisationName, PasswordHash, Scope, new_bucket_name, prefix_folder,
};
use crate::error::ApiError;
use crate::fair_use;
use crate::replies::iso_time;

pub use self::audit::{ActorView, AuditAsked, AuditEntryView, AuditView, Seen, audit};
pub use self::backup::BackedUpView;
pub use self::compaction::{
    CandidateView, CompactedView, CompactionAsked, RefusedSegmentView, SelectionView, StepView,
};
pub use self::folder_stats::subfolders_view;
pub use self::objects::{
    Copying, ListedObjectView, ObjectRequest, ObjectView, ObjectWrittenView, ObjectsDeletedView,
    ObjectsView, PresignedView, UsageView,
};
pub use self::reply::{
    AccountDeletedView, AccountView, ApiKeyIssuedView, ApiKeyView, BucketDeletedView, BucketView,
    FolderView, FoldersView, InvitedMemberView, InvitedView, MemberView, MembershipInvitationView,
    OrganisationDeletedView, OrganisationView, PasswordSetView, ProgressView, Reply,
    S3CredentialsView, account_view, api_key_view, bucket_view, folders_view, invitation_url,
    organisation_view, s3_credentials,
};
pub use self::settings::{
    AccountSettings, ApiKeySettings, BucketSettings, NewAccountSettings, NewBucketSettings,
    account_change, bucket_change, new_api_key,
};
pub use self::standing::{
    StandingChangeView, StandingStepView, SweptView, standing_changes, swept_view,
};
pub use self::stats::{
    ClassView, DamageView, FullView, HealthView, PlaceView, RetainedView, ScrubbedView,
    SegmentView, SegmentsView, StatsView,
};
pub use self::storage::{StorageView, storage};
use self::versions::HistoryAsked;
pub use self::versions::{
    ContentView, HistoryView, RefusedVersionView, RestoredView, StateView, UndeletedView,
    VersionView, Wanted,
};
pub use self::webhooks::{
    DeadLetterView, DeadLettersForgottenView, DeadLettersRetriedView, DeadLettersView,
    WebhookCreatedView, WebhookDeletedView, WebhookRequest, WebhookSettings, WebhookTestedView,
    WebhookView, dead_letter_view, new_webhook, webhook_change, webhook_created_view, webhook_id,
    webhook_view,
};

/// Management request. Accounts and organisations are identified by name or id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Request {
    CreateAccount {
        name: String,
        settings: AccountSettings,
    },
    ListAccounts,
    EditAccount {
        account: String,
        settings: AccountSettings,
    },
    /// Deletes an account; with `force`, its buckets and organisations too.
    DeleteAccount {
        account: String,
        force: bool,
    },
    /// Sets the password of an account.
    SetPassword {
        account: String,
        password: PasswordHash,
    },
    /// Creates an invitation for choosing the password of an account.
    InviteAccount {
        account: String,
        /// Base URL of the link; a running server fills in its own if absent.
        public_url: Option<String>,
    },
    CreateOrganisation {
        name: String,
        /// Account that will own it.
        account: String,
    },
    /// Lists the organisations of an account, or all.
    ListOrganisations {
        account: Option<String>,
    },
    RenameOrganisation {
        organisation: String,
        name: String,
    },
    /// Deletes an organisation without buckets.
    DeleteOrganisation {
        organisation: String,
    },
    /// Adds a member to an organisation, or changes its role.
    SetMember {
        organisation: String,
        account: String,
        role: MemberRole,
    },
    RemoveMember {
        organisation: String,
        account: String,
    },
    /// Escalates accounts in violation of fair use by one step.
    SweepAccounts,
    CreateBucket {
        name: String,
        owner: BucketOwner,
        kind: BucketKind,
        settings: BucketSettings,
    },
    /// Lists the buckets of an account, or all.
    ListBuckets {
        account: Option<String>,
    },
    EditBucket {
        name: String,
        settings: BucketSettings,
    },
    /// Deletes a bucket, with its objects if `force` is set; otherwise it must be empty.
    DeleteBucket {
        name: String,
        force: bool,
    },
    /// Lists a page of the top-level folders of a bucket, after one of them.
    ListFolders {
        bucket: String,
        after: Option<String>,
        limit: u64,
    },
    /// Creates a key, with all scopes if none are given.
    CreateApiKey {
        account: String,
        settings: ApiKeySettings,
    },
    /// Lists the API keys of an account, or all.
    ListApiKeys {
        account: Option<String>,
    },
    RevokeApiKey {
        id: String,
    },
    /// Returns the S3 credentials of an API key.
    #[cfg(feature = "s3")]
    ShowS3Credentials {
        id: String,
    },
    Webhook(WebhookRequest),
    Object(ObjectRequest),
    Stats {
        /// Whether each segment is listed.
        segments: bool,
    },
    /// Writes a bucket, or a folder of it, to an archive or a folder of this machine. Long.
    Export {
        bucket: String,
        folder: Option<String>,
        to: Place,
    },
    /// Imports an archive or a folder of this machine, or remote files, into a bucket or a folder of it. Long.
    Import {
        bucket: String,
        folder: Option<String>,
        from: Source,
        rules: ImportRules,
    },
    /// Lists the versions of a file in the log, or of the files in a folder: then the path ends with `/` or is empty.
    /// Long.
    History {
        bucket: String,
        path: String,
        /// Only versions from this time on: a date and time as in RFC 3339.
        since: Option<String>,
        limit: u64,
    },
    /// Restores deleted or overwritten files. Long.
    Undelete {
        bucket: String,
        wanted: Wanted,
    },
    /// Creates or updates a backup of the store in a folder of this machine. Long.
    Backup {
        to: PathBuf,
    },
    /// Previews a compaction.
    SelectCompaction(CompactionAsked),
    /// Compacts the store. Long.
    Compact(CompactionAsked),
    /// Reads and verifies all stored data. Long.
    Scrub,
    /// Lists the audit log, newest first.
    Audit(AuditAsked),
}

/// Direction of the content of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The request reads it.
    ToServer,
    /// The request writes it.
    FromServer,
}

/// Owner of a bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum BucketOwner {
    Account(String),
    Organisation(String),
}

impl Request {
    /// Returns whether the request may take minutes, reports progress and can be cancelled.
    pub fn is_long(&self) -> bool {
        match self {
            Self::Object(request) => request.is_long(),
            request => request.is_exclusive() || matches!(request, Self::Import { .. }),
        }
    }

    /// Returns whether no other exclusive request may run at the same time.
    pub fn is_exclusive(&self) -> bool {
        match self {
            Self::Import { from, .. } => !matches!(from, Source::File { .. }),
            Self::Export { .. }
            | Self::History { .. }
            | Self::Undelete { .. }
            | Self::Backup { .. }
            | Self::Compact(_)
            | Self::Scrub => true,
            _ => false,
        }
    }

    /// Returns the place of the request that is a stream of the client, with its direction.
    pub fn stream(&mut self) -> Option<(Direction, &mut PathBuf)> {
        let (direction, place) = match self {
            Self::Export { to, .. } | Self::Object(ObjectRequest::Read { to, .. }) => {
                (Direction::FromServer, to)
            }
            Self::Import { from: Source::Files(place), .. }
            | Self::Import { from: Source::File { place, .. }, .. }
            | Self::Import { from: Source::Addresses { list: place, .. }, .. } => {
                (Direction::ToServer, place)
            }
            _ => return None,
        };
        match place {
            Place::Stream(path) => Some((direction, path)),
            Place::Path(_) => None,
        }
    }
}

/// Executes a request. Blocks on the disk. A long request calls `watch` repeatedly.
pub fn execute(
    store: &Store,
    catalog: &Catalog,
    request: Request,
    watch: &mut Watch<'_>,
) -> Result<Reply, CatalogError> {
    match request {
        Request::CreateAccount { name, settings } => {
            let name = AccountName::parse(&name)?;
            let settings = account_change(AccountSettings { name: None, ..settings })?;
            let account = catalog.create_account(NewAccount { name, settings })?;
            Ok(Reply::Account(account_view(catalog, &account)))
        }
        Request::ListAccounts => {
            let accounts = catalog.accounts();
            let views = accounts.iter().map(|account| account_view(catalog, account));
            Ok(Reply::Accounts(views.collect()))
        }
        Request::EditAccount { account, settings } => {
            let id = account_id(catalog, &account)?;
            let account = catalog.edit_account(&id, account_change(settings)?)?;
            Ok(Reply::Account(account_view(catalog, &account)))
        }
        Request::DeleteAccount { account, force } => {
            let id = account_id(catalog, &account)?;
            let name = account_name(catalog, &id);
            let contents =
                if force { BucketContents::DeleteToo } else { BucketContents::MustBeGone };
            let deleted_count = catalog.delete_account(&id, contents)?;
            let account = id.to_string();
            Ok(Reply::AccountDeleted(AccountDeletedView { account, name, deleted_count }))
        }
        Request::SetPassword { account, password } => {
            let id = account_id(catalog, &account)?;
            let ended_session_count = catalog.set_password(&id, None, password, None)? as u64;
            let name = account_name(catalog, &id);
            let account = id.to_string();
            Ok(Reply::PasswordSet(PasswordSetView { account, name, ended_session_count }))
        }
        Request::InviteAccount { account, public_url } => {
            let id = account_id(catalog, &account)?;
            let invited = catalog.invite(&id)?;
            Ok(Reply::Invited(InvitedView {
                account: id.to_string(),
                name: account_name(catalog, &id),
                url: invitation_url(public_url.as_deref().unwrap_or_default(), &invited.text),
                expires_at: iso_time(invited.expires_ms),
            }))
        }
        Request::CreateOrganisation { name, account } => {
            let (name, owner) = (OrganisationName::parse(&name)?, account_id(catalog, &account)?);
            let organisation = catalog.create_organisation(name, &owner)?;
            Ok(Reply::Organisation(organisation_view(catalog, &organisation)))
        }
        Request::ListOrganisations { account } => {
            let member = account.map(|account| account_id(catalog, &account)).transpose()?;
            let organisations = catalog.organisations();
            let asked = organisations.iter().filter(|organisation| {
                member.as_ref().is_none_or(|id| organisation.members.contains_key(id))
            });
            Ok(Reply::Organisations(asked.map(|it| organisation_view(catalog, it)).collect()))
        }
        Request::RenameOrganisation { organisation, name } => {
            let id = organisation_id(catalog, &organisation)?;
            let renamed = catalog.rename_organisation(&id, OrganisationName::parse(&name)?)?;
            Ok(Reply::Organisation(organisation_view(catalog, &renamed)))
        }
        Request::DeleteOrganisation { organisation } => {
            let id = organisation_id(catalog, &organisation)?;
            catalog.delete_organisation(&id)?;
            Ok(Reply::OrganisationDeleted(OrganisationDeletedView { id: id.to_string() }))
        }
        Request::SetMember { organisation, account, role } => {
            let id = organisation_id(catalog, &organisation)?;
            let edited = catalog.set_member(&id, &account_id(catalog, &account)?, role)?;
            Ok(Reply::Organisation(organisation_view(catalog, &edited)))
        }
        Request::RemoveMember { organisation, account } => {
            let id = organisation_id(catalog, &organisation)?;
            let edited = catalog.remove_member(&id, &account_id(catalog, &account)?)?;
            Ok(Reply::Organisation(organisation_view(catalog, &edited)))
        }
        Request::SweepAccounts => Ok(Reply::Swept(swept_view(fair_use::sweep(catalog)?))),
        Request::CreateBucket { name, owner, kind, settings } => {
            let name = new_bucket_name(&name)?;
            let owner = match owner {
                BucketOwner::Account(name) => NewBucketOwner::Account(account_id(catalog, &name)?),
                BucketOwner::Organisation(name) => {
                    NewBucketOwner::Organisation(organisation_id(catalog, &name)?)
                }
            };
            let settings = bucket_change(&name, settings)?;
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
            let name = bucket_name(&name)?;
            let bucket = catalog.edit_bucket(&name, bucket_change(&name, settings)?)?;
            Ok(Reply::Bucket(bucket_view(store, &bucket)?))
        }
        Request::DeleteBucket { name, force } => {
            let contents =
                if force { BucketContents::DeleteToo } else { BucketContents::MustBeGone };
            let deleted_count = catalog.delete_bucket(&bucket_name(&name)?, contents)?.finish()?;
            Ok(Reply::BucketDeleted(BucketDeletedView { bucket_name: name, deleted_count }))
        }
        Request::ListFolders { bucket, after, limit } => {
            let bucket = existing_bucket(catalog, &bucket)?;
            let after = after.map(|after| folder_of(Some(after))).transpose()?;
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            Ok(Reply::Folders(folders_view(store, &bucket.name, after.as_ref(), limit)?))
        }
        Request::CreateApiKey { account, mut settings } => {
            if settings.scopes.is_empty() {
                settings.scopes = Scope::ALL.to_vec();
            }
            let account = account_id(catalog, &account)?;
            let issued = catalog.issue_api_key(new_api_key(account, settings)?)?;
            let api_key = api_key_view(catalog, &issued.record);
            let s3 = s3_credentials(catalog, &issued.record.id)?;
            Ok(Reply::ApiKeyIssued(ApiKeyIssuedView { key: issued.text, s3, api_key }))
        }
        Request::ListApiKeys { account } => {
            let owner = account.map(|account| account_id(catalog, &account)).transpose()?;
            let is_asked = |key: &ApiKey| owner.as_ref().is_none_or(|id| *id == key.account);
            let api_keys = catalog.api_keys();
            let asked = api_keys.iter().filter(|api_key| is_asked(api_key));
            Ok(Reply::ApiKeys(asked.map(|api_key| api_key_view(catalog, api_key)).collect()))
        }
        #[cfg(feature = "s3")]
        Request::ShowS3Credentials { id } => {
            let missing = || CatalogError::Missing(format!("the API key {id:?}"));
            let found = ApiKeyId::parse(&id).and_then(|id| catalog.api_key(&id));
            let shown = s3_credentials(catalog, &found.ok_or_else(missing)?.id)?;
            Ok(Reply::S3Credentials(shown.ok_or_else(missing)?))
        }
        Request::RevokeApiKey { id } => {
            let missing = || CatalogError::Missing(format!("the API key {id:?}"));
            let id = ApiKeyId::parse(&id).ok_or_else(missing)?;
            Ok(Reply::ApiKey(api_key_view(catalog, &*catalog.revoke_api_key(&id)?)))
        }
        Request::Webhook(request) => webhooks::execute(catalog, request),
        Request::Object(request) => objects::execute(store, catalog, request, watch),
        Request::Stats { segments } => {
            Ok(Reply::Stats(Box::new(stats::stats(store, catalog, segments)?)))
        }
        Request::Export { bucket, folder, to } => {
            let bucket = existing_bucket(catalog, &bucket)?;
            let job = Job { store, catalog, bucket: &bucket, folder: folder_of(folder)? };
            Ok(Reply::Exported(archive::export(&job, &to, watch)?))
        }
        Request::Import { bucket, folder, from, rules } => {
            let bucket = existing_bucket(catalog, &bucket)?;
            let job = Job { store, catalog, bucket: &bucket, folder: folder_of(folder)? };
            let began_ms = catalog.now_ms();
            let mut report = archive::import(&job, &from, rules, watch)?;
            report.duration_ms = catalog.now_ms().saturating_sub(began_ms);
            Ok(Reply::Imported(report))
        }
        Request::History { bucket, path, since, limit } => {
            let asked =
                HistoryAsked { bucket: &bucket, path: &path, since: since.as_deref(), limit };
            Ok(Reply::History(versions::history(store, catalog, &asked, watch)?))
        }
        Request::Undelete { bucket, wanted } => {
            Ok(Reply::Undeleted(versions::undelete(store, catalog, &bucket, wanted, watch)?))
        }
        Request::Backup { to } => Ok(Reply::BackedUp(backup::back_up(store, catalog, &to, watch)?)),
        Request::SelectCompaction(asked) => {
            Ok(Reply::Selection(compaction::selection(store, asked)?))
        }
        Request::Compact(asked) => {
            // If the store rejects writes, the space that the compaction reclaims is needed all the more.
            match catalog.note_compaction(asked.dead_percent_min) {
                Ok(()) | Err(CatalogError::Store(_)) => {}
                Err(error) => return Err(error),
            }
            Ok(Reply::Compacted(compaction::compact(store, asked, watch)?))
        }
        Request::Scrub => Ok(Reply::Scrubbed(stats::scrub(store, watch)?)),
        Request::Audit(asked) => Ok(Reply::Audit(audit(catalog, &asked, |_| Seen::All)?)),
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
            CatalogError::NoBucket(_) => refuse(StatusCode::NOT_FOUND, "bucket_not_found"),
            CatalogError::Refused(_) => refuse(StatusCode::BAD_REQUEST, "bad_request"),
            CatalogError::BadSetting { setting, .. } => {
                refuse(StatusCode::BAD_REQUEST, "bad_parameter").with("parameter", setting)
            }
            CatalogError::NotEmpty(..) => refuse(StatusCode::CONFLICT, "bucket_not_empty"),
            CatalogError::OwnsProperty { .. } => refuse(StatusCode::CONFLICT, "account_not_empty"),
            CatalogError::HasBuckets(..) => refuse(StatusCode::CONFLICT, "organisation_not_empty"),
            CatalogError::OwnsOrganisation => refuse(StatusCode::CONFLICT, "last_owner"),
            CatalogError::SetUpDone => Self::set_up_done(),
            CatalogError::LinkGone => Self::link_not_found(),
            CatalogError::PasswordChanged => Self::wrong_password(),
            CatalogError::Suspended => Self::account_suspended(),
        }
    }
}

impl From<ArchiveError> for CatalogError {
    fn from(error: ArchiveError) -> Self {
        match error {
            ArchiveError::Store(error) => Self::Store(error),
            ArchiveError::Place(why) => Self::Refused(why),
        }
    }
}

fn existing_bucket(catalog: &Catalog, name: &str) -> Result<Arc<Bucket>, CatalogError> {
    let missing = || CatalogError::NoBucket(name.to_owned());
    catalog.bucket(&bucket_name(name)?).ok_or_else(missing)
}

fn folder_of(folder: Option<String>) -> Result<FolderKey, CatalogError> {
    prefix_folder(&crate::target::normalize(&folder.unwrap_or_default()))
}

fn account_id(catalog: &Catalog, name_or_id: &str) -> Result<AccountId, CatalogError> {
    match catalog.account_called(name_or_id) {
        Some(account) => Ok(account.id.clone()),
        None => Err(CatalogError::Missing(format!("the account {name_or_id:?}"))),
    }
}

fn account_name(catalog: &Catalog, id: &AccountId) -> String {
    catalog.account(id).map(|account| account.name.as_str().to_owned()).unwrap_or_default()
}

/// Resolves an organisation by id, or by a name that only one has.
fn organisation_id(catalog: &Catalog, name_or_id: &str) -> Result<OrganisationId, CatalogError> {
    if let Some(id) = OrganisationId::parse(name_or_id)
        && catalog.organisation(&id).is_some()
    {
        return Ok(id);
    }
    let organisations = catalog.organisations();
    let mut called = organisations.iter().filter(|it| it.name.as_str() == name_or_id);
    match (called.next(), called.next()) {
        (Some(only), None) => Ok(only.id.clone()),
        (Some(_), Some(_)) => Err(CatalogError::Refused(format!(
            "the name {name_or_id:?} is ambiguous: use the organisation id"
        ))),
        (None, _) => Err(CatalogError::Missing(format!("the organisation {name_or_id:?}"))),
    }
}

fn bucket_name(name: &str) -> Result<BucketName, CatalogError> {
    BucketName::parse(name).map_err(|_| CatalogError::NoBucket(name.to_owned()))
}
