//! The promises of [`RemoteStore`], each checked on an empty store.

use std::collections::BTreeSet;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Instant;

use bytes::Bytes;
use engine::clock::{Clock, SystemClock};
use engine::remote::{Created, Part, RemoteStore, probe};
use engine::rng::{Rng, SystemRng};

type Promise = fn(&Arc<dyn RemoteStore>);

/// Promises by name. Each removes what it created.
const ALL: &[(&str, Promise)] = &[
    ("created object is read and not replaced", created_object_is_read_and_not_replaced),
    ("ranges and suffixes are exact", ranges_and_suffixes_are_exact),
    ("empty object is read", empty_object_is_read),
    ("missing object is none", missing_object_is_none),
    ("removed name is free", removed_name_is_free),
    ("upload replaces an object", upload_replaces_an_object),
    ("large upload is read by pieces", large_upload_is_read_by_pieces),
    ("failed upload leaves no object", failed_upload_leaves_no_object),
    ("listing is sorted and starts after a name", listing_is_sorted_and_starts_after_a_name),
    ("listing accepts any prefix", listing_accepts_any_prefix),
    ("listing continues beyond a page", listing_continues_beyond_a_page),
    ("listed times are current", listed_times_are_current),
    ("probe finds all properties", probe_finds_all_properties),
];

/// Checks all promises on an empty store.
pub(crate) fn check_all(remote: &Arc<dyn RemoteStore>) {
    for (name, promise) in ALL {
        let began = Instant::now();
        promise(remote);
        println!("{name}: {:?}", began.elapsed());
        let left = remote.list("", None, 9).unwrap();
        assert!(left.is_empty(), "{name} leaves {left:?}");
    }
}

fn create(remote: &Arc<dyn RemoteStore>, name: &str, text: &'static str) -> Created {
    remote.create(name, &[Bytes::from_static(text.as_bytes())]).unwrap()
}

fn text(remote: &Arc<dyn RemoteStore>, name: &str) -> Option<Bytes> {
    remote.read(name, Part::Whole).unwrap().map(|read| read.bytes)
}

fn names(
    remote: &Arc<dyn RemoteStore>,
    prefix: &str,
    after: Option<&str>,
    limit: usize,
) -> Vec<String> {
    let listed = remote.list(prefix, after, limit).unwrap();
    listed.into_iter().map(|object| object.name).collect()
}

fn created_object_is_read_and_not_replaced(remote: &Arc<dyn RemoteStore>) {
    let pieces = [Bytes::from_static(b"on"), Bytes::new(), Bytes::from_static(b"e")];
    assert_eq!(remote.create("log/1", &pieces).unwrap(), Created::New);
    assert_eq!(create(remote, "log/1", "two"), Created::Exists);
    assert_eq!(create(remote, "log/1", "one"), Created::Exists);
    let read = remote.read("log/1", Part::Whole).unwrap().unwrap();
    assert_eq!((&*read.bytes, read.object_bytes), (&b"one"[..], 3));
    remote.remove("log/1").unwrap();
}

fn ranges_and_suffixes_are_exact(remote: &Arc<dyn RemoteStore>) {
    assert_eq!(create(remote, "seg/1/2", "0123456789"), Created::New);
    for (part, expected) in [
        (Part::Whole, "0123456789"),
        (Part::Range(0..1), "0"),
        (Part::Range(3..7), "3456"),
        (Part::Range(8..100), "89"),
        (Part::Range(10..12), ""),
        (Part::Range(500..700), ""),
        (Part::Range(4..4), ""),
        (Part::Suffix(3), "789"),
        (Part::Suffix(10), "0123456789"),
        (Part::Suffix(4_000), "0123456789"),
        (Part::Suffix(0), ""),
    ] {
        let read = remote.read("seg/1/2", part.clone()).unwrap().unwrap();
        assert_eq!((&*read.bytes, read.object_bytes), (expected.as_bytes(), 10), "{part:?}");
    }
    remote.remove("seg/1/2").unwrap();
}

fn empty_object_is_read(remote: &Arc<dyn RemoteStore>) {
    assert_eq!(remote.create("empty", &[]).unwrap(), Created::New);
    assert_eq!(create(remote, "empty", "full"), Created::Exists);
    for part in [Part::Whole, Part::Range(0..9), Part::Suffix(9)] {
        let read = remote.read("empty", part.clone()).unwrap().unwrap();
        assert_eq!((read.bytes.len(), read.object_bytes), (0, 0), "{part:?}");
    }
    remote.remove("empty").unwrap();
}

