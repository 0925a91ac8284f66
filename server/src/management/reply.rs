//! Replies to management requests.
//!
//! Non-goals: display.

use catalog::versions;
use catalog::{
    Access, Account, ApiKey, ApiKeyId, Bucket, BucketKind, Catalog, CatalogError, FairUseStanding,
    MemberRole, Organisation, Plan, Role, Scope, ServeHtml,
};
use engine::progress::WorkProgress;
use engine::stats::UsagePage;
use engine::{BucketName, FolderKey, Store, Usage};
use jobs::archive::{ExportReport, ImportReport};
use protocol::reserved_paths::INVITATION_PATH;
use protocol::time_format::iso_time;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    AuditView, BackedUpView, CompactedView, DeadLettersForgottenView, DeadLettersRetriedView,
    DeadLettersView, HistoryView, LifecycleRuleView, LifecycleRulesView, LinkView, ObjectView,
    ObjectWrittenView, ObjectsDeletedView, ObjectsView, PresignedView, ScrubbedView, SelectionView,
    StandingChangeView, StatsView, SweepReportView, UndeletedView, UsageView, WebhookCreatedView,
    WebhookDeletedView, WebhookTestedView, WebhookView, standing_changes,
};

/// Progress of a long request; all zero while unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProgressView {
    pub done_bytes: u64,
    pub total_bytes: u64,
    pub done_items: u64,
    pub total_items: u64,
}

impl From<WorkProgress> for ProgressView {
    fn from(progress: WorkProgress) -> Self {
        let WorkProgress { done_bytes, total_bytes, done_items, total_items } = progress;
        Self { done_bytes, total_bytes, done_items, total_items }
    }
}

impl From<ProgressView> for WorkProgress {
    fn from(progress: ProgressView) -> Self {
        let ProgressView { done_bytes, total_bytes, done_items, total_items } = progress;
        Self { done_bytes, total_bytes, done_items, total_items }
    }
}

/// Reply to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AdminResponse {
    Account(AccountView),
    Accounts(Vec<AccountView>),
    AccountDeleted(AccountDeletedView),
    Swept(SweepReportView),
    PasswordSet(PasswordSetView),
    /// The only reply with the invitation.
    Invited(InvitedView),
    Bucket(BucketView),
    Buckets(Vec<BucketView>),
    BucketDeleted(BucketDeletedView),
    Folders(FoldersView),
    Organisation(OrganisationView),
    Organisations(Vec<OrganisationView>),
    OrganisationDeleted(OrganisationDeletedView),
    /// The only reply with the key itself.
    ApiKeyIssued(ApiKeyIssuedView),
    S3Credentials(S3CredentialsView),
    ApiKey(ApiKeyView),
    ApiKeys(Vec<ApiKeyView>),
    /// The only reply with the webhook secret.
    WebhookCreated(Box<WebhookCreatedView>),
    Webhook(Box<WebhookView>),
    Webhooks(Vec<WebhookView>),
    WebhookDeleted(WebhookDeletedView),
    WebhookTested(WebhookTestedView),
    LinkCreated(Box<LinkView>),
    Link(Box<LinkView>),
    Links(Vec<LinkView>),
    DeadLetters(DeadLettersView),
    DeadLettersRetried(DeadLettersRetriedView),
    DeadLettersForgotten(DeadLettersForgottenView),
    Lifecycle(LifecycleRulesView),
    Objects(ObjectsView),
    Object(Box<ObjectView>),
    Usage(UsageView),
    ObjectRead(ObjectWrittenView),
    ObjectCopied(ObjectWrittenView),
    ObjectMoved(ObjectWrittenView),
    ObjectsDeleted(ObjectsDeletedView),
    Presigned(PresignedView),
    Stats(Box<StatsView>),
    Exported(ExportReport),
    Imported(ImportReport),
    History(HistoryView),
    Audit(AuditView),
    Undeleted(UndeletedView),
    BackedUp(BackedUpView),
    Selection(SelectionView),
    Compacted(CompactedView),
    Scrubbed(ScrubbedView),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccountView {
    pub id: String,
    pub name: String,
    pub role: Role,
    pub plan: Plan,
    pub standing: FairUseStanding,
    /// Standing changes, oldest first; empty if the standing never changed.
    pub standing_changes: Vec<StandingChangeView>,
    /// Whether the account has a password.
    pub has_password: bool,
    #[schema(required)]
    pub storage_bytes_max: Option<u64>,
    #[schema(required)]
    pub object_count_max: Option<u64>,
    pub created_at: String,
}

