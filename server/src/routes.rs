//! Route table: deliveries, the S3 gateway, and all endpoints in the order of the specification; and the entry of a
//! request, which finds its route.
//!
//! Deliveries are most of the load and have a single URL form, so that no path is looked up for them. Guarantees: a
//! path that starts with a reserved segment is never taken for a bucket; every OPTIONS request is a preflight; a path
//! and a method have at most one route; the methods of a path are reported in one order. Non-goals: the endpoints, and
//! the checks in front of them (`admission`).

use axum::body::Body;
use axum::handler::Handler;
use axum::response::Response;
use http::request::Parts;
use http::{Method, Request};
use matchit::Router;
use protocol::error::ApiError;
use protocol::object_path::ObjectPath;
use protocol::query::Query;
use protocol::reserved_paths;
use service::admission::Access;
use service::auth::presents_key;
use service::path_params::PathParams;
use service::request_context::RoutedPath;
use service::state::AppState;
use service::transform_params::has_transform_params;
use service::upload;
use usage::operation::Operation;

use crate::handlers::presigned_put::OBJECT_METHODS;
use crate::handlers::shared_pages::link_entries;
use crate::handlers::{
    account, accounts, api_keys, audit, buckets, client_module, dashboard, delete,
    deleted_versions, docs, download_links, file_pages, health, integrations, jobs, list, metrics,
    moves, object_metadata, organisations, presign, presigned_put, recent_uploads, search,
    server_settings, sessions, set_up, shared_links, shared_pages, storage, token_pages, tus,
    upload_pages, usage_history, usage_report, webhooks, zips,
};

/// Response of a handler, boxed because handlers differ in their futures.
pub type HandlerFuture = std::pin::Pin<Box<dyn Future<Output = Response> + Send>>;

/// Row of the table.
pub struct Route {
    selector: Selector,
    method: Verb,
    pub path: &'static str,
    pub access: Access,
    pub operation: Operation,
    pub responder: Responder,
}

/// What selects a route, besides its method.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Selector {
    /// The path.
    Path,
    /// S3 signature, and a path that names an object.
    SignedObject,
    /// S3 signature, and a path that names a bucket or nothing.
    SignedBucket,
    /// Browser upload by an HTML form, as in S3.
    Form,
    /// Earlier presign form of the path, and an API key: without one, the path names a file.
    Presign,
    /// Query parameters of an image transformation.
    Transform,
    /// Path that is not reserved.
    Object,
}

/// What responds to the requests of a route.
#[derive(Clone, Copy)]
pub enum Responder {
    /// `service::delivery`, without extractors.
    Delivery,
    /// S3 gateway, for signed requests.
    Gateway,
    /// S3 gateway, for forms.
    GatewayForm,
    Handler(fn(AppState, Request<Body>) -> HandlerFuture),
}

/// Method of a route.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verb {
    /// GET and HEAD.
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
    Any,
}

/// Verbs with the methods that `Allow` lists for them, in its order.
const VERBS: [(Verb, &str); 6] = [
    (Verb::Get, "GET, HEAD"),
    (Verb::Head, "HEAD"),
    (Verb::Post, "POST"),
    (Verb::Put, "PUT"),
    (Verb::Patch, "PATCH"),
    (Verb::Delete, "DELETE"),
];

impl Verb {
    fn covers(self, method: &Method) -> bool {
        match self {
            Self::Get => matches!(*method, Method::GET | Method::HEAD),
            Self::Head => *method == Method::HEAD,
            Self::Post => *method == Method::POST,
            Self::Put => *method == Method::PUT,
            Self::Patch => *method == Method::PATCH,
            Self::Delete => *method == Method::DELETE,
            Self::Any => true,
        }
    }
}

