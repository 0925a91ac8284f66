//! What is kept of a file beside its content, its type and its times: JSON among the attributes of its record, which
//! the engine does not look into.
//!
//! Promises: what a client of S3 said about a file is told again, word for word. Never here: what others are told.

#[cfg(feature = "s3")]
use engine::Object;
use serde::{Deserialize, Serialize};

/// What is kept of an upload beside its content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Attributes {
    /// What the client called the type, where something else was believed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) declared_type: Option<String>,
    #[cfg(feature = "s3")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) s3: Option<S3Attributes>,
}

/// What clients of S3 are told again.
#[cfg(feature = "s3")]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct S3Attributes {
    /// The entity tag, without quotes: the MD5 of the content, or of those of its parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) etag: Option<String>,
    /// What stood behind `x-amz-meta-`.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub(crate) metadata: std::collections::BTreeMap<String, String>,
}

impl Attributes {
    /// As they are stored; none for none, and for what is too long.
    pub(super) fn encoded(&self) -> Option<Vec<u8>> {
        if *self == Self::default() {
            return None;
        }
        let encoded = serde_json::to_vec(self).ok()?;
        (encoded.len() <= engine::limits::ATTRIBUTES_BYTES_MAX).then_some(encoded)
    }

    /// Whether there is room for them.
    #[cfg(feature = "s3")]
    pub(crate) fn fit(&self) -> bool {
        *self == Self::default() || self.encoded().is_some()
    }

    /// Those of a file; none where they are not of this kind.
    #[cfg(feature = "s3")]
    pub(crate) fn of(object: &Object) -> Self {
        if object.is_derived() {
            return Self::default();
        }
        serde_json::from_slice(object.attributes()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_takes_no_bytes_and_too_much_is_left_out() {
        assert_eq!(Attributes::default().encoded(), None);
        let declared = |length: usize| Attributes {
            declared_type: Some("x".repeat(length)),
            #[cfg(feature = "s3")]
            s3: None,
        };
        let encoded = declared(3).encoded().unwrap();
        assert_eq!(encoded, br#"{"declaredType":"xxx"}"#);
        assert_eq!(serde_json::from_slice::<Attributes>(&encoded).unwrap(), declared(3));
        assert_eq!(declared(engine::limits::ATTRIBUTES_BYTES_MAX).encoded(), None);
    }
}
