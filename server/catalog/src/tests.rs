//! Tests of changes and their visibility.

use engine::clock::SimClock;
use engine::disk::sim::SimDisk;
use engine::rng::{Rng, SeededRng};
use engine::{
    Background, Batch, BucketName, Create, Environment, ObjectKey, ObjectName, OpenOptions,
    PutOptions, Store,
};

use super::*;

/// In-memory store.
pub(super) struct World {
    pub(super) store: Store,
    pub(super) clock: Arc<SimClock>,
    pub(super) rng: Arc<dyn Rng>,
}

impl World {
    pub(super) fn new() -> Self {
        let clock = Arc::new(SimClock::at(1_700_000_000_000));
        let rng: Arc<dyn Rng> = Arc::new(SeededRng::new(7));
        let disk = Arc::new(SimDisk::with_seed(7));
        let surroundings =
            Environment { disk, clock: clock.clone(), rng: rng.clone(), remote: None };
        let mut options = OpenOptions::new(Create::IfMissing);
        options.background = Background::Threads;
        let (store, _) = Store::open(surroundings, options).unwrap();
        Self { store, clock, rng }
    }

    pub(super) fn catalog(&self) -> Catalog {
        Catalog::open(self.store.clone(), self.clock.clone(), self.rng.clone()).unwrap()
    }

    pub(super) fn put(&self, bucket: &str, key: &str) {
        let name =
            ObjectName::new(BucketName::parse(bucket).unwrap(), ObjectKey::parse(key).unwrap());
        let options = PutOptions { content_type: "text/plain".into(), ..PutOptions::default() };
        let staged = self.store.upload().finish().unwrap();
        self.store.commit(Batch::new().put(name, staged, options)).unwrap();
    }
}

pub(super) fn account(
    catalog: &Catalog,
    name: &str,
    plan: Plan,
) -> Result<Arc<Account>, CatalogError> {
    let name = AccountName::parse(name).unwrap();
    let settings = AccountChange { plan: Some(plan), ..AccountChange::default() };
    catalog.accounts().create(NewAccount { name, settings })
}

pub(super) fn new_bucket(owner: &Account, name: &str) -> NewBucket {
    NewBucket {
        name: new_bucket_name(name).unwrap(),
        owner: NewBucketOwner::Account(owner.id.clone()),
        kind: BucketKind::Standard,
        settings: BucketChange::default(),
    }
}

#[test]
fn catalog_survives_reopen() {
    let world = World::new();
    let catalog = world.catalog();
    assert!(catalog.accounts().all().is_empty());
    let account = account(&catalog, "Ann", Plan::Pro).unwrap();
    let mut new = new_bucket(&account, "photos");
    new.settings.placeholder = Some(Some(parse_placeholder(&new.name, "none.png").unwrap()));
    let bucket = catalog.buckets().create(new).unwrap();
    let issued = catalog
        .api_keys()
        .issue(NewApiKey {
            account: account.id.clone(),
            name: "phone".into(),
            scopes: vec![Scope::Upload],
            limits: KeyRestrictions {
                bucket: Some(bucket.name.clone()),
                ..KeyRestrictions::default()
            },
        })
        .unwrap();

    let again = world.catalog();
    assert_eq!(again.accounts().find("Ann"), Some(account.clone()));
    assert_eq!(again.accounts().find(account.id.as_str()), Some(account));
    assert_eq!(again.buckets().get(&bucket.name), Some(bucket));
    let presented = PresentedKey::parse(&issued.text).unwrap();
    assert_eq!(*again.api_keys().authenticate(&presented).unwrap(), issued.record);

    again.api_keys().revoke(&issued.record.id).unwrap();
    assert!(again.api_keys().authenticate(&presented).is_none());
    assert!(world.catalog().api_keys().authenticate(&presented).is_none());
}

#[test]
fn duplicate_names_are_rejected() {
    let world = World::new();
    let catalog = world.catalog();
    let ann = account(&catalog, "Ann", Plan::Free).unwrap();
    let twice = account(&catalog, "Ann", Plan::Free);
    assert!(matches!(twice, Err(CatalogError::AlreadyExists(_))));
    catalog.buckets().create(new_bucket(&ann, "photos")).unwrap();
    let twice = catalog.buckets().create(new_bucket(&ann, "photos"));
    assert!(matches!(twice, Err(CatalogError::AlreadyExists(_))));
}

