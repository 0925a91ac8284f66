//! `trug man`: prints or writes manual pages.
//!
//! Guarantees: one page per command and command group, with the text of its help.

use std::io;
use std::path::{Path, PathBuf};

use clap_mangen::Man;

use crate::exit::{self, Failure};
use crate::output;

/// Print a manual page, or write all manual pages to a folder.
///
/// `trug man backup | man -l -` shows a page; `man trug-backup` shows one that was written to a folder man1 in MANPATH,
/// such as /usr/local/share/man/man1.
#[derive(clap::Args)]
#[command(after_help = exit::help("trug man --to /usr/local/share/man/man1"))]
pub(crate) struct Args {
    /// Command, such as `bucket create`. [default: trug]
    #[arg(conflicts_with = "to")]
    command: Vec<String>,
    /// Write all pages to this folder, which is created if needed.
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
}

/// A page: its file name and content.
struct Page {
    name: String,
    text: Vec<u8>,
}

pub(crate) fn run(args: &Args, cli: clap::Command) -> Result<(), Failure> {
    let cli = built(cli);
    if let Some(folder) = &args.to {
        let pages = pages(&cli);
        let written = pages.and_then(|pages| write(folder, &pages).map(|()| pages.len()));
        let count = written.map_err(|error| {
            Failure::failed(format!("cannot write to {}: {error}", folder.display()))
        })?;
        return output::result(&format!("wrote {count} pages to {}\n", folder.display()));
    }
    let mut command = &cli;
    for word in &args.command {
        command = command.find_subcommand(word).ok_or_else(|| {
            Failure::wrong_usage(format!("unknown command {}", args.command.join(" ")))
        })?;
    }
    let page = page(command).map_err(|error| Failure::failed(error.to_string()))?;
    output::result(&String::from_utf8_lossy(&page.text))
}

/// Returns the definition with full names, and without the commands that only show help.
fn built(cli: clap::Command) -> clap::Command {
    let mut cli = cli.disable_help_subcommand(true);
    cli.build();
    cli
}

fn pages(cli: &clap::Command) -> io::Result<Vec<Page>> {
    let mut pages = Vec::new();
    let mut open = vec![cli];
    while let Some(command) = open.pop() {
        open.extend(command.get_subcommands());
        pages.push(page(command)?);
    }
    Ok(pages)
}

fn page(command: &clap::Command) -> io::Result<Page> {
    let man = Man::new(command.clone());
    let mut text = Vec::new();
    man.render(&mut text)?;
    Ok(Page { name: man.get_filename(), text })
}

#[allow(clippy::disallowed_methods, reason = "manual pages are no files of the store")]
fn write(folder: &Path, pages: &[Page]) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    pages.iter().try_for_each(|page| std::fs::write(folder.join(&page.name), &page.text))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn man_page_of_each_command_has_help_and_exit_codes() {
        let cli = built(crate::Cli::command());
        let pages = pages(&cli).unwrap();
        let mut open = vec![(&cli, "trug".to_owned())];
        let mut commands = 0;
        while let Some((command, name)) = open.pop() {
            let below = command.get_subcommands();
            open.extend(below.map(|it| (it, format!("{name}-{}", it.get_name()))));
            let page = pages.iter().find(|page| page.name == format!("{name}.1"));
            let page = page.unwrap_or_else(|| panic!("{name} has no page"));
            let text = String::from_utf8(page.text.clone()).unwrap();
            assert!(text.contains(".SH NAME"), "{text}");
            assert!(command.has_subcommands() || text.contains("Exit codes: 0 done"), "{text}");
            commands += 1;
        }
        assert_eq!(pages.len(), commands);
    }
}
