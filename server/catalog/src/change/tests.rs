//! Tests of the one path into memory: a load, and the changes that led to the same facts, give the same tables.

use std::collections::BTreeSet;
use std::fmt::Debug;

use engine::rng::{Rng, SeededRng};
use protocol::destination::OutboundUrl;

use super::super::id::{IdKind, OfAccount, OfApiKey, OfJob, OfOrganisation, OfSession, OfWebhook};
use super::super::tests::{World, account, new_bucket, password};
use super::super::*;
use super::*;

const STEPS: usize = 400;

/// Random changes of every aggregate.
struct Walk {
    world: World,
    catalog: Catalog,
    rng: SeededRng,
    names: usize,
}

impl Walk {
    fn new(seed: u64) -> Self {
        let world = World::new();
        let catalog = world.catalog();
        account(&catalog, "Ann", Plan::Free).unwrap();
        catalog.tokens().renew_keys().unwrap();
        catalog.api_keys().ensure_s3_secret().unwrap();
        Self { world, catalog, rng: SeededRng::new(seed), names: 0 }
    }

    fn number(&self, below: usize) -> usize {
        let mut bytes = [0; 8];
        self.rng.fill(&mut bytes);
        (u64::from_le_bytes(bytes) % below as u64) as usize
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("name-{}", self.names)
    }

    fn one_of<T: Clone>(&self, all: &[T]) -> Option<T> {
        (!all.is_empty()).then(|| all[self.number(all.len())].clone())
    }

    fn account(&self) -> Arc<Account> {
        self.one_of(&self.catalog.accounts().all()).unwrap()
    }

    /// Makes one change, which may be refused.
    fn step(&mut self) -> Result<(), CatalogError> {
        self.world.clock.advance(1 + self.number(3_000_000) as u64);
        let kind = self.number(24);
        match kind {
            0..6 => self.step_accounts(kind),
            6..12 => self.step_buckets(kind - 6),
            12..16 => self.step_keys(kind - 12),
            16..20 => self.step_organisations(kind - 16),
            _ => self.step_jobs(kind - 20),
        }
    }

    fn step_accounts(&mut self, kind: usize) -> Result<(), CatalogError> {
        let name = self.name();
        let (catalog, id) = (&self.catalog, self.account().id.clone());
        match kind {
            0 => drop(account(catalog, &name, Plan::Free)?),
            1 => {
                let standing =
                    Some([FairUseStanding::Suspended, FairUseStanding::Good][self.number(2)]);
                let settings = AccountChange { standing, ..AccountChange::default() };
                catalog.accounts().edit(&id, settings)?;
            }
            2 => {
                catalog.sessions().set_password(&id, None, password(&name.repeat(2)), None)?;
            }
            3 => drop(catalog.sessions().invite(&id)?),
            4 => {
                if let Some(hash) = catalog.sessions().password_hash(&id) {
                    let started =
                        catalog.sessions().sign_in(&id, &hash, ClientInfo::default(), None)?;
                    let secret = SecretHash::from_text(&started.secret).unwrap();
                    assert!(catalog.sessions().authenticate(&secret).is_some());
                    self.world.clock.advance(3_600_000);
                    catalog.sessions().authenticate(&secret);
                    catalog.sessions().write_uses()?;
                }
                catalog.sessions().sweep()?;
            }
            _ => drop(catalog.accounts().delete(&id, OnNonEmpty::DeleteToo)?),
        }
        Ok(())
    }

