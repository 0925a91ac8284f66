//! Broken files, and files that are meant to do harm: no panic, no abort, and no more memory than was promised.
//!
//! Each is rendered in a process of its own, which tells what came of it and how much memory it took at most
//! (`child`). The bombs are made here, byte by byte; what others made, whole and broken, comes from packages
//! (`samples`).

mod avif;
mod bits;
mod bombs;
mod child;
mod gif;
mod jpeg;
mod png;
mod rare;
mod samples;
mod webp;
