//! Base32 encoding of random bytes as text that a double click selects: lower-case letters and the digits 2 to 7.
//!
//! Guarantees: only the text that `encode` returns is decoded, so that no two texts have the same meaning.

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Encodes five bits per character, the last one padded with zero bits.
pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(5) * 8);
    let (mut waiting, mut waiting_bits) = (0_u32, 0_u32);
    for byte in bytes {
        waiting = (waiting << 8) | u32::from(*byte);
        waiting_bits += 8;
        while waiting_bits >= 5 {
            waiting_bits -= 5;
            text.push(character(waiting >> waiting_bits));
        }
    }
    if waiting_bits > 0 {
        text.push(character(waiting << (5 - waiting_bits)));
    }
    text
}

/// Returns whether a text consists of the alphabet.
pub(super) fn is_valid(text: &str) -> bool {
    text.bytes().all(|byte| ALPHABET.contains(&byte))
}

/// Decodes a text; `None` for a text that `encode` would not return.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() * 5 / 8);
    let (mut waiting, mut waiting_bits) = (0_u32, 0_u32);
    for character in text.bytes() {
        let bits = ALPHABET.iter().position(|it| *it == character)?;
        waiting = (waiting << 5) | bits as u32;
        waiting_bits += 5;
        if waiting_bits >= 8 {
            waiting_bits -= 8;
            bytes.push((waiting >> waiting_bits) as u8);
        }
    }
    (encode(&bytes) == text).then_some(bytes)
}

fn character(bits: u32) -> char {
    char::from(ALPHABET[(bits & 31) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
