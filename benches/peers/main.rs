//! trug and other servers on the same work over HTTP, in one run.
//!
//! Expected of pictures: decoding a JPEG at an eighth of its size, shrinking and encoding it cost trug 25 to 30 ms of a
//! processor, libvips 40 and Pillow 35 to 45 (`image`), and trug's requests little more: 1.4 times the pictures of the
//! better peer on two processors, because all three use both.
//!
//! Four clients request copies of photographs of 12 megapixels, 400 pixels wide as WebP of quality 80: each for the
//! first time, then again. No rate limit applies. trug and thumbor store their results, ipx does not.
//!
//! Expected of objects: a durable put waits for a sync, which trug shares among all clients. Of 4 KiB from 16 clients,
//! ten times the puts of servers that sync each object, and about half of nginx, which syncs nothing. GETs as in
//! `http`. S3 costs more than plain HTTP in all servers, for the signature: peers with S3 are compared with trug's S3.
//! GETs are signed before the load, puts during it.
//!
//! Contestants take turns. `--only objects` and `--only pictures` measure one of both.

mod contestant;
mod garage;
mod ipx;
mod object_api;
mod objects;
mod pictures;
mod radosgw;
mod swift;
mod thumbor;
mod webdav;

use std::process::ExitCode;

use benches::arguments::Arguments;

/// Function that measures one kind of work.
type Measure = fn(&Arguments) -> Result<(), String>;

fn main() -> ExitCode {
    Arguments::run("peers", |arguments| {
        let only = arguments.value("--only");
        let all: [(&str, Measure); 2] =
            [("objects", objects::measure), ("pictures", pictures::measure)];
        let mut chosen = all.iter().filter(|(name, _)| only.is_none_or(|only| only == *name));
        match only {
            Some(only) if all.iter().all(|(name, _)| only != *name) => {
                Err(format!("--only {only}: objects or pictures"))
            }
            _ => chosen.try_for_each(|(_, measure)| measure(arguments)),
        }
    })
}