    fn step_buckets(&mut self, kind: usize) -> Result<(), CatalogError> {
        let (name, owner) = (self.name(), self.account());
        let catalog = &self.catalog;
        let Some(bucket) = self.one_of(&catalog.buckets().all()).filter(|_| kind > 1) else {
            return catalog.buckets().create(new_bucket(&owner, &name)).map(drop);
        };
        match kind {
            2 => {
                let access = Some([Access::Public, Access::Private][self.number(2)]);
                let settings = BucketChange { access, ..BucketChange::default() };
                catalog.buckets().edit(&bucket.name, settings)?;
            }
            3 => {
                self.world.put(bucket.name.as_str(), "a.txt");
                drop(catalog.buckets().delete(&bucket.name, OnNonEmpty::DeleteToo)?);
            }
            4 => {
                let deletion = catalog.buckets().delete(&bucket.name, OnNonEmpty::Refuse)?;
                self.world.put(bucket.name.as_str(), "a.txt");
                deletion.finish()?;
            }
            _ => {
                let webhook = catalog.webhooks().create(NewWebhook {
                    bucket: bucket.name.clone(),
                    destination: OutboundUrl::parse("https://example.com/hook").unwrap(),
                    events: vec![EventPattern::AllCreated],
                    prefix: String::new(),
                    enabled: true,
                })?;
                match self.number(3) {
                    0 => drop(catalog.webhooks().delete(&webhook.id)?),
                    1 => catalog.webhooks().disable(&webhook.id, "gone")?,
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn step_keys(&mut self, kind: usize) -> Result<(), CatalogError> {
        let catalog = &self.catalog;
        let key = self.one_of(&catalog.api_keys().all()).filter(|_| kind > 1);
        let Some(key) = key else {
            let (account, name) = (self.account().id.clone(), "key".to_owned());
            let (scopes, limits) = (vec![Scope::Read, Scope::Manage], KeyRestrictions::default());
            let issued = catalog.api_keys().issue(NewApiKey { account, name, scopes, limits })?;
            let presented = PresentedKey::parse(&issued.text).unwrap();
            assert!(catalog.api_keys().authenticate(&presented).is_some());
            return catalog.api_keys().write_uses();
        };
        match kind {
            2 => catalog.api_keys().revoke(&key.id).map(drop),
            _ => catalog.tokens().renew_keys(),
        }
    }

    fn step_organisations(&mut self, kind: usize) -> Result<(), CatalogError> {
        let name = OrganisationName::parse(&self.name()).unwrap();
        let (catalog, account) = (&self.catalog, self.account().id.clone());
        let organisation = self.one_of(&catalog.organisations().all()).filter(|_| kind > 0);
        let Some(organisation) = organisation else {
            return catalog.organisations().create(name, &account).map(drop);
        };
        let id = &organisation.id;
        match kind {
            1 => drop(catalog.organisations().invite(id, &account, MemberRole::Viewer)?),
            2 => drop(catalog.organisations().set_member(id, &account, MemberRole::Admin)?),
            _ => catalog.organisations().delete(id)?,
        }
        Ok(())
    }

    fn step_jobs(&mut self, kind: usize) -> Result<(), CatalogError> {
        let (catalog, account) = (&self.catalog, self.account().id.clone());
        let Some(job) = self.one_of(&catalog.jobs().all()).filter(|_| kind > 1) else {
            let issuer = Issuer::Account(account.clone());
            return catalog.jobs().add(NewJob { account, issuer, work: JobSpec::Scrub }).map(drop);
        };
        match kind {
            2 => catalog.jobs().start(&job.id).map(drop),
            _ => catalog
                .jobs()
                .end(&job.id, JobEnd::Cancelled, Some(JobProgress::default()))
                .map(drop),
        }
    }

    /// Makes changes, and ends what a restart would change.
    fn run(&mut self) {
        for _ in 0..STEPS {
            match self.step() {
                Err(CatalogError::Store(error)) => panic!("{error}"),
                Err(CatalogError::CorruptRecord { fact, why }) => panic!("{fact}: {why}"),
                _ => {}
            }
        }
        for job in self.catalog.jobs().all() {
            self.catalog.jobs().end(&job.id, JobEnd::Done, None).unwrap();
        }
        // Merges the counters of deleted buckets.
        self.catalog.usage().write().unwrap();
    }
}

fn expect_same<T: Table + Debug>(one: &Shared<T>, other: &Shared<T>) {
    let lines =
        |table: &Shared<T>| format!("{:#?}", table.read()).lines().map(str::to_owned).collect();
    let (one, other): (Vec<String>, Vec<String>) = (lines(one), lines(other));
    let differs = one.iter().zip(&other).find(|(one, other)| one != other);
    assert_eq!((differs, one.len()), (None, other.len()));
}

#[test]
fn load_equals_the_changes_that_led_to_it() {
    for seed in 0..4 {
        let mut walk = Walk::new(seed);
        walk.run();
        let catalog = &walk.catalog;
        let again = walk.world.catalog();
        again.usage().advance();
        let (one, other) = (&catalog.state, &again.state);
        expect_same(&one.accounts, &other.accounts);
        expect_same(&one.buckets, &other.buckets);
        expect_same(&one.organisations, &other.organisations);
        expect_same(&one.api_keys, &other.api_keys);
        expect_same(&one.signing_keys, &other.signing_keys);
        expect_same(&one.sessions, &other.sessions);
        expect_same(&one.webhooks, &other.webhooks);
        expect_same(&one.jobs, &other.jobs);
        expect_same(&one.audit, &other.audit);
        // Secrets are not printed.
        for account in catalog.accounts().all() {
            let id = &account.id;
            assert!(catalog.sessions().password_hash(id) == again.sessions().password_hash(id));
            let token = catalog.tokens().device_token(id, uuid::Uuid::nil());
            assert_eq!(again.tokens().device_token(id, uuid::Uuid::nil()), token);
        }
        for key in catalog.api_keys().all() {
            assert_eq!(again.api_keys().s3_secret(&key.id), catalog.api_keys().s3_secret(&key.id));
        }
        // A bucket that is being deleted may have queues only until a restart.
        catalog.buckets().resume_deletions().unwrap();
        assert_eq!(walk.world.catalog().deliveries().totals(), catalog.deliveries().totals());
    }
}

fn facts(store: &Store, prefix: &str) -> Vec<ChangedFact> {
    let mut facts = Vec::new();
    each_fact(store, prefix, |fact, value| {
        facts.push((fact.clone(), Some(Bytes::copy_from_slice(value))));
        Ok(())
    })
    .unwrap();
    facts
}

#[test]
fn repeated_facts_retain_records_and_runtime_state() {
    let mut walk = Walk::new(7);
    walk.run();
    let catalog = &walk.catalog;
    let bucket = catalog.buckets().create(new_bucket(&walk.account(), "photos")).unwrap();
    let ann = account(catalog, "Bob", Plan::Free).unwrap();
    catalog.sessions().set_password(&ann.id, None, password("correct horse"), None).unwrap();
    let hash = catalog.sessions().password_hash(&ann.id).unwrap();
    let started = catalog.sessions().sign_in(&ann.id, &hash, ClientInfo::default(), None).unwrap();
    walk.world.clock.advance(7_200_000);
    catalog.sessions().authenticate(&SecretHash::from_text(&started.secret).unwrap()).unwrap();
    let seen_ms = catalog.sessions().get(&started.session.id).unwrap().last_seen_ms;
    let counters = bucket.traffic.clone();
    let before = format!("{:#?}", catalog.state.sessions.read());

    catalog.state.apply(&facts(&walk.world.store, "")).unwrap();
    assert_eq!(format!("{:#?}", catalog.state.sessions.read()), before);
    assert!(Arc::ptr_eq(&catalog.buckets().get(&bucket.name).unwrap(), &bucket));
    assert!(Arc::ptr_eq(&catalog.sessions().password_hash(&ann.id).unwrap(), &hash));
    assert!(Arc::ptr_eq(&catalog.accounts().get(&ann.id).unwrap(), &ann));
    assert_eq!(catalog.sessions().get(&started.session.id).unwrap().last_seen_ms, seen_ms);

    // Counters stay with an edited bucket, and with one whose deletion is undone.
    let edit = BucketChange { access: Some(Access::Private), ..BucketChange::default() };
    let edited = catalog.buckets().edit(&bucket.name, edit).unwrap();
    assert!(Arc::ptr_eq(&edited.traffic, &counters));
    let deletion = catalog.buckets().delete(&bucket.name, OnNonEmpty::Refuse).unwrap();
    walk.world.put("photos", "a.txt");
    assert!(matches!(deletion.finish(), Err(CatalogError::NotEmpty(_, 1))));
    assert!(Arc::ptr_eq(&catalog.buckets().get(&bucket.name).unwrap().traffic, &counters));
    // A later bucket of the same name has its own.
    catalog.buckets().delete(&bucket.name, OnNonEmpty::DeleteToo).unwrap().finish().unwrap();
    let later = catalog.buckets().create(new_bucket(&ann, "photos")).unwrap();
    assert!(!Arc::ptr_eq(&later.traffic, &counters));
}

fn expect_record<R: Record>(store: &Store, prefix: &str, seen: &mut BTreeSet<FactName>) {
    for (fact, value) in facts(store, prefix) {
        let value = value.unwrap();
        let record = decode::<R>(&fact, &value).unwrap();
        assert_eq!(encode(&fact, &record).unwrap(), value, "{fact}");
        seen.insert(fact);
    }
}

#[test]
fn every_record_round_trips() {
    let mut walk = Walk::new(11);
    walk.run();
    let owner = account(&walk.catalog, "Bob", Plan::Free).unwrap();
    walk.catalog.sessions().set_password(&owner.id, None, password("correct horse"), None).unwrap();
    let hash = walk.catalog.sessions().password_hash(&owner.id).unwrap();
    walk.catalog.sessions().sign_in(&owner.id, &hash, ClientInfo::default(), None).unwrap();
    walk.catalog.sessions().invite(&owner.id).unwrap();
    let deleted = walk.catalog.buckets().create(new_bucket(&owner, "deleted")).unwrap();
    drop(walk.catalog.buckets().delete(&deleted.name, OnNonEmpty::Refuse).unwrap());
    walk.catalog
        .record_backup(&LastBackup { at_ms: 1, to: "/b".into(), last_lsn: 2, damage_count: 0 })
        .unwrap();
    let (store, mut seen) = (&walk.world.store, BTreeSet::new());
    expect_record::<Account>(store, OfAccount::PREFIX, &mut seen);
    expect_record::<StandingHistory>(store, standing_history::PREFIX, &mut seen);
    expect_record::<Bucket>(store, bucket::PREFIX, &mut seen);
    expect_record::<bucket_deletion::PendingDeletion>(store, bucket::REMOVAL_PREFIX, &mut seen);
    expect_record::<Organisation>(store, OfOrganisation::PREFIX, &mut seen);
    expect_record::<ApiKey>(store, OfApiKey::PREFIX, &mut seen);
    expect_record::<last_used::StoredLastUse>(store, last_used::PREFIX, &mut seen);
    expect_record::<s3_secret::S3MasterSecret>(store, s3_secret::PREFIX, &mut seen);
    expect_record::<signing_keys::SigningKey>(store, signing_keys::PREFIX, &mut seen);
    expect_record::<Session>(store, OfSession::PREFIX, &mut seen);
    expect_record::<password::StoredPassword>(store, password::PREFIX, &mut seen);
    expect_record::<Invitation>(store, invitation::PREFIX, &mut seen);
    expect_record::<Webhook>(store, OfWebhook::PREFIX, &mut seen);
    expect_record::<Job>(store, OfJob::PREFIX, &mut seen);
    expect_record::<AuditEntry>(store, "audit/", &mut seen);
    expect_record::<usage_records::UsageBlock>(store, usage_records::HOURS_PREFIX, &mut seen);
    expect_record::<LastBackup>(store, "last-backup", &mut seen);
    let rest: Vec<_> = facts(store, "").into_iter().map(|(fact, _)| fact).collect();
    let prefixes: BTreeSet<_> = seen.iter().map(|fact| split(fact).0).collect();
    assert_eq!(prefixes.len(), 17, "{prefixes:?}");
    assert!(rest.iter().all(|fact| seen.contains(fact)), "{rest:?}");
}
