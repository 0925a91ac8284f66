//! Catalog: the server's own records, typed, in memory, and always current.
//!
//! A single process owns the store, so the records read at the start and changed with every commit since are
//! authoritative: no request reads or decodes a fact. Guarantees: a change is durable before it is visible; a failed
//! change is never visible; a deleted bucket never reappears with old objects in it. Non-goals: authorization of
//! changes, and JSON for clients.
//!
//! Every change of the catalog blocks on the disk.

mod account;
mod account_deletion;
mod accounts;
mod api_error;
mod api_key;
mod api_keys;
mod audit_entry;
mod audit_log;
mod bucket;
mod bucket_deletion;
mod bucket_rules;
mod buckets;
mod change;
pub mod claims;
pub mod commit;
mod cors_rules;
mod dead_letters;
mod error;
mod event;
mod event_delivery;
pub mod expiry;
mod file_audit;
mod file_audit_block;
mod grant;
mod id;
mod import_progress;
mod invitation;
mod job;
mod jobs;
mod last_backup;
mod last_used;
mod lifecycle;
pub mod limits;
mod link_events;
mod link_use;
mod multipart_upload;
pub mod object_attributes;
pub mod object_lock;
pub mod open_uploads;
mod organisation;
mod organisations;
mod outbox;
mod password;
mod pending_upload;
mod public_access;
mod quota;
mod quota_reservation;
mod rate_limit_rejections;
mod record;
mod s3_secret;
mod secret;
mod session;
mod sessions;
mod set_up;
mod shared_link;
mod shared_links;
mod signing_keys;
mod staging;
mod standing_history;
mod stored_text;
#[cfg(test)]
mod tests;
mod text_encoding;
mod upload_rules;
mod usage_history;
mod usage_records;
mod version_locks;
pub mod versions;
mod webhook;
mod webhook_secret;
mod webhooks;

use std::sync::{Arc, Mutex};

use engine::Store;
use engine::clock::Clock;
use engine::rng::Rng;

use self::accounts::AccountTable;
use self::api_keys::ApiKeyTable;
use self::audit_log::AuditTable;
use self::buckets::BucketTable;
use self::change::{ChangedFact, Shared};
use self::file_audit::{FileAuditTable, PendingFileChanges};
use self::jobs::JobTable;
use self::last_used::UnwrittenUses;
use self::link_events::LinkEvents;
use self::organisations::OrganisationTable;
use self::outbox::Outbox;
use self::quota::QuotaLedger;
use self::sessions::SessionTable;
use self::shared_links::SharedLinkTable;
use self::signing_keys::SigningKeyTable;
use self::text_encoding::{base32, hex};
use self::usage_history::UsageHistory;
use self::version_locks::VersionLocks;
use self::webhooks::WebhookTable;

