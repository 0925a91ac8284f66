//! Clients that wait for a picture, over real sockets, and cancellation after the last one disconnects.

use std::time::Duration;

use listener::options::ConnectionOptions;
use tests::wire::{Listening, now};
use tests::{Client, World};

use super::png;

/// Takes seconds of a processor.
const SLOW: &str = "GET /photos/a.png?format=avif HTTP/1.1\r\nHost: a\r\n\r\n";
const LATE: Duration = Duration::from_secs(60);

async fn listening() -> (World, Client, Listening) {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "a.png", &png(1_600, 1_200)).await;
    let listening = world.listen(ConnectionOptions::new()).await;
    (world, client, listening)
}

/// Waits until so many variants are being rendered.
async fn until_in_work(world: &World, count: usize) {
    let began = now();
    while world.state.variants.rendering_count() != count {
        assert!(began.elapsed() < LATE, "{} are in work", world.state.variants.rendering_count());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn abandoned_render_is_cancelled() {
    let (world, _client, server) = listening().await;
    let wires = [server.send(SLOW).await, server.send(SLOW).await];
    until_in_work(&world, 1).await;
    drop(wires);
    until_in_work(&world, 0).await;
    assert_eq!(world.derived_count(), 0, "it was not made to its end");
}

#[tokio::test]
async fn render_finishes_for_remaining_waiters() {
    let (world, _client, server) = listening().await;
    let quick = "GET /photos/a.png?format=webp HTTP/1.1\r\nHost: a\r\n\r\n";
    let (leaving, mut staying) = (server.send(quick).await, server.send(quick).await);
    until_in_work(&world, 1).await;
    drop(leaving);
    // Renders have idle priority, so renders of concurrent tests can delay this one for long.
    until_in_work(&world, 0).await;
    let answer = staying.read_response().await;
    assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, "image/webp"));
    assert_eq!(world.derived_count(), 1);
}
