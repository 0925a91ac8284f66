//! Management operations on a store: one operation per request, with typed replies.
//!
//! The command line calls [`execute`] on a store that it opened, or sends the same request over the control socket to
//! the server that has it open. A long request reports its progress, and can be cancelled at each report. Guarantees: a
//! short request that fails changes nothing; a cancelled long one leaves the store consistent. Non-goals:
//! authentication; every caller is the operator.

mod audit_view;
mod backup;
mod compaction;
mod folder_stats;
mod lifecycle;
mod link_requests;
mod link_settings;
mod object_change;
mod objects;
mod replication_view;
mod reply;
mod settings;
mod standing;
mod stats;
mod storage_view;
mod versions;
mod webhook_requests;

use std::path::PathBuf;
use std::sync::Arc;

use catalog::{
    AccountId, AccountName, ApiKey, ApiKeyId, Bucket, BucketKind, Catalog, CatalogError,
    MemberRole, NewAccount, NewBucket, NewBucketOwner, OnNonEmpty, OrganisationId,
    OrganisationName, PasswordHash, Scope, new_bucket_name, prefix_folder,
};
use engine::progress::ProgressCallback;
use engine::{BucketName, FolderKey, Store};
use jobs::archive::{self, ArchiveLocation, ArchiveScope, ImportRules, ImportSource};
use jobs::fair_use;
use protocol::time_format::iso_time;
use serde::{Deserialize, Serialize};

pub use self::audit_view::{
    ActorView, AuditEntryView, AuditLog, AuditQuery, AuditView, AuditVisibility, audit,
};
pub use self::backup::BackedUpView;
pub use self::compaction::{
    CandidateView, CompactedView, CompactionParams, RefusedSegmentView, SelectionView, StepView,
};
pub use self::folder_stats::subfolders_view;
pub use self::lifecycle::{
    LifecyclePreview, LifecycleRequest, LifecycleRuleView, LifecycleRulesView, lifecycle_rules,
    preview_lifecycle,
};
pub use self::link_requests::{LinkRequest, LinkView, link_view, missing_link_file, new_link};
pub use self::link_settings::{
    LinkLifetime, LinkSettings, link_change, parse_link_password, parse_link_paths,
};
pub use self::object_change::ObjectEdit;
pub use self::objects::{
    Copying, ListedObjectView, ObjectRequest, ObjectView, ObjectWrittenView, ObjectsDeletedView,
    ObjectsView, PresignedView, UsageView,
};
pub use self::replication_view::ReplicationView;
pub use self::reply::{
    AccountDeletedView, AccountView, AdminResponse, ApiKeyIssuedView, ApiKeyView,
    BucketDeletedView, BucketView, FolderView, FoldersView, InvitedMemberView, InvitedView,
    MemberView, MembershipInvitationView, OrganisationDeletedView, OrganisationView,
    PasswordSetView, ProgressView, S3CredentialsView, account_view, api_key_view, bucket_view,
    folders_view, invitation_url, organisation_view, s3_credentials,
};
pub(crate) use self::settings::present_field;
pub use self::settings::{
    AccountSettings, ApiKeySettings, BucketSettings, NewAccountSettings, NewBucketSettings,
    account_change, bucket_change, new_api_key,
};
pub use self::standing::{
    StandingChangeView, StandingStepView, SweepReportView, standing_changes, swept_view,
};
pub use self::stats::{
    DamageView, FullView, HealthView, PlaceView, RetainedView, ScrubbedView, SegmentKindView,
    SegmentView, SegmentsView, StatsView,
};
pub use self::storage_view::{StorageView, storage};
use self::versions::HistoryQuery;
pub use self::versions::{
    ContentView, HistoryView, RefusedVersionView, RestoredView, StateView, UndeleteSelector,
    UndeletedView, VersionView,
};
pub use self::webhook_requests::{
    DeadLetterView, DeadLettersForgottenView, DeadLettersRetriedView, DeadLettersView,
    WebhookCreatedView, WebhookDeletedView, WebhookRequest, WebhookSettings, WebhookTestedView,
    WebhookView, dead_letter_view, new_webhook, webhook_change, webhook_created_view, webhook_id,
    webhook_view,
};

/// Management request. Accounts and organisations are identified by name or id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum AdminRequest {
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
    ShowS3Credentials {
        id: String,
    },
    Webhook(WebhookRequest),
    Lifecycle(LifecycleRequest),
    Link(LinkRequest),
    Object(ObjectRequest),
    Stats {
        /// Whether each segment is listed.
        segments: bool,
    },
    /// Writes a bucket, or a folder of it, to an archive or a folder of this machine. Long.
    Export {
        bucket: String,
        folder: Option<String>,
        to: ArchiveLocation,
    },
    /// Imports an archive or a folder of this machine, or remote files, into a bucket or a folder of it. Long.
    Import {
        bucket: String,
        folder: Option<String>,
        from: ImportSource,
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
        wanted: UndeleteSelector,
    },
    /// Creates or updates a backup of the store in a folder of this machine. Long.
    Backup {
        to: PathBuf,
    },
    /// Previews a compaction.
    SelectCompaction(CompactionParams),
    /// Compacts the store. Long.
    Compact(CompactionParams),
    /// Reads and verifies all stored data. Long.
    Scrub,
    /// Lists the audit log, newest first.
    Audit(AuditQuery),
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

