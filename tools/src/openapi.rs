//! `trug openapi`: prints the OpenAPI document.
//!
//! Non-goals: its content.

use crate::exit::{self, Failure};
use crate::output;

/// Print the OpenAPI document of the HTTP API, as served at /-/openapi.json.
#[derive(clap::Args)]
#[command(after_help = exit::help("trug openapi"))]
pub(crate) struct Args {}

pub(crate) fn run(_: Args) -> Result<(), Failure> {
    output::result(server::openapi::document())
}
