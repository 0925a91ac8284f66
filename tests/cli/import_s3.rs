//! `trug import --from-s3`: from a local S3 server with good and bad responses. trug's own gateway is tested in
//! `tests/s3/import.rs`.

use std::collections::BTreeSet;
use std::fs;

use tests::{DataFolder, File, FileHost, Ran};

use crate::archives::word;
use crate::import_report::{counts, report};
use crate::with_and_without_server;

const LONG_AGO: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const SECRET: &str = "not-to-be-seen-by-anybody";
const TOKEN: &str = "neither-is-this";

/// Returns a listing entry of an old object with this key, which is escaped.
fn entry(key: &str, bytes: usize) -> String {
    format!(
        "<Contents><Key>{key}</Key><LastModified>1994-11-06T08:49:37.000Z</LastModified>\
         <ETag>&quot;e-{bytes}&quot;</ETag><Size>{bytes}</Size></Contents>"
    )
}

/// Returns a listing page, with an optional continuation token.
fn page(entries: &str, next: Option<&str>) -> File {
    let next = next.map_or("<IsTruncated>false</IsTruncated>".to_owned(), |token| {
        format!(
            "<IsTruncated>true</IsTruncated><NextContinuationToken>{token}</NextContinuationToken>"
        )
    });
    File::of(format!(
        "<?xml version=\"1.0\"?><ListBucketResult><EncodingType>url</EncodingType>{next}{entries}\
         </ListBucketResult>"
    ))
}

fn refusal(status: u16, code: &str, more: &str) -> File {
    let body = format!("<Error><Code>{code}</Code><Message>M of {code}</Message>{more}</Error>");
    File::of(body).with_status(status)
}

/// Imports from an address below the host, with more arguments, with credentials or without.
fn import(folder: &DataFolder, host: &FileHost, path: &str, words: &[&str], signs: bool) -> Ran {
    let (url, origin) = (host.url(path), host.origin());
    let fixed = ["import", "--bucket", "photos", "--json", "--from-s3", &url, "--allow", &origin];
    let mut command = folder.command(&[&fixed, words].concat());
    for name in ["AWS_REGION", "AWS_DEFAULT_REGION", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID"] {
        command.env_remove(name);
    }
    command.env_remove("AWS_SECRET_ACCESS_KEY");
    if signs {
        command.env("AWS_ACCESS_KEY_ID", "AKID").env("AWS_SECRET_ACCESS_KEY", SECRET);
        command.env("AWS_SESSION_TOKEN", TOKEN);
    }
    let ran = tests::commands::run(&mut command);
    for secret in [SECRET, TOKEN, "Signature="] {
        assert!(!ran.stdout.contains(secret) && !ran.stderr.contains(secret), "{ran:?}");
    }
    ran
}

fn why(ran: &Ran, name: &str) -> String {
    let report = report(ran);
    let listed = report["refused"]["listed"].as_array().expect("a list");
    let found = listed.iter().find(|it| it["name"] == name);
    found.unwrap_or_else(|| panic!("{name}: {ran:?}"))["why"].as_str().unwrap_or("").to_owned()
}

#[test]
fn import_s3_pages_signed_and_anonymous_buckets() {
    with_and_without_server(|folder| {
        let host = FileHost::start(|wanted| match wanted.target.as_str() {
            "/pics?encoding-type=url&list-type=2&max-keys=1000&prefix=a%20b%2F" => {
                let entries = [entry("a+b/1%2B2.txt", 3), entry("a+b/", 0)].concat();
                page(&entries, Some("t/1=&amp;"))
            }
            "/pics?continuation-token=t%2F1%3D%26&encoding-type=url&list-type=2&max-keys=1000\
             &prefix=a%20b%2F" => page(&entry("a+b/d/%C3%A9%25.csv", 4), None),
            "/pics/a%20b/1%2B2.txt" => File::of("one").with("Last-Modified", LONG_AGO),
            "/pics/a%20b/d/%C3%A9%25.csv" => File::of("t,wo").with("Content-Type", "text/csv"),
            _ => refusal(404, "NoSuchKey", ""),
        });
        let words = ["--prefix", "old", "--region", "eu-x"];
        let ran = import(folder, &host, "/pics/a%20b/", &words, true);
        assert_eq!((ran.code, counts(&ran)), (0, [2, 0, 0, 0]), "{ran:?}");
        let out = folder.export_files("out").join("old/a b");
        assert_eq!(fs::read(out.join("1+2.txt")).unwrap(), b"one");
        assert_eq!(fs::read(out.join("d/\u{e9}%.csv")).unwrap(), b"t,wo");
        let seen = host.take_requests();
        assert_eq!(seen.len(), 4);
        for wanted in &seen {
            let signed = wanted.header("authorization");
            assert!(signed.starts_with("AWS4-HMAC-SHA256 Credential=AKID/"), "{wanted:?}");
            let names = "/eu-x/s3/aws4_request,SignedHeaders=\
                         host;x-amz-content-sha256;x-amz-date;x-amz-security-token,Signature=";
            assert!(signed.contains(names), "{wanted:?}");
            assert_eq!(wanted.header("x-amz-security-token"), TOKEN);
            assert!(!format!("{wanted:?}").contains(SECRET), "{wanted:?}");
            if !wanted.target.contains('?') {
                assert!(wanted.header("if-match").starts_with("\"e-"), "{wanted:?}");
            }
        }
        // Again, without credentials: the listing alone shows that everything is present.
        let ran = import(folder, &host, "/pics/a%20b/", &words, false);
        assert_eq!((ran.code, counts(&ran)), (0, [0, 2, 0, 0]), "{ran:?}");
        let seen = host.take_requests();
        assert_eq!(seen.len(), 2, "{seen:?}");
        assert!(seen.iter().all(|it| it.header("authorization").is_empty()), "{seen:?}");
        // With a virtual-hosted bucket, the address does not contain its name.
        let host = FileHost::start(|wanted| match wanted.target.as_str() {
            "/?encoding-type=url&list-type=2&max-keys=1000&prefix=x" => {
                page(&entry("x/y", 5), None)
            }
            "/x/y" => File::of("three").chunked(),
            _ => refusal(404, "NoSuchKey", ""),
        });
        let ran = import(folder, &host, "/x", &["--virtual-hosted"], true);
        assert_eq!((ran.code, counts(&ran)), (0, [1, 0, 0, 0]), "{ran:?}");
    });
}

