//! `trug stats`.

use tests::{DataFolder, Form};

#[test]
fn stats_counts_store_contents() {
    let (folder, key) = DataFolder::with_bucket();
    let check = |objects: u64, bytes: u64| {
        let stats = folder.json(&["stats"]);
        for (field, count) in [
            ("accounts", 1),
            ("buckets", 1),
            ("apiKeys", 1),
            ("objects", objects),
            ("objectBytes", bytes),
        ] {
            assert_eq!(stats[field], count, "{field}");
        }
        assert!(stats["log"]["segments"].as_u64() >= Some(1) && stats["readOnly"].is_null());
        let text = folder.done(&["stats"]).stdout;
        let line = format!("\nfiles               {objects}, {bytes} bytes\n");
        assert!(text.contains(&line) && text.contains("\nwrites              taken\n"), "{text}");
    };
    check(0, 0);
    let server = folder.serve();
    check(0, 0);
    let form = Form::new().file("file", "a.txt", None, b"hello").file("file", "b", None, b"world");
    let answer = server.connect().with_key(&key).upload("/photos/", form).expect("it answers");
    assert_eq!(answer.status, 200, "{}", answer.text());
    check(2, 10);
    server.stop();
    check(2, 10);
}

#[test]
fn stats_warns_when_free_space_is_below_reserve() {
    let (folder, key) = DataFolder::with_bucket();
    // Larger than any disk.
    let reserve_bytes = (1_u64 << 60).to_string();
    let server = folder.serve_with_env(&[("TRUG_RESERVE_BYTES", &reserve_bytes)]);
    let refused = server.upload(&key, "/photos/", "a.txt", b"hello");
    assert_eq!(refused.status, 507, "{}", refused.text());
    assert_eq!(folder.json(&["stats"])["full"]["reserveBytes"], 1_u64 << 60);
    let text = folder.done(&["stats"]).stdout;
    assert!(text.contains("\nwrites              uploads are rejected: "), "{text}");
    assert!(text.contains(" free on the disk, 1.1 EB reserved\n"), "{text}");
    server.stop();
}
