//! `trug completions`: prints shell completions.

use clap_complete::Shell;

use crate::exit::{self, Failure};
use crate::output;

/// Print shell completions.
///
/// Bash loads them from ~/.local/share/bash-completion/completions/trug, zsh from a file _trug in a folder of fpath,
/// fish from ~/.config/fish/completions/trug.fish.
#[derive(clap::Args)]
#[command(after_help = exit::help("trug completions bash"))]
pub(crate) struct Args {
    /// Shell.
    shell: Shell,
}

pub(crate) fn run(args: &Args, mut cli: clap::Command) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli, "trug", &mut script);
    output::result(&String::from_utf8_lossy(&script))
}