/// Defines a list of routes: method, paths, access, operation, responder. A selector other than the path comes first,
/// after `@`; these routes have no OpenAPI description of their own.
macro_rules! routes {
    (
        $routes:ident documented as $document:ident;
        $(@$selector:ident $s_method:ident $($s_path:literal)+ $s_access:ident $s_operation:ident $s_responder:tt;)*
        $($method:ident $($path:literal)+ $access:ident $operation:ident $module:ident::$handler:ident;)*
    ) => {
        /// OpenAPI description of endpoints.
        #[derive(utoipa::OpenApi)]
        #[openapi(paths($($module::$handler),*))]
        pub struct $document;

        routes! { $routes;
            $(@$selector $s_method $($s_path)+ $s_access $s_operation $s_responder;)*
            $(@Path $method $($path)+ $access $operation [$module::$handler];)*
        }
    };
    (
        $routes:ident;
        $(@$selector:ident $method:ident $($path:literal)+ $access:ident $operation:ident $responder:tt;)*
    ) => {
        static $routes: &[Route] = &[$($(Route {
            selector: Selector::$selector,
            method: Verb::$method,
            path: $path,
            access: Access::$access,
            operation: Operation::$operation,
            responder: responder!($responder),
        },)+)*];
    };
}

macro_rules! responder {
    ([$responder:ident]) => {
        Responder::$responder
    };
    ([$module:ident::$handler:ident]) => {
        Responder::Handler(|app, request| Box::pin(Handler::call($module::$handler, request, app)))
    };
}