#[test]
fn import_s3_retries_transient_and_reports_permanent_errors() {
    with_and_without_server(|folder| {
        let names = [
            "slow", "cut", "chunk", "dead", "gone", "cold", "moved", "changed", "packed", "long",
            "dir%2F", "..%2Fup", "a//b", "c%01d", "bad%FF", "%2Fabs",
        ];
        let entries: String = names.iter().map(|name| entry(name, 4)).collect();
        let host = FileHost::start(move |wanted| match (wanted.target.as_str(), wanted.time) {
            (target, 1) if target.contains('?') => refusal(503, "SlowDown", ""),
            (target, _) if target.contains('?') => page(&entries, None),
            ("/b/slow", 1) => refusal(503, "SlowDown", "").with("Retry-After", "1"),
            ("/b/cut", 1) => File::of("four").cut_at(2),
            ("/b/chunk", 1) => File::of("fo").chunked(),
            ("/b/dead", _) => refusal(500, "InternalError", ""),
            ("/b/gone", _) => refusal(404, "NoSuchKey", ""),
            ("/b/cold", _) => refusal(403, "InvalidObjectState", ""),
            ("/b/moved", _) => File::status(307).with("Location", "/b/slow"),
            ("/b/changed", _) if !wanted.header("if-match").is_empty() => {
                refusal(412, "PreconditionFailed", "")
            }
            ("/b/changed", _) => File::of("is another now"),
            ("/b/packed", _) => File::of("four").with("Content-Encoding", "gzip"),
            ("/b/long", _) => File::of("four+").chunked(),
            _ => File::of("four"),
        });
        let ran = import(folder, &host, "/b", &[], true);
        assert_eq!((ran.code, counts(&ran)), (1, [5, 0, 0, 11]), "{ran:?}");
        for (name, says) in [
            ("dead", "the S3 server responded with 500 InternalError: M of InternalError; 5"),
            ("gone", "the S3 server responded with 404 NoSuchKey"),
            ("cold", "the S3 server responded with 403 InvalidObjectState"),
            ("moved", "responded with 307; redirects are not followed"),
            ("long", "the body "),
            ("dir/", "its name is a folder name, but it has content"),
            ("../up", "its name is not a valid key"),
            ("a//b", "its name is not a valid key"),
            ("c\u{1}d", "its name is not a valid key"),
            ("bad\\xff", "its name is not UTF-8"),
            ("/abs", "its path is absolute"),
        ] {
            assert!(why(&ran, name).contains(says), "{name}: {}", why(&ran, name));
        }
        let out = folder.export_files("out");
        for name in ["slow", "cut", "chunk", "packed"] {
            assert_eq!(fs::read(out.join(name)).unwrap(), b"four", "{name}");
        }
        assert_eq!(fs::read(out.join("changed")).unwrap(), b"is another now");
        let asked = host.take_requests();
        let kinds: BTreeSet<_> = asked.iter().map(|it| it.target.as_str()).collect();
        assert!(!kinds.iter().any(|it| it.contains("up") || it.contains("//")), "{kinds:?}");
    });
}