#[test]
fn edit_changes_only_the_named_settings() {
    let world = World::new();
    let catalog = world.catalog();
    let account = account(&catalog, "Ann", Plan::Free).unwrap();
    let bucket = catalog.buckets().create(new_bucket(&account, "photos")).unwrap();
    world.clock.advance(5_000);
    let change = BucketChange { access: Some(Access::Private), ..BucketChange::default() };
    let edited = catalog.buckets().edit(&bucket.name, change).unwrap();
    let expected = Bucket {
        access: Access::Private,
        granted_access: Access::Private,
        updated_ms: bucket.created_ms + 5_000,
        ..Bucket::clone(&bucket)
    };
    assert_eq!(*edited, expected);
    let change = AccountChange { plan: Some(Plan::Pro), ..AccountChange::default() };
    let edited = catalog.accounts().edit(&account.id, change).unwrap();
    assert_eq!(*edited, Account { plan: Plan::Pro, ..Account::clone(&account) });
}

#[test]
fn bucket_with_objects_is_deleted_only_on_request() {
    let world = World::new();
    let catalog = world.catalog();
    let account = account(&catalog, "Ann", Plan::Free).unwrap();
    let bucket = catalog.buckets().create(new_bucket(&account, "photos")).unwrap();
    for at in 0..1_500 {
        world.put("photos", &format!("{at}.txt"));
    }
    let refused = catalog.buckets().delete(&bucket.name, OnNonEmpty::Refuse);
    assert!(matches!(refused, Err(CatalogError::NotEmpty(_, 1_500))));
    assert!(catalog.buckets().get(&bucket.name).is_some());
    let removed = catalog.buckets().delete(&bucket.name, OnNonEmpty::DeleteToo).unwrap();
    assert!(catalog.buckets().get(&bucket.name).is_none());
    let taken = catalog.buckets().create(new_bucket(&account, "photos"));
    assert!(matches!(taken, Err(CatalogError::AlreadyExists(_))));
    assert_eq!(removed.finish().unwrap(), 1_500);
    assert!(catalog.buckets().get(&bucket.name).is_none());
    assert_eq!(world.store.bucket_usage(&bucket.name).unwrap().objects, 0);
    catalog.buckets().create(new_bucket(&account, "photos")).unwrap();
}

#[test]
fn interrupted_bucket_deletion_is_resumed_on_open() {
    let world = World::new();
    let catalog = world.catalog();
    let account = account(&catalog, "Ann", Plan::Free).unwrap();
    world.put("photos", "left over.txt");
    let bucket = catalog.buckets().create(new_bucket(&account, "photos")).unwrap();
    drop(catalog.buckets().delete(&bucket.name, OnNonEmpty::DeleteToo).unwrap());

    let again = world.catalog();
    assert!(again.buckets().get(&bucket.name).is_none());
    assert_eq!(again.buckets().resume_deletions().unwrap(), 1);
    assert_eq!(world.store.bucket_usage(&bucket.name).unwrap().objects, 0);
    let removal = bucket::removal_fact(&bucket.name).unwrap();
    assert!(world.store.fact(&removal).unwrap().is_none());
    again.buckets().create(new_bucket(&account, "photos")).unwrap();
}

#[test]
fn key_for_a_foreign_bucket_is_not_issued() {
    let world = World::new();
    let catalog = world.catalog();
    let ann = account(&catalog, "Ann", Plan::Free).unwrap();
    let bob = account(&catalog, "Bob", Plan::Free).unwrap();
    let bucket = catalog.buckets().create(new_bucket(&ann, "photos")).unwrap();
    let issued = catalog.api_keys().issue(NewApiKey {
        account: bob.id.clone(),
        name: String::new(),
        scopes: vec![Scope::Upload],
        limits: KeyRestrictions { bucket: Some(bucket.name.clone()), ..KeyRestrictions::default() },
    });
    assert!(matches!(issued, Err(CatalogError::BucketNotFound(name)) if name == "photos"));
}

