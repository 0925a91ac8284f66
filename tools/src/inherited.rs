//! Sockets that systemd has opened before the server began (socket activation): no connection is refused while it
//! starts.
//!
//! The one file of the tools that takes file descriptors by their number. Promises: only those that systemd says are
//! for this process, each once. Never here: what is served on them.

#![allow(unsafe_code, reason = "a socket that is inherited is known by its number alone")]

use std::net::TcpListener;
use std::os::fd::{FromRawFd, OwnedFd};

use server::Inherited;

use crate::exit::Failure;

/// What the socket of the premium endpoint is called (`FileDescriptorName=`); one of any other name is the other one.
const PREMIUM: &str = "upload_listen";

/// Takes the sockets. To be called once, before anything else opens files.
pub(crate) fn take() -> Result<Inherited, Failure> {
    let refuse = |why: String| Failure::wrong_usage(format!("sockets of systemd: {why}"));
    let found = sd_notify::listen_fds_with_names().map_err(|why| refuse(why.to_string()))?;
    let mut inherited = Inherited::default();
    for (number, name) in found {
        // SAFETY: systemd says by LISTEN_PID that these are open and for this process, and nobody else in it knows
        // them: this runs once, at the start.
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