#[test]
fn import_s3_rejects_invalid_listing() {
    let (folder, _) = DataFolder::with_bucket();
    let failed = |answer: fn(&tests::RequestedFile) -> File, says: &str| {
        let host = FileHost::start(answer);
        import(&folder, &host, "/b", &[], true).check_failure(1, says);
    };
    failed(|_| refusal(403, "AccessDenied", ""), "403 AccessDenied: M of AccessDenied");
    failed(|_| refusal(404, "NoSuchBucket", ""), "404 NoSuchBucket");
    failed(|_| refusal(403, "SignatureDoesNotMatch", ""), "403 SignatureDoesNotMatch");
    let region = |_: &tests::RequestedFile| {
        refusal(400, "AuthorizationHeaderMalformed", "<Region>eu-q</Region>")
    };
    failed(region, "--region eu-q");
    failed(|_| File::status(301).with("x-amz-bucket-region", "eu-z"), "--region eu-z");
    failed(|_| File::status(302).with("Location", "/c"), "redirects are not followed");
    failed(|_| File::of("<html>hello</html>"), "not a bucket listing");
    failed(|_| File::of("<!DOCTYPE a [<!ENTITY b 'c'>]><a/>"), "document type");
    failed(|_| page(&"x".repeat(9 << 20), None), "has more than 8388608 bytes");
    failed(|_| page("<Contents><Key>x</Key></Contents>", None), "without a name or size");

    // Objects imported before the listing breaks are kept, and reported.
    let stopped = |answer: fn(&tests::RequestedFile) -> File, says: &str| {
        let ran = import(&folder, &FileHost::start(answer), "/b", &["--prefix", says], true);
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(counts(&ran)[0] + counts(&ran)[1] == 1, "{ran:?}");
        assert!(report(&ran)["stopped"].as_str().is_some_and(|it| it.contains(says)), "{ran:?}");
    };
    /// Returns the number in the continuation token of a request; none for the first page.
    fn token(wanted: &tests::RequestedFile) -> Option<u32> {
        let (_, token) = wanted.target.split_once("token=")?;
        token.split('&').next()?.parse().ok()
    }
    /// Returns one file, and on later pages the result of `later` for their numbers.
    fn first_one(wanted: &tests::RequestedFile, later: fn(u32) -> File) -> File {
        match token(wanted) {
            Some(at) => later(at),
            None if wanted.target.contains('?') => page(&entry("x", 4), Some("1")),
            None => File::of("four"),
        }
    }
    stopped(|it| first_one(it, |_| page("", Some("1"))), "repeats its continuation token");
    stopped(
        |it| first_one(it, |at| page("", Some(["2", "3", "4", "2"][at as usize - 1]))),
        "repeats its continuation token",
    );
    stopped(
        |it| first_one(it, |at| page(&entry("x", 4), Some(&(at + 1).to_string()))),
        "repeats its continuation token",
    );
    stopped(|it| first_one(it, |at| page("", Some(&(at + 1).to_string()))), "too many empty pages");
    fn folders(at: u32) -> File {
        page(&entry(&format!("{at}%2F"), 0), Some(&(at + 1).to_string()))
    }
    stopped(|it| first_one(it, folders), "too many empty pages");
}

#[test]
fn import_s3_names_mapping_to_one_key_do_not_overwrite() {
    let (folder, _) = DataFolder::with_bucket();
    let host = FileHost::start(|wanted| match wanted.target.as_str() {
        "/b/e%CC%81" => File::of("decomposed"),
        "/b/%C3%A9" => File::of("composed!!"),
        _ => page(&[entry("%C3%A9", 10), entry("e%CC%81", 10)].concat(), None),
    });
    for _ in 0..2 {
        let ran = import(&folder, &host, "/b", &["--on-conflict", "replace"], false);
        assert_eq!((ran.code, counts(&ran)[2]), (0, 1), "{ran:?}");
    }
    assert_eq!(fs::read(folder.export_files("out").join("\u{e9}")).unwrap(), b"composed!!");
}

#[test]
fn import_s3_rejects_invalid_arguments() {
    let (folder, _) = DataFolder::with_bucket();
    let file = folder.parent().join("credentials");
    let text = format!("[one]\naws_access_key_id=A\naws_secret_access_key={SECRET}\n[two]\n");
    fs::write(&file, text).expect("it can be written");
    let file = word(&file);
    let refused = |words: &[&str], says: &str| {
        let fixed = ["import", "--bucket", "photos"];
        let ran = folder.run(&[&fixed, words].concat());
        ran.check_failure(2, says);
        assert!(!ran.stderr.contains(SECRET), "{ran:?}");
    };
    refused(&["--from-s3", "https://a"], "names no bucket");
    refused(&["--from-s3", "https://k:s@a/b"], "must not contain credentials");
    refused(&["--from-s3", "https://a/b", "--region", "a b"], "invalid region");
    refused(&["--from-s3", "https://a/b", "--from", "x.tar"], "cannot be used with");
    refused(&["--from", "x.tar", "--region", "eu"], "cannot be used with");
    let with_file = ["--from-s3", "https://a/b", "--credentials-file", &file];
    refused(&with_file, "no profile \"default\"");
    refused(&[&with_file[..], &["--profile", "two"]].concat(), "lacks aws_access_key_id");
}
