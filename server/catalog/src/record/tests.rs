//! Tests of the stored form of every record.

use super::super::*;
use super::*;
use crate::file_audit_block::FileAuditBlock;
use crate::link_use::StoredLinkUse;
use crate::upload_rules::StoredLinkUpload;

const ID: &str = "abcdefghijklmnop";
const UPLOAD: &str = "0192d3a1-0000-7000-8000-000000000001";

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    text: String,
}

impl Record for Note {
    const VERSION: u32 = 2;
}

#[test]
fn record_round_trips_and_corruption_names_it() {
    let fact = FactName::parse("note/a").unwrap();
    let note = Note { text: "hello".into() };
    let bytes = encode(&fact, &note).unwrap();
    assert_eq!(&bytes[..], br#"{"version":2,"record":{"text":"hello"}}"#);
    assert_eq!(decode::<Note>(&fact, &bytes).unwrap(), note);
    for bad in [
        &br#"{"version":3,"record":{"text":"hello"}}"#[..],
        br#"{"version":2,"record":{"text":"hello","more":1}}"#,
        br#"{"version":2}"#,
        b"",
        b"\xff",
    ] {
        let error = decode::<Note>(&fact, bad).unwrap_err();
        assert!(error.to_string().contains("note/a"), "{error}");
    }
}

fn recode<R: Record>(fact: &str, record: &str) -> Result<String, CatalogError> {
    let bytes = format!(r#"{{"version":1,"record":{record}}}"#);
    let fact = FactName::parse(fact).unwrap();
    let again = encode(&fact, &decode::<R>(&fact, bytes.as_bytes())?)?;
    let again = String::from_utf8(again.to_vec()).unwrap();
    Ok(again.strip_prefix(r#"{"version":1,"record":"#).unwrap().strip_suffix('}').unwrap().into())
}

/// Joins the lines of a literal.
fn joined(text: &str) -> String {
    text.lines().map(str::trim_start).collect()
}

/// Checks that a record is encoded as it was stored, that the defaults of absent fields are stored from then on, and
/// that unknown fields and these invalid forms are rejected.
fn expect<R: Record>(fact: &str, full: &str, defaults: Option<(&str, &str)>, bad: &[(&str, &str)]) {
    let full = &*joined(full);
    assert_eq!(recode::<R>(fact, full).unwrap(), full, "{fact}");
    if let Some((absent, present)) = defaults {
        assert_eq!(recode::<R>(fact, absent).unwrap(), joined(present), "{fact}");
    }
    let unknown = full.replacen('{', r#"{"unknown":1,"#, 1);
    for (from, to) in bad.iter().copied().chain([(full, &*unknown)]) {
        assert!(full.contains(from), "{fact}: {from}");
        let error = recode::<R>(fact, &full.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(error.contains(fact), "{error}");
        assert!(!error.contains("5ec7e7") && !error.contains("secretsecret"), "{error}");
    }
}

/// Hash or secret in hexadecimal, and the same one with an invalid length.
const HEX: &str = "5ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7";
const BASE32: &str = "secretsecretsecretsecretsecretsecretsecretsecretseca";

#[test]
fn stored_accounts_and_organisations_keep_their_form() {
    let fact = format!("account/{ID}");
    let full = r#"{"name":"Ann","role":"operator","plan":"Free","standing":"upgrade_requested",
            "quota":{"bytes_max":5,"objects_max":null},"created_ms":1}"#;
    let absent = r#"{"name":"Ann","plan":"Free","standing":"good","created_ms":1}"#;
    let present = r#"{"name":"Ann","role":"user","plan":"Free","standing":"good","quota":{"bytes_max":null,
            "objects_max":null},"created_ms":1}"#;
    expect::<Account>(&fact, full, Some((absent, present)), &[("Ann", " "), ("Free", "free")]);
    assert!(recode::<Account>("account/ann", full).is_err());

    let full =
        r#"{"changes":[{"at_ms":1,"from":"good","to":"suspended","reason":"x","by":"operator"}]}"#;
    expect::<StandingHistory>(&format!("standing/{ID}"), full, None, &[("good", "bad")]);

    let full = r#"{"name":"Club","owner":"abcdefghijklmnop","members":{"abcdefghijklmnop":"owner"},
            "invited":{"bcdefghijklmnopq":"viewer"},"created_ms":1}"#;
    let absent = r#"{"name":"Club","owner":"abcdefghijklmnop","members":{},"created_ms":1}"#;
    let bad = [("Club", ""), (ID, "ann"), ("bcdefghijklmnopq", "ann"), ("viewer", "guest")];
    expect::<Organisation>(&format!("organisation/{ID}"), full, Some((absent, absent)), &bad);
}

#[test]
fn stored_buckets_keep_their_form() {
    let full = r#"{"owner":"abcdefghijklmnop","organisation":"bcdefghijklmnopq","kind":"phone",
            "access":"public","placeholder":"img/none.png","cache_control":"no-cache",
            "cors_origins":["https://a.example"],"cors_rules":[{"origins":["*"],"methods":["GET"]}],
            "allowed_types":["image/*"],"file_bytes_max":5,"quota":{"bytes_max":null,"objects_max":7},
            "serve_html":"as_pages","thumbnails":true,"index":false,"compression":false,
            "lifecycle":[{"id":"tmp","prefix":"tmp/","expiration":{"afterSeconds":60},"enabled":true},
            {"id":"all","prefix":"","expiration":{"atMs":5},"enabled":false}],"tags":{"a":"b"},
            "versioning":{"state":"enabled","after_lsn":3},"object_lock":{},
            "public_access_block":{"block_public_acls":true,"ignore_public_acls":true,
            "block_public_policy":false,"restrict_public_buckets":false},"policy":"{}","after_lsn":9,
            "created_ms":1,"updated_ms":2}"#;
    let absent = r#"{"owner":"abcdefghijklmnop","kind":"standard","access":"private","serve_html":"as_text",
            "created_ms":1,"updated_ms":2}"#;
    let present = r#"{"owner":"abcdefghijklmnop","organisation":null,"kind":"standard","access":"private",
            "placeholder":null,"cache_control":null,"cors_origins":null,"allowed_types":[],
            "file_bytes_max":null,"quota":{"bytes_max":null,"objects_max":null},"serve_html":"as_text",
            "thumbnails":false,"index":true,"compression":true,"after_lsn":null,"created_ms":1,
            "updated_ms":2}"#;
    let bad = [
        (ID, "ann"),
        ("bcdefghijklmnopq", "club"),
        ("img/none.png", "img//none.png"),
        ("img/none.png", "/Photos/none.png"),
        ("no-cache", "\\u0000"),
        ("https://a.example", "a.example"),
        (r#""methods":["GET"]"#, r#""methods":["TRACE"]"#),
        ("image/*", "image"),
        ("as_pages", "pages"),
    ];
    expect::<Bucket>("bucket/photos", full, Some((absent, present)), &bad);
    assert!(recode::<Bucket>("bucket/P", full).is_err());
    let other = full.replace("img/none.png", "/other/none.png");
    assert_eq!(recode::<Bucket>("bucket/photos", &other).unwrap(), joined(&other));

    let none = r#"{"must_be_empty":null}"#;
    let full = format!(r#"{{"must_be_empty":{full}}}"#);
    let defaults = Some(("{}", none));
    expect::<bucket_deletion::PendingDeletion>("bucket-removal/photos", &full, defaults, &bad);
}

#[test]
fn stored_credentials_keep_their_form() {
    let full = format!(
        r#"{{"account":"{ID}","name":"phone","secret_sha256":"{HEX}","scopes":["upload","read"],
            "bucket":"photos","prefix":"img/","expires_ms":5,"created_ms":1,"revoked_ms":2}}"#
    );
    let absent = format!(
        r#"{{"account":"{ID}","name":"","secret_sha256":"{HEX}","scopes":[],"prefix":"","created_ms":1}}"#
    );
    let present = format!(
        r#"{{"account":"{ID}","name":"","secret_sha256":"{HEX}","scopes":[],"bucket":null,"prefix":"",
            "expires_ms":null,"created_ms":1,"revoked_ms":null}}"#
    );
    let bad = [(ID, "ann"), (HEX, &HEX[1..]), ("photos", "P"), ("img/", "img"), ("upload", "up")];
    expect::<ApiKey>(&format!("apikey/{ID}"), &full, Some((&absent, &present)), &bad);
    assert!(recode::<ApiKey>("apikey/a", &full).is_err());
    expect::<last_used::StoredLastUse>(&format!("apikey-use/{ID}"), r#"{"hour":7}"#, None, &[]);

    let full = format!(
        r#"{{"account":"{ID}","secret_sha256":"{HEX}","created_ms":1,"seen_hour":7,
            "visitor":{{"address":"127.0.0.1","agent":"curl"}}}}"#
    );
    let bad = [(ID, "ann"), (HEX, &HEX[1..])];
    expect::<Session>(&format!("session/{ID}"), &full, None, &bad);
    let full = format!(r#"{{"secret_sha256":"{HEX}","expires_ms":5}}"#);
    expect::<Invitation>(&format!("invitation/{ID}"), &full, None, &[(HEX, &HEX[1..])]);

    let full = format!(
        r#"{{"hash":{{"memory_kib":19456,"passes":2,"lanes":1,"salt":"secretsecretsecretsecretse",
            "argon2id":"{HEX}"}},"changed_ms":1}}"#
    );
    let bad = [
        ("19456", "0"),
        ("19456", "262145"),
        (r#""passes":2"#, r#""passes":17"#),
        (r#""lanes":1"#, r#""lanes":9"#),
        ("secretsecretsecretsecretse", "secretse"),
        (HEX, &HEX[1..]),
        (r#"{"memory_kib""#, r#"{"unknown":1,"memory_kib""#),
    ];
    expect::<password::StoredPassword>(&format!("password/{ID}"), &full, None, &bad);

    let full = format!(r#"{{"secret":"{BASE32}"}}"#);
    let bad = [(BASE32, &BASE32[2..])];
    expect::<s3_secret::S3MasterSecret>("signature-secret/s3", &full, None, &bad);
    let full = format!(r#"{{"secret":"{BASE32}","created_ms":1}}"#);
    expect::<signing_keys::SigningKey>("signing-key/0000000001", &full, None, &bad);
    assert!(recode::<signing_keys::SigningKey>("signing-key/one", &full).is_err());
}

#[test]
fn stored_webhooks_and_jobs_keep_their_form() {
    let secret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let full = format!(
        r#"{{"bucket":"photos","url":"https://example.com/hook","secret":"{secret}",
            "events":["s3:ObjectCreated:*","s3:ObjectRemoved:Delete"],"prefix":"img/","enabled":false,
            "disabled_reason":"gone","created_ms":1,"updated_ms":2}}"#
    );
    let events = r#"["s3:ObjectCreated:*","s3:ObjectRemoved:Delete"]"#;
    let bad = [
        ("photos", "P"),
        ("https://example.com/hook", "example.com"),
        (secret, "whsec_secretsecret"),
        (events, "[]"),
        (events, r#"["s3:*"]"#),
    ];
    expect::<Webhook>(&format!("webhook/{ID}"), &full, None, &bad);

    let content = r#"{"bytes":1,"etag":"ab","content_type":"text/plain"}"#;
    let event = format!(
        r#"{{"id":"evt_a","kind":"ObjectCreated:Put","key":"a","content":{content},"at_ms":1,"attempts":2,
            "next_ms":3}}"#
    );
    expect::<QueuedEvent>(&format!("webhook-event/{ID}/1"), &event, None, &[]);
    let dead = format!(r#"{{"event":{event},"died_ms":1,"status":500,"error":"x","answer":"y"}}"#);
    expect::<DeadLetter>(&format!("webhook-dead/{ID}/1"), &dead, None, &[]);
    let state = r#"{"last_attempt_ms":1,"last_status":200,"last_error":null,"last_delivery_ms":1,"dropped":0}"#;
    expect::<DeliveryState>(&format!("webhook-state/{ID}"), state, None, &[]);

    let password = format!(
        r#"{{"memory_kib":19456,"passes":2,"lanes":1,"salt":"{}","argon2id":"{HEX}"}}"#,
        base32::encode(&[0; 16])
    );
    let link = format!(
        r#"{{"secret":"{}","bucket":"photos","paths":["a/","b.txt"],"title":"x","message":"y",
            "layout":"auto","zip":true,"expires_ms":null,"password":{password},"password_changed_ms":1,
            "downloads_max":2,"account":"{ID}","api_key":null,"created_ms":1,"updated_ms":2,"ended_ms":null}}"#,
        "a".repeat(26)
    );
    let bad = [("photos", "Photos"), ("a/\"", "a//\""), ("auto", "wide"), (ID, "ann")];
    expect::<SharedLink>(&format!("link/{ID}"), &link, None, &bad);
    let rules = r#"{"files_max":5,"bytes_max":10,"file_bytes_max":null,"allowed_types":["image/*"],
            "ask_name":"optional"}"#;
    let request = link.replace(r#""account""#, &format!(r#""upload":{rules},"account""#));
    let bad = [("image/*", "image"), ("optional", "perhaps")];
    expect::<SharedLink>(&format!("link/{ID}"), &request, None, &bad);
    let stored = r#"{"files":2,"bytes":9}"#;
    expect::<StoredLinkUpload>(&format!("link-uploads/{ID}/{UPLOAD}"), stored, None, &[]);
    let used = r#"{"count":1,"views":2,"used_ms":3}"#;
    for stored in [r#"{"count":1}"#, used] {
        expect::<StoredLinkUse>(&format!("link-downloads/{ID}"), stored, None, &[]);
    }

    let rest = r#""state":"failed","began_lsn":1,"created_ms":2,"started_ms":3,"ended_ms":4,"sums":{"done":1,
            "total":2,"skipped":3,"bytes":4,"damage":5},"error":{"code":"a","message":"b"},"failures":[{"at":1,
            "error":"x"}]"#;
    for work in [
        r#"{"deleteFolder":{"bucket":"photos","folder":"img/"}}"#,
        r#"{"emptyBucket":{"bucket":"photos"}}"#,
        r#"{"moveFolder":{"bucket":"photos","folder":"img/","to":"old/","on_taken":"refuse"}}"#,
        r#"{"undeleteFolder":{"bucket":"photos","folder":"img/","since_ms":5}}"#,
        r#"{"importUrls":{"bucket":"photos","folder":"img/","urls":["https://a"],"on_taken":"rename"}}"#,
    ] {
        let full = format!(r#"{{"account":"{ID}","issuer":"account/{ID}","work":{work},{rest}}}"#);
        let bad = [(ID, "ann"), ("photos", "P"), ("account/", "user/")];
        expect::<Job>(&format!("job/{ID}"), &full, None, &bad);
        let bad = full.replace("img/", "img");
        assert!(bad == full || recode::<Job>(&format!("job/{ID}"), &bad).is_err(), "{bad}");
    }
    let absent = r#""state":"waiting","began_lsn":1,"created_ms":2,"sums":{"done":0,"total":0,"skipped":0,"bytes":0}}"#;
    let present = r#""state":"waiting","began_lsn":1,"created_ms":2,"started_ms":null,"ended_ms":null,
            "sums":{"done":0,"total":0,"skipped":0,"bytes":0,"damage":0},"error":null,"failures":[]}"#;
    let start = format!(r#"{{"account":"{ID}","issuer":"{ID}","work":"scrub","#);
    let absent = (&*format!("{start}{absent}"), &*format!("{start}{present}"));
    expect::<Job>(&format!("job/{ID}"), absent.1, Some(absent), &[]);
}