routes! { ROUTES documented as EndpointsDocument;
    // 4.1 delivery, and the earlier form of 4.4.
    @Object Get "/{bucket}/{*path}" Open Deliver [Delivery];
    @Transform Get "/{bucket}/{*path}" Open Picture [Delivery];
    @Presign Get "/{bucket}/presigned/{*path}" Management Presign [presign::presign_address];

    // S3 gateway. It authenticates and authorizes by itself.
    @SignedObject Get "/{bucket}/{*key}" Open Deliver [Gateway];
    @SignedObject Put "/{bucket}/{*key}" Open Upload [Gateway];
    @SignedObject Post "/{bucket}/{*key}" Open Upload [Gateway];
    @SignedObject Delete "/{bucket}/{*key}" Open Delete [Gateway];
    @SignedObject Any "/{bucket}/{*key}" Open Other [Gateway];
    @SignedBucket Get "/{bucket}" Open List [Gateway];
    @SignedBucket Put "/{bucket}" Open Manage [Gateway];
    @SignedBucket Post "/{bucket}" Open Delete [Gateway];
    @SignedBucket Delete "/{bucket}" Open Delete [Gateway];
    @SignedBucket Any "/{bucket}" Open Other [Gateway];
    @Form Post "/{bucket}" Open Upload [GatewayForm];

    // Views of the dashboard, at any path.
    @Path Any "/-/{view}" "/-/{view}/" "/-/{view}/{*path}" SameOrigin Dashboard [dashboard::view];

    // Objects and folders: 4.2 upload, 4.3 delete, 4.5 use of a presigned URL, which carries its own authorization.
    Post "/{bucket}/{*path}" "/{bucket}/" "/{bucket}" Upload Upload upload::upload;
    Put "/{bucket}/{*path}" "/{bucket}/" "/{bucket}" Open Upload presigned_put::put_presigned;
    Delete "/{bucket}/{*path}" "/{bucket}/" "/{bucket}" Management Delete delete::delete;

    // 4.4 presigned tokens, 4.6 list, 4.7 search.
    Get "/api/presigned-url" Management Presign presign::presign_token;
    Get "/api/presigned-url/{token}" Open Presign token_pages::page;
    Post "/api/presigned-url/{token}" Open Upload token_pages::upload_with_token;
    Get "/api/list-objects" Management List list::list;
    Get "/api/search/{bucket}" Management Search search::search;

    // Resumable uploads. An upload is charged when it is created, regardless of the number of its chunks.
    Post "/api/tus/" "/api/tus" Upload Tus tus::create;
    Head "/api/tus/{id}" Management Tus tus::state;
    Post "/api/tus/{id}" Management Tus tus::overridden;
    Patch "/api/tus/{id}" Management Tus tus::append;
    Delete "/api/tus/{id}" Management Tus tus::terminate;

    // 4.8 management. Clients 13.11.
    Get "/api/buckets" Management Manage buckets::list;
    Post "/api/buckets" Management Manage buckets::create;
    Get "/api/buckets/{bucketName}" Management Manage buckets::show;
    Patch "/api/buckets/{bucketName}" Management Manage buckets::edit;
    Delete "/api/buckets/{bucketName}" Management Manage buckets::delete;
    Get "/api/buckets/{bucketName}/folders" Management Manage buckets::folders;
    Post "/api/buckets/{bucketName}/lifecycle/preview" Management Manage buckets::preview_rules;
    Post "/api/buckets/{bucketName}/move" Management Manage moves::move_one;
    Post "/api/buckets/{bucketName}/copy" Management Manage moves::copy_one;
    Post "/api/buckets/{bucketName}/download-links" Management Presign download_links::create;
    Get "/api/buckets/{bucketName}/object" Management Manage object_metadata::show;
    Patch "/api/buckets/{bucketName}/object" Management Manage object_metadata::edit;
    Get "/api/buckets/{bucketName}/zip" Management Deliver zips::folder;
    Post "/api/buckets/{bucketName}/zips" Management Manage zips::prepare;
    Get "/api/buckets/{bucketName}/deleted" Management Manage deleted_versions::list;
    Post "/api/buckets/{bucketName}/undelete" Management Manage deleted_versions::undelete;
    Get "/api/buckets/{bucketName}/webhooks" Management Manage webhooks::list;
    Post "/api/buckets/{bucketName}/webhooks" Management Manage webhooks::create;
    Get "/api/buckets/{bucketName}/webhooks/{id}" Management Manage webhooks::show;
    Patch "/api/buckets/{bucketName}/webhooks/{id}" Management Manage webhooks::edit;
    Delete "/api/buckets/{bucketName}/webhooks/{id}" Management Manage webhooks::delete;
    Post "/api/buckets/{bucketName}/webhooks/{id}/test" Management Manage webhooks::test;
    Get "/api/buckets/{bucketName}/webhooks/{id}/dead-letters" Management Manage webhooks::dead_letters;
    Delete "/api/buckets/{bucketName}/webhooks/{id}/dead-letters" Management Manage webhooks::forget_dead_letters;
    Post "/api/buckets/{bucketName}/webhooks/{id}/dead-letters/retry" Management Manage webhooks::retry_dead_letters;
    Get "/api/buckets/{bucketName}/links" Management Manage shared_links::list_of_bucket;
    Post "/api/buckets/{bucketName}/links" Management Presign shared_links::create;
    Get "/api/links" Management Manage shared_links::list;
    Get "/api/links/{id}" Management Manage shared_links::show;
    Patch "/api/links/{id}" Management Manage shared_links::edit;
    Delete "/api/links/{id}" Management Manage shared_links::end;
    Get "/api/jobs" Management Manage jobs::list;
    Post "/api/jobs" Management Manage jobs::begin;
    Get "/api/jobs/{id}" Management Manage jobs::show;
    Delete "/api/jobs/{id}" Management Manage jobs::cancel;
    Get "/api/audit" Management Manage audit::show;
    Get "/api/audit/files" Management Manage audit::show_files;
    Get "/api/storage" Management Manage storage::show;
    Get "/api/settings" Management Manage server_settings::show;
    Get "/api/recent-uploads" Management Manage recent_uploads::list;
    Get "/api/keys" Management Manage api_keys::list;
    Post "/api/keys" Management Manage api_keys::create;
    Delete "/api/keys/{id}" Management Manage api_keys::revoke;
    Get "/api/organisations" Management Manage organisations::list;
    Post "/api/organisations" Management Manage organisations::create;
    Get "/api/organisations/{id}" Management Manage organisations::show;
    Patch "/api/organisations/{id}" Management Manage organisations::edit;
    Delete "/api/organisations/{id}" Management Manage organisations::delete;
    Get "/api/organisations/{id}/members" Management Manage organisations::members;
    Post "/api/organisations/{id}/members" Management Manage organisations::set_member;
    Delete "/api/organisations/{id}/members" Management Manage organisations::remove_member;
    Post "/api/organisations/{id}/membership" Management Manage organisations::accept_membership;
    Delete "/api/organisations/{id}/membership" Management Manage organisations::decline_membership;
    Get "/api/account" Management Manage account::show;
    Patch "/api/account" Management Manage account::edit;
    Get "/api/usage" Management Manage usage_report::usage;
    Get "/api/usage/history" Management Manage usage_history::history;
    Get "/api/accounts" Management Manage accounts::list;
    Post "/api/accounts" Management Manage accounts::create;
    Post "/api/accounts/sweep" Management Manage accounts::sweep;
    Get "/api/accounts/{id}" Management Manage accounts::show;
    Patch "/api/accounts/{id}" Management Manage accounts::edit;
    Post "/api/accounts/{id}/invitations" Management Manage set_up::invite;

    // The server's own pages.
    Get "/" Open Dashboard dashboard::entrance;
    Get "/-/assets/{version}/{name}" Open Dashboard dashboard::asset;
    Get "/-/openapi.json" Open Docs docs::openapi;
    Get "/-/docs" "/-/docs/" Open Docs docs::front_page;
    Get "/-/docs/{*path}" Open Docs docs::page;
    Get "/-/client.js" Open Docs client_module::script;
    Get "/-/client/{version}/client.js" Open Docs client_module::versioned_script;
    Get "/-/client.d.ts" Open Docs client_module::types;
    // Pages of public files.
    Get "/-/v/{bucket}/{*path}" Open Deliver file_pages::page;
    // Pages of shared links, for clients without an account.
    Get "/-/s/{token}" Open Deliver shared_pages::page;
    Post "/-/s/{token}/unlock" Open Other shared_pages::unlock;
    Get "/-/s/{token}/list" Open List link_entries::list;
    Get "/-/s/{token}/zip" Open Deliver shared_pages::zip;
    Get "/-/s/{token}/f/{*path}" Open Deliver shared_pages::file;
    Post "/-/s/{token}/u" Open Upload upload_pages::upload_form;
    Post "/-/s/{token}/tus" Open Tus upload_pages::tus_create;
    Head "/-/s/{token}/tus/{id}" Open Tus upload_pages::tus_state;
    Patch "/-/s/{token}/tus/{id}" Open Tus upload_pages::tus_append;
    Delete "/-/s/{token}/tus/{id}" Open Tus upload_pages::tus_terminate;

    Get "/-/zip/{token}" Open Deliver zips::download;
    Get "/-/health" Open Health health::health;
    Get "/-/ready" Open Health health::ready;
    Get "/-/integrations/sharex" Open Docs integrations::sharex;
    Get "/-/integrations/lb-phone" Open Docs integrations::lb_phone;
    Get "/-/integrations/curl" Open Docs integrations::curl;

    // Sign-in and set-up, for the dashboard. Sessions are charged like any request of their account.
    Get "/-/" "/-/set-up" "/-/invitation" SameOrigin Dashboard dashboard::shell;
    Get "/-/session" SameOrigin Session sessions::show;
    Post "/-/session" SameOrigin Session sessions::sign_in;
    Delete "/-/session" SameOrigin Session sessions::sign_out;
    Get "/-/sessions" SameOriginManagement Session sessions::list;
    Delete "/-/sessions" SameOriginManagement Session sessions::end_all;
    Delete "/-/sessions/{id}" SameOriginManagement Session sessions::end;
    Put "/-/password" SameOriginManagement Session sessions::change_password;
    Post "/-/set-up" SameOrigin Session set_up::set_up;
    Post "/-/invitation" SameOrigin Session set_up::accept_invitation;

    // Metrics, if there is a token for them.
    Get "/-/metrics" Open Metrics metrics::metrics;
}

