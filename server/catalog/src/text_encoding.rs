//! Bytes as text, by `data-encoding`.

/// Lower-case hexadecimal digits.
pub(super) mod hex {
    use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn encode(bytes: &[u8]) -> String {
        HEXLOWER.encode(bytes)
    }

    /// Decodes 32 bytes; `None` for any other text.
    pub(crate) fn decode(text: &str) -> Option<[u8; 32]> {
        HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()?.try_into().ok()
    }

    /// Stored form of 32 bytes.
    pub(crate) fn serialize<S: Serializer>(bytes: &[u8; 32], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&encode(bytes))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<[u8; 32], D::Error> {
        let bytes = decode(&String::deserialize(from)?);
        bytes.ok_or_else(|| D::Error::custom("not 32 bytes in hexadecimal"))
    }
}

/// Base32 (RFC 4648) without padding, in lower case, as text that a double click selects.
pub(super) mod base32 {
    use std::sync::LazyLock;

    use data_encoding::{Encoding, Specification};
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    const ALPHABET: &str = "abcdefghijklmnopqrstuvwxyz234567";

    static ENCODING: LazyLock<Encoding> = LazyLock::new(|| {
        let specification = Specification { symbols: ALPHABET.to_owned(), ..Specification::new() };
        specification.encoding().expect("a constant alphabet of 32 characters")
    });

    pub(crate) fn encode(bytes: &[u8]) -> String {
        ENCODING.encode(bytes)
    }

    /// Decodes a text; `None` for a text that `encode` would not return, so that no two texts have the same meaning.
    pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
        ENCODING.decode(text.as_bytes()).ok()
    }

    pub(crate) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&encode(bytes))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>, const N: usize>(
        from: D,
    ) -> Result<[u8; N], D::Error> {
        let bytes = decode(&String::deserialize(from)?).and_then(|bytes| bytes.try_into().ok());
        bytes.ok_or_else(|| D::Error::custom(format_args!("not {N} bytes in base32")))
    }

    /// Returns whether a text consists of the alphabet.
    pub(crate) fn is_valid(text: &str) -> bool {
        text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'2'..=b'7'))
    }
}

#[cfg(test)]
mod tests {
    use super::base32::{decode, encode, is_valid};
    use super::hex;

    #[test]
    fn base32_follows_rfc_4648_in_lower_case() {
        for (bytes, text) in
            [("", ""), ("f", "my"), ("fo", "mzxq"), ("foob", "mzxw6yq"), ("foobar", "mzxw6ytboi")]
        {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert!(is_valid(text));
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()));
        }
        assert!(!is_valid("A1"));
        for other in ["mz", "m", "my=", "MY", "m1", "mzxw6ytbojj"] {
            assert_eq!(decode(other), None, "{other}");
        }
    }

    #[test]
    fn hex_encodes_hashes() {
        let text = "00ff".repeat(16);
        assert_eq!(hex::decode(&text).map(|bytes| hex::encode(&bytes)), Some(text.clone()));
        for other in [&text[1..], &"0g".repeat(32), &"00".repeat(33), ""] {
            assert_eq!(hex::decode(other), None, "{other}");
        }
    }
}
