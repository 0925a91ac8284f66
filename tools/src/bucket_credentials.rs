//! Credentials of a remote bucket, from the environment or a file, as for S3 clients.
//!
//! Guarantees: errors contain no secrets.
//! Non-goals: credentials in arguments, which all users of the machine can see.

use std::env;
use std::path::Path;

use jobs::archive::Credentials;

use crate::exit::Failure;
use crate::settings;

/// Maximum size of a credentials file in bytes.
const FILE_BYTES_MAX: u64 = 64 * 1_024;
/// Default region.
const REGION: &str = "us-east-1";

/// Returns the credentials from the environment; `None` if there are none.
pub(crate) fn of_environment() -> Result<Option<Credentials>, Failure> {
    let id = variable("AWS_ACCESS_KEY_ID")?;
    let secret = variable("AWS_SECRET_ACCESS_KEY")?;
    match (id, secret) {
        (Some(access_key_id), Some(secret_access_key)) => {
            let session_token = variable("AWS_SESSION_TOKEN")?;
            Ok(Some(Credentials { access_key_id, secret_access_key, session_token }))
        }
        (None, None) => Ok(None),
        _ => {
            let why = "only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set";
            Err(Failure::wrong_usage(why))
        }
    }
}

/// Returns the region from the environment.
pub(crate) fn region() -> Result<String, Failure> {
    let named = match variable("AWS_REGION")? {
        None => variable("AWS_DEFAULT_REGION")?,
        named => named,
    };
    Ok(named.unwrap_or_else(|| REGION.to_owned()))
}

/// Returns the credentials of a profile in a file.
pub(crate) fn of_file(path: &Path, profile: &str) -> Result<Credentials, Failure> {
    let wrong = |why: &dyn std::fmt::Display| {
        Failure::wrong_usage(format!("--credentials-file {}: {why}", path.display()))
    };
    let text = settings::read_text(path, FILE_BYTES_MAX).map_err(|why| wrong(&why))?;
    read(&text, profile).map_err(|why| wrong(&why))
}

fn read(text: &str, profile: &str) -> Result<Credentials, String> {
    let (mut is_there, mut is_in) = (false, false);
    let (mut id, mut secret, mut session_token) = (None, None, None);
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
            is_in = section.trim() == profile;
            is_there |= is_in;
        } else if let Some((name, value)) = line.split_once('=').filter(|_| is_in) {
            let value = Some(value.trim().to_owned());
            match name.trim() {
                "aws_access_key_id" => id = value,
                "aws_secret_access_key" => secret = value,
                "aws_session_token" => session_token = value,
                _ => {}
            }
        }
    }
    match (is_there, id, secret) {
        (true, Some(access_key_id), Some(secret_access_key)) => {
            Ok(Credentials { access_key_id, secret_access_key, session_token })
        }
        (false, _, _) => Err(format!("it has no profile {profile:?}")),
        _ => {
            Err(format!("the profile {profile:?} lacks aws_access_key_id or aws_secret_access_key"))
        }
    }
}

/// Returns an environment variable; `None` if it is empty.
fn variable(name: &str) -> Result<Option<String>, Failure> {
    let Some(value) = env::var_os(name).filter(|value| !value.is_empty()) else { return Ok(None) };
    let value = value.into_string();
    value.map(Some).map_err(|_| Failure::wrong_usage(format!("{name} is not UTF-8")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# keys\n[default]\naws_access_key_id = A\naws_secret_access_key=b=/+c\n\
                        [ other ]\r\naws_access_key_id=O\r\naws_secret_access_key = P\r\n\
                        aws_session_token = Q==\n[half]\naws_access_key_id = H\n";

    #[test]
    fn aws_profile_errors_do_not_leak_secrets() {
        let read_one = |profile| {
            read(FILE, profile).map(|it| (it.access_key_id, it.secret_access_key, it.session_token))
        };
        let (a, secret) = ("A".to_owned(), "b=/+c".to_owned());
        assert_eq!(read_one("default"), Ok((a, secret, None)));
        let (o, p, q) = ("O".to_owned(), "P".to_owned(), "Q==".to_owned());
        assert_eq!(read_one("other"), Ok((o, p, Some(q))));
        assert!(read_one("half").unwrap_err().contains("lacks"));
        assert!(read_one("none").unwrap_err().contains("no profile"));
    }
}
