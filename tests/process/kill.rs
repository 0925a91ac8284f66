//! Kill rounds: start, load, kill, compare.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use engine::rng::{Rng, SeededRng};
use tests::server_process::start_and_kill;
use tests::{Connection, DataFolder, ServerProcess};

use crate::client::Client;

const ROUNDS: u32 = 25;
/// Number of concurrent clients.
pub(crate) const CLIENTS: u64 = 4;
/// Interval of the rounds in which the server is killed during its start, too.
const KILL_AT_START_EVERY: u32 = 5;
const RUN_MS_MIN: u64 = 30;
const RUN_MS_MAX: u64 = 600;

#[test]
fn acknowledged_uploads_survive_sigkill() {
    let seed = std::env::var("TRUG_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(2);
    println!("seed {seed}");
    let chance = SeededRng::new(seed);
    let (folder, key) = DataFolder::with_bucket();
    let mut clients: Vec<Client> = (0..CLIENTS).map(|number| Client::new(number, seed)).collect();
    for round in 0..ROUNDS {
        if round % KILL_AT_START_EVERY == 2 {
            let mut command = folder.command(&["serve", "--listen", "127.0.0.1:0"]);
            start_and_kill(&mut command, Duration::from_millis(chance.next_u64() % 60));
        }
        let mut server = folder.serve();
        compare(&server, &mut clients, round);
        let life_ms = RUN_MS_MIN + chance.next_u64() % (RUN_MS_MAX - RUN_MS_MIN);
        load(server.address(), &key, &mut clients, Duration::from_millis(life_ms), || {
            server.kill()
        });
    }
    let server = folder.serve();
    compare(&server, &mut clients, ROUNDS);
    server.stop();
    // Once more, after an orderly shutdown of the store.
    compare(&folder.serve(), &mut clients, ROUNDS);

    // The counters are as exact as the files.
    let (objects, bytes) = totals(&clients);
    let bucket = &folder.json(&["bucket", "list"])[0];
    assert_eq!((&bucket["objectCount"], &bucket["totalBytes"]), (&objects.into(), &bytes.into()));

    let uploads: u64 = clients.iter().map(|client| client.ledger.uploads).sum();
    let deletions: u64 = clients.iter().map(|client| client.ledger.deletions).sum();
    println!("{ROUNDS} rounds, {uploads} uploads and {deletions} deletions acknowledged");
    assert!(uploads > u64::from(ROUNDS) && deletions > 0, "there was hardly any load");
}

/// Lets the clients work on the server for a while, then ends it under load.
pub(crate) fn load(
    address: SocketAddr,
    key: &str,
    clients: &mut [Client],
    life: Duration,
    end: impl FnOnce(),
) {
    let is_ended = &AtomicBool::new(false);
    thread::scope(|scope| {
        for client in clients {
            scope.spawn(move || client.run(address, key, is_ended));
        }
        thread::sleep(life);
        is_ended.store(true, Ordering::SeqCst);
        end();
    });
}

/// Returns the number of objects of all clients, and their bytes.
pub(crate) fn totals(clients: &[Client]) -> (usize, usize) {
    let totals = clients.iter().map(|client| client.ledger.totals());
    totals.fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1))
}

/// Reads back every object of every client.
pub(crate) fn compare(server: &ServerProcess, clients: &mut [Client], round: u32) {
    // Logged before the first line is printed.
    assert!(
        !server.log().contains("DAMAGE") && !server.log().contains("corruption"),
        "round {round}: {}",
        server.log()
    );
    let address = server.address();
    thread::scope(|scope| {
        for client in clients {
            scope.spawn(move || {
                let mut connection = Connection::connect(address).expect("it takes connections");
                client.ledger.check(|key| {
                    let answer = connection.get(&format!("/photos/{key}")).expect("it answers");
                    match answer.status {
                        200 => Some(answer.body),
                        404 => None,
                        _ => panic!("round {round}: {key}: {answer:?}"),
                    }
                });
            });
        }
    });
}
