//! aws-cli: files both ways, in one piece and in parts, presigned addresses, and rejected callers.

use std::fs;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use tests::commands::{done, run};

use crate::bucket::time_in;
use crate::place::{Keys, Place, aws, bytes, client, files, make_files};

fn aws_of(place: &Place, keys: &Keys) -> Command {
    let mut command = client(&aws(), keys, place.data.parent());
    command.arg("--endpoint-url").arg(place.address());
    command
}

fn ran(place: &Place, words: &[&str]) -> String {
    done(aws_of(place, &place.keys).args(words)).stdout
}

/// Returns the client's message of a rejected request.
fn refused(place: &Place, keys: &Keys, words: &[&str]) -> String {
    let ran = run(aws_of(place, keys).args(words));
    assert_ne!(ran.code, 0, "{words:?}: {ran:?}");
    ran.stderr
}

fn json(place: &Place, words: &[&str]) -> Value {
    serde_json::from_str(&ran(place, words)).unwrap()
}

#[test]
#[ignore = "needs aws-cli from PyPI"]
fn aws_sync_of_1000_files_is_idempotent() {
    let place = Place::new();
    let (here, back) = (place.temp_path("here"), place.temp_path("back"));
    make_files(&here, 1_000);
    let (from, to) = (here.to_str().unwrap(), back.to_str().unwrap());
    let up = ["s3", "sync", from, "s3://photos/sync"];
    let first = ran(&place, &up);
    assert_eq!(first.matches("upload: ").count(), 1_000);
    assert_eq!(ran(&place, &up), "");
    let down = ["s3", "sync", "s3://photos/sync", to];
    ran(&place, &down);
    assert!(files(&here) == files(&back));
    assert_eq!(ran(&place, &down), "");
    // Folders, pages, and many deleted at once.
    let page =
        ["s3api", "list-objects-v2", "--bucket", "photos", "--prefix", "sync/", "--delimiter", "/"];
    assert_eq!(json(&place, &page)["CommonPrefixes"].as_array().unwrap().len(), 7);
    let pages = [&page[..6], &["--page-size", "37"]].concat();
    assert_eq!(json(&place, &pages)["Contents"].as_array().unwrap().len(), 1_000);
    let older =
        ["s3api", "list-objects", "--bucket", "photos", "--prefix", "sync/", "--page-size", "300"];
    assert_eq!(json(&place, &older)["Contents"].as_array().unwrap().len(), 1_000);
    let after =
        ["s3api", "list-objects-v2", "--bucket", "photos", "--start-after", "sync/Album 6/tag 2/"];
    assert!(json(&place, &after)["Contents"].as_array().unwrap().len() < 100);
    let identifiers: Vec<_> = files(&here)
        .keys()
        .map(|path| serde_json::json!({"Key": format!("sync/{}", path.to_str().unwrap())}))
        .collect();
    let wanted = place.temp_path("delete.json");
    fs::write(&wanted, serde_json::json!({"Objects": identifiers}).to_string()).unwrap();
    let wanted = format!("file://{}", wanted.to_str().unwrap());
    let gone =
        json(&place, &["s3api", "delete-objects", "--bucket", "photos", "--delete", &wanted]);
    assert_eq!(gone["Deleted"].as_array().unwrap().len(), 1_000);
    assert_eq!(ran(&place, &["s3", "ls", "--recursive", "s3://photos"]), "");
}

#[test]
#[ignore = "needs aws-cli from PyPI"]
fn aws_upload_with_acl_public_read_is_public() {
    let place = Place::new();
    let file = place.temp_path("hi.txt");
    fs::write(&file, "hi").unwrap();
    let from = file.to_str().unwrap();
    // A new connection each time: on a busy machine the client may take longer than the keep-alive time-out.
    let status_of_file = || {
        let mut connection = tests::Connection::connect(place.server.address()).unwrap();
        connection.get("/photos/hi.txt").unwrap().status
    };
    for (acl, status) in [("private", 401), ("public-read", 200)] {
        ran(&place, &["s3", "cp", "--acl", acl, from, "s3://photos/hi.txt"]);
        assert_eq!(status_of_file(), status, "{acl}");
    }
    ran(
        &place,
        &["s3api", "put-object-acl", "--acl", "private", "--bucket", "photos", "--key", "hi.txt"],
    );
    assert_eq!(status_of_file(), 401);
}

