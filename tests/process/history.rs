//! Usage history across restarts: an orderly stop writes it, and a kill loses only the counts since the last write.

use serde_json::Value;
use tests::{DataFolder, ServerProcess};

fn counted(server: &ServerProcess, key: &str, name: &str) -> u64 {
    let mut connection = server.connect().with_key(key);
    // Midnight may pass in between.
    let answer =
        connection.get("/api/usage/history?step=day&bucketName=photos").expect("it answers");
    let reply: Value = answer.json();
    let points = reply["points"].as_array().expect("points are listed");
    points.iter().map(|point| point[name].as_u64().expect("it is a count")).sum()
}

#[test]
fn history_survives_stop_and_kill_loses_only_unsaved_data() {
    const GETS: u64 = 25;
    let (folder, key) = DataFolder::with_bucket();
    let server = folder.serve();
    let mut connection = server.connect().with_key(&key);
    assert_eq!(
        connection.upload_file("/photos/", "a.bin", &[7; 10_000]).expect("it answers").status,
        200
    );
    for _ in 0..GETS {
        assert_eq!(connection.get("/photos/a.bin").expect("it answers").body.len(), 10_000);
    }
    let bytes_out = counted(&server, &key, "bytesOut");
    assert!(bytes_out > GETS * 10_000 && bytes_out < (GETS + 1) * 10_000, "{bytes_out}");
    server.stop();

    let mut server = folder.serve();
    assert_eq!(counted(&server, &key, "requests"), GETS + 1);
    assert_eq!(counted(&server, &key, "bytesOut"), bytes_out);
    server.get("/photos/a.bin");
    assert_eq!(counted(&server, &key, "requests"), GETS + 2);
    server.kill();

    let server = folder.serve();
    let after = counted(&server, &key, "requests");
    // The minute of the write may be included.
    assert!((GETS + 1..=GETS + 2).contains(&after), "{after}");
    server.stop();
}
