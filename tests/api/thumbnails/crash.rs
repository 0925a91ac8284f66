//! Power cuts in the middle of each disk operation: a file and its thumbnail are both present or both absent.

use std::time::Duration;

use engine::disk::sim::LossPolicy;
use server::management::ApiKeySettings;
use tests::{Client, World};

use super::path;
use crate::images::{png, shown};

/// Returns the widths of the file and of its thumbnail; none for a missing one.
async fn found(world: &World) -> [Option<u32>; 2] {
    let client = world.client_of("ann", ApiKeySettings::default());
    let mut widths = [None, None];
    for (width, path) in widths.iter_mut().zip(["/photos/a.png", "/photos/a_thumb.webp"]) {
        let reply = client.get(path).await;
        *width = (reply.status != 404).then(|| shown(&reply).width());
    }
    widths
}

/// Cuts the power at each operation of some work, and checks that the remaining state is one of the expected.
async fn cut(world: &World, work: impl Future<Output = ()>, expected: [[Option<u32>; 2]; 2]) {
    world.disk.record_cuts();
    work.await;
    // Work of the store's threads completes a little later.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let cuts = world.disk.take_cuts();
    let mut seen = [0, 0];
    for (at, cut) in cuts.iter().enumerate() {
        for (seed, policy) in (0..).zip(LossPolicy::ALL) {
            let disk = cut.fork();
            disk.power_on(policy, seed);
            let found = found(&world.found_on(disk)).await;
            let which = expected.iter().position(|it| *it == found);
            let which = which.unwrap_or_else(|| panic!("{policy:?} {at}: {found:?}"));
            seen[which] += 1;
        }
    }
    assert!(seen[0] > 0 && seen[1] > 0, "{} cuts: {seen:?}", cuts.len());
}

async fn put(client: &Client, side: u32) {
    let address = "/photos/a.png?thumbnail&overwrite";
    path(&client.put(address, "a.png", &png(side, side)).await);
}

#[tokio::test]
async fn power_loss_keeps_file_and_thumbnail_atomic() {
    let (world, client) = World::with_bucket(1);
    let both = |side| [Some(side), Some(side)];
    cut(&world, put(&client, 8), [[None; 2], both(8)]).await;
    cut(&world, put(&client, 9), [both(8), both(9)]).await;
    let delete = async { drop(client.delete("/photos/a.png").await.check_done()) };
    cut(&world, delete, [both(9), [None; 2]]).await;
}
