//! trug and other servers on the same work over HTTP, in one run.
//!
//! Expected of pictures: decoding a JPEG at an eighth of its size, shrinking and encoding it cost trug 25 to 30 ms of a
//! processor, libvips 40 and Pillow 35 to 45 (`image`), and trug's requests little more: 1.4 times the pictures of the
//! better peer on two processors, because all three use both.
//!
//! Four clients request copies of photographs of 12 megapixels that nobody requested before, 400 pixels wide as WebP of
//! quality 80. Contestants take turns. No rate limit applies, and none of the peers stores its results; trug does.

mod ipx;
mod pictures;
mod thumbor;

use std::process::ExitCode;

use benches::arguments::Arguments;

fn main() -> ExitCode {
    Arguments::run("peers", pictures::measure)
}
