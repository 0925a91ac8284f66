//! Baseline servers in a process of their own: this program, started again with an option that names the server. The
//! next word is its address and its configuration, a list of lengths in bytes.

use std::net::SocketAddr;
use std::process::Command;

use super::arguments::Arguments;

/// Returns the command that runs a baseline server.
pub fn command(option: &str, address: SocketAddr, lengths: &[usize]) -> Result<Command, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let lengths: Vec<String> = lengths.iter().map(usize::to_string).collect();
    let mut command = Command::new(program);
    command.arg(option).arg(format!("{address},{}", lengths.join(",")));
    Ok(command)
}

/// Returns the configuration of the baseline server that the arguments request; `None` if they do not.
pub fn requested<const N: usize>(
    arguments: &Arguments,
    option: &str,
) -> Result<Option<(SocketAddr, [usize; N])>, String> {
    let Some(what) = arguments.value(option) else { return Ok(None) };
    let mut words = what.split(',');
    let address = words.next().and_then(|it| it.parse().ok()).ok_or("an address is missing")?;
    let mut lengths = [0; N];
    for length in &mut lengths {
        *length = words.next().and_then(|it| it.parse().ok()).ok_or("a length is missing")?;
    }
    Ok(Some((address, lengths)))
}
