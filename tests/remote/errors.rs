//! Errors of an S3 service: which calls are repeated, what becomes of partial uploads, and what errors say.

use std::io::ErrorKind;
use std::sync::Arc;

use bytes::Bytes;
use engine::clock::SystemClock;
use engine::remote::{Created, Part, RemoteStore, probe};
use engine::rng::{Rng, SystemRng};
use tests::memory_s3::{S3Fault, error, memory_s3};
use tests::{File, FileHost, RequestedFile};

use crate::endpoint::connect_to;
use crate::promises;

const KEYS: &str = "key-id-1\nsecret-1";

fn connect(host: &FileHost) -> Arc<dyn RemoteStore> {
    connect_to("s3://pics/a", &host.origin(), KEYS)
}

/// Starts a service that answers every request like this.
fn service(answer: impl Fn(&RequestedFile) -> File + Send + Sync + 'static) -> FileHost {
    FileHost::start(answer)
}

fn create(remote: &Arc<dyn RemoteStore>) -> std::io::Result<Created> {
    remote.create("log/1", &[Bytes::from_static(b"one")])
}

#[test]
fn creation_is_signed_conditional_and_sent_once() {
    let host = service(|_| error(503, "SlowDown"));
    let failed = create(&connect(&host)).unwrap_err().to_string();
    assert!(failed.contains("503") && failed.contains("SlowDown"), "{failed}");
    let [request] = &host.take_requests()[..] else { panic!("it was repeated") };
    assert_eq!((&*request.method, &*request.target), ("PUT", "/pics/a/log/1"));
    assert_eq!((request.header("if-none-match"), &*request.body), ("*", &b"one"[..]));
    let signature = request.header("authorization");
    assert!(signature.contains("Credential=key-id-1/") && signature.contains("/us-east-1/s3/"));
    assert!(request.header("user-agent").starts_with("trug/"));
}

#[test]
fn creation_cut_off_before_the_response_is_sent_once() {
    let host = service(|_| File::of("x").with("etag", "\"1\"").with("Content-Length", "x"));
    assert!(create(&connect(&host)).is_err());
    assert_eq!(host.take_requests().len(), 1);
}

#[test]
fn conflict_and_failed_condition_are_existing_objects() {
    for (status, code) in [(412, "PreconditionFailed"), (409, "ConditionalRequestConflict")] {
        let host = service(move |_| error(status, code));
        assert_eq!(create(&connect(&host)).unwrap(), Created::Exists, "{code}");
        assert_eq!(host.take_requests().len(), 1, "{code}");
    }
}

#[test]
fn reads_and_listings_are_repeated_after_an_error() {
    let s3 = memory_s3(S3Fault::None);
    let remote = connect(&s3);
    create(&remote).unwrap();
    for call in [
        |remote: &Arc<dyn RemoteStore>| remote.read("log/1", Part::Whole).map(drop),
        |remote: &Arc<dyn RemoteStore>| remote.list("log/", None, 9).map(drop),
        |remote: &Arc<dyn RemoteStore>| remote.remove("log/1"),
    ] {
        let host = service(|request| match request.time {
            1 => error(500, "InternalError"),
            _ => error(404, "NoSuchKey"),
        });
        // What the second response is does not matter here.
        let _ = call(&connect(&host));
        assert_eq!(host.take_requests().len(), 2);
        let host = service(|_| error(500, "InternalError"));
        assert!(call(&connect(&host)).is_err());
        assert_eq!(host.take_requests().len(), 4);
    }
}

#[test]
fn missing_bucket_is_an_error_of_every_call() {
    let host = service(|_| error(404, "NoSuchBucket"));
    let remote = connect(&host);
    for failed in [
        create(&remote).unwrap_err(),
        remote.read("log/1", Part::Whole).unwrap_err(),
        remote.read("log/1", Part::Suffix(3)).unwrap_err(),
        remote.list("log/", None, 9).unwrap_err(),
        remote.remove("log/1").unwrap_err(),
    ] {
        assert_eq!(failed.kind(), ErrorKind::NotFound);
        assert!(failed.to_string().starts_with("the bucket does not exist: "), "{failed}");
    }
}

#[test]
fn rejected_credentials_are_reported_without_the_secret() {
    let page = "<html>".repeat(10_000);
    let host = service(move |_| File::of(page.clone()).with_status(403));
    let failed = create(&connect(&host)).unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::PermissionDenied);
    let failed = failed.to_string();
    assert!(failed.contains("403") && failed.len() < 600 && !failed.contains("secret-1"));
}

#[test]
fn wrong_clock_is_the_cause_of_skewed_requests() {
    let host = service(|_| error(403, "RequestTimeTooSkewed"));
    let failed = create(&connect(&host)).unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::PermissionDenied);
    let failed = failed.to_string();
    assert!(
        failed.starts_with("the clock of this machine differs from that of the remote store: ")
    );
    let host = service(|_| error(403, "AccessDenied"));
    assert!(!create(&connect(&host)).unwrap_err().to_string().contains("clock"));
}

#[test]
fn unreachable_service_is_an_error_with_its_cause() {
    let address = tests::free_address::free_address();
    let remote = connect_to("s3://pics", &format!("http://{address}"), KEYS);
    let failed = create(&remote).unwrap_err().to_string();
    assert!(failed.contains(&address.to_string()), "{failed}");
}

#[test]
fn failed_part_aborts_the_upload() {
    let host = service(|request| match (&*request.method, request.target.contains("uploads")) {
        ("POST", true) => File::of(
            "<InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>",
        ),
        ("DELETE", _) => File::of("").with_status(204),
        _ => error(403, "AccessDenied"),
    });
    let mut read = |_: u64, _: &mut [u8]| Ok(());
    let failed = connect(&host).upload("seg/1", 9 << 20, &mut read).unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::PermissionDenied, "{failed}");
    let requests = host.take_requests();
    let last = requests.last().unwrap();
    assert_eq!((&*last.method, &*last.target), ("DELETE", "/pics/a/seg/1?uploadId=u1"));
}

#[test]
fn probe_finds_missing_properties_of_an_s3_service() {
    let probed = |fault| {
        let remote = connect(&memory_s3(fault));
        let report = probe(&remote, &SystemClock::new(), SystemRng.uuid()).unwrap();
        assert_eq!(remote.list("", None, 9).unwrap(), []);
        (report.creates_atomically, report.reads_ranges)
    };
    assert_eq!(probed(S3Fault::None), (true, true));
    assert_eq!(probed(S3Fault::IgnoresConditions), (false, true));
    assert_eq!(probed(S3Fault::IgnoresRanges), (true, false));
}

#[test]
fn body_of_another_length_than_announced_is_an_error() {
    for length in [0, 1, 3, 1_000_000] {
        let host = service(move |request| {
            let file = match &*request.method {
                "HEAD" => File::of("").with("Content-Length", "10"),
                _ => File::of("x".repeat(length)).with_status(206),
            };
            let file = file.with("content-range", "bytes 0-1/10").with("etag", "\"1\"");
            file.with("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT")
        });
        let failed = connect(&host).read("log/1", Part::Range(0..2)).unwrap_err();
        assert!(failed.to_string().contains("announced 2 bytes"), "{length}: {failed}");
    }
}

#[test]
fn many_clients_of_one_service_race_with_one_winner() {
    let s3 = memory_s3(S3Fault::None);
    promises::check_races(&[connect(&s3), connect(&s3)], 10, &[2_000]);
}
