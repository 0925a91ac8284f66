//! Log output: to stderr, as text on a terminal, otherwise as JSON.
//!
//! The filter is taken from `TRUG_LOG`, else `RUST_LOG`, else `info`.
//!
//! Non-goals: results, which `output` prints.

use std::env;
use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

use crate::exit::Failure;

/// Environment variables with the filter, by precedence.
const VARIABLES: &[&str] = &["TRUG_LOG", "RUST_LOG"];
const DEFAULT: &str = "info";

/// Starts logging. Must be called once.
pub(crate) fn start() -> Result<(), Failure> {
    let filter = without_requests(filter()?)?;
    let is_terminal = io::stderr().is_terminal();
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    let started =
        if is_terminal { log.try_init() } else { log.json().flatten_event(true).try_init() };
    started.map_err(|error| Failure::failed(format!("cannot log: {error}")))
}

fn filter() -> Result<EnvFilter, Failure> {
    let is_set = |name: &&&str| env::var_os(name).is_some_and(|value| !value.is_empty());
    let Some(name) = VARIABLES.iter().find(is_set) else { return Ok(EnvFilter::new(DEFAULT)) };
    EnvFilter::try_from_env(name).map_err(|error| Failure::wrong_usage(format!("{name}: {error}")))
}

/// Adds rules that suppress sensitive lines: `s3s` logs whole requests with their signatures, and a line for each
/// rejected request. The server logs failures itself.
fn without_requests(filter: EnvFilter) -> Result<EnvFilter, Failure> {
    let wrong = |error: ParseError| Failure::failed(format!("cannot log: {error}"));
    Ok(filter.add_directive("s3s=off".parse().map_err(wrong)?))
}
