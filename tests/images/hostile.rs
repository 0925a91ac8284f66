//! Damaged and malicious files: no panic, no abort, and no more memory than estimated.
//!
//! Each is rendered in a process of its own, which reports the outcome and the peak memory (`child`). The bombs are
//! generated here, byte by byte; third-party files, valid and damaged, come from packages (`samples`).

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
