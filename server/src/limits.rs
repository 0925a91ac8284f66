//! Every bound of the HTTP side, each with its source.
//!
//! "Spec 8" is section 8 of the service's specification, "clients 3.2" a section of the study of real clients; a bound
//! without a source is ours. Sizes are in bytes. A bound that an operator may change is the default here and a field of
//! the configuration. Never here: bounds of names and objects, which are the engine's.

pub mod acme;
pub mod archives;
pub mod control;
pub mod spans;
pub mod versions;

use std::num::NonZeroU32;
use std::time::Duration;

/// Largest request body on the basic endpoint. Spec 8 (100 MB), clients 3.2.
pub const BODY_BYTES_MAX: u64 = 104_857_600;
/// Largest request body that an operator may allow. Clients 3.2.
pub const CONFIGURED_BODY_BYTES_MAX: u64 = 5 * 1_024 * MIB;
/// Largest request body on the premium endpoint. Clients 3.2, 13.14.
pub const UPLOAD_BODY_BYTES_MAX: u64 = 5 * 1_024 * MIB;
/// Subfolders that `trug du` lists.
pub const USAGE_FOLDERS_MAX: usize = 10_000;

/// How fast a compaction is taken to copy when it is asked how long it would take, in bytes a second: what a disk does
/// that is read, verified and written beside other work.
pub const COMPACTION_BYTES_PER_SECOND_EXPECTED: u64 = 100 * MIB;

/// Most accounts, buckets and API keys each: all of them are held in memory, some hundred bytes apiece.
pub const CATALOG_RECORDS_MAX: usize = 100_000;
/// Buckets that one account owns, those of its organisations included.
pub const BUCKETS_PER_ACCOUNT_MAX: usize = 10_000;
/// API keys that one account has. Of those that open nothing any more the oldest goes for a new one.
pub const API_KEYS_PER_ACCOUNT_MAX: usize = 1_000;
/// Organisations that one account owns.
pub const ORGANISATIONS_PER_ACCOUNT_MAX: usize = 100;
/// Accounts that belong to one organisation: their record is one fact.
pub const MEMBERS_PER_ORGANISATION_MAX: usize = 1_000;
/// Organisations that invite an account at once.
pub const INVITATIONS_PER_ACCOUNT_MAX: usize = 100;
/// Origins, and media types, that a bucket names: its record is one fact.
pub const BUCKET_LIST_MAX: usize = 100;
/// Tags of a bucket together.
pub const BUCKET_TAGS_BYTES_MAX: usize = 12 * 1_024;
/// CORS rules of a bucket, as S3 has it.
pub const CORS_RULES_MAX: usize = 100;
/// CORS rules of a bucket together, encoded.
pub const CORS_RULES_BYTES_MAX: usize = 8 * 1_024;
/// Facts that are read at once when the catalog is opened.
pub const CATALOG_PAGE_FACTS: usize = 1_000;
/// Longest free text of a record of the catalog.
pub const CATALOG_TEXT_BYTES_MAX: usize = 200;

/// Shortest password that may be chosen, in characters, and longest, in bytes.
pub const PASSWORD_CHARS_MIN: usize = 10;
pub const PASSWORD_BYTES_MAX: usize = 128;
/// Passwords that are hashed at once: each takes 19 MiB and a tenth of a second of a processor.
pub const PASSWORDS_AT_ONCE_MAX: usize = 2;
/// Passwords that wait for that; more are refused at once.
pub const PASSWORDS_WAITING_MAX: usize = 64;
/// A session that is not used for so long ends.
pub const SESSION_IDLE: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// A session ends so long after it began, however it is used.
pub const SESSION_LIFE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// How long a browser is known again in which an account has signed in.
pub const DEVICE_LIFE: Duration = Duration::from_secs(90 * 24 * 60 * 60);
/// Sessions of one account; for one more the one goes that was used least lately.
pub const SESSIONS_PER_ACCOUNT_MAX: usize = 50;
/// Facts of sessions and invitations that are written or removed in one batch.
pub const SESSIONS_BATCH: usize = 500;
/// Accounts listed by the check of a set-up link.
pub const SET_UP_ACCOUNTS_MAX: usize = 20;
/// Lifetime of a set-up link.
pub const SET_UP_LINK_LIFE: Duration = Duration::from_secs(30 * 60);
/// How long an invitation is good.
pub const INVITATION_LIFE: Duration = Duration::from_secs(24 * 60 * 60);
/// Wrong passwords that one address may present in a minute.
pub const FAILED_SIGN_INS_PER_MINUTE: u32 = 20;
/// Wrong passwords for one name that may be presented at once,
pub const FAILED_SIGN_INS_OF_NAME: u32 = 10;
/// and how long it takes until there may be one more.
pub const FAILED_SIGN_IN_OF_NAME_WAIT: Duration = Duration::from_secs(30);
/// Hosts beside that of the public address that the dashboard answers to.
pub const DASHBOARD_HOSTS_MAX: usize = 32;

