//! Sockets inherited from systemd (socket activation), so that no connection is refused while the server starts.
//!
//! This is the only file of the tools that takes file descriptors by number.
//!
//! Guarantees: only descriptors that systemd passed to this process are taken, each once.
//! Non-goals: what is served on them.

#![allow(unsafe_code, reason = "a socket that is inherited is known by its number alone")]

use std::net::TcpListener;
use std::os::fd::{FromRawFd, OwnedFd};

use server::InheritedSockets;

use crate::exit::Failure;

/// `FileDescriptorName=` of the premium upload socket; any other name is the main socket.
const PREMIUM: &str = "upload_listen";

/// Takes the inherited sockets. Must be called once, before any other file is opened.
pub(crate) fn take() -> Result<InheritedSockets, Failure> {
    let refuse = |why: String| Failure::wrong_usage(format!("sockets of systemd: {why}"));
    let found = sd_notify::listen_fds_with_names().map_err(|why| refuse(why.to_string()))?;
    let mut inherited = InheritedSockets::default();
    for (number, name) in found {
        // SAFETY: according to LISTEN_PID these descriptors are open and belong to this process, and nothing else
        // uses them, because this runs once, at the start.
        let socket = unsafe { OwnedFd::from_raw_fd(number) };
        let listener = TcpListener::from(socket);
        if let Err(why) = listener.local_addr() {
            return Err(refuse(format!("{name:?} is not a TCP socket: {why}")));
        }
        let place =
            if name == PREMIUM { &mut inherited.upload_listen } else { &mut inherited.listen };
        if place.replace(listener).is_some() {
            return Err(refuse(format!(
                "{name:?}: only two sockets are supported; name the second {PREMIUM:?}"
            )));
        }
    }
    Ok(inherited)
}
