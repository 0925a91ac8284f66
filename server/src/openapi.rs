//! OpenAPI document of the HTTP API, assembled from the attributes of the handlers.
//!
//! To add an endpoint: put `#[utoipa::path]` on its handler, with its parameters and success responses; add its row to
//! `routes`; regenerate the document with
//!
//! ```sh
//! cargo test -p tests --test api -- --ignored write_the_openapi_document
//! ```
//!
//! `refusals` adds the errors common to all endpoints of a kind; a handler lists only its specific ones.
//! `/-/openapi.json` and `trug openapi` return the committed document; tests compare it with the code and the routes.
//! The code that generates it is not linked into `trug`: it is more than a megabyte.
//!
//! Non-goals: parameters and responses of single endpoints.

mod corrections;
mod flattened;
mod links;
mod refusals;
mod success;

use protocol::error::ApiError;
use service::parameters::{EntryPathSchema, FilePathSchema, Flag, FolderPathSchema};
use utoipa::openapi::path::{HttpMethod, Operation, Parameter, ParameterIn, PathItem};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Components, License, OpenApi, RefOr};
use utoipa::{Modify, OpenApi as _};

use crate::handlers::{docs, presign};
use crate::routes::EndpointsDocument;

const ABOUT: &str = "Object storage and image CDN for a single server. Errors are JSON with `success: false`, a \
    message in `error`, and a machine-readable `code`. Every GET endpoint also supports HEAD, and every path \
    OPTIONS. API keys are sent as `Authorization: Bearer KEY`, `X-API-Key: KEY`, or `?apiKey=KEY`.";

#[derive(utoipa::OpenApi)]
#[openapi(
    info(title = "trug", description = ABOUT),
    servers(
        (url = "/", description = "Basic endpoint: this server."),
        (url = "{premium}", description = "Premium endpoint: the same API with a larger body limit, for accounts on \
            the plans Pro and Business.",
            variables(("premium" = (default = "https://upload.example.com", description = "URL of the premium endpoint.")))),
    ),
    tags(
        (name = "Files", description = "Delivery, upload and deletion of files."),
        (name = "Resumable uploads", description = "Resumable uploads by the tus 1.0 protocol."),
        (name = "Presigned uploads", description = "Uploads without an API key."),
        (name = "Listing and search"),
        (name = "Buckets"),
        (name = "Moves and undelete", description = "Moving, copying and restoring files of a bucket."),
        (name = "Jobs", description = "Long operations in the background."),
        (name = "Webhooks", description = "Event notifications of a bucket."),
        (name = "API keys"),
        (name = "Organisations"),
        (name = "Accounts"),
        (name = "Sessions", description = "Password sign-in for the dashboard. Responses can be read only by pages \
            of the same origin."),
        (name = "Integrations", description = "Ready-made configurations for other programs."),
        (name = "Server"),
    ),
    security(("bearer" = []), ("header" = []), ("query" = []), ("session" = [])),
    components(schemas(ApiError, Flag, FilePathSchema, FolderPathSchema, EntryPathSchema)),
    modifiers(&DocumentBuilder),
    paths(
        service::delivery::deliver,
        presign::presign_address,
        protocol::tus_headers::option_headers,
    )
)]
struct Document;

/// Returns the committed document.
pub fn document() -> &'static str {
    &docs::DOCUMENT
}

/// Generates the document in its committed form: JSON with a line end.
pub fn generate() -> String {
    // The server's own types have string keys and no fallible parts, so serialization cannot fail.
    let text = Document::openapi().to_pretty_json().unwrap_or_default();
    corrections::with_standard_key_names(&text) + "\n"
}

/// Parts of the document that concern no single handler.
struct DocumentBuilder;

impl Modify for DocumentBuilder {
    fn modify(&self, document: &mut OpenApi) {
        document.merge(EndpointsDocument::openapi());
        flattened::join(document);
        success::complete(document);
        document.info.license = Some(License::new("MIT OR Apache-2.0"));
        document.info.contact = None;
        let components = document.components.get_or_insert_default();
        keys(components);
        refusals::components(components);
        components.schemas.values_mut().for_each(corrections::schema);
        let paths = &mut document.paths.paths;
        // Uploads into the root of the bucket have no path, and there are forms without the final slash.
        for (address, other) in [
            ("/{bucket}/{path}", "/{bucket}/"),
            ("/{bucket}/{path}", "/{bucket}"),
            ("/api/tus/", "/api/tus"),
        ] {
            let Some(item) = paths.get(address) else { continue };
            paths.insert(other.to_owned(), at(item, other));
        }
        for (address, item) in paths.iter_mut() {
            if let (Some(_), Some(head)) = (&item.get, &mut item.head) {
                as_head(head);
            }
            for (method, operation) in operations(item) {
                operation.parameters.iter_mut().flatten().for_each(corrections::parameter);
                links::complete(operation);
                refusals::complete(address, &method, operation);
            }
        }
    }
}

