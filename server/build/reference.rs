//! Reference: the operations of the OpenAPI document, one page for each of its tags.

use std::fmt::Write;

use serde_json::{Map, Value};

use crate::markup::{self, CodeBlock, escape, prose, slug};
use crate::page_layout::{Page, PageGroup, Section};

const METHODS: [&str; 7] = ["get", "post", "put", "patch", "delete", "head", "options"];
/// Depth to which fields of fields are shown.
const DEPTH_MAX: usize = 3;
/// Longest pattern that is shown; a longer one says less than the description.
const PATTERN_CHARS_MAX: usize = 40;

/// Returns the overview, and a page for each tag.
pub(crate) fn pages(document: &Value) -> Vec<Page> {
    let reference = Reference { document };
    let tags = reference.tags();
    let mut pages = vec![reference.overview(&tags)];
    pages.extend(tags.iter().map(|(name, about)| reference.page(name, about)));
    pages
}

/// Operation with what its path has in common.
struct Operation<'a> {
    path: &'a str,
    method: &'static str,
    /// Whether HEAD has the headers of GET.
    has_head: bool,
    value: &'a Value,
    parameters: Vec<&'a Value>,
}

impl Operation<'_> {
    fn id(&self) -> &str {
        text(self.value, "operationId")
    }

    fn needs_key(&self, document: &Value) -> Option<bool> {
        let schemes = self.value.get("security").or(document.get("security"))?.as_array()?;
        let is_some = |scheme: &Value| scheme.as_object().is_some_and(|it| !it.is_empty());
        match (schemes.iter().any(is_some), schemes.iter().all(is_some)) {
            (true, true) => Some(true),
            (true, false) => None,
            (false, _) => Some(false),
        }
    }
}

struct Reference<'a> {
    document: &'a Value,
}

impl<'a> Reference<'a> {
    /// Returns the tags with operations, and their descriptions, in the order of the document.
    fn tags(&self) -> Vec<(String, String)> {
        let mut tags: Vec<(String, String)> = Vec::new();
        for tag in array(self.document, "tags") {
            tags.push((text(tag, "name").to_owned(), text(tag, "description").to_owned()));
        }
        for operation in self.operations() {
            let name = tag_of(&operation);
            if !tags.iter().any(|(known, _)| known == name) {
                tags.push((name.to_owned(), String::new()));
            }
        }
        tags.retain(|(name, _)| self.operations().any(|it| tag_of(&it) == name));
        tags
    }

