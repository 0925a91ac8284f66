//! `trug openapi`: the description of the HTTP API for programs.
//!
//! Never here: what is in it.

use crate::exit::{self, Failure};
use crate::output;

/// Print the OpenAPI document of the HTTP API, as a server sends it at `/-/openapi.json`.
#[derive(clap::Args)]
#[command(after_help = exit::help("trug openapi"))]
pub(crate) struct Args {}

pub(crate) fn run(_: Args) -> Result<(), Failure> {
    output::result(&server::openapi::document())
}
