//! Stored form of values that are text in JSON.
//!
//! Guarantees: an invalid text is an error that says what is wrong. Non-goals: texts of bytes, see `text_encoding.rs`.

use engine::{BucketName, FolderKey, ObjectKey};
use protocol::destination::OutboundUrl;
use uuid::Uuid;

use super::{AccountName, CacheControl, OrganisationName};

/// Value whose stored form is text.
pub(super) trait StoredText: Sized {
    fn to_text(&self) -> String;

    /// Parses the text. The error of a secret does not contain it.
    fn from_text(text: &str) -> Result<Self, String>;
}

macro_rules! stored_as_text {
    ($($type:ident $write:ident $parse:ident;)*) => {
        $(
            impl StoredText for $type {
                fn to_text(&self) -> String {
                    self.$write().to_owned()
                }

                fn from_text(text: &str) -> Result<Self, String> {
                    $type::$parse(text).map_err(|why| why.to_string())
                }
            }
        )*
    };
}

stored_as_text! {
    AccountName as_str parse;
    BucketName as_str parse;
    CacheControl as_str parse;
    FolderKey as_str parse;
    ObjectKey as_str parse;
    OrganisationName as_str parse;
    OutboundUrl as_str parse;
    Uuid to_string parse_str;
}

/// Functions for `#[serde(with)]`.
pub(super) mod text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::StoredText;

    pub(crate) fn serialize<T: StoredText, S: Serializer>(
        value: &T,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.serialize_str(&value.to_text())
    }

    pub(crate) fn deserialize<'de, T: StoredText, D: Deserializer<'de>>(
        from: D,
    ) -> Result<T, D::Error> {
        T::from_text(&String::deserialize(from)?).map_err(D::Error::custom)
    }
}

/// Functions for `#[serde(default, with)]` of a value that may be absent.
pub(super) mod optional_text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::StoredText;

    pub(crate) fn serialize<T: StoredText, S: Serializer>(
        value: &Option<T>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        value.as_ref().map(T::to_text).serialize(to)
    }

    pub(crate) fn deserialize<'de, T: StoredText, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<T>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| T::from_text(&text)).transpose().map_err(D::Error::custom)
    }
}