impl AdminRequest {
    /// Returns whether the request may take minutes, reports progress and can be cancelled.
    pub fn is_long_running(&self) -> bool {
        match self {
            Self::Object(request) => request.is_long(),
            request => request.is_exclusive() || matches!(request, Self::Import { .. }),
        }
    }

    /// Returns whether no other exclusive request may run at the same time.
    pub fn is_exclusive(&self) -> bool {
        match self {
            Self::Import { from, .. } => !matches!(from, ImportSource::File { .. }),
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
            Self::Import { from: ImportSource::Files(place), .. }
            | Self::Import { from: ImportSource::File { place, .. }, .. }
            | Self::Import { from: ImportSource::Addresses { list: place, .. }, .. } => {
                (Direction::ToServer, place)
            }
            _ => return None,
        };
        match place {
            ArchiveLocation::Stream(path) => Some((direction, path)),
            ArchiveLocation::Path(_) => None,
        }
    }
}

/// Executes a request. Blocks on the disk. A long request calls `watch` repeatedly.
pub fn execute(
    store: &Store,
    catalog: &Catalog,
    request: AdminRequest,
    watch: &mut ProgressCallback<'_>,
) -> Result<AdminResponse, CatalogError> {
    match request {
        AdminRequest::CreateAccount { name, settings } => {
            let name = AccountName::parse(&name)?;
            let settings = account_change(AccountSettings { name: None, ..settings })?;
            let account = catalog.accounts().create(NewAccount { name, settings })?;
            Ok(AdminResponse::Account(account_view(catalog, &account)))
        }
        AdminRequest::ListAccounts => {
            let accounts = catalog.accounts().all();
            let views = accounts.iter().map(|account| account_view(catalog, account));
            Ok(AdminResponse::Accounts(views.collect()))
        }
        AdminRequest::EditAccount { account, settings } => {
            let id = account_id(catalog, &account)?;
            let account = catalog.accounts().edit(&id, account_change(settings)?)?;
            Ok(AdminResponse::Account(account_view(catalog, &account)))
        }
        AdminRequest::DeleteAccount { account, force } => {
            let id = account_id(catalog, &account)?;
            let name = account_name(catalog, &id);
            let contents = if force { OnNonEmpty::DeleteToo } else { OnNonEmpty::Refuse };
            let deleted_count = catalog.accounts().delete(&id, contents)?;
            let account = id.to_string();
            Ok(AdminResponse::AccountDeleted(AccountDeletedView { account, name, deleted_count }))
        }
        AdminRequest::SetPassword { account, password } => {
            let id = account_id(catalog, &account)?;
            let ended_session_count =
                catalog.sessions().set_password(&id, None, password, None)? as u64;
            let name = account_name(catalog, &id);
            let account = id.to_string();
            Ok(AdminResponse::PasswordSet(PasswordSetView { account, name, ended_session_count }))
        }
        AdminRequest::InviteAccount { account, public_url } => {
            let id = account_id(catalog, &account)?;
            let invited = catalog.sessions().invite(&id)?;
            Ok(AdminResponse::Invited(InvitedView {
                account: id.to_string(),
                name: account_name(catalog, &id),
                url: invitation_url(public_url.as_deref().unwrap_or_default(), &invited.text),
                expires_at: iso_time(invited.expires_ms),
            }))
        }
        AdminRequest::CreateOrganisation { name, account } => {
            let (name, owner) = (OrganisationName::parse(&name)?, account_id(catalog, &account)?);
            let organisation = catalog.organisations().create(name, &owner)?;
            Ok(AdminResponse::Organisation(organisation_view(catalog, &organisation)))
        }
        AdminRequest::ListOrganisations { account } => {
            let member = account.map(|account| account_id(catalog, &account)).transpose()?;
            let organisations = catalog.organisations().all();
            let asked = organisations.iter().filter(|organisation| {
                member.as_ref().is_none_or(|id| organisation.members.contains_key(id))
            });
            Ok(AdminResponse::Organisations(
                asked.map(|it| organisation_view(catalog, it)).collect(),
            ))
        }
        AdminRequest::RenameOrganisation { organisation, name } => {
            let id = organisation_id(catalog, &organisation)?;
            let renamed = catalog.organisations().rename(&id, OrganisationName::parse(&name)?)?;
            Ok(AdminResponse::Organisation(organisation_view(catalog, &renamed)))
        }
        AdminRequest::DeleteOrganisation { organisation } => {
            let id = organisation_id(catalog, &organisation)?;
            catalog.organisations().delete(&id)?;
            Ok(AdminResponse::OrganisationDeleted(OrganisationDeletedView { id: id.to_string() }))
        }
        AdminRequest::SetMember { organisation, account, role } => {
            let id = organisation_id(catalog, &organisation)?;
            let edited =
                catalog.organisations().set_member(&id, &account_id(catalog, &account)?, role)?;
            Ok(AdminResponse::Organisation(organisation_view(catalog, &edited)))
        }
        AdminRequest::RemoveMember { organisation, account } => {
            let id = organisation_id(catalog, &organisation)?;
            let edited =
                catalog.organisations().remove_member(&id, &account_id(catalog, &account)?)?;
            Ok(AdminResponse::Organisation(organisation_view(catalog, &edited)))
        }
        AdminRequest::SweepAccounts => {
            Ok(AdminResponse::Swept(swept_view(fair_use::sweep(catalog)?)))
        }
        AdminRequest::CreateBucket { name, owner, kind, settings } => {
            let name = new_bucket_name(&name)?;
            let owner = match owner {
                BucketOwner::Account(name) => NewBucketOwner::Account(account_id(catalog, &name)?),
                BucketOwner::Organisation(name) => {
                    NewBucketOwner::Organisation(organisation_id(catalog, &name)?)
                }
            };
            let settings = bucket_change(&name, settings)?;
            let bucket = catalog.buckets().create(NewBucket { name, owner, kind, settings })?;
            Ok(AdminResponse::Bucket(bucket_view(store, &bucket)?))
        }
        AdminRequest::ListBuckets { account } => {
            let owner = account.map(|account| account_id(catalog, &account)).transpose()?;
            let is_asked = |bucket: &Bucket| owner.as_ref().is_none_or(|id| *id == bucket.owner);
            let buckets = catalog.buckets().all();
            let asked = buckets.iter().filter(|bucket| is_asked(bucket));
            Ok(AdminResponse::Buckets(
                asked.map(|it| bucket_view(store, it)).collect::<Result<_, _>>()?,
            ))
        }
        AdminRequest::EditBucket { name, settings } => {
            let name = bucket_name(&name)?;
            let bucket = catalog.buckets().edit(&name, bucket_change(&name, settings)?)?;
            Ok(AdminResponse::Bucket(bucket_view(store, &bucket)?))
        }
        AdminRequest::DeleteBucket { name, force } => {
            let contents = if force { OnNonEmpty::DeleteToo } else { OnNonEmpty::Refuse };
            let deleted_count =
                catalog.buckets().delete(&bucket_name(&name)?, contents)?.finish()?;
            Ok(AdminResponse::BucketDeleted(BucketDeletedView { bucket_name: name, deleted_count }))
        }
        AdminRequest::ListFolders { bucket, after, limit } => {
            let bucket = existing_bucket(catalog, &bucket)?;
            let after = after.map(|after| folder_of(Some(after))).transpose()?;
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            Ok(AdminResponse::Folders(folders_view(store, &bucket.name, after.as_ref(), limit)?))
        }
        AdminRequest::CreateApiKey { account, mut settings } => {
            if settings.scopes.is_empty() {
                settings.scopes = Scope::ALL.to_vec();
            }
            let account = account_id(catalog, &account)?;
            let issued = catalog.api_keys().issue(new_api_key(account, settings)?)?;
            let api_key = api_key_view(catalog, &issued.record);
            let s3 = s3_credentials(catalog, &issued.record.id)?;
            Ok(AdminResponse::ApiKeyIssued(ApiKeyIssuedView { key: issued.text, s3, api_key }))
        }
        AdminRequest::ListApiKeys { account } => {
            let owner = account.map(|account| account_id(catalog, &account)).transpose()?;
            let is_asked = |key: &ApiKey| owner.as_ref().is_none_or(|id| *id == key.account);
            let api_keys = catalog.api_keys().all();
            let asked = api_keys.iter().filter(|api_key| is_asked(api_key));
            Ok(AdminResponse::ApiKeys(
                asked.map(|api_key| api_key_view(catalog, api_key)).collect(),
            ))
        }
        AdminRequest::ShowS3Credentials { id } => {
            let missing = || CatalogError::NotFound(format!("the API key {id:?}"));
            let found = ApiKeyId::parse(&id).and_then(|id| catalog.api_keys().get(&id));
            let shown = s3_credentials(catalog, &found.ok_or_else(missing)?.id)?;
            Ok(AdminResponse::S3Credentials(shown.ok_or_else(missing)?))
        }
        AdminRequest::RevokeApiKey { id } => {
            let missing = || CatalogError::NotFound(format!("the API key {id:?}"));
            let id = ApiKeyId::parse(&id).ok_or_else(missing)?;
            Ok(AdminResponse::ApiKey(api_key_view(catalog, &*catalog.api_keys().revoke(&id)?)))
        }
        AdminRequest::Webhook(request) => webhook_requests::execute(catalog, request),
        AdminRequest::Lifecycle(request) => lifecycle::execute(catalog, request),
        AdminRequest::Link(request) => link_requests::execute(store, catalog, request),
        AdminRequest::Object(request) => objects::execute(store, catalog, request, watch),
        AdminRequest::Stats { segments } => {
            Ok(AdminResponse::Stats(Box::new(stats::stats(store, catalog, segments)?)))
        }
        AdminRequest::Export { bucket, folder, to } => {
            let bucket = existing_bucket(catalog, &bucket)?;
            let job = ArchiveScope { store, catalog, bucket: &bucket, folder: folder_of(folder)? };
            Ok(AdminResponse::Exported(archive::export(&job, &to, watch)?))
        }
        AdminRequest::Import { bucket, folder, from, rules } => {
            let bucket = existing_bucket(catalog, &bucket)?;
            let job = ArchiveScope { store, catalog, bucket: &bucket, folder: folder_of(folder)? };
            let began_ms = catalog.now_ms();
            let mut report = archive::import(&job, &from, rules, watch)?;
            report.duration_ms = catalog.now_ms().saturating_sub(began_ms);
            Ok(AdminResponse::Imported(report))
        }
        AdminRequest::History { bucket, path, since, limit } => {
            let asked =
                HistoryQuery { bucket: &bucket, path: &path, since: since.as_deref(), limit };
            Ok(AdminResponse::History(versions::history(store, catalog, &asked, watch)?))
        }
        AdminRequest::Undelete { bucket, wanted } => Ok(AdminResponse::Undeleted(
            versions::undelete(store, catalog, &bucket, wanted, watch)?,
        )),
        AdminRequest::Backup { to } => {
            Ok(AdminResponse::BackedUp(backup::back_up(store, catalog, &to, watch)?))
        }
        AdminRequest::SelectCompaction(asked) => {
            Ok(AdminResponse::Selection(compaction::selection(store, asked)?))
        }
        AdminRequest::Compact(asked) => {
            Ok(AdminResponse::Compacted(compaction::compact(store, catalog, asked, watch)?))
        }
        AdminRequest::Scrub => Ok(AdminResponse::Scrubbed(stats::scrub(store, watch)?)),
        AdminRequest::Audit(asked) => {
            Ok(AdminResponse::Audit(audit(catalog, &asked, |_| AuditVisibility::All)?))
        }
    }
}

