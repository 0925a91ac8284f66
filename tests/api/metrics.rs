//! Metrics, over real sockets, as a collector reads them: `API.md`, Metrics; and the manual, the Grafana dashboard and
//! the alerts.

mod access;
mod bounds;
mod documents;
mod moves;

use listener::options::ConnectionOptions;
use service::Config;
use service::config::Layer;
use tests::wire::Listening;
use tests::{Client, OpenMetrics, World};
use usage::registry::ListenerKind;

const TOKEN: &str = "correct-horse-battery-staple";

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
    let counts = world.state.metrics.connections(ListenerKind::Public).clone();
    let options = ConnectionOptions { counts, ..ConnectionOptions::new() };
    let listening = world.listen(options).await;
    (world, client, listening)
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
