//! Hints for a data folder with the wrong owner: the command that fixes it.
//!
//! Non-goals: changing the owner.

use std::io::ErrorKind;
use std::path::Path;

use rustix::process::{getegid, geteuid};

use crate::startup::quoted;

/// Returns the command to run if this process may not access the folder; `None` for other errors.
pub(crate) fn hint(data: &Path, error: &engine::Error) -> Option<String> {
    let engine::Error::Io { source, .. } = error else { return None };
    if source.kind() != ErrorKind::PermissionDenied {
        return None;
    }
    let is_there = data.try_exists().unwrap_or(true);
    let data = std::path::absolute(data).unwrap_or_else(|_| data.to_owned());
    Some(command(&data, is_there, geteuid().as_raw(), getegid().as_raw()))
}

fn command(data: &Path, is_there: bool, user: u32, group: u32) -> String {
    let folder = quoted(&data.display().to_string());
    let who =
        format!("trug runs as user {user}, group {group}, and cannot access {folder}. As root");
    match is_there {
        true => format!("{who}: chown -R {user}:{group} {folder}"),
        false => format!("{who}: install -d -m 0700 -o {user} -g {group} {folder}"),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn wrong_owner_message_names_user_and_directory() {
        let there = command(Path::new("/srv/my data"), true, 65_532, 65_533);
        assert!(there.ends_with(". As root: chown -R 65532:65533 '/srv/my data'"), "{there}");
        let missing = command(Path::new("/srv/data"), false, 1, 2);
        assert!(missing.ends_with("install -d -m 0700 -o 1 -g 2 /srv/data"), "{missing}");
    }

    #[test]
    fn only_permission_errors_suggest_ownership() {
        let of = |kind: ErrorKind| engine::Error::Io {
            doing: "opening".to_owned(),
            source: io::Error::from(kind).into(),
        };
        assert!(hint(Path::new("data"), &of(ErrorKind::PermissionDenied)).is_some());
        assert!(hint(Path::new("data"), &of(ErrorKind::ReadOnlyFilesystem)).is_none());
        assert!(hint(Path::new("data"), &engine::Error::NoSpace).is_none());
    }
}
