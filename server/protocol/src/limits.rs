//! Limits of the protocol layer, each with its source; see `limits.rs` of the server.

use std::time::Duration;

const KIB: u64 = 1_024;

/// Largest JSON body of a management request.
pub const MANAGEMENT_BODY_BYTES_MAX: u64 = 64 * KIB;
/// Default page size of a management list.
pub const MANAGEMENT_PAGE_DEFAULT: usize = 100;
/// Maximum page size of a management list.
pub const MANAGEMENT_PAGE_MAX: usize = 1_000;
/// Maximum length of a search query, in characters, and in words.
pub const SEARCH_TEXT_CHARS_MAX: usize = 256;
pub const SEARCH_WORDS_MAX: usize = 16;
/// Maximum text fields of one form. Clients 3.2.
pub const FORM_FIELDS_MAX: usize = 100;
/// Largest text field of a form. Clients 3.2.
pub const FORM_FIELD_BYTES_MAX: u64 = 64 * KIB;
/// Maximum files of one form: they are stored in one batch or not at all.
pub const FORM_FILES_MAX: usize = 100;
/// Longest header block of one part of a form, and longest preamble.
pub const FORM_PART_HEAD_BYTES_MAX: usize = 16 * KIB as usize;
/// Maximum headers of one part of a form.
pub const FORM_PART_HEADERS_MAX: usize = 32;
/// Maximum spaces and tabs after a boundary. RFC 2046 section 5.1.1.
pub const FORM_PADDING_BYTES_MAX: usize = 70;
/// Longest boundary. RFC 2046 section 5.1.1.
pub const FORM_BOUNDARY_BYTES_MAX: usize = 70;
/// Longest client file name in bytes; a longer one is truncated at the end of its stem.
pub const FILE_NAME_BYTES_MAX: usize = 255;
/// Longest extension that survives when a name is shortened or randomised.
pub const EXTENSION_BYTES_MAX: usize = 16;
/// Candidate names that are tried one by one before the search for a free one takes larger steps.
pub const NAME_LINEAR_PROBES_MAX: u32 = 256;
/// Highest number in a ` (n)` suffix.
pub const NAME_NUMBER_MAX: u32 = 1_000_000;
/// Maximum ranges of one request; more are answered with the whole object. Clients 7.
pub const RANGES_MAX: usize = 8;
/// Maximum range specifications that are parsed before the header is ignored.
pub const RANGE_SPECS_MAX: usize = 64;
/// Window of waiting in which a body must bring [`BODY_WINDOW_BYTES_MIN`]; time in which the server itself is busy does
/// not count.
pub const BODY_THROUGHPUT_WINDOW: Duration = Duration::from_secs(5);
/// Minimum bytes of a request body per window: 800 bytes per second.
pub const BODY_WINDOW_BYTES_MIN: u64 = 4_000;
/// Max-age of a preflight response in browsers, in seconds. Clients 7.
pub const PREFLIGHT_SECONDS: u32 = 7_200;
/// Longest file name in `?download=`, in bytes.
pub const DOWNLOAD_NAME_BYTES_MAX: usize = FILE_NAME_BYTES_MAX;
/// Maximum characters of a text in an error body: enough for a key and what is wrong with it.
pub const ERROR_TEXT_CHARS_MAX: usize = engine::limits::KEY_BYTES_MAX + 256;
/// Longest `Upload-Metadata`, in bytes.
pub const TUS_METADATA_BYTES_MAX: usize = 8_192;
/// Longest URL of a webhook.
pub const WEBHOOK_URL_BYTES_MAX: usize = 2_048;
