//! Webhooks: `API.md`, Webhooks. The receiver is a real one on a local port, which the operator allows.

mod dead_letters;
mod events;
mod manage;
mod order;
mod reach;
mod restart;
mod retries;
mod signed;
mod tenancy;

use jobs::webhooks::deliver_due;
use protocol::destination::Origin;
use serde_json::{Value, json};
use service::Config;
use tests::{Client, Receiver, Seen, World};

const HOOKS: &str = "/api/buckets/photos/webhooks";
const SECOND_MS: u64 = 1_000;
const HOUR_MS: u64 = 60 * 60 * SECOND_MS;

/// Returns a configuration that permits deliveries to this receiver, and to no other private address.
fn config(receiver: &Receiver) -> Config {
    let webhook_allow = vec![Origin::parse(&receiver.origin()).unwrap()];
    Config { plan_rates: false, webhook_allow, ..Config::default() }
}

fn world() -> (World, Client, Receiver) {
    let receiver = Receiver::start();
    let (world, client) = World::with_bucket_and(1, config(&receiver));
    (world, client, receiver)
}

/// Creates a webhook of the bucket `photos`; returns its address in the API, and its secret.
async fn hook(client: &Client, url: &str, events: &[&str]) -> (String, String) {
    hook_with(client, json!({"url": url, "events": events})).await
}

async fn hook_with(client: &Client, body: Value) -> (String, String) {
    let made = client.post_json(HOOKS, body).await.check_done();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (format!("{HOOKS}/{}", text(&made["webhook"]["id"])), text(&made["secret"]))
}

/// Creates a webhook for everything, and a world for it.
async fn hooked() -> (World, Client, Receiver, String) {
    let (world, client, receiver) = world();
    let everything = ["s3:ObjectCreated:*", "s3:ObjectRemoved:*"];
    let (path, _) = hook(&client, &receiver.url("/hook"), &everything).await;
    (world, client, receiver, path)
}

async fn webhook(client: &Client, path: &str) -> Value {
    client.get(path).await.check_done()["webhook"].take()
}

/// Advances the clock, and delivers everything that is due then.
async fn pass(world: &World, ms: u64) {
    world.clock.advance(ms);
    deliver_due(&world.state.jobs).await;
}

fn kinds_and_keys(seen: &[Seen]) -> Vec<(String, String)> {
    seen.iter().map(Seen::kind_and_key).collect()
}

fn keys(seen: &[Seen]) -> Vec<String> {
    seen.iter().map(|seen| seen.kind_and_key().1).collect()
}

fn pair(kind: &str, key: &str) -> (String, String) {
    (kind.to_owned(), key.to_owned())
}