/// Largest JSON body of a management request.
pub const MANAGEMENT_BODY_BYTES_MAX: u64 = 64 * KIB;
/// Records on one page of a management list, where the caller does not say.
pub const MANAGEMENT_PAGE_DEFAULT: usize = 100;
/// Most records on one page of a management list.
pub const MANAGEMENT_PAGE_MAX: usize = 1_000;
/// Recent uploads that are remembered for each bucket.
pub const RECENT_UPLOADS_MAX: usize = 12;
/// How long an upload waits for others that fill the same quota and are not stored yet.
pub const QUOTA_WAIT: Duration = Duration::from_secs(10);
/// How often the last uses of API keys are written, and removals that failed are tried again.
pub const CATALOG_UPKEEP_WAIT: Duration = Duration::from_secs(60);

/// Files that one delete request takes. Spec 8.
pub const DELETE_FILES_MAX: usize = 100;

/// Longest life of a presigned token or address. Spec 8.
pub const PRESIGN_SECONDS_MAX: u64 = 3_600;
/// Life of a presigned token or address that asks for none. Spec 4.4, clients 3.4.
pub const PRESIGN_SECONDS_DEFAULT: u64 = 3_600;
/// Up to here a time of expiry counts seconds from now; above, since 1970. Clients 3.4.
pub const PRESIGN_RELATIVE_SECONDS_MAX: f64 = 1e9;
/// From here on a time of expiry counts milliseconds since 1970. Clients 3.4.
pub const PRESIGN_UNIX_MS_MIN: f64 = 1e12;
/// How long a key signs before another takes its place.
pub const SIGNING_KEY_LIFE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// A key that signs no more still proves what it signed for this long; then it is forgotten.
pub const SIGNING_KEY_REST: Duration = Duration::from_secs(91 * 24 * 60 * 60);
/// Longest life of a download link.
pub const DOWNLOAD_LINK_SECONDS_MAX: u64 = 7 * 24 * 60 * 60;
/// It is remembered for this long after a token has expired that it was used: should the clock be set back, it is not
/// good again.
pub const USED_TOKEN_KEPT: Duration = Duration::from_secs(24 * 60 * 60);
/// Used tokens that are forgotten in one step.
pub const USED_TOKENS_SWEPT_MAX: usize = 1_000;
/// How often it is looked whether there are such tokens, and whether another key has to sign.
pub const PRESIGN_SWEEP_WAIT: Duration = Duration::from_secs(10 * 60);
/// Largest page of a listing, and the default. Spec 8.
pub const LIST_KEYS_MAX: usize = 1_000;
/// Hits of a search when it says nothing else. Spec 8.
pub const SEARCH_HITS_DEFAULT: usize = 20;
/// Most hits of one page of a search. Clients 3.5.
pub const SEARCH_HITS_MAX: usize = 1_000;
/// Longest query of a search, in characters, and in words.
pub const SEARCH_TEXT_CHARS_MAX: usize = 256;
pub const SEARCH_WORDS_MAX: usize = 16;
/// Searches that wait for a turn; more are refused at once,
pub const SEARCHES_WAITING_MAX: usize = 512;
/// and who waited so long is, too.
pub const SEARCH_WAIT: Duration = Duration::from_secs(2);
/// A search that takes longer is stopped, in milliseconds.
pub const SEARCH_TIME_MS_MAX: u64 = 10_000;

/// Bytes of the unfinished uploads of one account, as declared: four of the largest files.
pub const UNFINISHED_BYTES_MAX: u64 = 4 * engine::limits::OBJECT_BYTES_MAX;

/// Text fields of one form. Clients 3.2.
pub const FORM_FIELDS_MAX: usize = 100;
/// Largest text field of a form. Clients 3.2.
pub const FORM_FIELD_BYTES_MAX: u64 = 64 * KIB;
/// Files of one form: they are stored in one batch or not at all.
pub const FORM_FILES_MAX: usize = 100;
/// Longest header block of one part of a form, and longest preamble.
pub const FORM_PART_HEAD_BYTES_MAX: usize = 16 * KIB as usize;
/// Headers of one part of a form.
pub const FORM_PART_HEADERS_MAX: usize = 32;
/// Spaces and tabs after a boundary. RFC 2046, 5.1.1.
pub const FORM_PADDING_BYTES_MAX: usize = 70;
/// Longest boundary. RFC 2046, 5.1.1.
pub const FORM_BOUNDARY_BYTES_MAX: usize = 70;
/// Longest client file name that is kept; a longer one loses the end of its stem.
pub const FILE_NAME_BYTES_MAX: usize = 255;
/// Longest extension that is kept when a name is shortened or randomised.
pub const EXTENSION_BYTES_MAX: usize = 16;

