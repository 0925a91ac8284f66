//! Jobs and `kill -9`: a started job completes, however often the server is killed in between, and its result is whole.

use std::thread;
use std::time::{Duration, Instant};

use engine::rng::{Rng, SeededRng};
use serde_json::{Value, json};
use tests::{Connection, DataFolder, Form};

const FILES: usize = 1_500;
const KILLS: u32 = 4;
const PATIENCE: Duration = Duration::from_secs(120);

fn begin(connection: &mut Connection, wish: &Value) -> String {
    let answer = connection.post_json("/api/jobs", wish).expect("it answers");
    assert_eq!(answer.status, 202, "{}", answer.text());
    answer.json()["job"]["id"].as_str().expect("a job has an id").to_owned()
}

fn job(connection: &mut Connection, id: &str) -> Value {
    let answer = connection.get(&format!("/api/jobs/{id}")).expect("it answers");
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["job"].take()
}

#[test]
fn job_completes_despite_repeated_sigkill() {
    let chance = SeededRng::new(4);
    let (folder, key) = DataFolder::with_bucket();
    let mut server = folder.serve();
    let mut connection = server.connect().with_key(&key);
    for start in (0..FILES).step_by(100) {
        let form = (start..start + 100).fold(Form::new(), |form, at| {
            form.file("f", &format!("{at:04}.txt"), None, format!("text {at}").as_bytes())
        });
        let answer = connection.upload("/photos/a/", form).expect("it answers");
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    let wish = json!({"kind": "moveFolder", "bucketName": "photos", "prefix": "a/", "to": "b/"});
    let id = begin(&mut connection, &wish);
    for _ in 0..KILLS {
        thread::sleep(Duration::from_millis(10 + chance.next_u64() % 150));
        server.kill();
        server = folder.serve();
        let mut connection = server.connect().with_key(&key);
        // Each file exists once, in one of the two folders.
        let (left, moved) = (connection.list_keys("a/"), connection.list_keys("b/"));
        let name = |key: &String| key[2..].to_owned();
        let names: std::collections::BTreeSet<_> = left.iter().chain(&moved).map(name).collect();
        assert_eq!(names.len(), FILES, "{} left, {} moved", left.len(), moved.len());
    }
    let mut connection = server.connect().with_key(&key);
    let began = Instant::now();
    let done = loop {
        let job = job(&mut connection, &id);
        if !job["endedAt"].is_null() {
            break job;
        }
        assert!(began.elapsed() < PATIENCE, "{job}");
        thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(done["state"], "done", "{done}");
    assert_eq!(connection.list_keys("a/"), Vec::<String>::new());
    assert_eq!(connection.list_keys("b/").len(), FILES);
    for at in [0, FILES / 2, FILES - 1] {
        let answer = connection.get(&format!("/photos/b/{at:04}.txt")).expect("it answers");
        assert_eq!(answer.text(), format!("text {at}"));
    }
    server.stop();
    // The counters are as exact as the files.
    let bucket = &folder.json(&["bucket", "list"])[0];
    assert_eq!(bucket["objectCount"], FILES);
}