// Routes of the admin listener.
routes! { ADMIN;
    @Path Get "/-/metrics" Open Metrics [metrics::metrics_unauthenticated];
    @Path Get "/-/health" Open Health [health::health];
    @Path Get "/-/ready" Open Health [health::ready];
}

/// Entry of a request.
pub enum Entry<'a> {
    /// Delivery of an object, or why the path names none. Bypasses the extractors.
    Delivery(&'static Route, Result<ObjectPath, ApiError>),
    Endpoint(Endpoint<'a>),
}

/// Endpoint of a request that is not a delivery.
pub enum Endpoint<'a> {
    /// Route, and what the path names.
    Route(&'static Route, RoutedPath),
    /// OPTIONS, with the methods of the path where these do not depend on the request; in a bucket they do.
    Preflight(Option<&'a str>),
    /// The path has no route with the method; these are the methods that it has, as in `Allow`.
    WrongMethod(&'a str),
    NotFound,
}

/// Routes by path.
pub struct RouteTable {
    own: Router<PathRoutes>,
    in_bucket: Router<PathRoutes>,
}

/// Routes of a path.
struct PathRoutes {
    routes: Vec<&'static Route>,
    /// Methods for `Allow`.
    allow: String,
}

impl RouteTable {
    /// Creates the table of the public listener. Without a metrics token, the path of the metrics is not found, like
    /// any unknown one.
    pub fn new(has_metrics: bool) -> Self {
        let is_served = |route: &&Route| has_metrics || route.operation != Operation::Metrics;
        Self::of(ROUTES.iter().filter(is_served))
    }

    /// Creates the table of the admin listener.
    pub fn for_admin() -> Self {
        Self::of(ADMIN.iter())
    }

    fn of(routes: impl Iterator<Item = &'static Route>) -> Self {
        let mut table = Self { own: Router::new(), in_bucket: Router::new() };
        let routes: Vec<_> = routes.filter(|it| it.selector == Selector::Path).collect();
        for (at, route) in routes.iter().enumerate() {
            let is_same = |other: &&&Route| other.path == route.path;
            if routes.iter().take(at).any(|other| is_same(&other)) {
                continue;
            }
            let of_path = PathRoutes::new(routes.iter().filter(is_same).copied().collect());
            let is_own = is_reserved_path(route.path);
            let paths = if is_own { &mut table.own } else { &mut table.in_bucket };
            let inserted = paths.insert(route.path, of_path);
            debug_assert!(inserted.is_ok(), "{}: {inserted:?}", route.path);
        }
        table
    }

    /// Returns the entry of a request.
    pub fn entry(&self, state: &AppState, head: &Parts) -> Entry<'_> {
        #[cfg(not(feature = "s3"))]
        let _ = state;
        #[cfg(feature = "s3")]
        if let Some(path) = s3::path_of(state, head) {
            let has_key =
                path.trim_start_matches('/').split_once('/').is_some_and(|it| !it.1.is_empty());
            let selector = if has_key { Selector::SignedObject } else { Selector::SignedBucket };
            if let Some(route) = selected(selector, &head.method) {
                return Entry::Endpoint(Endpoint::Route(route, RoutedPath::Gateway(path)));
            }
        }
        let path = head.uri.path();
        if is_delivery(head) {
            if let Some(target) = presign_target(head)
                && let Some(route) = selected(Selector::Presign, &head.method)
            {
                return Entry::Endpoint(Endpoint::Route(route, RoutedPath::Object(target)));
            }
            let is_transform = head.uri.query().is_some_and(has_transform_params);
            let selector = if is_transform { Selector::Transform } else { Selector::Object };
            if let Some(route) = selected(selector, &head.method) {
                return Entry::Delivery(route, ObjectPath::from_path(path));
            }
        }
        if head.method == Method::OPTIONS {
            return Entry::Endpoint(Endpoint::Preflight(self.fixed_methods(path)));
        }
        #[cfg(feature = "s3")]
        if let Some(path) = s3::form_path(state, head)
            && let Some(route) = selected(Selector::Form, &head.method)
        {
            return Entry::Endpoint(Endpoint::Route(route, RoutedPath::Gateway(path)));
        }
        Entry::Endpoint(self.find(&head.method, path))
    }

    /// Returns the route of a request by its path, or why there is none.
    pub fn find(&self, method: &Method, path: &str) -> Endpoint<'_> {
        let is_own = is_reserved_path(path);
        let paths = if is_own { &self.own } else { &self.in_bucket };
        let Ok(found) = paths.at(path) else { return Endpoint::NotFound };
        let Some(route) = found.value.routes.iter().find(|route| route.method.covers(method))
        else {
            return Endpoint::WrongMethod(&found.value.allow);
        };
        let path = match is_own {
            true => RoutedPath::Own(PathParams::new(found.params.iter().map(|(_, text)| text))),
            false => RoutedPath::Object(ObjectPath::from_path(path)),
        };
        Endpoint::Route(route, path)
    }

    /// Returns the methods of one of the server's own paths, as in `Allow`, if they do not depend on the request.
    fn fixed_methods(&self, path: &str) -> Option<&str> {
        let of_path = self.own.at(path).ok()?.value;
        let is_fixed = of_path.routes.iter().all(|route| route.method != Verb::Any);
        is_fixed.then_some(&*of_path.allow)
    }
}

impl Entry<'_> {
    /// Returns the route, if there is one.
    pub fn route(&self) -> Option<&'static Route> {
        match self {
            Self::Delivery(route, _) | Self::Endpoint(Endpoint::Route(route, _)) => Some(route),
            Self::Endpoint(_) => None,
        }
    }

    /// Returns whether a request is for a path that delivers files to other origins.
    pub fn is_of_file(&self) -> bool {
        self.route().is_some_and(|route| {
            matches!(route.selector, Selector::Object | Selector::Transform | Selector::Presign)
        })
    }

    /// Returns the operation for which a request is counted.
    pub fn operation(&self) -> Operation {
        match (self.route(), self) {
            (Some(route), _) => route.operation,
            (None, Self::Endpoint(Endpoint::Preflight(_))) => Operation::Preflight,
            (None, _) => Operation::Other,
        }
    }
}