/// Names that are tried one after the other before larger steps are taken to find a free one.
pub const NAME_STEPS_MAX: u32 = 256;
/// Highest number in a ` (n)` suffix.
pub const NAME_NUMBER_MAX: u32 = 1_000_000;
/// An upload of so many files looks for their names where it runs, as a GET does; of more, away from other requests.
pub const KEYS_LOOKED_AT_INLINE_MAX: usize = 4;
/// Commits that are tried when another upload takes the free name first.
pub const NAME_TRIES_MAX: usize = 32;

/// Ranges that one request gets; more are answered with the whole object. Clients 7.
pub const RANGES_MAX: usize = 8;
/// Range specifications that are looked at before the header is ignored.
pub const RANGE_SPECS_MAX: usize = 64;

/// Longest request head. Product 3.1.
pub const HEAD_BYTES_MAX: usize = 16 * 1_024;
/// Memory that a connection reads into at once, and may keep while it waits for the next request.
pub const CONNECTION_READ_BYTES_MAX: usize = 32 * 1_024;
/// Header fields of one request. Product 3.1.
pub const HEADERS_MAX: usize = 64;
/// A request head must be complete this long after its first byte, or after the connection was opened. Product finding
/// 6.
pub const HEAD_WAIT: Duration = Duration::from_secs(5);
/// A connection that has had an answer may stay idle this long.
pub const IDLE_WAIT: Duration = Duration::from_secs(60);
/// A body must bring [`BODY_WINDOW_BYTES_MIN`] in each window of this length; waiting for ourselves does not count.
pub const BODY_WINDOW: Duration = Duration::from_secs(5);
/// Least that a window of a body's way in must bring: 800 bytes a second.
pub const BODY_WINDOW_BYTES_MIN: u64 = 4_000;
/// A client that takes nothing of its answer for this long is cut off.
pub const ANSWER_WAIT: Duration = Duration::from_secs(30);
/// While its answer is made, a client that has ended what it sends is asked this often whether it still listens.
pub const PRESENCE_WAIT: Duration = Duration::from_millis(250);
/// After the last answer what a client still sends is read for this long, so that it gets to see the answer.
pub const LINGER_WAIT: Duration = Duration::from_secs(2);
/// Most that is read in that time. Large, because a client that sends 101 MiB reads nothing before it has sent them.
pub const LINGER_BYTES_MAX: u64 = 256 * MIB;
/// Connections at once. When all are taken, those that are idle longest are closed for new ones.
pub const CONNECTIONS_MAX: usize = 8_192;
/// Idle connections that are closed at once for new ones, so that looking for them is rare.
pub const CONNECTIONS_EVICTED: usize = 32;
/// Addresses of a list of proxies that are looked at, from its end.
pub const PROXIES_IN_A_ROW_MAX: usize = 16;
/// Connections at once from one address, or one /64 of IPv6.
pub const CONNECTIONS_PER_ADDRESS_MAX: usize = 256;
/// What all addresses of one /48 of IPv6 may use together, in shares of one address. RFC 6177 suggests a /48 to a /56
/// for each customer.
pub const ADDRESSES_PER_NETWORK: NonZeroU32 = NonZeroU32::new(16).unwrap();
/// Of a request without TLS where it is spoken so much is read, so that the answer is seen.
pub const PLAIN_BYTES_READ_MAX: usize = 64 * 1_024;
/// Requests at once on one connection of HTTP/2. RFC 9113, 6.5.2 wants no fewer.
pub const HTTP2_STREAMS_MAX: u32 = 100;
/// Bytes that a client may send ahead on one stream of HTTP/2: 10 MB a second at 50 ms from here to there and back.
pub const HTTP2_STREAM_WINDOW_BYTES: u32 = 512 * 1_024;
/// The same on all streams of a connection: what it may hold of uploads in memory.
pub const HTTP2_CONNECTION_WINDOW_BYTES: u32 = 1_024 * 1_024;
/// Bytes of an answer of HTTP/2 that wait for the client, beside the piece that was handed over last.
pub const HTTP2_SEND_BYTES_MAX: usize = 64 * 1_024;
/// Largest frame of HTTP/2, and largest piece of an answer: the least that RFC 9113 allows.
pub const HTTP2_FRAME_BYTES_MAX: u32 = 16 * 1_024;
/// Longest request head of HTTP/2.
pub const HTTP2_HEAD_BYTES_MAX: u32 = HEAD_BYTES_MAX as u32;
/// Header fields that a connection of HTTP/2 remembers.
pub const HTTP2_HEADER_TABLE_BYTES: u32 = 4 * 1_024;
/// Requests that were reset before they were looked at ("rapid reset"); more end the connection.
pub const HTTP2_RESETS_PENDING_MAX: usize = 20;
/// Streams that were ended for their client's errors; more end the connection.
pub const HTTP2_ERRORS_MAX: usize = 100;
/// Frames of HTTP/2 that carry nothing (`PING`, `SETTINGS`, resets and so on) that may come at once: a page that is
/// left resets some hundred pictures,
pub const HTTP2_EMPTY_FRAMES_BURST: u64 = 1_000;
/// that may come in each second,
pub const HTTP2_EMPTY_FRAMES_PER_SECOND: u64 = 100;
/// and one more for so many bytes that go out: who takes them says so, twice at least for each window.
pub const HTTP2_BYTES_PER_EMPTY_FRAME: u64 = 1_024;
/// The longest that browsers may be told to use TLS alone: two years, which is what lists of such hosts ask for.
pub const HSTS_MAX: Duration = Duration::from_secs(2 * 365 * 24 * 60 * 60);
/// Requests in flight get this long when the server stops. Product 3.2.
pub const DRAIN_WAIT: Duration = Duration::from_secs(30);
/// The most that it may be set to.
pub const DRAIN_WAIT_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// How long large files that are deleted or replaced can come back for sure, unless room becomes short: long enough to
/// notice a mistake, and short enough that whoever deletes for want of room sees it on the same day.
pub const UNDELETE_WINDOW: Duration = Duration::from_secs(60 * 60);
/// The longest that may be set.
pub const UNDELETE_WINDOW_MAX: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Uploads in a minute on the plan Free, and at once after a pause. Spec 8.
pub const UPLOADS_PER_MINUTE_FREE: u32 = 100;
/// The same on the plan Starter. Spec 8.
pub const UPLOADS_PER_MINUTE_STARTER: u32 = 300;
/// The same on the plan Pro. Spec 8.
pub const UPLOADS_PER_MINUTE_PRO: u32 = 1_000;
/// Default for the same on the plan Business, which spec 8 leaves to the operator.
pub const UPLOADS_PER_MINUTE_BUSINESS: u32 = 10_000;
/// Requests in a minute that an account makes beside uploads and delivery. Spec 8 ("per user").
pub const MANAGEMENT_PER_MINUTE: u32 = 1_000;
/// The part of its rates that a throttled account keeps: one tenth. Clients 13.13.
pub const THROTTLED_DIVISOR: u32 = 10;
/// Default for the wrong API keys that one address may present in a minute. Clients 8.2.
pub const FAILED_AUTHENTICATIONS_PER_MINUTE: u32 = 60;
/// Default for the requests of one address in a second. Product 0.
pub const ADDRESS_REQUESTS_PER_SECOND: u32 = 2_000;
/// Default for its requests at once after a pause. Product 0.
pub const ADDRESS_REQUESTS_BURST: u32 = 10_000;
/// Addresses of which each table of allowances knows something: 1.1 MiB. Of more, those that asked for least are
/// forgotten.
pub const ADDRESSES_KNOWN_MAX: usize = 65_536;
/// Highest rate that an operator may set.
pub const CONFIGURED_RATE_MAX: u32 = 1_000_000;
/// How often accounts that did nothing lately are dropped from the tables of allowances.
pub const ALLOWANCES_KEEP: Duration = Duration::from_secs(60);