fn existing_bucket(catalog: &Catalog, name: &str) -> Result<Arc<Bucket>, CatalogError> {
    let missing = || CatalogError::BucketNotFound(name.to_owned());
    catalog.buckets().get(&bucket_name(name)?).ok_or_else(missing)
}

fn folder_of(folder: Option<String>) -> Result<FolderKey, CatalogError> {
    prefix_folder(&protocol::object_path::normalize(&folder.unwrap_or_default()))
}

fn account_id(catalog: &Catalog, name_or_id: &str) -> Result<AccountId, CatalogError> {
    match catalog.accounts().find(name_or_id) {
        Some(account) => Ok(account.id.clone()),
        None => Err(CatalogError::NotFound(format!("the account {name_or_id:?}"))),
    }
}

fn account_name(catalog: &Catalog, id: &AccountId) -> String {
    catalog.accounts().get(id).map(|account| account.name.as_str().to_owned()).unwrap_or_default()
}

/// Resolves an organisation by id, or by a name that only one has.
fn organisation_id(catalog: &Catalog, name_or_id: &str) -> Result<OrganisationId, CatalogError> {
    if let Some(id) = OrganisationId::parse(name_or_id)
        && catalog.organisations().get(&id).is_some()
    {
        return Ok(id);
    }
    let organisations = catalog.organisations().all();
    let mut called = organisations.iter().filter(|it| it.name.as_str() == name_or_id);
    match (called.next(), called.next()) {
        (Some(only), None) => Ok(only.id.clone()),
        (Some(_), Some(_)) => Err(CatalogError::InvalidRequest(format!(
            "the name {name_or_id:?} is ambiguous: use the organisation id"
        ))),
        (None, _) => Err(CatalogError::NotFound(format!("the organisation {name_or_id:?}"))),
    }
}

fn bucket_name(name: &str) -> Result<BucketName, CatalogError> {
    BucketName::parse(name).map_err(|_| CatalogError::BucketNotFound(name.to_owned()))
}