/// Returns the route of a selector other than the path.
fn selected(selector: Selector, method: &Method) -> Option<&'static Route> {
    ROUTES.iter().find(|route| route.selector == selector && route.method.covers(method))
}

impl PathRoutes {
    fn new(routes: Vec<&'static Route>) -> Self {
        // Files are read by delivery, and PUT exists only where a URL for it was issued.
        let is_object = routes.iter().any(|route| !is_reserved_path(route.path));
        let has = |verb: Verb| routes.iter().any(|route| route.method == verb);
        let methods = VERBS.iter().filter(|(verb, _)| has(*verb)).map(|(_, methods)| *methods);
        let allow = match is_object {
            true => OBJECT_METHODS.to_owned(),
            false => methods.chain(["OPTIONS"]).collect::<Vec<_>>().join(", "),
        };
        Self { routes, allow }
    }
}

/// Returns whether a path starts with a reserved segment. Compared as sent: a percent-encoded one names a bucket, and
/// no bucket has such a name.
pub fn is_reserved_path(path: &str) -> bool {
    let path = path.strip_prefix('/').unwrap_or("");
    let own = [reserved_paths::API, reserved_paths::INTERNAL];
    path.is_empty() || own.iter().any(|first| reserved_paths::after_segments(path, first).is_some())
}