/// Refused requests in one day beyond which a rate is far over plan: each is a request too many, so an account at twice
/// the rate of the plan Free gets there in 100 minutes. Spec 8, fair use.
pub const FAIR_USE_REFUSED_PER_DAY: u64 = 10_000;
/// Requests in one day below which nothing is a spike. Spec 8, fair use.
pub const FAIR_USE_SPIKE_REQUESTS_MIN: u64 = 100_000;
/// How many times the usual a day must have to be a spike.
pub const FAIR_USE_SPIKE_FACTOR: u64 = 10;
/// Days that must be known before it is known what is usual.
pub const FAIR_USE_USUAL_DAYS_MIN: usize = 3;
/// Days that are taken for what is usual.
pub const FAIR_USE_USUAL_DAYS_MAX: usize = 7;
/// An account stays this long in a standing before the sweep moves it on.
pub const FAIR_USE_STEP_WAIT: Duration = Duration::from_secs(3 * 24 * 60 * 60);
/// How often a server sweeps that is told to.
pub const FAIR_USE_SWEEP_WAIT: Duration = Duration::from_secs(24 * 60 * 60);
/// Changes of its standing that are remembered of an account; the oldest go first.
pub const STANDING_CHANGES_MAX: usize = 100;

/// Heads of answers that are kept for files that are asked for again: up to 2 KiB each.
pub const KEPT_HEADS_MAX: usize = 2_048;
/// How long a browser keeps the answer to a preflight, in seconds. Clients 7.
pub const PREFLIGHT_SECONDS: u32 = 7_200;
/// Longest file name that `?download=` may ask for, in bytes.
pub const DOWNLOAD_NAME_BYTES_MAX: usize = FILE_NAME_BYTES_MAX;

/// How long damage may be known before it is logged.
pub const DAMAGE_LOOK_WAIT: Duration = Duration::from_secs(30);