#[test]
fn bucket_deletion_is_exclusive_until_dropped() {
    let world = World::new();
    let catalog = world.catalog();
    let ann = account(&catalog, "Ann", Plan::Free).unwrap();
    let bucket = catalog.buckets().create(new_bucket(&ann, "photos")).unwrap();
    world.put("photos", "a.txt");
    let removal = catalog.buckets().delete(&bucket.name, OnNonEmpty::DeleteToo).unwrap();
    assert_eq!(catalog.buckets().resume_deletions().unwrap(), 0);
    drop(removal);
    assert_eq!(catalog.buckets().resume_deletions().unwrap(), 1);
}

#[test]
fn empty_bucket_deletion_is_undone_on_concurrent_upload() {
    for restarts in [false, true] {
        let world = World::new();
        let mut catalog = world.catalog();
        let ann = account(&catalog, "Ann", Plan::Free).unwrap();
        let bucket = catalog.buckets().create(new_bucket(&ann, "photos")).unwrap();
        let removal = catalog.buckets().delete(&bucket.name, OnNonEmpty::Refuse).unwrap();
        // Simulates an upload that was stored between the check and the end of the bucket.
        world.put("photos", "a.txt");
        if restarts {
            drop(removal);
            catalog = world.catalog();
            assert_eq!(catalog.buckets().resume_deletions().unwrap(), 0);
        } else {
            assert!(matches!(removal.finish(), Err(CatalogError::NotEmpty(_, 1))));
        }
        for catalog in [catalog, world.catalog()] {
            assert_eq!(catalog.buckets().get(&bucket.name), Some(bucket.clone()));
            assert_eq!(catalog.buckets().names_of(&ann.id), std::slice::from_ref(&bucket.name));
        }
        assert_eq!(world.store.bucket_usage(&bucket.name).unwrap().objects, 1);
    }
}

#[test]
fn last_used_time_has_hour_resolution_and_persists() {
    let world = World::new();
    let catalog = world.catalog();
    let ann = account(&catalog, "Ann", Plan::Free).unwrap();
    let issued: Vec<IssuedKey> = (0..501)
        .map(|_| {
            let limits = KeyRestrictions::default();
            let (name, scopes) = (String::new(), vec![Scope::Read]);
            let account = ann.id.clone();
            catalog.api_keys().issue(NewApiKey { account, name, scopes, limits }).unwrap()
        })
        .collect();
    let id = issued[0].record.id.clone();
    assert_eq!(catalog.api_keys().last_use_ms(&id), None);
    for issued in &issued {
        catalog.api_keys().authenticate(&PresentedKey::parse(&issued.text).unwrap()).unwrap();
    }
    let used = catalog.api_keys().last_use_ms(&id).unwrap();
    let age = world.clock.unix_ms() - used;
    assert!(age < 60 * 60 * 1_000 && used.is_multiple_of(60 * 60 * 1_000), "{used}");
    assert_eq!(world.catalog().api_keys().last_use_ms(&id), None);
    catalog.api_keys().write_uses().unwrap();
    let again = world.catalog();
    assert!(
        issued.iter().all(|issued| again.api_keys().last_use_ms(&issued.record.id) == Some(used))
    );
    catalog.api_keys().revoke(&id).unwrap();
    assert_eq!(catalog.api_keys().last_use_ms(&id), Some(used));
}

#[test]
fn key_limit_evicts_the_oldest_inactive_key() {
    let world = World::new();
    let catalog = world.catalog();
    let ann = account(&catalog, "Ann", Plan::Free).unwrap();
    let issue = || {
        world.clock.advance(1);
        let (name, scopes) = (String::new(), vec![Scope::Read]);
        let (account, limits) = (ann.id.clone(), KeyRestrictions::default());
        catalog.api_keys().issue(NewApiKey { account, name, scopes, limits })
    };
    let issued: Vec<IssuedKey> =
        (0..crate::limits::API_KEYS_PER_ACCOUNT_MAX).map(|_| issue().unwrap()).collect();
    assert!(matches!(issue(), Err(CatalogError::InvalidRequest(_))));
    let [first, second] = [&issued[3], &issued[7]].map(|it| it.record.id.clone());
    catalog.api_keys().revoke(&second).unwrap();
    catalog.api_keys().revoke(&first).unwrap();
    issue().unwrap();
    assert!(catalog.api_keys().get(&first).is_none() && catalog.api_keys().get(&second).is_some());
    assert_eq!(world.catalog().api_keys().all().len(), issued.len());
}