fn missing_object_is_none(remote: &Arc<dyn RemoteStore>) {
    for part in [Part::Whole, Part::Range(0..9), Part::Range(0..0), Part::Suffix(9)] {
        assert_eq!(remote.read("log/missing", part).unwrap(), None);
    }
    remote.remove("log/missing").unwrap();
    assert_eq!(remote.list("log/", None, 9).unwrap(), []);
}

fn removed_name_is_free(remote: &Arc<dyn RemoteStore>) {
    for text_of_round in ["one", "two"] {
        assert_eq!(create(remote, "log/1", text_of_round), Created::New);
        assert_eq!(text(remote, "log/1").unwrap(), text_of_round);
        remote.remove("log/1").unwrap();
        assert_eq!(text(remote, "log/1"), None);
    }
}

fn upload_replaces_an_object(remote: &Arc<dyn RemoteStore>) {
    assert_eq!(create(remote, "seg/1", "created"), Created::New);
    for length in [0, 1, 5_000] {
        let mut read = |from: u64, buffer: &mut [u8]| {
            assert_eq!((from, buffer.len()), (0, length));
            buffer.fill(b'x');
            Ok(())
        };
        remote.upload("seg/1", length as u64, &mut read).unwrap();
        assert_eq!(text(remote, "seg/1").unwrap(), "x".repeat(length));
    }
    remote.remove("seg/1").unwrap();
}

/// Byte at a position of the large object.
fn byte_at(position: u64) -> u8 {
    (position.wrapping_mul(2_654_435_761) >> 13) as u8
}

fn large_upload_is_read_by_pieces(remote: &Arc<dyn RemoteStore>) {
    let (bytes, mut next) = ((20 << 20) + 3, 0);
    let mut read = |from: u64, buffer: &mut [u8]| {
        assert_eq!(from, next, "pieces are consecutive");
        assert!(buffer.len() <= 8 << 20, "memory is bounded");
        next += buffer.len() as u64;
        (from..).zip(buffer).for_each(|(at, byte)| *byte = byte_at(at));
        Ok(())
    };
    remote.upload("seg/large", bytes, &mut read).unwrap();
    assert_eq!(next, bytes);
    for range in [0..100, (8 << 20) - 50..(8 << 20) + 50, bytes - 10..bytes] {
        let read = remote.read("seg/large", Part::Range(range.clone())).unwrap().unwrap();
        assert_eq!(read.object_bytes, bytes);
        assert!(range.clone().map(byte_at).eq(read.bytes.iter().copied()), "{range:?}");
    }
    assert_eq!(remote.list("seg/", None, 9).unwrap()[0].bytes, bytes);
    remote.remove("seg/large").unwrap();
}

fn failed_upload_leaves_no_object(remote: &Arc<dyn RemoteStore>) {
    let mut read = |from: u64, _: &mut [u8]| match from {
        0 => Ok(()),
        _ => Err(std::io::Error::other("the disk failed")),
    };
    let failed = remote.upload("seg/large", 12 << 20, &mut read).unwrap_err();
    assert_eq!(failed.to_string(), "the disk failed");
    assert_eq!(text(remote, "seg/large"), None);
}

fn listing_is_sorted_and_starts_after_a_name(remote: &Arc<dyn RemoteStore>) {
    let all = ["a", "log.1", "log/1", "log/10", "log/2", "log/a/b", "log0", "z"];
    for name in all.iter().rev() {
        assert_eq!(create(remote, name, "x"), Created::New);
    }
    assert_eq!(names(remote, "", None, 100), all);
    assert_eq!(names(remote, "", None, 3), all[..3]);
    assert_eq!(names(remote, "log/", None, 100), all[2..6]);
    assert_eq!(names(remote, "log/", Some("log/10"), 100), all[4..6]);
    assert_eq!(names(remote, "log/", Some("log/11"), 1), all[4..5]);
    assert_eq!(names(remote, "log/", Some("a"), 100), all[2..6]);
    assert!(names(remote, "log/", Some("log/z"), 100).is_empty());
    assert!(names(remote, "log/", Some("m"), 100).is_empty());
    assert!(names(remote, "log/1/", None, 100).is_empty());
    let object = &remote.list("log/10", None, 9).unwrap()[0];
    assert_eq!((&*object.name, object.bytes), ("log/10", 1));
    all.iter().for_each(|name| remote.remove(name).unwrap());
}

