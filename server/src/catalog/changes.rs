//! Changes of the catalog: each is one durable batch, then seen by all.
//!
//! Promises: as `catalog`. The order is always the same: take the lock for changes, check, commit, show.
//! Never here: reading.

use std::sync::{Arc, MutexGuard, PoisonError};

use engine::{Batch, BucketName, ObjectKey, Precondition, Store, limits};

use super::record::encode;
use super::{
    Access, Account, AccountId, AccountName, ApiKey, ApiKeyId, Bucket, BucketKind, CacheControl,
    Catalog, CatalogError, ChangedBy, IssuedKey, KeyLimits, Plan, Scope, ServeHtml, Standing,
    Tables, bucket,
};
use crate::limits::CATALOG_RECORDS_MAX;

/// What a new bucket is to be.
pub struct NewBucket {
    pub name: BucketName,
    pub owner: AccountId,
    pub kind: BucketKind,
    pub settings: BucketChange,
}

/// What is to change of a bucket; `None` leaves a field as it is.
#[derive(Default)]
pub struct BucketChange {
    pub access: Option<Access>,
    /// `Some(None)` takes the placeholder away.
    pub placeholder: Option<Option<ObjectKey>>,
    /// `Some(None)` goes back to the default.
    pub cache_control: Option<Option<CacheControl>>,
    pub serve_html: Option<ServeHtml>,
}

/// What is to change of an account; `None` leaves a field as it is.
#[derive(Default)]
pub struct AccountChange {
    pub name: Option<AccountName>,
    pub plan: Option<Plan>,
    pub standing: Option<Standing>,
}

/// What a new key is to open.
pub struct NewApiKey {
    pub account: AccountId,
    pub name: String,
    pub scopes: Vec<Scope>,
    pub limits: KeyLimits,
}

/// Whether a bucket may be deleted with what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketContents {
    MustBeGone,
    DeleteToo,
}

impl Catalog {
    /// Makes an account.
    pub fn create_account(
        &self,
        name: AccountName,
        plan: Plan,
    ) -> Result<Arc<Account>, CatalogError> {
        let _changing = self.change();
        self.require_free_name(&name, None)?;
        room(self.tables().accounts.len(), "accounts")?;
        let account = Account {
            id: AccountId::issue(&*self.0.entropy),
            name,
            plan,
            standing: Standing::Good,
            created_ms: self.0.clock.unix_ms(),
        };
        let fact = account.id.fact()?;
        let batch = Batch::new()
            .require(Precondition::FactAbsent(fact.clone()))
            .put_fact(fact.clone(), encode(&fact, &account.stored())?);
        self.0.store.commit(batch)?;
        let account = Arc::new(account);
        self.show(|tables| tables.accounts.insert(account.id.clone(), account.clone()));
        Ok(account)
    }

    /// Changes an account.
    pub fn edit_account(
        &self,
        id: &AccountId,
        change: AccountChange,
    ) -> Result<Arc<Account>, CatalogError> {
        let _changing = self.change();
        let mut account = Account::clone(&*self.require_account(id)?);
        if let Some(name) = change.name {
            self.require_free_name(&name, Some(id))?;
            account.name = name;
        }
        let standing = account.standing;
        account.plan = change.plan.unwrap_or(account.plan);
        account.standing = change.standing.unwrap_or(standing);
        self.put_account(account, standing, ChangedBy::Operator, "set by the operator")
    }

