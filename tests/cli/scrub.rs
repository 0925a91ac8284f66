//! `trug scrub`, and its record in `trug stats`.

use std::fs;

use crate::archives::{all_kinds, store_with};

#[test]
fn scrub_reads_everything_and_records_times() {
    for serves in [false, true] {
        let (folder, _) = store_with(&all_kinds());
        let server = serves.then(|| folder.serve());
        let ran = folder.done(&["scrub"]);
        assert!(ran.stdout.contains("\ndamaged             0 places\n"), "{ran:?}");
        let scrubbed = folder.json(&["scrub"]);
        assert!(scrubbed["bytes"].as_u64() > Some(3_000_000), "{scrubbed}");
        let stats = folder.json(&["stats", "--segments"]);
        let segments = stats["segments"].as_array().expect("a list");
        assert!(segments.iter().any(|it| it["class"] == "big" && it["verifiedAt"].is_string()));
        assert_eq!(stats["health"], "writable");
        let text = folder.done(&["stats", "--segments"]).stdout;
        assert!(text.contains("\nSEGMENT     CLASS  LIVE "), "{text}");
        assert!(folder.json(&["stats"])["segments"].is_null());
        if let Some(server) = server {
            server.stop();
        }
    }
}

#[test]
fn scrub_names_and_remembers_damage() {
    for serves in [false, true] {
        let (folder, _) = store_with(&all_kinds());
        let big = fs::read_dir(folder.path().join("big")).expect("a folder").flatten();
        let mut big = big.flat_map(|it| fs::read_dir(it.path()).expect("a folder").flatten());
        let path = big.next().expect("one file is large").path();
        let mut bytes = fs::read(&path).expect("it can be read");
        bytes[1_000_000] ^= 1;
        fs::write(&path, bytes).expect("it can be written");

        let server = serves.then(|| folder.serve());
        let ran = folder.run(&["scrub"]);
        assert_eq!(ran.code, 3, "{ran:?}");
        assert!(ran.stdout.contains("\n  photos/big.bin, big/"), "{ran:?}");
        assert!(ran.stderr.contains("1 places are corrupt"), "{ran:?}");
        let stats = folder.json(&["stats"]);
        assert_eq!(stats["damage"]["count"], 1);
        assert_eq!(stats["damage"]["places"][0]["name"], "photos/big.bin");
        if let Some(server) = server {
            server.stop();
        }
    }
}