#[test]
#[ignore = "needs aws-cli from PyPI"]
fn aws_multipart_upload_creates_one_object() {
    let mut place = Place::new();
    let file = place.temp_path("large.bin");
    fs::write(&file, bytes(41_000_003, 1)).unwrap();
    let from = file.to_str().unwrap();
    ran(&place, &["s3", "cp", from, "s3://photos/large.bin", "--metadata", "of=ann"]);
    let head = ["s3api", "head-object", "--bucket", "photos", "--key", "large.bin"];
    let info = json(&place, &head);
    assert_eq!(info["ContentLength"], 41_000_003);
    assert_eq!(info["Metadata"]["of"], "ann");
    assert!(info["ETag"].as_str().unwrap().ends_with("-5\""), "{info}");
    let back = place.temp_path("back.bin");
    let to = back.to_str().unwrap();
    ran(&place, &["s3", "cp", "s3://photos/large.bin", to]);
    assert!(fs::read(&back).unwrap() == fs::read(&file).unwrap());
    // A copy of it is made in parts, too, and keeps its metadata.
    ran(&place, &["s3", "cp", "s3://photos/large.bin", "s3://photos/copy/large.bin"]);
    ran(&place, &["s3", "cp", "s3://photos/copy/large.bin", to]);
    assert!(fs::read(&back).unwrap() == fs::read(&file).unwrap());
    let range = [
        "s3api",
        "get-object",
        "--bucket",
        "photos",
        "--key",
        "large.bin",
        "--range",
        "bytes=20000000-20000099",
        to,
    ];
    assert_eq!(json(&place, &range)["ContentRange"], "bytes 20000000-20000099/41000003");
    assert_eq!(fs::read(&back).unwrap(), fs::read(&file).unwrap()[20_000_000..20_000_100]);

    // Parts in any order, across a kill of the server.
    let begun = json(
        &place,
        &["s3api", "create-multipart-upload", "--bucket", "photos", "--key", "parts.bin"],
    );
    let id = begun["UploadId"].as_str().unwrap();
    let (first, second) = (bytes(6_000_000, 7), bytes(1_000, 8));
    let mut etags = Vec::new();
    for (number, part) in [("2", &second), ("1", &first)] {
        let path = place.temp_path("part");
        fs::write(&path, part).unwrap();
        let body = path.to_str().unwrap();
        let part = json(
            &place,
            &[
                "s3api",
                "upload-part",
                "--bucket",
                "photos",
                "--key",
                "parts.bin",
                "--upload-id",
                id,
                "--part-number",
                number,
                "--body",
                body,
            ],
        );
        etags.push(part["ETag"].clone());
        place.server.kill();
        place.server = place.data.serve();
    }
    let of_upload = ["--bucket", "photos", "--key", "parts.bin", "--upload-id", id];
    let listed = json(&place, &[&["s3api", "list-parts"], &of_upload[..]].concat());
    assert_eq!(listed["Parts"].as_array().unwrap().len(), 2);
    let open = json(&place, &["s3api", "list-multipart-uploads", "--bucket", "photos"]);
    assert_eq!(open["Uploads"][0]["UploadId"], id);
    let parts = serde_json::json!({"Parts": [
        {"PartNumber": 1, "ETag": etags[1]}, {"PartNumber": 2, "ETag": etags[0]}
    ]});
    let complete = ["s3api", "complete-multipart-upload", "--multipart-upload", &parts.to_string()];
    let complete = [&complete[..], &of_upload[..]].concat();
    let done = json(&place, &complete);
    // A client that did not receive the response retries.
    assert_eq!(json(&place, &complete)["ETag"], done["ETag"]);
    ran(&place, &["s3", "cp", "s3://photos/parts.bin", to]);
    assert!(fs::read(&back).unwrap() == [first, second].concat());
    let begun = json(
        &place,
        &["s3api", "create-multipart-upload", "--bucket", "photos", "--key", "none.bin"],
    );
    let id = begun["UploadId"].as_str().unwrap();
    let of_upload = ["--bucket", "photos", "--key", "none.bin", "--upload-id", id];
    ran(&place, &[&["s3api", "abort-multipart-upload"], &of_upload[..]].concat());
    let says = refused(&place, &place.keys, &[&["s3api", "list-parts"], &of_upload[..]].concat());
    assert!(says.contains("NoSuchUpload"), "{says}");
    assert!(
        !place.data.path().join("uploads").exists()
            || fs::read_dir(place.data.path().join("uploads")).unwrap().next().is_none()
    );
}

