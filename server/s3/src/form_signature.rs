//! Signatures of POST policies: Version 4, and Version 2 of older clients.
//!
//! Pure. Guarantees: signatures are compared in constant time; a policy that was signed by Version 4 more than a week
//! ago is rejected; Version 2 has no date other than the expiration of the policy. Non-goals: what the policy allows.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use s3s::{S3Error, S3ErrorCode, S3Result};
use sha1::Sha1;
use sha2::Sha256;
use subtle::ConstantTimeEq;

use super::errors::s3_error;
use super::post_policy::{Fields, field};

/// Maximum age of a signing date (S3 API): a week.
const AGE_MS_MAX: u64 = 7 * 24 * 60 * 60 * 1_000;
/// Maximum clock skew of a client in the future.
const AHEAD_MS_MAX: u64 = 15 * 60 * 1_000;

/// Signature of a form.
pub(super) enum FormSignature<'f> {
    /// Fields `AWSAccessKeyId` and `signature`.
    V2 { key_id: &'f str, signature: &'f str },
    /// Fields `x-amz-algorithm`, `x-amz-credential`, `x-amz-date` and `x-amz-signature`.
    V4 { credential: Credential<'f>, signature: &'f str },
}

impl<'f> FormSignature<'f> {
    /// Parses the fields of either version.
    pub(super) fn of(fields: &'f Fields, now_ms: u64) -> S3Result<Self> {
        if fields.contains_key("awsaccesskeyid") {
            let (key_id, signature) =
                (field(fields, "awsaccesskeyid")?, field(fields, "signature")?);
            return Ok(Self::V2 { key_id, signature });
        }
        let signature = field(fields, "x-amz-signature")?;
        if field(fields, "x-amz-algorithm")? != "AWS4-HMAC-SHA256" {
            let message = "The field x-amz-algorithm must be AWS4-HMAC-SHA256";
            return Err(s3_error(S3ErrorCode::InvalidArgument, message));
        }
        let (credential, date) = (field(fields, "x-amz-credential")?, field(fields, "x-amz-date")?);
        Ok(Self::V4 { credential: Credential::parse(credential, date, now_ms)?, signature })
    }

    pub(super) fn key_id(&self) -> &'f str {
        match self {
            Self::V2 { key_id, .. } => key_id,
            Self::V4 { credential, .. } => credential.key_id,
        }
    }

    /// Returns whether this is the signature of the policy, in base64 as it was sent, by this secret.
    pub(super) fn matches(&self, secret: &str, policy: &str) -> bool {
        match self {
            Self::V2 { signature, .. } => {
                let made = mac::<Hmac<Sha1>>(secret.as_bytes(), policy.as_bytes());
                let made = made.map(|made| STANDARD.encode(made));
                made.is_some_and(|made| made.as_bytes().ct_eq(signature.as_bytes()).into())
            }
            Self::V4 { credential, signature } => {
                is_signed_by(secret, credential, policy, signature)
            }
        }
    }
}

/// Field `x-amz-credential`: `{key id}/{date}/{region}/s3/aws4_request`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Credential<'f> {
    key_id: &'f str,
    date: &'f str,
    region: &'f str,
}

impl<'f> Credential<'f> {
    /// Parses the field, and checks it against `x-amz-date` and the time.
    fn parse(field: &'f str, time: &str, now_ms: u64) -> S3Result<Self> {
        let message = "The field x-amz-credential must be \
            {key id}/{date}/{region}/s3/aws4_request, with the date of x-amz-date";
        let malformed = || s3_error(S3ErrorCode::InvalidArgument, message);
        let parts: Vec<_> = field.split('/').collect();
        let [key_id, date, region, "s3", "aws4_request"] = *parts else { return Err(malformed()) };
        let is_region = !region.is_empty()
            && region
                .bytes()
                .all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-');
        if !is_region || !time.starts_with(date) || date.len() != 8 {
            return Err(malformed());
        }
        let signed_ms = millis_of(time).ok_or_else(|| {
            s3_error(S3ErrorCode::InvalidArgument, "The field x-amz-date must be YYYYMMDDTHHMMSSZ")
        })?;
        if signed_ms > now_ms.saturating_add(AHEAD_MS_MAX) || now_ms > signed_ms + AGE_MS_MAX {
            return Err(denied());
        }
        Ok(Self { key_id, date, region })
    }
}

fn denied() -> S3Error {
    let message = "The form was signed more than a week ago, or in the future";
    s3_error(S3ErrorCode::AccessDenied, message)
}

