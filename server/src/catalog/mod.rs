//! The catalog: the server's own facts, typed, in memory, and right at every moment.
//!
//! One process owns the store, so what was read at the start and changed together with every commit since is the truth:
//! no request reads or decodes a fact.
//! Promises: a change is durable before it is seen; a change that fails is not seen at all; a bucket that was deleted
//! never comes back with old objects in it.
//! Never here: who may ask for a change, and JSON for people.
//!
//! Everything that changes the catalog waits for the disk: call it where that is allowed.

mod account;
mod api_key;
mod base32;
mod bucket;
mod changes;
mod conduct;
mod record;
mod standing;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

use engine::{BucketName, Clock, Entropy, FactName, Store};

use crate::limits;

pub use self::account::{Account, AccountId, AccountName, Plan, Standing};
pub use self::api_key::{
    ApiKey, ApiKeyId, IssuedKey, KeyLimits, PresentedKey, Scope, prefix_folder,
};
pub use self::bucket::{Access, Bucket, BucketKind, CacheControl, ServeHtml, new_bucket_name};
pub use self::changes::{AccountChange, BucketChange, BucketContents, NewApiKey, NewBucket};
pub use self::conduct::{Conduct, Day};
pub use self::standing::{ChangedBy, StandingChange, StandingHistory};

/// The server's facts.
#[derive(Clone)]
pub struct Catalog(Arc<Inner>);

struct Inner {
    store: Store,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    /// No fact, but of the same life: what accounts did lately.
    conduct: Arc<Conduct>,
    /// Held from reading what is there until the change is seen, so that two changes of one record do not cross. Taken
    /// before `tables`, never inside it.
    changing: Mutex<()>,
    tables: RwLock<Tables>,
}

#[derive(Default)]
struct Tables {
    buckets: BTreeMap<BucketName, Arc<Bucket>>,
    /// Deleted buckets whose objects are still being removed: their names are not free yet.
    removals: BTreeMap<BucketName, ()>,
    accounts: BTreeMap<AccountId, Arc<Account>>,
    api_keys: BTreeMap<ApiKeyId, Arc<ApiKey>>,
    standings: BTreeMap<AccountId, Arc<StandingHistory>>,
}

/// Why the catalog does not do what it was asked.
#[derive(Clone, Debug)]
pub enum CatalogError {
    /// The store failed.
    Store(engine::Error),
    /// A fact is not what this build can read. Nothing was guessed.
    Unreadable { fact: FactName, why: String },
    /// There is one of that name already: what it is.
    Exists(String),
    /// There is none: what was asked for.
    Missing(String),
    /// The request breaks a rule: which.
    Refused(String),
    /// The bucket still holds this many objects.
    NotEmpty(BucketName, u64),
}