#[test]
#[ignore = "needs aws-cli from PyPI"]
fn aws_presigned_urls_expire_and_are_bound_to_request() {
    let place = Place::new();
    let file = place.temp_path("a.txt");
    fs::write(&file, "hello").unwrap();
    let from = file.to_str().unwrap();
    ran(&place, &["s3", "cp", from, "s3://photos/a b/ä.html"]);
    let presign = ["s3", "presign", "s3://photos/a b/ä.html", "--expires-in"];
    let url = ran(&place, &[&presign[..], &["60"]].concat());
    let curl = |words: &[&str]| run(Command::new("curl").args(["-s", "-i"]).args(words)).stdout;
    let got = curl(&[url.trim()]);
    assert!(got.starts_with("HTTP/1.1 200") && got.ends_with("\r\n\r\nhello"), "{got}");
    // User uploads are never a page of this origin, whatever the request.
    let head = got.to_ascii_lowercase();
    assert!(head.contains("content-type: text/plain") && head.contains("sandbox"), "{got}");
    assert!(curl(&[url.trim(), "-X", "PUT", "-d", "x"]).contains("SignatureDoesNotMatch"));
    let other = url.trim().replace("%C3%A4", "b");
    assert!(curl(&[&other]).contains("SignatureDoesNotMatch"));
    let added = curl(&[url.trim(), "-H", "x-amz-copy-source: photos/secret"]);
    assert!(added.contains("AccessDenied"), "{added}");
    let url = ran(&place, &[&presign[..], &["1000000"]].concat());
    assert!(curl(&[url.trim()]).contains("AuthorizationQueryParametersError"));
    let url = ran(&place, &[&presign[..], &["1"]].concat());
    std::thread::sleep(Duration::from_secs(3));
    let late = curl(&[url.trim()]);
    assert!(late.starts_with("HTTP/1.1 403") && late.contains("expired"), "{late}");
}

#[test]
#[ignore = "needs aws-cli from PyPI"]
fn aws_access_denied_uses_s3_error_codes() {
    let place = Place::new();
    let file = place.temp_path("a.txt");
    fs::write(&file, "hello").unwrap();
    let from = file.to_str().unwrap();
    let put = ["s3api", "put-object", "--bucket", "photos", "--key", "a.txt", "--body", from];
    ran(&place, &put);
    let get = ["s3api", "get-object", "--bucket", "photos", "--key", "a.txt", "/dev/null"];
    let wrong = Keys { secret: "b".repeat(52), ..place.keys.clone() };
    assert!(refused(&place, &wrong, &get).contains("SignatureDoesNotMatch"));
    let nobody = Keys { id: "a".repeat(16), ..place.keys.clone() };
    assert!(refused(&place, &nobody, &get).contains("InvalidAccessKeyId"));
    let reader = Keys::make(&place.data, &["--scope", "read,list"]);
    assert!(run(aws_of(&place, &reader).args(get)).code == 0);
    assert!(refused(&place, &reader, &put).contains("AccessDenied"));
    let delete = ["s3api", "delete-object", "--bucket", "photos", "--key", "a.txt"];
    assert!(refused(&place, &reader, &delete).contains("AccessDenied"));
    let elsewhere = Keys::make(&place.data, &["--prefix", "elsewhere/"]);
    assert!(refused(&place, &elsewhere, &get).contains("AccessDenied"));
    assert!(
        refused(&place, &elsewhere, &["s3api", "list-objects-v2", "--bucket", "photos"])
            .contains("AccessDenied")
    );
    place.data.done(&["account", "create", "--name", "bob"]);
    place.data.done(&["bucket", "create", "--account", "bob", "--name", "bobs"]);
    let hers = ["s3api", "list-objects-v2", "--bucket", "bobs"];
    assert!(refused(&place, &place.keys, &hers).contains("NoSuchBucket"));
    let listed = json(&place, &["s3api", "list-buckets"]);
    assert_eq!(listed["Buckets"].as_array().unwrap().len(), 1, "{listed}");
    let taken = ["s3api", "create-bucket", "--bucket", "bobs"];
    assert!(refused(&place, &place.keys, &taken).contains("BucketAlreadyExists"));
    let soon = time_in(4);
    let short = Keys::make(&place.data, &["--expires-at", &soon]);
    std::thread::sleep(Duration::from_secs(5));
    assert!(refused(&place, &short, &get).contains("InvalidAccessKeyId"));
    place.data.done(&["apikey", "revoke", "--id", &place.keys.id]);
    assert!(refused(&place, &place.keys, &get).contains("InvalidAccessKeyId"));
}