/// Characters of a text in the body of an error: one that names a key, and says what is wrong with it.
pub const ERROR_TEXT_CHARS_MAX: usize = engine::limits::KEY_BYTES_MAX + 256;

/// A resumable upload is kept for so long after its last request.
pub const TUS_KEPT_MS: u64 = 24 * 60 * 60 * 1_000;
/// How long a request waits for another that works on the same resumable upload to let go.
pub const TUS_TURN_WAIT: Duration = Duration::from_secs(10);
/// Resumable uploads that wait open for their next request; others are opened again, which reads them whole.
pub const TUS_OPEN_MAX: usize = 64;
/// Unfinished resumable uploads of one account.
pub const TUS_PENDING_MAX: usize = 1_000;
/// While a resumable upload comes in, it is made durable after so many bytes.
pub const TUS_SAVE_BYTES: u64 = 64 * MIB;
/// Bytes of a large upload that are written together, by a thread that may wait for the disk.
pub const UPLOAD_CHUNK_BYTES: usize = 256 * 1_024;
/// Bytes of all large uploads that are gathered; beyond it smaller chunks are written.
pub const UPLOAD_GATHERED_BYTES_MAX: usize = 64 * 1_024 * 1_024;
/// Threads that write large uploads at once; more wait. Each has buffers, and memory that its allocator holds back.
pub const UPLOAD_WRITES_MAX: usize = 8;
/// Longest `Upload-Metadata`, in bytes.
pub const TUS_METADATA_BYTES_MAX: usize = 8_192;
/// How often resumable uploads are looked at for those that have expired.
pub const TUS_SWEEP_WAIT: Duration = Duration::from_secs(60 * 60);

/// Longest XML that a client of S3 sends: what names all parts of an upload, or a thousand keys.
#[cfg(feature = "s3")]
pub const S3_XML_BYTES_MAX: usize = 4 * 1_024 * 1_024;
/// Parts of an upload of a client of S3, as S3 has it.
#[cfg(feature = "s3")]
pub const S3_PARTS_MAX: u32 = 10_000;
/// Smallest part of an upload of an S3 client, but for the last one.
#[cfg(feature = "s3")]
pub const S3_PART_BYTES_MIN: u64 = 5 * 1_024 * 1_024;
/// Longest wait for parts to be put together before the answer begins, and the client is kept waiting by it.
#[cfg(feature = "s3")]
pub const S3_JOINING_WAIT: Duration = Duration::from_secs(5);

/// Webhooks of one bucket: an event of each for every file of a form, or of a folder delete, goes into one batch.
pub const WEBHOOKS_PER_BUCKET_MAX: usize = 8;
/// Webhooks of all buckets that one account owns.
pub const WEBHOOKS_PER_ACCOUNT_MAX: usize = 100;
/// Webhooks in all: all of them are held in memory, some hundred bytes apiece.
pub const WEBHOOKS_MAX: usize = 10_000;
/// Longest address of a webhook.
pub const WEBHOOK_URL_BYTES_MAX: usize = 2_048;
/// Events of one webhook that wait for delivery. More are dropped, and counted.
pub const WEBHOOK_PENDING_MAX: usize = 100_000;
/// The same of all webhooks of one account,
pub const WEBHOOK_PENDING_PER_ACCOUNT_MAX: usize = 200_000;
/// and in all: each takes some 20 bytes of memory, and some 500 of the disk.
pub const WEBHOOK_PENDING_IN_ALL_MAX: usize = 1_000_000;
/// How long after a failed delivery the next one is tried; after the last of these the event is given up. Standard
/// Webhooks, "Deliverability and reliability".
pub const WEBHOOK_RETRY_WAITS: &[Duration] = &[
    Duration::from_secs(5),
    Duration::from_secs(5 * 60),
    Duration::from_secs(30 * 60),
    Duration::from_secs(2 * 60 * 60),
    Duration::from_secs(5 * 60 * 60),
    Duration::from_secs(10 * 60 * 60),
    Duration::from_secs(14 * 60 * 60),
    Duration::from_secs(20 * 60 * 60),
    Duration::from_secs(24 * 60 * 60),
];
/// Such a wait is longer or shorter by up to this part of it, in percent, so that what failed together does not come
/// again together.
pub const WEBHOOK_JITTER_PERCENT: u64 = 10;
/// Longest `Retry-After` that is heeded.
pub const WEBHOOK_RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// After a failure a webhook rests for so long, twice as long after each further one in a row,
pub const WEBHOOK_REST_MIN: Duration = Duration::from_secs(5);
/// and at most so long: a destination that is down is not asked once for each event.
pub const WEBHOOK_REST_MAX: Duration = Duration::from_secs(10 * 60);
/// A destination has so long to be connected to and to answer. Standard Webhooks suggests 15 to 30 s; a shorter time
/// leaves more room for others.
pub const WEBHOOK_ANSWER_WAIT: Duration = Duration::from_secs(10);
/// The body of an answer is waited for so long. What counts is its status.
pub const WEBHOOK_ANSWER_BODY_WAIT: Duration = Duration::from_secs(2);
/// Most that is read of it.
pub const WEBHOOK_ANSWER_BYTES_MAX: usize = 4 * 1_024;
/// Most of what is told of why nothing was answered, in characters: a certificate may name as many hosts as it likes.
pub const WEBHOOK_ERROR_CHARS_MAX: usize = 300;
/// Addresses of one name that are tried.
pub const WEBHOOK_ADDRESSES_MAX: usize = 4;
/// Webhooks that are sent to at once,
pub const WEBHOOK_TURNS_MAX: usize = 64;
/// and of those of one account.
pub const WEBHOOK_TURNS_PER_ACCOUNT_MAX: usize = 4;
/// Events that a webhook gets before others that wait have their turn.
pub const WEBHOOK_TURN_EVENTS: usize = 32;
/// Tests of webhooks at once.
pub const WEBHOOK_TESTS_MAX: usize = 8;
/// How often it is looked whether a delivery is due.
pub const WEBHOOK_LOOK_WAIT: Duration = Duration::from_secs(1);
/// A webhook that cannot be sent to now, as its account is suspended, is looked at again after so long.
pub const WEBHOOK_HELD_WAIT: Duration = Duration::from_secs(60);
/// Events of one webhook that are kept after they were given up; the oldest go first.
pub const WEBHOOK_DEAD_LETTERS_MAX: usize = 1_000;
/// And for how long.
pub const WEBHOOK_DEAD_LETTERS_KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// How often it is looked for those that are older.
pub const WEBHOOK_SWEEP_WAIT: Duration = Duration::from_secs(60 * 60);
/// Facts of events that are removed or moved in one batch.
pub const WEBHOOK_BATCH_EVENTS: usize = 250;