impl Catalog {
    /// Reads all facts, and finishes what a stop left half done.
    pub fn open(
        store: Store,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Self, CatalogError> {
        let mut tables = Tables::default();
        each_fact(&store, bucket::PREFIX, |fact, name, bytes| {
            let bucket = Bucket::from_stored(name, record::decode(fact, bytes)?)
                .map_err(|why| record::unreadable(fact, &why))?;
            tables.buckets.insert(bucket.name.clone(), Arc::new(bucket));
            Ok(())
        })?;
        each_fact(&store, bucket::REMOVAL_PREFIX, |fact, name, _| {
            let name = BucketName::parse(name).map_err(|why| record::unreadable(fact, &why))?;
            tables.removals.insert(name, ());
            Ok(())
        })?;
        each_fact(&store, account::PREFIX, |fact, id, bytes| {
            let account = Account::from_stored(id, record::decode(fact, bytes)?)
                .map_err(|why| record::unreadable(fact, &why))?;
            tables.accounts.insert(account.id.clone(), Arc::new(account));
            Ok(())
        })?;
        each_fact(&store, api_key::PREFIX, |fact, id, bytes| {
            let api_key = ApiKey::from_stored(id, record::decode(fact, bytes)?)
                .map_err(|why| record::unreadable(fact, &why))?;
            tables.api_keys.insert(api_key.id.clone(), Arc::new(api_key));
            Ok(())
        })?;
        each_fact(&store, standing::PREFIX, |fact, id, bytes| {
            let history = StandingHistory::from_stored(record::decode(fact, bytes)?);
            let id = AccountId::parse(id)
                .ok_or_else(|| record::unreadable(fact, &"its id is not an account id"))?;
            tables.standings.insert(id, Arc::new(history));
            Ok(())
        })?;
        let unfinished: Vec<BucketName> = tables.removals.keys().cloned().collect();
        let changing = Mutex::new(());
        let conduct = Arc::new(Conduct::new(clock.clone()));
        let tables = RwLock::new(tables);
        let inner = Inner { store, clock, entropy, conduct, changing, tables };
        let catalog = Self(Arc::new(inner));
        for name in unfinished {
            catalog.finish_removal(&name)?;
        }
        Ok(catalog)
    }

    /// The bucket of that name.
    pub fn bucket(&self, name: &BucketName) -> Option<Arc<Bucket>> {
        self.tables().buckets.get(name).cloned()
    }

    /// The account of that id.
    pub fn account(&self, id: &AccountId) -> Option<Arc<Account>> {
        self.tables().accounts.get(id).cloned()
    }

    /// The account that is called or numbered so.
    pub fn account_called(&self, name_or_id: &str) -> Option<Arc<Account>> {
        let by_id = AccountId::parse(name_or_id).and_then(|id| self.account(&id));
        let by_name = || {
            let tables = self.tables();
            tables.accounts.values().find(|account| account.name.as_str() == name_or_id).cloned()
        };
        by_id.or_else(by_name)
    }

    /// The record of a key that was presented, when the secret is right and the key still opens anything.
    pub fn recognise(&self, presented: &PresentedKey) -> Option<Arc<ApiKey>> {
        let api_key = self.tables().api_keys.get(presented.id()).cloned()?;
        (api_key.is(presented) && api_key.is_live(self.0.clock.unix_ms())).then_some(api_key)
    }

    /// Every bucket, by name.
    pub fn buckets(&self) -> Vec<Arc<Bucket>> {
        self.tables().buckets.values().cloned().collect()
    }

    /// Every account, by id.
    pub fn accounts(&self) -> Vec<Arc<Account>> {
        self.tables().accounts.values().cloned().collect()
    }

    /// Every key, revoked ones too, by id.
    pub fn api_keys(&self) -> Vec<Arc<ApiKey>> {
        self.tables().api_keys.values().cloned().collect()
    }

    /// The time that changes get.
    pub fn now_ms(&self) -> u64 {
        self.0.clock.unix_ms()
    }

    /// What accounts did lately.
    pub fn conduct(&self) -> &Arc<Conduct> {
        &self.0.conduct
    }

    /// Whether anybody was here yet: before the first account there is nobody who could upload.
    pub fn has_accounts(&self) -> bool {
        !self.tables().accounts.is_empty()
    }

    fn tables(&self) -> RwLockReadGuard<'_, Tables> {
        self.0.tables.read().unwrap_or_else(PoisonError::into_inner)
    }
}

fn each_fact(
    store: &Store,
    prefix: &str,
    mut take: impl FnMut(&FactName, &str, &[u8]) -> Result<(), CatalogError>,
) -> Result<(), CatalogError> {
    let mut after: Option<FactName> = None;
    loop {
        let page = store.facts(prefix, after.as_ref(), limits::CATALOG_PAGE_FACTS)?;
        let is_last = page.len() < limits::CATALOG_PAGE_FACTS;
        for (fact, bytes) in &page {
            take(fact, fact.as_str().strip_prefix(prefix).unwrap_or_default(), bytes)?;
        }
        after = page.into_iter().next_back().map(|(fact, _)| fact);
        if is_last || after.is_none() {
            return Ok(());
        }
    }
}

impl From<engine::Error> for CatalogError {
    fn from(error: engine::Error) -> Self {
        Self::Store(error)
    }
}

impl From<engine::NameError> for CatalogError {
    fn from(why: engine::NameError) -> Self {
        Self::Refused(why.to_string())
    }
}

impl fmt::Display for CatalogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Unreadable { fact, why } => write!(f, "the fact {fact} cannot be read: {why}"),
            Self::Exists(what) => write!(f, "{what} exists already"),
            Self::Missing(what) => write!(f, "{what} does not exist"),
            Self::Refused(rule) => f.write_str(rule),
            Self::NotEmpty(bucket, objects) => {
                write!(f, "the bucket {bucket} still holds {objects} objects")
            }
        }
    }
}

impl std::error::Error for CatalogError {}
