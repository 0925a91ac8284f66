//! trug's server: the HTTP service over a store of the engine.
//!
//! [`HttpService`] is the service without a socket; [`serve`] runs it on listeners, together with the control socket. A
//! request passes through `listener` (limits on client resources), `routes` (its endpoint), `dispatch` (what concerns
//! every request and response), `admission`, a handler, and from there down: `upload`, `auth` and the other parts, the
//! crates `jobs`, `catalog` and `protocol`, the engine. A file depends only on lower layers; the tidy tests hold the
//! table.
//!
//! Startup order: listen, so that an address in use is noticed first; read the catalog; open the control socket; report
//! ready; serve requests. Shutdown order: report not ready; accept no new requests; drain those in flight; close the
//! store, with its last checkpoint.
//!
//! Non-goals: the command line, signals, and opening the store.

pub mod admin;
pub mod admission;
pub mod auth;
pub mod config;
pub mod control;
pub mod cors;
pub mod crew;
mod damage_log;
mod delivery;
pub mod dispatch;
mod finish_response;
pub mod handlers;
pub mod header_cache;
mod job_services;
pub mod limits;
pub mod management;
pub mod metrics;
pub mod object_body;
pub mod openapi;
pub mod own_pages;
pub mod parameters;
pub mod password_work;
pub mod path_params;
pub mod preferences;
pub mod rate_limit;
pub mod recent_uploads;
pub mod replies;
mod request_context;
pub mod routes;
#[cfg(feature = "s3")]
mod s3;
pub mod searches;
pub mod session_cookie;
pub mod set_up_link;
mod sockets;
mod start;
pub mod state;
pub mod transform_params;
mod upkeep;
pub mod upload;
pub mod variants;

pub use self::config::Config;
pub use self::dispatch::HttpService;
pub use self::sockets::{InheritedSockets, ListenError};
pub use self::start::{ConfigChange, ServeError, ServeOptions, StartupHook, StartupReport, serve};
