//! Tests of changes and their visibility.

use super::super::*;
use super::world::World;
use super::*;

fn account(catalog: &Catalog, name: &str, plan: Plan) -> Result<Arc<Account>, CatalogError> {
    let name = AccountName::parse(name).unwrap();
    let settings = AccountChange { plan: Some(plan), ..AccountChange::default() };
    catalog.create_account(NewAccount { name, settings })
}

fn new_bucket(owner: &Account, name: &str) -> NewBucket {
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
    assert!(catalog.accounts().is_empty());
    let account = account(&catalog, "Ann", Plan::Pro).unwrap();
    let mut new = new_bucket(&account, "photos");
    new.settings.placeholder = Some(Some(parse_placeholder(&new.name, "none.png").unwrap()));
    let bucket = catalog.create_bucket(new).unwrap();
    let issued = catalog
        .issue_api_key(NewApiKey {
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
    assert_eq!(again.account_by_name_or_id("Ann"), Some(account.clone()));
    assert_eq!(again.account_by_name_or_id(account.id.as_str()), Some(account));
    assert_eq!(again.bucket(&bucket.name), Some(bucket));
    let presented = PresentedKey::parse(&issued.text).unwrap();
    assert_eq!(*again.authenticate_key(&presented).unwrap(), issued.record);

    again.revoke_api_key(&issued.record.id).unwrap();
    assert!(again.authenticate_key(&presented).is_none());
    assert!(world.catalog().authenticate_key(&presented).is_none());
}

#[test]
fn duplicate_names_are_rejected() {
    let world = World::new();
    let catalog = world.catalog();
    let ann = account(&catalog, "Ann", Plan::Free).unwrap();
    let twice = account(&catalog, "Ann", Plan::Free);
    assert!(matches!(twice, Err(CatalogError::AlreadyExists(_))));
    catalog.create_bucket(new_bucket(&ann, "photos")).unwrap();
    let twice = catalog.create_bucket(new_bucket(&ann, "photos"));
    assert!(matches!(twice, Err(CatalogError::AlreadyExists(_))));
}

#[test]
fn edit_changes_only_the_named_settings() {
    let world = World::new();
    let catalog = world.catalog();
    let account = account(&catalog, "Ann", Plan::Free).unwrap();
    let bucket = catalog.create_bucket(new_bucket(&account, "photos")).unwrap();
    world.clock.advance(5_000);
    let change = BucketChange { access: Some(Access::Private), ..BucketChange::default() };
    let edited = catalog.edit_bucket(&bucket.name, change).unwrap();
    let expected = Bucket {
        access: Access::Private,
        granted_access: Access::Private,
        updated_ms: bucket.created_ms + 5_000,
        ..Bucket::clone(&bucket)
    };
    assert_eq!(*edited, expected);
    let change = AccountChange { plan: Some(Plan::Pro), ..AccountChange::default() };
    let edited = catalog.edit_account(&account.id, change).unwrap();
    assert_eq!(*edited, Account { plan: Plan::Pro, ..Account::clone(&account) });
}

#[test]
fn bucket_with_objects_is_deleted_only_on_request() {
    let world = World::new();
    let catalog = world.catalog();
    let account = account(&catalog, "Ann", Plan::Free).unwrap();
    let bucket = catalog.create_bucket(new_bucket(&account, "photos")).unwrap();
    for at in 0..1_500 {
        world.put("photos", &format!("{at}.txt"));
    }
    let refused = catalog.delete_bucket(&bucket.name, OnNonEmpty::Refuse);
    assert!(matches!(refused, Err(CatalogError::NotEmpty(_, 1_500))));
    assert!(catalog.bucket(&bucket.name).is_some());
    let removed = catalog.delete_bucket(&bucket.name, OnNonEmpty::DeleteToo).unwrap();
    assert!(catalog.bucket(&bucket.name).is_none());
    let taken = catalog.create_bucket(new_bucket(&account, "photos"));
    assert!(matches!(taken, Err(CatalogError::AlreadyExists(_))));
    assert_eq!(removed.finish().unwrap(), 1_500);
    assert!(catalog.bucket(&bucket.name).is_none());
    assert_eq!(world.store.bucket_usage(&bucket.name).unwrap().objects, 0);
    catalog.create_bucket(new_bucket(&account, "photos")).unwrap();
}

#[test]
fn interrupted_bucket_deletion_is_resumed_on_open() {
    let world = World::new();
    let catalog = world.catalog();
    let account = account(&catalog, "Ann", Plan::Free).unwrap();
    world.put("photos", "left over.txt");
    let bucket = catalog.create_bucket(new_bucket(&account, "photos")).unwrap();
    drop(catalog.delete_bucket(&bucket.name, OnNonEmpty::DeleteToo).unwrap());

    let again = world.catalog();
    assert!(again.bucket(&bucket.name).is_none());
    assert_eq!(again.resume_deletions().unwrap(), 1);
    assert_eq!(world.store.bucket_usage(&bucket.name).unwrap().objects, 0);
    let removal = bucket::removal_fact(&bucket.name).unwrap();
    assert!(world.store.fact(&removal).unwrap().is_none());
    again.create_bucket(new_bucket(&account, "photos")).unwrap();
}

#[test]
fn key_for_a_foreign_bucket_is_not_issued() {
    let world = World::new();
    let catalog = world.catalog();
    let ann = account(&catalog, "Ann", Plan::Free).unwrap();
    let bob = account(&catalog, "Bob", Plan::Free).unwrap();
    let bucket = catalog.create_bucket(new_bucket(&ann, "photos")).unwrap();
    let issued = catalog.issue_api_key(NewApiKey {
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
    let bucket = catalog.create_bucket(new_bucket(&ann, "photos")).unwrap();
    world.put("photos", "a.txt");
    let removal = catalog.delete_bucket(&bucket.name, OnNonEmpty::DeleteToo).unwrap();
    assert_eq!(catalog.resume_deletions().unwrap(), 0);
    drop(removal);
    assert_eq!(catalog.resume_deletions().unwrap(), 1);
}

#[test]
fn empty_bucket_deletion_is_undone_on_concurrent_upload() {
    for restarts in [false, true] {
        let world = World::new();
        let mut catalog = world.catalog();
        let ann = account(&catalog, "Ann", Plan::Free).unwrap();
        let bucket = catalog.create_bucket(new_bucket(&ann, "photos")).unwrap();
        let removal = catalog.delete_bucket(&bucket.name, OnNonEmpty::Refuse).unwrap();
        // Simulates an upload that was stored between the check and the end of the bucket.
        world.put("photos", "a.txt");
        if restarts {
            drop(removal);
            catalog = world.catalog();
            assert_eq!(catalog.resume_deletions().unwrap(), 0);
        } else {
            assert!(matches!(removal.finish(), Err(CatalogError::NotEmpty(_, 1))));
        }
        for catalog in [catalog, world.catalog()] {
            assert_eq!(catalog.bucket(&bucket.name), Some(bucket.clone()));
            assert_eq!(catalog.bucket_names_of(&ann.id), std::slice::from_ref(&bucket.name));
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
            catalog.issue_api_key(NewApiKey { account, name, scopes, limits }).unwrap()
        })
        .collect();
    let id = issued[0].record.id.clone();
    assert_eq!(catalog.last_use_ms(&id), None);
    for issued in &issued {
        catalog.authenticate_key(&PresentedKey::parse(&issued.text).unwrap()).unwrap();
    }
    let used = catalog.last_use_ms(&id).unwrap();
    let age = world.clock.unix_ms() - used;
    assert!(age < 60 * 60 * 1_000 && used.is_multiple_of(60 * 60 * 1_000), "{used}");
    assert_eq!(world.catalog().last_use_ms(&id), None);
    catalog.write_last_used().unwrap();
    let again = world.catalog();
    assert!(issued.iter().all(|issued| again.last_use_ms(&issued.record.id) == Some(used)));
    catalog.revoke_api_key(&id).unwrap();
    assert_eq!(catalog.last_use_ms(&id), Some(used));
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
        catalog.issue_api_key(NewApiKey { account, name, scopes, limits })
    };
    let issued: Vec<IssuedKey> =
        (0..crate::limits::API_KEYS_PER_ACCOUNT_MAX).map(|_| issue().unwrap()).collect();
    assert!(matches!(issue(), Err(CatalogError::InvalidRequest(_))));
    let [first, second] = [&issued[3], &issued[7]].map(|it| it.record.id.clone());
    catalog.revoke_api_key(&second).unwrap();
    catalog.revoke_api_key(&first).unwrap();
    issue().unwrap();
    assert!(catalog.api_key(&first).is_none() && catalog.api_key(&second).is_some());
    assert_eq!(world.catalog().api_keys().len(), issued.len());
}

#[test]
fn quota_is_reserved_once() {
    let world = World::new();
    let catalog = world.catalog();
    let ann = account(&catalog, "Ann", Plan::Free).unwrap();
    let mut new = new_bucket(&ann, "photos");
    new.settings.quota.objects_max = Some(Some(2));
    let bucket = catalog.create_bucket(new).unwrap();
    let ask = |objects| catalog.reserve(&bucket, StoredAmount { objects, bytes: 1 }, None).unwrap();
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
    let crew = catalog.create_organisation(name, &ann.id).unwrap();
    let owner = NewBucketOwner::Organisation(crew.id.clone());
    let bucket = catalog.create_bucket(NewBucket { owner, ..new_bucket(&ann, "shared") }).unwrap();
    assert_eq!(bucket.owner, ann.id);
    let role = |catalog: &Catalog| catalog.bucket_role(&bob.id, &bucket);
    assert_eq!(role(&catalog), None);
    catalog.set_member(&crew.id, &bob.id, MemberRole::Viewer).unwrap();
    catalog.set_member(&crew.id, &bob.id, MemberRole::Admin).unwrap();
    assert_eq!(
        (role(&catalog), role(&world.catalog())),
        (Some(MemberRole::Admin), Some(MemberRole::Admin))
    );
    for refused in [
        catalog.remove_member(&crew.id, &ann.id),
        catalog.set_member(&crew.id, &ann.id, MemberRole::Viewer),
    ] {
        assert!(matches!(refused, Err(CatalogError::OwnsOrganisation)));
    }
    assert!(matches!(catalog.delete_organisation(&crew.id), Err(CatalogError::HasBuckets(_, 1))));
    catalog.remove_member(&crew.id, &bob.id).unwrap();
    assert_eq!(role(&catalog), None);
    catalog.delete_bucket(&bucket.name, OnNonEmpty::Refuse).unwrap().finish().unwrap();
    catalog.delete_organisation(&crew.id).unwrap();
    assert!(world.catalog().organisation(&crew.id).is_none());
}

fn password(text: &str) -> PasswordHash {
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
        catalog.set_password(&account.id, None, password("correct horse"), None).unwrap();
    }
    let begin = |account: &Account| {
        world.clock.advance(60 * 60 * 1_000);
        let hash = catalog.password_hash_of(&account.id).unwrap();
        catalog.sign_in(&account.id, &hash, ClientInfo::default(), None).unwrap()
    };
    let first = begin(&bob);
    let begun: Vec<StartedSession> =
        (0..crate::limits::SESSIONS_PER_ACCOUNT_MAX).map(|_| begin(&ann)).collect();
    let secret = |started: &StartedSession| SecretHash::from_text(&started.secret).unwrap();
    // The oldest session is used, so the next one is evicted.
    assert!(catalog.find_session_by_secret(&secret(&begun[0])).is_some());
    begin(&ann);
    let is_there = |catalog: &Catalog, at: usize| catalog.session(&begun[at].session.id).is_some();
    assert!(is_there(&catalog, 0) && !is_there(&catalog, 1) && is_there(&catalog, 2));
    assert!(catalog.find_session_by_secret(&secret(&begun[1])).is_none());
    assert!(catalog.find_session_by_secret(&secret(&first)).is_some(), "others lose nothing");
    catalog.write_session_uses().unwrap();
    let again = world.catalog();
    assert_eq!(again.sessions_of(&ann.id), catalog.sessions_of(&ann.id));
    assert_eq!(again.sessions_of(&ann.id).len(), crate::limits::SESSIONS_PER_ACCOUNT_MAX);
}

#[test]
fn old_password_is_rejected_after_concurrent_change() {
    let world = World::new();
    let catalog = world.catalog();
    let ann = account(&catalog, "Ann", Plan::Free).unwrap();
    catalog.set_password(&ann.id, None, password("correct horse"), None).unwrap();
    let checked = catalog.password_hash_of(&ann.id).unwrap();
    catalog.set_password(&ann.id, Some(&checked), password("another horse"), None).unwrap();
    let late = catalog.sign_in(&ann.id, &checked, ClientInfo::default(), None);
    assert!(matches!(late, Err(CatalogError::PasswordChanged)));
    let late = catalog.set_password(&ann.id, Some(&checked), password("a third horse"), None);
    assert!(matches!(late, Err(CatalogError::PasswordChanged)));
    // An invitation that was used, or replaced, while the password was hashed.
    let invite = |catalog: &Catalog| {
        let issued = catalog.invite(&ann.id).unwrap();
        catalog.invitation(&issued.text).unwrap()
    };
    let old = invite(&catalog);
    let new = invite(&catalog);
    let accept =
        |it| catalog.accept_invitation(it, password("correct horse"), ClientInfo::default());
    assert!(matches!(accept(&old), Err(CatalogError::LinkInvalid)));
    accept(&new).unwrap();
    assert!(matches!(accept(&new), Err(CatalogError::LinkInvalid)));
    assert!(world.catalog().password_hash_of(&ann.id).is_some());
}

#[test]
fn client_info_is_sanitized_and_truncated() {
    let agent = format!("a\u{1b}[2J{}\u{e9}", "x".repeat(300));
    let visitor = ClientInfo::new("::ffff:192.0.2.1".parse().ok(), &agent);
    assert_eq!((&*visitor.address, visitor.agent.len()), ("192.0.2.1", 200));
    assert!(visitor.agent.starts_with("a[2Jx"));
    assert_eq!(ClientInfo::new(None, ""), ClientInfo::default());
}