#[test]
fn stored_uploads_keep_their_form() {
    let fact = format!("upload/{ID}/{UPLOAD}");
    let full = format!(
        r#"{{"bucket":"photos","path":"img/","overwrite":true,"randomize_name":false,"thumbnail":true,
            "length":9,"metadata":"","received_bytes":5,"received_hash":"{HEX}","expires_ms":1,"is_stored":true,
            "key":"img/a.png"}}"#
    );
    let full = joined(&full);
    let absent = full.replace(r#""thumbnail":true,"#, "").replace(r#","key":"img/a.png""#, "");
    let present = full.replace(r#":true,"length""#, r#":null,"length""#);
    let present = present.replace(r#""key":"img/a.png""#, r#""key":null"#);
    let bad = [("photos", "P"), (HEX, "00"), ("img/a.png", "img//a.png")];
    expect::<PendingUpload>(&fact, &full, Some((&absent, &present)), &bad);
    assert!(recode::<PendingUpload>(&format!("upload/{ID}/1"), &full).is_err());
    assert!(recode::<PendingUpload>(&format!("upload/a/{UPLOAD}"), &full).is_err());

    let fact = format!("s3-upload/{ID}/{UPLOAD}");
    let full = r#"{"bucket":"photos","key":"img/a.png","attributes":{"declaredType":"image/png"},
            "checksum":{"algorithm":"crc32","kind":"COMPOSITE"},"begun_ms":1,"done":"ab",
            "done_checksum":{"algorithm":"crc32","value":"AAAAAA=="}}"#;
    let absent = r#"{"bucket":"photos","key":"img/a.png","attributes":{},"begun_ms":1}"#;
    let present =
        r#"{"bucket":"photos","key":"img/a.png","attributes":{},"begun_ms":1,"done":null}"#;
    let bad = [("photos", "P"), ("img/a.png", "img//a.png")];
    expect::<MultipartUpload>(&fact, full, Some((absent, present)), &bad);
    assert!(recode::<MultipartUpload>(&format!("s3-upload/{ID}/1"), full).is_err());

    let fact = format!("s3-part/{UPLOAD}/00007");
    let full = format!(
        r#"{{"file":"{UPLOAD}","bytes":5,"hash":"{HEX}","etag":"ab","checksum":"AAAAAA==","stored_ms":1}}"#
    );
    let absent = full.replace(r#""checksum":"AAAAAA==","#, "");
    expect::<UploadedPart>(&fact, &full, Some((&absent, &absent)), &[(UPLOAD, "1"), (HEX, "00")]);
    assert!(recode::<UploadedPart>(&format!("s3-part/{UPLOAD}/a"), &full).is_err());
}

#[test]
fn stored_logs_keep_their_form() {
    let actor =
        r#"{"kind":"key","id":"a","name":"b","account":"c","address":"::1","request_id":"d"}"#;
    let full = format!(
        r#"{{"at_ms":1,"action":"key.create","actor":{actor},"bucket":"photos","target":"a","detail":"b",
            "accounts":["a"],"organisation":"b"}}"#
    );
    let absent = r#"{"at_ms":1,"action":"key.create","actor":{"kind":"server"}}"#;
    expect::<AuditEntry>("audit/1", &full, Some((absent, absent)), &[]);
    let actor = r#"{"kind":"key","id":"a"}"#;
    let change = r#"{"at_ms":1,"kind":"ObjectCreated:Put","key":"a.png","actor":0}"#;
    let with_all = r#"{"at_ms":1,"kind":"ObjectRemoved:Delete","key":"a.png","bytes":2,"actor":0,"request_id":"r"}"#;
    let full = format!(
        r#"{{"bucket":"photos","owner":"a","organisation":"b","actors":[{actor}],"changes":[{with_all}]}}"#
    );
    let absent = format!(r#"{{"bucket":"photos","actors":[{actor}],"changes":[{change}]}}"#);
    let bad = [(r#""actor":0"#, r#""actor":1"#)];
    expect::<FileAuditBlock>("file-audit/1", &full, Some((&absent, &absent)), &bad);
    let full = r#"{"at_ms":1,"to":"/b","last_lsn":2,"damage_count":0}"#;
    expect::<LastBackup>("last-backup", full, None, &[]);
    let full = r#"{"parts":{"3":{"requests":2,"stored":[1,10]}}}"#;
    expect::<usage_records::UsageBlock>("traffic-hours/-/000001", full, None, &[]);
}
