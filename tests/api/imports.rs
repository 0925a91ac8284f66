//! Import from URLs: `API.md`, Jobs. Real sockets on both sides of the server's own requests.

use std::time::Duration;

use catalog::{JobId, Scope};
use engine::disk::sim::LossPolicy;
use protocol::destination::Origin;
use serde_json::{Value, json};
use server::management::{ApiKeySettings, BucketSettings};
use service::config::Config;
use tests::{Client, Receiver, Scripted, World};

use crate::jobs::{Worker, begin, ended};

/// Creates a service whose operator allows imports from this machine.
fn world(from: &Receiver) -> (World, Client) {
    let import_allow = vec![Origin::parse(&from.origin()).unwrap()];
    let config = Config { plan_rates: false, import_allow, ..Config::default() };
    World::with_bucket_and(1, config)
}

fn import_request(urls: &[String]) -> Value {
    json!({"kind": "importUrls", "bucketName": "photos", "prefix": "in/", "urls": urls})
}

fn file(body: &str, content_type: &str) -> Scripted {
    let headers = vec![("content-type", content_type.to_owned())];
    Scripted { headers, body: body.to_owned(), ..Scripted::status(200) }
}

fn redirect(to: String) -> Scripted {
    Scripted { headers: vec![("location", to)], ..Scripted::status(302) }
}

async fn done(client: &Client, wish: Value) -> Value {
    let id = begin(client, wish).await;
    let job = ended(client, &id).await;
    assert_eq!((&job["state"], &job["error"]), (&json!("done"), &Value::Null), "{job}");
    job
}

#[tokio::test]
async fn import_keeps_names_and_types_and_reports_failures() {
    let from = Receiver::start();
    let (world, client) = world(&from);
    let _worker = Worker::start(&world);
    from.script([
        file("{}", "application/json"),
        redirect("/deep/er.txt?x=1".to_owned()),
        file("text", "text/plain"),
        Scripted::status(404),
    ]);
    let urls = ["/a/one%20two.json?key=1", "/moved", "/none.txt"].map(|path| from.url(path));
    let job = done(&client, import_request(&urls)).await;
    assert_eq!(
        (&job["done"], &job["total"], &job["unit"]),
        (&json!(3), &json!(3), &json!("addresses"))
    );
    assert_eq!((&job["result"]["skipped"], &job["result"]["bytes"]), (&json!(1), &json!(6)));
    assert_eq!(job["failures"], json!([{"url": urls[2], "error": "the response status is 404"}]));
    // Imported files count for the bucket, rejected ones do not.
    let path = "/api/usage/history?bucketName=photos&step=minute";
    let history = client.get(path).await.check_done();
    let sum = |name: &str| -> u64 {
        history["points"].as_array().unwrap().iter().map(|it| it[name].as_u64().unwrap()).sum()
    };
    let asked = import_request(&urls).to_string().len() as u64;
    assert_eq!(sum("bytesIn"), asked + 6);
    let one = client.get("/photos/in/one%20two.json").await;
    assert_eq!(
        (one.text(), one.header("content-type")),
        ("{}".to_owned(), "application/json; charset=utf-8")
    );
    assert_eq!(client.get("/photos/in/moved.txt").await.status.as_u16(), 404);
    assert_eq!(client.get("/photos/in/moved").await.text(), "text", "as it was asked for");
    let lines: Vec<String> = from.seen().into_iter().map(|seen| seen.line).collect();
    assert_eq!(lines[..2], ["GET /a/one%20two.json?key=1 HTTP/1.1", "GET /moved HTTP/1.1"]);
    assert_eq!(lines[2], "GET /deep/er.txt?x=1 HTTP/1.1");
}

#[tokio::test]
async fn import_name_conflict_follows_the_requested_rule() {
    let from = Receiver::start();
    let (world, client) = world(&from);
    let _worker = Worker::start(&world);
    client.put("/photos/in/", "a.txt", b"there").await;
    from.otherwise(file("new", "text/plain"));
    let asked = |on_conflict: &str| {
        let mut wish = import_request(&[from.url("/a.txt")]);
        wish["onConflict"] = json!(on_conflict);
        wish
    };
    let job = done(&client, asked("refuse")).await;
    assert_eq!(job["result"]["skipped"], 1, "{job}");
    assert_eq!(client.get("/photos/in/a.txt").await.text(), "there");
    done(&client, asked("rename")).await;
    assert_eq!(client.get("/photos/in/a%20(1).txt").await.text(), "new");
    done(&client, asked("replace")).await;
    assert_eq!(client.get("/photos/in/a.txt").await.text(), "new");
}

#[tokio::test]
async fn ssrf_import_rejects_private_addresses_and_redirects() {
    let (from, inside) = (Receiver::start(), Receiver::start());
    let (world, client) = world(&from);
    let _worker = Worker::start(&world);
    from.otherwise(redirect(inside.url("/secret")));
    let local = format!("http://localhost:{}/secret", inside.port());
    let urls = [inside.url("/secret"), local, from.url("/x"), "http://169.254.169.254/".to_owned()];
    let job = done(&client, import_request(&urls)).await;
    assert_eq!((&job["done"], &job["result"]["skipped"]), (&json!(4), &json!(4)), "{job}");
    for failure in job["failures"].as_array().unwrap() {
        assert_eq!(failure["error"], "the host does not resolve to a public address");
    }
    assert_eq!((inside.connections(), world.object_count("photos")), (0, 0));
    // A redirect loop is not followed for ever.
    from.otherwise(redirect("/on".to_owned()));
    from.take_received();
    let job = done(&client, import_request(&[from.url("/on")])).await;
    assert_eq!(job["failures"][0]["error"], "too many redirects");
    assert_eq!(from.seen().len(), 6);
}

