//! trug's server: the HTTP service over a store of the engine.
//!
//! [`HttpService`] is the service without a socket; [`serve`] runs it on listeners, together with the control socket. A
//! request passes through `listener` (limits on client resources), `routes` (its endpoint), `dispatch` (what concerns
//! every request and response), a handler or the gateway in `s3`, and from there down: `service` (admission, uploads,
//! deliveries), `jobs`, `catalog`, `protocol`, the engine.
//!
//! Startup order: listen, so that an address in use is noticed first; read the catalog; open the control socket; report
//! ready; serve requests. Shutdown order: report not ready; accept no new requests; drain those in flight; close the
//! store, with its last checkpoint.
//!
//! Non-goals: the command line, signals, and opening the store.

pub mod admin;
pub mod control;
mod damage_log;
pub mod dispatch;
mod embedded;
pub mod handlers;
pub mod limits;
pub mod management;
pub mod openapi;
pub mod routes;
pub mod server_metrics;
mod sockets;
mod start;
mod upkeep;

pub use self::dispatch::HttpService;
pub use self::sockets::{InheritedSockets, ListenError};
pub use self::start::{ConfigChange, ServeError, ServeOptions, StartupHook, StartupReport, serve};
