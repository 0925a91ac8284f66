//! `trug config`: validates, shows and documents settings.
//!
//! Non-goals: reading their sources.

use std::fmt::Write as _;

use engine::clock::{Clock, SystemClock};
use service::config::{ENV_PREFIX, EffectiveSetting, SettingDefault, settings};

use crate::exit::{self, Failure};
use crate::{output, settings as sources};

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    Check(CheckArgs),
    Show(ShowArgs),
    Reference(ReferenceArgs),
}

/// Validate settings and the files they name.
#[derive(clap::Args)]
#[command(after_help = exit::help("trug config check --config trug.toml"))]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    settings: sources::Flags,
}

/// Show the effective settings of `trug serve` with the same options and environment, as a configuration file.
#[derive(clap::Args)]
#[command(after_help = exit::help("trug config show --sources"))]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    settings: sources::Flags,
    /// Show the source of each setting.
    #[arg(long)]
    sources: bool,
}

/// Print all settings as a Markdown table.
#[derive(clap::Args)]
#[command(after_help = exit::help("trug config reference"))]
pub(crate) struct ReferenceArgs {}

pub(crate) fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Check(args) => {
            let config = sources::config(&args.settings.sources()?)?;
            for warning in sources::warnings(&config, SystemClock::new().unix_ms()) {
                output::print_note(&format!("warning: {warning}"));
            }
            let mut text = "the settings are valid\n".to_owned();
            if let Some(end) = config.tls.and_then(|identity| identity.not_after_text()) {
                text.push_str(&format!("the certificate is valid until {end}\n"));
            }
            if let Some(acme) = config.acme {
                let (names, from) = (acme.domains.join(", "), acme.directory.as_str());
                text.push_str(&format!("certificates for {names} come from {from}\n"));
                let listen = config.listen;
                text.push_str(&format!(
                    "it connects to port 443 of each, which must reach {listen}\n"
                ));
            }
            if let Some(remote) = config.remote {
                text.push_str(&format!("the store is replicated to {}\n", remote.url));
            }
            output::result(&text)
        }
        Command::Show(args) => {
            let found = args.settings.sources()?;
            sources::config(&found)?;
            output::result(&format_settings(&found.effective(), args.sources))
        }
        Command::Reference(_) => output::result(&reference()),
    }
}

fn format_settings(in_force: &[EffectiveSetting], with_sources: bool) -> String {
    let mut lines = Vec::new();
    for setting in in_force {
        let line = match &setting.value {
            SettingDefault::Value(value) => format!("{} = {value}", setting.name),
            SettingDefault::Description(words) => format!("# {}: {words}", setting.name),
        };
        lines.push((line, &setting.source));
    }
    let mut text = String::new();
    let widest = lines.iter().map(|(line, _)| line.chars().count()).max().unwrap_or(0);
    for (line, source) in lines {
        // Writing to a String cannot fail.
        let _ = match with_sources {
            true => writeln!(text, "{line:widest$}  # {source}"),
            false => writeln!(text, "{line}"),
        };
    }
    text
}

fn reference() -> String {
    let mut text =
        "| file | environment | default | type | meaning |\n|---|---|---|---|---|\n".to_owned();
    for setting in settings() {
        let default = match &setting.default {
            SettingDefault::Value(value) if value == "[]" => "none".to_owned(),
            SettingDefault::Value(value) => format!("`{value}`"),
            SettingDefault::Description(words) => (*words).to_owned(),
        };
        let variable = setting.name.to_ascii_uppercase();
        let name = setting.name;
        let (takes, about) = (setting.change.name(), setting.description);
        let _ = writeln!(
            text,
            "| `{name}` | `{ENV_PREFIX}{variable}` | {default} | {takes} | {about} |"
        );
    }
    text
}