#[test]
fn quota_is_reserved_once() {
    let world = World::new();
    let catalog = world.catalog();
    let ann = account(&catalog, "Ann", Plan::Free).unwrap();
    let mut new = new_bucket(&ann, "photos");
    new.settings.quota.objects_max = Some(Some(2));
    let bucket = catalog.buckets().create(new).unwrap();
    let ask = |objects| {
        catalog.quotas().reserve(&bucket, StoredAmount { objects, bytes: 1 }, None).unwrap()
    };
    let QuotaDecision::Granted(first) = ask(2) else { panic!("two fit") };
    assert!(matches!(ask(1), QuotaDecision::Pending));
    assert!(matches!(ask(3), QuotaDecision::Exceeded(QuotaExceeded { limit: 2, used: 0, .. })));
    drop(first);
    let QuotaDecision::Granted(_held) = ask(1) else { panic!("one fits") };
    world.put("photos", "a.txt");
    world.put("photos", "b.txt");
    assert!(matches!(ask(1), QuotaDecision::Exceeded(QuotaExceeded { used: 2, .. })));
    assert!(matches!(ask(0), QuotaDecision::Granted(_)));
}

#[test]
fn bucket_members_change_and_the_owner_remains() {
    let world = World::new();
    let catalog = world.catalog();
    let ann = account(&catalog, "Ann", Plan::Free).unwrap();
    let bob = account(&catalog, "Bob", Plan::Free).unwrap();
    let name = OrganisationName::parse("Crew").unwrap();
    let crew = catalog.organisations().create(name, &ann.id).unwrap();
    let owner = NewBucketOwner::Organisation(crew.id.clone());
    let bucket =
        catalog.buckets().create(NewBucket { owner, ..new_bucket(&ann, "shared") }).unwrap();
    assert_eq!(bucket.owner, ann.id);
    let role = |catalog: &Catalog| catalog.buckets().role(&bob.id, &bucket);
    assert_eq!(role(&catalog), None);
    catalog.organisations().set_member(&crew.id, &bob.id, MemberRole::Viewer).unwrap();
    catalog.organisations().set_member(&crew.id, &bob.id, MemberRole::Admin).unwrap();
    assert_eq!(
        (role(&catalog), role(&world.catalog())),
        (Some(MemberRole::Admin), Some(MemberRole::Admin))
    );
    for refused in [
        catalog.organisations().remove_member(&crew.id, &ann.id),
        catalog.organisations().set_member(&crew.id, &ann.id, MemberRole::Viewer),
    ] {
        assert!(matches!(refused, Err(CatalogError::OwnsOrganisation)));
    }
    assert!(matches!(
        catalog.organisations().delete(&crew.id),
        Err(CatalogError::HasBuckets(_, 1))
    ));
    catalog.organisations().remove_member(&crew.id, &bob.id).unwrap();
    assert_eq!(role(&catalog), None);
    catalog.buckets().delete(&bucket.name, OnNonEmpty::Refuse).unwrap().finish().unwrap();
    catalog.organisations().delete(&crew.id).unwrap();
    assert!(world.catalog().organisations().get(&crew.id).is_none());
}

pub(super) fn password(text: &str) -> PasswordHash {
    let password = Password::new_checked(text).unwrap();
    PasswordHash::from_password(&password, &engine::rng::SeededRng::new(3)).unwrap()
}