/// Characters of a secret that is a setting, at least,
pub const SECRET_CHARS_MIN: usize = 16;
/// and at most.
pub const SECRET_CHARS_MAX: usize = 256;
/// Bytes of a file that is read for one.
pub const SECRET_FILE_BYTES_MAX: u64 = 4 * KIB;
/// What is counted by many at once is counted in at most so many places.
pub const MEASURE_SHARDS_MAX: usize = 16;
/// What takes longer to look up for the metrics is not looked up each time they are asked for,
pub const METRICS_QUICK: Duration = Duration::from_millis(100);
/// but so that at most one part of so many goes into it of the time.
pub const METRICS_TIME_PART: u32 = 20;

/// Minutes of which it is known what happened: an hour, and the one that is not over.
pub const TRAFFIC_MINUTES: u64 = 61;
/// Days of which hours are kept; then they are added up.
pub const TRAFFIC_HOURS_KEPT_DAYS: u64 = 31;
/// Days that are kept.
pub const TRAFFIC_DAYS_KEPT: u64 = 400;
/// How many minutes lie between two times that it is written what happened. A crash loses at most as many.
pub const TRAFFIC_WRITE_MINUTES: u64 = 10;
/// Facts of it that are written in one batch, and some more of one bucket.
pub const TRAFFIC_BATCH_FACTS: usize = 400;

/// Entries of who changed what that are kept,
pub const AUDIT_ENTRIES_MAX: usize = 10_000;
/// and for how long.
pub const AUDIT_KEPT: Duration = Duration::from_secs(400 * 24 * 60 * 60);
/// Of these, refused sign-ins.
pub const AUDIT_REFUSED_MAX: usize = 1_000;
/// Entries that are forgotten in one batch.
pub const AUDIT_BATCH: usize = 500;
/// Most of what is told of one change, in characters.
pub const AUDIT_TEXT_CHARS_MAX: usize = 1_000;
/// Entries on one page, where nobody says,
pub const AUDIT_PAGE_DEFAULT: usize = 100;
/// and at most.
pub const AUDIT_PAGE_MAX: usize = 500;

/// Segments that the page of the storage tells one by one.
pub const STORAGE_SEGMENTS_MAX: usize = 500;