    /// Makes a bucket.
    pub fn create_bucket(&self, new: NewBucket) -> Result<Arc<Bucket>, CatalogError> {
        let _changing = self.change();
        self.require_account(&new.owner)?;
        let what = format!("the bucket {}", new.name);
        if self.bucket(&new.name).is_some() {
            return Err(CatalogError::Exists(what));
        }
        if self.tables().removals.contains_key(&new.name) {
            return Err(CatalogError::Exists(format!("{what} is still being deleted: it")));
        }
        room(self.tables().buckets.len(), "buckets")?;
        let now_ms = self.0.clock.unix_ms();
        let mut bucket = Bucket {
            name: new.name,
            owner: new.owner,
            kind: new.kind,
            access: Access::default(),
            placeholder: None,
            cache_control: None,
            serve_html: ServeHtml::default(),
            created_ms: now_ms,
            updated_ms: now_ms,
        };
        new.settings.apply(&mut bucket);
        let fact = bucket.fact()?;
        let batch = Batch::new()
            .require(Precondition::FactAbsent(fact.clone()))
            .put_fact(fact.clone(), encode(&fact, &bucket.stored())?);
        self.0.store.commit(batch)?;
        Ok(self.show_bucket(bucket))
    }

    /// Changes a bucket.
    pub fn edit_bucket(
        &self,
        name: &BucketName,
        change: BucketChange,
    ) -> Result<Arc<Bucket>, CatalogError> {
        let _changing = self.change();
        let mut bucket = Bucket::clone(&*self.require_bucket(name)?);
        change.apply(&mut bucket);
        bucket.updated_ms = self.0.clock.unix_ms();
        let fact = bucket.fact()?;
        self.0
            .store
            .commit(Batch::new().put_fact(fact.clone(), encode(&fact, &bucket.stored())?))?;
        Ok(self.show_bucket(bucket))
    }

    /// Deletes a bucket; answers how many objects went with it.
    ///
    /// First the bucket itself goes, and a fact takes its place that keeps the name: from then on no upload into it
    /// commits. Then its objects, then that fact. A stop in between is finished by the next opening.
    pub fn delete_bucket(
        &self,
        name: &BucketName,
        contents: BucketContents,
    ) -> Result<u64, CatalogError> {
        let _changing = self.change();
        let bucket = self.require_bucket(name)?;
        self.require_emptiness(name, contents)?;
        let (fact, removal) = (bucket.fact()?, bucket::removal_fact(name)?);
        let stored = encode(&fact, &bucket.stored())?;
        let batch = Batch::new()
            .delete_fact(fact.clone())
            .put_fact(removal.clone(), bytes::Bytes::from_static(b"{}"));
        self.0.store.commit(batch)?;
        self.show(|tables| {
            tables.buckets.remove(name);
            tables.removals.insert(name.clone(), ());
        });
        // An upload may have come in between the first look and the commit; it was acknowledged, so it must stay.
        if let Err(occupied) = self.require_emptiness(name, contents) {
            self.0.store.commit(Batch::new().put_fact(fact, stored).delete_fact(removal))?;
            self.show(|tables| {
                tables.removals.remove(name);
                tables.buckets.insert(name.clone(), bucket.clone());
            });
            return Err(occupied);
        }
        self.finish_removal(name)
    }

    /// Removes the objects of a deleted bucket, then frees its name.
    pub(super) fn finish_removal(&self, name: &BucketName) -> Result<u64, CatalogError> {
        let removed = remove_objects(&self.0.store, name)?;
        self.0.store.commit(Batch::new().delete_fact(bucket::removal_fact(name)?))?;
        self.show(|tables| tables.removals.remove(name));
        Ok(removed)
    }

    /// Makes a key. Its text is in the answer and nowhere else.
    pub fn issue_api_key(&self, new: NewApiKey) -> Result<IssuedKey, CatalogError> {
        let _changing = self.change();
        self.require_account(&new.account)?;
        if let Some(name) = &new.limits.bucket {
            let owns = self.bucket(name).is_some_and(|bucket| bucket.owner == new.account);
            if !owns {
                return Err(CatalogError::Missing(format!("the bucket {name}")));
            }
        }
        room(self.tables().api_keys.len(), "API keys")?;
        let now_ms = self.0.clock.unix_ms();
        let entropy = &*self.0.entropy;
        let issued =
            ApiKey::issue(entropy, new.account, &new.name, &new.scopes, new.limits, now_ms)?;
        let fact = issued.record.id.fact()?;
        let batch = Batch::new()
            .require(Precondition::FactAbsent(fact.clone()))
            .put_fact(fact.clone(), encode(&fact, &issued.record.stored())?);
        self.0.store.commit(batch)?;
        self.show_api_key(issued.record.clone());
        Ok(issued)
    }