/// Parses a time such as `20300131T120000Z` to milliseconds since 1970.
fn millis_of(time: &str) -> Option<u64> {
    let is_basic = time.len() == 16 && time.is_ascii();
    let at = |from: usize, to: usize| time.get(from..to).filter(|_| is_basic);
    let text = format!(
        "{}-{}-{}T{}:{}:{}Z",
        at(0, 4)?,
        at(4, 6)?,
        at(6, 8)?,
        at(9, 11)?,
        at(11, 13)?,
        at(13, 15)?
    );
    let is_marked = at(8, 9) == Some("T") && at(15, 16) == Some("Z");
    let time: jiff::Timestamp = text.parse().ok().filter(|_| is_marked)?;
    u64::try_from(time.as_millisecond()).ok()
}

/// Returns whether the signature of a policy, both as they were sent, was made with this secret.
fn is_signed_by(secret: &str, credential: &Credential<'_>, policy: &str, signature: &str) -> bool {
    let first = format!("AWS4{secret}").into_bytes();
    let key = [credential.date, credential.region, "s3", "aws4_request", policy]
        .iter()
        .try_fold(first, |key, part| mac::<Hmac<Sha256>>(&key, part.as_bytes()));
    let Some(made) = key else { return false };
    let made = made.iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    made.as_bytes().ct_eq(signature.as_bytes()).into()
}

fn mac<M: Mac + KeyInit>(key: &[u8], text: &[u8]) -> Option<Vec<u8>> {
    let mut mac = <M as KeyInit>::new_from_slice(key).ok()?;
    mac.update(text);
    Some(mac.finalize().into_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2015-12-29T00:00:00Z.
    const SIGNED_MS: u64 = 1_451_347_200_000;
    const SCOPE: &str = "AKIAIOSFODNN7EXAMPLE/20151229/us-east-1/s3/aws4_request";
    const TIME: &str = "20151229T000000Z";

    #[test]
    fn policy_signature_matches_sigv4() {
        let credential = Credential::parse(SCOPE, TIME, SIGNED_MS).unwrap();
        let policy = "eyAiZXhwaXJhdGlvbiI6ICIyMDE1LTEyLTMwVDEyOjAwOjAwLjAwMFoiIH0=";
        let signed = |secret: &str, policy: &str, signature: &str| {
            is_signed_by(secret, &credential, policy, signature)
        };
        let signature = SIGNATURE;
        assert!(signed("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", policy, signature));
        assert!(!signed("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEZ", policy, signature));
        assert!(!signed("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "e30=", signature));
        assert!(!signed("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", policy, ""));
    }

    #[test]
    fn policy_signature_matches_sigv2() {
        let fields = Fields::from([
            ("awsaccesskeyid".to_owned(), "AKID".to_owned()),
            // Computed with Python: base64.b64encode(hmac.new(b"secret", b"e30=", "sha1").digest())
            ("signature".to_owned(), SIGNATURE_V2.to_owned()),
        ]);
        let signature = FormSignature::of(&fields, SIGNED_MS).unwrap();
        assert_eq!(signature.key_id(), "AKID");
        assert!(signature.matches("secret", "e30="));
        assert!(!signature.matches("secret", "e31="));
        assert!(!signature.matches("Secret", "e30="));
    }

    #[test]
    fn form_credential_requires_a_recent_date() {
        let code = |field: &str, time: &str, now_ms: u64| {
            let parsed = Credential::parse(field, time, now_ms);
            parsed.err().map_or("ok".to_owned(), |error| error.code().as_str().to_owned())
        };
        assert_eq!(code(SCOPE, TIME, SIGNED_MS + AGE_MS_MAX), "ok");
        assert_eq!(code(SCOPE, TIME, SIGNED_MS + AGE_MS_MAX + 1), "AccessDenied");
        assert_eq!(code(SCOPE, TIME, SIGNED_MS - AHEAD_MS_MAX - 1), "AccessDenied");
        for (field, time) in [
            ("a/20151229/us-east-1/s3", TIME),
            ("a/20151228/us-east-1/s3/aws4_request", TIME),
            ("a/20151229/US/s3/aws4_request", TIME),
            ("a/20151229/us-east-1/ec2/aws4_request", TIME),
            (SCOPE, "20151229"),
            (SCOPE, "20151229T000000+1"),
            (SCOPE, "20151229 000000Z"),
            (SCOPE, "20151229T990000Z"),
        ] {
            assert_eq!(code(field, time, SIGNED_MS), "InvalidArgument", "{field} {time}");
        }
    }

    const SIGNATURE_V2: &str = "3KeROaoASbxgUSU+Qu1QG4MqvzI=";
    /// Computed with Python: `hmac.new(key, policy, "sha256").hexdigest()` with the key of the scope.
    const SIGNATURE: &str = "2330084cd4addf143d6fd3d1a8ea1ca1bf7c2fb6fd4d5e06965ce5eda67061af";
}
