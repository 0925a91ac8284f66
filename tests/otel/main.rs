//! Spans of the real binary, as a collector reads them. The feature `otel` is on in builds of the tests.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the rules of the package are for the binary, not for those who look at it from outside"
)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use std::process::Command;

use memchr::memmem;
use tests::commands::{done, run, trug};
use tests::spans::Arrived;
use tests::{DataFolder, Receiver, Scripted, ServerProcess};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

fn serve(folder: &DataFolder, endpoint: &str, variables: &[(&str, &str)]) -> ServerProcess {
    folder.serve_with_env(&[&[("TRUG_OTLP_ENDPOINT", endpoint)], variables].concat())
}

fn curl(words: &[&str]) -> String {
    let ran = done(Command::new("curl").args(["--silent", "--show-error"]).args(words));
    ran.stdout
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn otel_exports_request_spans_without_secrets() {
    let collector = Receiver::start();
    let (folder, key) = DataFolder::with_bucket();
    let server = serve(&folder, &collector.origin(), &[]);
    let url = |path: &str| format!("http://{}{path}", server.address());
    let file = folder.parent().join("secret-name.txt");
    std::fs::write(&file, "text").unwrap();
    let form = format!("file=@{}", file.display());
    let authorization = format!("Authorization: Bearer {key}");
    curl(&["-H", &authorization, "-F", &form, &url("/photos/folder-name/")]);
    curl(&[&url("/photos/folder-name/secret-name.txt?download=query-word")]);
    let caller = format!("traceparent: 00-{TRACE}-{CALLER}-01");
    curl(&["-H", &caller, &url("/photos/none.txt")]);
    curl(&["-H", &authorization, &url("/api/search/photos?q=query-word")]);
    let picture = folder.parent().join("picture.png");
    std::fs::write(&picture, include_bytes!("../../server/assets/screenshots/files.png")).unwrap();
    let form = format!("file=@{}", picture.display());
    curl(&["-H", &authorization, "-F", &form, &url("/photos/folder-name/")]);
    let small = url("/photos/folder-name/picture.png?width=16&format=webp");
    curl(&["--output", "/dev/null", &small]);
    server.stop();

    let seen = collector.seen();
    let spans = Arrived::all(&seen);
    let of = |operation: &str| -> Vec<&Arrived> {
        spans.iter().filter(|it| it.said("trug.operation") == Some(operation)).collect()
    };
    let steps = |of: &Arrived, name: &str| {
        let within = spans.iter().filter(|it| it.0.parent_span_id == of.0.span_id);
        within.filter(|it| it.0.name == name && it.0.trace_id == of.0.trace_id).count()
    };
    let [upload, _] = of("upload")[..] else { panic!("{spans:?}") };
    assert_eq!(upload.0.name, "upload");
    assert_eq!(upload.said("http.request.method"), Some("POST"));
    assert_eq!(upload.said("trug.bucket"), Some("photos"));
    assert_eq!(upload.number("http.response.status_code"), Some(200));
    assert!(upload.said("trug.request_id").is_some_and(|id| !id.is_empty()));
    assert_eq!(steps(upload, "store.commit"), 1, "{spans:?}");
    let [picture] = of("picture")[..] else { panic!("{spans:?}") };
    for step in ["image.wait", "image.work"] {
        assert!(steps(picture, step) > 0, "{step}: {spans:?}");
    }
    let [found, none] = of("deliver")[..] else { panic!("{spans:?}") };
    assert_eq!(found.number("http.response.status_code"), Some(200));
    assert_eq!(none.number("http.response.status_code"), Some(404));
    assert_ne!(hex(&none.0.trace_id), TRACE, "not everybody is believed");
    let [searched] = of("search")[..] else { panic!("{spans:?}") };
    assert_eq!(searched.said("http.route"), Some("/api/search/{bucket}"));

    for secret in [&*key, "secret-name", "folder-name", "query-word", "127.0.0.1", "Bearer"] {
        let is_there = |body: &[u8]| memmem::find(body, secret.as_bytes()).is_some();
        assert!(!seen.iter().any(|seen| is_there(&seen.body)), "{secret}");
    }
}

#[test]
fn otel_trace_context_is_accepted_from_trusted_proxy() {
    let collector = Receiver::start();
    let (folder, _) = DataFolder::with_bucket();
    let proxies = ("TRUG_TRUSTED_PROXIES", "127.0.0.1");
    let server = serve(&folder, &collector.origin(), &[proxies, ("TRUG_OTLP_SAMPLE_RATIO", "0")]);
    let url = format!("http://{}/photos/none.txt", server.address());
    curl(&[&url]);
    for flags in ["01", "00"] {
        curl(&["-H", &format!("traceparent: 00-{TRACE}-{CALLER}-{flags}"), &url]);
    }
    server.stop();
    let spans = Arrived::all(&collector.seen());
    let [span] = &spans[..] else { panic!("one is sampled: {spans:?}") };
    assert_eq!((hex(&span.0.trace_id), hex(&span.0.parent_span_id)), (TRACE.into(), CALLER.into()));
}

#[test]
fn otel_collector_failure_does_not_affect_requests() {
    let (folder, _) = DataFolder::with_bucket();
    let server = serve(&folder, "http://127.0.0.1:9", &[]);
    let url = format!("http://{}/-/health", server.address());
    for _ in 0..50 {
        assert!(curl(&[&url]).contains("\"status\":\"ok\""));
    }
    server.wait_for_log("span export failing; spans are dropped");
    server.stop();

    let collector = Receiver::start();
    collector.otherwise(Scripted::status(503));
    let server = serve(&folder, &collector.origin(), &[]);
    let url = format!("http://{}/-/health", server.address());
    curl(&[&url]);
    server.wait_for_log("the response status is 503");
    collector.otherwise(Scripted::status(200));
    curl(&[&url]);
    server.wait_for_log("span export resumed");
    server.stop();
}

#[test]
fn invalid_otel_setting_is_reported() {
    for (name, value, why) in [
        ("TRUG_OTLP_ENDPOINT", "127.0.0.1:4318", "otlp_endpoint: "),
        ("TRUG_OTLP_SAMPLE_RATIO", "2", "otlp_sample_ratio: \"2\" is not a number from 0 to 1"),
    ] {
        run(trug().args(["config", "check"]).env(name, value)).check_failure(2, why);
    }
}