pub use self::account::{Account, AccountName, FairUseStanding, Plan, Role};
pub use self::accounts::{AccountChange, NewAccount};
pub use self::api_key::{ApiKey, IssuedKey, KeyRestrictions, PresentedKey, Scope, prefix_folder};
pub use self::api_keys::NewApiKey;
pub use self::audit_entry::{Actor, ActorKind, AuditAction, AuditEntry};
pub use self::audit_log::{AuditPage, ExpiredObjects};
pub use self::bucket::{Access, Bucket, BucketKind, ServeHtml, new_bucket_name, parse_placeholder};
pub use self::bucket_deletion::{BucketDeletion, OnNonEmpty};
pub use self::bucket_rules::{AllowedTypes, CacheControl, CorsOrigins};
pub use self::buckets::{BucketChange, NewBucket, NewBucketOwner};
pub use self::commit::ObjectBatch;
pub use self::cors_rules::{CorsRule, check_rules, rule_for};
pub use self::error::CatalogError;
pub use self::event::{
    DeadLetter, DeliveryState, EventContent, EventKind, EventPattern, ObjectEvent, QueuedEvent,
};
pub use self::event_delivery::{DeliveryFailure, DeliveryLease, DueEvent, NextAttempt};
pub use self::file_audit::FileAuditId;
pub use self::grant::{Grant, Issuer, Purpose, ThumbnailChoice, TokenId, UploadParams};
pub use self::id::{
    AccountId, ApiKeyId, JobId, OrganisationId, SessionId, SharedLinkId, WebhookId,
};
pub use self::invitation::{Invitation, IssuedInvitation};
pub use self::job::{
    Job, JobEnd, JobError, JobFailure, JobProgress, JobSpec, JobState, NewJob, OnConflict,
};
pub use self::last_backup::LastBackup;
pub use self::lifecycle::{Expiration, LifecycleRule, check_lifecycle};
pub use self::link_events::LinkEvent;
pub use self::link_use::LinkUse;
pub use self::multipart_upload::{MultipartUpload, UploadChecksum, UploadedPart};
pub use self::organisation::{MemberRole, Organisation, OrganisationName};
pub use self::outbox::{EventCounts, OutboxTotals};
pub use self::password::{Password, PasswordHash};
pub use self::pending_upload::PendingUpload;
pub use self::public_access::PublicAccessBlock;
pub use self::quota::{
    Quota, QuotaChange, QuotaDecision, QuotaExceeded, QuotaReservation, StoredAmount,
};
pub use self::quota_reservation::QuotaDelta;
pub use self::rate_limit_rejections::RateLimitRejections;
pub use self::secret::{IssuedSecret, SecretHash};
pub use self::session::{ClientInfo, Session, SessionInfo, StartedSession};
pub use self::set_up::{FirstBucket, NewSetup, SetupResult};
pub use self::shared_link::{LinkKind, LinkLayout, LinkSecret, LinkState, SharedLink};
pub use self::shared_links::{NewSharedLink, SharedLinkChange};
pub use self::staging::{StagedTotals, StagedUpload, Staging};
pub use self::standing_history::{ChangedBy, StandingChange, StandingHistory};
pub use self::upload_rules::{
    AskName, UploadReservation, UploadRules, UploadRulesChange, UploadTally,
};
pub use self::usage_history::{UsagePoint, UsageScope, UsageStep};
pub use self::webhook::{Webhook, parse_event_patterns};
pub use self::webhook_secret::WebhookSecret;
pub use self::webhooks::{NewWebhook, WebhookChange};

/// Catalog, with the author of changes through it: the server itself if there is none.
#[derive(Clone)]
pub struct Catalog {
    state: Arc<State>,
    author: Option<Arc<Actor>>,
}

struct State {
    store: Store,
    clock: Arc<dyn Clock>,
    rng: Arc<dyn Rng>,
    rate_limit_rejections: Arc<RateLimitRejections>,
    /// Lock of a [`change::Change`]. Taken before the lock of a table, never inside it.
    writer: Mutex<()>,
    accounts: Shared<AccountTable>,
    buckets: Shared<BucketTable>,
    organisations: Shared<OrganisationTable>,
    api_keys: Shared<ApiKeyTable>,
    signing_keys: Shared<SigningKeyTable>,
    sessions: Shared<SessionTable>,
    webhooks: Shared<WebhookTable>,
    jobs: Shared<JobTable>,
    shared_links: Shared<SharedLinkTable>,
    audit: Shared<AuditTable>,
    file_audit: Shared<FileAuditTable>,
    /// Changes of files that are not in the file audit yet.
    file_changes: PendingFileChanges,
    ledger: QuotaLedger,
    /// Unfinished uploads.
    staging: Staging,
    unwritten: UnwrittenUses<ApiKeyId>,
    /// Sessions whose last use is not persisted yet.
    unwritten_sessions: UnwrittenUses<SessionId>,
    /// Links whose use is not persisted yet.
    unwritten_link_uses: UnwrittenUses<SharedLinkId>,
    /// Events of links that are not in the audit log yet.
    link_events: LinkEvents,
    /// Pending webhook events.
    outbox: Outbox,
    /// Locks for changes of versions.
    version_locks: VersionLocks,
    usage_history: UsageHistory,
}

