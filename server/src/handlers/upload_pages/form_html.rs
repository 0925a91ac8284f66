//! HTML of the page that requests files: of a link, or of a presigned token.
//!
//! Guarantees: the page shows neither the folder nor the names of files, accounts and buckets; its script and style run
//! by a nonce that is used once. Non-goals: the pages of links that cannot be opened, which all links have.

use axum::response::Response;
use catalog::{AllowedTypes, AskName, StoredAmount, UploadRules};
use http::StatusCode;
use http::header::{self, HeaderValue};
use maud::{Markup, PreEscaped, html};
use service::limits::LINK_NAME_CHARS_MAX;
use service::link_uploads::UPLOADED_BY;

use super::super::shared_pages::html::{
    Frame, Script, counted, date, open_graph, printable, respond, size,
};

const SCRIPT: &str = include_str!("../../../assets/shared/upload.mjs");

/// What the page shows.
pub(in crate::handlers) struct FormPage<'a> {
    /// Path that the form is sent to.
    pub action: String,
    /// Path of resumable uploads; without one, the files are sent by one form.
    pub resumable: Option<String>,
    /// Path of the page, if it can be used for another upload.
    pub again: Option<&'a str>,
    pub title: &'a str,
    pub message: &'a str,
    pub expires_ms: Option<u64>,
    pub host: String,
    /// Base URL of the server, if other sites may show a preview of the page.
    pub preview_base: Option<&'a str>,
    /// Rules, as strict as those of the bucket.
    pub rules: UploadRules,
    /// Files and bytes that may still be uploaded.
    pub rest: StoredAmount,
    /// Random text.
    pub nonce: String,
}

impl FormPage<'_> {
    /// Returns the page with the form, and why an earlier form was refused.
    pub(in crate::handlers) fn form(&self, status: StatusCode, error: Option<&str>) -> Response {
        let form = html! {
            form #upload method="post" action=(self.action) enctype="multipart/form-data"
                data-tus=[self.resumable.as_ref()] data-files=(self.rest.objects) data-bytes=(self.rest.bytes)
                data-file-bytes=(self.rules.file_bytes_max.map(|max| max.to_string()).unwrap_or_default())
                data-types=(self.rules.allowed_types.to_list().join(" ")) {
                (name_field(self.rules.ask_name))
                label.drop {
                    (PreEscaped(ICON))
                    strong { "Drop files here, or " u { "choose" } }
                    small { (self.limits()) }
                    input type="file" name="file" multiple[self.rest.objects > 1] required
                        accept=(self.rules.allowed_types.to_list().join(","));
                }
                button { "Upload" }
            }
            section #progress hidden {
                header { strong #status role="status" {} span {
                    button.plain #retry type="button" hidden { "Retry" }
                    button.plain #pause type="button" { "Pause" }
                } }
                ul #list {}
                p {
                    "Keep this page open until all files are done. "
                    @if self.resumable.is_some() {
                        "If the connection drops, choose the same files again to continue."
                    } @else {
                        "They are uploaded together, and the link works once."
                    }
                }
            }
            section #thanks hidden {
                h1 tabindex="-1" { "Thank you" }
                p #thanks-text {}
                (self.upload_more())
            }
        };
        let error = html! { @if let Some(error) = error { p.error role="alert" { (error) } } };
        let heading = html! {
            h1 { bdi { (printable(self.title)) } }
            @if !self.message.is_empty() { p.message { bdi { (printable(self.message)) } } }
        };
        self.respond(status, &self.tags(), &html! { (heading) (error) (form) }, true)
    }

    /// Returns the page after an upload by the form.
    pub(in crate::handlers) fn thanks(&self, count: usize) -> Response {
        let body = html! {
            h1 { "Thank you" }
            p { (counted(count, "file")) " uploaded. You can close this page." }
            (self.upload_more())
        };
        self.respond(StatusCode::OK, &html! {}, &body, false)
    }

    fn upload_more(&self) -> Markup {
        html! { @if let Some(path) = self.again { a.button href=(path) { "Upload more" } } }
    }

    fn tags(&self) -> Markup {
        let frame = Frame {
            path: self.again.unwrap_or_default(),
            title: self.title.to_owned(),
            message: self.message,
            expires_ms: self.expires_ms,
            host: self.host.clone(),
            preview_base: self.preview_base,
        };
        open_graph(&frame, &self.limits(), None)
    }

    fn respond(
        &self,
        status: StatusCode,
        tags: &Markup,
        body: &Markup,
        has_script: bool,
    ) -> Response {
        let until = self.expires_ms.map(|at_ms| format!(" · open until {}", date(at_ms)));
        let body = html! {
            main.request { (body) }
            footer { "Request from " (self.host) (until.unwrap_or_default()) }
        };
        let script = Script { text: SCRIPT, nonce: &self.nonce };
        let script = Some(script).filter(|_| has_script);
        let mut response = respond(status, self.title, tags, script, &body);
        let headers = response.headers_mut();
        // Without it, browsers send `Origin: null` with the form.
        headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
        response
    }

    /// Returns the limits in one line.
    fn limits(&self) -> String {
        let each = self.rules.file_bytes_max.map(|max| format!("{} each", size(max)));
        let files = counted(usize::try_from(self.rest.objects).unwrap_or(usize::MAX), "file");
        let together = Some(format!("{} together", size(self.rest.bytes)));
        let limits: Vec<_> = [Some(files), each, together].into_iter().flatten().collect();
        let types = match &self.rules.allowed_types {
            AllowedTypes::Any => String::new(),
            AllowedTypes::Only(types) => format!(" {} only.", names_of(types)),
        };
        format!("Up to {}.{types}", limits.join(", "))
    }
}

/// Tray with an arrow.
const ICON: &str = r#"<svg viewBox="0 0 24 24" aria-hidden="true"><path d="M12 3v10m-4-4 4 4 4-4M4 14h4l2 3h4l2-3h4v6H4z"/></svg>"#;

fn name_field(ask: AskName) -> Markup {
    let is_required = ask == AskName::Required;
    html! {
        @if ask != AskName::No {
            label.name {
                span { strong { "Your name" } @if !is_required { " (optional)" } }
                input name=(UPLOADED_BY) maxlength=(LINK_NAME_CHARS_MAX) autocomplete="name" required[is_required];
            }
        }
    }
}

/// Returns the names of media types in a sentence.
fn names_of(types: &[String]) -> String {
    let name = |kind: &String| match kind.as_str() {
        "image/*" => "images".to_owned(),
        "video/*" => "videos".to_owned(),
        "audio/*" => "audio".to_owned(),
        "text/*" => "text".to_owned(),
        "application/pdf" => "PDF".to_owned(),
        other => other.rsplit('/').next().unwrap_or(other).to_uppercase(),
    };
    let names: Vec<_> = types.iter().map(name).collect();
    let text = match &names[..] {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        names => names.concat(),
    };
    let mut chars = text.chars();
    chars.next().into_iter().flat_map(char::to_uppercase).chain(chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_are_named_in_a_sentence() {
        for (types, text) in [
            (&["image/*"][..], "Images"),
            (&["image/*", "video/*"], "Images and videos"),
            (&["application/pdf", "image/*", "image/png"], "PDF, images and PNG"),
        ] {
            let types: Vec<_> = types.iter().map(|it| (*it).to_owned()).collect();
            assert_eq!(names_of(&types), text);
        }
    }
}
