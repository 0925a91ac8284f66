//! Pictures: bytes of a file into pixels, without HTTP and without the store.
//!
//! Pure code over bytes and pixels, on the lowest layer: it names nothing of the server, so that a worker's thread, a
//! test, the fuzzer and a bench can call it alike. So far it holds one piece, which no request reaches yet:
//!
//! | module | does |
//! |---|---|
//! | [`scaled_jpeg`] | decodes a JPEG to an eighth, a quarter, three eighths or half of its size, without decoding all of it |
//!
//! Promises of everything here: no panic and no unbounded memory on any bytes, and no `unsafe`.
//! Never here: requests, names, where bytes come from, which thread works.

pub mod scaled_jpeg;
