//! Limit of open files: raised as far as the system allows, because the default is meant for shells.
//!
//! Non-goals: the limits of connections and segments that determine the number.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use engine::limits;

/// Open files other than segments and connections: index, log, lock, listeners, timers.
const OTHERS: u64 = 64;

/// Raises the limit for this many concurrent connections, and warns if it cannot be raised far enough.
pub(crate) fn allow(connections_max: usize) {
    let needed = needed(connections_max);
    let limit = getrlimit(Resource::Nofile);
    let is_enough = |allowed: Option<u64>| allowed.is_none_or(|allowed| allowed >= needed);
    if is_enough(limit.current) {
        return;
    }
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let allowed = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    if !is_enough(allowed) {
        tracing::warn!(
            allowed,
            needed,
            "open file limit too low; raise it (ulimit -n) or lower connections_max"
        );
    }
}

/// Returns the number of files needed: a connection has a socket and possibly an upload file.
fn needed(connections_max: usize) -> u64 {
    (2 * connections_max + limits::OPEN_SEGMENTS_MAX) as u64 + OTHERS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_file_limit_is_raised_to_the_maximum() {
        allow(usize::MAX / 4);
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
    }
}