    /// Takes a key out of use, for ever. A key that is out of use already stays as it is.
    pub fn revoke_api_key(&self, id: &ApiKeyId) -> Result<Arc<ApiKey>, CatalogError> {
        let _changing = self.change();
        let found = self.tables().api_keys.get(id).cloned();
        let found = found.ok_or_else(|| CatalogError::Missing(format!("the API key {id}")))?;
        if found.revoked_ms.is_some() {
            return Ok(found);
        }
        let mut revoked = ApiKey::clone(&found);
        revoked.revoked_ms = Some(self.0.clock.unix_ms());
        let fact = id.fact()?;
        self.0
            .store
            .commit(Batch::new().put_fact(fact.clone(), encode(&fact, &revoked.stored())?))?;
        Ok(self.show_api_key(revoked))
    }

    pub(super) fn change(&self) -> MutexGuard<'_, ()> {
        self.0.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets everybody see what is durable now.
    pub(super) fn show<T>(&self, change: impl FnOnce(&mut Tables) -> T) -> T {
        change(&mut self.0.tables.write().unwrap_or_else(PoisonError::into_inner))
    }

    fn show_bucket(&self, bucket: Bucket) -> Arc<Bucket> {
        let bucket = Arc::new(bucket);
        self.show(|tables| tables.buckets.insert(bucket.name.clone(), bucket.clone()));
        bucket
    }

    fn show_api_key(&self, api_key: ApiKey) -> Arc<ApiKey> {
        let api_key = Arc::new(api_key);
        self.show(|tables| tables.api_keys.insert(api_key.id.clone(), api_key.clone()));
        api_key
    }

    pub(super) fn require_account(&self, id: &AccountId) -> Result<Arc<Account>, CatalogError> {
        self.account(id).ok_or_else(|| CatalogError::Missing(format!("the account {id}")))
    }

    fn require_bucket(&self, name: &BucketName) -> Result<Arc<Bucket>, CatalogError> {
        self.bucket(name).ok_or_else(|| CatalogError::Missing(format!("the bucket {name}")))
    }

    fn require_free_name(
        &self,
        name: &AccountName,
        besides: Option<&AccountId>,
    ) -> Result<(), CatalogError> {
        match self.account_called(name.as_str()) {
            Some(other) if Some(&other.id) != besides => {
                Err(CatalogError::Exists(format!("the account {:?}", name.as_str())))
            }
            _ => Ok(()),
        }
    }

    fn require_emptiness(
        &self,
        name: &BucketName,
        contents: BucketContents,
    ) -> Result<(), CatalogError> {
        let usage = self.0.store.bucket_usage(name)?;
        let objects = usage.objects + usage.derived_objects;
        match contents {
            BucketContents::MustBeGone if objects > 0 => {
                Err(CatalogError::NotEmpty(name.clone(), objects))
            }
            _ => Ok(()),
        }
    }
}

impl BucketChange {
    fn apply(self, bucket: &mut Bucket) {
        bucket.access = self.access.unwrap_or(bucket.access);
        bucket.serve_html = self.serve_html.unwrap_or(bucket.serve_html);
        if let Some(placeholder) = self.placeholder {
            bucket.placeholder = placeholder;
        }
        if let Some(cache_control) = self.cache_control {
            bucket.cache_control = cache_control;
        }
    }
}

fn room(count: usize, what: &str) -> Result<(), CatalogError> {
    if count < CATALOG_RECORDS_MAX {
        return Ok(());
    }
    Err(CatalogError::Refused(format!(
        "there are {CATALOG_RECORDS_MAX} {what} already, which is the most"
    )))
}

