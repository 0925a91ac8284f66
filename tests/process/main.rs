//! Is everything that was acknowledged there after the process was killed, again and again?
//!
//! A real server under load from real sockets is killed with SIGKILL at random moments. Each client keeps a log of what
//! was acknowledged; after each restart everything in it is read back byte by byte. What was in flight happened or did
//! not, but whole: all files of a request, or none.

mod client;
mod kill;
mod ledger;
