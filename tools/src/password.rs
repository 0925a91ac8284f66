//! Reads a new password: from a file, from a terminal without echo, or from stdin.
//!
//! Guarantees: the password is on no command line and in no output; only its hash leaves this process.
//! Non-goals: the use of the hash.

use std::io::{self, IsTerminal, Read};
use std::path::Path;

use catalog::{Password, PasswordHash};
use engine::rng::SystemRng;
use server::management::parse_link_password;

use crate::exit::Failure;

/// Maximum number of bytes read, longer than any valid password.
const BYTES_MAX: u64 = 4_096;

/// Returns the hash of the password from the file, the terminal or stdin.
pub(crate) fn read(file: Option<&Path>) -> Result<PasswordHash, Failure> {
    let text = match file {
        Some(file) => from_file(file)?,
        None if io::stdin().is_terminal() => typed()?,
        None => first_line(io::stdin().lock(), "stdin")?,
    };
    Ok(PasswordHash::from_password(&Password::new_checked(&text)?, &SystemRng)?)
}

/// Returns the hash of the password of a link from a file, or from stdin for `-`.
pub(crate) fn read_for_link(file: &Path) -> Result<PasswordHash, Failure> {
    let text = match file.as_os_str() == "-" {
        true => first_line(io::stdin().lock(), "stdin")?,
        false => from_file(file)?,
    };
    let password = parse_link_password(&text);
    let password = password.map_err(|error| Failure::failed(error.message().to_owned()))?;
    Ok(PasswordHash::from_password(&password, &SystemRng)?)
}

#[allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a password is no file of the store"
)]
fn from_file(path: &Path) -> Result<String, Failure> {
    let name = path.display().to_string();
    let file = std::fs::File::open(path)
        .map_err(|error| Failure::wrong_usage(format!("cannot read {name}: {error}")))?;
    first_line(file, &name)
}

/// Asks twice, because the input is not shown.
fn typed() -> Result<String, Failure> {
    let ask = |prompt: &str| {
        rpassword::prompt_password(prompt)
            .map_err(|error| Failure::failed(format!("cannot read the password: {error}")))
    };
    let (once, again) = (ask("New password: ")?, ask("Again: ")?);
    if once == again {
        return Ok(once);
    }
    Err(Failure::failed("the passwords differ: nothing was changed"))
}

/// Reads the first line, without its end.
fn first_line(from: impl Read, name: &str) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = from.take(BYTES_MAX).read_to_end(&mut bytes);
    read.map_err(|error| Failure::failed(format!("cannot read {name}: {error}")))?;
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    match std::str::from_utf8(line) {
        Ok(line) => Ok(line.to_owned()),
        Err(_) => Err(Failure::failed(format!("the password in {name} is not UTF-8"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_is_read_from_the_first_line() {
        for (bytes, line) in [
            (&b"correct horse"[..], "correct horse"),
            (b"correct horse\n", "correct horse"),
            (b"correct horse\r\nsecond\n", "correct horse"),
            (b" spaces \n", " spaces "),
            (b"", ""),
        ] {
            assert_eq!(first_line(bytes, "x").ok().as_deref(), Some(line));
        }
        assert!(first_line(&b"\xff\n"[..], "x").is_err());
    }
}
