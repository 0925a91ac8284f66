//! Scaffold.
#![warn(missing_docs)]

pub mod clock;
pub mod disk;
pub mod entropy;
mod error;
pub mod format;
pub mod limits;
pub mod name;

pub use self::error::{Conflict, Corruption, Error, Result};
