//! Metrics, over real sockets, as a collector reads them: `API.md`, Metrics; and the manual, the Grafana dashboard and
//! the alerts.

mod access;
mod bounds;
mod documents;
mod moves;
mod remote;

use std::time::Duration;

use engine::remote::SimRemote;
use engine::replication::ReplicationStatus;
use listener::options::ConnectionOptions;
use service::Config;
use service::config::Layer;
use tests::wire::Listening;
use tests::{Client, OpenMetrics, World};
use usage::registry::ListenerKind;

const TOKEN: &str = "correct-horse-battery-staple";

/// Timeout for what the threads of a store do, in milliseconds.
const PATIENCE_MS: u32 = 20_000;

/// Returns a configuration with the metrics token and these settings.
fn config(more: &[&str]) -> Config {
    let token = format!("metrics_token={TOKEN}");
    let words = [&*token, "plan_rates=false"];
    let words = words.into_iter().chain(more.iter().copied());
    Config::new(Layer::from_assignments(words, "a test").unwrap()).unwrap()
}

/// Starts a service that counts connections.
async fn listening(config: Config) -> (World, Client, Listening) {
    let (world, client) = World::with_bucket_and(1, config);
    let listening = counted(&world).await;
    (world, client, listening)
}

/// Starts a service that replicates to a remote store: it has all metrics.
async fn replicated() -> (World, SimRemote, Listening) {
    let (world, remote) = World::replicated(1, config(&[]));
    wait_for_remote(&world, |status| {
        status.last_manifest_ms.is_some() && status.properties.is_some()
    })
    .await;
    let listening = counted(&world).await;
    (world, remote, listening)
}

/// Waits until the state of replication is so.
async fn wait_for_remote(world: &World, is_so: impl Fn(&ReplicationStatus) -> bool) {
    for _ in 0..PATIENCE_MS {
        let status = world.store.replication_status().expect("it replicates");
        if is_so(&status) {
            return;
        }
        // Threads of the store work in real time.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("{:?}", world.store.replication_status());
}

async fn counted(world: &World) -> Listening {
    let counts = world.state.metrics.connections(ListenerKind::Public).clone();
    let options = ConnectionOptions { counts, ..ConnectionOptions::new() };
    world.listen(options).await
}

/// Scrapes the metrics over a connection of its own; returns also the size in bytes.
async fn scrape(listening: &Listening) -> (OpenMetrics, usize) {
    let request = format!(
        "GET /-/metrics HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n"
    );
    let answer = listening.send(request).await.read_response().await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    (OpenMetrics::read(&answer.text()), answer.body.len())
}
