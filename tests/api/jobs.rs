//! Jobs: `API.md`, Jobs. Each test starts the worker once its data is in place.

use std::sync::Arc;
use std::time::Duration;

use catalog::{FairUseStanding, Scope};
use engine::disk::sim::LossPolicy;
use http::StatusCode;
use jobs::scheduler::run_scheduler;
use serde_json::{Value, json};
use server::management::{AccountSettings, AdminRequest, ApiKeySettings, BucketSettings};
use tests::{Browser, Client, Form, PASSWORD, World};
use tokio::task::JoinHandle;

use crate::images::jpeg;

/// Timeout for a job.
const PATIENCE: Duration = Duration::from_secs(60);

/// The worker of a server, while it lives.
pub(crate) struct Worker(JoinHandle<()>);

impl Worker {
    pub(crate) fn start(world: &World) -> Self {
        Self(tokio::spawn(run_scheduler(world.state.jobs.clone(), Arc::new(world.state.clone()))))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub(crate) async fn begin(client: &Client, wish: Value) -> String {
    let reply = client.post_json("/api/jobs", wish).await;
    assert_eq!(reply.status, StatusCode::ACCEPTED, "{}", reply.text());
    let job = reply.json()["job"].take();
    assert!(["waiting", "running", "done"].contains(&job["state"].as_str().unwrap()), "{job}");
    job["id"].as_str().unwrap().to_owned()
}

async fn job(client: &Client, id: &str) -> Value {
    client.get(&format!("/api/jobs/{id}")).await.check_done()["job"].take()
}

async fn job_when(client: &Client, id: &str, is_there: impl Fn(&Value) -> bool) -> Value {
    let waited = tokio::time::timeout(PATIENCE, async {
        loop {
            let job = job(client, id).await;
            if is_there(&job) {
                return job;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    match waited.await {
        Ok(job) => job,
        Err(_) => panic!("it does not come to that: {}", job(client, id).await),
    }
}

pub(crate) async fn ended(client: &Client, id: &str) -> Value {
    job_when(client, id, |job| !job["endedAt"].is_null()).await
}

async fn fill(client: &Client, folder: &str, count: usize) {
    for start in (0..count).step_by(100) {
        let form = (start..count.min(start + 100)).fold(Form::new(), |form, at| {
            form.file("f", &format!("{at:04}.txt"), None, format!("{folder}{at}").as_bytes())
        });
        client.upload(&format!("/photos/{folder}"), form).await.check_done();
    }
}

/// Runs a job to its end; it must succeed with this `done` count.
async fn finished(client: &Client, wish: Value, done: u64) -> Value {
    let job = ended(client, &begin(client, wish).await).await;
    assert_eq!((&job["state"], &job["done"]), (&json!("done"), &json!(done)), "{job}");
    job
}

fn in_folder(kind: &str, prefix: &str) -> Value {
    json!({"kind": kind, "bucketName": "photos", "prefix": prefix})
}

fn to_folder(prefix: &str, to: &str) -> Value {
    json!({"kind": "moveFolder", "bucketName": "photos", "prefix": prefix, "to": to})
}

#[tokio::test]
async fn folder_delete_job_keeps_files_created_since() {
    let (world, client) = World::with_bucket(1);
    fill(&client, "a/", 3_000).await;
    fill(&client, "ab/", 1).await;
    let id = begin(&client, in_folder("deleteFolder", "a/")).await;
    let waiting = job(&client, &id).await;
    assert_eq!((&waiting["state"], &waiting["kind"]), (&json!("waiting"), &json!("deleteFolder")));
    assert_eq!((&waiting["prefix"], &waiting["unit"]), (&json!("a/"), &json!("files")));
    client.put("/photos/a/", "new.txt", b"1").await;
    client.put("/photos/a/0007.txt?overwrite=true", "0007.txt", b"newer").await;
    let _worker = Worker::start(&world);
    let done = ended(&client, &id).await;
    assert_eq!((&done["state"], &done["error"]), (&json!("done"), &Value::Null), "{done}");
    assert_eq!((&done["done"], &done["total"]), (&json!(2_999), &json!(2_999)));
    assert!(!done["startedAt"].is_null());
    assert_eq!(client.list_keys("a").await, ["a/0007.txt", "a/new.txt", "ab/0000.txt"]);
    assert_eq!(world.object_count("photos"), 3);

    // And back.
    finished(&client, in_folder("undeleteFolder", "a/"), 2_999).await;
    assert_eq!(world.object_count("photos"), 3_002);
    assert_eq!(client.get("/photos/a/2999.txt").await.text(), "a/2999");
    assert_eq!(client.get("/photos/a/0007.txt").await.text(), "newer");
}

#[tokio::test]
async fn folder_move_job_moves_thumbnails_and_keeps_conflicts() {
    let (world, client) = World::with_bucket(1);
    fill(&client, "a/", 200).await;
    client.put("/photos/a/b/?thumbnail", "cat.jpg", &jpeg(60, 40)).await;
    client.put("/photos/a/", "film.bin", &tests::store::body(5, 2_000_000)).await;
    client.put("/photos/c/d/", "0003.txt", b"in the way").await;
    let id = begin(&client, to_folder("a/", "c/d/")).await;
    let _worker = Worker::start(&world);
    let done = ended(&client, &id).await;
    assert_eq!((&done["state"], &done["done"]), (&json!("done"), &json!(201)), "{done}");
    assert_eq!((&done["to"], &done["result"]["skipped"]), (&json!("c/d/"), &json!(1)));
    assert_eq!(client.list_keys("a/").await, ["a/0003.txt"]);
    assert_eq!(client.list_keys("c/d/b/").await, ["c/d/b/cat.jpg", "c/d/b/cat_thumb.webp"]);
    assert_eq!(client.get("/photos/c/d/0199.txt").await.text(), "a/199");
    assert_eq!(client.get("/photos/c/d/0003.txt").await.text(), "in the way");
    assert_eq!(client.get("/photos/c/d/film.bin").await.body.len(), 2_000_000);
    assert_eq!(world.object_count("photos"), 203);
    // The rest is moved under another name, or in place of the other.
    let mut wish = to_folder("a/", "c/d/");
    wish["onConflict"] = json!("rename");
    ended(&client, &begin(&client, wish).await).await;
    assert_eq!(client.get("/photos/c/d/0003%20(1).txt").await.text(), "a/3");
    let mut wish = to_folder("c/d/", "c/");
    wish["onConflict"] = json!("overwrite");
    ended(&client, &begin(&client, wish).await).await;
    assert_eq!(client.list_keys("c/d/").await, Vec::<String>::new());
    assert_eq!(world.object_count("photos"), 203);
}

#[tokio::test]
async fn folder_can_be_moved_out_of_a_folder_of_the_same_name() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/a/a/a/", "x.txt", b"deep").await;
    client.put("/photos/a/a/", "x.txt", b"high").await;
    let _worker = Worker::start(&world);
    let moved = finished(&client, to_folder("a/a/", "a/"), 2).await;
    assert_eq!(moved["result"]["skipped"], 0, "{moved}");
    assert_eq!(client.list_keys("").await, ["a/a/x.txt", "a/x.txt"]);
    assert_eq!(client.get("/photos/a/x.txt").await.text(), "high");
    assert_eq!(client.get("/photos/a/a/x.txt").await.text(), "deep");
}

#[tokio::test]
async fn emptied_bucket_is_restored_up_to_the_quota() {
    let (world, client) = World::with_bucket(1);
    fill(&client, "a/", 150).await;
    client.put("/photos/?thumbnail", "cat.jpg", &jpeg(60, 40)).await;
    let _worker = Worker::start(&world);
    let empty = json!({"kind": "emptyBucket", "bucketName": "photos"});
    finished(&client, empty, 151).await;
    assert_eq!(client.list_keys("").await, Vec::<String>::new());
    let quota_objects = Some(Some(100));
    world.edit_bucket("photos", BucketSettings { quota_objects, ..BucketSettings::default() });
    let failed = ended(&client, &begin(&client, in_folder("undeleteFolder", "")).await).await;
    assert_eq!(failed["state"], "failed");
    assert_eq!(failed["errorCode"], "quota_exceeded", "{failed}");
    assert!(world.object_count("photos") <= 100);
    world.edit_bucket(
        "photos",
        BucketSettings { quota_objects: Some(None), ..BucketSettings::default() },
    );
    let done = ended(&client, &begin(&client, in_folder("undeleteFolder", "")).await).await;
    assert_eq!(done["state"], "done", "{done}");
    assert_eq!(world.object_count("photos"), 151);
    assert_eq!(client.get("/photos/cat_thumb.webp").await.status, 200);
}

#[tokio::test]
async fn restore_job_restores_only_files_deleted_since() {
    let (world, client) = World::with_bucket(1);
    fill(&client, "a/", 3).await;
    client.delete("/photos/a/0000.txt").await.check_done();
    world.clock.advance(10_000);
    client.delete("/photos/a/0001.txt").await.check_done();
    let mut wish = in_folder("undeleteFolder", "a/");
    wish["since"] = json!("2026-01-31T12:00:05Z");
    let id = begin(&client, wish).await;
    // A file deleted when the job has started already stays deleted.
    client.delete("/photos/a/0002.txt").await.check_done();
    let _worker = Worker::start(&world);
    let done = ended(&client, &id).await;
    assert_eq!(done["done"], 1, "{done}");
    assert_eq!(client.list_keys("a/").await, ["a/0001.txt"]);
}

#[tokio::test]
async fn job_can_be_cancelled_while_queued_and_running() {
    let (world, client) = World::with_bucket(1);
    fill(&client, "a/", 2_000).await;
    let waiting = begin(&client, in_folder("deleteFolder", "a/")).await;
    let path = |id: &str| format!("/api/jobs/{id}");
    let cancelled = client.delete(&path(&waiting)).await.check_done();
    assert_eq!(cancelled["job"]["state"], "cancelled");
    client.delete(&path(&waiting)).await.check_error(409, "job_ended");
    let _worker = Worker::start(&world);
    let id = begin(&client, to_folder("a/", "b/")).await;
    job_when(&client, &id, |job| job["done"].as_u64().unwrap() > 0).await;
    client.delete(&path(&id)).await.check_done();
    // It stops soon: nothing is moved after it has left the board.
    let job_id = catalog::JobId::parse(&id).unwrap();
    while world.state.jobs.running.get(&job_id).is_some() {
        tokio::task::yield_now().await;
    }
    let (left, moved) = (client.list_keys("a/").await.len(), client.list_keys("b/").await.len());
    assert_eq!(left + moved, 2_000);
    assert!(left > 0 && moved > 0, "{left} left, {moved} moved");
    let ended = job(&client, &id).await;
    assert_eq!(ended["state"], "cancelled");
    assert_eq!(ended["done"], moved, "it tells less, or more, than it did");
    client.delete("/api/jobs/abcdefghijklmnop").await.check_error(404, "job_not_found");
}

#[tokio::test]
async fn job_stops_when_key_is_revoked_or_account_suspended() {
    let (world, client) = World::with_bucket(1);
    fill(&client, "a/", 10).await;
    let second = world.api_key("ann", ApiKeySettings::default());
    let with_second = Client::new(world.app(), Some(second.key));
    let revoked = begin(&with_second, in_folder("deleteFolder", "a/")).await;
    world.manage(AdminRequest::RevokeApiKey { id: second.api_key.id });
    let _worker = Worker::start(&world);
    let job = ended(&client, &revoked).await;
    assert_eq!((&job["state"], &job["errorCode"]), (&json!("failed"), &json!("forbidden")));
    assert_eq!(client.list_keys("a/").await.len(), 10);
    drop(_worker);
    let suspended = begin(&client, in_folder("deleteFolder", "a/")).await;
    let standing = |standing| AccountSettings { standing: Some(standing), ..Default::default() };
    world.edit_account("ann", standing(FairUseStanding::Suspended));
    let worker = Worker::start(&world);
    let operator = world.operator();
    assert_eq!(ended(&operator, &suspended).await["state"], "failed");
    drop(worker);
    world.edit_account("ann", standing(FairUseStanding::Good));
    assert_eq!(client.list_keys("a/").await.len(), 10);
}

#[tokio::test]
async fn job_survives_sign_out_and_ends_with_permission() {
    let (world, client) = World::with_bucket(1);
    fill(&client, "a/", 10).await;
    let mut ann = Browser::signed_in(&world, "ann").await;
    let begun = ann.post("/api/jobs", in_folder("deleteFolder", "a/")).await.json();
    assert_eq!(ann.delete("/-/session").await.status, 204);
    assert!(!ann.is_signed_in().await);
    let worker = Worker::start(&world);
    let done = ended(&client, begun["job"]["id"].as_str().unwrap()).await;
    assert_eq!((&done["state"], &done["done"]), (&json!("done"), &json!(10)), "{done}");
    drop(worker);

    fill(&client, "a/", 10).await;
    assert_eq!(ann.sign_in("ann", PASSWORD).await.status, 200);
    let begun = ann.post("/api/jobs", in_folder("deleteFolder", "a/")).await.json();
    let standing = |standing| AccountSettings { standing: Some(standing), ..Default::default() };
    world.edit_account("ann", standing(FairUseStanding::Suspended));
    let worker = Worker::start(&world);
    let operator = world.operator();
    let ended = ended(&operator, begun["job"]["id"].as_str().unwrap()).await;
    assert_eq!((&ended["state"], &ended["errorCode"]), (&json!("failed"), &json!("forbidden")));
    drop(worker);
    world.edit_account("ann", standing(FairUseStanding::Good));
    assert_eq!(client.list_keys("a/").await.len(), 10);
}

#[tokio::test]
async fn job_resumes_after_power_loss_without_repeating_work() {
    for (seed, policy) in (0..).zip(LossPolicy::ALL) {
        let (world, client) = World::with_bucket(1);
        fill(&client, "a/", 600).await;
        fill(&client, "d/", 600).await;
        let moving = begin(&client, to_folder("a/", "b/")).await;
        let deleting = begin(&client, in_folder("deleteFolder", "d/")).await;
        client.put("/photos/d/", "new.txt", b"new").await;
        let worker = Worker::start(&world);
        job_when(&client, &moving, |job| job["done"].as_u64().unwrap() > 40).await;
        let disk = world.disk.fork();
        drop(worker);
        disk.cut_power();
        disk.power_on(policy, seed);
        let world = world.found_on(disk);
        let client = Client::new(world.app(), client.key.clone());
        let (left, moved) = (client.list_keys("a/").await, client.list_keys("b/").await);
        assert_eq!(left.len() + moved.len(), 600, "seed {seed}");
        let found = job(&client, &moving).await;
        assert!(["waiting", "done"].contains(&found["state"].as_str().unwrap()), "{found}");
        // A file put under an old name since is not part of the job.
        let first = moved.first().cloned().unwrap_or_default();
        let again = format!("a/{}", first.trim_start_matches("b/"));
        client.put(&format!("/photos/{again}"), "x", b"newer").await;
        let _worker = Worker::start(&world);
        assert_eq!(ended(&client, &moving).await["state"], "done");
        assert_eq!(ended(&client, &deleting).await["state"], "done");
        assert_eq!(client.list_keys("a/").await, [again]);
        assert_eq!(client.list_keys("b/").await.len(), 600);
        assert_eq!(client.list_keys("d/").await, ["d/new.txt"]);
        for at in [0, 299, 599] {
            let text = client.get(&format!("/photos/b/{at:04}.txt")).await.text();
            assert_eq!(text, format!("a/{at}"));
        }
        assert_eq!(world.object_count("photos"), 602);
    }
}

#[tokio::test]
async fn jobs_are_bounded_and_old_ones_are_evicted() {
    let (world, client) = World::with_bucket(1);
    let mut ids = Vec::new();
    for _ in 0..catalog::limits::JOBS_PER_ACCOUNT_MAX {
        ids.push(begin(&client, in_folder("deleteFolder", "a/")).await);
        world.clock.advance(1);
    }
    let over = client.post_json("/api/jobs", in_folder("deleteFolder", "a/")).await;
    over.check_error(429, "too_many_jobs");
    let listed = client.get("/api/jobs?limit=10").await.check_done();
    let listed_ids = |reply: &Value| -> Vec<String> {
        let jobs = reply["jobs"].as_array().unwrap().iter();
        jobs.map(|job| job["id"].as_str().unwrap().to_owned()).collect()
    };
    let cursor = listed["nextCursor"].as_str().unwrap();
    let rest = client.get(&format!("/api/jobs?cursor={cursor}")).await.check_done();
    let mut all = [listed_ids(&listed), listed_ids(&rest)].concat();
    all.reverse();
    assert_eq!(all, ids);
    {
        let _worker = Worker::start(&world);
        for id in &ids {
            assert_eq!(ended(&client, id).await["state"], "done");
        }
    }
    for _ in 0..catalog::limits::JOBS_ENDED_MAX {
        let id = begin(&client, in_folder("deleteFolder", "a/")).await;
        client.delete(&format!("/api/jobs/{id}")).await.check_done();
    }
    let kept = listed_ids(&client.get("/api/jobs?limit=1000").await.check_done());
    assert_eq!(kept.len(), catalog::limits::JOBS_ENDED_MAX);
    world.clock.advance(8 * 24 * 60 * 60 * 1_000);
    world.state.catalog.jobs().sweep().unwrap();
    assert!(listed_ids(&client.get("/api/jobs").await.check_done()).is_empty());
}

#[tokio::test]
async fn jobs_of_other_accounts_are_hidden_and_rejected() {
    let (world, client) = World::with_bucket(1);
    let bob = world.account_with_key("bob");
    let id = begin(&client, in_folder("deleteFolder", "a/")).await;
    bob.get(&format!("/api/jobs/{id}")).await.check_error(404, "job_not_found");
    bob.delete(&format!("/api/jobs/{id}")).await.check_error(404, "job_not_found");
    assert_eq!(bob.get("/api/jobs").await.check_done()["jobs"], json!([]));
    let refused = bob.post_json("/api/jobs", in_folder("deleteFolder", "a/")).await;
    refused.check_error(404, "bucket_not_found");
    let few = |scopes: &[Scope], prefix: &str| {
        let (scopes, prefix) = (scopes.to_vec(), Some(prefix.to_owned()));
        world.client_of("ann", ApiKeySettings { scopes, prefix, ..ApiKeySettings::default() })
    };
    let deleting = few(&[Scope::Delete], "b/");
    let refused = deleting.post_json("/api/jobs", in_folder("deleteFolder", "a/")).await;
    refused.check_error(403, "forbidden");
    let refused = deleting.post_json("/api/jobs", to_folder("b/a/", "b/b/")).await;
    refused.check_error(403, "forbidden");
    let empty = json!({"kind": "emptyBucket", "bucketName": "photos"});
    deleting.post_json("/api/jobs", empty).await.check_error(403, "forbidden");
    deleting.get(&format!("/api/jobs/{id}")).await.check_error(404, "job_not_found");
    let both = few(&[Scope::Delete, Scope::Upload], "b/");
    let refused = both.post_json("/api/jobs", to_folder("b/a/", "c/")).await;
    refused.check_error(403, "forbidden");
    begin(&both, to_folder("b/a/", "b/c/")).await;
    for kind in ["compact", "scrub"] {
        let refused = client.post_json("/api/jobs", json!({ "kind": kind })).await;
        refused.check_error(403, "forbidden");
    }
    let reader = few(&[Scope::List], "");
    assert_eq!(job(&reader, &id).await["state"], "waiting");
    reader.delete(&format!("/api/jobs/{id}")).await.check_error(403, "forbidden");
}

#[tokio::test]
async fn invalid_job_request_is_rejected_with_its_field() {
    let (_world, client) = World::with_bucket(1);
    for (wish, field) in [
        (json!({"kind": "format"}), "kind"),
        // Its only name is that of the command: `scrub`.
        (json!({"kind": "verify"}), "kind"),
        (json!({"bucketName": "photos"}), "kind"),
        (json!({"kind": "deleteFolder", "prefix": "a/"}), "bucketName"),
        (json!({"kind": "deleteFolder", "bucketName": "photos"}), "prefix"),
        (in_folder("deleteFolder", "a"), "prefix"),
        (in_folder("deleteFolder", ""), "prefix"),
        (in_folder("emptyBucket", "a/"), "prefix"),
        (in_folder("moveFolder", "a/"), "to"),
        (to_folder("a/", "a/"), "to"),
        (to_folder("a/", "a/b/"), "to"),
        (to_folder("a/", "b"), "to"),
        (json!({"kind": "scrub", "bucketName": "photos"}), "bucketName"),
        (json!({"kind": "compact", "deadPercentMin": 0}), "deadPercentMin"),
    ] {
        client.post_json("/api/jobs", wish).await.check_parameter(field);
    }
    let mut wish = in_folder("undeleteFolder", "a/");
    wish["since"] = json!("yesterday");
    client.post_json("/api/jobs", wish).await.check_parameter("since");
    let reserved = client.post_json("/api/jobs", to_folder("a/", "presigned/")).await;
    reserved.check_error(400, "bad_path");
}

#[tokio::test]
async fn operator_can_start_compaction_and_scrub() {
    let (world, client) = World::with_bucket(1);
    for at in 0..20 {
        client.put("/photos/a/", &format!("{at}.bin"), &tests::store::body(at, 50_000)).await;
    }
    client.delete("/photos/a/").await.check_done();
    let operator = world.operator();
    let _worker = Worker::start(&world);
    let turn = world.state.jobs.lock_whole_store().await;
    let id = begin(&operator, json!({"kind": "compact", "deadPercentMin": 1})).await;
    let scrub = begin(&operator, json!({"kind": "scrub"})).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(job(&operator, &id).await["state"], "waiting");
    drop(turn);
    let done = ended(&operator, &id).await;
    assert_eq!((&done["state"], &done["unit"]), (&json!("done"), &json!("bytes")), "{done}");
    assert!(done["result"]["bytes"].as_u64().unwrap() >= 1_000_000, "{done}");
    let done = ended(&operator, &scrub).await;
    assert_eq!((&done["state"], &done["result"]["damageCount"]), (&json!("done"), &json!(0)));
    // Nothing of it is left to restore.
    let gone = client.get("/api/buckets/photos/deleted").await.check_done();
    assert_eq!(gone["versions"], json!([]));
}