/// Returns the operations of a path that also exist at another one: those that upload.
fn at(item: &PathItem, address: &str) -> PathItem {
    let mut other = PathItem::default();
    other.post = item.post.clone();
    if address.starts_with("/api/tus") {
        other.options = item.options.clone();
    }
    for (_, operation) in operations(&mut other) {
        let parameters = operation.parameters.iter_mut();
        parameters.for_each(|it| it.retain(|it| stands_in(it, address)));
        let suffix = if address.ends_with('/') { "ToRoot" } else { "WithoutSlash" };
        operation.operation_id = operation.operation_id.take().map(|id| id + suffix);
    }
    other
}

fn stands_in(parameter: &RefOr<Parameter>, address: &str) -> bool {
    match parameter {
        RefOr::T(it) => {
            it.parameter_in != ParameterIn::Path || address.contains(&format!("{{{}}}", it.name))
        }
        RefOr::Ref(_) => true,
    }
}

/// Turns a HEAD described together with its GET into an operation of its own, without bodies.
fn as_head(head: &mut Operation) {
    head.operation_id = head.operation_id.take().map(|id| id + "Head");
    for response in head.responses.responses.values_mut() {
        if let RefOr::T(response) = response {
            response.content.clear();
        }
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = (HttpMethod, &mut Operation)> {
    let all = [
        (HttpMethod::Get, &mut item.get),
        (HttpMethod::Head, &mut item.head),
        (HttpMethod::Post, &mut item.post),
        (HttpMethod::Put, &mut item.put),
        (HttpMethod::Patch, &mut item.patch),
        (HttpMethod::Delete, &mut item.delete),
        (HttpMethod::Options, &mut item.options),
    ];
    all.into_iter().filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}

/// Adds the locations of API keys and sessions.
fn keys(components: &mut Components) {
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
    let header = ApiKey::Header(ApiKeyValue::new("X-API-Key"));
    components.add_security_scheme("header", SecurityScheme::ApiKey(header));
    let query = ApiKey::Query(ApiKeyValue::with_description(
        "apiKey",
        "API key in the query. Proxies may log it: prefer a header.",
    ));
    components.add_security_scheme("query", SecurityScheme::ApiKey(query));
    let session = ApiKey::Cookie(ApiKeyValue::with_description(
        "trug-session",
        "Session cookie of a signed-in user, for requests of the dashboard. With an https public URL it is \
         named `__Host-trug-session`.",
    ));
    components.add_security_scheme("session", SecurityScheme::ApiKey(session));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn operation_ids_are_unique_and_links_resolve() {
        let mut document = Document::openapi();
        let mut names = BTreeSet::new();
        for (address, item) in &mut document.paths.paths {
            for (_, operation) in operations(item) {
                let name = operation.operation_id.clone().unwrap_or_default();
                assert!(names.insert(name.clone()), "{address}: {name} is there twice");
            }
        }
        for name in links::linked_operations() {
            assert!(names.contains(name), "a link names {name}");
        }
    }

    #[test]
    fn objects_with_flattened_parts_are_one_schema() {
        let document = Document::openapi();
        assert!(!document.to_json().unwrap().contains("\"allOf\""));
        let schemas = serde_json::to_value(document.components.unwrap().schemas).unwrap();
        let link = &schemas["NewLinkRequest"];
        let has = |name: &&str| link["properties"][name].is_object();
        assert!(["kind", "paths", "title"].iter().all(has), "{link}");
        assert_eq!(link["required"], serde_json::json!(["paths"]));
        assert_eq!(link["additionalProperties"], false);
        let alias = &schemas["DeleteReply"]["properties"]["deleted"]["description"];
        assert!(alias.as_str().unwrap().contains("Not part of the API contract"));
    }

    #[test]
    fn reply_schemas_are_not_parts_of_others() {
        let mut document = Document::openapi();
        let replies = success::replies(&mut document);
        let schemas = serde_json::to_value(document.components.unwrap().schemas).unwrap();
        // Alternatives of a reply are at its own level.
        let schemas = schemas.as_object().unwrap().values();
        let parts: String = schemas.map(|schema| schema["properties"].to_string()).collect();
        assert!(replies.len() > 30);
        for reply in replies {
            let reference = format!("\"#/components/schemas/{reply}\"");
            assert!(!parts.contains(&reference), "{reply} has `success`, and is part of another");
        }
    }
}
