//! Grants to upload, or to read one file, and the signed text that carries one: the token of a presigned upload or a
//! download link.
//!
//! The text is self-contained, so that issuing one writes nothing. It is, in base32, with numbers little-endian:
//!
//! | bytes | field       | meaning                                                              |
//! | ----- | ----------- | -------------------------------------------------------------------- |
//! | 1     | format      | 1                                                                    |
//! | 4     | signing key | number of the key of the signature                                   |
//! | each 2 + n | fields | length and bytes of: id, purpose, bucket, path, options, issuer, expiry |
//! | 32    | signature   | HMAC-SHA256 of all preceding bytes                                   |
//!
//! Guarantees: only a text signed here becomes a grant, bit for bit; a grant states its restrictions and contains no
//! secret. Non-goals: signing keys, the clock, used tokens.

use std::fmt;

use engine::name::NameError;
use engine::rng::Rng;
use engine::{BucketName, FactName};
use hmac::{Hmac, KeyInit, Mac};
use protocol::file_name::{ConflictRule, Naming};
use protocol::object_path::PathInBucket;
use sha2::Sha256;

use super::base32;
use super::bucket::Bucket;
use super::id::{AccountId, ApiKeyId, SessionId};
use super::stored_text::StoredText;

/// Prefix of the fact names of used tokens.
pub(super) const USED_PREFIX: &str = "token/";

pub(super) const SECRET_BYTES: usize = 32;
const FORMAT: u8 = 1;
const SIGNATURE_BYTES: usize = 32;
const ID_BYTES: usize = 16;
/// Maximum length of a valid text; a longer one is not decoded.
const TEXT_CHARS_MAX: usize = 2_048;

/// Rights of the holder of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    pub id: TokenId,
    pub purpose: Purpose,
    pub bucket: BucketName,
    pub path: PathInBucket,
    pub params: UploadParams,
    /// Credential that created the grant, whose current rights apply at use.
    pub issuer: Issuer,
    /// Expiry.
    pub expires_ms: u64,
}

/// Credential that created a grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Issuer {
    Key(ApiKeyId),
    Session(SessionId),
    /// Signed-in user, for work that outlives the session.
    Account(AccountId),
}

/// Token id: 128 random bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenId([u8; ID_BYTES]);

/// Use of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// One upload by form: the current presigned token.
    Form,
    /// Raw uploads of one file: the earlier presigned URL.
    Raw,
    /// Reading one file: a download link.
    Read,
}

/// Upload options besides the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UploadParams {
    pub naming: Naming,
    pub rule: ConflictRule,
    pub thumbnail: ThumbnailChoice,
}

/// Thumbnail option of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThumbnailChoice {
    /// Default of the bucket.
    BucketDefault,
    No,
    Yes,
}

impl ThumbnailChoice {
    /// Converts an optional flag.
    pub fn from_flag(flag: Option<bool>) -> Self {
        match flag {
            None => Self::BucketDefault,
            Some(false) => Self::No,
            Some(true) => Self::Yes,
        }
    }

    /// Returns whether a thumbnail is created in a bucket.
    pub fn applies_to(self, bucket: &Bucket) -> bool {
        match self {
            Self::BucketDefault => bucket.thumbnails,
            Self::No => false,
            Self::Yes => true,
        }
    }
}

impl Grant {
    /// Returns whether the grant has expired.
    pub fn is_expired(&self, now_ms: u64) -> bool {
        now_ms >= self.expires_ms
    }

    /// Returns the fact that marks the token as used. Its name starts with the expiry, so that the oldest come first.
    pub(super) fn used_fact(&self) -> Result<FactName, NameError> {
        let id = base32::encode(&self.id.0);
        FactName::parse(&format!("{USED_PREFIX}{:015}/{id}", self.expires_ms))
    }