/// How often a file that changes while it is moved is tried again.
pub const MOVE_TRIES_MAX: usize = 5;
/// Bodies that are copied at once for requests that move files; others wait.
pub const COPIES_MAX: usize = 8;
/// Files that are moved or brought back in one batch, each with its thumbnail, that of what it replaces, and events.
pub const MOVED_TOGETHER_MAX: usize = 40;
/// And about so many bytes.
pub const MOVED_TOGETHER_BYTES_MAX: u64 = 4 * MIB;
/// How long one request reads the log.
pub const LOG_LOOK_WAIT: Duration = Duration::from_secs(10);
/// Addresses that one job takes files from,
pub const IMPORT_URLS_MAX: usize = 500;
/// and their bytes as a record has them: what is left of it is for what came of them.
pub const IMPORT_URLS_BYTES_MAX: usize = 40 * 1_024;
/// Redirects that are followed.
pub const IMPORT_REDIRECTS_MAX: usize = 5;
/// The head of an answer is waited for so long, for each address on the way.
pub const IMPORT_ANSWER_WAIT: Duration = Duration::from_secs(30);
/// A file comes within this time.
pub const IMPORT_FILE_WAIT: Duration = Duration::from_secs(60 * 60);
/// So long it waits for the rate of its account.
pub const IMPORT_REST: Duration = Duration::from_secs(1);
/// So often it looks whether the server is about to stop.
pub const IMPORT_DRAIN_LOOK: Duration = Duration::from_millis(200);
/// Addresses that were not taken are told up to this number,
pub const IMPORT_FAILURES_MAX: usize = 50;
/// each with so many characters.
pub const IMPORT_FAILURE_CHARS_MAX: usize = 80;
/// A page that tells what is gone along a log that takes longer reads at most so many records of it: a second or two.
pub const GONE_RECORDS_MAX: usize = 1_000_000;
/// Requests that wait for their turn to do so.
pub const LOG_LOOKS_WAITING_MAX: usize = 16;

/// Jobs in files that run at once.
pub const JOBS_RUNNING_MAX: usize = 4;
/// And of one account.
pub const JOBS_RUNNING_PER_ACCOUNT_MAX: usize = 2;
/// Jobs of one account that have not ended.
pub const JOBS_PER_ACCOUNT_MAX: usize = 16;
/// Jobs that have not ended, in all.
pub const JOBS_MAX: usize = 1_000;
/// Jobs of one account that are remembered after they ended; the oldest go first.
pub const JOBS_ENDED_MAX: usize = 100;
/// And for how long.
pub const JOBS_ENDED_KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// How often it is looked for those that are older.
pub const JOBS_SWEEP_WAIT: Duration = Duration::from_secs(60 * 60);
/// How often it is written how far a job has come.
pub const JOB_SAVE_WAIT: Duration = Duration::from_secs(5);
/// How long a job rests whose end cannot be noted.
pub const JOB_REST: Duration = Duration::from_secs(60);
/// How often what others changed in the middle of one batch of a job is looked at again.
pub const JOB_TRIES_MAX: usize = 20;

/// Pictures that wait to be worked on; more are refused.
pub const IMAGE_JOBS_WAITING_MAX: usize = 256;
/// How long a picture waits for its turn.
pub const IMAGE_WAIT: Duration = Duration::from_secs(5);
/// Work that is expected to take longer than so many milliseconds leaves a thread to shorter work.
pub const IMAGE_HEAVY_MS: u64 = 100;
/// How often a request begins a picture again that was given up the moment it came.
pub const IMAGE_JOBS_RETRIED_MAX: usize = 4;
/// How much of a picture's file is read at first: its header lies there, but where a camera put a preview before it.
pub const IMAGE_HEAD_BYTES: u64 = 128 * KIB;
/// Headers of pictures, and jobs that came to nothing, that are remembered: some hundred bytes each.
pub const IMAGE_HEADERS_REMEMBERED: usize = 20_000;
/// How long a picture that could not be made is not tried again.
pub const IMAGE_REFUSAL_KEPT: Duration = Duration::from_secs(10 * 60);
/// Default for what variants of pictures may take of the disk.
pub const VARIANTS_BYTES_MAX: u64 = 5 * 1_024 * MIB;
/// Variants of one file that are kept; further ones are made each time.
pub const VARIANTS_PER_OBJECT_MAX: usize = 64;
/// Variants that are read at once when the server starts.
pub const VARIANTS_PAGE: usize = 1_000;
/// Variants that are removed in one batch.
pub const VARIANTS_BATCH: usize = 500;
/// How often variants whose file is gone are removed.
pub const VARIANTS_SWEEP_WAIT: Duration = Duration::from_secs(60);
/// The longer side of a thumbnail, in pixels. Clients 3.2.
pub const THUMBNAIL_SIDE_MAX: u32 = 400;
/// The quality of a thumbnail. Clients 3.2.
pub const THUMBNAIL_QUALITY: u8 = 78;
/// How long a request waits for the thumbnails of all its files; the rest have none.
pub const THUMBNAILS_WAIT: Duration = Duration::from_secs(20);
/// Milliseconds of a processor, for each second, that pictures may take that one address has made: a few at any moment,
/// and after a pause, with the next, a page of a thousand thumbnails of photographs at about 60 ms each.
pub const IMAGE_MS_PER_SECOND_PER_ADDRESS: u32 = 250;
/// The same for all pictures that are made of files of one bucket: one processor, and the rest is for the others.
pub const IMAGE_MS_PER_SECOND_PER_BUCKET: u32 = 1_000;
/// What was not used of the two above is saved up for so long.
pub const IMAGE_MS_SAVED: Duration = Duration::from_secs(5 * 60);
/// What part of the memory all work on pictures at once may take.
pub const IMAGE_MEMORY_PART: u64 = 4;