/// Deleted account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AccountDeletedView {
    pub account: String,
    pub name: String,
    /// Number of objects deleted with its buckets.
    pub deleted_count: u64,
}

/// Account with a new password.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PasswordSetView {
    pub account: String,
    pub name: String,
    /// Number of ended sessions.
    pub ended_session_count: u64,
}

/// Created invitation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InvitedView {
    pub account: String,
    pub name: String,
    /// Link, or only its path if the base URL is unknown.
    pub url: String,
    pub expires_at: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BucketView {
    pub bucket_name: String,
    pub account: String,
    #[schema(required)]
    pub organisation: Option<String>,
    #[serde(rename = "type")]
    pub kind: BucketKind,
    pub access: Access,
    #[schema(required)]
    pub placeholder: Option<String>,
    #[schema(required)]
    pub cache_control: Option<String>,
    pub cors_origins: Vec<String>,
    pub allowed_types: Vec<String>,
    #[schema(required)]
    pub file_bytes_max: Option<u64>,
    #[schema(required)]
    pub quota_bytes: Option<u64>,
    #[schema(required)]
    pub quota_objects: Option<u64>,
    pub serve_html: bool,
    pub thumbnails: bool,
    /// Whether search engines may index the objects of a public bucket.
    pub index: bool,
    /// Whether text-like files are delivered compressed to clients that accept it.
    pub compression: bool,
    pub lifecycle: Vec<LifecycleRuleView>,
    pub created_at: String,
    pub updated_at: String,
    pub object_count: u64,
    pub total_bytes: u64,
}

/// Page of folders of a bucket, by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FoldersView {
    pub folders: Vec<FolderView>,
    /// Last folder of the page; `null` on the last page.
    #[schema(required)]
    pub next_cursor: Option<String>,
}

