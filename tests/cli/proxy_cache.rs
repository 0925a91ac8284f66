//! `tools/deploy/nginx_cache.conf` in front of a real server: what is cached, for whom, and for how long.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use tests::commands::require_program;
use tests::free_address::free_port;
use tests::{Connection, DataFolder, OpenMetrics, ServerProcess};

use crate::proxy::Nginx;

/// Slice size of the configuration.
const SLICE_BYTES: usize = 4 << 20;
/// Lifetime in the cache of files of the bucket `photos`.
const MAX_AGE: Duration = Duration::from_secs(2);
/// Extra time for an expiry that nginx counts in whole seconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// A server with the public bucket `photos` and the private bucket `letters` behind the cache.
struct Cached {
    folder: DataFolder,
    key: String,
    server: ServerProcess,
    nginx: Nginx,
}

/// A response as curl shows it.
#[derive(Debug)]
struct Fetched {
    status: String,
    /// Value of `X-Cache`.
    cache: String,
    body: Vec<u8>,
}

impl Cached {
    fn start() -> Self {
        require_program("nginx", "-v");
        let (folder, key) = DataFolder::with_bucket();
        let private = ["bucket", "create", "letters", "--account", "ann", "--access", "private"];
        folder.done(&private);
        let cache_control = format!("public, max-age={}", MAX_AGE.as_secs());
        folder.done(&["bucket", "edit", "photos", "--cache-control", &cache_control]);
        let words = ["--listen", "127.0.0.1:0", "--set", "admin_listen=127.0.0.1:0"];
        let url = ["--public-url", "https://cdn.example.com"];
        let server = folder.serve_with(&[&words[..], &url].concat());
        let nginx = Nginx::with_cache(folder.parent(), &server, free_port());
        Self { folder, key, server, nginx }
    }

    fn put(&self, path: &str, bytes: &[u8]) {
        let (folder, name) = path.rsplit_once('/').expect("a bucket and a name");
        self.server.put(&self.key, &format!("{folder}/?overwrite=true"), name, bytes);
    }

    fn get(&self, path: &str, words: &[&str]) -> Fetched {
        fetch(&self.nginx, &self.folder.parent().join("got"), path, words)
    }

    /// Returns the number of files that trug has delivered.
    fn delivered(&self) -> f64 {
        let admin = self.server.printed_address("  Metrics      http://");
        let mut connection = Connection::connect(admin).expect("it listens");
        let scrape = OpenMetrics::read(&connection.get("/-/metrics").expect("it answers").text());
        let is_delivery = |name: &str| {
            name.starts_with("trug_http_requests_total") && name.contains("op=\"deliver\"")
        };
        scrape.series().iter().filter(|(name, _)| is_delivery(name)).map(|(_, count)| count).sum()
    }

