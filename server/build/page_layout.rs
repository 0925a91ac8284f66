//! Documentation page: contents on the left, text, and its sections on the right.

use std::fmt::Write;

use crate::markup::escape;

/// Where a page is listed in the contents.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageGroup {
    Guide,
    Reference,
    Hidden,
}

/// Section of a page, with an anchor.
pub(crate) struct Section {
    pub(crate) id: String,
    pub(crate) title: String,
    /// Text for the search.
    pub(crate) text: String,
    /// Names of parameters and fields, for the search.
    pub(crate) parameters: Vec<(String, String)>,
}

/// Rendered page.
pub(crate) struct Page {
    /// Path below `/-/docs/`; empty for the front page.
    pub(crate) path: String,
    pub(crate) title: String,
    pub(crate) group: PageGroup,
    /// First paragraph as text.
    pub(crate) summary: String,
    /// Words that readers may search for in place of those on the page.
    pub(crate) keywords: String,
    pub(crate) html: String,
    pub(crate) sections: Vec<Section>,
}

impl Page {
    pub(crate) fn new(path: &str, title: &str, group: PageGroup) -> Self {
        Self {
            path: path.to_owned(),
            title: title.to_owned(),
            group,
            summary: String::new(),
            keywords: String::new(),
            html: String::new(),
            sections: Vec::new(),
        }
    }

    pub(crate) fn url(&self) -> String {
        match &*self.path {
            "" => "/-/docs".to_owned(),
            path => format!("/-/docs/{path}"),
        }
    }
}

/// Returns the HTML of a page, with placeholders for style and script.
pub(crate) fn lay_out(template: &str, page: &Page, pages: &[Page]) -> String {
    let mut html = page.html.clone();
    if page.path.is_empty() || page.path == "404" {
        html.push_str(&guide_list(page, pages));
    }
    template
        .replace("@title@", &escape(&page.title))
        .replace("@contents@", &contents(page, pages))
        .replace("@sections@", &sections(page))
        .replace("@text@", &html)
}

pub(crate) fn missing_page() -> String {
    "<h1>Page not found</h1>\n<p>The documentation has no page with this URL. Search it, or browse the guides.</p>\n"
        .to_owned()
}

/// Returns the guides besides the shown page, each with its first sentence.
fn guide_list(shown: &Page, pages: &[Page]) -> String {
    let mut html = String::from("<h2 id=\"guides\">Guides</h2>\n<ul class=\"guides\">\n");
    for page in
        pages.iter().filter(|page| page.group == PageGroup::Guide && page.path != shown.path)
    {
        let sentence = page.summary.split_inclusive(". ").next().unwrap_or_default();
        let (url, title, summary) = (page.url(), escape(&page.title), escape(sentence.trim()));
        let _ = writeln!(html, "<li><a href=\"{url}\">{title}</a><p>{summary}</p></li>");
    }
    html.push_str("</ul>\n");
    html
}

fn contents(shown: &Page, pages: &[Page]) -> String {
    let mut html = String::new();
    for (group, title) in [(PageGroup::Guide, "Guides"), (PageGroup::Reference, "Reference")] {
        let _ = write!(html, "<h2>{title}</h2>\n<ul>\n");
        for page in pages.iter().filter(|page| page.group == group) {
            let current = if page.path == shown.path { " aria-current=\"page\"" } else { "" };
            let (url, title) = (page.url(), escape(&page.title));
            let _ = writeln!(html, "<li><a href=\"{url}\"{current}>{title}</a></li>");
        }
        html.push_str("</ul>\n");
    }
    html
}

fn sections(page: &Page) -> String {
    let mut html = String::new();
    if page.sections.len() > 1 {
        html.push_str("<h2>On this page</h2>\n<ul>\n");
        for section in &page.sections {
            let (id, title) = (&section.id, escape(&section.title));
            let _ = writeln!(html, "<li><a href=\"#{id}\">{title}</a></li>");
        }
        html.push_str("</ul>\n");
    }
    html
}
