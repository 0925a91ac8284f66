//! HTML of text and code.

use std::fmt::Write;

/// URL of the server in examples, which the script replaces by that of the page.
const SERVER: &str = "https://files.example.com";
/// Bucket in examples, which the script replaces by the reader's.
const BUCKET: &str = "pics";

/// Languages of one example: name after the fence, and title of the tab.
const TABS: [(&str, &str); 3] = [("sh", "curl"), ("js", "JavaScript"), ("python", "Python")];

/// Fenced code block.
pub(crate) struct CodeBlock {
    /// First word after the fence.
    pub(crate) language: String,
    pub(crate) code: String,
}

impl CodeBlock {
    fn tab(&self) -> Option<&'static str> {
        TABS.iter().find(|(language, _)| *language == self.language).map(|(_, title)| *title)
    }
}

/// Whether a block shows the same as those before it, in another language.
pub(crate) fn continues(blocks: &[CodeBlock], next: &CodeBlock) -> bool {
    let is_other = |block: &CodeBlock| block.tab().is_some() && block.language != next.language;
    next.tab().is_some() && blocks.iter().all(is_other)
}

/// Returns an example in one or more languages: all of them one below the other, of which the script makes tabs.
pub(crate) fn example(blocks: &[CodeBlock]) -> String {
    let mut html = String::from("<div class=\"example\">\n");
    for block in blocks {
        let title = match (block.tab(), &*block.language) {
            (Some("curl"), _) if blocks.len() == 1 => "Shell",
            (Some(title), _) => title,
            (None, "html") => "HTML",
            (None, "json") => "JSON",
            (None, _) => "Text",
        };
        let code = filled(&block.code);
        let _ = writeln!(
            html,
            "<div class=\"code\" data-language=\"{0}\"><p>{title}</p>\
             <pre tabindex=\"0\" aria-label=\"{title} example\" role=\"group\"><code>{code}</code></pre></div>",
            block.language
        );
    }
    html.push_str("</div>\n");
    html
}

/// Returns code as HTML, with elements around the URL of the server and the name of the bucket.
fn filled(code: &str) -> String {
    let mut html = String::new();
    let mut rest = code;
    while let Some((at, word, name)) = [(SERVER, "server"), (BUCKET, "bucket")]
        .into_iter()
        .filter_map(|(word, name)| position(rest, word).map(|at| (at, word, name)))
        .min_by_key(|(at, _, _)| *at)
    {
        let (before, from) = rest.split_at(at);
        let _ = write!(html, "{}<span data-fill=\"{name}\">{word}</span>", escape(before));
        rest = &from[word.len()..];
    }
    html + &escape(rest)
}

/// Returns the position of a whole word.
fn position(text: &str, word: &str) -> Option<usize> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    text.match_indices(word).map(|(at, _)| at).find(|at| {
        let after = text[at + word.len()..].chars().next();
        !text[..*at].ends_with(is_part) && !after.is_some_and(|c| is_part(c) || c == '.')
    })
}

/// Returns text in which code stands in backticks as HTML.
pub(crate) fn prose(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(at, part)| match at % 2 {
        0 => escape(part),
        _ => format!("<code>{}</code>", escape(part)),
    });
    parts.collect()
}

pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Returns the anchor of a heading: its words in lower case, with hyphens.
pub(crate) fn slug(title: &str) -> String {
    let words = title.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}