#[tokio::test]
async fn import_enforces_upload_rules() {
    let from = Receiver::start();
    let (world, client) = world(&from);
    let _worker = Worker::start(&world);
    let settings = BucketSettings { file_bytes_max: Some(Some(10)), ..Default::default() };
    world.edit_bucket("photos", settings);
    from.script([file("12345678901", "text/plain"), file("1234567890", "text/plain")]);
    let job = done(&client, import_request(&[from.url("/a.txt"), from.url("/b.txt")])).await;
    assert_eq!((&job["done"], &job["result"]["skipped"]), (&json!(2), &json!(1)), "{job}");
    assert_eq!(client.get("/photos/in/b.txt").await.text(), "1234567890");
    let packed = Scripted {
        headers: vec![("content-encoding", "gzip".to_owned())],
        ..file("x", "text/plain")
    };
    from.script([packed]);
    let job = done(&client, import_request(&[from.url("/c.txt")])).await;
    assert_eq!(job["failures"][0]["error"], "the response has a content encoding");
}

#[tokio::test]
async fn import_invalid_request_is_rejected() {
    let (_world, client) = World::with_bucket(1);
    let many: Vec<String> = (0..501).map(|at| format!("http://a.example/{at}")).collect();
    let long: Vec<String> = (0..30).map(|_| format!("http://a/{}", "x".repeat(2_000))).collect();
    for urls in [json!([]), json!(many), json!(long), json!(["ftp://a/"]), json!(["http://u@a/"])] {
        let mut wish = import_request(&[]);
        wish["urls"] = urls;
        client.post_json("/api/jobs", wish).await.check_parameter("urls");
    }
    let mut other = json!({"kind": "emptyBucket", "bucketName": "photos"});
    other["urls"] = json!(["http://a.example/"]);
    client.post_json("/api/jobs", other).await.check_parameter("urls");
}

#[tokio::test]
async fn import_fetches_each_url_once_across_restarts() {
    let from = Receiver::start();
    let (world, client) = world(&from);
    from.otherwise(file("same", "text/plain"));
    let urls: Vec<String> = (0..40).map(|at| from.url(&format!("/{at}.txt"))).collect();
    let mut asked = import_request(&urls);
    asked["onConflict"] = json!("rename");
    let id = begin(&client, asked).await;
    let worker = Worker::start(&world);
    from.wait_until_async(|seen| seen.len() >= 15).await;
    drop(worker);
    world.disk.cut_power();
    let disk = world.disk.fork();
    disk.power_on(LossPolicy::KeepSynced, 1);
    let world = world.found_on(disk);
    let client = Client::new(world.app(), client.key.clone());
    let _worker = Worker::start(&world);
    let job = ended(&client, &id).await;
    assert_eq!((&job["state"], &job["done"]), (&json!("done"), &json!(40)), "{job}");
    assert_eq!(world.object_count("photos"), 40, "none twice");
    world.state.catalog.jobs().sweep().unwrap();
    assert!(world.store.facts("imported/", None, 1).unwrap().is_empty());
}

#[tokio::test]
async fn import_requires_upload_permission() {
    let from = Receiver::start();
    let (world, client) = world(&from);
    let key_for = |scopes: Vec<Scope>, prefix: &str| ApiKeySettings {
        scopes,
        prefix: Some(prefix.to_owned()),
        ..Default::default()
    };
    let lists = world.client_of("ann", key_for(vec![Scope::List, Scope::Delete], ""));
    let elsewhere = world.client_of("ann", key_for(vec![Scope::Upload], "out/"));
    let wish = import_request(&[from.url("/a.txt")]);
    for client in [&lists, &elsewhere] {
        client.post_json("/api/jobs", wish.clone()).await.check_error(403, "forbidden");
    }
    let uploads = world.client_of("ann", key_for(vec![Scope::Upload], "in/"));
    let _worker = Worker::start(&world);
    let job = done(&uploads, wish).await;
    assert_eq!((&job["done"], &job["failures"]), (&json!(1), &json!([])), "{job}");
    elsewhere
        .get(&format!("/api/jobs/{}", job["id"].as_str().unwrap()))
        .await
        .check_error(404, "job_not_found");
    assert_eq!(client.get("/photos/in/a.txt").await.status.as_u16(), 200);
}

#[tokio::test]
async fn import_waiting_for_a_response_is_cancelled_at_once() {
    let from = Receiver::start();
    let (world, client) = world(&from);
    let _worker = Worker::start(&world);
    from.otherwise(Scripted { wait: Duration::from_secs(20), ..file("late", "text/plain") });
    let id = begin(&client, import_request(&[from.url("/a.txt"), from.url("/b.txt")])).await;
    from.wait_until_async(|seen| seen.len() == 1).await;
    client.delete(&format!("/api/jobs/{id}")).await.check_done();
    let stopped = async {
        while world.state.jobs.running.get(&JobId::parse(&id).unwrap()).is_some() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), stopped).await.expect("it stops");
    let job = ended(&client, &id).await;
    assert_eq!((&job["state"], &job["done"]), (&json!("cancelled"), &json!(0)), "{job}");
    assert_eq!((from.seen().len(), world.object_count("photos")), (1, 0));
}