    /// Returns the signed text.
    pub(super) fn sign(&self, key_number: u32, secret: &[u8; SECRET_BYTES]) -> String {
        let mut bytes = vec![FORMAT];
        bytes.extend(key_number.to_le_bytes());
        for field in [
            &self.id.0[..],
            &[self.purpose.byte()],
            self.bucket.as_str().as_bytes(),
            self.path.as_str().as_bytes(),
            &[self.params.byte()],
            self.issuer.to_text().as_bytes(),
            &self.expires_ms.to_le_bytes(),
        ] {
            // The longest field is a key, of 1,024 bytes.
            bytes.extend((field.len() as u16).to_le_bytes());
            bytes.extend_from_slice(field);
        }
        let signature = signing(secret, &bytes).finalize().into_bytes();
        bytes.extend_from_slice(&signature);
        base32::encode(&bytes)
    }

    /// Verifies a text; `None` unless it was signed with the key that it names.
    pub(super) fn verify(
        text: &str,
        secret_of: impl FnOnce(u32) -> Option<[u8; SECRET_BYTES]>,
    ) -> Option<Self> {
        if text.len() > TEXT_CHARS_MAX {
            return None;
        }
        let bytes = base32::decode(text)?;
        let (signed, signature) = bytes.split_last_chunk::<SIGNATURE_BYTES>()?;
        let (&[format], rest) = signed.split_first_chunk()?;
        let (key_number, fields) = rest.split_first_chunk()?;
        let secret = secret_of(u32::from_le_bytes(*key_number))?;
        // Constant-time comparison.
        signing(&secret, signed).verify_slice(signature).ok()?;
        if format == FORMAT { Self::of_fields(fields) } else { None }
    }

    fn of_fields(mut fields: &[u8]) -> Option<Self> {
        let mut next = || {
            let (length, rest) = fields.split_first_chunk()?;
            let (field, rest) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
            fields = rest;
            Some(field)
        };
        let (id, purpose, bucket, path) = (next()?, next()?, next()?, next()?);
        let (wishes, issuer, expires_ms) = (next()?, next()?, next()?);
        if !fields.is_empty() {
            return None;
        }
        Some(Self {
            id: TokenId(id.try_into().ok()?),
            purpose: Purpose::of_byte(purpose)?,
            bucket: BucketName::parse(text(bucket)?).ok()?,
            path: PathInBucket::parse(text(path)?).ok()?,
            params: UploadParams::of_byte(wishes)?,
            issuer: Issuer::from_text(text(issuer)?).ok()?,
            expires_ms: u64::from_le_bytes(expires_ms.try_into().ok()?),
        })
    }
}

/// Prefix of a session id; a key id has no prefix, since it predates sessions.
const SESSION_MARK: &str = "session/";
/// Prefix of an account id.
const ACCOUNT_MARK: &str = "account/";

impl StoredText for Issuer {
    fn to_text(&self) -> String {
        match self {
            Self::Key(id) => id.to_string(),
            Self::Session(id) => format!("{SESSION_MARK}{id}"),
            Self::Account(id) => format!("{ACCOUNT_MARK}{id}"),
        }
    }

    fn from_text(text: &str) -> Result<Self, String> {
        if let Some(id) = text.strip_prefix(ACCOUNT_MARK) {
            return AccountId::read(id).map(Self::Account);
        }
        match text.strip_prefix(SESSION_MARK) {
            Some(id) => SessionId::read(id).map(Self::Session),
            None => ApiKeyId::read(text).map(Self::Key),
        }
    }
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

fn signing(secret: &[u8; SECRET_BYTES], bytes: &[u8]) -> Hmac<Sha256> {
    // HMAC pads a key shorter than a block of the hash with zeros.
    let mut block = [0; 64];
    block[..SECRET_BYTES].copy_from_slice(secret);
    let mut mac = Hmac::<Sha256>::new(&block.into());
    mac.update(bytes);
    mac
}

impl TokenId {
    /// Generates a token id.
    pub fn issue(rng: &dyn Rng) -> Self {
        let mut id = [0; ID_BYTES];
        rng.fill(&mut id);
        Self(id)
    }
}

impl fmt::Debug for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&base32::encode(&self.0))
    }
}

