//! `trug`: the binary and its commands.
//!
//! Each command has a file with its arguments, its help and `run`. `management` performs requests on the store or in
//! the server that has it open; `output` prints; `exit` has the exit codes.

mod account;
mod allocator;
mod apikey;
mod archive_location;
mod audit;
mod backup;
mod bucket;
mod bucket_credentials;
mod cancel_signal;
mod cat;
mod compact;
mod completions;
mod config;
mod cp;
mod du;
mod exit;
mod export;
mod fd_limit;
mod fsck;
mod health;
mod history;
mod import;
mod lifecycle;
mod link;
mod local_file;
mod logging;
mod ls;
mod man;
mod management;
mod mv;
mod names;
mod openapi;
mod organisation;
mod output;
mod ownership;
mod password;
mod places;
mod presign;
mod progress;
mod reload;
#[cfg(feature = "remote")]
mod remote;
mod remote_segments;
mod rm;
mod s3_credentials;
mod scrub;
mod serve;
mod set;
mod settings;
mod socket_activation;
mod startup;
mod stat;
mod stats;
mod systemd;
mod transfer;
mod undelete;
mod units;
mod value_parsers;
mod webhook;

use std::process::ExitCode;
use std::sync::LazyLock;

use clap::{CommandFactory, Parser, Subcommand};
use images::AVIF_ENCODER;

use self::exit::{Exit, Failure};

/// Object storage and image CDN on one machine
#[derive(Parser)]
#[command(name = "trug", version, long_version = VERSION.as_str(), after_help = exit::CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// Output of `--version`; `-V` prints the number alone.
static VERSION: LazyLock<String> =
    LazyLock::new(|| format!("{}\n{AVIF_ENCODER}", env!("CARGO_PKG_VERSION")));

#[derive(Subcommand)]
enum Command {
    Serve(serve::Args),
    Health(health::Args),
    Ls(ls::Args),
    Stat(stat::Args),
    Cat(cat::Args),
    Cp(cp::Args),
    Mv(mv::Args),
    Rm(rm::Args),
    Du(du::Args),
    Set(set::Args),
    Presign(presign::Args),
    /// Manage accounts, which own buckets and API keys.
    #[command(subcommand)]
    Account(account::Command),
    /// Manage organisations, whose accounts share buckets.
    #[command(subcommand, visible_alias = "org")]
    Organisation(organisation::Command),
    /// Manage buckets.
    #[command(subcommand)]
    Bucket(bucket::Command),
    /// Manage expiry rules of buckets.
    #[command(subcommand)]
    Lifecycle(lifecycle::Command),
    /// Manage API keys and S3 credentials.
    #[command(subcommand, visible_alias = "key")]
    Apikey(apikey::Command),
    /// Manage shared links, which open pages with files or request files.
    #[command(subcommand)]
    Link(link::Command),
    /// Manage webhooks, which receive the events of a bucket.
    #[command(subcommand)]
    Webhook(webhook::Command),
    /// Validate and show settings.
    #[command(subcommand)]
    Config(config::Command),
    Export(export::Args),
    Import(import::Args),
    History(history::Args),
    Audit(audit::Args),
    Undelete(undelete::Args),
    Stats(stats::Args),
    Backup(backup::Args),
    Compact(compact::Args),
    Scrub(scrub::Args),
    Fsck(fsck::Args),
    /// Manage remote stores, which hold a copy of a store.
    #[cfg(feature = "remote")]
    #[command(subcommand)]
    Remote(remote::Command),
    Openapi(openapi::Args),
    Completions(completions::Args),
    Man(man::Args),
}

fn main() -> ExitCode {
    allocator::return_freed_pages_immediately();
    // Usage errors exit with 2.
    match run(Cli::parse().command) {
        Ok(()) => Exit::Done.into(),
        Err(failure) => {
            output::failure(&failure);
            failure.exit().into()
        }
    }
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Serve(args) => serve::run(args),
        Command::Health(args) => health::run(args),
        Command::Ls(args) => ls::run(args),
        Command::Stat(args) => stat::run(&args),
        Command::Cat(args) => cat::run(&args),
        Command::Cp(args) => cp::run(args),
        Command::Mv(args) => mv::run(args),
        Command::Rm(args) => rm::run(args),
        Command::Du(args) => du::run(args),
        Command::Set(args) => set::run(args),
        Command::Presign(args) => presign::run(args),
        Command::Lifecycle(command) => lifecycle::run(command),
        Command::Account(command) => account::run(command),
        Command::Organisation(command) => organisation::run(command),
        Command::Bucket(command) => bucket::run(command),
        Command::Apikey(command) => apikey::run(command),
        Command::Link(command) => link::run(command),
        Command::Webhook(command) => webhook::run(command),
        Command::Config(command) => config::run(command),
        Command::Export(args) => export::run(args),
        Command::Import(args) => import::run(args),
        Command::History(args) => history::run(args),
        Command::Audit(args) => audit::run(args),
        Command::Undelete(args) => undelete::run(args),
        Command::Stats(args) => stats::run(args),
        Command::Backup(args) => backup::run(args),
        Command::Compact(args) => compact::run(args),
        Command::Scrub(args) => scrub::run(args),
        Command::Fsck(args) => fsck::run(args),
        #[cfg(feature = "remote")]
        Command::Remote(command) => remote::run(command),
        Command::Openapi(args) => openapi::run(args),
        Command::Completions(args) => completions::run(&args, Cli::command()),
        Command::Man(args) => man::run(&args, Cli::command()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clap_definition_is_valid() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_exit_codes_and_an_example() {
        let mut cli = Cli::command();
        cli.build();
        let mut leaves = 0;
        let mut open: Vec<&mut clap::Command> = cli.get_subcommands_mut().collect();
        while let Some(command) = open.pop() {
            if command.get_name() == "help" {
                continue;
            }
            if command.has_subcommands() {
                open.extend(command.get_subcommands_mut());
                continue;
            }
            leaves += 1;
            let help = command.render_long_help().to_string();
            assert!(help.contains("Exit codes") && help.contains("Example:\n  trug "), "{help}");
        }
        // `apikey s3` is a command of the S3 API.
        assert_eq!(leaves, 66 + 7 * usize::from(cfg!(feature = "remote")));
    }

    #[test]
    fn help_examples_parse() {
        let mut cli = Cli::command();
        cli.build();
        let mut open: Vec<&clap::Command> = cli.get_subcommands().collect();
        let mut seen = 0;
        while let Some(command) = open.pop() {
            open.extend(command.get_subcommands());
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in help.lines().filter_map(|line| line.strip_prefix("  trug ")) {
                let words = std::iter::once("trug").chain(line.split(' '));
                assert!(Cli::try_parse_from(words).is_ok(), "{line}");
                seen += 1;
            }
        }
        assert!(seen >= 37, "{seen}");
    }
}