    /// Returns all operations. HEAD of a path with GET is part of GET.
    fn operations(&self) -> impl Iterator<Item = Operation<'a>> {
        let document = self.document;
        object(document, "paths").flat_map(move |(path, item)| {
            let has_get = item.get("get").is_some();
            let methods = METHODS.into_iter().filter(move |it| *it != "head" || !has_get);
            methods.filter_map(move |method| {
                let value = item.get(method)?;
                let own = array(value, "parameters");
                let parameters = array(item, "parameters").chain(own);
                let parameters = parameters.map(|it| resolve(document, it)).collect();
                let has_head = method == "get";
                Some(Operation { path, method, has_head, value, parameters })
            })
        })
    }

    fn overview(&self, tags: &[(String, String)]) -> Page {
        let mut page = Page::new("reference", "All operations", PageGroup::Reference);
        page.summary = "All operations of the HTTP API by resource.".to_owned();
        page.keywords = "api, openapi, endpoints, swagger, http, rest".to_owned();
        let about = prose(text(self.document.get("info").unwrap_or(&Value::Null), "description"));
        let _ = write!(
            page.html,
            "<h1>All operations</h1>\n<p>{about}</p>\n<p>The same as an OpenAPI 3.1 document: \
             <a href=\"/-/openapi.json\" download>openapi.json</a>. Errors and their codes: \
             <a href=\"/-/docs/errors\">Errors and rate limits</a>.</p>\n"
        );
        for (name, _) in tags {
            let (id, path) = (slug(name), path_of(name));
            let _ = write!(page.html, "<h2 id=\"{id}\">{name}</h2>\n<ul class=\"operations\">\n");
            for it in self.operations().filter(|it| tag_of(it) == name) {
                let summary = prose(text(it.value, "summary"));
                let _ = writeln!(
                    page.html,
                    "<li><a href=\"/-/docs/{path}#{}\">{}</a><p>{summary}</p></li>",
                    it.id(),
                    address(&it)
                );
            }
            page.html.push_str("</ul>\n");
            let (title, text) = (name.clone(), String::new());
            page.sections.push(Section { id, title, text, parameters: Vec::new() });
        }
        page
    }

    fn page(&self, name: &str, about: &str) -> Page {
        let mut page = Page::new(&path_of(name), name, PageGroup::Reference);
        about.clone_into(&mut page.summary);
        let _ = writeln!(page.html, "<h1>{}</h1>", escape(name));
        if !about.is_empty() {
            let _ = writeln!(page.html, "<p>{}</p>", prose(about));
        }
        for operation in self.operations().filter(|it| tag_of(it) == name) {
            let section = self.section(&operation, &mut page.html);
            page.sections.push(section);
        }
        page
    }

    fn section(&self, it: &Operation<'a>, html: &mut String) -> Section {
        let id = it.id();
        let access = match it.needs_key(self.document) {
            Some(true) => "Requires an API key.",
            None => "Requires an API key if the bucket is private.",
            Some(false) => "Requires no API key.",
        };
        let head = if it.has_head { " HEAD returns the same headers." } else { "" };
        let anchor =
            format!("<a class=\"anchor\" href=\"#{id}\" aria-label=\"Link to this section\">#</a>");
        let _ = write!(
            html,
            "<section>\n<h2 id=\"{id}\">{}{anchor}</h2>\n<p>{}</p>\n<p>{}</p>\n<p class=\"faint\">{access}{head}</p>\n",
            address(it),
            prose(text(it.value, "summary")),
            prose(text(it.value, "description"))
        );
        html.push_str(&markup::example(&[CodeBlock {
            language: "sh".to_owned(),
            code: self.curl(it),
        }]));
        let mut parameters: Vec<(String, String)> = Vec::new();
        if !it.parameters.is_empty() {
            html.push_str("<h3>Parameters</h3>\n<dl>\n");
            for parameter in &it.parameters {
                let (name, place) = (text(parameter, "name"), text(parameter, "in"));
                let about = text(parameter, "description");
                let is_required = parameter.get("required") == Some(&Value::Bool(true));
                let schema = parameter.get("schema").unwrap_or(&Value::Null);
                let place = format!("{place}, ");
                self.entry(html, (name, &place, is_required), schema, Some(about), DEPTH_MAX);
                parameters.push((name.to_owned(), about.to_owned()));
            }
            html.push_str("</dl>\n");
        }
        if let Some(body) = it.value.get("requestBody") {
            let body = resolve(self.document, body);
            let _ = write!(html, "<h3>Body</h3>\n<p>{}</p>\n", prose(text(body, "description")));
            for (name, schema) in self.content(html, body, true) {
                parameters.push((name, text(schema, "description").to_owned()));
            }
        }
        self.responses(html, it);
        html.push_str("</section>\n");
        let text = format!("{} {}", text(it.value, "summary"), text(it.value, "description"));
        Section { id: id.to_owned(), title: plain_address(it), text, parameters }
    }

    fn responses(&self, html: &mut String, it: &Operation<'a>) {
        html.push_str("<h3>Responses</h3>\n<dl>\n");
        for (status, response) in object(it.value, "responses") {
            let response = resolve(self.document, response);
            let about = prose(text(response, "description"));
            let mut body = String::new();
            for (name, header) in object(response, "headers") {
                let about = prose(text(resolve(self.document, header), "description"));
                let _ = writeln!(body, "<p><code>{}</code>: {about}</p>", escape(name));
            }
            // All errors have the same body.
            if !status.starts_with(['4', '5']) {
                self.content(&mut body, response, false);
            }
            let _ = writeln!(html, "<dt><code>{status}</code> {about}</dt>\n<dd>{body}</dd>");
        }
        html.push_str("</dl>\n");
    }

    /// Writes the types of a body and their fields, and returns the fields.
    fn content(
        &self,
        html: &mut String,
        body: &'a Value,
        is_request: bool,
    ) -> Vec<(String, &'a Value)> {
        let mut all = Vec::new();
        for (media, content) in object(body, "content") {
            let schema = content.get("schema").unwrap_or(&Value::Null);
            let _ = writeln!(
                html,
                "<p><code>{}</code> {}</p>",
                escape(media),
                escape(&self.kind(schema))
            );
            all.extend(self.tree(html, schema, is_request, DEPTH_MAX));
        }
        all
    }

    /// Writes the fields of a schema, and returns them.
    fn tree(
        &self,
        html: &mut String,
        schema: &'a Value,
        is_request: bool,
        depth: usize,
    ) -> Vec<(String, &'a Value)> {
        let objects = self.objects(schema);
        let mut all = Vec::new();
        for object in &objects {
            if objects.len() > 1 {
                let _ = writeln!(html, "<p>{}</p>", prose(text(object, "description")));
            }
            html.push_str("<dl class=\"fields\">\n");
            for (name, field, is_required) in self.fields(object) {
                self.entry(html, (&name, "", is_required && is_request), field, None, depth - 1);
                all.push((name, resolve(self.document, field)));
            }
            html.push_str("</dl>\n");
        }
        all
    }

    /// Writes a parameter or field: name, place and whether it is required, type, description, and its own fields.
    fn entry(
        &self,
        html: &mut String,
        (name, place, is_required): (&str, &str, bool),
        schema: &'a Value,
        about: Option<&str>,
        depth: usize,
    ) {
        let resolved = resolve(self.document, schema);
        let required = if is_required { " <strong>required</strong>" } else { "" };
        let kind = escape(&self.kind(schema));
        let about = prose(about.unwrap_or_else(|| self.description(schema)));
        let bounds = escape(&bounds(resolved));
        let _ = write!(
            html,
            "<dt><code>{}</code> <span class=\"faint\">{place}{kind}</span>{required}</dt><dd>",
            escape(name)
        );
        for part in [about, bounds].iter().filter(|part| !part.is_empty()) {
            let _ = write!(html, "<p>{part}</p>");
        }
        if depth > 0 && !self.objects(schema).is_empty() {
            html.push_str("<details><summary>Fields</summary>");
            self.tree(html, schema, false, depth);
            html.push_str("</details>");
        }
        html.push_str("</dd>\n");
    }

    /// Returns the description of a schema: its own, that of the referenced schema, or that of its first alternative.
    fn description(&self, schema: &'a Value) -> &'a str {
        let resolved = resolve(self.document, schema);
        let own = [schema, resolved].into_iter().map(|it| text(it, "description"));
        let of_alternatives = alternatives(resolved).map(|it| self.description(it));
        own.chain(of_alternatives).find(|about| !about.is_empty()).unwrap_or_default()
    }

    /// Returns the schemas with fields: an object, the items of an array, or each alternative.
    fn objects(&self, schema: &'a Value) -> Vec<&'a Value> {
        let schema = resolve(self.document, schema);
        if schema.get("properties").is_some() {
            return vec![schema];
        }
        let items = schema.get("items").into_iter();
        items.chain(alternatives(schema)).flat_map(|part| self.objects(part)).collect()
    }

    /// Returns the fields of an object, and whether they are required.
    fn fields(&self, schema: &'a Value) -> Vec<(String, &'a Value, bool)> {
        let required: Vec<&str> = array(schema, "required").filter_map(Value::as_str).collect();
        let fields = object(schema, "properties");
        fields.map(|(name, field)| (name.clone(), field, required.contains(&&**name))).collect()
    }

    /// Returns the type of a schema in a few words.
    fn kind(&self, schema: &'a Value) -> String {
        let resolved = resolve(self.document, schema);
        let mut kinds: Vec<String> = alternatives(resolved).map(|it| self.kind(it)).collect();
        kinds.dedup();
        if !kinds.is_empty() {
            return kinds.join(" or ");
        }
        let values: Vec<String> = array(resolved, "enum").map(Value::to_string).collect();
        if !values.is_empty() {
            return values.join(" | ");
        }
        if resolved.get("properties").is_some() {
            return "object".to_owned();
        }
        let kind = resolved.get("type").unwrap_or(&Value::Null);
        let types = kind.as_array().map_or_else(|| std::slice::from_ref(kind), Vec::as_slice);
        let types = types.iter().filter_map(Value::as_str).map(|name| match name {
            "array" => {
                format!("array of {}", self.kind(resolved.get("items").unwrap_or(&Value::Null)))
            }
            name => name.to_owned(),
        });
        let types: Vec<String> = types.collect();
        if types.is_empty() { "any".to_owned() } else { types.join(" or ") }
    }

    /// Returns a command for the operation, in which words in capitals are to be replaced.
    fn curl(&self, it: &Operation<'a>) -> String {
        let mut command = match it.method {
            "get" => "curl".to_owned(),
            "head" => "curl -I".to_owned(),
            method => format!("curl -X {}", method.to_ascii_uppercase()),
        };
        if it.needs_key(self.document) == Some(true) {
            command.push_str(" -H \"Authorization: Bearer $KEY\"");
        }
        let is_required = |it: &&&Value| it.get("required") == Some(&Value::Bool(true));
        for header in
            it.parameters.iter().filter(is_required).filter(|it| text(it, "in") == "header")
        {
            let schema = resolve(self.document, header.get("schema").unwrap_or(&Value::Null));
            let value = array(schema, "enum").next().and_then(Value::as_str).unwrap_or("VALUE");
            let _ = write!(command, " -H '{}: {value}'", text(header, "name"));
        }
        let body = resolve(self.document, it.value.get("requestBody").unwrap_or(&Value::Null));
        match object(body, "content").next() {
            Some((media, _)) if media == "multipart/form-data" => {
                command.push_str(" -F file=@FILE")
            }
            Some((media, content)) if media == "application/json" => {
                let sample = self.sample(content.get("schema").unwrap_or(&Value::Null), DEPTH_MAX);
                let _ = write!(command, " -H 'Content-Type: {media}' -d '{sample}'");
            }
            Some(_) => command.push_str(" --data-binary @FILE"),
            None => {}
        }
        let query = it.parameters.iter().filter(is_required).filter(|it| text(it, "in") == "query");
        let query: Vec<String> = query
            .map(|it| text(it, "name"))
            .map(|name| format!("{name}={}", name.to_ascii_uppercase()))
            .collect();
        let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
        let path = placeholders(it.path);
        let line = if command.contains(" -H ") { " \\\n  " } else { " " };
        format!("{command}{line}'https://files.example.com{path}{query}'\n")
    }

    /// Returns a value that a JSON body could have: the required fields.
    fn sample(&self, schema: &'a Value, depth: usize) -> Value {
        let schema = resolve(self.document, schema);
        if let Some(value) = array(schema, "enum").next() {
            return value.clone();
        }
        let is_value = |it: &&Value| text(resolve(self.document, it), "type") != "null";
        if let Some(part) = alternatives(schema).find(is_value) {
            return self.sample(part, depth);
        }
        match schema.get("type").and_then(Value::as_str) {
            Some("array") if depth > 0 => Value::from(vec![
                self.sample(schema.get("items").unwrap_or(&Value::Null), depth - 1),
            ]),
            Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(Value::from(0)),
            Some("boolean") => Value::Bool(true),
            Some("string") => Value::from("TEXT"),
            _ if depth == 0 => Value::Object(Map::new()),
            _ => {
                let required = self.fields(schema).into_iter().filter(|(_, _, required)| *required);
                required.map(|(name, field, _)| (name, self.sample(field, depth - 1))).collect()
            }
        }
    }
}

fn path_of(tag: &str) -> String {
    format!("reference/{}", slug(tag))
}

fn tag_of<'a>(operation: &Operation<'a>) -> &'a str {
    array(operation.value, "tags").next().and_then(Value::as_str).unwrap_or("Other")
}