impl Purpose {
    fn byte(self) -> u8 {
        match self {
            Self::Form => 1,
            Self::Raw => 2,
            Self::Read => 3,
        }
    }

    fn of_byte(byte: &[u8]) -> Option<Self> {
        match byte {
            [1] => Some(Self::Form),
            [2] => Some(Self::Raw),
            [3] => Some(Self::Read),
            _ => None,
        }
    }
}

const RANDOMISED: u8 = 1;
const OVERWRITE: u8 = 2;
const THUMBNAIL: u8 = 4;
const NO_THUMBNAIL: u8 = 8;

impl UploadParams {
    /// Options of grants that upload nothing.
    pub const NONE: Self = Self {
        naming: Naming::ClientName,
        rule: ConflictRule::Rename,
        thumbnail: ThumbnailChoice::BucketDefault,
    };

    fn byte(self) -> u8 {
        let naming = if self.naming == Naming::Random { RANDOMISED } else { 0 };
        let rule = if self.rule == ConflictRule::Overwrite { OVERWRITE } else { 0 };
        let thumbnail = match self.thumbnail {
            ThumbnailChoice::BucketDefault => 0,
            ThumbnailChoice::No => NO_THUMBNAIL,
            ThumbnailChoice::Yes => THUMBNAIL,
        };
        naming | rule | thumbnail
    }

    fn of_byte(byte: &[u8]) -> Option<Self> {
        let &[byte] = byte else { return None };
        let has = |bit: u8| byte & bit != 0;
        let wishes = Self {
            naming: if has(RANDOMISED) { Naming::Random } else { Naming::ClientName },
            rule: if has(OVERWRITE) { ConflictRule::Overwrite } else { ConflictRule::Rename },
            thumbnail: match (has(THUMBNAIL), has(NO_THUMBNAIL)) {
                (false, false) => ThumbnailChoice::BucketDefault,
                (false, true) => ThumbnailChoice::No,
                (true, _) => ThumbnailChoice::Yes,
            },
        };
        (wishes.byte() == byte).then_some(wishes)
    }
}

#[cfg(test)]
mod tests {
    use engine::rng::SeededRng;

    use super::*;

    const SECRET: [u8; SECRET_BYTES] = [7; SECRET_BYTES];

    fn grant(path: &str) -> Grant {
        Grant {
            id: TokenId::issue(&SeededRng::new(1)),
            purpose: Purpose::Form,
            bucket: BucketName::parse("photos").unwrap(),
            path: PathInBucket::parse(path).unwrap(),
            params: UploadParams {
                naming: Naming::ClientName,
                rule: ConflictRule::Rename,
                thumbnail: ThumbnailChoice::No,
            },
            issuer: Issuer::Key(ApiKeyId::parse("aaaaaaaaaaaaaaaa").unwrap()),
            expires_ms: 1_769_860_800_000,
        }
    }

    fn verified(text: &str) -> Option<Grant> {
        Grant::verify(text, |number| (number == 3).then_some(SECRET))
    }

    /// Decodes hexadecimal, for a vector of another implementation.
    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn grant_signature_is_hmac_sha256() {
        // RFC 4231, test case 2, has a key of four bytes: trailing zeros do not change the result.
        let mut secret = [0; SECRET_BYTES];
        secret[..4].copy_from_slice(b"Jefe");
        let signature = signing(&secret, b"what do ya want for nothing?").finalize().into_bytes();
        let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(hex(&signature), expected);
    }

