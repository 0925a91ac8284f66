//! Text files that are embedded in the binary, compressed by `build/main.rs`.
//!
//! Non-goals: responses (`handlers::asset`).

use std::io::Read;

use flate2::read::GzDecoder;

/// Compressed text file.
pub(crate) struct EmbeddedText(pub(crate) &'static [u8]);

/// Embeds a file by its path in this crate, in one of the sources of `build/main.rs`, or what it writes.
macro_rules! embedded {
    ($($path:literal),+) => {
        $crate::embedded::EmbeddedText(include_bytes!(concat!(
            env!("OUT_DIR"),
            "/",
            $($path,)+
            ".gz"
        )))
    };
}

pub(crate) use embedded;

impl EmbeddedText {
    /// Returns the text.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Written by the build script, so that it can be read.
        let _ = GzDecoder::new(self.0).read_to_string(&mut text);
        text
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn embedded_text_is_the_file() {
        let file = include_str!("../openapi.json");
        assert!(embedded!("openapi.json").text() == file);
    }
}