const KIB: u64 = 1_024;
pub const MIB: u64 = 1_024 * KIB;

const _: () = assert!(AUDIT_BATCH <= engine::limits::BATCH_RECORDS_MAX);
const _: () = assert!(
    TRAFFIC_BATCH_FACTS + 4 * (TRAFFIC_HOURS_KEPT_DAYS as usize + 2)
        <= engine::limits::BATCH_RECORDS_MAX
);
// Each takes a place out of one fact into another.
const _: () = assert!(2 * TRAFFIC_BATCH_FACTS <= engine::limits::BATCH_RECORDS_MAX);
const _: () = assert!(SESSION_IDLE.as_secs() <= SESSION_LIFE.as_secs());
// What ends with a suspension, or begins with a set-up, is one batch with it.
const _: () = assert!(SESSIONS_PER_ACCOUNT_MAX + 16 <= engine::limits::BATCH_RECORDS_MAX);
const _: () = assert!(SESSIONS_BATCH <= engine::limits::BATCH_RECORDS_MAX);
const _: () = assert!(TUS_PENDING_MAX <= engine::limits::LIST_PAGE_MAX);
const _: () = assert!(48 * MEMBERS_PER_ORGANISATION_MAX < engine::limits::FACT_BYTES_MAX);
const _: () = assert!(
    2 * BUCKET_LIST_MAX * (CATALOG_TEXT_BYTES_MAX + 8)
        + BUCKET_TAGS_BYTES_MAX
        + CORS_RULES_BYTES_MAX
        + 3 * 1_024
        < engine::limits::FACT_BYTES_MAX
);
const _: () = assert!(BODY_BYTES_MAX <= CONFIGURED_BODY_BYTES_MAX);
const _: () = assert!(UPLOAD_BODY_BYTES_MAX <= engine::limits::OBJECT_BYTES_MAX);
const _: () = assert!(PRESIGN_SECONDS_DEFAULT <= PRESIGN_SECONDS_MAX);
const _: () = assert!(SIGNING_KEY_REST.as_secs() > PRESIGN_SECONDS_MAX);
const _: () = assert!(SIGNING_KEY_REST.as_secs() > DEVICE_LIFE.as_secs());
const _: () = assert!(SIGNING_KEY_REST.as_secs() > DOWNLOAD_LINK_SECONDS_MAX);
const _: () = assert!(USED_TOKENS_SWEPT_MAX <= engine::limits::BATCH_RECORDS_MAX);
const _: () = assert!(USED_TOKENS_SWEPT_MAX <= engine::limits::LIST_PAGE_MAX);
// A file, its thumbnail, an event of it for each webhook, and what else an upload brings.
const _: () = assert!(
    FORM_FILES_MAX * (2 + WEBHOOKS_PER_BUCKET_MAX) + 8 <= engine::limits::BATCH_RECORDS_MAX
);
const _: () = assert!(
    DELETE_FILES_MAX * (2 + WEBHOOKS_PER_BUCKET_MAX) + 8 <= engine::limits::BATCH_RECORDS_MAX
);
// A file put and deleted, two thumbnails, and two events for each webhook.
const _: () = assert!(
    MOVED_TOGETHER_MAX * (4 + 2 * WEBHOOKS_PER_BUCKET_MAX) + 8 <= engine::limits::BATCH_RECORDS_MAX
);
const _: () = assert!(WEBHOOK_DEAD_LETTERS_MAX <= engine::limits::LIST_PAGE_MAX);
const _: () = assert!(2 * WEBHOOK_BATCH_EVENTS + 8 <= engine::limits::BATCH_RECORDS_MAX);
const _: () = assert!(FILE_NAME_BYTES_MAX <= engine::limits::KEY_BYTES_MAX);
const _: () = assert!(2 * FORM_FILES_MAX + 8 <= engine::limits::BATCH_RECORDS_MAX);
const _: () = assert!(LIST_KEYS_MAX <= engine::limits::LIST_PAGE_MAX);
const _: () = assert!(SEARCH_HITS_MAX <= engine::limits::SEARCH_WINDOW_MAX);
const _: () = assert!(2 * DELETE_FILES_MAX < engine::limits::LIST_PAGE_MAX);
const _: () = assert!(UPLOADS_PER_MINUTE_FREE >= THROTTLED_DIVISOR);
const _: () = assert!(UPLOADS_PER_MINUTE_BUSINESS <= CONFIGURED_RATE_MAX);
const _: () = assert!(ADDRESS_REQUESTS_PER_SECOND <= ADDRESS_REQUESTS_BURST);
const _: () = assert!(HEAD_WAIT.as_secs() <= 10 && BODY_WINDOW.as_secs() <= 10);
