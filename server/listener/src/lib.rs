//! Accept loop, TLS and connections: from a listening socket to requests, with a bound on every resource that a client
//! can hold.
//!
//! ```text
//! accept             accept loop                          options, limits, peer
//! http1, http2       one connection                       http2_frames       limit of frames without payload
//! tls, tls_accept    certificates, handshake, ALPN        acme               certificates by ACME, feature `acme`
//! timeout_io         time-outs of reading and writing     request_checks     validation of requests
//! incoming_body      request body                         response_body      its response
//! per_ip_limit       connections of one address           idle_connections   eviction
//! ip_network         addresses and networks               trusted_proxies    client address behind proxies
//! ```
//!
//! `axum::serve` waits without a limit for the head of a request; this loop does not. Guarantees: silent, half-sent and
//! trickling connections end within their time-outs; there are never more connections than allowed; a request with no
//! `Host`, with two, or with one that contradicts its target never reaches the service; input that is not HTTP is
//! answered in JSON as well; every request body has the [`peer::Peer`] of its connection; the response to a GET or HEAD
//! is dropped when its client disconnects, but not when the client only shuts down its sending side. Non-goals: the
//! service.

pub mod accept;
pub mod acme;
mod http1;
mod http2;
mod http2_frames;
mod idle_connections;
pub mod incoming_body;
pub mod ip_network;
pub mod limits;
pub mod options;
pub mod peer;
mod per_ip_limit;
mod request_checks;
mod response_body;
pub mod timeout_io;
pub mod tls;
mod tls_accept;
pub mod trusted_proxies;