fn listing_accepts_any_prefix(remote: &Arc<dyn RemoteStore>) {
    let all = ["log/0009", "log/0010", "log/0011", "log/0020", "log/002~", "log0/1"];
    for name in all {
        assert_eq!(create(remote, name, "x"), Created::New);
    }
    for (prefix, found) in [
        ("l", 0..6),
        ("log", 0..6),
        ("log/00", 0..5),
        ("log/001", 1..3),
        ("log/0011", 2..3),
        ("log/0012", 0..0),
        ("log/002", 3..5),
        ("log0", 5..6),
        ("log0/1", 5..6),
    ] {
        assert_eq!(names(remote, prefix, None, 100), all[found], "{prefix}");
    }
    assert_eq!(names(remote, "log/00", Some("log/0010"), 2), all[2..4]);
    all.iter().for_each(|name| remote.remove(name).unwrap());
}

fn listing_continues_beyond_a_page(remote: &Arc<dyn RemoteStore>) {
    let all: Vec<String> = (0..1_100).map(|number| format!("log/{number:04}")).collect();
    thread::scope(|scope| {
        for part in all.chunks(100) {
            scope.spawn(|| {
                part.iter().for_each(|name| {
                    create(remote, name, "x");
                })
            });
        }
    });
    assert!(names(remote, "log/", None, 5_000) == all);
    assert!(names(remote, "log/", None, 1_050) == all[..1_050]);
    assert!(names(remote, "log/", Some("log/0042"), 1_050) == all[43..1_093]);
    thread::scope(|scope| {
        for part in all.chunks(100) {
            scope.spawn(|| part.iter().for_each(|name| remote.remove(name).unwrap()));
        }
    });
}

fn listed_times_are_current(remote: &Arc<dyn RemoteStore>) {
    let before_ms = SystemClock::new().unix_ms();
    create(remote, "log/1", "x");
    let after_ms = SystemClock::new().unix_ms();
    let modified_ms = remote.list("log/", None, 1).unwrap()[0].modified_ms;
    // Stores have a resolution of a second.
    assert!((before_ms - 1_000..after_ms + 1_000).contains(&modified_ms), "{modified_ms}");
    remote.remove("log/1").unwrap();
}

fn probe_finds_all_properties(remote: &Arc<dyn RemoteStore>) {
    let report = probe(remote, &SystemClock::new(), SystemRng.uuid()).unwrap();
    println!("{report:?}");
    assert!(report.creates_atomically && report.lists_after_write, "{report:?}");
    assert!(report.reads_ranges && report.reads_after_create, "{report:?}");
    assert!(report.clock_skew_ms.abs() < 2_000, "{report:?}");
}

/// Checks that of 16 concurrent creations, spread over clients of one store, exactly one succeeds.
///
/// The lengths of the objects are used in turn.
pub(crate) fn check_races(stores: &[Arc<dyn RemoteStore>], rounds: usize, lengths: &[usize]) {
    let (writers, began) = (16, Instant::now());
    let mut single = 0;
    for round in 0..rounds {
        let (name, barrier) = (format!("race/{round}"), Barrier::new(writers));
        let length = lengths[round % lengths.len()];
        let winners: Vec<usize> = thread::scope(|scope| {
            let threads: Vec<_> = (0..writers)
                .map(|writer| {
                    let (name, barrier) = (&name, &barrier);
                    let remote = &stores[writer % stores.len()];
                    scope.spawn(move || {
                        let body = Bytes::from(vec![writer as u8; length]);
                        barrier.wait();
                        remote.create(name, &[body]).unwrap()
                    })
                })
                .collect();
            let created = threads.into_iter().map(|thread| thread.join().unwrap());
            let created = created.enumerate().filter(|(_, created)| *created == Created::New);
            created.map(|(writer, _)| writer).collect()
        });
        let read = text(&stores[0], &name).unwrap();
        let is_winners = winners.len() == 1 && read == vec![winners[0] as u8; length];
        single += usize::from(is_winners);
        stores[0].remove(&name).unwrap();
    }
    println!("one winner in {single} of {rounds} races of {writers}, {:?}", began.elapsed());
    assert_eq!(single, rounds);
}

/// Checks that clients of one store see the creations and removals of each other at once.
pub(crate) fn check_reads_across(stores: &[Arc<dyn RemoteStore>]) {
    let mut seen = BTreeSet::new();
    for round in 0..60 {
        let (writer, reader) = (&stores[round % 2], &stores[(round + 1) % 2]);
        let name = format!("across/{round:04}");
        assert_eq!(text(reader, &name), None);
        assert_eq!(create(writer, &name, "x"), Created::New);
        assert_eq!(text(reader, &name).unwrap(), "x", "{name}");
        seen.insert(name);
        assert!(names(reader, "across/", None, 100).iter().eq(&seen), "{round}");
    }
    for name in seen {
        stores[0].remove(&name).unwrap();
        assert!(!names(&stores[1], "across/", None, 100).contains(&name));
    }
}
