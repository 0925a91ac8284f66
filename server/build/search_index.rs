//! Index of the search: an entry for each section of a guide, operation, and parameter.

use std::collections::BTreeSet;

use serde_json::json;

use crate::BuildResult;
use crate::page_layout::{Page, PageGroup};

/// Shortest word of the text that is indexed.
const WORD_CHARS_MIN: usize = 3;

/// Returns the index as JSON: entries `[kind, title, page, url, keywords, words]`, the pages first.
pub(crate) fn write(pages: &[Page]) -> BuildResult<String> {
    let mut entries = Vec::new();
    for page in pages {
        let kind = if page.group == PageGroup::Guide { "guide" } else { "reference" };
        let summary = page.summary.trim();
        entries.push(json!([kind, page.title, "", page.url(), page.keywords, words(summary)]));
    }
    for page in pages {
        for section in &page.sections {
            let url = format!("{}#{}", page.url(), section.id);
            let kind = match page.group {
                PageGroup::Guide => "section",
                _ if page.path.contains('/') => "operation",
                _ => continue,
            };
            let text = format!("{} {}", section.id, section.text);
            entries.push(json!([kind, section.title, page.title, url, "", words(&text)]));
            let mut seen = BTreeSet::new();
            for (name, about) in
                section.parameters.iter().filter(|(name, _)| seen.insert(name.clone()))
            {
                entries.push(json!(["parameter", name, section.title, url, "", words(about)]));
            }
        }
    }
    Ok(serde_json::to_string(&entries)?)
}

/// Returns the different words of a text in lower case.
fn words(text: &str) -> String {
    let separate = |c: char| !c.is_alphanumeric() && c != '_';
    let words: BTreeSet<String> = text
        .split(separate)
        .filter(|word| word.chars().count() >= WORD_CHARS_MIN)
        .map(str::to_lowercase)
        .collect();
    words.into_iter().collect::<Vec<_>>().join(" ")
}
