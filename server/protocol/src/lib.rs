//! HTTP semantics of trug: paths, query strings, headers, bodies and errors, without a store and without sockets.
//!
//! ```text
//! error            API errors and their responses         limits        bounds of everything below
//! object_path      bucket and key of a URL                public_url    base URL and links
//! file_name        file names of clients                  reserved_paths
//! query            query strings                          paging, name_filter
//! range            byte ranges                            conditional   ETag, If-Match, If-None-Match
//! request_id       ids of requests
//! request_body     bodies with a minimum throughput (min_throughput)
//! multipart        forms                                  json_body     JSON bodies, tus_headers
//! content_type     media types                            response_headers, stored_headers
//! preferences      weights of Accept headers
//! destination      URLs that the server requests          time_format   times in responses
//! ```
//!
//! Guarantees: input of clients yields a value or an [`error::ApiError`], never a panic. The engine is used for names
//! and its error type only.
//! Non-goals: routing, authorization, storage.

pub mod conditional;
pub mod content_type;
pub mod destination;
pub mod error;
pub mod file_name;
pub mod json_body;
pub mod limits;
pub mod min_throughput;
pub mod multipart;
pub mod name_filter;
pub mod object_path;
pub mod paging;
pub mod preferences;
pub mod public_url;
pub mod query;
pub mod range;
pub mod request_body;
pub mod request_id;
pub mod reserved_paths;
pub mod response_headers;
pub mod stored_headers;
pub mod time_format;
pub mod tus_headers;
