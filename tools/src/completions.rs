//! `trug completions`: what a shell needs to finish command lines of trug.
//!
//! Never here: which commands there are.

use clap_complete::Shell;

use crate::exit::{self, Failure};
use crate::output;

/// Print the completions for a shell.
///
/// Bash loads them from ~/.local/share/bash-completion/completions/trug, zsh from a file _trug in a folder of its
/// fpath, fish from ~/.config/fish/completions/trug.fish.
#[derive(clap::Args)]
#[command(after_help = exit::help("trug completions bash"))]
pub(crate) struct Args {
    /// The shell.
    shell: Shell,
}

pub(crate) fn run(args: &Args, mut cli: clap::Command) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli, "trug", &mut script);
    output::result(&String::from_utf8_lossy(&script))
}