/// Folder with the totals of its files at any depth.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FolderView {
    pub folder: String,
    pub object_count: u64,
    pub total_bytes: u64,
    /// Time of the latest change; `null` if unknown.
    #[serde(default)]
    #[schema(required)]
    pub modified_at: Option<String>,
    /// Whether `objectCount` and `totalBytes` are exact; otherwise, they are lower bounds.
    #[serde(default)]
    pub is_exact: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BucketDeletedView {
    pub bucket_name: String,
    pub deleted_count: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrganisationView {
    pub id: String,
    pub name: String,
    /// Id of the owning account.
    pub account: String,
    pub members: Vec<MemberView>,
    /// Invited accounts that have not accepted yet, without their names.
    pub invited: Vec<InvitedMemberView>,
    pub created_at: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemberView {
    pub account: String,
    pub name: String,
    pub role: MemberRole,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InvitedMemberView {
    pub account: String,
    pub role: MemberRole,
}

/// Invitation of the account to an organisation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MembershipInvitationView {
    /// Organisation id.
    pub id: String,
    /// Organisation name.
    pub name: String,
    pub role: MemberRole,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrganisationDeletedView {
    pub id: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiKeyView {
    pub id: String,
    pub account: String,
    pub name: String,
    pub scopes: Vec<Scope>,
    #[schema(required)]
    pub bucket_name: Option<String>,
    pub prefix: String,
    pub created_at: String,
    #[schema(required)]
    pub expires_at: Option<String>,
    /// Time of the last use, to the hour.
    #[schema(required)]
    pub last_used_at: Option<String>,
    #[schema(required)]
    pub revoked_at: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiKeyIssuedView {
    pub key: String,
    /// S3 credentials, if there is an S3 gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub s3: Option<S3CredentialsView>,
    #[serde(flatten)]
    pub api_key: ApiKeyView,
}

/// S3 credentials.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct S3CredentialsView {
    pub access_key_id: String,
    pub secret_access_key: String,
}

/// Returns the S3 credentials of a key; `None` if the store has no S3 secret. Blocks on the disk.
pub fn s3_credentials(
    catalog: &Catalog,
    id: &ApiKeyId,
) -> Result<Option<S3CredentialsView>, CatalogError> {
    catalog.api_keys().ensure_s3_secret()?;
    let secret = catalog.api_keys().s3_secret(id);
    Ok(secret.map(|secret_access_key| S3CredentialsView {
        access_key_id: id.to_string(),
        secret_access_key,
    }))
}

/// Converts an account, for its owner and the operator.
pub fn account_view(catalog: &Catalog, account: &Account) -> AccountView {
    AccountView {
        id: account.id.to_string(),
        name: account.name.as_str().to_owned(),
        role: account.role,
        plan: account.plan,
        standing: account.standing,
        standing_changes: standing_changes(catalog, &account.id),
        has_password: catalog.sessions().password_hash(&account.id).is_some(),
        storage_bytes_max: account.quota.bytes_max,
        object_count_max: account.quota.objects_max,
        created_at: iso_time(account.created_ms),
    }
}

/// Returns the URL of an invitation.
pub fn invitation_url(public_url: &str, text: &str) -> String {
    format!("{}{INVITATION_PATH}#{text}", public_url.trim_end_matches('/'))
}

/// Converts a bucket, with its usage including noncurrent versions.
pub fn bucket_view(store: &Store, bucket: &Bucket) -> Result<BucketView, CatalogError> {
    let mut usage = store.bucket_usage(&bucket.name)?;
    if bucket.versioning.is_some() {
        let versions = versions::usage(store, &bucket.name)?;
        usage.objects += versions.objects;
        usage.bytes += versions.bytes;
    }
    Ok(BucketView {
        bucket_name: bucket.name.to_string(),
        account: bucket.owner.to_string(),
        organisation: bucket.organisation.as_ref().map(ToString::to_string),
        kind: bucket.kind,
        access: bucket.access,
        placeholder: bucket.placeholder.clone(),
        cache_control: bucket.cache_control.as_ref().map(|value| value.as_str().to_owned()),
        cors_origins: bucket.cors_origins.to_list(),
        allowed_types: bucket.allowed_types.to_list(),
        file_bytes_max: bucket.file_bytes_max,
        quota_bytes: bucket.quota.bytes_max,
        quota_objects: bucket.quota.objects_max,
        serve_html: bucket.serve_html == ServeHtml::AsPages,
        thumbnails: bucket.thumbnails,
        index: bucket.index,
        compression: bucket.compression,
        lifecycle: bucket.lifecycle.iter().map(LifecycleRuleView::from).collect(),
        created_at: iso_time(bucket.created_ms),
        updated_at: iso_time(bucket.updated_ms),
        object_count: usage.objects,
        total_bytes: usage.bytes,
    })
}

/// Returns a page of a bucket's top-level folders after one of them, with their usage.
pub fn folders_view(
    store: &Store,
    bucket: &BucketName,
    after: Option<&FolderKey>,
    limit: usize,
) -> Result<FoldersView, CatalogError> {
    let UsagePage { folders, more } = store.folder_usages(bucket, after, limit)?;
    let last = folders.last().filter(|_| more);
    let next_cursor = last.map(|(folder, _)| folder.to_string());
    let view = |(folder, usage): &(FolderKey, Usage)| FolderView {
        folder: folder.to_string(),
        object_count: usage.objects,
        total_bytes: usage.bytes,
        modified_at: None,
        is_exact: true,
    };
    Ok(FoldersView { folders: folders.iter().map(view).collect(), next_cursor })
}

/// Converts an organisation, with its members and their names.
pub fn organisation_view(catalog: &Catalog, organisation: &Organisation) -> OrganisationView {
    let member = |(id, role): (&_, &MemberRole)| {
        let name = catalog.accounts().get(id).map(|account| account.name.as_str().to_owned());
        MemberView { account: id.to_string(), name: name.unwrap_or_default(), role: *role }
    };
    OrganisationView {
        id: organisation.id.to_string(),
        name: organisation.name.as_str().to_owned(),
        account: organisation.owner.to_string(),
        members: organisation.members.iter().map(member).collect(),
        invited: organisation
            .invited
            .iter()
            .map(|(id, role)| InvitedMemberView { account: id.to_string(), role: *role })
            .collect(),
        created_at: iso_time(organisation.created_ms),
    }
}

/// Converts an API key, without its secret.
pub fn api_key_view(catalog: &Catalog, api_key: &ApiKey) -> ApiKeyView {
    ApiKeyView {
        id: api_key.id.to_string(),
        account: api_key.account.to_string(),
        name: api_key.name.clone(),
        scopes: api_key.scopes.clone(),
        bucket_name: api_key.limits.bucket.as_ref().map(ToString::to_string),
        prefix: api_key.limits.prefix.to_string(),
        created_at: iso_time(api_key.created_ms),
        expires_at: api_key.limits.expires_ms.map(iso_time),
        last_used_at: catalog.api_keys().last_use_ms(&api_key.id).map(iso_time),
        revoked_at: api_key.revoked_ms.map(iso_time),
    }
}