#[test]
#[ignore = "needs aws-cli from PyPI"]
fn aws_invalid_names_and_metadata_are_rejected() {
    let place = Place::new();
    let file = place.temp_path("a.txt");
    fs::write(&file, "hello").unwrap();
    let body = file.to_str().unwrap();
    let put = ["s3api", "put-object", "--bucket", "photos", "--body", body, "--key"];
    ran(
        &place,
        &[
            &put[..],
            &["a.txt", "--metadata", "one=1,two=zwei", "--content-md5", "XUFAKrxLKna5cZ2REBfFkg=="],
        ]
        .concat(),
    );
    let head = json(&place, &["s3api", "head-object", "--bucket", "photos", "--key", "a.txt"]);
    assert_eq!(head["ETag"], "\"5d41402abc4b2a76b9719d911017c592\"");
    assert_eq!(head["Metadata"], serde_json::json!({"one": "1", "two": "zwei"}));
    let long = "k".repeat(1_025);
    let large = format!("a={}", "x".repeat(2_048));
    for (words, code) in [
        (&["folder/"][..], "InvalidArgument"),
        (&["a//b"], "InvalidArgument"),
        (&["a/../b"], "InvalidArgument"),
        (&[&*long], "KeyTooLongError"),
        (&["b.txt", "--metadata", &*large], "MetadataTooLarge"),
        (&["b.txt", "--content-md5", "XUFAKrxLKna5cZ2REBfFkQ=="], "BadDigest"),
        (&["b.txt", "--checksum-crc64-nvme", "AAAAAAAAAAA="], "BadDigest"),
        (&["a.txt", "--if-none-match", "*"], "PreconditionFailed"),
    ] {
        let says = refused(&place, &place.keys, &[&put[..], words].concat());
        assert!(says.contains(code), "{words:?}: {says}");
    }
    // Other metadata on the same bytes.
    let copy = [
        "s3api",
        "copy-object",
        "--bucket",
        "photos",
        "--key",
        "a.txt",
        "--copy-source",
        "photos/a.txt",
        "--metadata-directive",
        "REPLACE",
        "--metadata",
        "one=2",
    ];
    ran(&place, &copy);
    let head = json(&place, &["s3api", "head-object", "--bucket", "photos", "--key", "a.txt"]);
    assert_eq!(
        (&head["Metadata"]["one"], &head["ETag"]),
        (&"2".into(), &"\"5d41402abc4b2a76b9719d911017c592\"".into())
    );
    let missing = refused(
        &place,
        &place.keys,
        &["s3api", "get-object", "--bucket", "photos", "--key", "none", "/dev/null"],
    );
    assert!(missing.contains("NoSuchKey"), "{missing}");
    ran(&place, &["s3api", "delete-object", "--bucket", "photos", "--key", "none"]);
}
