//! Guides: Markdown files, rendered to pages.

use std::fs;
use std::path::Path;

use pulldown_cmark::{
    CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html,
};

use crate::BuildResult;
use crate::markup::{self, CodeBlock, escape, slug};
use crate::page_layout::{Page, PageGroup, Section};

/// Names of the files, in the order of the contents. The first is the front page.
const GUIDES: [&str; 15] = [
    "quick-start",
    "browser-uploads",
    "private-files",
    "file-requests",
    "transforms",
    "resumable-uploads",
    "metadata",
    "s3",
    "webhooks",
    "cdn",
    "frameworks",
    "integrations",
    "migration",
    "backup",
    "errors",
];
const KEYWORDS: &str = "<!-- search: ";

/// Returns the pages of all guides of a folder.
pub(crate) fn read(folder: &Path) -> BuildResult<Vec<Page>> {
    let count = fs::read_dir(folder)?.count();
    if count != GUIDES.len() {
        return Err(
            format!("{count} files in {}, {} in GUIDES", folder.display(), GUIDES.len()).into()
        );
    }
    let pages = GUIDES.iter().map(|name| {
        let text = fs::read_to_string(folder.join(format!("{name}.md")))?;
        let keywords =
            text.lines().find_map(|line| line.strip_prefix(KEYWORDS)?.strip_suffix(" -->"));
        let keywords = keywords.ok_or_else(|| format!("{name}.md has no line of search words"))?;
        let text: String = text.split(&format!("{KEYWORDS}{keywords} -->\n")).collect();
        let mut renderer = Renderer::new(if *name == GUIDES[0] { "" } else { name });
        Parser::new_ext(&text, Options::ENABLE_TABLES).for_each(|event| renderer.take(event));
        renderer.show_example();
        let mut page = renderer.page;
        keywords.clone_into(&mut page.keywords);
        html::push_html(&mut page.html, renderer.events.into_iter());
        Ok(page)
    });
    pages.collect()
}

/// Renderer of one guide.
struct Renderer<'a> {
    page: Page,
    events: Vec<Event<'a>>,
    /// Blocks of one example in different languages.
    blocks: Vec<CodeBlock>,
    is_in_block: bool,
    /// Level, text and content of the heading that is being read.
    heading: Option<(HeadingLevel, String, Vec<Event<'a>>)>,
}

impl<'a> Renderer<'a> {
    fn new(path: &str) -> Self {
        Self {
            page: Page::new(path, "", PageGroup::Guide),
            events: Vec::new(),
            blocks: Vec::new(),
            is_in_block: false,
            heading: None,
        }
    }

    fn take(&mut self, event: Event<'a>) {
        match event {
            Event::Start(Tag::CodeBlock(kind)) => self.begin_block(&kind),
            Event::End(TagEnd::CodeBlock) => self.end_block(),
            Event::Text(text) if self.is_in_block => {
                self.blocks.last_mut().into_iter().for_each(|block| block.code.push_str(&text));
            }
            event => {
                self.show_example();
                self.take_text(event);
            }
        }
    }

    fn begin_block(&mut self, kind: &CodeBlockKind<'_>) {
        let info = if let CodeBlockKind::Fenced(info) = kind { &**info } else { "" };
        let language = info.split(' ').next().unwrap_or_default().to_owned();
        self.is_in_block = true;
        let block = CodeBlock { language, code: String::new() };
        if !markup::continues(&self.blocks, &block) {
            self.show_example();
        }
        self.blocks.push(block);
    }

    fn end_block(&mut self) {
        self.is_in_block = false;
    }

    fn show_example(&mut self) {
        if !self.blocks.is_empty() {
            let html = markup::example(&self.blocks);
            self.events.push(Event::Html(html.into()));
            self.blocks.clear();
        }
    }

    fn take_text(&mut self, event: Event<'a>) {
        if let Event::Text(text) | Event::Code(text) = &event {
            self.note(text);
        }
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                self.heading = Some((level, String::new(), Vec::new()));
            }
            Event::End(TagEnd::Heading(_)) => self.end_heading(),
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                let dest_url = CowStr::from(target(&dest_url));
                self.push(Event::Start(Tag::Link { link_type, dest_url, title, id }));
            }
            Event::Start(Tag::Table(columns)) => {
                let open =
                    "<div class=\"table\" role=\"group\" aria-label=\"Table\" tabindex=\"0\">\n";
                self.push(Event::Html(open.into()));
                self.push(Event::Start(Tag::Table(columns)));
            }
            Event::End(TagEnd::Table) => {
                self.push(Event::End(TagEnd::Table));
                self.push(Event::Html("</div>\n".into()));
            }
            // The first paragraph is the summary.
            Event::End(TagEnd::Paragraph) if !self.page.summary.ends_with('\n') => {
                self.page.summary.push('\n');
                self.push(Event::End(TagEnd::Paragraph));
            }
            event => self.push(event),
        }
    }

    /// Notes text for the heading, the summary and the search.
    fn note(&mut self, text: &str) {
        if let Some((_, title, _)) = &mut self.heading {
            title.push_str(text);
            return;
        }
        if !self.page.summary.ends_with('\n') {
            self.page.summary.push_str(text);
        }
        if let Some(section) = self.page.sections.last_mut() {
            section.text.push_str(text);
            section.text.push(' ');
        }
    }

    fn push(&mut self, event: Event<'a>) {
        if matches!(event, Event::SoftBreak) && !self.page.summary.ends_with('\n') {
            self.page.summary.push(' ');
        }
        match &mut self.heading {
            Some((_, _, events)) => events.push(event),
            None => self.events.push(event),
        }
    }

    fn end_heading(&mut self) {
        let Some((level, title, events)) = self.heading.take() else { return };
        if level == HeadingLevel::H1 {
            self.events.push(Event::Html(format!("<h1>{}</h1>\n", escape(&title)).into()));
            self.page.title = title;
            return;
        }
        let id = slug(&title);
        self.events.push(Event::Html(format!("<{level} id=\"{id}\">").into()));
        self.events.extend(events);
        let anchor = format!(
            "<a class=\"anchor\" href=\"#{id}\" aria-label=\"Link to this section\">#</a></{level}>\n"
        );
        self.events.push(Event::Html(anchor.into()));
        if level == HeadingLevel::H2 {
            self.page.sections.push(Section {
                id,
                title,
                text: String::new(),
                parameters: Vec::new(),
            });
        }
    }
}

/// Returns the URL of a link: that of the page for another guide.
fn target(link: &str) -> String {
    let Some((file, section)) = link.split_once(".md").filter(|_| !link.contains("://")) else {
        return link.to_owned();
    };
    match file {
        file if file == GUIDES[0] => format!("/-/docs{section}"),
        file => format!("/-/docs/{file}{section}"),
    }
}