    #[test]
    fn signed_grant_round_trips() {
        for path in ["", "img/", "img/cat é.png", &"k".repeat(1_024)] {
            for byte in 0..12 {
                for purpose in [Purpose::Form, Purpose::Raw, Purpose::Read] {
                    let wishes = UploadParams::of_byte(&[byte]).unwrap();
                    let session = Issuer::Session(SessionId::parse("aaaaaaaaaaaaaaaa").unwrap());
                    let account = Issuer::Account(AccountId::parse("aaaaaaaaaaaaaaaa").unwrap());
                    for issuer in [grant(path).issuer, session, account] {
                        let grant = Grant { params: wishes, purpose, issuer, ..grant(path) };
                        let text = grant.sign(3, &SECRET);
                        assert!(text.len() <= TEXT_CHARS_MAX, "{}", text.len());
                        assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric()));
                        assert_eq!(verified(&text), Some(grant));
                    }
                }
            }
        }
        for both_or_unknown in [12, 16] {
            assert_eq!(UploadParams::of_byte(&[both_or_unknown]), None);
        }
    }

    #[test]
    fn tampered_grants_are_rejected() {
        let text = grant("img/").sign(3, &SECRET);
        assert!(verified(&text).is_some());
        assert_eq!(Grant::verify(&text, |_| Some([8; SECRET_BYTES])), None, "another secret");
        assert_eq!(Grant::verify(&text, |_| None), None, "a key that is gone");
        for at in 0..text.len() {
            for other in b"abcdefghijklmnopqrstuvwxyz234567ABZ=-_%/ 0189" {
                let mut bytes = text.clone().into_bytes();
                if bytes[at] != *other {
                    bytes[at] = *other;
                    assert_eq!(verified(std::str::from_utf8(&bytes).unwrap()), None, "at {at}");
                }
            }
            assert_eq!(verified(&text[..at]), None, "cut at {at}");
            let (start, end) = text.split_at(at);
            assert_eq!(verified(&format!("{start}a{end}")), None, "one more at {at}");
        }
        assert_eq!(verified(&format!("{text}a")), None);
        assert_eq!(verified(&"a".repeat(1_000_000)), None);
    }

    #[test]
    fn every_bit_counts() {
        let bytes = base32::decode(&grant("img/").sign(3, &SECRET)).unwrap();
        for at in 0..8 * bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at / 8] ^= 1 << (at % 8);
            assert_eq!(Grant::verify(&base32::encode(&flipped), |_| Some(SECRET)), None, "{at}");
        }
    }

    #[test]
    fn signed_grant_fields_are_delimited() {
        // The same concatenated text, split differently: bucket and lock, lock and issuer.
        let bucket = |name: &str| BucketName::parse(name).unwrap();
        let one = Grant { bucket: bucket("photos"), ..grant("a/b/") };
        let other = Grant { bucket: bucket("photosa"), ..grant("b/") };
        let body = |grant: &Grant| {
            let bytes = base32::decode(&grant.sign(3, &SECRET)).unwrap();
            bytes[..bytes.len() - SIGNATURE_BYTES].to_vec()
        };
        let signature = |grant: &Grant| {
            let bytes = base32::decode(&grant.sign(3, &SECRET)).unwrap();
            bytes[bytes.len() - SIGNATURE_BYTES..].to_vec()
        };
        assert_ne!(body(&one), body(&other));
        let swapped = [body(&other), signature(&one)].concat();
        assert_eq!(verified(&base32::encode(&swapped)), None);
    }

    #[test]
    fn malformed_signed_grants_are_rejected() {
        let signed = |bytes: &[u8]| {
            let signature = signing(&SECRET, bytes).finalize().into_bytes();
            base32::encode(&[bytes, &signature].concat())
        };
        let bytes = base32::decode(&grant("img/").sign(3, &SECRET)).unwrap();
        let body = &bytes[..bytes.len() - SIGNATURE_BYTES];
        assert!(verified(&signed(body)).is_some());
        assert_eq!(verified(&signed(&[&[2], &body[1..]].concat())), None, "another format");
        assert_eq!(verified(&signed(&[body, &[0]].concat())), None, "more than its fields");
        for end in 0..body.len() {
            assert_eq!(verified(&signed(&body[..end])), None, "cut at {end}");
        }
    }

    #[test]
    fn grant_expires_at_the_exact_millisecond() {
        let grant = grant("img/");
        assert!(!grant.is_expired(grant.expires_ms - 1));
        assert!(grant.is_expired(grant.expires_ms));
        assert!(grant.used_fact().unwrap().as_str().starts_with("token/001769860800000/"));
    }
}
