//! Name filter: `q` of searches and of in-memory lists.
//!
//! Guarantees: for a page, each record of an in-memory list is examined once, without an index; case and Unicode
//! normalization of accents do not matter. Non-goals: object search, which ranks its hits.

use crate::error::ApiError;
use crate::limits::{SEARCH_TEXT_CHARS_MAX, SEARCH_WORDS_MAX};
use crate::object_path::normalize;
use crate::query::Query;

/// Filter of list records by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameFilter {
    words: Vec<String>,
}

impl NameFilter {
    pub fn from_query(query: &Query) -> Result<Self, ApiError> {
        let words = search_text(query)?.split_whitespace().map(str::to_lowercase).collect();
        Ok(Self { words })
    }

    /// Returns whether each word occurs in one of the names, or is a prefix of the id.
    pub fn matches<'a>(&self, id: &str, names: impl IntoIterator<Item = &'a str>) -> bool {
        if self.words.is_empty() {
            return true;
        }
        let names: Vec<_> = names.into_iter().map(|it| normalize(it).to_lowercase()).collect();
        let is_said = |word: &String| {
            id.starts_with(word.as_str()) || names.iter().any(|name| name.contains(word.as_str()))
        };
        self.words.iter().all(is_said)
    }
}

/// Returns the filter text of a request; empty without one.
pub fn search_text(query: &Query) -> Result<String, ApiError> {
    let text = query.string(&["q"])?.unwrap_or_default();
    let text = normalize(text.trim()).into_owned();
    if text.chars().count() > SEARCH_TEXT_CHARS_MAX {
        let must = format!("must have at most {SEARCH_TEXT_CHARS_MAX} characters");
        return Err(ApiError::bad_parameter("q", &must));
    }
    if text.split_whitespace().count() > SEARCH_WORDS_MAX {
        let must = format!("must have at most {SEARCH_WORDS_MAX} words");
        return Err(ApiError::bad_parameter("q", &must));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(q: &str) -> Result<NameFilter, ApiError> {
        NameFilter::from_query(&Query::from_uri(&format!("/api/x?q={q}").parse().unwrap()))
    }

    #[test]
    fn name_filter_matches_words_or_id_prefix() {
        let takes = |q| called(q).unwrap().matches("k3yabc", ["Ann Löwe", "photos"]);
        for yes in ["", "ann", "NN", "we+an", "L%C3%96WE", "lo%CC%88we", "k3y", "ann+k3y", "hot"] {
            assert!(takes(yes), "{yes}");
        }
        for no in ["bob", "ann+bob", "3ya", "lowe", "ann.*", "%25"] {
            assert!(!takes(no), "{no}");
        }
        assert!(called("lo%CC%88we").unwrap().matches("", ["LO\u{308}WE"]));
    }

    #[test]
    fn name_filter_limits_length_and_words() {
        assert!(called(&"x".repeat(SEARCH_TEXT_CHARS_MAX)).is_ok());
        for bad in ["x".repeat(SEARCH_TEXT_CHARS_MAX + 1), "x+".repeat(SEARCH_WORDS_MAX + 1)] {
            assert_eq!(called(&bad).unwrap_err().code(), "bad_parameter");
        }
        assert_eq!(called("%ff").unwrap_err().code(), "bad_parameter");
    }
}