fn is_delivery(head: &Parts) -> bool {
    let is_read = matches!(head.method, Method::GET | Method::HEAD);
    is_read && !is_reserved_path(head.uri.path())
}

/// Returns the file or folder for which a presigned URL is requested, in the earlier form.
fn presign_target(head: &Parts) -> Option<Result<ObjectPath, ApiError>> {
    let target = ObjectPath::from_presign_path(head.uri.path())?;
    let is_asked =
        head.method == Method::GET && presents_key(&head.headers, &Query::from_uri(&head.uri));
    is_asked.then_some(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_is_found_by_its_method() {
        let table = RouteTable::new(true);
        for route in ROUTES.iter().filter(|route| route.selector == Selector::Path) {
            let path = route.path.replace(['{', '}', '*'], "");
            let method = match VERBS.iter().find(|(verb, _)| *verb == route.method) {
                Some((_, methods)) => methods.split(", ").next().unwrap(),
                None => "BREW",
            };
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            match table.find(&method, &path) {
                Endpoint::Route(found, _) => {
                    assert!(std::ptr::eq(found, route), "{method} {path}: {}", found.path);
                }
                _ => panic!("{method} {path} has no route"),
            }
        }
    }

    #[test]
    fn unknown_paths_and_methods_have_no_route() {
        let table = RouteTable::new(false);
        for path in ["/api", "/api/", "/api/x", "/api/buckets/photos/", "/-"] {
            assert!(matches!(table.find(&Method::GET, path), Endpoint::NotFound), "{path}");
        }
        let brew = Method::from_bytes(b"BREW").unwrap();
        for (path, methods) in [
            ("/api/buckets/photos", "GET, HEAD, PATCH, DELETE, OPTIONS"),
            ("/api/tus/a", "HEAD, POST, PATCH, DELETE, OPTIONS"),
            ("/-/password", "PUT, OPTIONS"),
            ("/photos/a.png", OBJECT_METHODS),
        ] {
            match table.find(&brew, path) {
                Endpoint::WrongMethod(allow) => assert_eq!(allow, methods, "{path}"),
                _ => panic!("{path} has no methods"),
            }
        }
        let metrics = table.find(&Method::GET, "/-/metrics");
        assert!(matches!(metrics, Endpoint::Route(route, _) if route.path == "/-/{view}"));
    }

    #[test]
    fn signed_requests_are_counted_by_method_and_path() {
        let (object, bucket) = (Selector::SignedObject, Selector::SignedBucket);
        for (selector, method, name) in [
            (object, "GET", "deliver"),
            (bucket, "GET", "list"),
            (bucket, "PUT", "manage"),
            (object, "PUT", "upload"),
            (object, "POST", "upload"),
            (bucket, "POST", "delete"),
            (object, "DELETE", "delete"),
            (object, "BREW", "other"),
        ] {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            assert_eq!(selected(selector, &method).unwrap().operation.name(), name, "{method}");
        }
    }

    #[test]
    fn objects_are_delivered_and_the_rest_is_routed() {
        let is = |method: &str, path: &str| {
            let request = Request::builder().method(method).uri(path).body(());
            is_delivery(&request.unwrap().into_parts().0)
        };
        for path in ["/b/x", "/b", "/b/", "/b/api/x", "/apis/x", "/%61pi/x", "//b/x"] {
            assert!(is("GET", path) && is("HEAD", path), "{path}");
            assert!(!is("POST", path) && !is("DELETE", path), "{path}");
        }
        for path in ["/", "/api", "/api/", "/api/x", "/-/health", "/-", "/api?x=/b"] {
            assert!(!is("GET", path), "{path}");
        }
    }

    #[test]
    fn routes_are_reserved_bucket_names() {
        for route in ROUTES.iter().chain(ADMIN) {
            let first = route.path.split('/').nth(1).unwrap_or_default();
            let is_own = first.is_empty() || reserved_paths::is_reserved(first);
            assert!(first == "{bucket}" || is_own, "{first}");
        }
    }
}
