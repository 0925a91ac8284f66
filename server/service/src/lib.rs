//! What the endpoints of the HTTP API and of the S3 API share: state, admission, uploads and deliveries.
//!
//! ```text
//! state            services of the process, shared by all requests
//! config           settings, and how they are loaded
//! request_context  what the head of a request says; path parameters
//! admission        authentication (auth), rate limits, same-origin checks (own_pages)
//! upload           receive, accept, resolve, commit
//! delivery         locate, decide, body
//! object_options   type, headers, metadata and expiry of an object; attribute_change changes them
//! variants         plan, cache, render
//! zip              archives of folders and selections
//! link_access      rights and passwords of shared links; link_body sends their files
//! job_services     what background jobs need of the above
//! replies          JSON of responses
//! ```
//!
//! Non-goals: routes, connections, and the endpoints themselves.

pub mod admission;
pub mod attribute_change;
pub mod auth;
pub mod config;
pub mod cors;
pub mod delivery;
pub mod delivery_activity;
pub mod finish_response;
pub mod header_cache;
pub mod job_services;
pub mod limits;
pub mod link_access;
pub mod link_body;
pub mod link_uploads;
pub mod object_body;
pub mod object_options;
pub mod own_pages;
pub mod parameters;
pub mod password_work;
pub mod path_params;
pub mod rate_limit;
pub mod recent_uploads;
pub mod replies;
pub mod request_context;
pub mod searches;
pub mod session_cookie;
pub mod set_up_link;
pub mod state;
pub mod thread_pool;
pub mod transform_params;
pub mod upload;
pub mod variants;
pub mod zip;

pub use self::config::Config;
