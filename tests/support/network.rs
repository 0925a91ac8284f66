//! Two network namespaces joined by a cable, a pair of virtual Ethernet devices that can be cut.
//!
//! Needs Linux, root and `ip`. Guarantees: the namespaces are removed when the value is dropped. Non-goals: the
//! programs in them.

use std::fs::File;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::commands::done;

/// Two namespaces and their cable.
pub struct Network {
    names: [String; 2],
}

/// End of the cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Server,
    RemoteStore,
}

impl Network {
    /// Creates the namespaces and the cable. Panics where this is not permitted.
    pub fn create() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let id = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let network = Self { names: ["server", "store"].map(|name| format!("trug-{name}-{id}")) };
        for name in &network.names {
            ip(&["netns", "add", name]);
            ip(&["-n", name, "link", "set", "lo", "up"]);
        }
        let [server, store] = &network.names;
        ip(&[
            "-n", server, "link", "add", "cable", "type", "veth", "peer", "cable", "netns", store,
        ]);
        for end in [End::Server, End::RemoteStore] {
            let name = network.name(end);
            ip(&["-n", name, "address", "add", &format!("{}/30", end.address()), "dev", "cable"]);
            ip(&["-n", name, "link", "set", "cable", "up"]);
        }
        network
    }

    /// Calls a function on a thread in the namespace at an end. Its sockets and processes remain there.
    pub fn at<T: Send>(&self, end: End, call: impl FnOnce() -> T + Send) -> T {
        let namespace = File::open(format!("/run/netns/{}", self.name(end)));
        let namespace = namespace.expect("the namespace exists");
        thread::scope(|scope| {
            let called = scope.spawn(|| {
                let network = Some(LinkNameSpaceType::Network);
                let entered = move_into_link_name_space(namespace.as_fd(), network);
                entered.expect("root may enter a namespace");
                call()
            });
            called.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Cuts the cable at the end of the remote store: packets are lost without an error.
    pub fn cut(&self) {
        ip(&["-n", self.name(End::RemoteStore), "link", "set", "cable", "down"]);
    }

    /// Joins the cable again.
    pub fn mend(&self) {
        ip(&["-n", self.name(End::RemoteStore), "link", "set", "cable", "up"]);
    }

    fn name(&self, end: End) -> &str {
        let [server, store] = &self.names;
        match end {
            End::Server => server,
            End::RemoteStore => store,
        }
    }
}

impl End {
    /// Returns the address of this end of the cable.
    pub fn address(self) -> Ipv4Addr {
        match self {
            Self::Server => Ipv4Addr::new(10, 99, 0, 1),
            Self::RemoteStore => Ipv4Addr::new(10, 99, 0, 2),
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in &self.names {
            // Processes and sockets in it end on their own.
            let _ = Command::new("ip").args(["netns", "delete", name]).output();
        }
    }
}

fn ip(words: &[&str]) {
    done(Command::new("ip").args(words));
}
