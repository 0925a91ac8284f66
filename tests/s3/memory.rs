//! Memory of a server during transfers of large objects in both directions.

use std::fs::File;
use std::io::Write;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::place::{Place, aws, bytes, client};
use tests::commands::done;

const MIB: usize = 1 << 20;

/// Returns the anonymous memory of a process in KiB: pages of mapped files can be reclaimed by the kernel.
fn held(process: u32) -> u64 {
    let smaps = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap();
    let line = smaps.lines().find(|line| line.starts_with("Anonymous:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
#[ignore = "needs aws-cli from PyPI"]
fn large_object_upload_memory_is_bounded() {
    let aws = aws();
    let place = Place::with(&[("TRUG_BODY_BYTES_MAX", "1000000000")]);
    let path = place.temp_path("large.bin");
    let mut file = File::create(&path).unwrap();
    let piece = bytes(MIB, 4);
    for _ in 0..300 {
        file.write_all(&piece).unwrap();
    }
    drop(file);
    let body = path.to_str().unwrap();
    let ran = |words: &[&str]| {
        let mut aws = client(&aws, &place.keys, place.data.parent());
        aws.arg("--endpoint-url").arg(place.address());
        done(aws.args(words)).stdout
    };
    let (stop, server) = (Arc::new(AtomicBool::new(false)), place.server.id());
    let stopped = stop.clone();
    let watching = thread::spawn(move || {
        let mut most = 0;
        while !stopped.load(Ordering::Relaxed) {
            most = held(server).max(most);
            thread::sleep(Duration::from_millis(20));
        }
        most
    });
    ran(&["s3api", "put-object", "--bucket", "photos", "--key", "one.bin", "--body", body]);
    ran(&["s3", "cp", body, "s3://photos/parts.bin"]);
    let back = place.temp_path("back.bin");
    for name in ["one.bin", "parts.bin"] {
        // curl reads it in one request.
        let url = ran(&["s3", "presign", &format!("s3://photos/{name}")]);
        done(Command::new("curl").args(["-sf", "-o"]).arg(&back).arg(url.trim()));
        assert!(done(Command::new("cmp").arg(&back).arg(&path)).stdout.is_empty());
    }
    stop.store(true, Ordering::Relaxed);
    let most = watching.join().unwrap();
    assert!(most < 150 * 1_024, "{most} KiB were held of 300 MiB");
}
