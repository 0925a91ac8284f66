//! A resumable upload whose server is killed repeatedly, in any state.

use std::time::{Duration, Instant};

use engine::rng::{Rng, SeededRng};
use tests::{DataFolder, Response, ServerProcess};

use crate::ledger::BodyNumber;

const BYTES: usize = 12_000_000;
/// Without a new byte there are at most so many restarts.
const ROUNDS_MAX: u32 = 60;
/// The first sweep begins with the server, and reads one record here.
const SWEPT_WITHIN: Duration = Duration::from_secs(30);
const VERSION: (&str, &str) = ("tus-resumable", "1.0.0");
const CHUNK: (&str, &str) = ("content-type", "application/offset+octet-stream");

fn offset(answer: &Response) -> usize {
    answer.header("upload-offset").parse().unwrap_or_else(|_| panic!("no offset: {answer:?}"))
}

/// Creates an upload of `photos/a.bin`, and returns its address.
fn begun(server: &ServerProcess, key: &str, bytes: usize) -> String {
    let length = bytes.to_string();
    // `bucketName photos, path a.bin`
    let said = "bucketName cGhvdG9z,path YS5iaW4=";
    let headers = [VERSION, ("upload-length", &*length), ("upload-metadata", said)];
    let created = server.connect().with_key(key).send("POST", "/api/tus/", &headers, b"");
    let created = created.expect("it answers");
    assert_eq!(created.status, 201, "{created:?}");
    format!("/api/tus/{}", created.header("location"))
}

fn head(server: &ServerProcess, key: &str, path: &str) -> usize {
    let answer =
        server.connect().with_key(key).send("HEAD", path, &[VERSION], b"").expect("it answers");
    assert_eq!(answer.status, 200, "{answer:?}");
    offset(&answer)
}

#[test]
fn tus_upload_being_completed_survives_every_kill() {
    let seed = std::env::var("TRUG_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(4);
    println!("seed {seed}");
    let chance = SeededRng::new(seed);
    let (folder, key) = DataFolder::with_bucket();
    let mut server = folder.serve();
    let (mut unfinished, mut slowest_micros) = (0, 4_000);
    for round in 0..20 {
        let whole = BodyNumber { number: round, bytes: 2_000_000 }.body();
        let path = begun(&server, &key, whole.len());
        let (first, last) = whole.split_at(whole.len() - 1_000);
        let begins = Instant::now();
        let headers = [VERSION, CHUNK, ("upload-offset", "0")];
        let answer = server.connect().with_key(&key).send("PATCH", &path, &headers, first);
        assert_eq!(answer.expect("it answers").status, 204);
        // The end takes about as long as the beginning took, and mostly its syncs.
        slowest_micros = slowest_micros.max(begins.elapsed().as_micros() as u64);
        let at = first.len().to_string();
        let headers = [VERSION, CHUNK, ("upload-offset", &at)];
        let mut connection = server.connect().with_key(&key);
        let begun = connection.begin("PATCH", &path, &headers, last.len());
        begun.and_then(|()| connection.more(last)).expect("it takes bytes");
        std::thread::sleep(Duration::from_micros(chance.next_u64() % slowest_micros));
        server.kill();
        server = folder.serve();
        let received = head(&server, &key, &path);
        assert!(received >= first.len(), "{received} of {}", whole.len());
        if received < whole.len() {
            unfinished += 1;
            let at = received.to_string();
            let headers = [VERSION, CHUNK, ("upload-offset", &at)];
            let answer =
                server.connect().with_key(&key).send("PATCH", &path, &headers, &whole[received..]);
            assert_eq!(answer.expect("it answers").status, 204);
        }
        let stored = server.connect().with_key(&key).get("/photos/a.bin").expect("it answers");
        assert!(stored.body == whole, "round {round}: {} bytes, or others", stored.body.len());
        let deleted = server.connect().with_key(&key).delete("/photos/a.bin").expect("it answers");
        assert_eq!(deleted.status, 200, "{deleted:?}");
    }
    println!("{unfinished} of 20 were not whole yet");
    server.stop();
    folder.done(&["fsck", "--deep"]);
    // The deleted file could be restored until now.
    folder.done(&["compact"]);
    let left = std::fs::read_dir(folder.path().join("big/00")).map_or(0, Iterator::count);
    assert_eq!(left, 0);
}

#[test]
fn tus_upload_resumes_despite_repeated_kills() {
    let seed = std::env::var("TRUG_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(3);
    println!("seed {seed}");
    let chance = SeededRng::new(seed);
    let whole = BodyNumber { number: 7, bytes: BYTES }.body();
    let (folder, key) = DataFolder::with_bucket();
    let mut server = folder.serve();
    let path = begun(&server, &key, BYTES);

    let (mut received, mut rounds) = (0, 0);
    while received < BYTES {
        rounds += 1;
        assert!(rounds < ROUNDS_MAX, "it does not come forward: {received} of {BYTES}");
        let now = head(&server, &key, &path);
        assert!(now >= received, "{received} was reported, now it is {now}");
        received = now;
        if received == BYTES {
            break;
        }
        // One piece that is acknowledged, and one that the kill may hit anywhere.
        for is_last in [false, true] {
            let rest = &whole[received..];
            let piece = &rest[..rest.len().min(100_000 + chance.next_u64() as usize % 1_000_000)];
            let at = received.to_string();
            let headers = [VERSION, CHUNK, ("upload-offset", &at)];
            let mut connection = server.connect().with_key(&key);
            if is_last {
                let begun = connection.begin("PATCH", &path, &headers, piece.len());
                begun.and_then(|()| connection.more(piece)).expect("it takes bytes");
                std::thread::sleep(Duration::from_micros(chance.next_u64() % 8_000));
                server.kill();
            } else {
                let answer = connection.send("PATCH", &path, &headers, piece).expect("it answers");
                assert_eq!(answer.status, 204, "{answer:?}");
                received = offset(&answer);
            }
            if received == BYTES {
                break;
            }
        }
        if received < BYTES {
            server = folder.serve();
        }
    }
    let stored = server.connect().with_key(&key).get("/photos/a.bin").expect("it answers");
    assert!(stored.body == whole, "{} bytes are stored, or others", stored.body.len());
    println!("{rounds} rounds");
    // Nothing of the upload remains: the remains of a kill are removed soon after the start of the server.
    let uploads = folder.path().join("uploads");
    let left = || std::fs::read_dir(&uploads).map_or(0, Iterator::count);
    let begins = Instant::now();
    while left() > 0 {
        assert!(begins.elapsed() < SWEPT_WITHIN, "{} are left", left());
        std::thread::sleep(Duration::from_millis(5));
    }
    server.stop();
    // The file is whole for fsck, too.
    folder.done(&["fsck", "--deep"]);
}
