//! Random bytes as text that survives a double click: lower-case letters and the digits 2 to 7.
//!
//! Never here: a way back; such text is compared and hashed, never decoded.

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Five bits a character, the last one filled up with zeros.
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

/// Whether a text is made of the alphabet.
pub(super) fn is(text: &str) -> bool {
    text.bytes().all(|byte| ALPHABET.contains(&byte))
}

fn character(bits: u32) -> char {
    char::from(ALPHABET[(bits & 31) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_the_text_of_rfc_4648_in_lower_case() {
        for (bytes, text) in
            [("", ""), ("f", "my"), ("fo", "mzxq"), ("foob", "mzxw6yq"), ("foobar", "mzxw6ytboi")]
        {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert!(is(text));
        }
        assert!(!is("A1"));
    }
}