/// Declares the view of each aggregate, with its methods, and the accessor that returns it.
macro_rules! aggregates {
    ($($what:literal $view:ident $accessor:ident;)*) => {
        $(
            #[doc = concat!("Aggregate: ", $what, ".")]
            #[derive(Clone, Copy)]
            pub struct $view<'a>(&'a Catalog);
        )*

        impl Catalog {
            $(
                #[doc = concat!("Returns the aggregate of ", $what, ".")]
                pub fn $accessor(&self) -> $view<'_> {
                    $view(self)
                }
            )*
        }
    };
}

aggregates! {
    "accounts and their standings" Accounts accounts;
    "buckets and their deletions" Buckets buckets;
    "quotas and reservations" Quotas quotas;
    "API keys and S3 secrets" ApiKeys api_keys;
    "signing keys, grants and used tokens" Tokens tokens;
    "sessions, passwords and invitations" Sessions sessions;
    "organisations and their members" Organisations organisations;
    "webhooks" Webhooks webhooks;
    "webhook events and dead letters" Deliveries deliveries;
    "jobs" Jobs jobs;
    "shared links" SharedLinks shared_links;
    "the usage history" Usage usage;
    "the audit log" Audit audit;
}

impl Catalog {
    /// Loads all facts. [`Buckets::resume_deletions`] completes interrupted operations.
    pub fn open(
        store: Store,
        clock: Arc<dyn Clock>,
        rng: Arc<dyn Rng>,
    ) -> Result<Self, CatalogError> {
        let (buckets, webhooks) = (Shared::load(&store)?, Shared::load(&store)?);
        let outbox = Outbox::load(&store, &webhooks.read(), &buckets.read())?;
        let shared_links: Shared<SharedLinkTable> = Shared::load(&store)?;
        let staging = Staging::open(&store, |id| shared_links.read().get(id))?;
        let state = State {
            accounts: Shared::load(&store)?,
            organisations: Shared::load(&store)?,
            api_keys: Shared::load(&store)?,
            signing_keys: Shared::load(&store)?,
            sessions: Shared::load(&store)?,
            jobs: Shared::load(&store)?,
            audit: Shared::load(&store)?,
            file_audit: Shared::load(&store)?,
            file_changes: PendingFileChanges::default(),
            buckets,
            webhooks,
            outbox,
            shared_links,
            staging,
            usage_history: UsageHistory::new(clock.unix_ms()),
            rate_limit_rejections: Arc::new(RateLimitRejections::new(clock.clone())),
            store,
            clock,
            rng,
            writer: Mutex::default(),
            ledger: QuotaLedger::default(),
            unwritten: UnwrittenUses::default(),
            unwritten_sessions: UnwrittenUses::default(),
            unwritten_link_uses: UnwrittenUses::default(),
            link_events: LinkEvents::default(),
            version_locks: VersionLocks::default(),
        };
        Ok(Self { state: Arc::new(state), author: None })
    }

    /// Returns the same catalog on behalf of an author: changes through it are recorded as theirs.
    pub fn acting_as(&self, actor: impl Into<Arc<Actor>>) -> Self {
        Self { state: self.state.clone(), author: Some(actor.into()) }
    }

    /// Returns the unfinished uploads.
    pub fn staging(&self) -> &Staging {
        &self.state.staging
    }

    /// Returns the timestamp of changes.
    pub fn now_ms(&self) -> u64 {
        self.state.clock.unix_ms()
    }

    /// Returns the requests of accounts that rate limits rejected recently.
    pub fn rate_limit_rejections(&self) -> &Arc<RateLimitRejections> {
        &self.state.rate_limit_rejections
    }
}

impl State {
    /// Applies changed facts to the tables, in order within a table.
    fn apply(&self, facts: &[ChangedFact]) -> Result<(), CatalogError> {
        self.accounts.apply(facts)?;
        self.buckets.apply(facts)?;
        self.organisations.apply(facts)?;
        self.api_keys.apply(facts)?;
        self.signing_keys.apply(facts)?;
        self.sessions.apply(facts)?;
        self.webhooks.apply(facts)?;
        self.jobs.apply(facts)?;
        self.shared_links.apply(facts)?;
        self.audit.apply(facts)?;
        self.file_audit.apply(facts)
    }
}