#[test]
fn session_limit_evicts_the_least_recently_used() {
    let world = World::new();
    let catalog = world.catalog();
    let ann = account(&catalog, "Ann", Plan::Free).unwrap();
    let bob = account(&catalog, "Bob", Plan::Free).unwrap();
    for account in [&ann, &bob] {
        catalog
            .sessions()
            .set_password(&account.id, None, password("correct horse"), None)
            .unwrap();
    }
    let begin = |account: &Account| {
        world.clock.advance(60 * 60 * 1_000);
        let hash = catalog.sessions().password_hash(&account.id).unwrap();
        catalog.sessions().sign_in(&account.id, &hash, ClientInfo::default(), None).unwrap()
    };
    let first = begin(&bob);
    let begun: Vec<StartedSession> =
        (0..crate::limits::SESSIONS_PER_ACCOUNT_MAX).map(|_| begin(&ann)).collect();
    let secret = |started: &StartedSession| SecretHash::from_text(&started.secret).unwrap();
    // The oldest session is used, so the next one is evicted.
    assert!(catalog.sessions().authenticate(&secret(&begun[0])).is_some());
    begin(&ann);
    let is_there =
        |catalog: &Catalog, at: usize| catalog.sessions().get(&begun[at].session.id).is_some();
    assert!(is_there(&catalog, 0) && !is_there(&catalog, 1) && is_there(&catalog, 2));
    assert!(catalog.sessions().authenticate(&secret(&begun[1])).is_none());
    assert!(catalog.sessions().authenticate(&secret(&first)).is_some(), "others lose nothing");
    catalog.sessions().write_uses().unwrap();
    let again = world.catalog();
    assert_eq!(again.sessions().of_account(&ann.id), catalog.sessions().of_account(&ann.id));
    assert_eq!(again.sessions().of_account(&ann.id).len(), crate::limits::SESSIONS_PER_ACCOUNT_MAX);
}

#[test]
fn old_password_is_rejected_after_concurrent_change() {
    let world = World::new();
    let catalog = world.catalog();
    let ann = account(&catalog, "Ann", Plan::Free).unwrap();
    catalog.sessions().set_password(&ann.id, None, password("correct horse"), None).unwrap();
    let checked = catalog.sessions().password_hash(&ann.id).unwrap();
    catalog
        .sessions()
        .set_password(&ann.id, Some(&checked), password("another horse"), None)
        .unwrap();
    let late = catalog.sessions().sign_in(&ann.id, &checked, ClientInfo::default(), None);
    assert!(matches!(late, Err(CatalogError::PasswordChanged)));
    let late =
        catalog.sessions().set_password(&ann.id, Some(&checked), password("a third horse"), None);
    assert!(matches!(late, Err(CatalogError::PasswordChanged)));
    // An invitation that was used, or replaced, while the password was hashed.
    let invite = |catalog: &Catalog| {
        let issued = catalog.sessions().invite(&ann.id).unwrap();
        catalog.sessions().invitation(&issued.text).unwrap()
    };
    let old = invite(&catalog);
    let new = invite(&catalog);
    let accept = |it| {
        catalog.sessions().accept_invitation(it, password("correct horse"), ClientInfo::default())
    };
    assert!(matches!(accept(&old), Err(CatalogError::LinkInvalid)));
    accept(&new).unwrap();
    assert!(matches!(accept(&new), Err(CatalogError::LinkInvalid)));
    assert!(world.catalog().sessions().password_hash(&ann.id).is_some());
}

#[test]
fn client_info_is_sanitized_and_truncated() {
    let agent = format!("a\u{1b}[2J{}\u{e9}", "x".repeat(300));
    let visitor = ClientInfo::new("::ffff:192.0.2.1".parse().ok(), &agent);
    assert_eq!((&*visitor.address, visitor.agent.len()), ("192.0.2.1", 200));
    assert!(visitor.agent.starts_with("a[2Jx"));
    assert_eq!(ClientInfo::new(None, ""), ClientInfo::default());
}

#[test]
fn first_private_bucket_stays_private_after_reopen() {
    let world = World::new();
    let catalog = world.catalog();
    let name = BucketName::parse("photos").unwrap();
    let bucket = FirstBucket { name: name.clone(), access: Access::Private };
    let result = catalog.set_up(NewSetup {
        name: AccountName::parse("Ann").unwrap(),
        password: password("correct horse"),
        bucket: Some(bucket),
        visitor: ClientInfo::default(),
    });
    let result = result.unwrap_or_else(|error| panic!("{error}"));
    assert!(!catalog.needs_set_up() && !world.catalog().needs_set_up());
    let bucket = result.bucket.unwrap();
    assert_eq!(bucket.access, Access::Private);
    assert_eq!(world.catalog().buckets().get(&name), Some(bucket));
}
