//! A resumable upload whose server is killed again and again, wherever it is by then.

use std::time::Duration;

use engine::{Entropy, SeededEntropy};
use tests::{Answer, Connection, DataFolder};

use crate::ledger::BodyNumber;

const BYTES: usize = 12_000_000;
/// Without a new byte there are at most so many restarts.
const ROUNDS_MAX: u32 = 60;
const VERSION: (&str, &str) = ("tus-resumable", "1.0.0");
const CHUNK: (&str, &str) = ("content-type", "application/offset+octet-stream");

fn offset(answer: &Answer) -> usize {
    answer.header("upload-offset").parse().unwrap_or_else(|_| panic!("no offset: {answer:?}"))
}

#[test]
fn an_upload_goes_on_however_often_the_server_is_killed() {
    let seed = std::env::var("TRUG_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(3);
    println!("seed {seed}");
    let chance = SeededEntropy::new(seed);
    let whole = BodyNumber { number: 7, bytes: BYTES }.body();
    let (folder, key) = DataFolder::with_bucket();
    let mut server = folder.serve();
    let connect = |address| Connection::connect(address).expect("it listens").with_key(&key);
    let begin = |address| {
        let length = BYTES.to_string();
        // `bucketName photos, path a.bin`
        let said = "bucketName cGhvdG9z,path YS5iaW4=";
        let headers = [VERSION, ("upload-length", &*length), ("upload-metadata", said)];
        let created = connect(address).send("POST", "/api/tus/", &headers, b"");
        let created = created.expect("it answers");
        assert_eq!(created.status, 201, "{created:?}");
        format!("/api/tus/{}", created.header("location"))
    };
    let path = begin(server.address());

    let (mut told, mut rounds) = (0, 0);
    while told < BYTES {
        rounds += 1;
        assert!(rounds < ROUNDS_MAX, "it does not come forward: {told} of {BYTES}");
        let answer = connect(server.address()).send("HEAD", &path, &[VERSION], b"");
        let answer = answer.expect("it answers");
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(offset(&answer) >= told, "{} was told, now it is {}", told, offset(&answer));
        told = offset(&answer);
        if told == BYTES {
            break;
        }
        // One piece that is acknowledged, and one that the kill may hit anywhere.
        for is_last in [false, true] {
            let rest = &whole[told..];
            let piece = &rest[..rest.len().min(100_000 + chance.number() as usize % 1_000_000)];
            let at = told.to_string();
            let headers = [VERSION, CHUNK, ("upload-offset", &at)];
            let mut connection = connect(server.address());
            if is_last {
                let begun = connection.begin("PATCH", &path, &headers, piece.len());
                begun.and_then(|()| connection.more(piece)).expect("it takes bytes");
                std::thread::sleep(Duration::from_micros(chance.number() % 8_000));
                server.kill();
            } else {
                let answer = connection.send("PATCH", &path, &headers, piece).expect("it answers");
                assert_eq!(answer.status, 204, "{answer:?}");
                told = offset(&answer);
            }
            if told == BYTES {
                break;
            }
        }
        if told < BYTES {
            server = folder.serve();
        }
    }
    let stored = connect(server.address()).get("/photos/a.bin").expect("it answers");
    assert!(stored.body == whole, "{} bytes are stored, or others", stored.body.len());
    println!("{rounds} rounds");
    server.stop();
    // The file is whole for fsck, too, and nothing of the upload is left.
    folder.done(&["fsck", "--deep"]);
    let left = std::fs::read_dir(folder.path().join("uploads")).map_or(0, Iterator::count);
    assert_eq!(left, 0);
}