    /// Requests a file until this holds; returns the time that it took.
    fn wait_until(&self, path: &str, holds: impl Fn(&Fetched) -> bool) -> Duration {
        let begin = Instant::now();
        loop {
            let got = self.get(path, &[]);
            if holds(&got) {
                return begin.elapsed();
            }
            assert!(begin.elapsed() < MAX_AGE + PATIENCE, "{got:?}");
            thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Requests a URL path of the cache; the body goes through a file.
fn fetch(nginx: &Nginx, out: &Path, path: &str, words: &[&str]) -> Fetched {
    let shown = "%{http_code} %header{x-cache}";
    let url = format!("https://cdn.example.com{path}");
    let to = ["--output", out.to_str().expect("text"), "--write-out", shown];
    let ran = nginx.curl(&[&to[..], words, &[&url]].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    let (status, cache) = ran.stdout.split_once(' ').expect("both are shown");
    let body = fs::read(out).unwrap_or_default();
    let _ = fs::remove_file(out);
    Fetched { status: status.to_owned(), cache: cache.to_owned(), body }
}

#[test]
fn nginx_cache_fetches_each_slice_once() {
    let cached = Cached::start();
    let bytes: Vec<u8> = (0..3 * SLICE_BYTES as u32 + 5).map(|at| (at * 7 / 3) as u8).collect();
    for path in ["/photos/whole.bin", "/photos/slice.mp4"] {
        cached.put(path, &bytes[..SLICE_BYTES]);
    }
    cached.put("/photos/large.mp4", &bytes);
    cached.put("/photos/empty.mp4", b"");
    cached.put("/photos/text.txt", "some text ".repeat(1_000).as_bytes());

    for path in ["/photos/whole.bin", "/photos/slice.mp4"] {
        let before = cached.delivered();
        thread::scope(|scope| {
            let (nginx, bytes) = (&cached.nginx, &bytes);
            for number in 0..50 {
                let out = cached.folder.parent().join(format!("got-{number}"));
                scope.spawn(move || {
                    let got = fetch(nginx, &out, path, &[]);
                    let is_same = got.status == "200" && got.body == bytes[..SLICE_BYTES];
                    assert!(is_same, "{path}: {}", got.status);
                });
            }
        });
        assert_eq!(cached.delivered() - before, 1.0, "50 concurrent requests for a cold file");
    }

    // A range fetches the slices that it touches, here the third.
    let before = cached.delivered();
    let from = 2 * SLICE_BYTES + 10;
    let range = format!("{from}-{}", from + 99);
    for cache in ["MISS", "HIT"] {
        let got = cached.get("/photos/large.mp4", &["--range", &range]);
        assert_eq!((&*got.status, &*got.cache), ("206", cache));
        assert!(got.body == bytes[from..from + 100], "another part");
    }
    assert_eq!(cached.delivered() - before, 1.0, "one slice");
    let got = cached.get("/photos/large.mp4", &[]);
    assert!(got.status == "200" && got.body == bytes, "{}", got.status);
    assert_eq!(cached.get("/photos/large.mp4", &["--range", "99999999-"]).status, "416");

    let got = cached.get("/photos/empty.mp4", &[]);
    assert!(got.status == "200" && got.body.is_empty(), "{got:?}");
    // Each coding is a file of its own in the cache. trug compresses it once, and sends it as it is until then.
    let accepts = [("accept-encoding", "gzip")];
    let mut connection = cached.server.connect();
    let mut direct =
        || connection.send("GET", "/photos/text.txt", &accepts, b"").expect("it answers");
    while direct().header("content-encoding") != "gzip" {
        thread::sleep(Duration::from_millis(50));
    }
    for (coding, cache) in [("gzip", "MISS"), ("identity", "MISS"), ("gzip", "HIT")] {
        let header = format!("accept-encoding: {coding}");
        let got = cached.get("/photos/text.txt", &["-H", &header]);
        assert_eq!((&*got.status, &*got.cache), ("200", cache), "{coding}");
        assert_eq!(got.body.starts_with(b"some text"), coding == "identity", "{coding}");
    }
}

#[test]
fn nginx_cache_never_shares_private_files() {
    let cached = Cached::start();
    cached.put("/letters/a.txt", b"private");
    let link = json!({"path": "a.txt", "expiresIn": 600});
    let mut connection = cached.server.connect().with_key(&cached.key);
    let link = connection.post_json("/api/buckets/letters/download-links", &link);
    let link = link.expect("it answers").json()["url"].as_str().expect("a link").to_owned();
    let link = link.strip_prefix("https://cdn.example.com").expect("the public URL");
    let bearer = format!("authorization: Bearer {}", cached.key);
    for _ in 0..2 {
        for (path, words) in [("/letters/a.txt", &["-H", &*bearer][..]), (link, &[])] {
            let got = cached.get(path, words);
            assert_eq!((&*got.status, &*got.cache, &*got.body), ("200", "BYPASS", &b"private"[..]));
        }
        let got = cached.get("/letters/a.txt", &[]);
        assert_eq!((&*got.status, &*got.body == b"private"), ("401", false), "another caller");
    }
    // A bucket that becomes private: cached copies end with their lifetime.
    cached.put("/photos/b.txt", b"public");
    assert_eq!(cached.get("/photos/b.txt", &[]).status, "200");
    cached.folder.done(&["bucket", "edit", "photos", "--access", "private"]);
    cached.wait_until("/photos/b.txt", |got| got.status == "401");

    let Cached { server, nginx, .. } = &cached;
    assert!(!server.log().contains("panic"), "{}", server.log());
    let form = ["-H", &bearer, "-F", "file=@/dev/null;filename=c.txt"];
    let ran = nginx.curl(&[&form[..], &["https://cdn.example.com/letters/"]].concat());
    assert!(ran.stdout.contains("\"success\":true"), "uploads pass through: {ran:?}");
}

#[test]
fn nginx_cache_serves_changes_after_max_age() {
    let cached = Cached::start();
    for path in ["/photos/changed.txt", "/photos/deleted.txt"] {
        cached.put(path, b"first");
        assert_eq!(cached.get(path, &[]).body, b"first");
        assert_eq!(cached.get(path, &[]).cache, "HIT");
    }
    cached.put("/photos/changed.txt", b"second");
    let mut connection = cached.server.connect().with_key(&cached.key);
    assert_eq!(connection.delete("/photos/deleted.txt").expect("it answers").status, 200);
    cached.wait_until("/photos/changed.txt", |got| got.body == b"second");
    cached.wait_until("/photos/deleted.txt", |got| got.status == "404");
    assert_eq!(cached.get("/photos/deleted.txt", &[]).status, "404", "it does not come back");
}

#[test]
fn nginx_cache_serves_public_files_while_trug_is_down() {
    let cached = Cached::start();
    cached.put("/photos/a.txt", b"public");
    cached.put("/photos/cold.txt", b"public");
    cached.put("/letters/b.txt", b"private");
    let bearer = format!("authorization: Bearer {}", cached.key);
    assert_eq!(cached.get("/photos/a.txt", &[]).status, "200");
    assert_eq!(cached.get("/letters/b.txt", &["-H", &bearer]).status, "200");
    let Cached { folder, key, mut server, nginx } = cached;
    server.kill();
    thread::sleep(MAX_AGE + Duration::from_secs(1));
    let cached = Cached { folder, key, server, nginx };
    for _ in 0..3 {
        let got = cached.get("/photos/a.txt", &[]);
        assert_eq!((&*got.status, &*got.cache, &*got.body), ("200", "STALE", &b"public"[..]));
    }
    assert_eq!(cached.get("/photos/cold.txt", &[]).status, "502");
    for words in [&["-H", &*bearer][..], &[]] {
        assert_eq!(cached.get("/letters/b.txt", words).status, "502", "{words:?}");
    }
}
