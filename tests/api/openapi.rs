//! The OpenAPI document: product 4.

use std::collections::{BTreeMap, BTreeSet};

use axum::body::Body;
use http::Method;
use serde_json::Value;
use service::config::{Config, Layer};
use tests::World;

const CONTRACT: &str = include_str!("../../server/API.md");
const ROUTES: &str = include_str!("../../server/src/routes.rs");
const TO_WRITE: &str =
    "regenerate it: cargo test -p tests --test api -- --ignored write_the_openapi_document";
const TO_ADD: &str = "server/src/openapi.rs says how an endpoint gets into the document, and then";

/// Paths of routes that more than the path selects, and which the route table marks by `@`.
const DISPATCHED: &[&str] = &["/{bucket}/presigned/{path}"];

/// Returns whether a method is exempt from the comparison with the route table: in buckets, PUT exists only where an
/// address was issued for it, and the root refuses GET and DELETE, each with its own error. The dashboard's page and
/// the front page of the documentation are described once for all of their addresses.
fn is_exempt(path: &str, method: &str) -> bool {
    let is_root = matches!(path, "/{bucket}" | "/{bucket}/");
    let is_page = matches!(path, "/-/set-up" | "/-/invitation" | "/-/docs/") && method == "GET";
    is_page || path.starts_with("/{bucket}") && (method == "PUT" || is_root && method != "POST")
}

fn document() -> Value {
    serde_json::from_str(server::openapi::document()).unwrap()
}

/// Returns the methods by address; HEAD where there is no GET, which implies it, and no OPTIONS, which every address
/// has.
fn described() -> BTreeMap<String, BTreeSet<String>> {
    let document = document();
    let paths = document["paths"].as_object().unwrap().iter();
    let methods = |item: &Value| {
        let has_get = item.get("get").is_some();
        let names = item.as_object().unwrap().keys().map(|name| name.to_uppercase());
        names.filter(|name| name != "OPTIONS" && !(has_get && name == "HEAD")).collect()
    };
    paths.map(|(path, item)| (path.clone(), methods(item))).collect()
}

/// Returns the paths of the route table that alone select a route, with parameters as the document writes them.
fn routes() -> BTreeSet<String> {
    let code = ROUTES.split("#[cfg(test)]").next().unwrap();
    let rows = code.lines().filter(|line| !line.trim_start().starts_with('@'));
    let texts = rows.flat_map(|row| row.split('"').skip(1).step_by(2));
    texts.filter(|text| text.starts_with('/')).map(|text| text.replace("{*", "{")).collect()
}

#[test]
fn openapi_document_matches_the_code() {
    let (generated, committed) = (server::openapi::generate(), server::openapi::document());
    let line = generated.lines().zip(committed.lines()).position(|(one, other)| one != other);
    let line = line.map_or(0, |line| line + 1);
    assert!(generated == committed, "server/openapi.json differs in line {line}: {TO_WRITE}");
}

#[test]
#[ignore = "rewrites server/openapi.json"]
fn write_the_openapi_document() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../server/openapi.json");
    std::fs::write(path, server::openapi::generate()).unwrap();
}

#[tokio::test]
async fn openapi_document_covers_all_routes() {
    // Token of the metrics, which do not exist without it.
    let words = ["metrics_token=0123456789abcdef", "plan_rates=false"];
    let layer = Layer::from_assignments(words.into_iter(), "a test").unwrap();
    let (world, _) = World::with_bucket_and(1, Config::new(layer).unwrap());
    let described = described();
    let mut served = BTreeMap::new();
    for route in routes() {
        let path = route.replace("{bucket}", "photos").replace(['{', '}'], "");
        // No address supports this method: each responds with its own methods.
        let method = Method::from_bytes(b"BREW").unwrap();
        let reply = world.anonymous().send(method, &path, &[], Body::empty()).await;
        if reply.status == 404 {
            continue;
        }
        reply.check_own_error(405, "method_not_allowed");
        let allowed: BTreeSet<&str> = reply.header("allow").split(", ").collect();
        let is_one =
            |method: &&str| *method != "OPTIONS" && !(allowed.contains("GET") && *method == "HEAD");
        let allowed: BTreeSet<_> =
            allowed.iter().copied().filter(|it| is_one(it)).map(str::to_owned).collect();
        served.insert(route, allowed);
    }
    assert!(served.len() > 20, "the routes were not found");
    let none = BTreeSet::new();
    for (path, methods) in &served {
        for method in methods.difference(described.get(path).unwrap_or(&none)) {
            let is_missing = !is_exempt(path, method);
            assert!(!is_missing, "{method} {path} is not described. {TO_ADD} {TO_WRITE}");
        }
    }
    for (path, methods) in &described {
        if DISPATCHED.contains(&path.as_str()) {
            continue;
        }
        for method in methods.difference(served.get(path).unwrap_or(&none)) {
            assert!(is_exempt(path, method), "{method} {path} is described, and not there");
        }
    }
}

#[test]
fn openapi_error_codes_match_the_contract() {
    let rows = CONTRACT.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        let status: u16 = cells.next()?.parse().ok()?;
        // Rows of other tables have sentences here.
        let codes = cells.next().filter(|cell| status >= 400 && cell.starts_with('`'))?;
        Some(codes.split('`').skip(1).step_by(2))
    });
    let documented: BTreeSet<&str> =
        rows.flatten().filter(|code| code.contains('_') || *code == "internal").collect();
    let document = document();
    let codes = &document["components"]["schemas"]["ApiError"]["properties"]["code"]["enum"];
    let codes: BTreeSet<&str> =
        codes.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let words = |code: &&&str| code.contains('_') || **code == "internal";
    let described: BTreeSet<&str> = codes.iter().filter(words).copied().collect();
    let differing: Vec<_> = documented.symmetric_difference(&described).collect();
    assert!(differing.is_empty(), "only in one of server/API.md and the document: {differing:?}");
}

#[tokio::test]
async fn openapi_document_supports_conditional_get() {
    let (world, _) = World::with_bucket(1);
    let anonymous = world.anonymous();
    let reply = anonymous.get("/-/openapi.json").await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.body, server::openapi::document());
    for (name, value) in [
        ("content-type", "application/json"),
        ("cache-control", "no-cache"),
        ("access-control-allow-origin", "*"),
    ] {
        assert_eq!(reply.header(name), value);
    }
    let etag = reply.header("etag").to_owned();
    let again = anonymous.get_with("/-/openapi.json", &[("if-none-match", etag.as_str())]).await;
    assert_eq!((again.status.as_u16(), again.body.len()), (304, 0));
    assert_eq!(again.header("etag"), etag);
    let changed = anonymous.get_with("/-/openapi.json", &[("if-match", "\"other\"")]).await;
    changed.check_error(412, "precondition_failed");
    // Without a date, no date says that it is unchanged.
    let late = [("if-modified-since", "Fri, 31 Dec 9999 23:59:59 GMT")];
    assert_eq!(anonymous.get_with("/-/openapi.json", &late).await.header("etag"), etag);
    assert_eq!(anonymous.get_with("/-/openapi.json", &late).await.status, 200);
}
