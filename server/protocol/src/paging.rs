//! Pages of in-memory lists: `limit` and `cursor`; text of the cursors of folder listings.
//!
//! A cursor is the name of the last record of a page. Guarantees: a record that exists throughout is on exactly one
//! page. Non-goals: the listings of files themselves.

use engine::listing::FolderCursor;
use engine::name::NameError;
use engine::{FolderKey, ObjectKey};

use crate::error::ApiError;
use crate::limits;
use crate::query::Query;

/// Requested page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRequest {
    limit: usize,
    after: Option<String>,
}

impl PageRequest {
    pub fn from_query(query: &Query) -> Result<Self, ApiError> {
        let max = limits::MANAGEMENT_PAGE_MAX;
        let refuse =
            || ApiError::bad_parameter("limit", &format!("must be a number from 1 to {max}"));
        let limit = match query.string(&["limit"])? {
            None => limits::MANAGEMENT_PAGE_DEFAULT,
            Some(text) => match text.parse() {
                Ok(limit) if (1..=max).contains(&limit) => limit,
                _ => return Err(refuse()),
            },
        };
        Ok(Self { limit, after: query.string(&["cursor"])? })
    }

    /// Returns the maximum number of records.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Returns the parsed cursor of the previous page, if any.
    ///
    /// # Errors
    ///
    /// `bad_parameter` if `read` rejects the cursor.
    pub fn after<T, E>(
        &self,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, ApiError> {
        let refuse = |_: E| ApiError::bad_parameter("cursor", "must be the nextCursor of a page");
        self.after.as_deref().map(read).transpose().map_err(refuse)
    }

    /// Returns the page of records in the order of their names, and the cursor of the next one.
    pub fn paginate<T>(
        &self,
        records: impl IntoIterator<Item = T>,
        name: impl Fn(&T) -> &str,
    ) -> (Vec<T>, Option<String>) {
        let after = self.after.as_deref();
        let mut rest =
            records.into_iter().filter(|record| after.is_none_or(|after| name(record) > after));
        let page: Vec<T> = rest.by_ref().take(self.limit).collect();
        let cursor = rest.next().and_then(|_| page.last()).map(|last| name(last).to_owned());
        (page, cursor)
    }
}

/// Parses the cursor of a folder listing: its last entry, of which a folder ends in `/`.
pub fn parse_folder_cursor(entry: &str) -> Result<FolderCursor, NameError> {
    match FolderKey::parse(entry) {
        Ok(folder) => Ok(FolderCursor::AfterFolder(folder)),
        Err(_) => ObjectKey::parse(entry).map(FolderCursor::AfterFile),
    }
}

/// Returns the text of such a cursor.
pub fn folder_cursor_text(cursor: &FolderCursor) -> String {
    match cursor {
        FolderCursor::AfterFolder(folder) => folder.to_string(),
        FolderCursor::AfterFile(key) => key.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(query: &str) -> Result<PageRequest, ApiError> {
        PageRequest::from_query(&Query::from_uri(&format!("/api/x?{query}").parse().unwrap()))
    }

    #[test]
    fn every_record_is_on_one_page() {
        let records = ["a", "b", "c", "d", "e"];
        for limit in 1..=6 {
            let (mut seen, mut cursor) = (Vec::new(), String::new());
            loop {
                let page = page(&format!("limit={limit}&cursor={cursor}")).unwrap();
                let (found, next) = page.paginate(records, |record| record);
                assert!(found.len() <= limit);
                seen.extend(found);
                match next {
                    Some(next) => cursor = next,
                    None => break,
                }
            }
            assert_eq!(seen, records, "{limit}");
        }
    }

    #[test]
    fn page_limit_is_bounded() {
        for bad in ["limit=0", "limit=1001", "limit=-1", "limit=x"] {
            assert_eq!(page(bad).unwrap_err().code(), "bad_parameter", "{bad}");
        }
        assert_eq!(page("").unwrap().limit, limits::MANAGEMENT_PAGE_DEFAULT);
    }
}
