//! Events and `kill -9`: every acknowledged change is delivered, at least once, however often the server is killed in
//! between.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use engine::rng::{Rng, SeededRng};
use tests::{DataFolder, Receiver};

const ROUNDS: u64 = 12;
const RUN_MS_MIN: u64 = 50;
const RUN_MS_MAX: u64 = 400;

#[test]
fn acknowledged_events_are_delivered_despite_sigkill() {
    let chance = SeededRng::new(3);
    let (folder, key) = DataFolder::with_bucket();
    let receiver = Receiver::start();
    let url = receiver.url("/");
    let words = ["webhook", "create", "--bucket", "photos", "--url", &url];
    folder.done(&[&words[..], &["--event", "s3:ObjectCreated:*"]].concat());
    let serve = ["--listen", "127.0.0.1:0", "--webhook-allow", &receiver.origin()];
    let mut acknowledged = BTreeSet::new();
    for round in 0..ROUNDS {
        let mut server = folder.serve_with(&serve);
        let (address, key) = (server.address(), key.clone());
        let client = thread::spawn(move || {
            let mut stored = Vec::new();
            let connection = tests::Connection::connect(address).expect("it takes connections");
            let mut connection = connection.with_key(&key);
            for number in 0.. {
                let name = format!("{round}-{number}.txt");
                match connection.upload_file("/photos/", &name, name.as_bytes()) {
                    Ok(answer) if answer.status == 200 => stored.push(name),
                    Ok(answer) => panic!("{}", answer.text()),
                    Err(_) => break,
                }
            }
            stored
        });
        let life_ms = RUN_MS_MIN + chance.next_u64() % (RUN_MS_MAX - RUN_MS_MIN);
        thread::sleep(Duration::from_millis(life_ms));
        server.kill();
        acknowledged.extend(client.join().expect("the client ends"));
    }
    assert!(acknowledged.len() > ROUNDS as usize, "there was hardly any load");
    let server = folder.serve_with(&serve);
    let delivered = |seen: &[tests::Seen]| -> BTreeSet<String> {
        seen.iter().map(|seen| seen.kind_and_key().1).collect()
    };
    receiver.wait_until(|seen| {
        seen.len() >= acknowledged.len() && delivered(seen).is_superset(&acknowledged)
    });
    // And nothing that is not there.
    for name in delivered(&receiver.seen()).difference(&acknowledged) {
        let answer = server.get(&format!("/photos/{name}"));
        assert_eq!(answer.status, 200, "{name} is delivered and not there");
    }
    println!("{} acknowledged, {} delivered", acknowledged.len(), receiver.seen().len());
    server.stop();
}