fn remove_objects(store: &Store, bucket: &BucketName) -> Result<u64, CatalogError> {
    let mut removed = 0;
    loop {
        let page = store.list_keys(bucket, "", None, limits::LIST_PAGE_MAX)?;
        if page.objects.is_empty() {
            return Ok(removed);
        }
        let batch = page
            .objects
            .iter()
            .fold(Batch::new(), |batch, object| batch.delete(object.name().clone()));
        removed += store.commit(batch)?.deleted_count as u64;
    }
}

#[cfg(test)]
mod tests {
    use engine::{
        Background, Create, Entropy, ObjectName, OpenOptions, PutOptions, SeededEntropy, SimClock,
        Surroundings,
    };

    use super::*;
    use crate::catalog::{PresentedKey, new_bucket_name};

    struct World {
        store: Store,
        clock: Arc<SimClock>,
        entropy: Arc<dyn Entropy>,
    }

    impl World {
        fn new() -> Self {
            let clock = Arc::new(SimClock::at(1_700_000_000_000));
            let entropy: Arc<dyn Entropy> = Arc::new(SeededEntropy::new(7));
            let disk = Arc::new(engine::disk::sim::SimDisk::with_seed(7));
            let surroundings =
                Surroundings { disk, clock: clock.clone(), entropy: entropy.clone() };
            let mut options = OpenOptions::new(Create::IfMissing);
            options.background = Background::Threads;
            let (store, _) = Store::open(surroundings, options).unwrap();
            Self { store, clock, entropy }
        }

        fn catalog(&self) -> Catalog {
            Catalog::open(self.store.clone(), self.clock.clone(), self.entropy.clone()).unwrap()
        }

        fn put(&self, bucket: &str, key: &str) {
            let name =
                ObjectName::new(BucketName::parse(bucket).unwrap(), ObjectKey::parse(key).unwrap());
            let options = PutOptions { content_type: "text/plain".into(), ..PutOptions::default() };
            let staged = self.store.upload().finish().unwrap();
            self.store.commit(Batch::new().put(name, staged, options)).unwrap();
        }
    }

    fn new_bucket(owner: &Account, name: &str) -> NewBucket {
        NewBucket {
            name: new_bucket_name(name).unwrap(),
            owner: owner.id.clone(),
            kind: BucketKind::Standard,
            settings: BucketChange::default(),
        }
    }

    #[test]
    fn what_was_made_is_there_after_opening_again() {
        let world = World::new();
        let catalog = world.catalog();
        assert!(!catalog.has_accounts());
        let account =
            catalog.create_account(AccountName::parse("Ann").unwrap(), Plan::Pro).unwrap();
        let mut new = new_bucket(&account, "photos");
        new.settings.placeholder = Some(Some(ObjectKey::parse("none.png").unwrap()));
        let bucket = catalog.create_bucket(new).unwrap();
        let issued = catalog
            .issue_api_key(NewApiKey {
                account: account.id.clone(),
                name: "phone".into(),
                scopes: vec![Scope::Upload],
                limits: KeyLimits { bucket: Some(bucket.name.clone()), ..KeyLimits::default() },
            })
            .unwrap();

        let again = world.catalog();
        assert!(again.has_accounts());
        assert_eq!(again.account_called("Ann"), Some(account.clone()));
        assert_eq!(again.account_called(account.id.as_str()), Some(account));
        assert_eq!(again.bucket(&bucket.name), Some(bucket));
        let presented = PresentedKey::parse(&issued.text).unwrap();
        assert_eq!(*again.recognise(&presented).unwrap(), issued.record);

        again.revoke_api_key(&issued.record.id).unwrap();
        assert!(again.recognise(&presented).is_none());
        assert!(world.catalog().recognise(&presented).is_none());
    }

    #[test]
    fn names_are_taken_once() {
        let world = World::new();
        let catalog = world.catalog();
        let ann = AccountName::parse("Ann").unwrap();
        let account = catalog.create_account(ann.clone(), Plan::Free).unwrap();
        let twice = catalog.create_account(ann, Plan::Free);
        assert!(matches!(twice, Err(CatalogError::Exists(_))));
        catalog.create_bucket(new_bucket(&account, "photos")).unwrap();
        let twice = catalog.create_bucket(new_bucket(&account, "photos"));
        assert!(matches!(twice, Err(CatalogError::Exists(_))));
    }