fn address(it: &Operation<'_>) -> String {
    let (method, path) = (it.method.to_ascii_uppercase(), escape(it.path));
    format!("<span class=\"method {}\">{method}</span> <code>{path}</code>", it.method)
}

fn plain_address(it: &Operation<'_>) -> String {
    format!("{} {}", it.method.to_ascii_uppercase(), it.path)
}

/// Returns a path with its parameters in capitals.
fn placeholders(path: &str) -> String {
    let parts = path.split(['{', '}']).enumerate();
    let parts = parts.map(|(at, part)| match at % 2 {
        0 => part.to_owned(),
        _ => part.to_ascii_uppercase(),
    });
    parts.collect()
}

fn bounds(schema: &Value) -> String {
    let pattern = schema.get("pattern").filter(|it| it.to_string().len() <= PATTERN_CHARS_MAX);
    let bounds = [
        ("default", schema.get("default")),
        ("at least", schema.get("minimum")),
        ("at most", schema.get("maximum")),
        ("characters at most", schema.get("maxLength")),
        ("entries at most", schema.get("maxItems")),
        ("pattern", pattern),
    ];
    let bounds = bounds.into_iter().filter_map(|(name, value)| {
        let value = value.filter(|it| !it.is_null() && it.as_u64() != Some(0))?;
        // The bound of a 64-bit number says nothing.
        (value.as_u64() != Some(u64::MAX)).then(|| format!("{name} {value}"))
    });
    bounds.collect::<Vec<_>>().join(", ")
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn array<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn object<'a>(
    value: &'a Value,
    name: &str,
) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
    value.get(name).and_then(Value::as_object).into_iter().flatten()
}

fn alternatives(schema: &Value) -> impl Iterator<Item = &Value> {
    array(schema, "oneOf").chain(array(schema, "anyOf"))
}

/// Returns the value that a reference names, or the value itself.
fn resolve<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let target = value.get("$ref").and_then(Value::as_str).and_then(|it| it.strip_prefix('#'));
    target.and_then(|pointer| document.pointer(pointer)).unwrap_or(value)
}
