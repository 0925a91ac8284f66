//! Listening sockets of a server: inherited, or opened at the configured addresses.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use listener::accept::listen;
use service::config::Config;
use tokio::net::TcpListener;

/// Inherited listening sockets, used instead of opening new ones.
#[derive(Debug, Default)]
pub struct InheritedSockets {
    pub listen: Option<std::net::TcpListener>,
    pub upload_listen: Option<std::net::TcpListener>,
}

/// Error of a listening socket, with its configured address.
#[derive(Debug)]
pub struct ListenError {
    pub address: SocketAddr,
    pub error: io::Error,
}

/// Listening sockets of a server.
pub(crate) struct Sockets {
    pub(crate) public: Socket,
    pub(crate) premium: Option<Socket>,
    pub(crate) admin: Option<Socket>,
}

/// A listening socket.
pub(crate) struct Socket {
    pub(crate) listener: TcpListener,
    /// Bound address, with the port that the system chose for port 0.
    pub(crate) address: SocketAddr,
}

impl Sockets {
    /// Opens the sockets that are not inherited.
    pub(crate) fn open(inherited: InheritedSockets, config: &Config) -> Result<Self, ListenError> {
        let public = match inherited.listen {
            Some(socket) => Socket::inherit(socket, config.listen)?,
            None => Socket::open(config.listen)?,
        };
        let premium = match inherited.upload_listen {
            Some(socket) => {
                Some(Socket::inherit(socket, config.upload_listen.unwrap_or(config.listen))?)
            }
            None => config.upload_listen.map(Socket::open).transpose()?,
        };
        let admin = config.admin_listen.map(Socket::open).transpose()?;
        Ok(Self { public, premium, admin })
    }
}

impl Socket {
    fn open(address: SocketAddr) -> Result<Self, ListenError> {
        let opened = listen(address).and_then(Self::new);
        opened.map_err(|error| ListenError { address, error })
    }

    /// Converts an inherited socket. `configured`: the address that it replaces, for errors.
    fn inherit(socket: std::net::TcpListener, configured: SocketAddr) -> Result<Self, ListenError> {
        let converted = socket.set_nonblocking(true).and_then(|()| TcpListener::from_std(socket));
        converted.and_then(Self::new).map_err(|error| ListenError { address: configured, error })
    }

    fn new(listener: TcpListener) -> io::Result<Self> {
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot listen on {}: {}", self.address, self.error)
    }
}

impl std::error::Error for ListenError {}