    #[test]
    fn an_edit_changes_what_it_names_and_nothing_else() {
        let world = World::new();
        let catalog = world.catalog();
        let account =
            catalog.create_account(AccountName::parse("Ann").unwrap(), Plan::Free).unwrap();
        let bucket = catalog.create_bucket(new_bucket(&account, "photos")).unwrap();
        world.clock.advance(5_000);
        let change = BucketChange { access: Some(Access::Private), ..BucketChange::default() };
        let edited = catalog.edit_bucket(&bucket.name, change).unwrap();
        let expected = Bucket {
            access: Access::Private,
            updated_ms: bucket.created_ms + 5_000,
            ..Bucket::clone(&bucket)
        };
        assert_eq!(*edited, expected);
        let change = AccountChange { plan: Some(Plan::Pro), ..AccountChange::default() };
        let edited = catalog.edit_account(&account.id, change).unwrap();
        assert_eq!(*edited, Account { plan: Plan::Pro, ..Account::clone(&account) });
    }

    #[test]
    fn a_bucket_goes_with_its_objects_only_when_told_to() {
        let world = World::new();
        let catalog = world.catalog();
        let account =
            catalog.create_account(AccountName::parse("Ann").unwrap(), Plan::Free).unwrap();
        let bucket = catalog.create_bucket(new_bucket(&account, "photos")).unwrap();
        for at in 0..1_500 {
            world.put("photos", &format!("{at}.txt"));
        }
        let refused = catalog.delete_bucket(&bucket.name, BucketContents::MustBeGone);
        assert!(matches!(refused, Err(CatalogError::NotEmpty(_, 1_500))));
        assert!(catalog.bucket(&bucket.name).is_some());
        let removed = catalog.delete_bucket(&bucket.name, BucketContents::DeleteToo).unwrap();
        assert_eq!(removed, 1_500);
        assert!(catalog.bucket(&bucket.name).is_none());
        assert_eq!(world.store.bucket_usage(&bucket.name).unwrap().objects, 0);
        catalog.create_bucket(new_bucket(&account, "photos")).unwrap();
    }

    #[test]
    fn a_removal_that_was_cut_short_is_finished_by_the_next_opening() {
        let world = World::new();
        let catalog = world.catalog();
        let account =
            catalog.create_account(AccountName::parse("Ann").unwrap(), Plan::Free).unwrap();
        world.put("photos", "left over.txt");
        let name = BucketName::parse("photos").unwrap();
        let removal = bucket::removal_fact(&name).unwrap();
        let batch = Batch::new().put_fact(removal.clone(), bytes::Bytes::from_static(b"{}"));
        world.store.commit(batch).unwrap();

        let again = world.catalog();
        assert_eq!(world.store.bucket_usage(&name).unwrap().objects, 0);
        assert!(world.store.fact(&removal).unwrap().is_none());
        again.create_bucket(new_bucket(&account, "photos")).unwrap();
    }

    #[test]
    fn a_key_for_a_bucket_of_somebody_else_is_not_issued() {
        let world = World::new();
        let catalog = world.catalog();
        let ann = catalog.create_account(AccountName::parse("Ann").unwrap(), Plan::Free).unwrap();
        let bob = catalog.create_account(AccountName::parse("Bob").unwrap(), Plan::Free).unwrap();
        let bucket = catalog.create_bucket(new_bucket(&ann, "photos")).unwrap();
        let issued = catalog.issue_api_key(NewApiKey {
            account: bob.id.clone(),
            name: String::new(),
            scopes: vec![Scope::Upload],
            limits: KeyLimits { bucket: Some(bucket.name.clone()), ..KeyLimits::default() },
        });
        assert!(matches!(issued, Err(CatalogError::Missing(_))));
    }
}
